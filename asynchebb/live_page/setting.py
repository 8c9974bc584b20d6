"""What is simulated on the live page, as one value, and what each control makes of it.

A control takes the present setting and gives a new one, or raises an `InputError` and changes nothing. Its parameters
are the fields of the message that asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from inspect import signature
from typing import Any

import numpy as np

from asynchebb import equations, notation
from asynchebb.checks import InputError, at_least, one_of, real, true_or_false
from asynchebb.contracts import Stimulus
from asynchebb.live_page import tours
from asynchebb.network import MODELS, READINGS, Network
from asynchebb.runs.layout import PARTS
from asynchebb.runs.run import check_stimulus
from asynchebb.stimuli import FromArray

USUAL = READINGS["paper"]

# What one machine can compute and one page can show many times a second.
MOST_NEURONS, MOST_PIXELS, LONGEST_HOLD, MOST_SEED, MOST_IMAGES = 2000, 2048, 2000, 2**63 - 1, 32
CONSTANTS = ("r_b", "r_r", "eta")
LONGEST_TEXT = 200  # of a stimulus or another value in a message


@dataclass(frozen=True)
class Setting:
    """Networks side by side (one or two), which start from the same weights where they are drawn alike, and what all
    of them are shown."""

    networks: tuple[Network, ...]
    stimulus: Stimulus
    hold: int = USUAL.hold
    from_rest: bool = USUAL.from_rest
    seed: int = 0
    learns: bool = True
    own: tuple[Stimulus, ...] = ()  # sets that have no name: given by a user's code, or drawn
    then: tuple[Stimulus, ...] = ()  # sets that follow by themselves, each after so many stimuli of the one before
    after: int = 0

    def __post_init__(self) -> None:
        check_stimulus(self.stimulus)
        whole("hold", self.hold, 1, LONGEST_HOLD)
        whole("seed", self.seed, 0, MOST_SEED)
        true_or_false("from_rest", self.from_rest)
        true_or_false("plasticity", self.learns)
        for stimulus in (self.stimulus, *self.then):
            whole("m, the number of pixels,", stimulus.m, 1, MOST_PIXELS)
        for network in self.networks:
            whole("n", network.n, 1, MOST_NEURONS)
            if network.m != self.stimulus.m:
                raise InputError(
                    f"stimulus is {name_of(self.stimulus)}, which has {self.stimulus.m} pixels; it must have "
                    f"{network.m}, as the network has inputs"
                )

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a stimulus as an image."""
        return tuple(getattr(self.stimulus, "shape", (1, self.stimulus.m)))

    @property
    def simulated(self) -> tuple[Network, ...]:
        """The networks as they are now, without learning if plasticity is off."""
        return self.networks if self.learns else tuple(network.frozen() for network in self.networks)


def beginning(network: Network, stimulus: Stimulus, **given: Any) -> Setting:
    """The setting with which a page opens."""
    if not isinstance(network, Network):
        raise InputError(f"network is {network!r}; it must be a Network, like ah.asynchronous()")
    check_stimulus(stimulus)
    return Setting((network,), stimulus, own=(stimulus,), **given)


def whole(name: str, value: Any, least: int, most: int) -> None:
    at_least(least)(name, value)
    if value > most:
        raise InputError(f"{name} is {value!r}; it must be a whole number from {least:,} to {most:,}")


# Stimuli and parts of networks, as text


def name_of(stimulus: Stimulus) -> str:
    """What the page calls a set; two sets of drawings have different names."""
    digest = getattr(stimulus, "digest", "")
    return f"{stimulus!r} {digest[:6]}" if isinstance(stimulus, FromArray) else repr(stimulus)


def parsed(kind: str, text: Any) -> Any:
    """A value of one of the package's classes."""
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        raise InputError(f"{kind} is {str(text)[:80]!r}; it must be text like Name(field=value)")
    return notation.parse(kind, text)


def stimulus_named(setting: Setting, given: Any) -> Stimulus:
    """A set by its name, or the images of one: {"images": [[…], …], "shape": [height, width]}, grey levels 0 to 255."""
    for own in setting.own:
        if given == name_of(own):
            return own
    return drawn(**fields_of("stimulus", given, drawn)) if isinstance(given, Mapping) else parsed("stimulus", given)


