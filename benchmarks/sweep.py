"""What does a sweep cost beyond its simulations? A thousand short runs, on all cores.

    .venv/bin/python benchmarks/sweep.py [RUNS]

First the runs are simulated by as many plain processes as there are cores, which keep nothing; then by
a sweep into a new folder. One after the other in turns, since the machine may be busy with other work.
Writes sweep.md beside this file.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import asynchebb as ah
from asynchebb.sweeps.executors import cores
from asynchebb.sweeps.grid import grid

NETWORK = ah.asynchronous(n=100, m=25)
BASE = ah.Run(NETWORK, ah.Phase(ah.Crossbars(5), samples=1_000, hold=500, snapshots=1))
ROUNDS = 3


def axes(runs):
    return {"schedule.r_b": [0.5, 1, 2], "schedule.r_r": [10, 100], "seed": range(runs // 6)}


def simulate(runs, part):
    """What one plain process does: wait for the word, then simulate its part of the runs."""
    mine = [*grid(BASE, axes(runs))][part :: cores()]
    for _ in ah.simulate(mine[0]):  # compiles, or loads what was compiled
        pass
    print("ready", flush=True)
    sys.stdin.readline()
    for run in mine:
        for _ in ah.simulate(run):
            pass


def plain(runs):
    command = [sys.executable, __file__, str(runs)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([*command, str(part)], **pipes) for part in range(cores())]
    for process in processes:
        process.stdout.readline()
    start = time.perf_counter()
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.close()
    for process in processes:
        process.wait()
    return time.perf_counter() - start


def swept(runs):
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        dataset = ah.sweep(BASE, axes(runs), Path(folder) / "sweep", progress=False)
        seconds = time.perf_counter() - start
        assert dataset.error.notnull().all()
    return seconds


def main(runs=1_000):
    count = grid(BASE, axes(runs)).size
    lines = [f"{count} runs of {BASE.steps:,} Euler steps, n = {NETWORK.n}, {cores()} cores, in turns:", ""]
    lines += ["| simulations alone, s | sweep, s | more |", "| --- | --- | --- |"]
    overheads = []
    for _ in range(ROUNDS):
        pure, sweep = plain(runs), swept(runs)
        overheads.append(sweep / pure - 1)
        lines.append(f"| {pure:.1f} | {sweep:.1f} | {100 * overheads[-1]:.1f} % |")
        print(lines[-1], flush=True)
    lines += ["", f"Overhead of the sweep, its start included: {100 * median(overheads):.1f} % (median)."]
    print("\n".join(lines))
    Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    simulate(*numbers) if len(numbers) == 2 else main(*numbers)
