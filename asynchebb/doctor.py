"""`asynchebb doctor`: what this installation has, what is wrong with it, and how to fix that."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import NamedTuple

import numpy as np
from packaging.requirements import Requirement

from asynchebb.threads import cores as _cores

PACKAGE = "asynchebb"


class Finding(NamedTuple):
    """What was found about one part; `fix` says what to do if something is wrong with it."""

    part: str
    says: str
    fix: str = ""


def examine() -> Iterator[Finding]:
    """Examine each part in turn. One that cannot be examined is a finding too."""
    for part, check in PARTS.items():
        try:
            yield from (Finding(part, *found) for found in check())
        except Exception as error:
            yield Finding(part, f"cannot be examined ({type(error).__name__}: {error})", "please report this")


Found = Iterator[tuple[str, str] | tuple[str]]


def _python() -> Found:
    yield (f"{platform.python_version()} at {sys.executable}, {platform.system()} {platform.machine()}",)
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):
        yield (
            "PYTHONDONTWRITEBYTECODE is set, so every process compiles all imported modules anew",
            "unset PYTHONDONTWRITEBYTECODE",
        )


def _versions() -> Found:
    needed = [requirement for requirement in _requirements() if requirement.marker is None]
    wrong = [(one, found) for one in needed if not one.specifier.contains(found := _version(one.name), True)]
    for requirement, found in wrong:
        yield (
            f"{requirement.name} is {found or 'missing'}; it must be {requirement.specifier}",
            f"pip install '{requirement}'",
        )
    yield (f"{PACKAGE} {_version(PACKAGE)}; " + ", ".join(f"{one.name} {_version(one.name)}" for one in needed),)


def _optional() -> Found:
    extras = metadata.metadata(PACKAGE).get_all("Provides-Extra") or []
    for extra in sorted({*extras} - {"test"}):
        of_extra = [one for one in _requirements() if one.marker and one.marker.evaluate({"extra": extra})]
        missing = [one.name for one in of_extra if not _version(one.name)]
        has = ", ".join(f"{one.name} {_version(one.name)}" for one in of_extra)
        yield (f"{extra}: not installed; pip install '{PACKAGE}[{extra}]' adds it" if missing else f"{extra}: {has}",)
    yield (f"movies: .gif, and {'.mp4' if shutil.which('ffmpeg') else '.mp4 once ffmpeg is installed'}",)


def _cache() -> Found:
    from asynchebb.engines import cpu

    folder = cpu.cache_folder()
    if folder != cpu.wanted_cache_folder():
        yield (
            f"the cache folder cannot be written, so each process compiles anew (in {folder})",
            "make your cache folder writable, or set ASYNCHEBB_CACHE to a folder that is",
        )
        return
    sizes = [file.stat().st_size for file in folder.rglob("*") if file.is_file()]
    free = shutil.disk_usage(folder).free
    yield (f"{folder}: {len(sizes):,} files, {sum(sizes) / 1e6:,.0f} MB; {free / 1e9:,.1f} GB free on this disk",)
    if free < 2e8:
        yield f"only {free / 1e6:,.0f} MB are free for compiled code and results", "free some space"


def _threads() -> Found:
    import numba

    cores, threads = _cores(), int(vars(numba.config)["NUMBA_NUM_THREADS"])
    yield (f"{cores} cores for this process, of {os.cpu_count()}; Numba uses {threads}",)
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        if name in os.environ:
            yield (f"{name} is {os.environ[name]}",)
    if threads > cores:
        yield f"Numba uses {threads} threads on {cores} cores", f"export NUMBA_NUM_THREADS={cores}"


def _blas() -> Found:
    from threadpoolctl import threadpool_info

    found = [library for library in threadpool_info() if library["user_api"] == "blas"]
    if not found:
        yield ("NumPy has no BLAS whose threads can be limited",)
    for library in found:
        kind, version, threads = (library[key] for key in ("internal_api", "version", "num_threads"))
        yield (f"{kind} {version}, {threads} threads",)
        if threads > 2 * _cores():
            yield f"{threads} BLAS threads share {_cores()} cores", f"export OMP_NUM_THREADS={_cores()}"


def _gpu() -> Found:
    from asynchebb.engines.gpu import device

    program = shutil.which("nvidia-smi")
    if program is None:
        yield ("no NVIDIA driver found; networks run on the CPU",)
        return
    missing = device.missing()
    query = [program, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    answer = subprocess.run(query, capture_output=True, text=True, timeout=20)
    if answer.returncode:
        yield (f"nvidia-smi fails: {(answer.stderr or answer.stdout).strip()}; networks run on the CPU",)
    for line in answer.stdout.splitlines():
        yield (f"{line}; the gpu engine {'cannot use it' if missing else 'uses it'}",)
    if missing:
        yield f"the gpu engine cannot be used: {missing}", device.INSTALL


def _engines() -> Found:
    """Run a small network on both engines."""
    from asynchebb import engines
    from asynchebb.network import asynchronous
    from asynchebb.stimuli import Crossbars

    network, hold = asynchronous(100, 64, reading="notebook"), 100
    state = network.init(np.random.default_rng(0), np.float64)
    X = Crossbars(8).sample(np.random.default_rng(1), 5)
    began = time.perf_counter()
    ours, _ = engines.advance(network, state, X, hold)
    took = time.perf_counter() - began
    theirs, _ = engines.advance(network, state, X, hold, "reference")
    if not np.allclose(ours.W, theirs.W, rtol=0, atol=1e-9):
        far = np.abs(ours.W - theirs.W).max()
        yield f"cpu and reference disagree by {far:.1e}", "delete the cache folder; if that does not help, report this"
    else:
        yield (f"cpu and reference agree; the first call of cpu took {took:.1f} s",)


def _requirements() -> list[Requirement]:
    return [Requirement(text) for text in metadata.requires(PACKAGE) or []]


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


PARTS: dict[str, Callable[[], Found]] = {
    "Python": _python,
    "packages": _versions,
    "optional": _optional,
    "cache": _cache,
    "threads": _threads,
    "BLAS": _blas,
    "GPU": _gpu,
    "engines": _engines,
}
