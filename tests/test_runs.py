"""Runs: a stable identity, a stream of snapshots, one file that survives anything."""

import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass, replace

import netCDF4
import numpy as np
import pytest
import xarray

import asynchebb as ah


def a_run(**changes):
    network = ah.asynchronous(n=30, m=36, reading="notebook", schedule=ah.Asynchronous(r_b=0.5, r_r=20))
    phases = (ah.Phase(ah.Crossbars(6), 60, 40, snapshots=3), ah.Phase(ah.Squares(6), 50, 30, snapshots=2))
    probes = tuple(ah.Probe(phase.stimulus, samples=10, hold=30) for phase in phases)
    return ah.Run(network, phases, **{"probes": probes, "trace": ("updates", "active", "y", "burst"), **changes})


@dataclass(frozen=True)
class Exploding:
    """Weights grow without bound."""

    eta: float = 0.5
    floor = 0.0

    def leak_w(self, y_i):
        return -9.0

    def leak_m(self, y_i):
        return -9.0

    def rate(self, y_i, a_i):
        return self.eta, a_i


def test_the_identity_is_the_same_for_the_same_run_and_another_for_any_change():
    run = a_run()
    assert run.identity == a_run().identity
    assert replace(run, probes=()).identity == "165df05357bae1718c76"  # on any machine, in any process
    others = [
        a_run(seed=1),
        a_run(dtype="float64"),
        a_run(probes=(ah.Probe(ah.Crossbars(6), 10),)),
        replace(run, trace=("updates",)),
        replace(run, phases=run.phases[:1]),
        replace(run, network=replace(run.network, schedule=ah.Asynchronous(r_b=0.6, r_r=20))),
        replace(run, network=replace(run.network, rule=ah.Oja(eta=0.01))),  # the same fields, another class
        replace(run, network=replace(run.network, rule=Exploding(eta=0.01))),
    ]
    assert len({run.identity, *(other.identity for other in others)}) == 1 + len(others)
    assert a_run(seed=2**53).identity != a_run(seed=2**53 + 1).identity
    same = replace(run, network=replace(run.network, schedule=ah.Asynchronous(r_b=0.5, r_r=20.0)))
    assert same.identity == run.identity == replace(run, trace=run.trace[::-1]).identity


def test_a_seed_may_be_as_large_as_numpy_draws_them(tmp_path):
    seed = np.random.SeedSequence(5).entropy + 2**100
    run = ah.Run(ah.Network(n=5, m=4), ah.Phase(ah.FromArray(np.eye(4)), 2, 3), seed=seed)
    assert ah.record(run, tmp_path).attrs["seed"] == str(seed)


def test_an_array_is_known_by_its_contents():
    network = ah.Network(n=5, m=4)
    images = np.random.default_rng(0).random((6, 4))
    runs = [ah.Run(network, (ah.Phase(ah.FromArray(data), 5),)) for data in (images, images.copy(), images * 0.5)]
    assert runs[0].identity == runs[1].identity != runs[2].identity


def test_snapshots_follow_advance_whatever_their_number(engine):
    """The same stimuli and the same bits, looked at once or often."""
    network, probe = ah.asynchronous(n=20, m=36), ah.Probe(ah.Crossbars(6), samples=5, hold=20)
    often = [*ah.simulate(ah.Run(network, ah.Phase(ah.Crossbars(6), 300, 5, snapshots=7), probe), engine)]
    once = [*ah.simulate(ah.Run(network, ah.Phase(ah.Crossbars(6), 300, 5, snapshots=1), probe), engine)]
    assert [snapshot.step for snapshot in once] == [0, 1500] and len(often) == 8
    assert all(np.array_equal(a, b) for a, b in zip(often[-1].state, once[-1].state, strict=True))
    assert not any(np.shares_memory(often[k].state.W, often[k + 1].state.W) for k in range(7))
    updates = np.concatenate([snapshot.traces["updates"] for snapshot in often[1:]])
    assert np.array_equal(updates, once[-1].traces["updates"]) and len(updates) == 300


def test_models_of_one_seed_start_alike_and_see_the_same_stimuli():
    runs = [ah.Run(model(20, 36), ah.Phase(ah.Crossbars(6), 30, 1)) for model in (ah.asynchronous, ah.discrete)]
    first = [next(ah.simulate(run)).state for run in runs]
    assert all(np.array_equal(a, b) for a, b in zip(*first, strict=True))


