"""The engine's code for one network: what is written in CUDA C++, with the network's equations in it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from asynchebb import equations
from asynchebb.engines.gpu import translate
from asynchebb.network import Network

# All that the kernel is told of a network: numbers, where arrays are (0: there is none), and reals.
COUNTS = (
    *("n", "m", "stride", "stimuli", "hold", "from_rest", "lazy", "all_near", "has_memory"),
    *("spiking", "noisy", "events", "window", "clock", "quiet"),
)
ARRAYS = {
    **dict.fromkeys(("W", "P", "X", "numbers", "dynamics", "schedule", "rule", "settled", "trace_y"), "real"),
    **dict.fromkeys(("counts", "trace_updates", "trace_active", "fired"), "long long"),
    "lists": "int",
    **dict.fromkeys(("truths", "recent", "trace_burst", "trace_spikes"), "unsigned char"),
    "meeting": "char",
}
REALS = ("floor", "smallest", "decay", "x_x")

# Rows of the arrays of numbers, counts, lists and truths, as `columns.cu` numbers them.
U, Y, A, H, NUMBER_ROWS = 0, 1, 2, 3, 17
C, SPIKES, COUNT_ROWS = 0, 1, 3
LIST_ROWS, TRUTH_ROWS = 3, 3


class Geometry(NamedTuple):
    """How a block is laid out: its threads, each of which keeps so many rows and columns of M in its registers; columns
    in shared memory; how many blocks share a multiprocessor; and how many run one network together."""

    threads: int
    rows: int = 0  # no neurons are run apart
    columns: int = 0
    shared_slots: int = 0
    blocks: int = 1
    wide: int = 1  # blocks that run one network together

    @property
    def near_rows(self) -> int:
        return self.rows * self.threads // 4


# For networks of which few neurons are near; for the same with room for many active ones; for those of which up to 512
# are near; and for any others, if they are not so large that several blocks have one.
GEOMETRIES: dict[np.dtype, tuple[Geometry, ...]] = {
    np.dtype(np.float32): (
        Geometry(128, 8, 8, 96, blocks=2),
        Geometry(256, 4, 16, 176),
        Geometry(256, 8, 8, 96),
        Geometry(512, blocks=2),
    ),
    np.dtype(np.float64): (
        Geometry(128, 8, 4, 32, blocks=2),
        Geometry(256, 4, 8, 80),
        Geometry(256, 8, 4, 32),
        Geometry(512, blocks=2),
    ),
}


SHARED_FIXED = 2048  # bytes of shared memory besides those per row and slot


def geometries(block: int, multiprocessor: int) -> dict[np.dtype, tuple[Geometry, ...]]:
    """The geometries on a GPU with so many bytes of shared memory for a block and in a multiprocessor, of which each
    block takes 1024 more: with fewer slots there, if need be, or where none fit, that without any."""

    def fitted(geometry: Geometry, size: int, others: Geometry) -> Geometry:
        most = min(block, multiprocessor // geometry.blocks - 1024)
        per_row, per_slot = 12 + 8 * size, 16 + 2 * size + geometry.near_rows * size
        left = most - SHARED_FIXED - geometry.near_rows * per_row - 4 * geometry.columns * (16 + 2 * size)
        slots = min(geometry.shared_slots, left // per_slot // 16 * 16)
        return geometry._replace(shared_slots=slots) if slots >= 16 else others

    return {
        dtype: (*(fitted(one, dtype.itemsize, of[-1]) for one in of[:-1]), of[-1]) for dtype, of in GEOMETRIES.items()
    }


LARGE = 1024  # neurons from which on several blocks share a network
SHARED_BY = Geometry(128, blocks=4)  # so many, a power of 2, as there is room for


class Program(NamedTuple):
    """A compiled program, and how many bytes of memory a block of it, or several together, work in."""

    function: Any
    memory: int


def record(dtype: np.dtype) -> np.dtype:
    fields = [*((name, np.int64) for name in COUNTS), *((name, np.uint64) for name in ARRAYS)]
    return np.dtype([*fields, *((name, dtype) for name in REALS)], align=True)


def source(words: str, classes: tuple[type, type, type], dtype: np.dtype, geometry: Geometry) -> str:
    """The whole program, in these words: those of CUDA, or those of an emulation on a CPU."""
    real = "float" if dtype == np.float32 else "double"
    sizes = {"THREADS": geometry.threads * geometry.wide, "WIDE": geometry.wide, "BLOCKS": geometry.blocks}
    sizes["RESIDENT"] = int(geometry.rows > 0)
    sizes |= {"ROWS": geometry.rows, "COLUMNS": geometry.columns, "SHARED_SLOTS": geometry.shared_slots}
    translated = []
    for kind, cls in zip(("dynamics", "schedule", "rule"), classes, strict=True):
        sizes[f"{kind.upper()}_CONSTANTS"] = max(1, len(equations.field_names(cls)))
        translated.append(translate.functions(kind, cls))
    fields = [f"long long {name};" for name in COUNTS] + [f"{kind}* {name};" for name, kind in ARRAYS.items()]
    fields += [f"real {name};" for name in REALS]
    parts = ("columns", "steps", "resident", "advance") if geometry.rows else ("columns", "steps", "advance")
    return "\n".join(
        [
            *(f"#define {name} {size}" for name, size in sizes.items()),
            f"typedef {real} real;",
            words,
            "struct Net {",
            *fields,
            "};",
            translate.FUNCTIONS,
            *translated,
            *map(text, parts),
        ]
    )


def text(name: str) -> str:
    return _text(f"{name}.cu")


def words() -> str:
    """Those of CUDA."""
    return _text("cuda.h")


@cache
def _text(file: str) -> str:
    return Path(__file__).with_name(file).read_text(encoding="utf-8")


def classes_of(network: Network) -> tuple[type, type, type]:
    return type(network.dynamics), type(network.schedule), type(network.rule)
