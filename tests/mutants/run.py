"""Do the tests notice? Change one place of a module at a time, in a copy of the tree, and run the tests meant for it.

`python tests/mutants/run.py [module …]` prints how many mutants the tests kill, and the survivors for which
survivors.md has no reason; if there are any, it fails. Cosmic Ray makes the mutants (`make mutants` installs it). A
fork of this process, which has imported all packages that the tests need but asynchebb, runs the tests on each.
"""

import ast
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, Phase, settings

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LOG = 4000  # the last characters of what tests print
LIMIT = 120, 10  # a mutant hangs after so many seconds, or so many times those of all tests
ENDS = ("killed", "survived", "hung")
# Cosmic Ray replaces each operator by all others. One or two of them say whether a test looks.
BINARY = [
    "Add_Sub",
    "Sub_Add",
    "Mul_Div",
    "Div_Mul",
    "FloorDiv_Mul",
    "Mod_Mul",
    "Pow_Mul",
    "BitAnd_BitOr",
    "BitOr_BitAnd",
]
COMPARISONS = [
    "Eq_NotEq",
    "Eq_GtE",
    "Eq_LtE",
    "NotEq_Eq",
    "NotEq_Gt",
    "NotEq_Lt",
    "Gt_GtE",
    "Gt_LtE",
    "GtE_Gt",
    "GtE_Lt",
]
COMPARISONS += ["Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Is_IsNot", "IsNot_Is"]
OPERATORS = [
    *(f"ReplaceBinaryOperator_{pair}" for pair in BINARY),
    *(f"ReplaceComparisonOperator_{pair}" for pair in COMPARISONS),
    *(f"ReplaceUnaryOperator_Delete_{sign}" for sign in ("Not", "USub", "Invert")),
    *(
        "NumberReplacer",
        "AddNot",
        "ReplaceAndWithOr",
        "ReplaceOrWithAnd",
        "ReplaceTrueWithFalse",
        "ReplaceFalseWithTrue",
    ),
    *("RemoveDecorator", "ExceptionReplacer", "ReplaceBreakWithContinue", "ReplaceContinueWithBreak"),
    "ZeroIterationForLoop",
]
# The tests that are meant for each module, by their files and by what pytest chooses of them (-k). All of a module's
# take a few seconds at most.
TESTS = {
    "rules.py": (
        "contracts model pinned",
        "constant or no_part or pairs_of or version or defaults or (reference and printed)",
    ),
    "schedules.py": (
        "contracts model spiking pinned bad_input",
        "version or defaults or no_part or steps_are or gate_opens or constant or Bursts or (reference and last_step)",
    ),
    "reproduction/claims.py": ("experiments", "a_claim or overall or readings_that"),
    "reproduction/results.py": ("margins results experiments", "margin or results or fate or products"),
    "metrics.py": ("metrics", "not cpu and not gpu and not matrix_of_errors"),
    "provenance.py": (
        "identities provenance from_rest pinned",
        "identities or code_is or an_identity or runs_kept or of_this",
    ),
    "sources.py": ("identities sources", "not every_python and not in_a_script"),
    "notation.py": ("notation files_are_data", "notation or person"),
    "live_page/server.py": (
        "live live_attacks",
        "without_the_token or a_download_is or another_name or of_this_machine or public_address or for_other "
        "or files_say or ninth or invalid_message or of_our_own",
    ),
    "files.py": ("file_helpers files", "helpers or json or fails or a_seal"),
}

# Where only some functions of a module are mutated: what lets somebody in, or not.
WITHIN = {
    "live_page/server.py": r"hostname|checked_url|Server\.(_application|_may|_static|_download|_websocket|_receive)\b.*"
}

