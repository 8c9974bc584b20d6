"""Words that CUDA has in assembly, and the emulation, which other tests run on, in C++: both mean the same."""

import ctypes
import operator
import re
import subprocess

import emulated
import numpy as np

from asynchebb.engines.gpu import program

COMPARISONS = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq}


def definition(words, start):
    """The one function that starts so."""
    [found] = re.findall(rf"^{re.escape(start)}.*?^}}", words, re.MULTILINE | re.DOTALL)
    return found


def run_assembly(function, values):
    """Do what its assembly does to these values, by name: it compares (`setp`) and, under a condition, multiplies."""
    strings = re.findall(r'"((?:[^"\\]|\\.)*)"(?:\(([^()]*)\))?', function)
    code = "".join(text.replace("\\n", " ") for text, operand in strings if not operand)
    operands = [operand for _, operand in strings if operand]
    truths = {}
    for line in filter(None, (line.strip(" {}") for line in code.split(";"))):
        condition, word, given = re.fullmatch(r"(?:@(\w+) )?(\S+) (.*)", line).groups()
        to, *numbers = (operands[int(one[1:])] if one[0] == "%" else one for one in given.split(", "))
        match word.split("."):
            case ["", "reg"]:
                pass
            case ["setp", comparison, "u32"]:
                truths[to] = COMPARISONS[comparison](values[numbers[0]], values[numbers[1]])
            case ["mul", "ftz", "f32"] if truths[condition]:
                values[to] = values[numbers[0]] * values[numbers[1]]
            case ["mul", "ftz", "f32"]:
                pass
            case _:
                raise AssertionError(f"{line}: this test does not know it")


@emulated.needs_compiler
def test_four_numbers_are_multiplied_if_one_is_less_than_another(tmp_path):
    """In assembly, which no test without a GPU runs; in CUDA's C++; and in the emulation."""
    start = "DEVICE void multiply_if_less(unsigned a, unsigned b, {0}* x, const {0}* by)"
    in_assembly = definition(program.words(), start.format("float"))
    source, library = tmp_path / "words.cpp", tmp_path / "words.so"
    source.write_text(
        "#define DEVICE static inline\n#define UNROLL\n"
        f"namespace cuda {{ {definition(program.words(), start.format('double'))} }}\n"
        f"namespace host {{ {definition(emulated.Host.words, 'template <typename T> ' + start.format('T'))} }}\n"
        'extern "C" void run(unsigned a, unsigned b, double* x, double* z, const double* by)'
        "{ cuda::multiply_if_less(a, b, x, by), host::multiply_if_less(a, b, z, by); }\n"
    )
    subprocess.run([emulated.COMPILER, "-shared", "-fPIC", "-o", library, source], check=True)
    run, by = ctypes.CDLL(str(library)).run, np.arange(5.0, 9.0)
    for a, b in ((1, 2), (2, 2), (3, 2), (0, 2**32 - 1), (2**32 - 1, 0)):
        cuda, host = np.arange(1.0, 5.0), np.arange(1.0, 5.0)
        run(a, b, *(ctypes.c_void_p(array.ctypes.data) for array in (cuda, host, by)))
        values = {"a": a, "b": b, **{f"x[{e}]": 1.0 + e for e in range(4)}, **{f"by[{e}]": by[e] for e in range(4)}}
        run_assembly(in_assembly, values)
        expected = np.arange(1.0, 5.0) * (by if a < b else 1)
        assert np.array_equal(cuda, expected) and np.array_equal(host, expected)
        assert [values[f"x[{e}]"] for e in range(4)] == [*expected]
