"""Benchmark: steps per second compared with other systems, scaling with n and m, cold start and memory.

    make bench              with JAX and NumPy
    make bench PEERS=all    with Brian2 and ANNarchy as well
    .venv/bin/python benchmarks/bench.py growth    scaling with n and m alone; all else stays as it was measured before

One core, float32, hold 500, each network trained for a million steps beforehand. Every peer is first
checked to compute the same weights in float64. Rounds alternate between the systems and ratios are
taken within each round, since other load on the machine slows both. Writes results.json and
results.md next to this file, and the figure in the README.
"""

import os
import sys

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is loaded
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"

import importlib
import json
import platform
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np

import asynchebb as ah
from asynchebb import engines
from asynchebb.engines import cpu

HERE = Path(__file__).parent
HOLD, TRAINED, ROUNDS = 500, 2_000, 5
GROWN = 200  # stimuli that each network of the scaling is trained with before it is timed, whatever its size
MB = 2**20

NETWORKS = {
    "asynchronous": ah.asynchronous(reading="notebook"),
    "asynchronous Projected": ah.asynchronous(reading="notebook", dynamics=ah.Projected()),
    "discrete": ah.discrete(reading="notebook"),
    "continuous": ah.continuous(reading="notebook"),
    "asynchronous Oja, Projected, from rest": ah.asynchronous(),
    "discrete Oja, Projected, from rest": ah.discrete(),
    "frozen, Projected, from rest": ah.asynchronous(),  # trained, and then frozen
    "spiking": ah.asynchronous(
        reading="notebook", dynamics=ah.IntegrateAndFire(), schedule=ah.Asynchronous(r_b=0.5, r_r=100)
    ),
}
SPIKING_STEPS = 500_000  # per second, which the spiking network has to reach

# Each system: its module among the peers, the options of its `run`, the models it supports, the stimuli per
# round and the number of rounds: some compile for a long time before each round.
FROM_REST = tuple(name for name in NETWORKS if "from rest" in name)
SYSTEMS = {
    "JAX scan": ("jax_scan", {"skip": True}, ("asynchronous", "asynchronous Projected", "discrete", *FROM_REST), 20, 5),
    "JAX scan, dense": ("jax_scan", {"skip": False}, ("asynchronous", "asynchronous Projected", "continuous"), 20, 5),
    "JAX scan, batched": ("jax_scan", {"batched": True}, ("frozen, Projected, from rest",), 100, 5),
    "NumPy": ("numpy_loops", {}, ("asynchronous", "continuous"), 4, 5),
    "Brian2": ("brian2_loop", {}, ("asynchronous", "spiking"), 40, 2),
    "ANNarchy": ("annarchy_loop", {}, ("asynchronous",), 40, 2),
}
ALWAYS = ("JAX scan", "JAX scan, dense", "JAX scan, batched", "NumPy")

# Model, n, size of the crossbars, and the required speed-up over the best JAX scan.
CASES = [
    ("asynchronous", 500, 14, 31),
    ("asynchronous Projected", 500, 14, 8),
    ("asynchronous Oja, Projected, from rest", 500, 14, 6),
    ("discrete", 500, 14, 8),
    ("discrete Oja, Projected, from rest", 500, 14, 6),
    ("frozen, Projected, from rest", 500, 14, 8),
    ("continuous", 500, 14, 8),
    ("spiking", 500, 14, None),
    ("asynchronous", 100, 5, 2),
    ("discrete", 100, 5, 2),
    ("continuous", 100, 5, 2),
]
# What grows: a model, n and m.
POTENTIAL, PROJECTED = "asynchronous", "asynchronous Oja, Projected, from rest"
ABOUT_GROWTH = (
    f'"{POTENTIAL}" is `ah.asynchronous(n, m, "notebook")` and "{PROJECTED}" is `ah.asynchronous(n, m)`, the preset, '
    "whose weights shrink as 100/n above 500 neurons. Measured on"
)
GROWTH = [
    *((POTENTIAL, n, 196) for n in (100, 500, 2_000, 8_000)),
    *((PROJECTED, n, 196) for n in (100, 500, 2_000, 4_000)),
    *((POTENTIAL, 500, m) for m in (784, 3_072)),
]


def one_core():
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def as_dict(state, dtype):
    arrays = {name: np.ascontiguousarray(getattr(state, name), dtype) for name in ("W", "M", "u", "y")}
    return {**arrays, "c": np.array(state.c)}


def peer(system, model):
    module, options, *_ = SYSTEMS[system]
    run = importlib.import_module(f"peers.{module}").run
    return lambda state, X, **more: run(state, X, HOLD, model, **options, **more)


