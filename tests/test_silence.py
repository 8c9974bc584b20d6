"""Networks that have died or never learned say so, wherever they are run."""

import warnings

import numpy as np
import pytest
from test_cli import call

import asynchebb as ah

BARS = ah.Crossbars(6)
PHASE = ah.Phase(BARS, samples=60, hold=100, snapshots=2, from_rest=True)
PROBE = ah.Probe(BARS, samples=5, hold=50, from_rest=True)
SILENT = {
    "nobody bursts": (ah.asynchronous(n=20, m=36, schedule=ah.Asynchronous(r_b=30)), "nothing was learned: no weight"),
    "weights overshoot": (ah.discrete(n=20, m=36, rule=ah.Hebbian(eta=1.9)), "all weights have become 0; lower the ru"),
}


@pytest.mark.parametrize("network", SILENT)
def test_a_run_of_a_silent_network_warns(network, tmp_path):
    network, said = SILENT[network]
    with pytest.warns(ah.SilentNetwork, match=said):
        ah.record(ah.Run(network, PHASE, PROBE), tmp_path, "reference")
    with pytest.warns(ah.SilentNetwork, match=said):  # when it is opened again, too
        ah.record(ah.Run(network, PHASE, PROBE), tmp_path, "reference")


@pytest.mark.parametrize("schedule", [ah.Asynchronous(r_b=0.1), ah.Frozen()], ids=repr)
def test_a_network_that_learns_or_is_meant_not_to_does_not_warn(schedule, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ah.record(ah.Run(ah.asynchronous(n=20, m=36, schedule=schedule), PHASE, PROBE), tmp_path, "reference")


def test_a_sweep_counts_silent_networks_and_says_which(tmp_path):
    run = ah.Run(ah.asynchronous(n=20, m=36), PHASE, PROBE)
    with pytest.warns(ah.SilentNetwork, match="1 of 2 runs learned nothing or have died; see dataset.silent"):
        dataset = ah.sweep(run, {"schedule.r_b": [0.1, 30]}, tmp_path, workers=1, engine="reference", progress=False)
    assert dataset.silent.values.tolist() == [0, 1] and "learned" in dataset.silent.attrs["long_name"]


def test_the_commands_warn_in_a_sentence(tmp_path):
    small = ["--n", 20, "--stimulus", "Crossbars(6)", "--samples", 5, "--hold", 20]
    done = call("run", *small, "--schedule", "Asynchronous(r_b=30)", "--out", tmp_path / "run")
    assert done.returncode == 0 and done.stderr.startswith("asynchebb: warning: nothing was learned: no weight has ch")
    done = call("sweep", "run", *small, "--vary", "schedule.r_b=0.01,30", "--workers", 1, "--out", tmp_path / "sweep")
    warning = "asynchebb: warning: 1 of 2 runs learned nothing or have died (schedule.r_b=30)"
    assert done.returncode == 0 and warning in done.stderr.replace("\n", " ")


def test_an_interrupted_training_is_saved_at_once_and_resumes(tmp_path):
    from asynchebb.own_data import learn, load

    data = load.Data("bars", BARS.sample(np.random.default_rng(0), 300))

    def model():
        return ah.AsyncHebbian(10, max_iter=2, hold=5, settle=5, random_state=0, engine="reference")

    def stop(shown, of):
        if shown >= 128:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn.learn(model(), data, tmp_path / "stopped", on_progress=stop)
    seen = []
    learn.learn(model(), data, tmp_path / "stopped", on_progress=lambda shown, of: seen.append(shown))
    learn.learn(model(), data, tmp_path / "whole")
    assert seen[0] > 128  # it did not start over
    stopped, whole = (ah.load_model(tmp_path / name / "model.nc") for name in ("stopped", "whole"))
    assert np.array_equal(stopped.components_, whole.components_)
