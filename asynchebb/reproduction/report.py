"""The report of a reproduction: a self-contained HTML page, a Markdown table and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from html import escape
from pathlib import Path
from typing import Any

from asynchebb import provenance
from asynchebb.drawing import pages
from asynchebb.network import Reading
from asynchebb.reproduction.claims import FAILS, HOLDS, IN_PART, NOT_RUN, Part, Verdict
from asynchebb.reproduction.findings import Judged, Outcome
from asynchebb.reproduction.readings import PAPERS_HOLD, PRESET, READINGS, WHOLE, readings
from asynchebb.reproduction.scale import SCALES

TOO_SHORT = "Smoke scale: the runs are far too short to learn anything. This only shows that the code works."
MARKS = {HOLDS: "✓", IN_PART: "◐", FAILS: "✗", NOT_RUN: "·"}
OTHER_READING = "-notebook"  # ends the name of a figure under that reading
KINDS = {HOLDS: "yes", IN_PART: "part", FAILS: "no", NOT_RUN: "none"}


def as_json(outcome: Outcome) -> dict[str, Any]:
    """All verdicts, with the measurements behind them."""
    claims = [
        {
            "id": judged.claim.id,
            "where": judged.claim.where,
            "claim": judged.claim.says,
            "paper": judged.claim.paper,
            "holds": judged.overall,
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
        "machine": provenance.machine(),
        "versions": provenance.versions(),
        "failures": outcome.failures,
        "claims": claims,
    }


def _claims(outcome: Outcome) -> list[Judged]:
    return [judged for finding in outcome.findings for judged in finding.claims]


def _values(reading: Reading) -> dict[str, Any]:
    return {name: value if isinstance(value, int | float) else repr(value) for name, value in reading._asdict().items()}


def instead(judged: Judged, scale: str) -> str:
    """What happens instead if a claim does not hold: its text, with the values measured under the presets' reading."""
    if judged.overall in (HOLDS, NOT_RUN) or scale == "smoke":  # runs this short show nothing
        return ""
    tried = judged.tried
    first = PRESET if PRESET in tried else next(iter(tried))
    verdict = tried[first]
    measured = {name: number(value, judged.claim.shows[name]) for name, value in verdict.mean.items()}
    sentences = [f"Under “{first}”: {judged.claim.instead.format(**measured)}"]
    # Readings that do not affect the claim give the same numbers and are not listed again.
    tried = {name: one for name, one in tried.items() if name == next(k for k in tried if tried[k].mean == one.mean)}
    if len(tried) > 1:
        under = {kind: [f"“{name}”" for name in tried if tried[name].holds == kind] for kind in (HOLDS, IN_PART, FAILS)}
        verdicts = "; ".join(f"it {kind} under {', '.join(names)}" for kind, names in under.items() if names)
        sentences.append(f"Of the readings tried, {verdicts}.")
    return " ".join(sentences)


def number(value: float, says: str = "") -> str:
    """Shares in per cent, other values with a sensible number of digits."""
    if says.startswith("share"):
        return f"{100 * value:.0f} %"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 0.1 or not value else 3
    return f"{value:,.{digits}f}"


def markdown(content: dict[str, Any], beside: dict[str, Any] | None = None) -> str:
    """The claims as a table, with a paragraph on each that does not hold; optionally next to verdicts at another scale.

    Both arguments are results of `as_json`.
    """
    scales = [one["scale"] for one in (content, beside) if one]
    commands = [command(one["scale"]["name"], one["work"]) for one in (content, beside) if one]
    shown = [*content["readings"]]
    lines = [
        "# Which of the paper's claims hold",
        "",
        " ".join(
            f"Made by `{made_by}`: n = {scale['n']}, {scale['p']} × {scale['p']} "
            f"pixels, {scale['steps']:,} Euler steps per run, {scale['seeds']} seeds for figures 1 to 3 (except 2D to "
            "2F) under the presets' and the notebook's readings and for most claims about spiking networks, one seed "
            "for everything else."
            for scale, made_by in zip(scales, commands, strict=True)
        )
        + " ✓ holds, ◐ holds in part, ✗ does not hold, · not run. The last columns show the verdict under each reading "
        f"(at {scales[0]['name']} scale); the overall verdict gives priority to the presets' reading. The report lists "
        "the measurements and the margins by which each claim is judged."
        f"{f' {TOO_SHORT}' if scales[0]['name'] == 'smoke' else ''}",
        "",
        f"| | claim | where | {' | '.join(scale['name'] for scale in scales)} | {' | '.join(shown)} |",
        "| --- " * (3 + len(scales) + len(shown)) + "|",
    ]
    elsewhere = {claim["id"]: claim for claim in beside["claims"]} if beside else {}
    for claim in content["claims"]:
        verdicts = [claim["holds"], *([elsewhere.get(claim["id"], {}).get("holds", NOT_RUN)] if beside else [])]
        marks = [MARKS[claim["readings"].get(name, {}).get("holds", NOT_RUN)] for name in shown]
        overall = [f"{MARKS[verdict]} {verdict}" for verdict in verdicts]
        lines.append(f"| {' | '.join([claim['id'], claim['claim'], claim['where'], *overall, *marks])} |")
    for one in (content, beside):
        if one and one["scale"]["name"] != "smoke":  # runs this short show nothing
            lines += ["", f"## What happens instead, {one['scale']['name']} scale", ""]
            lines += [
                f"**{claim['id']}** ({claim['holds']}). {claim['instead']}\n"
                for claim in one["claims"]
                if claim["instead"]
            ]
    return "\n".join(lines).rstrip() + "\n"


