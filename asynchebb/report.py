"""The reproduction as one page that a browser opens without a network, and as JSON."""

from __future__ import annotations

from datetime import timedelta
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asynchebb import pages
from asynchebb.experiments.claims import FAILS, HOLDS, IN_PART, NOT_RUN, Part, Verdict
from asynchebb.experiments.readings import PAPERS_HOLD, PRESET, READINGS, readings
from asynchebb.experiments.scale import SCALES

if TYPE_CHECKING:
    from asynchebb.experiments.reproduce import Judged, Outcome

TOO_SHORT = "Smoke scale: runs are far too short to learn anything. This shows that everything works, not what is true."
MARKS = {HOLDS: "✓", IN_PART: "◐", FAILS: "✗", NOT_RUN: "·"}
KINDS = {HOLDS: "yes", IN_PART: "part", FAILS: "no", NOT_RUN: "none"}


def as_json(outcome: Outcome) -> dict[str, Any]:
    """All that was judged, with what was measured."""
    claims = [
        {
            "id": judged.claim.id,
            "where": judged.claim.where,
            "claim": judged.claim.says,
            "paper": judged.claim.paper,
            "holds": judged.over_all,
            "measures": dict(judged.claim.shows),
            "readings": {reading: verdict._asdict() for reading, verdict in judged.tried.items()},
            "instead": instead(judged, outcome.scale),
        }
        for judged in _claims(outcome)
    ]
    return {
        "scale": {"name": outcome.scale, **SCALES[outcome.scale]._asdict()},
        "preset": PRESET,
        "readings": {name: _values(reading) for name, reading in readings(SCALES[outcome.scale]).items()},
        "work": outcome.work,
        "machine": pages.machine(),
        "versions": pages.versions(),
        "failures": outcome.failures,
        "claims": claims,
    }


def _claims(outcome: Outcome) -> list[Judged]:
    return [judged for finding in outcome.findings for judged in finding.claims]


def _values(reading: Any) -> dict[str, Any]:
    return {name: value if isinstance(value, int | float) else repr(value) for name, value in reading._asdict().items()}


def instead(judged: Judged, scale: str) -> str:
    """What happens where a claim does not hold: its text, with what was measured under the presets' reading."""
    if judged.over_all in (HOLDS, NOT_RUN) or scale == "smoke":  # so short a run shows nothing
        return ""
    tried = judged.tried
    first = PRESET if PRESET in tried else next(iter(tried))
    verdict = tried[first]
    measured = {name: number(value, judged.claim.shows[name]) for name, value in verdict.mean.items()}
    said = [f"Under “{first}”: {judged.claim.instead.format(**measured)}"]
    # Readings that do not concern the claim give the same numbers, and are not named again.
    tried = {name: one for name, one in tried.items() if name == next(k for k in tried if tried[k].mean == one.mean)}
    if len(tried) > 1:
        under = {kind: [f"“{name}”" for name in tried if tried[name].holds == kind] for kind in (HOLDS, IN_PART, FAILS)}
        so = "; ".join(f"it {kind} under {', '.join(names)}" for kind, names in under.items() if names)
        said.append(f"Of the readings that were tried, {so}.")
    return " ".join(said)


def number(value: float, says: str = "") -> str:
    """Shares as per cent, the others with as many digits as tell something."""
    if says.startswith("share"):
        return f"{100 * value:.0f} %"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 0.1 or not value else 3
    return f"{value:,.{digits}f}"


