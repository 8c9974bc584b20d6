"""Benchmark: the overhead of a sweep beyond its simulations, for a thousand short runs on all cores.

    .venv/bin/python benchmarks/sweep.py

Processes differ in speed by up to a tenth, depending on their memory layout, and the machine may be busy
with other work. So there is one process per core, and each alternates: it simulates some runs without saving
them, then computes as many the way a sweep's worker does. The fixed cost of a sweep is added to that: the time
of a sweep with hardly any work, from starting its processes to opening the results. Writes sweep.md next to
this file.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cloudpickle

import asynchebb as ah
from asynchebb.sweeps import Folder
from asynchebb.sweeps.executors import cores
from asynchebb.sweeps.grid import grid
from asynchebb.sweeps.work import one_thread, run_task

NETWORK = ah.asynchronous(n=100, m=25, reading="notebook")
BASE = ah.Run(NETWORK, ah.Phase(ah.Crossbars(5), samples=1_000, hold=500, snapshots=1))
AXES = {"schedule.r_b": [0.5, 1, 2], "schedule.r_r": [10, 100], "seed": range(100)}
A_TURN, TURNS = 8, 20
RUNS = 1_000


def by_turns(path, part):
    """Seconds to simulate some runs, and to compute as many as a worker does."""
    folder = Folder(path)
    file = next(folder.grids.glob("*.runs"))
    runs = cloudpickle.loads(file.read_bytes())
    mine = iter(range(part, len(runs), cores()))
    simulated = worked = 0.0
    for turn in range(TURNS + 1):
        some = [next(mine) for _ in range(A_TURN)]
        start = time.perf_counter()
        with one_thread():
            for index in some:
                for _ in ah.simulate(runs[index]):
                    pass
        middle = time.perf_counter()
        run_task((path, str(file), "cpu", some))
        if turn:  # the first turn loads compiled code
            simulated, worked = simulated + middle - start, worked + time.perf_counter() - middle
    print(simulated, worked)


def once():
    """Seconds for a sweep with hardly any work."""
    code = (
        "import sys, asynchebb as ah; from sweep import BASE, NETWORK;"
        "run = ah.Run(NETWORK, ah.Phase(ah.Crossbars(5), 1, 1, 1), ah.Probe(ah.Crossbars(5), 1, 1));"
        "ah.sweep(run, {'seed': range(32)}, sys.argv[1], progress=False)"
    )
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code, f"{folder}/sweep"], check=True, cwd=Path(__file__).parent)
        return time.perf_counter() - start


def main():
    with tempfile.TemporaryDirectory() as path:
        folder, made = Folder(path), grid(BASE, AXES)
        folder.prepare()
        runs = [*made]
        folder.write_runs(folder.write_grid(repr(made.run), made.axes, runs).name, runs)
        commands = [[sys.executable, __file__, path, str(part)] for part in range(cores())]
        processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
        seconds = [[*map(float, process.communicate()[0].split())] for process in processes]
    simulated, worked = (sum(times) / (len(processes) * TURNS * A_TURN) for times in zip(*seconds, strict=True))
    fixed = min(once() for _ in range(3))
    alone = RUNS * simulated / cores()
    swept = RUNS * worked / cores() + fixed
    text = (
        f"{RUNS:,} runs of {BASE.steps:,} Euler steps, n = {NETWORK.n}, {cores()} cores. A run takes "
        f"{1e3 * simulated:.0f} ms to simulate and {1e3 * (worked - simulated):.1f} ms more to claim, save and measure;"
        f" a sweep takes {fixed:.1f} s to start and end. So {alone:.1f} s of simulation take {swept:.1f} s:"
        f" {100 * (swept / alone - 1):.1f} % more.\n"
    )
    print(text, end="")
    Path(__file__).with_suffix(".md").write_text(text)


if __name__ == "__main__":
    by_turns(sys.argv[1], int(sys.argv[2])) if sys.argv[1:] else main()
