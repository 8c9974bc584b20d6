"""Pages that are made of what stands elsewhere: the reference, the gallery, and Markdown outside docs/.

They are written to docs/generated/ before the site is built. A link keeps its meaning on the way: one to a file that is
on the site leads to its page, one to any other file downloads it.
"""

import ast
import os
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import docstrings
import module_graph
import public
from sphinx.application import Sphinx

DOCS = Path(__file__).parents[1]
HOME = DOCS.parent
GENERATED = DOCS / "generated"
LINK = re.compile(r"(?<=\]\()([^)\s#]+)(#[^)\s]*)?")
MERMAID = re.compile(r"^```mermaid\n.*?^```\n", re.MULTILINE | re.DOTALL)
FOLDED = re.compile(r"<details>.*?</details>\n", re.DOTALL)

# The Markdown files outside docs/ that are pages, by the name of the page.
FILES = {
    "changelog": "CHANGELOG.md",
    "contributing": "CONTRIBUTING.md",
    "security": "SECURITY.md",
    "code_of_conduct": "CODE_OF_CONDUCT.md",
    "benchmarks": "benchmarks/results.md",
    "benchmarks_estimator": "benchmarks/estimator.md",
    "benchmarks_live": "benchmarks/live.md",
    "benchmarks_sweep": "benchmarks/sweep.md",
}
TITLES = {  # of those that have none
    "benchmarks": "Benchmarks",
    "benchmarks_live": "The live page",
    "benchmarks_sweep": "What a sweep costs",
}
# Sections of the README that begin a part of the site, and the pages of that part.
SECTIONS = {
    "paper": (
        "What holds of the paper",
        ("claims", "measured", "paper_scale", "choices", "looked_into", "reproduction"),
    ),
    "speed": ("Speed", ("speed", "generated/benchmarks", "generated/benchmarks_sweep", "generated/benchmarks_live")),
    "compared": ("Compared with other methods", ("comparison", "generated/benchmarks_estimator")),
}
PLACES = {HOME / "README.md": DOCS / "index.md"} | {
    HOME / path: GENERATED / f"{page}.md" for page, path in FILES.items()
}
# What public functions return without being public themselves; with brackets, what no user makes by calling it.
RETURNED = {"runs": ("runs.testing.Response", "runs.testing.Error"), "live_page": ("live_page.Live()",)}
ANCHORS = {f"#{heading.lower().replace(' ', '-')}": page for page, (heading, _) in SECTIONS.items()}


def with_links(text: str, source: Path, page: Path) -> str:
    """The text of a file as that of a page, with links that lead where they did."""

    def moved(link: re.Match[str]) -> str:
        if re.match(r"\w+:|/", link[1]):
            return link[0]
        target, anchor = (source.parent / link[1]).resolve(), link[2] or ""
        if target == HOME / "README.md" and anchor in ANCHORS:
            target, anchor = GENERATED / f"{ANCHORS[anchor]}.md", ""
        elif target == HOME / "examples":
            target = GENERATED / "gallery.md"
        elif target.parent == HOME / "examples" and target.suffix == ".py":
            target, anchor = GENERATED / "gallery.md", f"#{target.stem}"
        return os.path.relpath(PLACES.get(target, target), page.parent) + anchor

    return LINK.sub(moved, text)


def section(text: str, heading: str) -> str:
    """A section of a document, whose heading becomes the title."""
    level, rest = re.split(rf"^(#+) {re.escape(heading)}\n", text, flags=re.MULTILINE)[1:]
    body = re.split(rf"^#{{1,{len(level)}}} ", rest, flags=re.MULTILINE)[0]
    return f"# {heading}\n{re.sub(f'^{level}', '#', body, flags=re.MULTILINE)}"


def toctree(pages: tuple[str, ...]) -> str:
    return "\n".join(["", "```{toctree}", ":maxdepth: 1", *(f"/{page}" for page in pages), "```", ""])


