"""The engine's code for one network: what is written in CUDA C++, with the network's equations in it."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from asynchebb import equations
from asynchebb.engines.gpu import translate
from asynchebb.network import Network
from asynchebb.rules import Hebbian
from asynchebb.schedules import Frozen

# All that the kernel is told of a network: numbers, where arrays are (0: there is none), and reals.
COUNTS = (
    *("n", "m", "stride", "stimuli", "hold", "from_rest", "lazy", "all_near", "has_memory"),
    *("spiking", "noisy", "events", "window", "clock", "quiet", "open_from", "open_c", "holds"),
)
ARRAYS = {
    **dict.fromkeys(("W", "P", "X", "V", "numbers", "dynamics", "schedule", "rule"), "real"),
    **dict.fromkeys(("settled", "trace_y", "trace_means", "remembered"), "real"),
    **dict.fromkeys(("counts", "trace_updates", "trace_active", "fired"), "long long"),
    "lists": "int",
    **dict.fromkeys(("truths", "recent", "trace_burst", "trace_spikes"), "unsigned char"),
    "meeting": "char",
}
REALS = ("floor", "smallest", "decay", "x_x", "sum_x")

# Rows of the arrays of numbers, counts, lists and truths, as `columns.cu` numbers them.
U, Y, A, H, NUMBER_ROWS = 0, 1, 2, 3, 17
C, SPIKES, COUNT_ROWS = 0, 1, 3
REMEMBERED = 8  # holds: see `fold.cu`
LIST_ROWS, TRUTH_ROWS = 5, 2


class Geometry(NamedTuple):
    """How a block is laid out: its threads, how many blocks share a multiprocessor, and how many run one network
    together. If awake neurons are run apart (`awake.cu`): how many neurons may be awake, how many columns of their
    weights are in registers, how many neurons may be near, for how many weights from those to these there is room, and
    for how many steps they are chosen. Or of how many blocks a cluster consists (`cluster.cu`)."""

    threads: int
    blocks: int = 1
    wide: int = 1
    slots: int = 0  # a multiple of 16, at most one per thread; none: all neurons are run step by step
    columns: int = 0  # a multiple of 16, and no more than slots
    near: int = 0  # a multiple of 4
    tile: int = 0
    spell: int = 0
    cluster: int = 0  # a power of 2


class Geometries(NamedTuple):
    """For networks of which few neurons are active; of which many are; and for any, if they are not so large that
    several blocks have one; and clusters, for networks of which so many are active that they are better run so."""

    few: Geometry
    many: Geometry
    all: Geometry
    clusters: tuple[Geometry, ...] = ()


FOR_FLOATS = Geometries(
    Geometry(128, blocks=2, slots=128, columns=112, near=256, spell=250),
    Geometry(256, slots=224, columns=192, near=256, spell=500),
    Geometry(512, blocks=2),
    tuple(Geometry(128, blocks=3, cluster=size) for size in (1, 2, 4, 8, 16)),
)
FOR_DOUBLES = Geometries(
    Geometry(256, slots=128, columns=64, near=256, spell=250),
    Geometry(256, slots=160, columns=64, near=256, spell=500),
    Geometry(512, blocks=2),
    tuple(Geometry(256, cluster=size) for size in (1, 2, 4, 8, 16)),
)
SHARED_FIXED = 3840  # bytes of shared memory besides those per slot and per near neuron

OWNED = 32  # neurons that each block of a cluster has
FIRST_WITH_CLUSTERS = 90  # compute capability 9.0
PORTABLE = 8  # blocks that a cluster may have on any card that has clusters
WITH_LARGER = range(90, 110)  # where it may have 16, if that is asked for


def geometries(block: int, multiprocessor: int, capability: int) -> dict[np.dtype, Geometries]:
    """The geometries on a GPU of this compute capability with so many bytes of shared memory for a block and in a
    multiprocessor, of which each block takes 1024 more: with one block there instead of two, if need be, or where they
    do not fit at all, others; and those clusters that fit."""

    def fitted(geometry: Geometry, size: int, others: Geometry) -> Geometry:
        most = min(block, multiprocessor // geometry.blocks - 1024) - SHARED_FIXED
        parts = min(4, geometry.threads // (-(-geometry.near // 128) * 32))
        most -= geometry.slots * (8 * size + 5) + geometry.near * (4 + 3 * size + 2 * parts * size)
        if (tile := most // size // 4 * 4) >= geometry.slots * geometry.near // 3:
            return geometry._replace(tile=tile)
        return fitted(geometry._replace(blocks=1), size, others) if geometry.blocks > 1 else others

    def held(geometry: Geometry, size: int) -> int:  # its rows of M, two sets of lists and of sums, and the rest
        lists = geometry.cluster * (OWNED * 2 * size + 16)
        return geometry.cluster * OWNED * OWNED * size + 2 * (lists + geometry.threads * size) + 1024

    found = {}
    for dtype, of in ((np.float32, FOR_FLOATS), (np.float64, FOR_DOUBLES)):
        size = np.dtype(dtype).itemsize
        few = fitted(of.few, size, of.all)
        many = fitted(of.many, size, few)
        most = 0 if capability < FIRST_WITH_CLUSTERS else 16 if capability in WITH_LARGER else PORTABLE
        clusters = tuple(one for one in of.clusters if one.cluster <= most and held(one, size) <= block)
        found[np.dtype(dtype)] = Geometries(few, many, of.all, clusters)
    return found


LARGE = 1024  # neurons from which on several blocks share a network
SHARED_BY = Geometry(128, blocks=4)  # so many, a power of 2, as there is room for


class Program(NamedTuple):
    """A compiled program, and how many bytes of memory a block of it, or several together, work in."""

    function: Any
    memory: int


def record(dtype: np.dtype) -> np.dtype:
    fields = [*((name, np.int64) for name in COUNTS), *((name, np.uint64) for name in ARRAYS)]
    return np.dtype([*fields, *((name, dtype) for name in REALS)], align=True)


@lru_cache(maxsize=256)
def source(words: str, classes: tuple[type, type, type], dtype: np.dtype, geometry: Geometry) -> str:
    """The whole program, in these words: those of CUDA, or those of an emulation on a CPU."""
    real = "float" if dtype == np.float32 else "double"
    sizes = {"THREADS": geometry.threads * geometry.wide, "WIDE": geometry.wide, "BLOCKS": geometry.blocks}
    sizes |= {"FEW": int(geometry.slots > 0), "LARGE": LARGE, "REMEMBERED": REMEMBERED}
    if geometry.slots:
        sizes |= {"SLOTS": geometry.slots, "COLUMNS": geometry.columns}
        sizes |= {"NEAR": geometry.near, "TILE": geometry.tile, "SPELL": geometry.spell}
    sizes |= {"CLUSTER": max(1, geometry.cluster), "OWNED": OWNED}
    translated = []
    for kind, cls in zip(("dynamics", "schedule", "rule"), classes, strict=True):
        sizes[f"{kind.upper()}_CONSTANTS"] = max(1, len(equations.field_names(cls)))
        translated.append(translate.functions(kind, cls))
    fields = [f"long long {name};" for name in COUNTS] + [f"{kind}* {name};" for name, kind in ARRAYS.items()]
    fields += [f"real {name};" for name in REALS]
    last = ("cluster",) if geometry.cluster else ("awake", "advance") if geometry.slots else ("advance",)
    parts = ("columns", "fold", "steps", *last)
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
    """Those of its dynamics, schedule and rule. What rule a frozen network has makes no difference, so all of them have
    one program."""
    rule = Hebbian if isinstance(network.schedule, Frozen) else type(network.rule)
    return type(network.dynamics), type(network.schedule), rule
