"""Damage files that the package has written, byte by byte, and see who notices.

    python -m tests.flips [--seed N] [--flips 2000] [--cuts 500]

Each trial flips bits of one random byte of a file, or cuts the file at a random place, and reads it as a user would.
The damage must be refused with a sentence that names the file, or be repaired by computing the same again, or be in
bytes that mean nothing. Exits with 1 if other content is read without a word, or if an error is not ours.
"""

from __future__ import annotations

import argparse
import io
import shutil
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, redirect_stderr, suppress
from pathlib import Path
from typing import Any

import numpy as np

import asynchebb as ah

X = ah.Crossbars(6).sample(np.random.default_rng(0), 20)
SILENT, RAW, REFUSED, AGAIN, SAME = "SILENTLY DIFFERENT", "RAW ERROR", "refused", "computed again", "same content"
BAD = (SILENT, RAW)
HANG = 300  # seconds, after which a file that is read in milliseconds counts as never read


def a_run(seed: int = 0, samples: int = 20, snapshots: int = 3) -> ah.Run:
    phase = ah.Phase(ah.Crossbars(6), samples=samples, hold=50, snapshots=snapshots)
    return ah.Run(ah.asynchronous(n=20, m=36), phase, seed=seed)


def content_of(dataset: Any) -> dict[str, Any]:
    with dataset:
        dataset.load()
        variables = {
            name: (str(one.dtype), one.values.tobytes() if one.dtype != object else str(one.values), str(one.attrs))
            for name, one in dataset.variables.items()
        }
        return {**variables, "attributes": str({k: v for k, v in dataset.attrs.items() if k != "source"})}


def read_run(file: Path) -> Any:
    return content_of(ah.open_run(file))


def read_model(file: Path) -> Any:
    model = ah.load_model(file)
    fitted = {name: str(value) for name, value in vars(model).items() if name.endswith("_") and name != "state_"}
    arrays = {name: np.asarray(array).tobytes() for name, array in model.state_._asdict().items()}
    sample, parameters = model._sample.rows.tobytes(), repr(model.get_params(deep=False))
    return {**arrays, **fitted, "sample": sample, "parameters": parameters}


def read_sweep(file: Path) -> Any:
    return content_of(ah.open_sweep(file.parents[1]))


def swept(run: ah.Run, out: str) -> None:
    with ThreadPoolExecutor(1) as threads:  # no process has to start
        ah.sweep(run, {"seed": [0, 1]}, out, executor=threads, progress=False).close()


def finish_run(file: Path) -> Any:
    """Resume an interrupted run from its parts."""
    folder = Path("resumed")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(file.parents[1], folder)
    return content_of(ah.record(a_run(samples=40, snapshots=4), folder))


def interrupt(steps: int) -> None:
    if steps > 5000 + 4 * 9000:
        raise KeyboardInterrupt


def kinds() -> Iterator[tuple[str, Path, Callable[[Path], Any]]]:
    """Name each kind of file, write one, and say how it is read."""
    ah.record(a_run(), "run.nc").close()
    yield "run", Path("run.nc"), read_run
    ah.save_model(ah.AsyncHebbian(20, max_iter=1, hold=50, random_state=0).fit(X), "model.nc")
    yield "model", Path("model.nc"), read_model
    swept(a_run(), "sweep")
    yield "sweep's run", sorted(Path("sweep/runs").glob("*.nc"))[0], read_sweep
    yield "sweep's measures", sorted(Path("sweep/runs").glob("*.json"))[0], read_sweep
    yield "sweep's definition", next(Path("sweep/grids").glob("*.json")), read_sweep
    too_strong = ah.Run(ah.asynchronous(n=20, m=36, rule=ah.Hebbian(eta=1e30)), a_run().phases)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        swept(too_strong, "failed")
    if errors := sorted(Path("failed/runs").glob("*.failed")):
        yield "sweep's error", errors[0], read_sweep
    from asynchebb.runs import recording

    recording.NOT_WORTH_A_FILE = 0.0  # seconds: every snapshot is saved at once
    with suppress(KeyboardInterrupt):
        ah.record(a_run(samples=40, snapshots=4), "interrupted", on_progress=interrupt)
    if parts := sorted(Path("interrupted").glob("*/*.npz")):
        yield "part of a run", parts[-1], finish_run


def damaged(content: bytes, cut: bool, rng: np.random.Generator) -> bytes:
    at = int(rng.integers(len(content)))
    if cut:
        return content[:at]
    return content[:at] + bytes([content[at] ^ int(rng.integers(1, 256))]) + content[at + 1 :]


def give_up(*_: Any) -> None:
    raise TimeoutError


def outcome(read: Callable[[Path], Any], file: Path, truth: Any) -> str:
    said = io.StringIO()
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(HANG)
    try:
        with warnings.catch_warnings(record=True) as caught, redirect_stderr(said):
            warnings.simplefilter("always")
            found = read(file)
    except ah.InputError as error:
        return REFUSED if file.name in str(error) else f"{RAW}: it does not name the file"
    except Exception as error:
        return f"{RAW}: {type(error).__name__}"
    finally:
        signal.alarm(0)
    if found == truth:
        return AGAIN if read is finish_run else SAME
    told = any(file.name in str(one.message) for one in caught)
    return f"{REFUSED} (counts as failed)" if told else SILENT


def trials(flips: int, cuts: int, seed: int) -> dict[str, Counter[str]]:
    """Damage all kinds of files so many times in all; what came of it, by kind."""
    rng, found = np.random.default_rng(seed), dict[str, Counter[str]]()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        every = [*kinds()]
        truths = [read(file) for _, file, read in every]
        for number in range(flips + cuts):
            which = number % len(every)
            (name, file, read), truth = every[which], truths[which]
            whole = file.read_bytes()
            file.write_bytes(damaged(whole, number >= flips, rng))
            found.setdefault(name, Counter())[outcome(read, file, truth)] += 1
            file.write_bytes(whole)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in (("seed", 0), ("flips", 2000), ("cuts", 500)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    given = parser.parse_args()
    found = trials(given.flips, given.cuts, given.seed)
    for name, outcomes in found.items():
        print(f"{name}: " + ", ".join(f"{count} {what}" for what, count in outcomes.most_common()))
    bad = sum(count for outcomes in found.values() for what, count in outcomes.items() if what.startswith(BAD))
    print(f"{given.flips + given.cuts} damaged files: {bad} were read wrongly or raised a raw error")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