# Mutations that operators do not make: a file, a text in it and another one, and the tests that are to notice.
BY_HAND = [
    ("reproduction/results.py", '_bars"] > 0.5)', '_bars"] > 0.3)', "margins", "1a"),
    ("reproduction/results.py", ">= 4 * v[", ">= 2 * v[", "margins", "1a"),
    ("reproduction/experiments/fig2.py", "v.r_r_500_W >= 0.8", "v.r_r_500_W >= 0.6", "margins", "2d"),
    ("runs/simulate.py", "_rng(run, 1, phase, k)", "_rng(run, 1, k)", "pinned", "version"),
    ("reproduction/experiments/spiking/counting.py", ".sum(axis=2) ** 2)", ".sum(axis=2) ** 1)", "counting", ""),
    ("reproduction/effort.py", "* 1e7 / 3600", "* 1e7 / 60", "counting", ""),
    ("dynamics.py", "(y_i > 7.888609052210118e-31)", "(y_i > 1e-12)", "spiking", "smallest and reference"),
    ("rules.py", "return y_i * y_i", "return y_i", "model", "printed and reference"),
    ("schedules.py", "(c_i > self.r_r)", "(c_i >= self.r_r)", "model", "r_r_plus_2 and reference"),
    ("metrics.py", ".clip(-1, 1)", "", "metrics", "parallel"),
    ("runs/recording.py", 'if dataset.attrs["identity"] != run.identity:', "if False:", "runs", "finished"),
    ("files.py", "            os.fsync(descriptor)\n", "            pass\n", "files", "fails"),
    ("files.py", "        temporary.unlink(missing_ok=True)", "        pass", "files", "fails"),
    ("files.py", "os.posix_fallocate(file.fileno(), 0, size)", "pass", "file_helpers", "room_is_taken"),
    ("sweeps/folder.py", "if time.time() - claim.stat().st_mtime > SILENCE:", "if False:", "sweeps", "a_claim"),
    ("sweeps/folder.py", " if one not in shared)", ")", "sweeps", "status_export"),
    ("live_page/server.py", "if len(self.clients) >= MOST_CLIENTS:", "if False:", "live", "ninth"),
    ("live_page/server.py", """f"{POLICY}; frame-ancestors 'self'\"""", "POLICY", "live", "files_say"),
    ("live_page/server.py", ' or origin not in (f"http://{host}", f"https://{host}")', "", "live", "without_the_token"),
    ("live_page/server.py", 'if site not in ("same-origin", "none"):', "if False:", "live", "a_download_is"),
    ("live_page/server.py", "if hostname(host) in names:", "if True:", "live", "another_name"),
    (
        "estimators/model_file.py",
        '*json.loads(text["sample"])',
        'json.loads(text["sample"])[0]',
        "readout",
        "a_model_file",
    ),
    (
        "estimators/hebbian.py",
        ', invalid="ignore"), _uninterrupted():',
        ', invalid="ignore"):',
        "estimators",
        "the_engine",
    ),
    ("estimators/hebbian.py", "if largest > TOO_STRONG:", "if largest > 10 * TOO_STRONG:", "estimators", "as_strong"),
]


class Mutant(NamedTuple):
    where: str  # the function or class
    before: str  # the lines that change, without indentation
    after: str
    code: str  # of the whole module

    @property
    def line(self) -> str:
        """How survivors.md lists it."""
        return f"- {self.where}: ``{self.before}`` → ``{self.after}``"


def mutants(module: Path) -> Iterator[Mutant]:
    """All of a module, but those in annotations, which nothing evaluates."""
    from cosmic_ray.ast import get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    code = module.read_text(encoding="utf-8")
    unseen = [*_annotations(code)]
    for name in OPERATORS:
        operator = get_operator(f"core/{name}")()
        for number, (start, end) in enumerate(_positions(operator, get_ast(code))):
            if not any(first <= start and end <= last for first, last in unseen):
                mutated = mutate_code(code, operator, number)
                yield Mutant(_definition(code, start[0]), *_difference(code, mutated), mutated)


def _positions(operator, node):
    """In the order in which Cosmic Ray numbers them."""
    yield from operator.mutation_positions(node)
    for child in getattr(node, "children", ()):
        yield from _positions(operator, child)


