"""What the cpu engine writes in the compiler's own language: its innermost loops, places in memory, calls by address.

Numba's own vectors keep sums in memory and go through them once for each few columns. With the sums in
vector registers a loop is limited by reading the columns alone, which is twice as fast.
"""

from contextlib import contextmanager

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

VECTOR = 64  # bytes; where the machine's vectors are shorter, the compiler takes several
INDEX = ir.IntType(64)


class Tile:
    """So many vectors of sums, in registers."""

    def __init__(self, context, builder, place, vectors):
        number = place.type.pointee
        self.builder, self.vectors, self.size = builder, vectors, context.get_abi_sizeof(number)
        self.lanes = VECTOR // self.size
        self.vector = ir.VectorType(number, self.lanes)
        self.nothing, self.zero = ir.Constant(self.vector, ir.Undefined), ir.Constant(self.vector, [0.0] * self.lanes)
        kind, name = ir.FunctionType(self.vector, [self.vector] * 3), f"llvm.fma.v{self.lanes}f{8 * self.size}"
        self.multiply_add = cgutils.get_or_insert_function(builder.module, kind, name)

    def zeros(self):
        return [cgutils.alloca_once_value(self.builder, self.zero) for _ in range(self.vectors)]

    def at(self, place, v):
        place = self.builder.gep(place, [INDEX(v * self.lanes)])
        return self.builder.bitcast(place, self.vector.as_pointer())

    def load(self, place):
        parts = (self.builder.load(self.at(place, v), align=self.size) for v in range(self.vectors))
        return [cgutils.alloca_once_value(self.builder, part) for part in parts]

    def store(self, totals, place):
        for v, total in enumerate(totals):
            self.builder.store(self.builder.load(total), self.at(place, v), align=self.size)

    def add_column(self, place, factors_and_totals):
        """For each pair: totals += factor · what is at this place, which is read once."""
        to_all = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [0] * self.lanes)
        spread = []
        for factor, _ in factors_and_totals:
            first = self.builder.insert_element(self.nothing, factor, INDEX(0))
            spread.append(self.builder.shuffle_vector(first, self.nothing, to_all))
        for v in range(self.vectors):
            part = self.builder.load(self.at(place, v), align=self.size)
            for factor, (_, totals) in zip(spread, factors_and_totals, strict=True):
                new = self.builder.call(self.multiply_add, [part, factor, self.builder.load(totals[v])])
                self.builder.store(new, totals[v])


@intrinsic(prefer_literal=True)
def sum_tile(context, C, width, y, new, before, after, own, last, now, then, vectors):
    """now += C @ y over the columns before … after and own … last, and then = C @ new over the columns
    before … after, which are read once for both; C, now and then begin at the first of so many vectors of rows.
    """
    signature = types.void(C, types.int64, y, new, *[types.int64] * 4, now, then, vectors)

    def generate(context, builder, signature, values):
        C, width, y, new, before, after, own, last, now, then, _ = values
        tile = Tile(context, builder, C, vectors.literal_value)
        totals, next_totals = tile.load(now), tile.zeros()
        with cgutils.for_range_slice(builder, before, after, INDEX(1), intp=INDEX) as (j, _):
            factors = (builder.load(builder.gep(rates, [j])) for rates in (y, new))
            pairs = list(zip(factors, (totals, next_totals), strict=True))
            tile.add_column(builder.gep(C, [builder.mul(j, width)]), pairs)
        with cgutils.for_range_slice(builder, own, last, INDEX(1), intp=INDEX) as (j, _):
            y_j = builder.load(builder.gep(y, [j]))
            tile.add_column(builder.gep(C, [builder.mul(j, width)]), [(y_j, totals)])
        tile.store(totals, now)
        tile.store(next_totals, then)
        return context.get_dummy_value()

    return signature, generate