def drawn(images: Any, shape: Any) -> FromArray:
    """A set of drawings."""
    if not isinstance(shape, list) or len(shape) not in (2, 3):
        raise InputError(f"shape is {shape!r}; it must be a list of two or three whole numbers")
    for size in shape:
        whole("shape", size, 1, MOST_PIXELS)
    pixels = int(np.prod(shape))
    if not isinstance(images, list) or not 1 <= len(images) <= MOST_IMAGES:
        raise InputError(f"images must be a list of 1 to {MOST_IMAGES} images")
    for image in images:
        if not isinstance(image, list) or len(image) != pixels:
            raise InputError(f"each image must be a list of {pixels} grey levels")
        for level in image:
            whole("a grey level", level, 0, 255)
    # FromArray takes (samples, height, width); with ON and OFF channels it guesses the shape, as it always does.
    given = np.array(images, np.float64) / 255
    return FromArray(given.reshape(len(images), *shape) if len(shape) == 2 else given)


def described(setting: Setting) -> dict[str, Any]:
    """The setting as a message, from which `start` makes the same."""
    first = setting.networks[0]
    stimulus: Any = name_of(setting.stimulus)
    if isinstance(setting.stimulus, FromArray):
        levels = np.rint(255 * setting.stimulus.rows).astype(int)
        stimulus = {"images": levels.tolist(), "shape": [*setting.shape]}
    return {
        "networks": [
            {part: notation.to_text(getattr(network, part)) for part in PARTS} for network in setting.networks
        ],
        "n": first.n,
        "stimulus": stimulus,
        "hold": setting.hold,
        "from_rest": setting.from_rest,
        "seed": setting.seed,
    }


def on_page(setting: Setting) -> dict[str, Any]:
    """What the page's controls show."""
    first = setting.networks[0]
    stimuli = [name_of(one) for one in (*setting.own, *_of_same_shape(setting), setting.stimulus)]
    dynamics = [repr(first.dynamics), *(repr(cls()) for cls in notation.variants("dynamics").values())]
    return {
        "networks": [_constants(network) for network in setting.networks],
        "n": first.n,
        "seed": setting.seed,
        "hold": setting.hold,
        "from_rest": setting.from_rest,
        "plasticity": setting.learns,
        "dynamics": repr(first.dynamics),
        "all_dynamics": [*dict.fromkeys(dynamics)],
        "stimulus": name_of(setting.stimulus),
        "stimuli": [*dict.fromkeys(stimuli)],
        "then": [name_of(one) for one in setting.then],
        "shape": setting.shape,
    }


def _constants(network: Network) -> dict[str, Any]:
    model = type(network.schedule).__name__.lower()
    found = {**equations.constants(network.schedule), **equations.constants(network.rule)}
    return {"model": model if model in MODELS else "", **{name: found.get(name) for name in CONSTANTS}}


def _of_same_shape(setting: Setting) -> list[Stimulus]:
    """The package's sets of images that the networks can be shown."""
    found = []
    for name, cls in notation.variants("stimulus").items():
        if name != "FromArray":
            with suppress(InputError):  # some need a larger image
                found.append(cls(setting.shape[-1]))
    return [stimulus for stimulus in found if tuple(stimulus.shape) == setting.shape]


# Controls that change what is simulated from now on


def model(setting: Setting, model: str, network: int = 0) -> Setting:
    """One of the paper's three models, which keeps its weights and dynamics."""
    one_of("model", model, MODELS)
    present = _network(setting, network)
    kept = dict(dynamics=present.dynamics, weights=present.weights)
    return _with_network(setting, network, USUAL.network(model, present.n, present.m, **kept))


def constant(setting: Setting, name: str, value: float, network: int = 0) -> Setting:
    """r_b, r_r or η."""
    one_of("name", name, CONSTANTS)
    real(name, value)
    present = _network(setting, network)
    part = "rule" if name == "eta" else "schedule"
    changed = getattr(present, part)
    if name not in {field.name for field in fields(changed)}:
        raise InputError(f"{name} is given, but {changed!r} has none; choose a model that has")
    return _with_network(setting, network, replace(present, **{part: replace(changed, **{name: value})}))


def dynamics(setting: Setting, dynamics: str) -> Setting:
    chosen = parsed("dynamics", dynamics)
    return replace(setting, networks=tuple(replace(network, dynamics=chosen) for network in setting.networks))


def stimulus(setting: Setting, stimulus: Any) -> Setting:
    chosen = stimulus_named(setting, stimulus)
    own = setting.own if name_of(chosen) in map(name_of, setting.own) else (*setting.own[:1], chosen)
    keep = own if isinstance(chosen, FromArray) else setting.own
    return replace(setting, stimulus=chosen, own=keep, then=())