def test_a_recording_holds_weights_measures_traces_and_all_parameters(tmp_path):
    run = a_run()
    dataset = ah.record(run, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f"{run.name}-{run.identity}.nc"]
    snapshots = [*ah.simulate(run)]
    assert dataset.sizes == {
        "snapshot": 6, "neuron": 30, "presynaptic": 30, "input": 36, "probe": 2, "sample": 110,
    }  # fmt: skip
    assert dataset.step.values.tolist() == [0, 800, 1600, 2400, 3150, 3900]
    assert dataset.phase.values.tolist() == [0, 0, 0, 0, 1, 1]
    for number, snapshot in enumerate(snapshots):
        state = ah.state_at(dataset, number)
        assert all(np.array_equal(a, b) for a, b in zip(state, snapshot.state, strict=True))
        for name, values in snapshot.measures.items():
            assert np.array_equal(dataset[name][number], values)
    assert np.array_equal(dataset.trace_updates, np.concatenate([s.traces["updates"] for s in snapshots[1:]]))
    assert np.array_equal(dataset.trace_burst[2], snapshots[2].traces["burst"])
    assert np.isnan(dataset.trace_y[0]).all()
    for beyond in (6, -7, "last"):
        with pytest.raises(ah.InputError, match="it must be a whole number from -6 to 5"):
            ah.state_at(dataset, beyond)
    assert dataset.attrs["rule"] == "Hebbian(eta=0.01)" and dataset.attrs["seed"] == 0
    assert {"asynchebb_version", "numpy_version", "numba_version", "engine", "dtype"} <= set(dataset.attrs)
    assert ah.network_of(dataset) == run.network
    assert dataset.stimulus.values.tolist() == ["Crossbars(p=6)", "Squares(p=6)"]
    plain = xarray.open_dataset(tmp_path / f"{run.name}-{run.identity}.nc")  # without this package
    assert plain.identical(dataset)


def test_a_file_is_one_that_netcdf_c_reads(tmp_path):
    """The files are written by h5py; the netCDF4 package, on top of the C library, knows them for NetCDF."""
    dataset = ah.record(a_run(), tmp_path / "run.nc")
    with netCDF4.Dataset(tmp_path / "run.nc") as file:
        assert file.data_model == "NETCDF4"
        assert {name: len(size) for name, size in file.dimensions.items()} == {**dataset.sizes}
        assert {*file.variables} == {*dataset.variables}
        for name, variable in file.variables.items():
            assert variable.dimensions == dataset[name].dims and variable.long_name == dataset[name].attrs["long_name"]
            assert np.array_equal(
                np.ma.filled(variable[:], np.nan), dataset[name].values, equal_nan=name[:5] == "trace"
            )
        assert file.identity == dataset.attrs["identity"] and file.seed == 0
        assert file.picture_shape.tolist() == [6, 6]


def test_a_kept_state_goes_on_as_if_it_had_not_been_kept(tmp_path):
    run = a_run()
    dataset = ah.record(run, tmp_path)
    X = ah.Crossbars(6).sample(np.random.default_rng(7), 10)
    kept, _ = ah.advance(run.network, ah.state_at(dataset), X, hold=20)
    live, _ = ah.advance(run.network, [*ah.simulate(run)][-1].state, X, hold=20)
    assert all(np.array_equal(a, b) for a, b in zip(kept, live, strict=True))


def test_a_finished_run_is_not_run_again(tmp_path, monkeypatch):
    run = a_run()
    first = ah.record(run, tmp_path / "kept.nc")
    monkeypatch.setattr("asynchebb.runs.recording.work", lambda *a, **k: pytest.fail("it ran again"))
    assert ah.record(run, tmp_path / "kept.nc").identical(first)
    with pytest.raises(ah.InputError, match="holds another run"):
        ah.record(a_run(seed=1), tmp_path / "kept.nc")


def with_tests(step):
    """The steps done once training is at this one and has been tested there: the bar counts tests too."""
    run = a_run()
    return step + sum(stop <= step for *_, stop in run.stops()) * run.steps_per_test


KILLED = textwrap.dedent("""
    import os, signal, sys
    import numpy as np
    sys.path.insert(0, {tests!r})
    import asynchebb as ah
    from asynchebb.runs import recording
    from test_runs import a_run, with_tests

    def die(*_, **__):
        os.kill(os.getpid(), signal.SIGKILL)

    def die_at(step):
        return lambda done: done >= step and die()

    recording.NOT_WORTH_A_FILE = 0  # so short a run would not be worth parts
    moment, folder = sys.argv[1:]
    progress = lambda done: None
    if moment.isdigit():
        progress = die_at(with_tests(int(moment)))
    elif moment == "while a part is written":
        write, parts = np.savez, []
        def savez(file, **arrays):
            parts.append(file)
            if len(parts) == 3:
                file.write(b"half a part")
                file.flush()
                die()
            write(file, **arrays)
        np.savez = savez
    elif moment == "before the file has its name":
        here = lambda: os.listdir(next(os.path.join(folder, name) for name in os.listdir(folder)))
        os.fsync = lambda *_: any(".nc." in name for name in here()) and die()
    elif moment == "before the parts are removed":
        recording._clear = die
    ah.record(a_run(), folder, on_progress=progress)
""")


