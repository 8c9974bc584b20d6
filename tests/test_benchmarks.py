"""The benchmark: a peer that is not there, or computes something else, says so in its row."""

import json
import subprocess
import sys
from pathlib import Path

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
rest = {{"growth": [], "exponents": {{}}, "cold start": {{"first ever, s": 1, "later, s": 1}}}}
print(json.dumps([row, bench.table({{"systems": tuple(bench.SYSTEMS), "cases": [row], **rest}})]))
"""


def test_a_peer_that_fails_says_so_in_its_row_and_the_others_go_on():
    code = SCRIPT.format(folder=str(HERE))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    row, table = json.loads(done.stdout)
    assert "ModuleNotFoundError" in row["systems"]["absent"]["failed"]
    assert "computes other weights: they differ by 1.0e-03" in row["systems"]["wrong"]["failed"]
    assert row["systems"]["NumPy"]["difference"] < 1e-9 and row["systems"]["NumPy"]["ratio"] > 0
    assert "failed: ModuleNotFoundError" in table and "failed: RuntimeError: computes other weights" in table
