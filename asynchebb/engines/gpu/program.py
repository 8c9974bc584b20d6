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
    *("n", "m", "stride", "stimuli", "hold", "from_rest", "has_memory"),
    *("spiking", "noisy", "events", "window", "clock", "quiet", "open_from", "open_c", "holds", "shown"),
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
U, Y, A, H, NUMBER_ROWS = 0, 1, 2, 7, 17
C, SPIKES, COUNT_ROWS = 0, 1, 2
REMEMBERED = 16  # holds, a power of 2: see `fold.cu`
LIST_ROWS, TRUTH_ROWS = 5, 3


class Geometry(NamedTuple):
    """How a block is laid out: its threads, how many blocks share a multiprocessor, and how many run one network
    together. Where near neurons are run apart (`near.cu`), how many of them may be active; where awake ones are
    (`awake.cu`), how many may be, and when sleepers are looked after; in both cases, how many weights a thread keeps in
    registers. Or of how many blocks a cluster consists (`cluster.cu`)."""

    threads: int
    blocks: int = 1
    wide: int = 1
    columns: int = 0
    idle: int = 0  # and how many more may become active than there are threads
    slots: int = 0  # at most two per thread; if there are neither columns nor slots, all neurons are run step by step
    registers: int = 0
    floor: float = 0  # a rate that falls below so much of what it was,
    foreseen: int = 32  # or for so many steps as it does now, ends a block;
    floors: int = 1  # there may be another floor, for short blocks
    wakes: int = 8  # so many may be woken for a longer block
    neurons: int = 0  # at most
    cluster: int = 0  # a power of 2

    @property
    def rows(self) -> int:
        """Neurons that may become active, at most."""
        return self.threads + self.idle

    @property
    def apart(self) -> bool:
        """Are few neurons run apart?"""
        return self.columns > 0 or self.slots > 0


class Geometries(NamedTuple):
    """For networks of which few neurons are active; of which more are, or all at first; of which many are; and for any,
    if they are not so large that several blocks have one; and clusters, for networks of which so many are active that
    they are better run so."""

    few: Geometry
    more: Geometry
    many: Geometry
    all: Geometry
    clusters: tuple[Geometry, ...] = ()
    large: tuple[Geometry, ...] = ()  # instead of the first and the third, for more neurons


FOR_FLOATS = Geometries(
    Geometry(128, blocks=2, columns=112, idle=160, registers=112),
    Geometry(256, slots=256, registers=160, floor=0.98, floors=2, wakes=48),
    Geometry(256, columns=256, registers=160),
    Geometry(512, blocks=2),
    tuple(Geometry(128, blocks=3, cluster=size) for size in (1, 2, 4, 8, 16)),
    (
        Geometry(256, columns=112, idle=256, registers=112),
        Geometry(256, slots=256, registers=160, floor=0.95, wakes=40),
    ),
)
FOR_DOUBLES = Geometries(
    Geometry(128, columns=112, idle=128, registers=64),
    Geometry(128, slots=160, registers=64, floor=0.98, foreseen=24, floors=2, wakes=24),
    Geometry(256, columns=256, registers=64),
    Geometry(512, blocks=2),
    tuple(Geometry(256, cluster=size) for size in (1, 2, 4, 8, 16)),
    (
        Geometry(128, columns=112, idle=192, registers=64),
        Geometry(256, slots=160, registers=64, floor=0.95),
    ),
)
FOR_SMALL_CARDS = Geometry(128, slots=128, registers=64, floor=0.95, wakes=4)  # instead of the first
FEWEST_COLUMNS = 64  # with which it pays to run near neurons apart
LARGE = 1024  # neurons from which on several blocks share a network
HALF_LARGE = LARGE // 2  # those of which each block has less to keep

OWNED = 32  # neurons that each block of a cluster has
FIRST_WITH_CLUSTERS = 90  # compute capability 9.0
PORTABLE = 8  # blocks that a cluster may have on any card that has clusters
WITH_LARGER = range(90, 110)  # where it may have 16, if that is asked for


