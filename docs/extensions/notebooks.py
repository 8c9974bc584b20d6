"""Tutorials as notebooks: Markdown whose Python blocks become cells, which are run when the site is built."""

import shutil
from pathlib import Path
from typing import Any

import tutorials
from jupyter_client.manager import KernelManager
from nbformat import NotebookNode, v4
from sphinx.application import Sphinx

KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


def read(text: str) -> NotebookNode:
    """Text and code alternate."""
    cells = [
        (v4.new_code_cell if number % 2 else v4.new_markdown_cell)(part.strip())
        for number, part in enumerate(tutorials.CELL.split(text))
        if part.strip()
    ]
    for number, cell in enumerate(cells):
        cell.id = str(number)  # not a random one: the same page gives the same notebook
    return v4.new_notebook(cells=cells, metadata={"kernelspec": KERNEL})


def spread(app: Sphinx, env: object, pages: list[str]) -> None:
    """Put notebooks, which take longest, among the other pages: processes get parts of this list."""
    mine = [page for page in pages if page.startswith("tutorials/")]
    others = [page for page in pages if page not in mine]
    each = len(others) // max(1, len(mine)) + 1
    for number, page in enumerate(mine):
        others.insert(number * (each + 1), page)
    pages[:] = others


def link(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Tell the page's header where its notebook is."""
    if page in [f"tutorials/{name}" for name in tutorials.sources()]:
        context["notebook"] = f"{page.rpartition('/')[2]}.ipynb"


def keep(app: Sphinx, error: Exception | None) -> None:
    """Put the executed notebooks beside their pages."""
    executed = Path(app.outdir).parent / "jupyter_execute" / "tutorials"  # where MyST-NB leaves them
    for name in tutorials.sources() if error is None else []:
        shutil.copy(executed / f"{name}.ipynb", Path(app.outdir) / "tutorials")


def setup(app: Sphinx) -> dict[str, bool]:
    if hasattr(KernelManager, "transport_encryption"):  # without, each notebook warns that it could be overheard
        KernelManager.transport_encryption.default_value = "auto"
    app.connect("env-before-read-docs", spread)
    app.connect("html-page-context", link)
    app.connect("build-finished", keep)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