def markdown(content: dict[str, Any], beside: dict[str, Any] | None = None) -> str:
    """The claims as a table, and a paragraph on each that does not hold; perhaps with the verdicts at another scale.

    Both are what `as_json` gives.
    """
    scales = [one["scale"] for one in (content, beside) if one]
    shown = [*content["readings"]]
    lines = [
        "# What holds of the paper",
        "",
        " ".join(
            f"Made by `asynchebb reproduce --scale {scale['name']}`: n = {scale['n']}, {scale['p']} × {scale['p']} "
            f"pixels, {scale['steps']:,} Euler steps per run, {scale['seeds']} seeds."
            for scale in scales
        )
        + f" ✓ holds, ◐ holds in part, ✗ does not hold, · was not run, under each reading (at {scales[0]['name']} "
        "scale); the overall verdict counts the reading of the presets first. What was measured, and by which margins "
        f"each claim is judged, is in the report.{f' {TOO_SHORT}' if scales[0]['name'] == 'smoke' else ''}",
        "",
        f"| | claim | where | {' | '.join(scale['name'] for scale in scales)} | {' | '.join(shown)} |",
        "| --- " * (3 + len(scales) + len(shown)) + "|",
    ]
    elsewhere = {claim["id"]: claim for claim in beside["claims"]} if beside else {}
    for claim in content["claims"]:
        verdicts = [claim["holds"], *([elsewhere.get(claim["id"], {}).get("holds", NOT_RUN)] if beside else [])]
        marks = [MARKS[claim["readings"].get(name, {}).get("holds", NOT_RUN)] for name in shown]
        said = [f"{MARKS[verdict]} {verdict}" for verdict in verdicts]
        lines.append(f"| {' | '.join([claim['id'], claim['claim'], claim['where'], *said, *marks])} |")
    for one in (content, beside):
        if one and one["scale"]["name"] != "smoke":  # so short a run shows nothing
            lines += ["", f"## What happens instead, {one['scale']['name']} scale", ""]
            lines += [
                f"**{claim['id']}** ({claim['holds']}). {claim['instead']}\n"
                for claim in one["claims"]
                if claim["instead"]
            ]
    return "\n".join(lines).rstrip() + "\n"


def page(outcome: Outcome, pictures: Path) -> str:
    """The whole report."""
    claims, shown = _claims(outcome), [*readings(SCALES[outcome.scale])]
    counted = {kind: sum(judged.over_all == kind for judged in claims) for kind in (HOLDS, IN_PART, FAILS)}
    tally = " ".join(
        f'<span class="tally {KINDS[kind]}"><b>{count}</b> {escape(_plural(kind, count))}</span>'
        for kind, count in counted.items()
    )
    smoke = f'<p class="warning">{TOO_SHORT}</p>' if outcome.scale == "smoke" else ""
    failed = "".join(
        f"<li>{escape(name)}: {escape(why.splitlines()[0] if why else '')}</li>"
        for name, why in outcome.failures.items()
    )
    failures = (
        f'<p class="warning">These runs failed, and what needs them is left out:</p><ul>{failed}</ul>' if failed else ""
    )
    body = f"""<header>
<h1>Asynchronous Hebbian/anti-Hebbian networks, reproduced</h1>
<p>Every figure and every claim of Aguiar &amp; Hennig (2024), computed again by <b>asynchebb</b> and judged by margins
that were written down before the runs (docs/reproduction.md says what was added to them later).
A claim <b class="yes">holds ✓</b> if it does under the reading of the paper that the
presets use (<i>{escape(PRESET)}</i>); it <b class="part">holds in part ◐</b> if some of what it says is so there, or
all of it under another reading; else it <b class="no">does not hold ✗</b>. Click on a claim for what was measured.</p>
<p>{tally}</p>
{smoke}{failures}
</header>
<nav>{" ".join(f'<a href="#{one.name}">{escape(_heading(one.name))}</a>' for one in outcome.findings if one.figures)}
<a href="#readings">readings</a> <a href="#made">how it was made</a></nav>
<section id="claims"><h2>Claims</h2>
<div class="row head"><span></span><span></span><span><i>overall</i></span>
{"".join(f'<span><i title="{escape(_about(name))}">{escape(name)}</i></span>' for name in shown)}</div>
{"".join(_claim(judged, outcome.scale, shown) for judged in claims)}
{_tally(claims, shown)}
</section>
{"".join(_finding(finding, pictures) for finding in outcome.findings if finding.figures)}
{_readings(shown)}
{_made(outcome)}"""
    title = "Asynchronous Hebbian/anti-Hebbian networks, reproduced"
    return pages.document(title, body, STYLE.replace("READINGS", str(len(shown))))


def _plural(kind: str, count: int) -> str:
    return kind if count == 1 else {HOLDS: "hold", IN_PART: "hold in part", FAILS: "do not hold"}[kind]


def _heading(name: str) -> str:
    return f"Figure {name[3:]}" if name.startswith("fig") else name.capitalize()


def _about(name: str) -> str:
    return ", ".join(f"{field} = {value}" for field, value in _values(READINGS[name]).items())