def geometries(block: int, multiprocessor: int, capability: int) -> dict[tuple[np.dtype, int], Geometries]:
    """The geometries, for numbers of this type and networks of at most so many neurons, on a GPU of this compute
    capability with so many bytes of shared memory for a block and in a multiprocessor, of which each block takes 1024
    more: with fewer columns or slots, if need be, or one block there instead of two, or where too few of them fit,
    others; and those clusters that fit."""

    def fitted(geometry: Geometry, neurons: int, size: int, others: Geometry) -> Geometry:
        """With as many columns or slots as there is room for."""
        for blocks in (geometry.blocks, 1):
            room, found = min(block, multiprocessor // blocks - 1024), geometry._replace(blocks=blocks, neurons=neurons)
            fewer = [found._replace(columns=columns) for columns in range(geometry.columns, FEWEST_COLUMNS - 1, -16)]
            if geometry.slots:
                fewer = [found._replace(slots=slots) for slots in range(geometry.slots, geometry.slots // 2 - 1, -8)]
            for one in fewer:
                if bytes_needed(one, size) <= room:
                    return one
        return others

    def held(geometry: Geometry, size: int) -> int:  # its rows of M, two sets of lists and of sums, and the rest
        lists = geometry.cluster * (OWNED * 2 * size + 16)
        return geometry.cluster * OWNED * OWNED * size + 2 * (lists + geometry.threads * size) + 1024

    found = {}
    for dtype, of in ((np.float32, FOR_FLOATS), (np.float64, FOR_DOUBLES)):
        size = np.dtype(dtype).itemsize
        most = 0 if capability < FIRST_WITH_CLUSTERS else 16 if capability in WITH_LARGER else PORTABLE
        clusters = tuple(one for one in of.clusters if one.cluster <= most and held(one, size) <= block)
        for neurons in (HALF_LARGE, LARGE):
            first, third = (of.few, of.many) if neurons < LARGE else of.large
            few = fitted(first, neurons, size, fitted(FOR_SMALL_CARDS, neurons, size, of.all))
            more, many = fitted(of.more, neurons, size, few), fitted(third, neurons, size, few)
            found[np.dtype(dtype), neurons] = Geometries(few, more, many, of.all, clusters)
    return found


def bytes_needed(geometry: Geometry, size: int) -> int:
    """The shared memory that a block takes where few neurons are run apart, with numbers of so many bytes; at most."""
    return _bytes_of_near(geometry, size) if geometry.columns else _bytes_of_awake(geometry, size)


def _bytes_of_near(geometry: Geometry, size: int) -> int:
    threads, columns, neurons = geometry.threads, geometry.columns, geometry.neurons
    in_tile = 16 + max(0, columns - geometry.registers)
    weights = (in_tile * threads + columns * (geometry.idle + 1)) * size
    columns += 16  # where they are crowded
    per_neuron, per_row, per_column = 8 * size + 8 + 2 + 2 + 2 + 1 + 1, 4 + 1, 2 + 4 * size
    per_thread, pixels = 4 + size, 256 * (4 + size + 1)
    every = neurons * per_neuron + geometry.rows * per_row + threads * per_thread + columns * per_column + pixels
    return weights + every + geometry.idle * size + 2048


def _bytes_of_awake(geometry: Geometry, size: int) -> int:
    slots, sharers = geometry.slots, max(1, geometry.threads // 128)
    padded, parts = (slots + 15) // 16 * 16, 1 + geometry.floors  # of rates, two sets; of their sums and floors
    per_slot = slots * (9 * size + 8 + 2 * 4 + 1) + ((2 + parts) * padded + 32) * size + 20 * sharers * 4
    acts = (slots + 20 * sharers) * 4 * size + sharers * parts * geometry.neurons * size
    tile = (((slots + 3) // 8 * 8 + 4) * slots + 64) * size
    return tile + acts + per_slot + geometry.neurons * (4 + 3 * size) + 1024


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
    sizes: dict[str, int | str] = {"THREADS": geometry.threads * geometry.wide, "WIDE": geometry.wide}
    sizes |= {"BLOCKS": geometry.blocks}
    sizes |= {"FEW": int(geometry.apart), "LARGE": LARGE, "REMEMBERED": REMEMBERED, "COLUMNS": geometry.columns}
    if geometry.apart:
        sizes |= {"REGISTERS": geometry.registers, "NEURONS": geometry.neurons}
    if geometry.columns:
        sizes |= {"IDLE": geometry.idle, "IN_REGISTERS": min(geometry.registers, geometry.columns)}
    if geometry.slots:
        sizes |= {"SLOTS": geometry.slots, "FLOOR": f"((real){geometry.floor})", "FORESEEN": geometry.foreseen}
        sizes |= {"FEW_WAKE": geometry.wakes, "FLOORS": geometry.floors}
    sizes |= {"CLUSTER": max(1, geometry.cluster), "OWNED": OWNED}
    translated = []
    for kind, cls in zip(("dynamics", "schedule", "rule"), classes, strict=True):
        sizes[f"{kind.upper()}_CONSTANTS"] = max(1, len(equations.field_names(cls)))
        translated.append(translate.functions(kind, cls))
    fields = [f"long long {name};" for name in COUNTS] + [f"{kind}* {name};" for name, kind in ARRAYS.items()]
    fields += [f"real {name};" for name in REALS]
    parts = ["columns", "fold", "steps"]
    if geometry.cluster:
        parts += ["cluster"]
    elif geometry.columns:
        parts += ["silent", "near", "rows", "idle", "fetch", "follow", "turns", "advance"]
    elif geometry.slots:
        parts += ["silent", "awake", "asleep", "few", "turns", "advance"]
    else:
        parts += ["advance"]
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
