"""Runs and sweeps side by side on a GPU, or what is in its place."""

import inspect
import itertools
import os
import threading
import time
from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace

import emulated
import numpy as np
import pytest
from against_reference import BARS

import asynchebb as ah
from asynchebb import engines
from asynchebb.checks import InputError
from asynchebb.contracts import Call
from asynchebb.engines import gpu, traces
from asynchebb.engines.gpu import device
from asynchebb.engines.together import Together
from asynchebb.runs import simulate, testing

needs_compiler = emulated.needs_compiler
on_a_gpu = pytest.mark.gpu


def a_run(**changes):
    phase, probe = ah.Phase(BARS, 12, 40, snapshots=3), ah.Probe(BARS, samples=10, hold=60)
    return ah.Run(ah.asynchronous(30, 36, schedule=ah.Asynchronous(0.2, 10)), [phase], [probe], **changes)


def test_a_run_is_resumed_to_the_same_bits(card):
    whole = [*ah.simulate(a_run(), "gpu")]
    rest = [*ah.simulate(a_run(), "gpu", after=whole[1])]
    assert np.array_equal(whole[-1].state.W, rest[-1].state.W) and np.array_equal(whole[-1].state.M, rest[-1].state.M)
    [*_, slow] = ah.simulate(a_run(), "reference")
    assert whole[-1].measures["error"] == pytest.approx(slow.measures["error"], abs=1e-3)


def test_a_live_page_runs_on_it(card):
    if not os.environ.get("CI"):
        for package in ("starlette", "uvicorn", "websockets"):
            pytest.importorskip(package, reason=f"the live page needs {package} (pip install 'asynchebb[live]')")
    network = ah.asynchronous(30, 36)
    page = ah.live(network, BARS, engine="gpu")
    while page._session.simulation.step < 3000:
        time.sleep(0.05)
    page.stop()
    simulation = page._session.simulation
    run = ah.Run(network, ah.Phase(BARS, simulation.samples, simulation.setting.hold, 1, simulation.setting.from_rest))
    *_, last = ah.simulate(run, "gpu")
    assert simulation.engine == "gpu" and np.array_equal(page.state.W, last.state.W)


def test_works_side_by_side_give_the_same_as_one_after_another(card, tmp_path):
    from asynchebb.runs.recording import save_run, saving

    runs = [a_run(seed=seed) for seed in range(3)] + [replace(a_run(), network=ah.discrete(20, 36))]
    works = [saving(run, tmp_path / f"{k}.nc", "gpu", lambda steps: None) for k, run in enumerate(runs)]
    engines.side_by_side(works, "gpu")
    for k, run in enumerate(runs):
        save_run(run, tmp_path / f"alone{k}.nc", "gpu", lambda steps: None)
        assert (tmp_path / f"{k}.nc").read_bytes() == (tmp_path / f"alone{k}.nc").read_bytes()


@pytest.mark.parametrize(("overhead", "step", "wanted"), [(0.05, 6e-6, 512), (0.05, 3e-5, 268), (9.0, 5e-6, 268)])
def test_calls_take_two_seconds_but_are_not_tiny_where_the_host_is_slow(overhead, step, wanted, monkeypatch):
    clock = SimpleNamespace(now=0.0, perf_counter=lambda: clock.now)
    monkeypatch.setattr(simulate, "time", clock)
    run, shown = ah.Run(ah.asynchronous(500, 36), [ah.Phase(BARS, 2000, 500)]), []
    for X, _ in simulate._stimuli(run, 0, 0, 2000, on_gpu=True):
        shown.append(X)
        clock.now += overhead + len(X) * 500 * step
    assert [len(X) for X in shown[1:3]] == [wanted] * 2
    monkeypatch.undo()
    assert np.array_equal(
        np.concatenate(shown), np.concatenate([X for X, _ in simulate._stimuli(run, 0, 0, 2000, False)])
    )


def test_short_presentations_make_no_short_calls():
    run = ah.Run(ah.asynchronous(500, 36), [ah.Phase(BARS, 50_000, 10)])
    *_, long = [len(X) * 10 for X, _ in itertools.islice(simulate._stimuli(run, 0, 0, 50_000, on_gpu=True), 2)]
    assert long > 2**18


def test_a_test_of_the_paper_is_one_call():
    network = ah.asynchronous(500, 36)
    X = BARS.sample(np.random.default_rng(0), 60)
    test = testing.responding(network, network.init(np.random.default_rng(0)), X, 150, False, on_gpu=True)
    assert len(next(test).X) == 60


class Engine:
    """Notes which calls are carried out together. Those with a hold of 1 wait for the event."""

    AT_ONCE = 2, 1

    def __init__(self):
        self.seen, self.begun, self.event = [], [], threading.Event()
        self.begin = self.begun.append

    def choose(self, card):
        pass

    def alike(self, call):
        return call.hold, call.hold == 9, 0.4

    def answers(self, calls):
        self.seen.append([call.hold for call in calls])
        if calls[0].hold == 1:
            assert self.event.wait(10)
        return [call.state for call in calls]


def asks(*holds, at_end=lambda: None):
    network = ah.asynchronous(10, 36)
    state = network.init(np.random.default_rng(0))
    for hold in holds:
        state = yield engines.call(network, state, np.ones((1, 36)), hold)
    at_end()