def difference(network, state, X, run, from_rest):
    """How far a peer's weights are from ours after one stimulus, in float64."""
    state = ah.State(*(np.asarray(z, np.float64) if z.dtype.kind == "f" else z for z in state))
    ours, _ = ah.advance(network, state, X[:1], hold=HOLD, from_rest=from_rest)
    if network.dynamics == ah.IntegrateAndFire():  # the same spikes, too, over four stimuli
        _, seen = ah.advance(network, state, X[:4], HOLD, "cpu", ("spikes",))
        theirs, _ = run(as_dict(state, np.float64), X[:4], watched=True)
        if not np.array_equal(theirs["spikes"], seen["spikes"]):
            raise RuntimeError(f"{np.count_nonzero(theirs['spikes'] != seen['spikes'])} spikes differ")
    theirs, _ = run(as_dict(state, np.float64), X[:1])
    return max(float(np.abs(getattr(ours, name) - theirs[name]).max()) for name in ("W", "M", "y"))


def compare(model, n, size, systems):
    """Steps per second of our engine and of each system in this case, and the ratios."""
    network = replace(NETWORKS[model], n=n, m=size * size)
    X = ah.Crossbars(size).sample(np.random.default_rng(1), TRAINED + 400)
    from_rest = model in FROM_REST
    start = network.init(np.random.default_rng(0))
    state, _ = ah.advance(network, start, X[:TRAINED], hold=HOLD, from_rest=from_rest)
    X = X[TRAINED:]
    if model.startswith("frozen"):
        network = network.frozen()
    row = {"model": model, "n": n, "m": size * size, "asynchebb": [], "systems": {}}
    runs = {}
    for system in systems:
        if model not in SYSTEMS[system][2]:
            continue
        try:
            runs[system] = peer(system, model)
            off = difference(network, state, X, runs[system], from_rest)
            if not off < 1e-6:
                raise RuntimeError(f"computes other weights: they differ by {off:.1e}")
            row["systems"][system] = {"steps/s": [], "difference": off}
        except Exception as error:
            runs.pop(system, None)
            row["systems"][system] = {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:120]}
    single = as_dict(state, np.float32)
    owned = engines.prepare(network, state)
    for turn in range(ROUNDS):
        ours = owned.copy()
        start = time.perf_counter()
        engines.advance_in_place(network, ours, X, HOLD, "cpu", (), from_rest)
        seconds = time.perf_counter() - start
        row["asynchebb"].append(len(X) * HOLD / seconds)
        for system, run in runs.items():
            if turn >= SYSTEMS[system][4]:
                continue
            few = X[: SYSTEMS[system][3]]
            _, seconds = run(single, few)
            row["systems"][system]["steps/s"].append(len(few) * HOLD / seconds)
    for system in runs:
        cell = row["systems"][system]
        cell["ratio"] = median(a / b for a, b in zip(row["asynchebb"], cell["steps/s"], strict=False))
        cell["steps/s"] = median(cell["steps/s"])
    row["asynchebb"] = median(row["asynchebb"])
    return row


