"""Tutorials as notebooks: Markdown whose Python blocks become cells, which are run when the site is built."""

import re
import shutil
from pathlib import Path
from typing import Any

from jupyter_client.manager import KernelManager
from nbformat import NotebookNode, v4
from sphinx.application import Sphinx

TUTORIALS = Path(__file__).parents[1] / "tutorials"
CELL = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


def names() -> list[str]:
    """The pages that are notebooks."""
    return [path.stem for path in sorted(TUTORIALS.glob("*.md")) if CELL.search(path.read_text(encoding="utf-8"))]


def read(text: str) -> NotebookNode:
    """Text and code alternate."""
    cells = [
        (v4.new_code_cell if number % 2 else v4.new_markdown_cell)(part.strip())
        for number, part in enumerate(CELL.split(text))
        if part.strip()
    ]
    for number, cell in enumerate(cells):
        cell.id = str(number)  # not a random one: the same page gives the same notebook
    return v4.new_notebook(cells=cells, metadata={"kernelspec": KERNEL})


def link(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Tell the page's header where its notebook is."""
    if page in [f"tutorials/{name}" for name in names()]:
        context["notebook"] = f"{page.rpartition('/')[2]}.ipynb"


def keep(app: Sphinx, error: Exception | None) -> None:
    """Put the executed notebooks beside their pages."""
    executed = Path(app.outdir).parent / "jupyter_execute" / "tutorials"  # where MyST-NB leaves them
    for name in names() if error is None else []:
        shutil.copy(executed / f"{name}.ipynb", Path(app.outdir) / "tutorials")


def setup(app: Sphinx) -> dict[str, bool]:
    if hasattr(KernelManager, "transport_encryption"):  # without, each notebook warns that it could be overheard
        KernelManager.transport_encryption.default_value = "auto"
    app.connect("html-page-context", link)
    app.connect("build-finished", keep)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
