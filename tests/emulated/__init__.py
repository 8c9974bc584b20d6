"""The gpu engine's code on a CPU: compiled by the host's compiler, a block's threads as fibres."""

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from asynchebb.engines.gpu.channels import Card
from asynchebb.engines.gpu.program import HALF_LARGE, LARGE, Geometries, Geometry, Program, record

COMPILER = shutil.which("g++") or shutil.which("clang++")
needs_compiler = pytest.mark.skipif(
    COMPILER is None and not os.environ.get("CI"), reason="needs a C++ compiler (g++ or clang++)"
)
FOLDER = Path(tempfile.gettempdir()) / "asynchebb-emulated"
MAIN = """
static Net* given;
static int all;
static void body() { advance(given, all); }
extern "C" int run(Net* nets, int count, int blocks) {  // one block after the other
    given = nets, all = count, emulated::blocks = blocks;
    for (int block = 0; block < blocks; block++) emulated::run(block, shared_bytes, body);
    return (int)sizeof(Net);
}
"""


class Memory:
    """A place in memory, with what CuPy's pointers to a GPU's memory can do."""

    def __init__(self, array, start=0):
        self.array, self.start, self.ptr = array, start, array.ctypes.data + start

    def __add__(self, offset):
        return Memory(self.array, self.start + offset)

    def copy_from_host_async(self, address, size):
        assert self.start + size <= len(self.array)
        ctypes.memmove(self.ptr, address, size)

    def copy_to_host_async(self, address, size):
        assert self.start + size <= len(self.array)
        ctypes.memmove(address, self.ptr, size)

    def memset_async(self, value, size):
        assert self.start + size <= len(self.array)
        ctypes.memset(self.ptr, value, size)


class Host(Card):
    """What `device.Cuda` does, in the memory of this process."""

    words = Path(__file__).with_name("host.h").read_text(encoding="utf-8")
    # Small blocks: small networks have too many awake neurons for them, or need several of them together.
    geometries: ClassVar = {
        (np.dtype(dtype), neurons): Geometries(
            Geometry(64, columns=32, idle=neurons // 16, registers=16, neurons=neurons),
            Geometry(64, slots=96, registers=72, floor=0.98, floors=2, neurons=neurons),
            Geometry(128, columns=96, registers=32, neurons=neurons),
            Geometry(64),
            tuple(Geometry(64, cluster=size) for size in (1, 2, 4)),
        )
        for dtype in ("float32", "float64")
        for neurons in (HALF_LARGE, LARGE)
    }
    multiprocessors = 8
    room = 10**9
    lock = threading.Lock()

    def program(self, source, geometry):
        FOLDER.mkdir(exist_ok=True)
        path = FOLDER / f"{hashlib.sha256((source + MAIN).encode()).hexdigest()[:24]}.so"
        if not path.exists():
            part = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}.cpp")
            part.write_text(source + MAIN, encoding="utf-8")
            options = ["-Og", "-std=c++17", "-ffp-contract=off", "-shared", "-fPIC", "-w"]
            made = part.with_suffix(".so")
            subprocess.run([COMPILER, *options, "-o", made, part], check=True)
            made.replace(path)
        return Program(ctypes.CDLL(str(path)).run, 0)

    def launch(self, program, geometry, networks, count):
        with self.lock:  # there is one emulation per program
            blocks = min(count, self.multiprocessors) if geometry.apart else count
            size = program.function(ctypes.c_void_p(networks.ptr), count, blocks)
        assert size in (record(dtype).itemsize for dtype, _ in self.geometries)

    def memory(self, size):
        return Memory(np.full(size, 0xFF, np.uint8))

    def page_locked(self, size):
        return np.full(size, 0xFF, np.uint8)

    def stream(self):
        return nullcontext()

    def wait_for(self, stream):
        pass

    def free_memory(self):
        return self.room

    def failures(self):
        return nullcontext()
