"""The graph of the package's modules as a picture, of the same edges as in CONTRIBUTING.md."""

from pathlib import Path

import modules
from matplotlib.figure import Figure


def layers(graph: modules.Graph) -> list[list[str]]:
    """Names from the top of the package to its bottom: each below all that import it."""
    depth: dict[str, int] = {}

    def below(name: str) -> int:
        if name not in depth:
            above = [one for one, imported in graph.items() if name in imported]
            depth[name] = max((below(one) + 1 for one in above), default=0)
        return depth[name]

    for name in graph:
        below(name)
    return [sorted(name for name in graph if depth[name] == level) for level in range(max(depth.values()) + 1)]


def places(graph: modules.Graph) -> dict[str, tuple[float, float]]:
    """Where each name stands: within its layer, near the mean of its neighbours, which keeps arrows short."""
    rows = layers(graph)
    x = {name: (k + 0.5) / len(row) for row in rows for k, name in enumerate(row)}
    neighbours = {name: {*graph[name], *(one for one in graph if name in graph[one])} for name in graph}
    for _ in range(20):
        for row in rows:
            wanted = {name: sum(x[one] for one in neighbours[name]) / max(1, len(neighbours[name])) for name in row}
            for k, name in enumerate(sorted(row, key=wanted.__getitem__)):
                x[name] = (k + 0.5) / len(row)
    return {name: (x[name], -level) for level, row in enumerate(rows) for name in row}


def draw(path: Path) -> None:
    graph = modules.reduced(modules.rooms(modules.graph()))
    where = places(graph)
    figure = Figure(figsize=(9, 0.75 * len(layers(graph))), layout="tight")
    axes = figure.subplots()
    for name, imported in graph.items():
        for one in imported:
            axes.annotate(
                "", where[one], where[name], arrowprops=dict(arrowstyle="->", color="0.6", shrinkA=9, shrinkB=9)
            )
    for name, (x, y) in where.items():
        box = dict(boxstyle="round", facecolor="white", edgecolor="0.6")
        axes.text(x, y, name, ha="center", va="center", fontsize=9, bbox=box)
    axes.set(xlim=(0, 1), ylim=(-len(layers(graph)) + 0.5, 0.5))
    axes.axis("off")
    figure.savefig(path, metadata={"Date": None})
