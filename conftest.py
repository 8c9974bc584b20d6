"""Code blocks of the README and the docs are tests: Python as it stands, and `asynchebb` commands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

from asynchebb.engines.gpu import device

HERE = Path(__file__).parent


def run_commands(example):
    """Each `asynchebb …` line of a block, as a shell would run it; `make` has tests of its own."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    lines = [line for line in example.parsed.replace("\\\n", " ").splitlines() if line.startswith("asynchebb ")]
    for line in lines:
        subprocess.run(line, shell=True, check=True, env={**os.environ, "PATH": path})


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
    """Tests on a GPU are skipped where there is none, and the summary says why."""
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
