"""Sweeps: each run once, whatever is killed, and all of them as one array."""

import filecmp
import io
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray
from filelock import FileLock
from packaging.version import Version
from test_cli import COMMAND, call, call_here, refused

import asynchebb as ah
from asynchebb import files
from asynchebb.runs.saved import summary
from asynchebb.sweeps import Folder, folder, grid
from asynchebb.sweeps.dataset import table

BASE = ah.Run(ah.asynchronous(n=20, m=36), ah.Phase(ah.Crossbars(6), samples=30, hold=20, snapshots=1))
VARY = {"schedule.r_b": [0.5, 1, 2], "seed": range(2)}
TESTED = ah.Probe(ah.Crossbars(6), samples=5, hold=20)  # shorter than usual, for the reference engine

# A sweep that two cores are at for some seconds; as options, and as what they say.
LONGER = ["--stimulus", "Crossbars(6)", "--n", "100", "--samples", "600", "--hold", "500"]
LONGER += ["--vary", "schedule.r_b=0.5,1,2,4", "--vary", "seed=range(10)"]


def same_folders(one, other):
    """Are the same files there, of the same bytes?"""
    names = [sorted(str(file.relative_to(at)) for file in Path(at).rglob("*") if file.is_file()) for at in (one, other)]
    return names[0] == names[1] and filecmp.cmpfiles(one, other, names[0], shallow=False)[1:] == ([], [])


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """The longer sweep, run in peace; once for all of the tests' processes."""
    here = tmp_path_factory.getbasetemp()
    out = (here.parent if "PYTEST_XDIST_WORKER" in os.environ else here) / "undisturbed"
    with FileLock(f"{out}.lock"):
        if not out.exists():
            done = call("sweep", "run", *LONGER, "--workers", 2, "--out", out)
            assert done.returncode == 0, done.stderr
    return out