def test_a_work_does_not_wait_for_slower_ones():
    engine = Engine()
    Together([asks(1, 2), asks(2, 3, 4, 5, at_end=engine.event.set)], engine).carry_out()
    assert sorted(itertools.chain(*engine.seen)) == [1, 2, 2, 3, 4, 5]


def test_short_calls_do_not_wait_for_long_ones():
    engine = Engine()
    Together([asks(1), asks(1), asks(1), asks(9, 9, at_end=engine.event.set)], engine).carry_out()
    assert sorted(itertools.chain(*engine.seen)) == [1, 1, 1, 9, 9]


def test_calls_that_wait_are_carried_out_together_as_far_as_they_fit(monkeypatch):
    monkeypatch.setattr(Engine, "AT_ONCE", (1, 1))
    monkeypatch.setattr("asynchebb.engines.together.cores", lambda: 1)  # the first work is the first to ask
    engine = Engine()
    together = Together([asks(1), *(asks(2) for _ in range(5))], engine, card=3)

    def wait():
        while sum(map(len, together._waiting.values())) < 5:
            time.sleep(0.01)
        engine.event.set()

    threading.Thread(target=wait, daemon=True).start()
    together.carry_out()
    assert engine.seen == [[1], [2, 2], [2, 2], [2]] and engine.begun == [3]


def test_an_error_of_the_engine_stops_all_works_and_closes_them():
    engine, works = Engine(), [asks(1, 2) for _ in range(4)]
    engine.answers = lambda calls: 1 / 0
    with pytest.raises(ZeroDivisionError):
        Together(works, engine).carry_out()
    assert all(inspect.getgeneratorstate(work) == inspect.GEN_CLOSED for work in works)


def test_an_error_in_one_work_leaves_the_others():
    network = ah.asynchronous(10, 36)
    results = []

    def work(seed):
        state = network.init(np.random.default_rng(seed))
        X = BARS.sample(np.random.default_rng(0), 2)
        try:
            state = yield engines.call(network, state, X, 10)
            results.append(seed)
        except InputError as error:
            results.append(str(error))

    class Refusing(Engine):
        def answers(self, calls):
            return [InputError("too large") if call.state.W[0, 0] == marked else call.state for call in calls]

    marked = network.init(np.random.default_rng(1)).W[0, 0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "module", lambda *name: Refusing())
        engines.side_by_side([work(0), work(1), work(2)], "gpu")
    assert sorted(map(str, results)) == ["0", "2", "too large"]


class Here:
    """An executor that does everything at once, in this process."""

    def submit(self, function, argument):
        task = Future()
        try:
            task.set_result(function(argument))
        except BaseException as error:
            task.set_exception(error)
        return task


def test_a_sweep_runs_side_by_side_what_differs_in_anything(card, tmp_path):
    vary = {"seed": range(2), "model": ["asynchronous", "discrete"], "n": [20, 30]}
    ours = ah.sweep(a_run(), vary, tmp_path / "gpu", executor=Here(), engine="gpu", progress=False)
    theirs = ah.sweep(a_run(), vary, tmp_path / "reference", executor=Here(), engine="reference", progress=False)
    assert ours.error.values == pytest.approx(theirs.error.values, abs=1e-3)
    assert {one.attrs["engine"] for one in map(ah.open_run, (tmp_path / "gpu" / "runs").glob("*.nc"))} == {"gpu"}


@needs_compiler
def test_a_sweep_whose_card_is_lost_stops_and_resumes_to_the_same_bits(host, tmp_path, monkeypatch):
    vary, launch, left = {"seed": range(3)}, emulated.Host.launch, [4]

    def fails(self, *given):
        left[0] -= 1
        if left[0] < 0:
            raise device.Lost("the GPU failed (unspecified launch failure)")
        launch(self, *given)

    whole = ah.sweep(a_run(), vary, tmp_path / "whole", executor=Here(), engine="gpu", progress=False)
    monkeypatch.setattr(emulated.Host, "launch", fails)
    with pytest.raises(ah.sweeps.Stopped, match="the GPU failed"):
        ah.sweep(a_run(), vary, tmp_path / "lost", executor=Here(), engine="gpu", progress=False)
    monkeypatch.setattr(emulated.Host, "launch", launch)
    resumed = ah.sweep(a_run(), vary, tmp_path / "lost", executor=Here(), engine="gpu", progress=False)
    assert np.array_equal(resumed.error.values, whole.error.values)
    assert np.array_equal(resumed.W.values, whole.W.values)


def test_networks_that_take_longest_are_begun_first():
    """The longest calls, and among equals those with the most active neurons: a batch ends with its slowest network."""
    network, short, long = ah.asynchronous(n=20, m=16), np.zeros((2, 16)), np.zeros((3, 16))
    states = [network.init(np.random.default_rng(seed)) for seed in range(3)]
    for state, active in zip(states, (3, 9, 6), strict=True):
        state.y[:] = np.arange(20) < active
    none = traces.empty((), 0, 20, np.dtype(np.float32))
    calls = [Call(network, state, X, 10, none) for state, X in zip(states, (short, short, long), strict=True)]
    order = sorted(range(3), key=lambda k: gpu._length(calls[k]), reverse=True)
    assert order == [2, 1, 0]