@intrinsic(prefer_literal=True)
def sum_columns(context, N, width, columns, count, rates, sums, apart, vectors, results):
    """sums_r = Σ_k rates_r[k] N[columns[k]] over so many columns, for so many vectors of rows and results r, which are
    `apart` from each other; the columns are read once.
    """
    signature = types.void(N, types.int64, columns, types.int64, rates, sums, types.int64, vectors, results)

    def generate(context, builder, signature, values):
        N, width, columns, count, rates, sums, apart, *_ = values
        tile = Tile(context, builder, N, vectors.literal_value)
        starts = [builder.mul(INDEX(r), apart) for r in range(results.literal_value)]
        totals = [tile.zeros() for _ in starts]
        with cgutils.for_range(builder, count, intp=INDEX) as loop:
            j = builder.load(builder.gep(columns, [loop.index]))
            factors = (builder.load(builder.gep(rates, [builder.add(start, loop.index)])) for start in starts)
            tile.add_column(builder.gep(N, [builder.mul(j, width)]), list(zip(factors, totals, strict=True)))
        for start, result in zip(starts, totals, strict=True):
            tile.store(result, builder.gep(sums, [start]))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def dot_vectors(context, a, b, count):
    """Σ_k a[k] b[k], in whole vectors."""
    signature = a.dtype(a, b, types.int64)

    def generate(context, builder, signature, values):
        a, b, count = values
        tile = Tile(context, builder, a, 1)
        (total,) = tile.zeros()
        with cgutils.for_range_slice(builder, INDEX(0), count, INDEX(tile.lanes), intp=INDEX) as (k, _):
            parts = [builder.load(tile.at(builder.gep(place, [k]), 0), align=tile.size) for place in (a, b)]
            builder.store(builder.call(tile.multiply_add, [*parts, builder.load(total)]), total)
        result, lanes = builder.load(total), tile.lanes
        while lanes > 1:  # the upper half onto the lower one: the order of the sum is the same everywhere
            lanes //= 2
            nothing = ir.Constant(result.type, ir.Undefined)
            places = (ir.Constant(ir.VectorType(ir.IntType(32), lanes), [*range(k, k + lanes)]) for k in (0, lanes))
            result = builder.fadd(*(builder.shuffle_vector(result, nothing, half) for half in places))
        return builder.extract_element(result, INDEX(0))

    return signature, generate


@intrinsic
def list_positive(context, values, count, indices):
    """List where values are above 0, in whole vectors; how many there are. Few are: a vector without any costs a
    comparison."""
    signature = types.int64(values, types.int64, indices)

    def generate(context, builder, signature, arguments):
        values, count, indices = arguments
        tile = Tile(context, builder, values, 1)
        bits = ir.IntType(tile.lanes)
        found = cgutils.alloca_once_value(builder, INDEX(0))
        marks = cgutils.alloca_once_value(builder, bits(0))
        with cgutils.for_range_slice(builder, INDEX(0), count, INDEX(tile.lanes), intp=INDEX) as (k, _):
            part = builder.load(tile.at(builder.gep(values, [k]), 0), align=tile.size)
            builder.store(builder.bitcast(builder.fcmp_ordered(">", part, tile.zero), bits), marks)
            with _while_not_zero(builder, marks, bits):
                left, number = builder.load(marks), builder.load(found)
                first = builder.cttz(left, ir.IntType(1)(1))
                builder.store(builder.add(k, builder.zext(first, INDEX)), builder.gep(indices, [number]))
                builder.store(builder.add(number, INDEX(1)), found)
                builder.store(builder.and_(left, builder.sub(left, bits(1))), marks)
        return builder.load(found)

    return signature, generate


@contextmanager
def _while_not_zero(builder, place, kind):
    """Repeat while what is at this place is not 0."""
    test, body, end = (builder.append_basic_block(name) for name in ("while.test", "while.body", "while.end"))
    builder.branch(test)
    builder.position_at_end(test)
    builder.cbranch(builder.icmp_unsigned("!=", builder.load(place), kind(0)), body, end)
    builder.position_at_end(body)
    yield
    builder.branch(test)
    builder.position_at_end(end)


@intrinsic
def row(context, base, index, width):
    """The place where a row of so many begins."""
    signature = base(base, types.int64, types.int64)

    def generate(context, builder, signature, values):
        return builder.gep(values[0], [builder.mul(values[1], values[2])])

    return signature, generate


@intrinsic
def rows_of(context, base, width, which):
    """The places where these rows begin."""
    signature = types.UniTuple(base, len(which))(base, types.int64, which)

    def generate(context, builder, signature, values):
        base, width, which = values
        parts = zip(signature.args[2], cgutils.unpack_tuple(builder, which), strict=True)
        indices = (context.cast(builder, index, kind, types.int64) for kind, index in parts)
        places = [builder.gep(base, [builder.mul(index, width)]) for index in indices]
        return context.make_tuple(builder, signature.return_type, places)

    return signature, generate


@intrinsic
def address(context, place):
    signature = types.int64(place)

    def generate(context, builder, signature, values):
        return builder.ptrtoint(values[0], INDEX)

    return signature, generate


def place_of(kind):
    """A function that makes a place for numbers of this kind of an address."""
    pointer = types.CPointer(kind)

    @intrinsic
    def place(context, address):
        def generate(context, builder, signature, values):
            return builder.inttoptr(values[0], context.get_value_type(pointer))

        return pointer(types.int64), generate

    return place


@intrinsic
def call_at(context, address, given):
    """Call the compiled function at this address with these numbers and places."""
    signature = types.void(types.int64, given)

    def generate(context, builder, signature, values):
        arguments = cgutils.unpack_tuple(builder, values[1])
        kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
        builder.call(builder.inttoptr(values[0], kind.as_pointer()), arguments)
        return context.get_dummy_value()

    return signature, generate