def from_files() -> Iterator[tuple[str, str]]:
    for page, path in FILES.items():
        text = (HOME / path).read_text(encoding="utf-8")
        text = f"# {TITLES[page]}\n\n{text}" if page in TITLES else text
        text = with_links(text, HOME / path, GENERATED / f"{page}.md")
        yield page, MERMAID.sub("![The modules of the package](module_graph.svg)\n", FOLDED.sub("", text))


def from_readme() -> Iterator[tuple[str, str]]:
    readme = HOME / "README.md"
    for page, (heading, parts) in SECTIONS.items():
        text = section(readme.read_text(encoding="utf-8"), heading)
        yield page, with_links(text, readme, GENERATED / f"{page}.md") + toctree(parts)


def reference() -> Iterator[tuple[str, str]]:
    """A page for each part of the package that has public names, in the order in which it defines them."""
    rooms: dict[str, list[public.Public]] = {}
    for name in public.names():
        rooms.setdefault(name.room, []).append(name)
    for room, names in rooms.items():
        shown = sorted((name for name in names if name.name != room), key=public.Public.position)
        lines = [room, "=" * len(room), "", f".. automodule:: asynchebb.{room}", "   :no-index:", ""]
        lines += [".. currentmodule:: asynchebb", "", ".. list-table::", ""]
        for name in shown:
            about = docstrings.as_text(" ".join(docstrings.paragraphs(name.documentation)[0].split()))
            lines += [f"   * - :py:obj:`~asynchebb.{name.name}`", f"     - {about}"]
        for name in shown:
            lines += ["", *documented(name)]
        for returned in RETURNED.get(room, ()):
            lines += ["", f".. autoclass:: asynchebb.{returned}"] + ["   :members:"] * returned.endswith("()")
        yield f"api/{room}", "\n".join(lines)


def documented(name: public.Public) -> list[str]:
    if isinstance(name.value, type):
        fields = ", ".join(getattr(name.value, "_fields", ()))  # of a named tuple, which say nothing by themselves
        return [f".. autoclass:: asynchebb.{name.name}", "   :members:", f"   :exclude-members: {fields}"]
    if callable(name.value):
        return [f".. autofunction:: asynchebb.{name.name}"]
    text = docstrings.as_rst(name.documentation)
    return [f".. py:data:: {name.name}", "", textwrap.indent(text, "   ")]


def gallery() -> str:
    """Each example with what it says of itself, its picture where it has one, and its source."""
    shown, parts = [], []
    for path in sorted((HOME / "examples").glob("*.py")):
        title, about = path.stem.replace("_", " ").capitalize(), ast.get_docstring(ast.parse(path.read_text("utf-8")))
        picture = DOCS / "images" / "examples" / f"{path.stem}.png"
        parts += [f"({path.stem})=", f"## {title}", str(about)]
        if picture.exists():
            parts.append(f"![{title}](../images/examples/{picture.name})")
            shown.append(f"[![{title}](../images/examples/{picture.name})](#{path.stem})")
        parts.append(f"<details><summary>{path.name}</summary>")
        parts += [f"```{{literalinclude}} ../../examples/{path.name}\n```", "</details>"]
    about = "Each is a short script. `make examples` runs them and draws their pictures."
    return "\n\n".join(["# Gallery", about, '<div class="gallery">', *shown, "</div>", *parts])


def write(app: Sphinx) -> None:
    GENERATED.mkdir(exist_ok=True)
    pages = {f"{page}.md": text for page, text in (*from_files(), *from_readme())}
    pages |= {f"{page}.rst": text for page, text in reference()}
    pages["gallery.md"] = gallery()
    for name, text in pages.items():
        path = GENERATED / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:  # an unchanged page is not built again
            path.write_text(text, encoding="utf-8")
    for path in GENERATED.rglob("*.[mr][ds]*"):
        if str(path.relative_to(GENERATED)) not in pages:
            path.unlink()
    module_graph.draw(GENERATED / "module_graph.svg")


def move_links(app: Sphinx, name: str, source: list[str]) -> None:
    page = DOCS / f"{name}.md"
    if page.exists() and not name.startswith("generated/"):
        source[0] = with_links(source[0], page, page)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", lambda app, config: write(app))
    app.connect("source-read", move_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
