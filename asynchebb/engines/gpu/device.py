"""An NVIDIA GPU through CuPy: its memory, programs compiled for it, and what is missing where there is none."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from asynchebb.checks import InputError
from asynchebb.engines.gpu.channels import Card, Full
from asynchebb.engines.gpu.compiling import compiled
from asynchebb.engines.gpu.program import PORTABLE, Geometry, Program, geometries, words

INSTALL = "pip install 'asynchebb[gpu]' installs it for CUDA 13; for CUDA 12, pip install cupy-cuda12x"
MEMORY = 0.9  # the share of the GPU's free memory that is used
# NumPy rounds products before it adds them. Numbers too small for their full precision are 0.
OPTIONS = ("-std=c++17", "--fmad=false", "-ftz=true")
NO_MEMORY = 2  # cudaErrorMemoryAllocation
LARGE_CLUSTERS = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
# What blocks tell each other must not be read from a multiprocessor's own cache.
TOGETHER = ("--ptxas-options=-dlcm=cg",)


class Lost(RuntimeError):
    """The GPU failed in the middle of a call. What was saved before is kept, and a new process resumes from there."""


@cache
def missing() -> str | None:
    """Why there is no GPU to use; None if there is one. CuPy is imported only to answer that."""
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")  # streams that share one wait for each other; else 8
    try:
        import cupy
    except ImportError as error:
        return f"CuPy cannot be imported ({error}); {INSTALL}"
    runtime = cupy.cuda.runtime
    try:
        driver, needed = runtime.driverGetVersion(), runtime.runtimeGetVersion()
        if not driver:
            return "there is no NVIDIA driver; nvidia-smi must show a GPU"
        count = runtime.getDeviceCount()
    except Exception as error:
        if "InsufficientDriver" in str(error):
            return f"the NVIDIA driver is too old for this CuPy ({error}); update the driver, or install an older CuPy"
        return f"CuPy finds no NVIDIA GPU ({error}); nvidia-smi must show one"
    if not count:
        return "CuPy finds no NVIDIA GPU; nvidia-smi must show one"
    if driver // 1000 < needed // 1000:
        return (
            f"the NVIDIA driver supports CUDA {driver // 1000}, and CuPy was made for CUDA {needed // 1000}; update "
            f"the driver, or pip install cupy-cuda{driver // 1000}x"
        )
    return None


def count() -> int:
    """The number of GPUs."""
    if missing():
        return 0
    import cupy

    return cupy.cuda.runtime.getDeviceCount()


def name() -> str:
    """That of the first GPU, as long as it answers."""
    require()
    import cupy

    runtime = cupy.cuda.runtime
    try:
        return runtime.getDeviceProperties(0)["name"].decode()
    except runtime.CUDARuntimeError:  # what happened to it has been said, or will be
        return "a GPU"


def choose(card: int) -> None:
    """Use this one of the GPUs, in this thread; the first again after the last."""
    import cupy

    cupy.cuda.Device(card % count()).use()


def require() -> None:
    """Raise if there is no GPU. Nothing is begun on it: a process that does may keep others from using it."""
    if reason := missing():
        raise InputError(f"engine is 'gpu', but {reason}; or use the engine cpu")


def current() -> Cuda:
    """The GPU that this thread uses."""
    require()
    import cupy

    return _device(cupy.cuda.runtime.getDevice())


@cache
def _device(number: int) -> Cuda:
    return Cuda(number)


class Cuda(Card):
    """One GPU."""

    def __init__(self, number: int) -> None:
        import cupy

        super().__init__()
        self.cupy, self.number = cupy, number
        self.words = words()
        self.multiprocessors = self._property("multiProcessorCount")
        block, all_blocks = self._property("sharedMemPerBlockOptin"), self._property("sharedMemPerMultiprocessor")
        self._architecture = cupy.cuda.Device(number).compute_capability
        self.geometries = geometries(block, all_blocks, int(self._architecture))
        self._compiler = f"CuPy {cupy.__version__}, NVRTC {cupy.cuda.nvrtc.getVersion()}"
        self._programs: dict[str, Program] = {}
        self.room = MEMORY * self.free_memory()
        self._compiling: dict[str, threading.Lock] = {}

    def _property(self, name: str) -> int:
        return int(self.cupy.cuda.runtime.getDeviceProperties(self.number)[name])

    def program(self, source: str, geometry: Geometry) -> Program:
        """This program compiled, or as it was compiled before."""
        with self._changed:
            compiling = self._compiling.setdefault(source, threading.Lock())
        with compiling:  # others go on with other programs
            if source not in self._programs:
                self._programs[source] = self._load(source, geometry)
        return self._programs[source]

    def _load(self, source: str, geometry: Geometry) -> Program:
        together = geometry.wide > 1
        file = compiled(source, OPTIONS + TOGETHER * together, self._architecture, self._compiler)
        with self.cupy.cuda.Device(self.number):  # a new thread begins with the first one
            module = self.cupy.RawModule(path=str(file), enable_cooperative_groups=together)
            function = module.get_function("advance")
            size = self.cupy.ndarray(1, np.int32, module.get_global("shared_bytes"))
            found = Program(function, int(size.get()[0]))
            if not together:
                function.max_dynamic_shared_size_bytes = found.memory
            if geometry.cluster > PORTABLE:
                self.cupy.cuda.driver.funcSetAttribute(function.kernel.ptr, LARGE_CLUSTERS, 1)
        return found

    def launch(self, program: Program, geometry: Geometry, networks: Any, count: int) -> None:
        """Begin to run so many networks."""
        shared = program.memory if geometry.wide == 1 else 0
        blocks = count * max(geometry.wide, geometry.cluster)
        if geometry.apart:  # they take turns
            blocks = min(blocks, self.multiprocessors * geometry.blocks)
        program.function((blocks,), (geometry.threads,), (networks, np.int32(count)), shared_mem=shared)

    def stream(self) -> Any:
        return self.cupy.cuda.Stream(non_blocking=True)

    def wait_for(self, stream: Any) -> None:
        """Sleep until all is done: to synchronize the stream would keep a core busy, which others need."""
        event = self.cupy.cuda.Event(block=True, disable_timing=True)
        event.record(stream)
        event.synchronize()

    def memory(self, size: int) -> Any:
        cuda = self.cupy.cuda
        try:
            return cuda.MemoryPointer(cuda.Memory(size), 0)  # CuPy's pool would keep what is given back
        except cuda.runtime.CUDARuntimeError as error:
            if error.status != NO_MEMORY:
                raise
            raise Full(str(error)) from error

    def page_locked(self, size: int) -> np.ndarray:
        """Memory of the host that the GPU can copy by itself; or any, where there is not enough of it."""
        cuda = self.cupy.cuda
        try:
            return np.frombuffer(cuda.PinnedMemoryPointer(cuda.PinnedMemory(size), 0), np.uint8)
        except cuda.runtime.CUDARuntimeError:
            return np.empty(size, np.uint8)

    def free_memory(self) -> int:
        """Bytes that can be had, those that CuPy keeps for later included."""
        free, _ = self.cupy.cuda.runtime.memGetInfo()
        return free + self.cupy.get_default_memory_pool().free_bytes()

    def free_all(self) -> None:
        super().free_all()
        self.cupy.get_default_memory_pool().free_all_blocks()

    @contextmanager
    def failures(self) -> Iterator[None]:
        """What the driver says when a GPU is gone, as `Lost`."""
        cuda = self.cupy.cuda
        try:
            yield
        except (cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError) as error:
            raise Lost(
                f"the GPU failed ({error}); nvidia-smi shows whether it is still there, and Python has to be started "
                "again"
            ) from error