def measured(content: dict[str, Any]) -> str:
    """What was measured for each claim under the presets' and the notebook's readings, in Markdown.

    The argument is a result of `as_json`.
    """
    lines = [
        "# What was measured for each claim",
        "",
        f"Made by `{command(content['scale']['name'], content['work'])}`. Means over seeds, and each seed in brackets; "
        "✓ and ✗: whether a criterion is met by the means. [claims.md](claims.md) has the verdicts under all readings.",
    ]
    for claim in content["claims"]:
        shown = {name: verdict for name, verdict in claim["readings"].items() if name in WHOLE}
        if not shown:
            continue
        lines += ["", f"## {claim['id']}: {claim['holds']}", "", claim["claim"], ""]
        lines += [f"| | {' | '.join(shown)} |", "| --- " * (1 + len(shown)) + "|"]
        for part in next(iter(shown.values()))["parts"]:
            marks = (MARKS[HOLDS if verdict["parts"][part] else FAILS] for verdict in shown.values())
            lines.append(f"| {part} | {' | '.join(marks)} |")
        for name, says in claim["measures"].items():
            values = (
                number(verdict["mean"][name], says) + _of_each_seed(verdict["values"][name], says)
                for verdict in shown.values()
            )
            lines.append(f"| {says} | {' | '.join(values)} |")
    return "\n".join(lines) + "\n"


def page(outcome: Outcome, pictures: Path) -> str:
    """The whole report."""
    claims, shown = _claims(outcome), [*readings(SCALES[outcome.scale])]
    counted = {kind: sum(judged.overall == kind for judged in claims) for kind in (HOLDS, IN_PART, FAILS)}
    smoke = f'<p class="warning">{TOO_SHORT}</p>' if outcome.scale == "smoke" else ""
    failed = "".join(
        f"<li>{escape(name)}: {escape(why.splitlines()[0] if why else '')}</li>"
        for name, why in outcome.failures.items()
    )
    failures = (
        f'<p class="warning">These runs failed; whatever depends on them is left out:</p><ul>{failed}</ul>'
        if failed
        else ""
    )
    drawn = [finding for finding in outcome.findings if finding.figures]
    body = f"""<header><h1>Asynchronous Hebbian/anti-Hebbian networks, reproduced</h1>
<p class="lead">{_verdict(counted, outcome.scale)}</p>{smoke}{failures}{_first_picture(drawn, pictures)}
{pages.folded("How the claims are judged", JUDGED)}</header>
<section id="claims"><h2>Claims</h2>
<div class="row head"><span></span><span><small>Each row opens and shows the measurements.</small></span>
<span><i>overall</i></span>
{"".join(f'<span><i title="{escape(_about(name))}">{escape(name)}</i></span>' for name in shown)}</div>
{"".join(_claim(judged, outcome.scale, shown) for judged in claims)}
{_tally(claims, shown)}
</section>
<section><h2>Figures</h2>{"".join(_finding(finding, pictures, finding is drawn[0]) for finding in drawn)}</section>
{_readings(shown)}
{_made(outcome)}"""
    title = "Asynchronous Hebbian/anti-Hebbian networks, reproduced"
    return pages.document(title, body, STYLE.replace("READINGS", str(len(shown))))


JUDGED = f"""<p>Every figure of Aguiar &amp; Hennig (2024), recomputed by <b>asynchebb</b>, and every claim, judged by
margins fixed before the runs. Some were added after the first report, but before their numbers were seen: a second way
of counting changed synapses (2g, 2h), 1b′, T, I, L, and J under each reading. Claims about spiking networks (V1 to V14)
have the margins of the paper's claims where there is a counterpart; the others were set after single pilot runs, and
V2′, V5, V6 and V9′ were added once first results were known. A claim <b class="yes">holds ✓</b> if all of it holds
under the presets' reading of the paper (<i>{escape(PRESET)}</i>); it <b class="part">holds in part ◐</b> if only part
of it holds there, or if all of it holds under another reading; otherwise it <b class="no">does not hold ✗</b>.</p>"""


