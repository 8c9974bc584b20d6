"""Which module of the package imports which, types and imports inside functions included, as the source says.

`python tests/modules.py [folder of a package]` prints the graph of its rooms; `make graph` puts that of this package
into CONTRIBUTING.md. An arrow means "imports", and one that follows from others is left out.
"""

import ast
import sys
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "asynchebb"
CONTRIBUTING = PACKAGE.parent / "CONTRIBUTING.md"
BEGIN, END = "<!-- made by `make graph` -->\n", "\n<!-- up to here -->"  # around the graph in it
Graph = dict[str, set[str]]


def modules(package: Path = PACKAGE) -> dict[str, Path]:
    """The source of each module, by its name within the package; that of the package itself is empty."""
    return {
        ".".join(path.relative_to(package).with_suffix("").parts).removesuffix("__init__").removesuffix("."): path
        for path in sorted(package.rglob("*.py"))
    }


def graph(package: Path = PACKAGE) -> Graph:
    """Each module, and those of the package that it imports."""
    known = modules(package)
    return {name: {found for found in _imports(path, package.name, known)} - {name} for name, path in known.items()}


def _imports(path: Path, package: str, known: Mapping[str, Path]) -> Iterable[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if f"{alias.name}.".startswith(f"{package}."):
                    yield alias.name.removeprefix(package).removeprefix(".")
        elif isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"{package}."):
            within = str(node.module).removeprefix(package).removeprefix(".")
            for alias in node.names:
                full = f"{within}.{alias.name}".removeprefix(".")
                yield full if full in known else within


def rooms(of: Graph) -> Graph:
    """The same, of the entries at the top of the package; the package itself is left out."""
    found: Graph = {}
    for name, imported in of.items():
        if name:
            found.setdefault(name.partition(".")[0], set()).update(one.partition(".")[0] for one in imported if one)
    return {name: imported - {name} for name, imported in found.items()}


def cycle(of: Graph) -> list[str]:
    """One cycle, if there is any."""
    try:
        TopologicalSorter(of).prepare()
    except CycleError as error:
        return [*reversed(error.args[1])]
    return []


def reachable(of: Graph, name: str) -> set[str]:
    found: set[str] = set()
    left = [name]
    while left:
        for one in of[left.pop()] - found:
            found.add(one)
            left.append(one)
    return found


def reduced(of: Graph) -> Graph:
    """Without the arrows that follow from others; what imports each other in a circle is one."""
    while circle := {*cycle(of)}:
        whole = " and ".join(sorted(circle))
        merged: Graph = {}
        for name, imported in of.items():
            seen = {whole if one in circle else one for one in imported}
            merged.setdefault(whole if name in circle else name, set()).update(seen)
        of = {name: imported - {name} for name, imported in merged.items()}
    return {
        name: {one for one in imported if not any(one in reachable(of, other) for other in imported - {one})}
        for name, imported in of.items()
    }


def mermaid(of: Graph) -> str:
    drawn = sorted((name, one) for name, imported in reduced(of).items() for one in imported)
    lines = [f"    {name} --> {one}".replace(" and ", "_and_") for name, one in drawn]
    return "\n".join(["```mermaid", "graph TD", *lines, "```"])


def described(package: Path) -> str:
    """The graph of the rooms, and what can be counted of the modules."""
    whole = graph(package)
    arrows = sum(map(len, whole.values()))
    circle = " → ".join(cycle(whole)) or "none"
    counts = f"{len(whole)} modules, {len(rooms(whole))} entries at the top, {arrows} imports; cycles: {circle}."
    return f"{mermaid(rooms(whole))}\n\n{counts}"


def put_into(page: Path) -> None:
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    page.write_text(f"{before}{BEGIN}{described(PACKAGE)}{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        put_into(CONTRIBUTING)
    else:
        print(described(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE))