def in_process(*arguments, **environment):
    """Run one measurement in a separate process and return its JSON output."""
    command = [sys.executable, str(HERE / "bench.py"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout)


def grow(model, n, m):
    """Seconds per step of an asynchronous network, and the peak memory of the process."""
    import resource

    size = int((m / 3 if m == 3_072 else m) ** 0.5)
    X = np.tile(ah.Crossbars(size).sample(np.random.default_rng(1), 360), m // (size * size))  # 3 colours
    network, from_rest = replace(NETWORKS[model], n=n, m=m), model in FROM_REST
    at_once = 4 if n > 2_000 and from_rest else 40  # stimuli that are timed together
    state = engines.prepare(network, network.init(np.random.default_rng(0)))
    state, _ = engines.advance_in_place(network, state, X[:GROWN], HOLD, "cpu", (), from_rest)
    seconds = []
    for first in range(GROWN, GROWN + 4 * at_once, at_once):
        few, start = X[first : first + at_once], time.perf_counter()
        state, trace = engines.advance_in_place(network, state, few, HOLD, "cpu", ("active",), from_rest)
        seconds.append((time.perf_counter() - start) / (at_once * HOLD))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    weights = state.W.nbytes + state.M.nbytes
    return {
        "model": model,
        "network": repr(network),
        "trained": GROWN,
        "n": n,
        "m": m,
        "seconds/step": min(seconds),
        "active": float(np.mean(trace["active"])),
        "W and M, MB": weights / MB,
        "peak, MB": peak / MB,
        "allowed, MB": 1.3 * weights / MB + 300,
    }


def first_steps():
    """Seconds from the start of a process to its first Euler step, including the import; and from there to the first
    one with another dynamics, rule and schedule."""
    code = (
        "import time, sys; import numpy as np; import asynchebb as ah; times = [float(sys.argv[1])]\n"
        "for network in (ah.asynchronous(reading='notebook'), ah.discrete()):\n"
        "    state = network.init(np.random.default_rng(0))\n"
        "    ah.advance(network, state, np.ones((1, 196)), hold=1); times.append(time.time())\n"
        "print(*np.diff(times))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(time.time())], capture_output=True, text=True, check=True)
    return map(float, done.stdout.split())


def cold_start():
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ASYNCHEBB_CACHE"] = folder
        try:
            first, another = first_steps()
            later = median(next(first_steps()) for _ in range(3))
            return {"first ever, s": first, "new combination, s": another, "later, s": later}
        finally:
            del os.environ["ASYNCHEBB_CACHE"]


def growth():
    """How time and memory grow with n and m, and on which machine."""
    for model in (POTENTIAL, PROJECTED):
        for n in (20, cpu.WIDE):  # compile first, so that this does not count towards time and memory below
            cpu.warm_up(replace(NETWORKS[model], n=n))
    rows = []
    for model, n, m in GROWTH:
        for cores in (1, os.cpu_count()) if n >= cpu.WIDE else (1,):
            print(f"growth: {model}, n = {n}, m = {m}, cores = {cores} …", file=sys.stderr, flush=True)
            row = in_process("grow", model, n, m, NUMBA_NUM_THREADS=str(cores))
            rows.append({**row, "cores": cores})
    alone = {model: [row for row in rows if row["model"] == model and row["cores"] == 1] for model in NETWORKS}
    exponents = {
        "n": exponent([row for row in alone[POTENTIAL] if row["m"] == 196], "n"),
        "m": exponent([row for row in alone[POTENTIAL] if row["n"] == 500], "m"),
        "n, Oja, Projected, from rest": exponent(alone[PROJECTED], "n"),
    }
    return {"machine": processor(), "rows": rows, "exponents": exponents}


def processor():
    """The processor's name, and its family, since clouds give all of them the same name."""
    try:
        known = dict(line.split(":", 1) for line in Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines())
        known = {name.strip(): value.strip() for name, value in known.items()}
        return f"{known['model name']} (family {known['cpu family']}), {os.cpu_count()} cores"
    except (OSError, KeyError, ValueError):
        return f"{platform.machine()}, {os.cpu_count()} cores"


def exponent(rows, key):
    """The exponent with which the time per step grows with n or m, fitted to all rows and to the last two."""
    x = np.log([row[key] for row in rows])
    y = np.log([row["seconds/step"] for row in rows])
    return {"all": float(np.polyfit(x, y, 1)[0]), "last two": float((y[-1] - y[-2]) / (x[-1] - x[-2]))}


def table(results):
    """The results in Markdown."""
    lines = ["| model | n | m | asynchebb | " + " | ".join(results["systems"]) + " |"]
    lines.append("| --- | --- | --- | --- |" + " --- |" * len(results["systems"]))
    for row in results["cases"]:
        cells = []
        for system in results["systems"]:
            cell = row["systems"].get(system)
            if cell is None:
                cells.append("")
            elif "failed" in cell:
                cells.append(f"failed: {cell['failed']}")
            else:
                cells.append(f"{cell['steps/s']:,.0f} ({cell['ratio']:,.1f} ×)")
        lines.append(
            f"| {row['model']} | {row['n']} | {row['m']} | {row['asynchebb']:,.0f} | " + " | ".join(cells) + " |"
        )
    lines += ["", "Steps per second; in brackets, how many times faster asynchebb is in the same round.", ""]
    lines += [
        "| model | n | m | µs per step | cores | active | W and M, MB | peak, MB | allowed, MB |",
        "|" + " --- |" * 9,
    ]
    for row in results["growth"]["rows"]:
        lines.append(
            f"| {row['model']} | {row['n']:,} | {row['m']:,} | {1e6 * row['seconds/step']:.2f} | {row['cores']} |"
            f" {row['active']:.0f} | {row['W and M, MB']:.0f} | {row['peak, MB']:.0f} | {row['allowed, MB']:.0f} |"
        )
    lines += ["", f"Each network has seen {GROWN} stimuli before. {ABOUT_GROWTH} {results['growth']['machine']}."]
    lines += ["", "| time per step grows with | exponent, all | last two |", "| --- | --- | --- |"]
    for name, power in results["growth"]["exponents"].items():
        lines.append(f"| {name} | {power['all']:.2f} | {power['last two']:.2f} |")
    start = results["cold start"]
    lines += [
        "",
        f"First Euler step: {start['first ever, s']:.1f} s on first use, {start['later, s']:.2f} s later; "
        f"with equations that have not been compiled yet, {start['new combination, s']:.2f} s more.",
    ]
    return "\n".join(lines) + "\n"


def draw(results, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.4, 1])
    row = results["cases"][0]
    speeds = {"asynchebb": row["asynchebb"]}
    speeds |= {name: cell["steps/s"] for name, cell in row["systems"].items() if "steps/s" in cell}
    names = sorted(speeds, key=speeds.get)
    bars = left.barh(
        names, [speeds[name] for name in names], color=["tab:blue" if n == "asynchebb" else "0.7" for n in names]
    )
    left.bar_label(bars, [f"{speeds[name]:,.0f}" for name in names], padding=3, fontsize=8)
    left.set(xscale="log", xlabel="Euler steps per second, one core", title="n = 500, m = 196, asynchronous Hebbian")
    left.set_xlim(min(speeds.values()) / 2, max(speeds.values()) * 8)
    for model, colour, name in (
        (POTENTIAL, "tab:blue", "Potential"),
        (PROJECTED, "tab:orange", "Projected, from rest"),
    ):
        grown = [row for row in results["growth"]["rows"] if row["model"] == model and row["m"] == 196]
        for cores in sorted({row["cores"] for row in grown}):
            rows = [row for row in grown if row["cores"] == cores]
            label = name if cores == 1 else f"{name}, {cores} cores"
            line = "o-" if cores == 1 else "s--"
            right.plot([r["n"] for r in rows], [1e6 * r["seconds/step"] for r in rows], line, color=colour, label=label)
    right.set(xscale="log", yscale="log", xlabel="neurons n", ylabel="µs per step", title="scaling (m = 196)")
    right.yaxis.set_major_formatter("{x:g}")
    right.yaxis.set_minor_formatter("")
    right.legend(frameon=False, fontsize=7)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.title.set_fontsize(9)
    figure.savefig(path, dpi=150)


def main():
    everything = "all" in sys.argv[1:]
    systems = tuple(SYSTEMS) if everything else ALWAYS
    results = {"machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"}
    results["systems"] = systems
    print("cold start …", file=sys.stderr, flush=True)
    results["cold start"] = cold_start()
    results["growth"] = growth()
    one_core()
    results["cases"] = []
    for model, n, size, asked in CASES:
        print(f"{model}, n = {n} …", file=sys.stderr, flush=True)
        few = systems if n == 500 else ALWAYS[:2]
        results["cases"].append({**compare(model, n, size, few), "asked": asked})
    return write(results)


def again():
    """Measure the scaling again, and leave the rest."""
    results = json.loads((HERE / "results.json").read_text())
    return write({**results, "growth": growth()})


def write(results):
    text = table(results)
    print(text)
    (HERE / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    (HERE / "results.md").write_text(text)
    draw(results, HERE.parent / "docs" / "images" / "speed.png")
    return report(results)


def report(results):
    """Print the targets that were missed."""
    missed = []
    for row in results["cases"]:
        if row["model"] == "spiking":
            if row["asynchebb"] < SPIKING_STEPS:
                missed.append(f"spiking: {row['asynchebb']:,.0f} steps/s, target {SPIKING_STEPS:,}")
            continue
        # A batch of stimuli at once is another thing than a scan: its ratio stands in the table.
        scans = ("JAX scan", "JAX scan, dense")
        ratios = [cell["ratio"] for name, cell in row["systems"].items() if name in scans and "ratio" in cell]
        if min(ratios, default=0) < row["asked"]:
            reached = f"{min(ratios):.1f} × the best JAX scan" if ratios else "not compared"
            missed.append(f"{row['model']}, n = {row['n']}: {reached}, target {row['asked']} ×")
    for row in results["growth"]["rows"]:
        if row["peak, MB"] > row["allowed, MB"]:
            missed.append(f"n = {row['n']}, m = {row['m']}: {row['peak, MB']:.0f} MB, allowed {row['allowed, MB']:.0f}")
    print("\n".join(["Targets missed:", *missed]) if missed else "All targets were reached.")
    return 1 if missed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["grow"]:
        print(json.dumps(grow(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
    else:
        sys.exit(again() if sys.argv[1:] == ["growth"] else main())