@pytest.mark.parametrize(
    "moments",
    [
        pytest.param(["1"], marks=pytest.mark.slow),
        pytest.param(["800", "801", "2400"], marks=pytest.mark.slow),
        ["1700", "while a part is written"],
        ["before the file has its name"],
        pytest.param(["3900", "before the parts are removed"], marks=pytest.mark.slow),
    ],
    ids=", ".join,
)
def test_a_run_killed_at_any_moment_ends_bit_identical(moments, tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(KILLED.format(tests=os.path.dirname(__file__)))
    folder = tmp_path / "runs"
    for moment in moments:
        done = subprocess.run([sys.executable, script, moment, folder], capture_output=True, text=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
    ah.record(a_run(), folder)
    ah.record(a_run(), tmp_path / "unbroken")
    name = f"{a_run().name}-{a_run().identity}.nc"
    assert (folder / name).read_bytes() == (tmp_path / "unbroken" / name).read_bytes()


def test_a_killed_run_goes_on_and_does_not_start_over(tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(KILLED.format(tests=os.path.dirname(__file__)))
    subprocess.run([sys.executable, script, "2000", tmp_path / "runs"])
    steps = []
    ah.record(a_run(), tmp_path / "runs", on_progress=steps.append)
    assert steps[0] == with_tests(1600)  # the last snapshot before the kill
    assert steps == sorted(steps) and steps[-1] == with_tests(3900) == a_run().steps_with_tests


@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_part_that_the_disk_has_spoilt_is_computed_again(which, tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(KILLED.format(tests=os.path.dirname(__file__)))
    subprocess.run([sys.executable, script, "2000", tmp_path / "runs"])
    part = sorted((tmp_path / "runs").glob("*.parts/*.npz"))[which]
    spoilt = bytearray(part.read_bytes())
    spoilt[len(spoilt) // 2] ^= 1
    part.write_bytes(spoilt)
    ah.record(a_run(), tmp_path / "runs")
    ah.record(a_run(), tmp_path / "unbroken")
    name = f"{a_run().name}-{a_run().identity}.nc"
    assert (tmp_path / "runs" / name).read_bytes() == (tmp_path / "unbroken" / name).read_bytes()


def test_parts_are_those_of_one_engine_and_nothing_of_another_is_removed(tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(KILLED.format(tests=os.path.dirname(__file__)))
    subprocess.run([sys.executable, script, "2000", tmp_path / "runs"])  # on the cpu engine
    [parts] = (tmp_path / "runs").glob("*.parts")
    (parts / "notes.txt").write_text("mine")
    ah.record(a_run(), tmp_path / "runs", "reference")
    ah.record(a_run(), tmp_path / "unbroken", "reference")
    name = f"{a_run().name}-{a_run().identity}.nc"
    assert (tmp_path / "runs" / name).read_bytes() == (tmp_path / "unbroken" / name).read_bytes()
    assert [path.name for path in parts.iterdir()] == ["notes.txt"]
    assert [path.name for path in (tmp_path / "unbroken").iterdir()] == [name]


def test_a_run_that_diverges_stops_says_where_and_keeps_what_was_good(tmp_path, engine):
    network = ah.Network(n=10, m=36, rule=Exploding(), schedule=ah.Discrete())
    probe = ah.Probe(ah.Crossbars(6), samples=5, hold=20)
    run = ah.Run(network, ah.Phase(ah.Crossbars(6), 200, 2, snapshots=20), probe)
    with pytest.raises(ah.Diverged, match=r"no longer finite at step \d+.*Exploding\(eta=0.5\)") as diverged:
        ah.record(run, tmp_path, engine)
    step = diverged.value.step
    with ah.open_run(tmp_path / f"{run.name}-{run.identity}.nc") as kept:
        assert 0 < step <= 400 and kept.attrs["diverged_at_step"] == step
        assert kept.step.values[-1] == step - 20 and np.isfinite(kept.W).all()
    with pytest.raises(ah.Diverged, match="saved in"):  # and is not run again
        ah.record(run, tmp_path, engine)
    assert [path.name for path in tmp_path.iterdir()] == [f"{run.name}-{run.identity}.nc"]
