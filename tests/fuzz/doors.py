"""The doors of the library: functions whose arguments are tried with odd values."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import inspect
import io
import itertools
import os
import tempfile
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import asynchebb as ah
from asynchebb import dynamics, metrics, plot, rules, schedules, stimuli, weights

from . import odd
from .odd import (
    ANYTHING,
    EITHER,
    MISFIT,
    REFUSED,
    SAME,
    Odd,
    allowed,
    arrays,
    flags,
    names,
    numbers,
    paths,
    refused,
    several,
    things,
    wholes,
    without,
)

LONGEST = 10**6  # steps or samples: more would only take long
FRESH = object()  # stands for a new generator of random numbers, or a run that is recorded for the case


class Door(NamedTuple):
    """A function, plain arguments for it, and odd values for some of them."""

    name: str
    call: Callable[..., Any]
    plain: Mapping[str, Any]
    odd: dict[str, list[Odd]]
    called: Mapping[str, str] = {}  # what error messages call an argument, if not by its name
    may_diverge: bool = False  # then its numbers need not be finite, as documented


def doors(rng: np.random.Generator, samples: int, n: int, m: int) -> Iterator[Door]:
    X = rng.random((samples, m))
    net = ah.Network(n=n, m=m)
    state = net.init(np.random.default_rng(0))
    yield from _constants(rng, X, net)
    yield from _stimuli(rng, X)
    yield from _specifications(rng, X, net)
    yield from _simulations(rng, X, net, state)
    yield from _metrics(rng, X)
    yield from _estimators(rng, X, n)
    yield from _files(rng, X, net, n)
    yield from _figures(rng, X, net, state)
    yield from _sweeps(rng, X, net)


# Values


def _of_field(field: dataclasses.Field, rng: np.random.Generator) -> tuple[Any, list[Odd]]:
    """A plain value for a field of a number, and odd ones."""
    kind, _, none = str(field.type).partition(" | ")
    plain = 3 if field.default is None else field.default
    odds = {"float": numbers, "int": wholes, "bool": flags}[kind](plain, rng)
    return plain, allowed(odds, none)


def _classes(module: Any) -> list[type]:
    return [
        cls
        for name, cls in vars(module).items()
        if dataclasses.is_dataclass(cls) and cls.__module__ == module.__name__ and not name.startswith("_")
    ]


def _constants(rng: np.random.Generator, X: np.ndarray, net: ah.Network) -> Iterator[Door]:
    spiking = dataclasses.replace(net, dynamics=ah.IntegrateAndFire(), schedule=ah.Bursts())
    for module, kind in ((rules, "rule"), (schedules, "schedule"), (dynamics, "dynamics"), (weights, "weights")):
        whole = spiking if kind == "schedule" else net
        for cls in _classes(module):
            if found := {field.name: _of_field(field, rng) for field in dataclasses.fields(cls)}:
                plain, odds = ({name: both[k] for name, both in found.items()} for k in (0, 1))
                yield Door(cls.__name__, partial(_used, cls, kind, whole, X), plain, odds)


def _used(cls: type, kind: str, net: ah.Network, X: np.ndarray, **constants: Any) -> Any:
    """A network with this part, simulated; its text must give it back."""
    net = dataclasses.replace(net, **{kind: cls(**constants)})
    run = ah.Run(net, ah.Phase(ah.FromArray(X), 2, 5, 1))
    assert eval(repr(net), vars(ah)) == net, f"{net!r} does not give the network back"
    *_, last = ah.simulate(run)
    return last.state.W, last.state.M, last.state.y, np.array([*run.identity.encode()])


def _stimuli(rng: np.random.Generator, X: np.ndarray) -> Iterator[Door]:
    def sample(cls: type, **fields: Any) -> np.ndarray:
        return cls(**fields).sample(np.random.default_rng(0), 3)

    for cls in _classes(stimuli):
        if cls in (ah.FromArray, ah.Patches):
            continue
        found = {field.name: _of_field(field, rng) for field in dataclasses.fields(cls)}
        plain = {name: 8 if name == "p" else both[0] for name, both in found.items()}
        odds = {name: wholes(8, rng) if name == "p" else both[1] for name, both in found.items()}
        yield Door(cls.__name__, partial(sample, cls), plain, odds)

    def drawn(rng: Any, count: Any) -> np.ndarray:
        return ah.Crossbars(6).sample(_generator(rng), count)

    def rows(data: Any) -> np.ndarray:
        return ah.FromArray(data).sample(np.random.default_rng(0), 3)

    odds = {"rng": things(rng), "count": wholes(3, rng, LONGEST)}
    yield Door("Crossbars.sample", drawn, {"rng": FRESH, "count": 3}, odds)
    yield Door("FromArray", rows, {"data": X}, {"data": arrays(X, rng, 0, 1, empty=REFUSED)})


def _generator(rng: Any) -> Any:
    return np.random.default_rng(0) if rng is FRESH else rng


def _specifications(rng: np.random.Generator, X: np.ndarray, net: ah.Network) -> Iterator[Door]:
    def advanced(**given: Any) -> np.ndarray:
        new = ah.Network(**given)
        state = new.init(np.random.default_rng(0))
        return ah.advance(new, state, np.ones((2, new.m)), 5)[0].W

    sizes = {"n": wholes(net.n, rng), "m": wholes(net.m, rng)}
    parts = {part: things(rng) for part in ("rule", "schedule", "dynamics", "weights")}
    yield Door("Network", advanced, {"n": net.n, "m": net.m}, sizes | parts)
    for model in (ah.asynchronous, ah.continuous, ah.discrete):
        odds = {"n": wholes(net.n, rng), "m": wholes(net.m, rng), "reading": names("paper", rng), "rule": things(rng)}

        def preset(model: Any = model, **given: Any) -> np.ndarray:
            return model(**given).init(np.random.default_rng(0)).W

        plain = {"n": net.n, "m": net.m, "reading": "paper", "rule": ah.Oja()}
        yield Door(model.__name__, preset, plain, odds)

    def drawn(rng: Any, dtype: Any) -> np.ndarray:
        return net.init(_generator(rng), dtype).W

    kinds = without(things(rng), "a class")  # float is float64, as for NumPy
    yield Door("Network.init", drawn, {"rng": FRESH, "dtype": "float32"}, {"rng": things(rng), "dtype": kinds})

    shown = ah.FromArray(X)
    phase: dict[str, Any] = {"stimulus": shown, "samples": 3, "hold": 5, "snapshots": 2, "from_rest": False}

    def learned(**given: Any) -> Any:
        return _simulated(ah.Run(net, ah.Phase(**given)))

    odds = {
        "stimulus": things(rng),
        "samples": wholes(3, rng, LONGEST),
        "hold": wholes(5, rng, LONGEST),
        "snapshots": wholes(2, rng),
        "from_rest": flags(False, rng),
    }
    yield Door("Phase", learned, phase, odds)

    def tested(**given: Any) -> Any:
        return _simulated(ah.Run(net, ah.Phase(shown, 2, 5), ah.Probe(**given)))

    probe = {"stimulus": shown, "samples": 3, "hold": 5, "from_rest": False, "measures": ah.USUAL}
    odds = {name: odds[name] for name in ("stimulus", "samples", "hold", "from_rest")}
    # Any function may be a measure, and that fails only when it is called.
    measures = [one for one in several(rng) if "a function" not in one.name]
    yield Door("Probe", tested, probe, odds | {"measures": measures})

    def specified(**given: Any) -> Any:
        return _simulated(ah.Run(**given))

    whole = {"network": net, "phases": ah.Phase(shown, 2, 5), "probes": (), "trace": (), "seed": 3, "dtype": "float64"}
    odds = {
        "network": things(rng),
        "phases": several(rng),
        "probes": allowed(several(rng), "[]"),
        "trace": allowed(several(rng), "[]"),
        "seed": wholes(3, rng),
        "dtype": names("float64", rng),
    }
    odds["dtype"] = without(odds["dtype"], "a class")  # float is float64, as for NumPy
    yield Door("Run", specified, whole, odds)

    def declared(label: Any, better: Any, unit: Any, per_neuron: Any) -> Any:
        def contrast(W: np.ndarray) -> float:
            return W.std() / W.mean()

        return len(ah.measure(label, better, unit, per_neuron)(contrast).label)

    plain = {"label": "mean weight", "better": "more", "unit": "", "per_neuron": False}
    text = without(things(rng), "text", "other letters", "long text", "NumPy's text", "empty text")
    odds = {
        "label": text,
        "better": without(names("more", rng), "empty text"),
        "unit": text,
        "per_neuron": flags(False, rng),
    }
    yield Door("measure", declared, plain, odds)


def _simulated(run: ah.Run) -> Any:
    """The weights at the end; of a long run, only when it would stop."""
    assert run.identity and repr(run)
    if run.steps_with_tests > LONGEST:
        return np.array(run.stops()[:100], float)
    *_, last = ah.simulate(run)
    return last.state.W


# Simulations


def _simulations(rng: np.random.Generator, X: np.ndarray, net: ah.Network, state: ah.State) -> Iterator[Door]:
    inputs, steps = arrays(X, rng, 0, 1, fixed=True), wholes(5, rng, LONGEST)
    one: dict[str, Any] = {"network": net, "state": state, "X": X, "hold": 5, "engine": "cpu", "from_rest": False}
    common = {
        "network": things(rng),
        "state": things(rng),
        "X": inputs,
        "hold": steps,
        "engine": names("cpu", rng),
        "from_rest": flags(False, rng),
    }
    trace = allowed(several(rng), "[]")
    yield Door("advance", ah.advance, {**one, "trace": ()}, {**common, "trace": trace})
    progress = {"on_progress": without(things(rng), "a function", "a class")}

    def tell(steps: int) -> None:
        pass

    def responded(**given: Any) -> Any:
        return ah.respond(**given)[:3]

    odds = {**common, "X": _not_empty(inputs)}
    yield Door("respond", responded, {**one, "on_progress": tell}, odds | progress)
    yield Door("reconstruction_error", ah.reconstruction_error, one, odds)
    plain = {name: one[name] for name in ("hold", "engine", "from_rest")}
    plain |= {"networks": [net, net], "states": [state, state], "Xs": X, "trace": ()}
    odds = {
        "networks": several(rng),
        "states": allowed(several(rng), "[]"),
        "Xs": without(inputs, "list", "tuple", "more axes", "0-d"),
        "hold": allowed(steps, "[]", "[1]", "(1, 2)", "array([])", "array([1, 2])", "range"),
        "engine": common["engine"],
        "from_rest": allowed(common["from_rest"], "[]"),
        "trace": trace,
    }
    yield Door("advance_many", ah.advance_many, plain, odds, {"networks": "network", "states": "state", "Xs": "X"})
    sets = [one._replace(make=lambda make=one.make: [make()]) for one in _not_empty(inputs) if one.fate != SAME]
    plain = {"network": net, "states": [state], "sets": [X], "hold": 5, "engine": "cpu", "from_rest": False}
    odds = {name: common[name] for name in ("network", "hold", "engine", "from_rest")}
    odds |= {"states": several(rng), "sets": [*sets, *several(rng)]}
    yield Door("error_matrix", ah.error_matrix, plain, odds, {"states": "state", "sets": "X"})

    shown = ah.FromArray(X)
    run = ah.Run(net, ah.Phase(shown, 2, 5, 2))
    first = next(ah.simulate(run))

    def simulated(**given: Any) -> Any:
        return [each.state.W for each in ah.simulate(**given)]

    plain = {"run": run, "engine": "cpu", "after": first, "on_progress": tell}
    odds = {"run": things(rng), "engine": names("cpu", rng), "after": without(things(rng), "None")}
    yield Door("simulate", simulated, plain, odds | progress)

    def resumed(**given: Any) -> Any:
        return simulated(run=run, after=first._replace(**given))

    plain = {"number": first.number, "step": first.step, "state": first.state}
    odds = {"number": wholes(0, rng), "step": wholes(0, rng), "state": things(rng)}
    yield Door("simulate.after", resumed, plain, odds, {"number": "after", "step": "after"})

    of_state = dict(_parts(rng, state))
    for door, call in {
        "advance.state": lambda given: ah.advance(net, given, X, 5),
        "respond.state": lambda given: ah.respond(net, given, X, 5)[:3],
        "simulate.after.state": lambda given: simulated(run=run, after=first._replace(state=given)),
    }.items():

        def edited(call: Any = call, **parts: Any) -> Any:
            return call(state._replace(**parts))

        yield Door(door, edited, {}, of_state)


def _not_empty(odds: list[Odd]) -> list[Odd]:
    return [one._replace(fate=REFUSED) if one.name in ("no rows", "empty") else one for one in odds]


def _parts(rng: np.random.Generator, state: ah.State) -> Iterator[tuple[str, list[Odd]]]:
    """Odd values for each variable of the state. Those of whole numbers take no fractions, so little is the same."""
    n = len(state.W)
    for part in ("W", "M"):  # from numbers that are too large, a network diverges
        odds = arrays(getattr(state, part), rng, 0, fixed=True)
        yield part, [one._replace(fate=ANYTHING) if one.name in ("huge", "int64") else one for one in odds]
    for part in ("u", "a", "y"):
        odds = arrays(getattr(state, part), rng, 0 if part == "y" else None, fixed=True)
        yield part, [one._replace(fate=ANYTHING) if one.name in ("huge", "int64") else one for one in odds]
    whole = {
        "c": arrays(np.full(n, 5.0), rng, fixed=True),
        "h": allowed(arrays(np.zeros(n), rng, fixed=True), "no columns", "no rows", "empty"),
        "recent": allowed(arrays(np.zeros((3, n)), rng, 0, 1, fixed=True), "no columns", "empty"),
        "t": wholes(3, rng),
    }
    for part, odds in whole.items():
        yield part, [one._replace(fate=EITHER) if one.fate in (SAME, MISFIT) else one for one in odds]


# Measures


def _metrics(rng: np.random.Generator, X: np.ndarray) -> Iterator[Door]:
    samples, m = X.shape
    fixed, alone = partial(arrays, rng=rng, fixed=True, empty=REFUSED), partial(arrays, rng=rng, empty=REFUSED)
    activity, E = X[:, 0], rng.random((4, 4))
    Y, W = rng.random((samples, m + 1)), rng.random((m + 1, m))
    factors = (X.mean() < X) * 1.0
    given: dict[str, tuple[Any, Callable[..., list[Odd]]]] = {
        "X": (X, fixed),
        "reconstructed": (X * 0.9, fixed),
        "A": (X, fixed),
        "B": (X + 0.01, fixed),
        "W": (X, alone),
        "activity": (activity, partial(alone, low=0)),
        "E": (E, fixed),
        "stimulus": (factors, fixed),
        "threshold": (0.9, partial(numbers, rng=rng)),
        "x": (X[0], fixed),
        "Y": (Y, fixed),
    }
    for name, function in vars(metrics).items():
        if not inspect.isfunction(function) or function.__module__ != metrics.__name__ or name.startswith("_"):
            continue
        wanted = [*inspect.signature(function).parameters]
        mine = dict(given)
        if name == "reconstruction_cosines":
            mine["W"] = (W, fixed)
        elif "stimulus" in wanted:
            mine["W"] = (X, fixed)
        if name == "mean_similarity":
            mine["activity"] = (activity, partial(fixed, low=0))
        odds = {one: mine[one][1](mine[one][0]) for one in wanted}
        if "E" in wanted:  # it must be square
            odds["E"] = [one._replace(fate=REFUSED) if one.name.startswith("one ") else one for one in odds["E"]]
            odds["E"] = [one._replace(fate=SAME) if one.name == "one row for all" else one for one in odds["E"]]
        yield Door(
            f"metrics.{name}",
            function,
            {one: mine[one][0] for one in wanted},
            odds,
            may_diverge=name == "mean_similarity",  # the similarity of active neurons, if none is active
        )


# Estimators


def _estimators(rng: np.random.Generator, X: np.ndarray, n: int) -> Iterator[Door]:
    few: dict[str, Any] = dict(n_components=n, max_iter=1, hold=5, settle=5, random_state=3)
    own = without(things(rng), "None")
    parameters: dict[str, tuple[Any, list[Odd]]] = {
        "n_components": (n, allowed(wholes(n, rng), "None")),
        **dict.fromkeys(("rule", "dynamics", "weights", "bursts"), (None, own)),
        **dict.fromkeys(("hold", "settle"), (5, wholes(5, rng, LONGEST))),
        **dict.fromkeys(("max_iter", "n_iter_no_change"), (1, wholes(1, rng, LONGEST // 1000))),
        **dict.fromkeys(("from_rest", "warm_start", "readout", "learning"), (True, flags(True, rng))),
        "tol": (0.01, allowed(numbers(0.01, rng), "None")),
        "validation_fraction": (0.3, numbers(0.3, rng)),
        "scale": (3, allowed(numbers(3, rng), "None")),
        "random_state": (3, allowed(wholes(3, rng), "None", "True", "np.True_")),
        "verbose": (False, allowed(wholes(0, rng), "True", "np.True_")),
        "engine": ("cpu", names("cpu", rng)),
        "n_jobs": (1, allowed(wholes(1, rng), "None", "-1", "a number below 0")),
        "r_b": (1.0, numbers(1.0, rng)),
        "r_r": (3, numbers(3, rng)),
    }
    for cls in (ah.AsyncHebbian, ah.DiscreteHebbian, ah.ContinuousHebbian):

        def coded(cls: type = cls, **given: Any) -> np.ndarray:
            return cls(**given).fit(X).transform(X)

        mine = {name: both for name, both in parameters.items() if name in inspect.signature(cls).parameters}
        plain, odds = ({name: both[k] for name, both in mine.items()} for k in (0, 1))
        yield Door(cls.__name__, coded, plain, odds, {"n_components": "n is"})

    fitted = ah.AsyncHebbian(**few).fit(X)
    split = ah.OnOff().fit(X)

    def calling(model: Any, method: str) -> Callable[..., Any]:
        def call(**given: Any) -> Any:
            found = getattr(copy.deepcopy(model), method)(**given)
            return found.components_ if isinstance(found, ah.HebbianNetwork) else found

        return call

    for method in ("fit", "partial_fit", "fit_transform", "begin", "transform", "score"):
        fixed = method in ("partial_fit", "transform", "score")
        odds = arrays(X, rng, 0, fixed=fixed, empty=REFUSED)
        yield Door(f"AsyncHebbian.{method}", calling(fitted, method), {"X": X}, {"X": _as_scikit_learn(odds, X)})
    codes, signed = fitted.transform(X), X - 0.5
    odds = _as_scikit_learn(arrays(codes, rng, fixed=True, empty=REFUSED), codes)
    yield Door("AsyncHebbian.inverse_transform", calling(fitted, "inverse_transform"), {"X": codes}, {"X": odds})
    odds = _as_scikit_learn(arrays(X, rng, 0, fixed=True, empty=REFUSED), X)
    similarity = {"X": X, "similarity": 0.9}
    trained = ah.DiscreteHebbian(**few).fit(X)
    yield Door(
        "DiscreteHebbian.prune", calling(trained, "prune"), similarity, {"X": odds, "similarity": numbers(0.9, rng)}
    )

    def shown(X: Any) -> np.ndarray:
        model = copy.deepcopy(fitted)
        return np.array([*model.iter_fit(X)]) + model.components_.mean()

    odds = _as_scikit_learn(arrays(X, rng, 0, empty=REFUSED), X)
    yield Door("AsyncHebbian.iter_fit", shown, {"X": X}, {"X": odds})

    def changed(eta: Any) -> np.ndarray:
        return ah.AsyncHebbian(**few).set_params(rule__eta=eta).fit(X).components_

    yield Door("AsyncHebbian.set_params", changed, {"eta": 0.01}, {"eta": numbers(0.01, rng)})
    for method, data in (("fit_transform", signed), ("transform", signed), ("inverse_transform", split.transform(X))):
        odds = _as_scikit_learn(arrays(data, rng, fixed=method != "fit_transform", empty=REFUSED), data)
        yield Door(f"OnOff.{method}", calling(split, method), {"X": data}, {"X": odds})


def _as_scikit_learn(odds: list[Odd], plain: np.ndarray) -> list[Odd]:
    """It takes objects that are numbers."""
    return [one._replace(fate=SAME, like=plain) if one.name == "objects" else one for one in odds]


# Files


def in_new_folder(function: Callable[[], Any]) -> Any:
    """What the function gives in a folder that holds odd files alone."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            odd.make_files()
            return function()
        finally:
            os.chdir(before)


