"""Code blocks of the README and the docs are tests: Python as it stands, and `asynchebb` commands."""

import os
import shlex
import sys
from pathlib import Path
from unittest import mock

import hypothesis
import pytest
from sybil import Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

from asynchebb import cli
from asynchebb.engines.gpu import device

HERE = Path(__file__).parent
hypothesis.settings.register_profile("unhurried", deadline=None)  # a busy machine fails no test
hypothesis.settings.load_profile("unhurried")


def run_commands(example):
    """Each `asynchebb …` line of a block; `make` has tests of its own.

    All in this process: a new one takes seconds to import what this one has. `main` is all that the command calls.
    """
    lines = [line for line in example.parsed.replace("\\\n", " ").splitlines() if line.startswith("asynchebb ")]
    for line in lines:
        with mock.patch.object(sys, "argv", shlex.split(line, comments=True)), pytest.raises(SystemExit) as end:
            cli.main()
        assert not end.value.code, line


def in_empty_folder(namespace):
    namespace["started_in"] = Path.cwd()
    folder = HERE / ".pytest_cache" / "documents" / str(os.getpid())
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)


def back(namespace):
    os.chdir(namespace["started_in"])


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), CodeBlockParser("bash", run_commands)],
    patterns=["README.md", "docs/*.md", "docs/tutorials/*.md"],
    setup=in_empty_folder,
    teardown=back,
).pytest()


def pytest_collection_modifyitems(items):
    """Skip slow tests but in `make test-all`, and tests on a GPU where there is none; the summary says why."""
    if not os.environ.get("ASYNCHEBB_ALL"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow: `make test-all` runs it"))
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if on_gpu and (reason := device.missing()):
        for item in on_gpu:
            item.add_marker(pytest.mark.skip(reason=f"needs a GPU: {reason}"))


def pytest_terminal_summary(terminalreporter):
    """What a test was run with, where it says so; and why there were no tests on a GPU."""
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if "needs a GPU" in str(report.longrepr)]
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} tests on a GPU were skipped: {device.missing()}")
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            terminalreporter.write_line(f"{report.nodeid}: {name}: {value}")


@pytest.fixture(params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu), "reference"])
def engine(request):
    """Every test that asks for an engine runs on each."""
    return request.param
