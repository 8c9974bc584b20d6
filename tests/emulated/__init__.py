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

import numpy as np

from asynchebb.engines.gpu.program import Geometries, Geometry, Program

COMPILER = shutil.which("g++") or shutil.which("clang++")
FOLDER = Path(tempfile.gettempdir()) / "asynchebb-emulated"
MAIN = """
static Net* given;
static void body() { advance(given); }
extern "C" int run(Net* nets, int count) {
    given = nets;
    for (int block = 0; block < count; block++) emulated::run(block, shared_bytes, body);
    return (int)sizeof(Net);
}
"""


class Host:
    """What `device.Cuda` does, in the memory of this process."""

    words = Path(__file__).with_name("host.h").read_text(encoding="utf-8")
    # Small blocks: small networks have too many near neurons, and too many active ones, for them.
    geometries = dict.fromkeys(
        map(np.dtype, ("float32", "float64")),
        Geometries(
            Geometry(32, columns=16, sleepers=128, tiled=20),
            Geometry(64, columns=32, sleepers=128, tiled=16),
            Geometry(64),
        ),
    )

    memory = 10**9
    out_of_memory = MemoryError

    def free_all(self):
        pass

    lock = threading.Lock()

    multiprocessors = 8

    def program(self, source, geometry):
        FOLDER.mkdir(exist_ok=True)
        path = FOLDER / f"{hashlib.sha256((source + MAIN).encode()).hexdigest()[:24]}.so"
        if not path.exists():
            part = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}.cpp")
            part.write_text(source + MAIN, encoding="utf-8")
            options = ["-O1", "-std=c++17", "-ffp-contract=off", "-shared", "-fPIC", "-w"]
            made = part.with_suffix(".so")
            subprocess.run([COMPILER, *options, "-o", made, part], check=True)
            made.replace(path)
        return Program(ctypes.CDLL(str(path)).run, 0)

    def launch(self, program, geometry, nets, count):
        with self.lock:  # there is one emulation per program
            size = program.function(ctypes.c_void_p(nets.ctypes.data), count)
        assert size * count == nets.size

    def put(self, array):
        return np.array(array, order="C")

    def put_rows(self, array, stride):
        rows = np.zeros((len(array), stride), array.dtype)
        rows[:, : array.shape[1]] = array
        return rows

    def zeros(self, shape, dtype):
        return np.zeros(shape, dtype)

    def free_memory(self):
        return self.memory

    @property
    def room(self):
        return self.memory

    def taking(self, size):
        return nullcontext()

    def stream(self, kind):
        return nullcontext()

    def failures(self):
        return nullcontext()

    def empty(self, shape, dtype):
        return np.full(np.prod(shape) * np.dtype(dtype).itemsize, 0xFF, np.uint8).view(dtype).reshape(shape)

    def get(self, array, out=None):
        if out is None:
            return array
        out[...] = array
        return out

    def get_rows(self, array, n, out):
        out[...] = array[:, :n]

    def address(self, array):
        return array.ctypes.data