def _verdict(counted: dict[str, int], scale: str) -> str:
    """The outcome in a sentence."""
    total = sum(counted.values())
    parts = [
        f'<b class="{KINDS[kind]}">{count} {escape(_plural(kind, count))}</b>'
        for kind, count in counted.items()
        if count
    ]
    listed = " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts) or "none was judged"
    return (
        f"Of {total} claims about the paper's networks, {listed}, in runs of {SCALES[scale].steps:,} Euler steps with "
        f"{SCALES[scale].n} neurons."
    )


def _first_picture(drawn: list[Any], pictures: Path) -> str:
    """The first figure, which shows what the networks learn."""
    if not drawn:
        return ""
    name = next(iter(drawn[0].figures))
    return f'<div class="first">{_figure(name, drawn[0].figures[name], pictures)}</div>'


def _plural(kind: str, count: int) -> str:
    return kind if count == 1 else {HOLDS: "hold", IN_PART: "hold in part", FAILS: "do not hold"}[kind]


def heading(name: str) -> str:
    return f"Figure {name[3:]}" if name.startswith("fig") else name.replace("_", " ").replace("-", " ").capitalize()


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
<span>{escape(claim.says)}</span>
<span class="over {KINDS[judged.overall]}" title="{judged.overall}">{MARKS[judged.overall]}</span>{marks}</summary>
<div class="body"><p>{escape(claim.where)}: {escape(claim.paper)}</p>
{f"<p><b>Instead:</b> {escape(paragraph)}</p>" if paragraph else ""}
<div class="wide"><table><tr><th>Criterion (for the mean over seeds; in small print: individual seeds that meet it)</th>
{"".join(f"<th>{escape(name)}</th>" for name in shown)}</tr>
{"".join(_part_row(part, shown) for part in claim.parts)}
<tr><th>Measured (mean over seeds; in small print: each seed)</th>{"<th></th>" * len(shown)}</tr>
{"".join(_measure_row(name, says, shown) for name, says in claim.shows.items())}</table></div></div></details>
"""


def _tally(claims: list[Judged], columns: list[str]) -> str:
    """The share of parts that hold under each reading, for the claims judged under all readings."""
    common = [one for one in claims if all(one.under(name) != NOT_RUN for name in columns)]
    if not common:
        return ""
    cells = "".join(f"<small>{round(100 * share)}%</small>" for share in parts_that_hold(common, columns).values())
    names = ", ".join(one.claim.id for one in common)
    return f"""<div class="row tallies"><b></b><span><small>Share of criteria met, among the claims judged
under all of these readings ({escape(names)})</small></span><span></span>{cells}</div>"""


def parts_that_hold(claims: list[Judged], columns: list[str]) -> dict[str, float]:
    """The share of all parts of these claims that hold under each reading."""
    held = {name: [part for one in claims for part in one.verdicts[name].parts.values()] for name in columns}
    return {name: sum(of) / len(of) for name, of in held.items()}


def _part_row(part: Part, shown: dict[str, Verdict]) -> str:
    """Whether a part holds for the mean over seeds, and for how many individual seeds."""
    cells = ""
    for verdict in shown.values():
        count = len(next(iter(verdict.values.values())))
        alone = f" <small>{verdict.seeds[part.says]}/{count}</small>" if count > 1 else ""
        cells += f"<td>{_mark(HOLDS if verdict.parts[part.says] else FAILS)}{alone}</td>"
    given = " <small>(a precondition: does not count on its own)</small>" if part.is_given else ""
    return f"<tr><td>{escape(part.says)}{given}</td>{cells}</tr>"


def _measure_row(name: str, says: str, shown: dict[str, Verdict]) -> str:
    cells = "".join(
        f"<td>{number(verdict.mean[name], says)}<small>{_of_each_seed(verdict.values[name], says)}</small></td>"
        for verdict in shown.values()
    )
    return f"<tr><td>{escape(says)}</td>{cells}</tr>"


def _of_each_seed(values: list[float], says: str) -> str:
    return f" ({', '.join(number(value, says) for value in values)})" if len(values) > 1 else ""


def _finding(finding: Any, pictures: Path, is_above: bool) -> str:
    """An experiment's figures, folded; those of other readings within. The first may already be above."""
    first = {name: caption for name, caption in finding.figures.items() if not name.endswith(OTHER_READING)}
    others = {name: caption for name, caption in finding.figures.items() if name not in first}
    above = next(iter(first)) if is_above else None
    drawn = f'<p><a href="#{above}-picture">{escape(heading(above))}</a> is at the top.</p>' if above else ""
    drawn += "".join(_figure(name, caption, pictures) for name, caption in first.items() if name != above)
    if others:
        more = "".join(_figure(name, caption, pictures) for name, caption in others.items())
        drawn += pages.folded(f"The same under the notebook's reading ({len(others)})", more)
    marks = "".join(_mark(judged.overall) for judged in finding.claims)
    summary = f"<b>{escape(heading(finding.name))}</b>: {escape(finding.title)} {marks}"
    return pages.folded(summary, f'<div id="{finding.name}">{drawn}</div>')


