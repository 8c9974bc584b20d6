"""What can be said of the documentation without building it: links lead somewhere, tutorials parse, equations agree."""

import ast
import inspect
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import public
import pytest
import release
import tutorials

from asynchebb import dynamics, metrics, rules, schedules, weights
from asynchebb.equations import statement

HOME = Path(__file__).parents[1]
sys.path.append(str(HOME / "docs" / "extensions"))
import typeset  # noqa: E402

PAGES = ("*.md", "docs/*.md", "docs/tutorials/*.md", "benchmarks/*.md")
DOCUMENTS = [path for pattern in PAGES for path in HOME.glob(pattern)]
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def anchors(document: Path) -> set[str]:
    """As code hosts name headings."""
    headings = re.findall(
        r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", document.read_text("utf-8"), flags=re.M | re.S), re.M
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(HOME)))
def test_links_lead_to_files_and_headings_that_are_there(document):
    for target in re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", document.read_text("utf-8"))):
        if not target.startswith(("http:", "https:", "mailto:")):
            path, _, anchor = target.partition("#")
            found = (document.parent / path).resolve() if path else document
            assert found.exists(), f"{target} is not there"
            assert not anchor or anchor in anchors(found), f"{target} has no such heading"


@pytest.mark.parametrize("name", tutorials.sources())
def test_a_tutorial_is_code_that_parses_and_ends_with_something_to_change(name):
    ast.parse(tutorials.sources()[name])
    headings = re.findall(r"^## (.*)$", (tutorials.FOLDER / f"{name}.md").read_text("utf-8"), re.M)
    assert headings[-1] == "Something to change"


def stated() -> list[str]:
    """All equations in docstrings."""
    found = []
    for module in (rules, schedules, dynamics, weights, metrics):
        for documented in (module, *public.defined_in(module).values()):
            for paragraph in statement(documented).split("\n\n")[1:]:
                found += typeset.equations_in(inspect.cleandoc(paragraph)) or []
    return found


def test_every_part_of_a_network_states_its_equations():
    for module in (rules, schedules, dynamics, weights):
        for name, value in public.defined_in(module).items():
            assert any(map(typeset.equations_in, statement(value).split("\n\n")[1:])), name


@pytest.mark.parametrize("equation", dict.fromkeys(stated()))
def test_a_typeset_equation_says_what_its_text_does(equation):
    html = ElementTree.fromstring(f"<p>{typeset.line_of(equation)}</p>")
    signs = {"²": "2", "₊": "+", "ᵀ": "T", "Σ": "∑", "ỹ": "y~", "\u0302": "^"}
    plain = re.sub(r"_\{(.*?)\}|_(?=\w)", r"\1", equation).translate(str.maketrans(signs))
    assert re.sub(r"\s", "", "".join(html.itertext())) == re.sub(r"[\s`]", "", plain)


def test_letters_get_their_subscripts_and_exponents():
    assert "<msubsup><mi>y</mi><mrow><mi>i</mi></mrow><mn>2</mn></msubsup>" in typeset.line_of("y_i² w_ij")
    assert "<munder><mo>∑</mo><mrow><mi>j</mi></mrow></munder>" in typeset.line_of("drive_i = Σ_j w_ij x_j")
    assert typeset.line_of("if u_i > θ: a spike").endswith(": a spike")


def test_equations_that_a_page_quotes_are_those_of_the_docstrings():
    for document in HOME.glob("docs/*.md"):
        for line in re.findall(r"^    (\S.*)$", CODE.sub("", document.read_text("utf-8")), re.M):
            if typeset.equations_in(line):
                assert line in stated(), f"{document.name}: {line}"


def test_versions_agree():
    assert release.disagreements() == []
