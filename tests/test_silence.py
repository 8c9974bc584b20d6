"""Networks that have died or never learned, or that are unstable, say so, wherever they are run."""

import dataclasses
import re
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from test_cli import call

import asynchebb as ah
from asynchebb.runs.silence import instability

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


@dataclass(frozen=True)
class Leaky:
    """Dynamics of one's own, for which dt (λ + 1/τ) must be less than 2."""

    dt: float = 0.02
    tau: float = 0.1

    def step(self, u_i, drive_i):
        u_i = u_i + self.dt * (drive_i - u_i / self.tau)
        return u_i, u_i * (u_i > 0)


@dataclass(frozen=True)
class Above:
    """A rate that rises once u_i is above 1, twice as fast; without a field called dt."""

    pace: float = 0.01

    def step(self, u_i, drive_i):
        u_i = u_i + self.pace * drive_i
        return u_i, 2.0 * np.maximum(u_i - 1.0, 0.0)


# The largest λ(M) at which they are stable, and u and y at the fixed point of the rates for a drive of 36.
LIMITS = {
    ah.Potential(0.01): (200, lambda largest: (36 / largest, 36 / largest)),
    ah.Projected(0.02): (100, lambda largest: (36 / largest, 36 / largest)),
    ah.Relaxing(0.01, 0.2): (39, lambda largest: (36 / (1 + largest), 36 / (1 + largest))),  # (dt/τ)(1 + λ) = 2
    ah.HomeostaticRelaxing(0.01, 0.2): (39, None),  # its threshold moves all the time
    Leaky(): (90, lambda largest: (36 / (10 + largest), 36 / (10 + largest))),
    Above(): (100, lambda largest: (1 + 18 / largest, 36 / largest)),
}
UNSTABLE = ah.asynchronous(n=60, m=36, weights=ah.Gaussian(scale=5.0))  # λ is about 60 · 4, and the limit 200


@pytest.mark.parametrize("dynamics", LIMITS, ids=repr)
def test_a_network_is_called_unstable_where_small_deviations_flip_and_grow(dynamics):
    limit, fixed_point = LIMITS[dynamics]
    network = ah.Network(8, 36, dynamics, ah.Oja(), ah.Frozen())
    state = network.init(np.random.default_rng(0), np.float64)
    for largest, is_unstable in ((0.97 * limit, False), (1.03 * limit, True)):
        M = np.full((8, 8), largest / 8, order="F")
        assert bool(instability(network, M)) == is_unstable
        if fixed_point:
            u, y = fixed_point(largest)
            begin = state._replace(W=np.ones((8, 36)), M=M, u=np.full(8, u * (1 + 1e-6)), y=np.full(8, y * (1 + 1e-6)))
            _, traces = ah.advance(network, begin, np.ones((1, 36)), 60, "reference", ("y",))
            off = traces["y"][:, 0] - y
            assert (abs(off[-1]) > abs(off[0])) == is_unstable and off[-1] * off[-2] < 0
    found = re.search(r"is (\S+), where .* above (\S+) all neurons", instability(network, M))
    expected = limit * getattr(dynamics, "dt", 1)
    assert [float(number) for number in found.groups()] == pytest.approx([1.03 * expected, expected], rel=0.01)
    assert ("unstable: dt · λ(M) is" in instability(network, M)) == hasattr(dynamics, "dt")


def test_each_remedy_would_do():
    network = dataclasses.replace(UNSTABLE, weights=ah.Gaussian(scale=5.0, shrinks_from=55))
    M = network.init(np.random.default_rng(0)).M
    said = instability(network, M)
    found = dict(re.findall(r"(\w+\.\w+) = ([\d.e-]+)", said))
    assert [*found] == ["dynamics.dt", "weights.scale", "weights.shrinks_from"]
    for name, value in found.items():
        part, field = name.split(".")
        number = int(value) if field == "shrinks_from" else float(value)
        changed = dataclasses.replace(network, **{part: dataclasses.replace(getattr(network, part), **{field: number})})
        assert not instability(changed, changed.init(np.random.default_rng(0)).M)
    assert "weights." not in instability(network, M, learned=True)  # they are what they are
    assert "dt · λ(M)" in instability(dataclasses.replace(network, dynamics=ah.Potential()), M)
    assert not instability(dataclasses.replace(network, dynamics=ah.IntegrateAndFire()), M)


def test_an_unstable_network_warns_at_the_start(tmp_path):
    def stop(steps):
        raise KeyboardInterrupt

    run = ah.Run(UNSTABLE, PHASE, PROBE)
    with pytest.warns(
        ah.UnstableNetwork, match=r"dt · λ\(M\) is 2\.4\d, .* above 2 all neurons go on and off together"
    ):
        ah.simulate(run, "reference")
    with pytest.warns(ah.UnstableNetwork), pytest.raises(KeyboardInterrupt):
        ah.record(run, tmp_path, "reference", on_progress=stop)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calm = ah.Run(ah.asynchronous(n=20, m=36), PHASE, PROBE)
        _, middle, _ = ah.simulate(calm, "reference")
    strong = middle._replace(state=middle.state._replace(M=middle.state.M * 100))
    with pytest.warns(ah.UnstableNetwork, match=r"hardly learn. Use dynamics.dt = [\d.]+$"):
        ah.simulate(calm, "reference", after=strong)


def test_a_sweep_counts_unstable_networks_and_warns_once(tmp_path):
    run = ah.Run(UNSTABLE, ah.Phase(BARS, samples=2, hold=50, snapshots=1), PROBE)
    with pytest.warns(UserWarning) as warned:
        varied = {"weights.scale": [0.1, 5.0, 6.0]}
        dataset = ah.sweep(run, varied, tmp_path, workers=1, engine="reference", progress=False)
    said = [str(one.message) for one in warned if one.category is ah.UnstableNetwork]
    assert said == ["2 of 3 runs are unstable: dt is too long for their initial weights; see dataset.unstable"]
    assert dataset.unstable.values.tolist() == [0, 1, 1] and "dt" in dataset.unstable.attrs["long_name"]


def test_the_command_says_at_once_that_a_network_is_unstable(tmp_path):
    small = ["--n", 60, "--stimulus", "Crossbars(6)", "--samples", 3, "--hold", 20, "--weights", "Gaussian(scale=5)"]
    done = call("run", *small, "--out", tmp_path / "run")
    assert done.returncode == 0
    assert done.stderr.startswith("asynchebb: warning: the network is unstable: dt · λ(M) is 2.")


def test_an_estimator_warns_of_unstable_weights_and_its_own_are_stable():
    X = BARS.sample(np.random.default_rng(0), 5)
    with pytest.warns(ah.UnstableNetwork, match=r"dt · λ\(M\) is 2\.\d+, .* or weights.scale = 0\.\d+ or"):
        ah.AsyncHebbian(300, weights=ah.Gaussian(), max_iter=1, hold=1, readout=False, engine="reference").fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ah.UnstableNetwork)
        ah.AsyncHebbian(1000, max_iter=1, hold=1, readout=False, engine="reference").begin(X)