def _figure(name: str, caption: str, pictures: Path) -> str:
    below = f'<b>{heading(name)}.</b> {escape(caption)} <a href="{pictures.name}/{name}.pdf">PDF</a>'
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
    table = f'<div class="wide"><table><tr><th>reading</th>{head}</tr>{rows}</table></div>'
    return f"""<section id="readings"><h2>Readings</h2>
<p>The paper's text, its appendix and the authors' notebook leave these choices open or disagree on them.
<i>asynchronous</i>, <i>continuous</i> and <i>discrete</i> are the rules of the three models, <i>r_b</i> and <i>r_r</i>
the asynchronous network's threshold and refractory period.</p>
{pages.folded(f"{len(shown)} readings", table)}</section>
"""


def command(scale: str, work: Mapping[str, Any]) -> str:
    """What made this report; those of earlier versions do not say whether on a GPU."""
    return f"asynchebb reproduce --scale {scale}{' --engine gpu' if work.get('gpu') else ''}"


def _made(outcome: Outcome) -> str:
    scale, work = SCALES[outcome.scale], outcome.work
    took, where = timedelta(seconds=round(work["seconds"])), work["gpu"] or f"{work['workers'] or 'a cluster’s'} cores"
    rows = {
        "scale": f"{outcome.scale}: {scale.n} neurons, {scale.p} × {scale.p} pixels, {scale.steps:,} Euler "
        f"steps per run on one set, {scale.steps_per_phase:,} per set in runs on three sets; in our own experiments "
        f"{scale.side_steps:,} per set, half as many with four sets; "
        f"{scale.seeds} seeds (0 to {scale.seeds - 1}) for figures 1 to 3 (except 2D to 2F) under the presets' and the "
        "notebook's readings and for most claims about spiking networks, one (seed 0) for everything else",
        "tests": f"on the frozen network: {scale.tested} stimuli held for {PAPERS_HOLD} steps, as in the paper, and "
        f"{scale.settled} held for {scale.settling}; after several sets, {scale.tested_after} of each held as long",
        "runs": f"{work['runs']:,}, with {work['steps']:,} Euler steps in total",
        "wall time of the runs": f"{took} on {where}",
        "wall time of measuring and drawing": f"{timedelta(seconds=round(work['drawing']))} (the longest call)",
        "largest process": f"{work['peak_memory'] / 1e6:,.0f} MB" if work["peak_memory"] else "not known",
        "machine": pages.listed(provenance.machine()),
        "versions": pages.listed(provenance.versions()),
        "command": command(outcome.scale, work),
        "numbers": "in claims.json next to this page; the runs themselves are in sweep/runs (NetCDF)",
    }
    return f'<section id="made"><h2>How this report was made</h2>{pages.facts(rows)}</section>'


STYLE = """
.yes { color: var(--yes); } .part { color: var(--part); } .no { color: var(--no); } .none { color: var(--none); }
@media (min-width: 641px) { .first img { max-height: 66vh; width: auto; } }
.row { display: grid; grid-template-columns: 20px 60px minmax(240px, 1fr) 56px repeat(READINGS, 30px);
  align-items: center; gap: 2px; }
.row > .over { text-align: center; font-size: 22px; font-weight: 600; } .row > .over ~ span { text-align: center; }
.claim summary::before { content: "▸"; color: var(--link); } .claim[open] summary::before { content: "▾"; }
.claim summary { list-style: none; } .claim summary::-webkit-details-marker { display: none; }
.head { height: 190px; align-items: end; grid-template-columns: 82px minmax(240px, 1fr) 56px repeat(READINGS, 30px); }
.head > span:nth-child(n+3) { text-align: center; }
.head i { writing-mode: vertical-rl; transform: rotate(180deg); font: 12px/1.2 system-ui; color: var(--soft);
  display: inline-block; }
.tallies { border-top: 2px solid var(--line); padding: 6px 0; text-align: center;
  grid-template-columns: 82px minmax(240px, 1fr) 56px repeat(READINGS, 30px); }
.tallies span { text-align: left; }
.body { padding: 4px 12px 16px 24px; background: var(--card); } .body td { white-space: nowrap; }
.body td:first-child { white-space: normal; min-width: 260px; }
@media (max-width: 800px) {
  .row { grid-template-columns: 16px 44px minmax(0, 1fr) 36px; }
  .row > .over ~ span, .head, .tallies { display: none; }
  .body { padding-left: 8px; } }
"""
