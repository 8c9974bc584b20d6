"""Results that must not change unnoticed: small runs, and sums of what they end in.

`python tests/pinned.py --write` puts the sums into pinned.json. Where they have changed on purpose, raise
`provenance.RESULTS_VERSION` first: it is part of every run's identity, so saved results of the old code are not taken
for those of the new.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import asynchebb as ah
from asynchebb import provenance

FILE = Path(__file__).with_suffix(".json")
BURSTS = ah.Asynchronous(r_b=0.3, r_r=15)
STRONG, WEAK = ah.Exponential(scale=1.0), ah.Gaussian(scale=0.2)
# Every rule, every schedule that learns and all dynamics are in at least one.
NETWORKS: dict[str, dict[str, Any]] = {
    "asynchronous": dict(dynamics=ah.Projected(dt=0.01), rule=ah.Oja(eta=0.02), schedule=BURSTS, weights=WEAK),
    "discrete": dict(dynamics=ah.Potential(dt=0.01), rule=ah.Hebbian(eta=0.02), schedule=ah.Discrete(), weights=STRONG),
    "continuous": dict(
        dynamics=ah.Potential(dt=0.01), rule=ah.Foldiak(eta=0.002, p=0.05), schedule=ah.Continuous(), weights=STRONG
    ),
    "relaxing": dict(
        dynamics=ah.Relaxing(dt=0.01, tau=0.2),
        rule=ah.Falconbridge(eta=0.02, p=0.05),
        schedule=BURSTS,
        weights=ah.Gaussian(rectified=True, scale=0.3),
    ),
    "homeostatic": dict(
        dynamics=ah.HomeostaticRelaxing(dt=0.01, tau=0.2, target=0.07, tau_h=5.0),
        rule=ah.Pehlevan(a0=50.0),
        schedule=BURSTS,
        weights=STRONG,
    ),
    "spiking": dict(
        dynamics=ah.IntegrateAndFire(dt=0.01, theta=0.05, tau=0.2),
        rule=ah.Hebbian(eta=0.02),
        schedule=ah.Bursts(spikes=2, window=20, r_r=15),
        weights=STRONG,
    ),
    "leaky": dict(
        dynamics=ah.LeakyIntegrateAndFire(dt=0.01, theta=0.05, tau=0.2, tau_m=0.5),
        rule=ah.Oja(eta=0.02),
        schedule=BURSTS,
        weights=STRONG,
    ),
    "noisy": dict(
        dynamics=ah.EscapeNoise(dt=0.01, theta=0.05, tau=0.2, delta=0.02, rho=50.0),
        rule=ah.SpikePairs(eta=0.01),
        schedule=ah.AtSpikes(),
        weights=STRONG,
    ),
    "spiking homeostatic": dict(
        dynamics=ah.HomeostaticIntegrateAndFire(dt=0.01, theta=0.05, tau=0.2, target=0.07, tau_h=5.0),
        rule=ah.Hebbian(eta=0.02),
        schedule=BURSTS,
        weights=STRONG,
    ),
}


def run_of(name: str) -> ah.Run:
    """Two phases of the same stimulus, in which different ones are drawn, and a third of another."""
    bars, squares = ah.Crossbars(6), ah.Squares(6)
    from_rest = name == "asynchronous"
    phases = [ah.Phase(shown, 4, 60, snapshots=1, from_rest=from_rest) for shown in (bars, bars, squares)]
    probe = ah.Probe(bars, samples=4, hold=60, from_rest=from_rest)
    return ah.Run(ah.Network(16, 36, **NETWORKS[name]), phases, probe, seed=5, dtype="float64")


def results(name: str, engine: str) -> dict[str, dict[str, list[float]]]:
    """Of the untrained network and at the end: two sums of each array, and its largest entry."""
    first, *_, last = ah.simulate(run_of(name), engine)
    return {
        when: {key: _sums(values) for key, values in _arrays(snapshot).items() if np.size(values)}
        for when, snapshot in (("untrained", first), ("trained", last))
    }


def _arrays(snapshot: ah.Snapshot) -> dict[str, Any]:
    return snapshot.state._asdict() | snapshot.traces | snapshot.measures


def _sums(array: Any) -> list[float]:
    values = np.asarray(array, float).ravel()
    different = 1 + np.arange(values.size) % 7  # so that two entries that change places change this sum
    return [float(f"{number:.14g}") for number in (values.sum(), different @ values, np.abs(values).max())]


def pinned() -> dict[str, Any]:
    return json.loads(FILE.read_text(encoding="utf-8"))


def changed(name: str, found: dict[str, dict[str, list[float]]]) -> list[str]:
    """Which sums differ from those that are pinned, by more than 1e-9 of themselves or of the largest entry."""
    before = pinned()["runs"][name]
    assert {when: [*sums] for when, sums in found.items()} == {when: [*sums] for when, sums in before.items()}
    return [
        f"{key} of the {when} network: {now}, not {before[when][key]}"
        for when, sums in found.items()
        for key, now in sums.items()
        if not np.allclose(now, before[when][key], rtol=1e-9, atol=1e-9 * before[when][key][-1])
    ]


def write() -> None:
    found = {name: results(name, "reference") for name in NETWORKS}
    if FILE.exists() and pinned()["results_version"] == provenance.RESULTS_VERSION:
        for name in {*found} & {*pinned()["runs"]}:
            if differing := changed(name, found[name]):
                sys.exit(f"{name}: {differing[0]}; if that is intended, raise provenance.RESULTS_VERSION, then write")
    lines = (f"{json.dumps(name)}: {json.dumps(sums)}" for name, sums in found.items())
    text = f'{{"results_version": {provenance.RESULTS_VERSION}, "runs": {{\n' + ",\n".join(lines) + "\n}}\n"
    FILE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    write()
