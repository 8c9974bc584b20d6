"""Docstrings on the site: plain text in which backticks mark code and equations are typeset."""

import importlib
import re
import textwrap
from typing import Any

import public
import typeset
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from asynchebb.equations import statement

CODE = re.compile(r"(`[^`]+`)")
MARKUP = re.compile(r"[|*\\]|(?<=\w)_(?!\w)")  # what reStructuredText would take for more than text


def paragraphs(text: str) -> list[str]:
    return re.split(r"\n\s*\n", text.strip("\n"))


def as_text(paragraph: str) -> str:
    """With everything escaped that is not meant as markup, and code in the two backticks of reStructuredText."""
    parts = CODE.split(paragraph)
    return "".join(
        f"`{part}`" if CODE.fullmatch(part) else MARKUP.sub(lambda found: "\\" + found.group(), part) for part in parts
    )


def as_rst(text: str) -> str:
    """A docstring as reStructuredText: equations typeset, examples as they are."""
    found = []
    for number, paragraph in enumerate(paragraphs(text)):
        if number and (equations := typeset.equations_in(textwrap.dedent(paragraph))):
            found.append(f".. raw:: html\n\n    {typeset.block(equations)}")
        elif paragraph.startswith(">>>"):
            found.append(paragraph)
        elif paragraph.startswith("    "):
            found.append(f".. code-block:: python\n\n{paragraph}")
        else:
            found.append(as_text(paragraph))
    return "\n\n".join(found)


def typeset_docstring(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """What autodoc shows of a docstring."""
    lines[:] = as_rst("\n".join(lines)).splitlines()


class Equations(SphinxDirective):
    """`{equations} rules`: what the module's docstring says first and its equations, then each class with its own."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module = importlib.import_module(f"asynchebb.{self.arguments[0]}")
        made = nodes.container()
        first, *rest = paragraphs(statement(module))
        for paragraph in (first, *(one for one in rest if typeset.equations_in(textwrap.dedent(one)))):
            self._add(made, paragraph)
        for name, value in public.defined_in(module).items():
            first, *rest = paragraphs(statement(value))
            if any(map(typeset.equations_in, rest)):
                self._add(made, f"**{{py:obj}}`{name} <asynchebb.{_public_name(module, name)}>`** {first}")
                for paragraph in rest:
                    self._add(made, paragraph)
        return [made]

    def _add(self, made: nodes.container, paragraph: str) -> None:
        equations = typeset.equations_in(textwrap.dedent(paragraph))
        if equations:
            made += nodes.raw("", typeset.block(equations), format="html")
        else:
            text = StringList(paragraph.splitlines(), self.get_source_info()[0])
            self.state.nested_parse(text, self.content_offset, made)


def _public_name(module: Any, name: str) -> str:
    [found] = [one.name for one in public.names() if one.value is getattr(module, name)]
    return found


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("equations", Equations)
    app.connect("autodoc-process-docstring", typeset_docstring, priority=100)  # before napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}