def _mark(kind: str) -> str:
    return f'<span class="{KINDS[kind]}" title="{kind}">{MARKS[kind]}</span>'


def _claim(judged: Judged, scale: str, columns: list[str]) -> str:
    claim, shown = judged.claim, judged.tried
    marks = "".join(_mark(judged.under(name)) for name in columns)
    paragraph = instead(judged, scale)
    return f"""<details class="claim" id="claim-{claim.id.replace(", ", "-")}"><summary class="row">
<b>{escape(claim.id)}</b>
<span>{escape(claim.says)}<br><small>{escape(claim.where)}: {escape(claim.paper)}</small></span>
<span class="over {KINDS[judged.over_all]}" title="{judged.over_all}">{MARKS[judged.over_all]}</span>{marks}</summary>
<div class="body">
{f"<p><b>Instead:</b> {escape(paragraph)}</p>" if paragraph else ""}
<div class="wide"><table><tr><th>Judged by (for the mean over seeds; small, how many seeds alone)</th>
{"".join(f"<th>{escape(name)}</th>" for name in shown)}</tr>
{"".join(_part_row(part, shown) for part in claim.parts)}
<tr><th>Measured (mean ± sd)</th>{"<th></th>" * len(shown)}</tr>
{"".join(_measure_row(name, says, shown) for name, says in claim.shows.items())}</table></div></div></details>
"""


def _tally(claims: list[Judged], columns: list[str]) -> str:
    """How many parts hold under each reading, of the claims that are judged under all."""
    common = [one for one in claims if all(one.under(name) != NOT_RUN for name in columns)]
    if not common:
        return ""
    cells = "".join(f"<small>{round(100 * share)}%</small>" for share in parts_that_hold(common, columns).values())
    names = ", ".join(one.claim.id for one in common)
    return f"""<div class="row tallies"><b></b><span><small>Share of the parts that hold, of the claims judged
under all of these readings ({escape(names)})</small></span><span></span>{cells}</div>"""


def parts_that_hold(claims: list[Judged], columns: list[str]) -> dict[str, float]:
    """The share of all parts of these claims that hold under each reading."""
    held = {name: [part for one in claims for part in one.verdicts[name].parts.values()] for name in columns}
    return {name: sum(of) / len(of) for name, of in held.items()}


def _part_row(part: Part, shown: dict[str, Verdict]) -> str:
    """Whether it holds for the mean over seeds, and for how many seeds it does alone."""
    cells = ""
    for verdict in shown.values():
        count = len(next(iter(verdict.values.values())))
        alone = f" <small>{verdict.seeds[part.says]}/{count}</small>" if count > 1 else ""
        cells += f"<td>{_mark(HOLDS if verdict.parts[part.says] else FAILS)}{alone}</td>"
    given = " <small>(given: alone it does not count)</small>" if part.is_given else ""
    return f"<tr><td>{escape(part.says)}{given}</td>{cells}</tr>"


def _measure_row(name: str, says: str, shown: dict[str, Verdict]) -> str:
    cells = "".join(
        f"<td>{number(verdict.mean[name], says)}"
        + (f" <small>± {number(sd, says)}</small>" if (sd := verdict.sd[name]) is not None else "")
        + "</td>"
        for verdict in shown.values()
    )
    return f"<tr><td>{escape(says)}</td>{cells}</tr>"


def _finding(finding: Any, pictures: Path) -> str:
    drawn = "".join(_figure(name, caption, pictures) for name, caption in finding.figures.items())
    return f'<section id="{finding.name}"><h2>{_heading(finding.name)}: {escape(finding.title)}</h2>{drawn}</section>\n'


def _figure(name: str, caption: str, pictures: Path) -> str:
    below = f'<b>{_heading(name)}.</b> {escape(caption)} <a href="{pictures.name}/{name}.pdf">PDF</a>'
    return pages.figure(name, (pictures / f"{name}.png").read_bytes(), below)