def start_longer(out):
    process = subprocess.Popen(
        [COMMAND, "sweep", "run", *LONGER, "--workers", "2", "--out", out],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while len([*Path(out).glob("runs/*.json")]) < 4:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    return process


def workers(out):
    """The processes that are at work on a run just now."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = set()
        for claim in Path(out).glob("runs/*.claim"):
            with suppress(FileNotFoundError, ValueError):  # it has just been released, or is being written
                found.add(json.loads(claim.read_text())["process"])
        if found:
            return found
    raise AssertionError("nobody is at work")


def test_the_command_runs_a_grid_and_python_opens_it(tmp_path):
    done = call(
        *("sweep", "run", "--model", "asynchronous", "--stimulus", "Crossbars(6)", "--n", 40, "--samples", 200),
        *("--hold", 100, "--vary", "schedule.r_b=0.5,1,2", "--vary", "seed=0,1,2,3", "--workers", 2, "--out", "F"),
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "12 of 12 runs done, 0 failed" in done.stdout
    assert (
        "schedule.r_b (3) × seed (4): 12 of 12 done, 0 running, 0 failed"
        in call_here("sweep", "status", tmp_path / "F").stdout
    )
    dataset = ah.open_sweep(tmp_path / "F")
    assert dataset.error.dims == ("schedule.r_b", "seed") and dataset.error.notnull().all()
    assert dataset["schedule.r_b"].values.tolist() == [0.5, 1, 2] and dataset.seed.values.tolist() == [0, 1, 2, 3]
    network = ah.asynchronous(40, 36, schedule=ah.Asynchronous(r_b=2))
    run = ah.Run(network, ah.Phase(ah.Crossbars(6), 200, 100, snapshots=1, from_rest=True), seed=3)
    alone = ah.record(run, tmp_path / "alone")
    point = dataset.sel({"schedule.r_b": 2, "seed": 3})
    assert {name: float(point[name]) for name in summary(alone)} == summary(alone)
    assert np.array_equal(point.W, alone.W[-1]) and np.array_equal(point.M, alone.M[-1])
    kept = tmp_path / "F" / "runs" / f"{point.run.item()}.nc"
    assert kept.read_bytes() == (tmp_path / "alone" / f"{run.name}-{run.identity}.nc").read_bytes()
    assert call_here("sweep", "plot", tmp_path / "F").returncode == 0
    assert (tmp_path / "F" / "error.png").read_bytes().startswith(b"\x89PNG")


def test_what_exists_is_not_run_again_and_overlapping_sweeps_share_runs(tmp_path):
    first = ah.sweep(BASE, VARY, tmp_path, workers=1)
    dates = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "runs").iterdir()}
    assert first.identical(ah.sweep(BASE, VARY, tmp_path, workers=1))
    wider = ah.sweep(BASE, {"schedule.r_b": [0.5, 1, 2, 3], "seed": range(2)}, tmp_path, workers=1)
    after = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "runs").iterdir()}
    assert dates.items() <= after.items() and len(after) == len(dates) + 4
    assert first.error.identical(wider.error[:3])
    assert ah.open_sweep(tmp_path).identical(wider)  # the one started last
    [older] = [name for name in Folder(tmp_path).grid_names() if name != Folder(tmp_path).points().name]
    assert ah.open_sweep(tmp_path, older).identical(first)


def test_status_export_and_removal(tmp_path, monkeypatch):
    folder = tmp_path / "F"
    ah.sweep(BASE, VARY, folder, workers=1)
    older = Folder(folder).points().name
    wider = ah.sweep(BASE, {"schedule.r_b": [0.5, 1, 2, 3], "seed": range(2)}, folder, workers=1)
    latest = Folder(folder).points().name
    text = call_here("sweep", "status", folder).stdout
    assert len(text.splitlines()) == 2 and text.startswith(latest) and "Network" not in text
    [now, then] = json.loads(call_here("sweep", "status", folder, "--json").stdout)
    assert (now["grid"], then["grid"]) == (latest, older) and now["done"] == 8 and now["failures"] == {}
    assert now["axes"] == {"schedule.r_b": [0.5, 1, 2, 3], "seed": [0, 1]} and now["run"].startswith("Run(")
    assert latest in call_here("sweep", "status", folder, "--watch").stdout  # it has ended
    at = Folder(folder)
    assert not at.is_started(latest)
    runs = at.write_runs(latest, [BASE])
    assert at.is_started(latest)  # a process is about to start its workers
    runs.unlink()
    assert call_here("sweep", "export", folder, tmp_path / "t.csv").returncode == 0
    written = pd.read_csv(tmp_path / "t.csv")
    assert [*written.columns[:2]] == ["schedule.r_b", "seed"] and len(written) == 8
    row = written[(written["schedule.r_b"] == 2) & (written.seed == 1)].iloc[0]
    assert row.error == pytest.approx(float(wider.error.sel({"schedule.r_b": 2, "seed": 1})))
    assert (folder / "runs" / f"{row.run}.nc").exists() and "W" not in written
    assert "it must be a file that ends in .csv" in refused("sweep", "export", folder, tmp_path / "t.xls")
    before = {file.name for file in (folder / "runs").iterdir()}
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    asked = call_here("sweep", "rm", folder, latest)
    assert asked.returncode == 1 and "nothing was done" in asked.stderr
    assert "2 runs deleted" in call_here("sweep", "rm", folder, latest, "--yes").stdout  # six belong to the other sweep
    assert len(before - {file.name for file in (folder / "runs").iterdir()}) == 4
    assert ah.open_sweep(folder).error.notnull().all() and Folder(folder).grid_names() == [older]
    assert "the sweeps in" in refused("sweep", "rm", folder, latest, "--yes")


def test_a_table_of_several_probes_has_a_column_for_each(tmp_path):
    base = ah.Run(BASE.network, (BASE.phases[0], ah.Phase(ah.Squares(6), 5, 20)))
    found = table(ah.sweep(base, {"seed": [0, 1]}, tmp_path, workers=1, progress=False))
    assert {"error_0", "error_1", "gini_0"} <= {*found.columns} and "error" not in found


def test_opening_reads_no_weights_and_runs_that_are_missing_are_nan(tmp_path):
    whole = ah.sweep(BASE, VARY, tmp_path, workers=1).load()
    [removed] = Folder(tmp_path).runs.glob(f"{whole.run.values[1, 0]}.json")
    removed.unlink()
    for file in Folder(tmp_path).runs.glob("*.nc"):
        file.rename(file.with_suffix(".away"))
    dataset = ah.open_sweep(tmp_path)
    assert np.isnan(dataset.error[1, 0]) and int(dataset.error.isnull().sum()) == 1
    with pytest.raises(ah.InputError, match="there is no such file"):
        dataset.W.values  # noqa: B018
    for file in Folder(tmp_path).runs.glob("*.away"):
        file.rename(file.with_suffix(".nc"))
    assert np.array_equal(dataset.W.isel(seed=1), whole.W[:, 1]) and np.isnan(dataset.W[1, 0]).all()


def test_networks_of_different_sizes_are_padded_and_several_probes_are_an_axis(tmp_path):
    phases = [ah.Phase(ah.Crossbars(6), 20, 10, 1), ah.Phase(ah.Squares(6), 20, 10, 1)]
    run = ah.Run(BASE.network, phases)
    dataset = ah.sweep(run, {"n": [10, 15], "seed": [3]}, tmp_path, workers=1)
    assert dataset.W.shape == (2, 1, 15, 36) and np.isnan(dataset.W[0, 0, 10:]).all()
    assert np.isfinite(dataset.W[0, 0, :10]).all() and np.isfinite(dataset.W[1]).all()
    for name in ("error", "error_last", "error_sd", "gini", "active_neurons"):
        assert dataset[name].dims == ("n", "seed", "probe")
    alone = ah.record(ah.Run(ah.asynchronous(15, 36), phases, seed=3), tmp_path / "alone")
    assert np.array_equal(dataset.error[1, 0], alone.error[-1])


def test_probes_may_differ_in_number_and_the_last_is_the_last(tmp_path):
    phases = [ah.Phase(ah.Crossbars(6), 20, 10, 1), ah.Phase(ah.Squares(6), 20, 10, 1)]
    vary = {"phases.1.stimulus": [ah.Crossbars(6), ah.Squares(6)]}
    dataset = ah.sweep(ah.Run(BASE.network, phases), vary, tmp_path, workers=1)
    assert np.isnan(dataset.error[0, 0]) and np.isfinite(dataset.error[:, 1]).all()


def test_a_sweep_can_be_pickled_and_cut_down_to_nothing(tmp_path):
    import pickle

    dataset = ah.sweep(BASE, VARY, tmp_path, workers=1)
    assert pickle.loads(pickle.dumps(dataset)).W[1, 1].equals(dataset.W[1, 1])
    if Version(xarray.__version__) >= Version("2026.9"):  # 2026.2 cannot select nothing from what it reads on access
        assert dataset.W.isel(seed=[]).values.shape == (3, 0, 20, 36)


def test_a_finished_run_is_kept_when_failures_are_tried_again_and_one_without_weights_is_made_again(tmp_path):
    dataset = ah.sweep(BASE, VARY, tmp_path, workers=1).load()
    at = Folder(tmp_path)
    at.write(at.file(dataset.run.values[0, 0], "failed"), {"error": "of another process"})
    at.file(dataset.run.values[0, 1], "nc").unlink()
    assert ah.sweep(BASE, VARY, tmp_path, workers=1, retry_failed=True).identical(dataset)
    assert not [*at.runs.glob("*.failed")]


def test_seeds_that_something_else_goes_with_are_not_averaged(tmp_path):
    from asynchebb.sweeps import plots

    vary = {"seed": [0, 1], "n": [8, 16], "schedule.r_b": [0.5, 1]}
    dataset = ah.sweep(BASE, vary, tmp_path, zip=("seed", "n"), workers=1)
    axes = plots.measure(dataset, "error").axes[0]
    assert np.allclose(axes.images[0].get_array(), dataset.error.transpose("schedule.r_b", "seed"))


def test_tied_axes_are_one_dimension_with_a_coordinate_each(tmp_path):
    dataset = ah.sweep(BASE, {"hold": [10, 20], "samples": [40, 20], "seed": [0, 1]}, tmp_path,
                       zip=[("hold", "samples")], workers=1)  # fmt: skip
    assert dataset.error.dims == ("hold", "seed") and dataset.samples.dims == ("hold",)
    assert dataset.samples.values.tolist() == [40, 20] and (dataset.steps == 400).all()


def test_options_may_stand_in_a_file_and_the_command_line_goes_first(tmp_path):
    (tmp_path / "my.toml").write_text(
        textwrap.dedent("""
            stimulus = "Crossbars(6)"
            n = 12
            samples = 20
            hold = 10
            zip = "rule,n"
            out = "F"
            [vary]
            schedule.r_b = "linear(1, 2, 3)"
            rule = ["Hebbian(eta=0.02)", "Hebbian()"]
            n = [12, 13]
        """)
    )
    done = call("sweep", "run", "my.toml", "--samples", 30, "--workers", 1, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    dataset = ah.open_sweep(tmp_path / "F")
    assert dataset.error.shape == (3, 2) and (dataset.steps == 300).all()
    assert dataset.rule.values.tolist() == ["Hebbian(eta=0.02)", "Hebbian(eta=0.01)"] and dataset.n.dims == ("rule",)
    (tmp_path / "my.toml").write_text("speed = 3\n")
    assert "my.toml sets 'speed'; it may set model, stimulus" in refused("sweep", "run", "my.toml", folder=tmp_path)


@dataclass(frozen=True)
class Exploding:
    eta: float = 0.5

    def leak_w(self, y_i):
        return -1e30 * self.eta

    def leak_m(self, y_i):
        return 0

    def rate(self, y_i, a_i):
        return self.eta, a_i


@dataclass(frozen=True)
class Refusing(ah.Crossbars):
    """Cannot be drawn while a folder is there, or kills whoever draws it."""

    unless: str = ""
    deadly: bool = False

    def sample(self, rng, count):
        if Path(self.unless).exists():
            if self.deadly:
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("no stimuli today")
        return super().sample(rng, count)


def test_a_run_that_fails_is_kept_with_its_error_and_the_others_go_on(tmp_path):
    switch = tmp_path / "switch"
    switch.mkdir()
    vary = {
        "stimulus": [ah.Crossbars(6), Refusing(6, unless=str(switch))],
        "rule": [ah.Hebbian(), Exploding()],
    }
    discrete = ah.Run(ah.discrete(20, 36), BASE.phases, TESTED)
    with pytest.warns(UserWarning, match="3 of 4 runs failed; see dataset.failure"):
        dataset = ah.sweep(discrete, vary, tmp_path / "F", workers=2, engine="reference")  # compiles nothing
    assert dataset.error.notnull().values.tolist() == [[True, False], [False, False]]
    assert "it diverged" in dataset.failure.values[0, 1]
    assert dataset.failure.values[1].tolist() == ["RuntimeError: no stimuli today"] * 2
    said = call_here("sweep", "status", tmp_path / "F").stdout
    assert "1 of 4 done, 0 running, 3 failed" in said
    assert "stimulus=Crossbars(p=6), rule=Exploding(eta=0.5): it diverged" in said
    kept = json.loads(next((tmp_path / "F" / "runs").glob("*.failed")).read_text())
    assert "Traceback" in kept["traceback"] and kept["run"].startswith("Run(")
    switch.rmdir()
    assert ah.sweep(discrete, vary, tmp_path / "F", workers=2, engine="reference").identical(dataset)
    again = ah.sweep(discrete, vary, tmp_path / "F", workers=2, engine="reference", retry_failed=True)
    assert again.error.notnull().values.tolist() == [[True, False], [True, False]]
    assert "diverged" in again.failure.values[1, 1] and again.failure.values[1, 0] == ""


@pytest.mark.slow
def test_a_run_that_kills_its_worker_fails_alone(tmp_path):
    switch = tmp_path / "switch"
    switch.mkdir()
    vary = {"stimulus": [ah.Crossbars(6), Refusing(6, unless=str(switch), deadly=True)], "seed": range(3)}
    dataset = ah.sweep(BASE, vary, tmp_path / "F", workers=2)
    assert dataset.error.notnull().values.tolist() == [[True] * 3, [False] * 3]
    assert all("its process died 3 times" in failure for failure in dataset.failure.values[1])


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_nothing_but_its_run(tmp_path, undisturbed):
    process = start_longer(tmp_path / "F")
    os.kill(workers(tmp_path / "F").pop(), signal.SIGKILL)
    said, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "40 of 40 runs done, 0 failed" in said
    assert same_folders(tmp_path / "F", undisturbed)


@pytest.mark.slow
def test_a_sweep_that_is_killed_takes_its_workers_along_and_goes_on_when_started_again(tmp_path, undisturbed):
    process = start_longer(tmp_path / "F")
    busy = workers(tmp_path / "F")
    process.kill()
    process.wait()
    deadline = time.monotonic() + 20
    while any(files.is_alive(worker) for worker in busy):
        assert time.monotonic() < deadline, "workers outlive the sweep"
        time.sleep(0.1)
    time.sleep(1)  # one that was between two runs ends as soon
    done = len([*(tmp_path / "F" / "runs").glob("*.json")])
    assert 4 <= done < 40
    assert f"{done} of 40 done, 0 running" in call_here("sweep", "status", tmp_path / "F").stdout
    again = call("sweep", "run", *LONGER, "--workers", 2, "--out", tmp_path / "F")
    assert again.returncode == 0, again.stderr
    assert same_folders(tmp_path / "F", undisturbed)


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(tmp_path, undisturbed):
    process = start_longer(tmp_path / "F")
    busy = workers(tmp_path / "F")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130 and "Traceback" not in said, said
    assert "the same command resumes" in said
    assert not any(files.is_alive(worker) for worker in busy)
    assert not [*(tmp_path / "F" / "runs").glob("*.claim")]
    assert call("sweep", "run", *LONGER, "--out", tmp_path / "F").returncode == 0
    assert same_folders(tmp_path / "F", undisturbed)


def test_two_sweeps_at_once_in_one_folder_share_the_work(tmp_path, undisturbed):
    first = start_longer(tmp_path / "F")
    second = call("sweep", "run", *LONGER, "--workers", 1, "--out", tmp_path / "F")
    first.communicate()
    assert first.returncode == second.returncode == 0
    assert same_folders(tmp_path / "F", undisturbed)


def test_a_claim_is_respected_until_its_process_has_died_or_fallen_silent(tmp_path):
    at = Folder(tmp_path)
    at.prepare()
    with folder.claimed(at, "a") as mine, folder.claimed(at, "a") as other:
        assert mine is not None and other is None
    assert not at.file("a", "claim").exists()
    at.file("b", "claim").write_text(json.dumps({"place": "elsewhere", "process": os.getpid()}))
    with folder.claimed(at, "b") as other:
        assert other is None
    long_ago = time.time() - 2 * folder.SILENCE
    os.utime(at.file("b", "claim"), (long_ago, long_ago))
    with folder.claimed(at, "b") as mine:
        assert mine is not None
        mine.touched -= 2 * folder.BEAT
        os.utime(at.file("b", "claim"), (long_ago, long_ago))
        mine.touch()
        assert not folder.abandoned(at.file("b", "claim"))


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_any_executor_does_the_work(kind, tmp_path):
    with kind(2) as executor:
        dataset = ah.sweep(BASE, VARY, tmp_path / "F", executor=executor)
    ah.sweep(BASE, VARY, tmp_path / "usual", workers=1)
    assert dataset.error.notnull().all() and same_folders(tmp_path / "F", tmp_path / "usual")


def test_an_executor_that_breaks_is_said_to_have_broken(tmp_path):
    switch = tmp_path / "switch"
    switch.mkdir()
    deadly = Refusing(6, unless=str(switch), deadly=True)
    with (
        ProcessPoolExecutor(1) as executor,
        pytest.raises(ah.Stopped, match=r"does not accept tasks.*BrokenProcessPool"),
    ):
        ah.sweep(BASE, {"stimulus": [deadly], "seed": range(2)}, tmp_path / "F", executor=executor)
    with pytest.raises(ah.InputError, match="executor is 3; it must be a Dask client or have submit"):
        ah.sweep(BASE, VARY, tmp_path / "F", executor=3)


NOTEBOOK = """
import asynchebb as ah
from dataclasses import dataclass

cell = '''
@dataclass(frozen=True)
class Mine:
    eta: float = 0.01
    def leak_w(self, y_i): return 1
    def leak_m(self, y_i): return y_i
    def rate(self, y_i, a_i): return self.eta, a_i
'''
exec(compile(cell, "<cell 1>", "exec"))  # as a notebook does: there is no file with its source

run = ah.Run(ah.asynchronous(20, 36, rule=Mine()), ah.Phase(ah.Crossbars(6), 20, 10, 1))
dataset = ah.sweep(run, {"rule.eta": [0.01, 0.02], "seed": [0, 1]}, "F", workers=2)
assert dataset.error.notnull().all(), dataset.failure.values
again = ah.Run(ah.asynchronous(20, 36, rule=Mine(0.02)), run.phases, seed=1)
alone = ah.record(again, "alone", "reference")  # which compiles nothing
assert dataset.run.values[1, 1] == again.identity
assert abs(dataset.W[1, 1].values - alone.W[-1].values).max() < 1e-5
"""


def test_a_rule_defined_in_a_notebook_reaches_the_workers(tmp_path):
    done = subprocess.run([sys.executable, "-c", NOTEBOOK], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_rule_in_a_file_of_ones_own_reaches_the_workers_compiled_before(tmp_path):
    (tmp_path / "mine.py").write_text("from asynchebb.rules import Hebbian\nclass Mine(Hebbian):\n    pass\n")
    command = ["sweep", "run", *LONGER[:4], "--samples", 20, "--hold", 10, "--rule", "mine.py:Mine()"]
    command += ["--vary", "rule.eta=0.01,0.02", "--vary", "seed=range(4)", "--workers", 2]
    first = call(*command, "--out", "F", folder=tmp_path)
    assert first.returncode == 0, first.stderr
    again = call(*command, "--out", "G", folder=tmp_path)
    assert again.returncode == 0 and "compiling" not in again.stderr
    assert same_folders(tmp_path / "F", tmp_path / "G")


def test_each_worker_uses_one_thread():
    import numba
    from threadpoolctl import threadpool_info

    from asynchebb.threads import one_thread

    with one_thread():
        assert numba.get_num_threads() == 1 and all(pool["num_threads"] == 1 for pool in threadpool_info())


@pytest.mark.slow
def test_a_full_disk_stops_the_sweep_and_what_is_done_stays_whole(tmp_path, undisturbed):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500k", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small disk can be mounted by root alone")
    try:
        done = call("sweep", "run", *LONGER, "--workers", 2, "--out", disk / "F")
        assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
        assert "No space left on device" in done.stderr and "finished work is saved" in done.stderr
        finished = [*(disk / "F" / "runs").glob("*.json")]
        assert 0 < len(finished) < 40
        for file in finished:
            assert filecmp.cmp(file.with_suffix(".nc"), undisturbed / "runs" / f"{file.stem}.nc", shallow=False)
        subprocess.run(["mount", "-o", "remount,size=100m", disk], check=True)
        assert call("sweep", "run", *LONGER, "--out", disk / "F").returncode == 0
        assert same_folders(disk / "F", undisturbed)
    finally:
        subprocess.run(["umount", disk], check=True)


def small(*more):
    return ["sweep", "run", "--stimulus", "Crossbars(6)", "--n", 20, "--samples", 20, "--hold", 10, *more]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "vary is empty; it must name at least one field to vary"),
        (
            ["--vary", "schedule.r_x=1"],
            "vary names 'schedule.r_x', which is not a field of this run",
        ),
        (["--vary", "seed="], "vary gives seed no value"),
        (["--vary", "seed=0", "--workers", 0], "workers is 0; it must be a whole number of at least 1"),
        (["--vary", "seed=0", "--dask", "tcp://127.0.0.1:1"], "none answers there within 5 s"),
        (
            ["--vary", "seed=0", "--dask", "nonsense://x"],
            "dask is 'nonsense://x'; it must be the address",
        ),
        (["--vary", "seed=0", "--dask", "tcp://127.0.0.1:1", "--slurm", "time=1"], "dask and slurm are both given"),
        (["--vary", "seed=0", "--dask", "tcp://127.0.0.1:1", "--workers", 3], "workers is given, but a Dask cluster"),
        (["--vary", "seed=0", "--engine", "gpux"], "engine is 'gpux'"),
        (["--vary", "seed=range(20000)"], "the grid has 20,000 runs with 4,000,000 Euler steps in total: about"),
        (["--vary", "seed=0", "--vary", "samples=100000000000"], "to run it anyway, pass --yes"),
        (["--vary", "seed=0", "--zip", "seed,n"], "zip is 'n'; it must be one of seed"),
        (["--vary", "seed=0", "--vary", "seed=1"], "vary names seed twice"),
        (["--vary", "model=discrete", "--rule", "Oja()"], "vary names model, which brings its own rule and schedule"),
        (["no.toml"], "file is 'no.toml'; it must be a TOML file"),
    ],
    ids=str,
)  # "undisturbed" has compiled what the estimate of a large grid's time runs
def test_a_bad_sweep_is_refused_within_seconds_and_nothing_is_begun(more, said, tmp_path, undisturbed):
    start = time.monotonic()
    assert said in refused(*small(*more, "--out", "F"), folder=tmp_path)
    assert not (tmp_path / "F").exists() and time.monotonic() - start < 30


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    for name in ("runs/mine/events.out", "unfinished/chapter.tex", "thesis.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).touch()
        before = sorted(tmp_path.rglob("*"))
        assert "which holds other files" in refused(*small("--vary", "seed=0", "--out", tmp_path))
        assert sorted(tmp_path.rglob("*")) == before
    (tmp_path / "file").touch()
    assert "it must be a writable folder" in refused(*small("--vary", "seed=0", "--out", tmp_path / "file"))
    for command in ("status", "plot"):
        assert "there is no sweep in it" in refused("sweep", command, tmp_path)


def test_a_sweep_is_drawn_as_curve_heat_map_multiples_and_fields(tmp_path):
    three = {"schedule.r_b": [0.5, 1], "schedule.r_r": [0, 10, 100], "hold": [10, 20], "seed": [0, 1]}
    ah.sweep(BASE, three, tmp_path / "F", workers=2)
    for options in (
        ["--measure", "gini"],
        ["--at", "hold=10"],
        ["--at", "hold=10", "--at", "schedule.r_b=0.5", "--measure", "factor_recovery"],
        ["--at", "hold=10", "--fields"],
        ["--at", "hold=10", "--at", "schedule.r_b=1", "--fields"],
    ):
        picture = tmp_path / "drawn.png"
        picture.unlink(missing_ok=True)
        done = call_here("sweep", "plot", tmp_path / "F", *options, "--out", picture)
        assert done.returncode == 0 and picture.read_bytes().startswith(b"\x89PNG"), done.stderr
    said = refused("sweep", "plot", tmp_path / "F", "--measure", "beauty")
    assert "measure is 'beauty'; it must be one of steps, error, error_last" in said
    assert "3 parameters (schedule.r_b, schedule.r_r, hold)" in refused("sweep", "plot", tmp_path / "F", "--fields")
    assert "its values are 10, 20" in refused("sweep", "plot", tmp_path / "F", "--at", "hold=11")
    assert "the axes of the sweep are" in refused("sweep", "plot", tmp_path / "F", "--at", "speed=11")


def test_a_heat_map_shows_the_mean_over_seeds(tmp_path):
    from asynchebb.sweeps import plots

    dataset = ah.sweep(BASE, {"schedule.r_b": [0.5, 1], "hold": [10, 20], "seed": [0, 1]}, tmp_path, workers=1)
    axes = plots.measure(dataset, "error").axes[0]
    assert np.allclose(axes.images[0].get_array(), dataset.error.mean("seed").transpose("hold", "schedule.r_b"))
    curve = plots.measure(dataset.isel(hold=[0]), "error").axes[0]
    assert np.allclose(curve.lines[0].get_ydata(), dataset.error[:, 0].mean("seed"))
    [bars] = [container for container in curve.containers]
    spread = [segment[:, 1].ptp() / 2 if hasattr(segment, "ptp") else np.ptp(segment[:, 1]) / 2
              for segment in bars[2][0].get_segments()]  # fmt: skip
    assert np.allclose(spread, dataset.error[:, 0].std("seed", ddof=1))


def test_the_time_left_is_told_from_the_pace_of_the_last_runs(tmp_path):
    made = grid(BASE, {"seed": range(7)})
    at = Folder(tmp_path)
    at.prepare()
    points = at.write_grid(repr(made.run), made.axes, [*made])
    now = time.time()
    os.utime(at.grids / f"{points.name}.json", (now - 100, now - 100))
    for number, identity in enumerate(points.identities[:5]):
        at.file(identity, "nc").touch()
        at.write(at.file(identity, "json"), {})
        os.utime(at.file(identity, "json"), (now - 50 + 10 * number,) * 2)
    at.file(points.identities[5], "claim").write_text(json.dumps({"place": "elsewhere", "process": 1}))
    status = points.status()
    assert (status.done, status.running, status.failed, status.waiting) == (5, 1, 0, 1)
    assert status.seconds_left == pytest.approx(20, abs=0.1)  # ten seconds a run, two are left


def test_a_run_files_may_be_read_without_this_package(tmp_path):
    dataset = ah.sweep(BASE, {"seed": [0]}, tmp_path, workers=1)
    with xarray.open_dataset(tmp_path / "runs" / f"{dataset.run.values[0]}.nc") as plain:
        assert plain.error[-1, -1] == dataset.error[0]


def test_a_damaged_run_is_put_aside_and_run_again_and_damaged_measures_are_taken_again(tmp_path, capsys):
    base, axes = ah.Run(BASE.network, BASE.phases, TESTED), {"seed": range(3)}
    ah.sweep(base, axes, tmp_path / "F", engine="reference", progress=False)
    files = sorted((tmp_path / "F" / "runs").glob("*.nc"))
    whole = {file: file.read_bytes() for file in files}
    files[0].write_bytes(whole[files[0]][:-100])
    spoilt = bytearray(whole[files[1]])
    spoilt[len(spoilt) // 2] ^= 1
    files[1].write_bytes(spoilt)
    measured = files[2].with_suffix(".json")
    measures = measured.read_bytes()
    measured.write_bytes(measures.replace(b'"error": ', b'"eror": '))
    with pytest.warns(ah.DamagedRuns, match=f"{measured.name} is damaged; the same sweep runs what is damaged again"):
        opened = ah.open_sweep(tmp_path / "F")  # which goes on without these
    assert opened.failure.values[[*opened.run.values].index(files[2].stem)] == f"{measured} is damaged"
    assert opened.error.notnull().sum() == 2
    with pytest.warns(ah.DamagedRuns, match=f"{files[0].name} is damaged; its values are NaN"):
        assert opened.W.notnull().any(["neuron", "input"]).sum() == 1
    assert opened.error.notnull().sum() == 2
    ah.sweep(base, axes, tmp_path / "F", engine="reference", progress=False)
    said = capsys.readouterr().err
    assert all(f"{file} is damaged" in said for file in files[:2]) and f"{measured} was damaged" in said
    assert f"{files[2]} " not in said
    assert {file: file.read_bytes() for file in files} == whole and measured.read_bytes() == measures
    assert sorted(file.name for file in (tmp_path / "F" / "runs").glob("*.damaged")) == [
        f"{file.stem}.nc.damaged" for file in files[:2]
    ]
