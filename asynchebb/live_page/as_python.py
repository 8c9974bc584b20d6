"""What a live page has simulated, as Python code that gives the same network, bit by bit."""

from __future__ import annotations

import re

import numpy as np

from asynchebb import notation
from asynchebb.contracts import Stimulus
from asynchebb.live_page.simulation import Simulation
from asynchebb.network import Network
from asynchebb.runs.layout import PARTS
from asynchebb.runs.run import Phase
from asynchebb.stimuli import FromArray


def code(simulation: Simulation, number: int = 0) -> str:
    """The code for one of the networks; it ends with its `state`."""
    phases, networks = [*simulation.phases], [each[number] for each in simulation.networks]
    if simulation.samples or not phases:
        phases.append(simulation.phase)
        networks.append(simulation.setting.simulated[number])
    seed = simulation.setting.seed
    lines = ["import asynchebb as ah", "import numpy as np", ""]
    own = sorted({type(part).__name__ for network in networks for part in _own_parts(network)})
    if own:
        lines += [f"# {', '.join(own)}: your own, to be defined or imported first"]
    lines += ["phases = [", *(f"    {_phase(phase)}," for phase in phases), "]"]
    if len({*map(repr, networks)}) == 1:
        lines += [f"network = {_network(networks[0])}", f"run = ah.Run(network, phases, seed={seed})"]
        lines += ["*_, last = ah.simulate(run)  # ah.record(run, 'runs/') saves it as well"]
    else:  # each phase continues the one before with another network
        lines += ["networks = [", *(f"    {_network(network)}," for network in networks), "]", "last = None"]
        lines += ["for k, network in enumerate(networks):"]
        lines += [f"    *_, last = ah.simulate(ah.Run(network, phases[: k + 1], seed={seed}), after=last)"]
    return "\n".join([*lines, "state = last.state", ""]).replace("import numpy as np\n", _numpy(phases))


def _numpy(phases: list[Phase]) -> str:
    return "import numpy as np\n" if any(isinstance(phase.stimulus, FromArray) for phase in phases) else ""


def _phase(phase: Phase) -> str:
    return (
        f"ah.Phase({_stimulus(phase.stimulus)}, samples={phase.samples}, hold={phase.hold}, snapshots=1, "
        f"from_rest={phase.from_rest})"
    )


def _stimulus(stimulus: Stimulus) -> str:
    if not isinstance(stimulus, FromArray):
        return _prefixed(stimulus)
    levels = np.rint(255 * stimulus.rows).astype(int)
    if not np.array_equal(levels / 255, stimulus.rows):
        return "your_stimulus"  # an array of the user's own, too large to be written down
    return f"ah.FromArray(np.array({levels.tolist()}).reshape{(len(levels), *stimulus.shape)} / 255)"


def _network(network: Network) -> str:
    parts = ", ".join(f"{part}={_prefixed(getattr(network, part))}" for part in PARTS)
    return f"ah.Network({network.n}, {network.m}, {parts})"


def _own_parts(network: Network) -> list[object]:
    parts = [getattr(network, part) for part in PARTS]
    return [part for part in parts if notation.to_text(part).startswith(notation.OWN)]


def _prefixed(value: object) -> str:
    """As it is written in a script: ah.Oja(eta=0.002)."""
    text = notation.to_text(value)
    return (
        text.removeprefix(notation.OWN) if text.startswith(notation.OWN) else re.sub(r"\b([A-Z]\w*\()", r"ah.\1", text)
    )