def _readings(shown: list[str]) -> str:
    fields = [*READINGS[PRESET]._fields]
    head = "".join(f"<th>{escape(field)}</th>" for field in fields)
    rows = "".join(
        f"<tr><td>{escape(name)}{' (the presets)' if name == PRESET else ''}</td>"
        + "".join(f"<td>{escape(str(value))}</td>" for value in _values(READINGS[name]).values())
        + "</tr>"
        for name in shown
    )
    return f"""<section id="readings"><h2>Readings</h2>
<p>The paper's text, its appendix and the authors' notebook leave these open or differ in them. <i>asynchronous</i>,
<i>continuous</i> and <i>discrete</i> are the rules of the three models, <i>r_b</i> and <i>r_r</i> the asynchronous
network's threshold and refractory period.</p>
<div class="wide"><table><tr><th>reading</th>{head}</tr>{rows}</table></div></section>
"""


def _made(outcome: Outcome) -> str:
    scale, work = SCALES[outcome.scale], outcome.work
    took = timedelta(seconds=round(work["seconds"]))
    rows = {
        "scale": f"{outcome.scale}: {scale.n} neurons, {scale.p} × {scale.p} pixels, {scale.steps:,} Euler "
        f"steps per run on one set, {scale.steps_per_phase:,} on each of three sets; in experiments of our own "
        f"{scale.side_steps:,}, on each of four sets half of it; "
        f"{scale.seeds} seeds for figures 1 to 3 (0 to {scale.seeds - 1}), one (0) for the others",
        "tests": f"on the frozen network: {scale.tested} stimuli held for {PAPERS_HOLD} steps, as in the paper, and "
        f"{scale.settled} held for {scale.settling}; after several sets, {scale.tested_after} of each so long",
        "runs": f"{work['runs']:,}, of {work['steps']:,} Euler steps in all",
        "wall time of the runs": f"{took} on {work['workers'] or 'a cluster’s'} cores",
        "wall time of measuring and drawing": f"{timedelta(seconds=round(work['drawing']))}, once",
        "largest process": f"{work['peak_memory'] / 1e6:,.0f} MB" if work["peak_memory"] else "not known",
        "machine": ", ".join(f"{name} {value}" for name, value in pages.machine().items()),
        "versions": ", ".join(f"{name} {value}" for name, value in pages.versions().items()),
        "command": f"asynchebb reproduce --scale {outcome.scale}",
        "numbers": "claims.json beside this page has all of them; the runs are in sweep/runs (NetCDF)",
    }
    return f'<section id="made"><h2>How it was made</h2>{pages.facts(rows)}</section>'


STYLE = """
:root { --yes: #1a7f37; --part: #b26a00; --no: #c62828; --none: #9aa0a6; }
nav { position: sticky; top: 0; background: #fffffff2; padding: 8px 0; z-index: 1; border-bottom: 1px solid #d8dee4; }
nav a { margin-right: 12px; color: #0b57d0; text-decoration: none; white-space: nowrap; }
.yes { color: var(--yes); } .part { color: var(--part); } .no { color: var(--no); } .none { color: var(--none); }
.tally { display: inline-block; border: 1px solid; border-radius: 16px; padding: 2px 14px; margin-right: 8px; }
.tally b { font-size: 20px; }
.warning { background: #fff3cd; border-left: 4px solid #e0a800; padding: 8px 12px; }
.row { display: grid; grid-template-columns: 58px minmax(260px, 1fr) 56px repeat(READINGS, 34px); align-items: center;
  gap: 2px; }
.row > span:nth-child(n+3), .row > .over { text-align: center; font-size: 18px; font-weight: 600; }
.row > .over { font-size: 24px; }
.head { height: 190px; align-items: end; margin-top: 8px; }
.head i { writing-mode: vertical-rl; transform: rotate(180deg); font: 12px/1.2 system-ui;
  color: #57606a; display: inline-block; }
.tallies { border-top: 2px solid #d8dee4; padding: 6px 0; color: #57606a; text-align: center; }
.tallies span { text-align: left; }
.body td { white-space: nowrap; } .body td:first-child { white-space: normal; min-width: 260px; }
.claim { border-top: 1px solid #eaeef2; } .claim summary { cursor: pointer; padding: 6px 0; list-style: none; }
.claim summary:hover { background: #f6f8fa; } .claim small { color: #57606a; }
.body { padding: 4px 12px 16px 52px; background: #f6f8fa; } .wide { overflow-x: auto; }
@media (max-width: 800px) {
  .row { grid-template-columns: 40px 1fr 44px; }
  .row > span:nth-child(n+4) { display: none; }
  .head { display: none; } }
"""