def draw(setting: Setting, image: Any, add: bool = False) -> Setting:
    """A drawing as the stimulus; it may join the drawings that are shown already."""
    true_or_false("add", add)
    shown = setting.stimulus
    before = np.rint(255 * shown.rows).astype(int).tolist() if add and isinstance(shown, FromArray) else []
    return stimulus(setting, {"images": [*before, image], "shape": [*setting.shape]})


def hold(setting: Setting, hold: int) -> Setting:
    return replace(setting, hold=hold)


def from_rest(setting: Setting, from_rest: bool) -> Setting:
    return replace(setting, from_rest=from_rest)


def plasticity(setting: Setting, on: bool) -> Setting:
    return replace(setting, learns=on)


# Controls that start again from untrained weights


def reset(setting: Setting, seed: int, n: int | None = None) -> Setting:
    size = setting.networks[0].n if n is None else n
    whole("n", size, 1, MOST_NEURONS)
    networks = tuple(replace(network, n=size) for network in setting.networks)
    return replace(setting, networks=networks, seed=seed, then=())


def second(setting: Setting, model: str | None) -> Setting:
    """A second network beside the first, from the same start and with the same stimuli; None removes it."""
    first = setting.networks[0]
    if model is None:
        return replace(setting, networks=(first,))
    one_of("model", model, MODELS)
    other = USUAL.network(model, first.n, first.m, dynamics=first.dynamics, weights=first.weights)
    return replace(setting, networks=(first, other))


def start(setting: Setting, networks: Any, n: int, stimulus: Any, hold: int, from_rest: bool, seed: int) -> Setting:
    """A setting that somebody has shared."""
    chosen = stimulus_named(setting, stimulus)
    whole("n", n, 1, MOST_NEURONS)
    whole("m, the number of pixels,", chosen.m, 1, MOST_PIXELS)
    if not isinstance(networks, list) or not 1 <= len(networks) <= 2:
        raise InputError("networks must be a list of one or two networks")
    built = []
    for given in networks:
        if not isinstance(given, Mapping) or {*given} != {*PARTS}:
            raise InputError(f"each of networks must have {', '.join(PARTS)}, and nothing else")
        built.append(Network(n, chosen.m, **{part: parsed(part, given[part]) for part in PARTS}))
    own = (*setting.own[:1], chosen) if isinstance(chosen, FromArray) else setting.own[:1]
    return Setting(tuple(built), chosen, hold, from_rest, seed, own=own)


def tour(setting: Setting, tour: str) -> Setting:
    one_of("tour", tour, tours.TOURS)
    tour_ = tours.TOURS[tour]
    first, *rest = tour_.sets
    return Setting(
        tour_.networks(setting.networks[0].n, first.m),
        first,
        own=setting.own[:1],
        then=tuple(rest),
        after=tour_.stimuli_per_set,
    )


Control = Callable[..., Setting]
CHANGES: dict[str, Control] = {
    control.__name__: control for control in (model, constant, dynamics, stimulus, draw, hold, from_rest, plasticity)
}
RESTARTS: dict[str, Control] = {control.__name__: control for control in (reset, second, start, tour)}


def changed(setting: Setting, control: str, given: Mapping[str, Any]) -> Setting:
    """What a message makes of the setting."""
    function = (CHANGES | RESTARTS)[control]
    return function(setting, **fields_of(control, given, function, "setting"))


def fields_of(name: str, given: Mapping[str, Any], function: Callable[..., Any], *without: str) -> Mapping[str, Any]:
    """The fields of a message, all of which the function takes, and none of which is missing."""
    taken = {key: one for key, one in signature(function).parameters.items() if key not in without}
    needed = [key for key, one in taken.items() if one.default is one.empty]
    if {*given} - {*taken} or {*needed} - {*given}:
        raise InputError(
            f"{name} has the fields {', '.join(given) or 'none'}; it must have {', '.join(taken) or 'none'}"
        )
    return given


def _network(setting: Setting, number: Any) -> Network:
    whole("network", number, 0, len(setting.networks) - 1)
    return setting.networks[number]


def _with_network(setting: Setting, number: int, network: Network) -> Setting:
    networks = [*setting.networks]
    networks[number] = network
    return replace(setting, networks=tuple(networks))
