"""A live session: the thread that simulates, takes requests between two calls of the engine, and makes frames."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import numpy as np

from asynchebb import engines
from asynchebb.checks import InputError, one_of, positive
from asynchebb.live_page import as_python, frames
from asynchebb.live_page import setting as settings
from asynchebb.live_page.history import History, Point, netcdf, test
from asynchebb.live_page.playback import WINDOW, Playback
from asynchebb.live_page.setting import Setting, whole
from asynchebb.live_page.simulation import Simulation
from asynchebb.network import State
from asynchebb.runs.recording import Stop
from asynchebb.runs.run import Run
from asynchebb.runs.simulate import Diverged

FRAMES_PER_SECOND = 40  # at most
CALL = 0.01  # seconds that the engine works before it looks for requests
IDLE = 0.2  # seconds between frames while nothing moves
LEAST_BETWEEN_TESTS, MOST_BETWEEN_TESTS, SHARE_OF_TESTS = 0.25, 1.0, 0.3  # seconds; of the time
FASTEST = 1e9  # steps per second
STOPPED = "the live page has been stopped; start a new one"


class Session:
    """Networks that learn in a thread of their own. `call` has a function called in it; `do` carries out a message."""

    def __init__(self, setting: Setting, engine: str = "cpu", playing: bool = True) -> None:
        self.simulation = Simulation(setting, engines.resolved(engine, len(setting.networks)))
        self.playback = Playback(self.simulation)
        self.playing = playing
        self.speed: float | None = None  # steps per second; None: as fast as possible
        self.frame_wanted = threading.Event()
        self.on_frame: Callable[[bytes], object] = lambda frame: None
        self._selected: dict[object, int] = {}  # by client
        self._requests: queue.SimpleQueue[tuple[Callable[[], Any], Future]] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="asynchebb live", daemon=True)
        self._testing: Future | None = None
        self._took = 0.0  # seconds that the last test took
        self._frame = 0
        self._tests_done = 0
        self._tests_shown: tuple[Any, ...] = ()
        self._test_parts: list[tuple[str, int, np.ndarray]] = []
        self._forget()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=0.5)

    @property
    def running(self) -> bool:
        return self._thread.is_alive() and not self._stopping.is_set()

    # From other threads

    def call(self, function: Callable[[], Any]) -> Future:
        """Have a function called between two calls of the engine."""
        if self._stopping.is_set():
            raise InputError(STOPPED)
        future: Future = Future()
        self._requests.put((function, future))
        return future

    def do(self, message: Mapping[str, Any], client: object = None) -> Future:
        """Carry out a message from a page; the future has an `InputError` if it cannot be."""
        return self.call(lambda: self._do(message, client))

    def state(self, number: int = 0) -> Future:
        """A copy of a network's state."""
        return self.call(lambda: self.simulation.states[number].copy())

    def forget_client(self, client: object) -> None:
        with suppress(InputError):  # it has been stopped
            self.call(lambda: self._select(client, None))

    # Messages

    def _do(self, message: Mapping[str, Any], client: object) -> None:
        controls = {**settings.CHANGES, **settings.RESTARTS}
        own: dict[str, Callable[..., None]] = {
            "play": self._play,
            "pause": self._pause,
            "step": self._step,
            "speed": self._speed,
            "select": lambda neuron: self._select(client, neuron),
        }
        control = message.get("do")
        one_of("do", control if isinstance(control, str) else repr(control), {**own, **controls})
        given = {name: value for name, value in message.items() if name != "do"}
        if control in own:
            own[control](**settings.fields_of(control, given, own[control]))
            return
        changed = settings.changed(self.simulation.setting, str(control), given)
        if control in settings.RESTARTS:
            self.simulation = Simulation(changed, self.simulation.engine)
            self.playback = Playback(self.simulation)
            self._forget()
        else:
            self.simulation.change(changed)
            self.playback.forget()

    def _forget(self) -> None:
        """All that was measured; a new simulation has begun."""
        states = self.simulation.states
        self.history = History(sum(array.nbytes for state in states for array in state))
        self._tests_done += 1  # the curves begin again
        self.playback.forget()
        self.trouble = ""  # why it cannot go on
        self._next_frame = self._next_test = 0.0
        self._clock, self._due = time.perf_counter(), 0.0  # steps to be shown by now, at a given speed
        self._samples = 1  # that the engine simulates in about CALL seconds
        self._updates, self._steps = np.zeros(len(states)), 0  # since the last test
        self._tested: Any = None  # what was tested last
        self._passed: deque[tuple[float, int]] = deque()
        self._testing = None  # whatever it finds concerns the past
        self.compiling = True
        self._selected = {who: neuron for who, neuron in self._selected.items() if neuron < states[0].y.size}

    def _play(self) -> None:
        if self.trouble:
            raise InputError(f"{self.trouble}; reset it first")
        self.playing = True
        self._clock, self._due = time.perf_counter(), 0.0

    def _pause(self) -> None:
        self.playing = False

    def _step(self, of: str) -> None:
        """One Euler step, or up to the end of a presentation."""
        one_of("of", of, ("step", "stimulus"))
        self._play()
        self.playing = False
        if not self.playback.left:
            self._watch(1)
        self.playback.show(1 if of == "step" else None)

    def _speed(self, steps_per_second: float | None) -> None:
        if steps_per_second is not None:
            positive("steps_per_second", steps_per_second)
            if steps_per_second > FASTEST:
                raise InputError(f"steps_per_second is {steps_per_second!r}; it must be at most {FASTEST:g}, or None")
        self.speed = steps_per_second
        self._clock, self._due = time.perf_counter(), 0.0

    def _select(self, client: object, neuron: int | None) -> None:
        if neuron is None:
            self._selected.pop(client, None)
            return
        whole("neuron", neuron, 0, self.simulation.setting.networks[0].n - 1)
        self._selected[client] = neuron

    # The thread

    def _work(self) -> None:
        while not self._stopping.is_set():
            wait = 0.0
            try:
                if self._frame_is_due() and (self.playback.is_watched or not self._at_full_speed):
                    self._next_frame = time.perf_counter() + 1 / FRAMES_PER_SECOND
                    self.frame_wanted.clear()
                    self.on_frame(self.frame())
                self._test()
                wait = self._simulate() if self.playing else IDLE
            except Diverged as error:
                self._give_up(f"the network has diverged: its weights or rates are not finite at step {error.step:,}")
            except Exception as error:  # the page says so, and a reset may help
                self._give_up(str(error) or repr(error))
            self._take_requests(wait)
        with suppress(queue.Empty):
            while True:
                self._requests.get_nowait()[1].set_exception(InputError(STOPPED))

    def _give_up(self, trouble: str) -> None:
        self.trouble, self.playing = trouble, False

    def _frame_is_due(self) -> bool:
        return self.frame_wanted.is_set() and time.perf_counter() >= self._next_frame

    @property
    def _at_full_speed(self) -> bool:
        return self.playing and self.speed is None

    def _simulate(self) -> float:
        """Go on for a while; how long nothing needs to be done afterwards."""
        now = time.perf_counter()
        if self.speed is None:
            self._skip(self._samples)
            if self._frame_is_due():
                self._watch(max(1, WINDOW // self.simulation.setting.hold))
                self.playback.show()
            return 0.0
        self._due += self.speed * (now - self._clock)
        self._clock = now
        hold = self.simulation.setting.hold
        while self._due >= 1:
            if not self.playback.left:
                if (several := int(self._due) // hold) > 1:
                    shown = self._skip(min(self._samples, several - 1)) * hold
                    # What it cannot keep up with is not made up for.
                    self._due = min(self._due - shown, hold)
                self._watch(1)
            steps = min(self._due // 1, self.playback.left)
            self.playback.show(int(steps))
            self._due -= steps
        return 1 / FRAMES_PER_SECOND

    def _skip(self, samples: int) -> int:
        began = time.perf_counter()
        shown = self._count(self.playback.skip(samples))
        fitting = shown * CALL / max(time.perf_counter() - began, 1e-6)
        self._samples = max(1, min(round(fitting), 2 * shown))
        return shown

    def _watch(self, samples: int) -> None:
        self._count(self.playback.watch(samples))

    def _count(self, shown: int) -> int:
        """Add up what changed, and see whether it is finite."""
        self.compiling = False
        steps = shown * self.simulation.setting.hold
        self._updates += [steps * seen.updates for seen in self.playback.seen]
        self._steps += steps
        for number, state in enumerate(self.simulation.states):
            if not np.isfinite(state.y).all():
                raise Diverged(self.simulation.run(number), self.simulation.step)
        return shown

    def _test(self) -> None:
        """Begin a test of the networks as they are now, or take what the last one found."""
        simulation = self.simulation
        if self._testing is not None and self._testing.done():
            testing, self._testing = self._testing, None
            self._next_test = time.perf_counter() + min(
                MOST_BETWEEN_TESTS, max(LEAST_BETWEEN_TESTS, self._took / SHARE_OF_TESTS)
            )
            self.history.add(testing.result())
            self._tests_done += 1
        present = (simulation.step, *simulation.sets)
        if self._testing is None and present != self._tested and time.perf_counter() >= self._next_test:
            self._tested = present
            point = (simulation.stop, tuple(self._updates / max(self._steps, 1)))
            self._updates, self._steps = np.zeros(len(simulation.states)), 0
            runs = [simulation.run(number) for number in range(len(simulation.states))]
            states = [state.copy() for state in simulation.states]
            self._testing = Future()
            # A thread that nobody waits for when the program ends; the engine leaves others the interpreter's lock.
            given = (self._testing, *point, runs, states)
            threading.Thread(target=self._find_point, args=given, name="asynchebb tests", daemon=True).start()

    def _find_point(
        self, found: Future, stop: Stop, updates: tuple[float, ...], runs: list[Run], states: list[State]
    ) -> None:
        began, engine = time.perf_counter(), self.simulation.engine
        try:
            networks = [test(run, stop[2], state, engine) for run, state in zip(runs, states, strict=True)]
            self._took = time.perf_counter() - began
            found.set_result(Point(stop, tuple(networks), updates))
        except Exception as error:
            found.set_exception(error)

    def _take_requests(self, wait: float) -> None:
        """Carry out what was asked for; if there is nothing, wait so long for the first request."""
        try:
            while not self._stopping.is_set():
                function, future = self._requests.get(timeout=wait) if wait else self._requests.get_nowait()
                wait = 0.0
                try:
                    future.set_result(function())
                except Exception as error:
                    future.set_exception(error)
                self._next_frame = 0.0  # show at once what has changed
        except queue.Empty:
            pass

    # What others see

    def code(self, number: int = 0) -> str:
        """What has been simulated so far, as Python code."""
        return self.call(lambda: as_python.code(self.simulation, number)).result()

    def shared(self) -> dict[str, Any]:
        """The setting as a message that starts it elsewhere."""
        return self.call(lambda: settings.described(self.simulation.setting)).result()

    def netcdf(self, number: int = 0) -> bytes:
        """The run so far as a file."""
        engine = self.simulation.engine

        def now() -> tuple[Run, Stop, State, list[Point], dict[str, Any]]:
            simulation = self.simulation
            how = {"history": as_python.code(simulation, number)}
            state = simulation.states[number].copy()
            return simulation.run(number), simulation.stop, state, self.history.states.items, how

        run, stop, state, points, how = self.call(now).result()
        kept = [(point.stop, point.networks[number]) for point in points if point.stop[2] < stop[2]]
        try:
            kept.append((stop, test(run, stop[2], state, engine)))
        except Diverged:
            how["diverged_at_step"] = np.int64(stop[2])
        if not kept:
            raise InputError("nothing can be saved: the network diverged at once; reset it first")
        return netcdf(run, engine, kept, **how)

    def frame(self) -> bytes:
        simulation, playback = self.simulation, self.playback
        self._frame += 1
        header = {
            "frame": self._frame,
            "step": playback.step,
            "steps_per_second": self._pace(),
            "playing": self.playing,
            "speed": self.speed,
            "compiling": self.compiling and self.playing,
            "trouble": self.trouble,
            "warning": simulation.warning,
            "window": len(playback.recent(0).y),
            "sets": [*simulation.sets],
            "changes": simulation.changed_at,
            "setting": settings.on_page(simulation.setting),
        }
        tests = (self._tests_done, *simulation.sets)
        if tests != self._tests_shown:  # about once a second
            self._tests_shown, self._test_parts = tests, frames.of_tests(simulation, self.history.curve.items)
        return frames.packed(header, [*self._test_parts, *frames.of_networks(playback, {*self._selected.values()})])

    def _pace(self) -> float:
        """Steps per second over the last second."""
        now = time.perf_counter()
        self._passed.append((now, self.playback.step))
        while len(self._passed) > 2 and now - self._passed[1][0] > 1:
            self._passed.popleft()
        (since, before), (until, step) = self._passed[0], self._passed[-1]
        return (step - before) / (until - since) if until > since else 0.0