def _annotations(code: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    assert "from __future__ import annotations" in code
    for node in ast.walk(ast.parse(code)):
        for name in ("annotation", "returns"):
            if (found := getattr(node, name, None)) is not None:
                yield (found.lineno, found.col_offset), (found.end_lineno, found.end_col_offset)


def _definition(code: str, line: int) -> str:
    """The innermost class and function around this line, or its decorators."""
    names = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first <= line <= node.end_lineno:
                names.append(node.name)
    return ".".join(names) or "module"


def _difference(code: str, mutated: str) -> tuple[str, str]:
    before, after = code.splitlines(), mutated.splitlines()
    while before and after and before[0] == after[0]:
        del before[0], after[0]
    while before and after and before[-1] == after[-1]:
        del before[-1], after[-1]
    return tuple(" ".join(filter(None, map(str.strip, lines))) for lines in (before, after))


def test(tree: Path, arguments: Sequence[str], limit: float, writes: bool = True) -> tuple[int, str, set[str]]:
    """Run pytest in a fork: its exit status, or -1 after so many seconds, what it printed, and what it imported.

    A mutant writes no bytecode: that of two mutants of one second could not be told apart.
    """
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as imported:
        child = os.fork()
        if not child:
            _in_child(tree, arguments, printed, imported, writes)
        watched = os.pidfd_open(child)
        ended, *_ = select.select([watched], [], [], limit)
        os.close(watched)
        if not ended:
            os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        for file in (printed, imported):
            file.seek(0)
        code = os.waitstatus_to_exitcode(status) if ended else -1
        return code, printed.read()[-LOG:], {*imported.read().split()}


def _in_child(tree, arguments, printed, imported, writes):
    status = 99
    try:
        os.setpgid(0, 0)
        sys.dont_write_bytecode = not writes
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
        os.chdir(tree)
        sys.path.insert(0, str(tree))
        import pytest

        options = ["-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=short", "-W", "ignore"]
        options += ["--hypothesis-profile", "mutants"]
        status = int(pytest.main([*options, *arguments]))
        imported.write(" ".join(sys.modules))
        imported.flush()
        sys.stdout.flush()
    finally:
        os._exit(status)


def copy(to: Path) -> Path:
    """The files that git knows, as they are now."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file() and not name.startswith("docs/images"):
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    return to


def listed(module: str) -> set[str]:
    """The survivors of a module for which survivors.md has a reason."""
    text = (HERE / "survivors.md").read_text(encoding="utf-8")
    section = re.search(rf"^## {re.escape(module)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    return {line for line in section[1].splitlines() if line.startswith("- ")} if section else set()


def run(module: str, tree: Path) -> tuple[list[str], Counter[str]]:
    """The survivors without a reason, and how many mutants had which end."""
    began = time.perf_counter()
    prepared = prepare(tree, *TESTS[module])
    print(f"{module}: its tests take {time.perf_counter() - began:.1f} s", flush=True)
    file, survivors, ends, killers = tree / "asynchebb" / module, set(), Counter(), Counter()
    within = WITHIN.get(module, ".*")
    for mutant in (one for one in mutants(file) if re.fullmatch(within, one.where)):
        end, killer = tried(tree, file, mutant.code, *prepared)
        ends[end] += 1
        if killer:
            killers[killer] += 1
        if end == "survived":
            survivors.add(mutant.line)
            if mutant.line not in listed(module):
                print(mutant.line, flush=True)
    for line in sorted(listed(module) - survivors):
        print(f"survivors.md has a mutant that is no longer there, or no longer survives: {line}")
    prepare(tree, *TESTS[module])  # or what killed mutants may have been something else
    print(f"{module}: {dict(ends)} in {time.perf_counter() - began:.0f} s", flush=True)
    for killer, count in killers.most_common():
        print(f"{count:5} by {killer}")
    return sorted(survivors - listed(module)), ends


def run_by_hand(tree: Path) -> tuple[list[str], Counter[str]]:
    survivors, ends = [], Counter()
    for name, before, after, *tests in BY_HAND:
        file = tree / "asynchebb" / name
        code, prepared = file.read_text(encoding="utf-8"), prepare(tree, *tests)
        assert before in code, f"{name} has no {before!r}"
        end, killer = tried(tree, file, code.replace(before, after, 1), *prepared)
        ends[end] += 1
        print(f"{end}: {name}: {before.strip()!r} → {after.strip()!r} {killer}", flush=True)
        survivors += [before] if end == "survived" else []
    return survivors, ends


def prepare(tree: Path, files: str, chosen: str) -> tuple[list[str], float]:
    """Run these tests without a mutation, and import what they have imported: the arguments for pytest, and how many
    seconds a mutant may take."""
    arguments = [*(f"tests/test_{name}.py" for name in files.split()), "-k", chosen]
    began = time.perf_counter()
    code, printed, names = test(tree, arguments, 600)
    limit = max(LIMIT[0], LIMIT[1] * (time.perf_counter() - began))
    if code:
        sys.exit(f"{files} -k {chosen!r}: the tests fail without a mutation\n{printed}")
    ours = "asynchebb|conftest|test|pinned|__main__|emulated|flips|hostile|against_reference"
    loops = (
        "_?asyncio|anyio|uvicorn|starlette|websockets|distributed|tornado|ipykernel|IPython|zmq"  # a fork spoils them
    )
    here = re.compile(f"{ours}|{loops}")
    for name in sorted(names):
        if not here.match(name):
            with suppress(Exception):
                import_module(name)
    return arguments, limit


def tried(tree: Path, file: Path, code: str, arguments: Sequence[str], limit: float) -> tuple[str, str]:
    """What became of this code in the place of the file's, and the test that it failed."""
    whole = file.read_text(encoding="utf-8")
    for bytecode in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
        bytecode.unlink()
    file.write_text(code, encoding="utf-8")
    status, printed, _ = test(tree, arguments, limit, writes=False)
    file.write_text(whole, encoding="utf-8")
    failed = re.search(r"^(?:FAILED|ERROR) (?:tests/)?(\S+?)(?:\[|$|\s)", printed, re.M)
    return "hung" if status < 0 else "killed" if status else "survived", failed[1] if failed else ""


def main(modules: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        tree, new = copy(Path(folder)), []
        table = [f"| module | mutants | {' | '.join(ENDS)} |", "| --- " * (2 + len(ENDS)) + "|"]
        for module in modules or [*TESTS, "by hand"]:
            found, ends = run_by_hand(tree) if module == "by hand" else run(module, tree)
            new += found
            table.append(f"| {module} | {ends.total()} | {' | '.join(str(ends[end]) for end in ENDS)} |")
        print("\n".join(table))
    return bool(new)


# A mutant must not be killed by a slow machine, nor by what another one has left in Hypothesis's database.
settings.register_profile(
    "mutants",
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[*HealthCheck],
    phases=[Phase.explicit, Phase.generate],  # one failure is enough, however long
)

if __name__ == "__main__":
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    sys.exit(main(sys.argv[1:]))