def _files(rng: np.random.Generator, X: np.ndarray, net: ah.Network, n: int) -> Iterator[Door]:
    run = ah.Run(net, ah.Phase(ah.FromArray(X), 2, 5, 1))
    fitted = ah.AsyncHebbian(n, max_iter=1, hold=5, settle=5, random_state=0).fit(X)

    def here(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda **given: in_new_folder(lambda: function(**given))

    def recorded(**given: Any) -> np.ndarray:
        with ah.record(**given) as dataset:
            return dataset.W.values

    def saved(**given: Any) -> np.ndarray:
        ah.save_model(**given)
        return ah.load_model(given["path"]).components_

    def loaded(rule: Any, **given: Any) -> np.ndarray:
        ah.save_model(fitted, "model.nc")
        return ah.load_model("model.nc", rule=rule).partial_fit(X).components_

    def state_at(dataset: Any, snapshot: Any) -> Any:
        with ah.record(run, "run.nc") as recorded:
            return ah.state_at(recorded if dataset is FRESH else dataset, snapshot)

    def network_of(dataset: Any, rule: Any) -> float:
        with ah.record(run, "run.nc") as recorded:
            return ah.network_of(recorded if dataset is FRESH else dataset, rule=rule).n

    def opened(path: Any, verify: Any) -> np.ndarray:
        ah.record(run, "run.nc").close()
        with ah.open_run(path, verify=verify) as dataset:
            return dataset.W.values

    def loaded_from(path: Any, verify: Any) -> np.ndarray:
        ah.save_model(fitted, "model.nc")
        return ah.load_model(path, verify=verify).components_

    def opened_sweep(folder: Any, grid: Any) -> np.ndarray:
        _swept(run)
        with ah.open_sweep(folder, grid) as dataset:
            return dataset["error"].values

    odds = {"path": refused(paths(rng)), "verify": flags(True, rng)}
    yield Door("open_run", here(opened), {"path": "run.nc", "verify": True}, odds)
    yield Door("open_run unverified", here(opened), {"path": "run.nc", "verify": False}, {"path": odds["path"]})
    yield Door("load_model", here(loaded_from), {"path": "model.nc", "verify": True}, odds)
    yield Door(
        "load_model unverified", here(loaded_from), {"path": "model.nc", "verify": False}, {"path": odds["path"]}
    )
    odds = {"folder": refused(paths(rng)), "grid": without(things(rng), "None")}
    yield Door("open_sweep", here(opened_sweep), {"folder": "swept", "grid": None}, odds)
    progress = {"progress": flags(False, rng), "on_progress": without(things(rng), "a function", "a class")}
    plain = {"run": run, "path": "run.nc", "engine": "cpu", "progress": False, "on_progress": lambda steps: None}
    odds = {"run": things(rng), "path": paths(rng), "engine": names("cpu", rng), **progress}
    yield Door("record", here(recorded), plain, odds)
    yield Door(
        "save_model",
        here(saved),
        {"model": fitted, "path": "model.nc"},
        {"model": things(rng), "path": paths(rng)},
    )
    given = allowed(things(rng), "None")  # the model's default
    yield Door("load_model", here(loaded), {"rule": ah.Hebbian()}, {"rule": given})
    snapshots = [one._replace(fate=EITHER) if one.name in ("-1", "0") else one for one in wholes(1, rng)]
    odds = {"dataset": things(rng), "snapshot": snapshots}
    yield Door("state_at", here(state_at), {"dataset": FRESH, "snapshot": 1}, odds)
    odds = {"dataset": things(rng), "rule": things(rng)}
    yield Door("network_of", here(network_of), {"dataset": FRESH, "rule": ah.Hebbian()}, odds)


# Figures


def _figures(rng: np.random.Generator, X: np.ndarray, net: ah.Network, state: ah.State) -> Iterator[Door]:
    files = itertools.count()
    folder = tempfile.mkdtemp()

    def dataset() -> Any:
        run = ah.Run(net, ah.Phase(ah.FromArray(X), 2, 5, 1))
        return ah.record(run, Path(folder) / f"{next(files)}.nc")

    one, other = dataset(), dataset()

    def drawn(function: Callable[..., Any]) -> Callable[..., int]:
        def draw(**given: Any) -> int:
            picture = io.BytesIO()
            function(**given).savefig(picture, format="png", dpi=30)
            return len(picture.getvalue()) > 0

        return draw

    bare = ah.Run(net, ah.Phase(ah.FromArray(X), 2, 5, 1), ah.Probe(ah.FromArray(X), 2, 5, measures=("hoyer",)))
    without_measures = ah.record(bare, Path(folder) / "bare.nc")
    nothing = [*things(rng), *refused(arrays(X, rng))]
    nothing += [
        Odd("a run that lacks measures", lambda: without_measures),
        Odd("a dataset", lambda: one.drop_attrs()),
        Odd("a dataset without steps", lambda: one.drop_vars("step")),
    ]
    width, most = numbers(3.0, rng), wholes(4, rng)
    shape = without(things(rng), "None")
    yield Door(
        "plot.fields",
        drawn(plot.fields),
        {"source": state, "most": 4, "width": 3.0, "shape": (1, X.shape[1])},
        {"source": nothing, "most": most, "width": width, "shape": shape},
    )
    for function in (plot.error, plot.activity, plot.run):
        plain = {"source": one, "width": 3.0}
        yield Door(f"plot.{function.__name__}", drawn(function), plain, {"source": nothing, "width": width})
    yield Door(
        "plot.similarity",
        drawn(plot.similarity),
        {"source": one, "other": other, "width": 3.0, "weights": "W"},
        {
            "source": allowed(nothing, "a run that lacks measures"),
            "other": allowed(without(nothing, "None"), "a run that lacks measures"),
            "width": width,
            "weights": names("W", rng),
        },
    )
    bursts = arrays((X > 0.5) * 1.0, rng, 0, 1)
    yield Door(
        "plot.raster",
        drawn(plot.raster),
        {"bursts": X > 0.5, "hold": 2, "width": 3.0},
        {"bursts": bursts, "hold": allowed(wholes(2, rng), "None"), "width": width},
    )
    yield Door(
        "plot.compare",
        drawn(plot.compare),
        {"sources": [one, other], "names": None, "width": 3.0},
        {"sources": several(rng), "names": without(several(rng), "None"), "width": width},
        {"sources": "source"},  # which of them it is
    )


# Sweeps


@contextlib.contextmanager
def _threads() -> Iterator[Any]:
    with ThreadPoolExecutor(1) as threads:
        yield threads


def _swept(run: ah.Run) -> None:
    with _threads() as threads:
        ah.sweep(run, {"seed": [0]}, "swept", executor=threads, progress=False).close()


def _sweeps(rng: np.random.Generator, X: np.ndarray, net: ah.Network) -> Iterator[Door]:
    run = ah.Run(net, ah.Phase(ah.FromArray(X), 2, 5, 1))

    def swept(value: Any = None, key: Any = "seed", **given: Any) -> Any:
        if "vary" not in given:
            given["vary"] = {key: [0 if value is None else value]}

        def call() -> Any:
            with _threads() as threads:
                executor = {} if "workers" in given or "executor" in given else {"executor": threads}
                with ah.sweep(**{"run": run, "out": "s", "progress": False, **executor, **given}) as dataset:
                    return dataset["error"].values if "error" in dataset else len(str(dataset["failure"].values))

        return in_new_folder(call)

    plain: dict[str, Any] = {"run": run, "out": "s"}
    odds: dict[str, list[Odd]] = {
        "run": things(rng),
        "vary": things(rng),
        "out": paths(rng),
        "zip": allowed(without(several(rng), "None"), "[]"),
        "engine": names("cpu", rng),
        "retry_failed": flags(False, rng),
        "yes": flags(False, rng),
        "progress": flags(False, rng),
        "executor": without(things(rng), "None"),
    }
    plain |= {"vary": {"seed": [0]}, "zip": (), "engine": "cpu", "retry_failed": False, "yes": False, "progress": False}
    yield Door("sweep", swept, plain, odds)
    yield Door("sweep by processes", swept, {"workers": 1}, {"workers": allowed(wholes(1, rng, 3), "None")})
    seeds = allowed(without(wholes(3, rng), "None"), "-0.0")  # as of a range, a whole float is taken
    yield Door("sweep of seeds", swept, {"value": 3}, {"value": seeds}, {"value": "seed"})

    def of_rates(value: Any) -> Any:
        return swept(vary={"rule.eta": [value]})

    yield Door("sweep of rates", of_rates, {"value": 0.01}, {"value": numbers(0.01, rng)}, {"value": "eta"})
    keys = [one for one in things(rng) if isinstance(one.make(), Hashable)]
    yield Door("sweep of a field", swept, {"key": "seed"}, {"key": keys}, {"key": "vary"})
    lists = ("[1]", "(1, 2)", "array([1, 2])", "range", "a generator")
    along = without(things(rng), *lists)
    plain = {"along": [0]}
    yield Door("sweep over", lambda along: swept(vary={"seed": along}), plain, {"along": along}, {"along": "vary"})

    def searched(**given: Any) -> Any:
        def call() -> Any:
            with _threads() as threads, ah.search(**given, executor=threads, progress=False) as dataset:
                return dataset["error"].values if "error" in dataset else len(str(dataset["failure"].values))

        return in_new_folder(call)

    eta = {"rule.eta": ah.Range(0.001, 0.01)}
    plain = {"run": run, "space": eta, "out": "q", "trials": 1, "seeds": 1, "batch": 1, "sampler": "random"}
    plain |= {"measure": "error", "goal": "less", "engine": "cpu", "retry_failed": False}
    odds = {
        "run": things(rng),
        "space": things(rng),
        "out": paths(rng),
        **dict.fromkeys(("trials", "seeds", "batch"), wholes(1, rng, 4)),
        "sampler": names("random", rng),
        "measure": names("error", rng),
        "goal": allowed(names("less", rng), "None"),
        "engine": names("cpu", rng),
        "retry_failed": flags(False, rng),
    }
    yield Door("search", searched, plain, odds)

    def along_rates(along: Any, settings: Mapping[str, Any] = dict(plain)) -> Any:
        return searched(**{**settings, "space": {"rule.eta": along}})

    values = without(things(rng), *lists)
    yield Door("search along", along_rates, {"along": [0.01]}, {"along": values}, {"along": "space"})

    def spread(**given: Any) -> float:
        return float(ah.Range(**given).at(0.5))

    ends = {"low": numbers(1.0, rng, True), "high": numbers(3.0, rng, True), "log": flags(False, rng)}
    yield Door("Range", spread, {"low": 1.0, "high": 3.0, "log": False}, ends)
