"""The benchmark: a peer that is not there, or computes something else, says so in its row."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import asynchebb as ah

HERE = Path(__file__).parent.parent / "benchmarks"

SCRIPT = """
import json, sys
sys.path.insert(0, {folder!r})
import bench
from peers import numpy_loops

def wrong(state, X, hold, model):
    new, seconds = numpy_loops.run(state, X, hold, model)
    return {{**new, "W": new["W"] + 1e-3}}, seconds

bench.TRAINED, bench.ROUNDS = 5, 1
sys.modules["peers.wrong"] = type(sys)("peers.wrong")
sys.modules["peers.wrong"].run = wrong
bench.SYSTEMS = {{
    "absent": ("not_installed", {{}}, ("asynchronous",), 1, 1),
    "wrong": ("wrong", {{}}, ("asynchronous",), 1, 1),
    "NumPy": ("numpy_loops", {{}}, ("asynchronous",), 1, 1),
}}
row = bench.compare("asynchronous", 100, 5, tuple(bench.SYSTEMS))
growth = {{"machine": "here", "rows": [], "exponents": {{}}}}
rest = {{"growth": growth, "cold start": {{"first ever, s": 1, "new combination, s": 1, "later, s": 1}}}}
print(json.dumps([row, bench.table({{"systems": tuple(bench.SYSTEMS), "cases": [row], **rest}})]))
"""


@pytest.mark.slow
def test_a_peer_that_fails_says_so_in_its_row_and_the_others_go_on():
    code = SCRIPT.format(folder=str(HERE))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    row, table = json.loads(done.stdout)
    assert "ModuleNotFoundError" in row["systems"]["absent"]["failed"]
    assert "computes other weights: they differ by 1.0e-03" in row["systems"]["wrong"]["failed"]
    assert row["systems"]["NumPy"]["difference"] < 1e-9 and row["systems"]["NumPy"]["ratio"] > 0
    assert "failed: ModuleNotFoundError" in table and "failed: RuntimeError: computes other weights" in table


def test_what_the_cluster_page_says_a_sweep_costs_is_what_was_measured():
    page = (HERE.parent / "docs" / "cluster.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("| ").split("|")] for line in page.splitlines() if "core hours |" in line
    ]
    costs = {model: (seconds, hours, minutes) for model, _, seconds, hours, minutes in rows}
    for case in json.loads((HERE / "results.json").read_text(encoding="utf-8"))["cases"]:
        if case["n"] == 500:
            seconds = 1e6 / case["asynchebb"]
            hours = 10_000 * seconds / 3600
            expected = f"{seconds:.1f} s", f"{hours:.1f} core hours", f"{60 * hours / 100:.0f} min"
            assert costs[case["model"]] == expected


def test_the_networks_whose_growth_was_measured_are_the_presets_trained_alike():
    results = json.loads((HERE / "results.json").read_text(encoding="utf-8"))
    presets = {reading: ah.asynchronous(reading=reading) for reading in ah.READINGS}
    named = {"asynchronous": presets["notebook"], "asynchronous Oja, Projected, from rest": presets["paper"]}
    assert {row["trained"] for row in results["growth"]["rows"]} == {200}
    for row in results["growth"]["rows"]:
        assert row["network"] == repr(replace(named[row["model"]], n=row["n"], m=row["m"]))
