"""What the cpu engine writes in the compiler's own language: its innermost loop, and the call of a rule.

Numba's own vectors keep sums in memory and go through them once for each few columns. With the sums in
vector registers the loop is limited by reading the columns alone, which is twice as fast.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

VECTOR = 64  # bytes; where the machine's vectors are shorter, the compiler takes several


@intrinsic(prefer_literal=True)
def sum_columns(context, P, columns, y, count, backwards, first, vectors, sums):
    """sums[first:last] = Σ_j y_j P[j, first:last] over the first `count` of the columns j, or over them backwards.

    It is last = first + `vectors` vectors of VECTOR bytes; `vectors` is a number known when compiling.
    """
    signature = types.void(P, columns, y, types.int64, types.boolean, types.int64, vectors, sums)

    def generate(context, builder, signature, values):
        P, columns, y, sums = (context.make_array(signature.args[k])(context, builder, values[k]) for k in (0, 1, 2, 7))
        count, backwards, first = values[3], values[4], values[5]
        width = cgutils.unpack_tuple(builder, P.shape, 2)[1]
        number, index = P.data.type.pointee, ir.IntType(64)
        size = context.get_abi_sizeof(number)
        lanes = VECTOR // size
        vector = ir.VectorType(number, lanes)
        nothing, zero = ir.Constant(vector, ir.Undefined), ir.Constant(vector, [0.0] * lanes)
        to_all = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)

        def place(array, start, v):
            position = builder.add(start, index(v * lanes))
            return builder.bitcast(builder.gep(array.data, [position]), vector.as_pointer())

        name = f"llvm.fma.v{lanes}f{8 * size}"
        multiply_add = cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, [vector] * 3), name)
        totals = [cgutils.alloca_once_value(builder, zero) for _ in range(vectors.literal_value)]
        with cgutils.for_range(builder, count, intp=index) as loop:
            q = builder.select(backwards, builder.sub(builder.sub(count, index(1)), loop.index), loop.index)
            j = builder.load(builder.gep(columns.data, [q]))
            y_j = builder.load(builder.gep(y.data, [j]))
            y_j = builder.shuffle_vector(builder.insert_element(nothing, y_j, index(0)), nothing, to_all)
            start = builder.add(builder.mul(j, width), first)
            for v, total in enumerate(totals):
                part = builder.load(place(P, start, v), align=size)
                builder.store(builder.call(multiply_add, [part, y_j, builder.load(total)]), total)
        for v, total in enumerate(totals):
            builder.store(builder.load(total), place(sums, first, v), align=size)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def call_at(context, address, given):
    """Call the compiled function at this address with these numbers, and with the places where these arrays begin."""
    signature = types.void(types.int64, given)

    def generate(context, builder, signature, values):
        def passed(kind, value):
            return context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else value

        parts = cgutils.unpack_tuple(builder, values[1])
        arguments = [passed(*pair) for pair in zip(signature.args[1].types, parts, strict=True)]
        kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
        builder.call(builder.inttoptr(values[0], kind.as_pointer()), arguments)
        return context.get_dummy_value()

    return signature, generate
