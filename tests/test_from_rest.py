"""Stimuli from rest: activity starts from u = y = 0 at each, in runs, tests, sweeps, estimators and commands."""

import numpy as np
import pytest
from test_cli import call_here, refused

import asynchebb as ah
from asynchebb import provenance
from asynchebb.checks import InputError
from asynchebb.sweeps.grid import grid

BARS = ah.Crossbars(6)
X = BARS.sample(np.random.default_rng(1), 5)
NETWORK = ah.asynchronous(n=30, m=36, schedule=ah.Asynchronous(r_b=0.2, r_r=10))


def from_rest_by_hand(network, state, hold, engine):
    """A stimulus at a time, with the activity taken away before each."""
    for x in X:
        state = state._replace(u=np.zeros_like(state.u), y=np.zeros_like(state.y))
        state, _ = ah.advance(network, state, x[None], hold, engine)
    return state


@pytest.mark.parametrize("dynamics", [ah.Potential(), ah.Projected()], ids=repr)
def test_from_rest_is_the_activity_taken_away_before_each_stimulus(dynamics, engine):
    network = ah.asynchronous(n=30, m=36, dynamics=dynamics, schedule=ah.Asynchronous(r_b=0.2, r_r=10))
    start = network.init(np.random.default_rng(0))
    shown, _ = ah.advance(network, start, X, 60, engine, from_rest=True)
    by_hand = from_rest_by_hand(network, start, 60, engine)
    carried_over, _ = ah.advance(network, start, X, 60, engine)
    for name in ah.State._fields:
        assert np.array_equal(getattr(shown, name), getattr(by_hand, name)), name
    assert not np.array_equal(shown.W, carried_over.W) and not np.array_equal(shown.W, start.W)


def test_what_was_shown_before_does_not_matter_to_a_frozen_network_from_rest(engine):
    state = NETWORK.init(np.random.default_rng(0))
    frozen = NETWORK.frozen()
    _, alone = ah.advance(frozen, state, X[3:4], 40, engine, ("y", "active"), from_rest=True)
    _, after_others = ah.advance(frozen, state, X, 40, engine, ("y", "active"), from_rest=True)
    for name in ("y", "active"):
        assert np.array_equal(alone[name], after_others[name][120:160])


def test_a_probe_from_rest_measures_each_stimulus_by_itself(engine):
    state = NETWORK.init(np.random.default_rng(0))
    together = ah.respond(NETWORK, state, X, 40, engine, from_rest=True)
    alone = [ah.respond(NETWORK, state, x[None], 40, engine, from_rest=True) for x in X]
    assert together.error.last == pytest.approx(np.mean([one.error.last for one in alone]))
    assert together.mean_activity == pytest.approx(np.mean([one.mean_activity for one in alone], axis=0))


def test_the_usual_probes_do_as_the_phases_do():
    phases = [ah.Phase(BARS, 4, 50, from_rest=True), ah.Phase(ah.Squares(6), 4, 50)]
    run = ah.Run(NETWORK, phases)
    assert [(probe.stimulus, probe.from_rest) for probe in run.probes] == [(BARS, True), (ah.Squares(6), False)]
    assert not run.has_own_probes


def test_a_run_knows_whether_it_is_from_rest_and_runs_kept_before_there_was_such_a_thing_are_still_found(monkeypatch):
    monkeypatch.setattr(provenance, "RESULTS_VERSION", 2)  # as it was then
    network = ah.asynchronous(n=20, m=36, reading="notebook")

    def identity(network=network, **onset):
        return ah.Run(network, [ah.Phase(BARS, 10, 50, **onset)]).identity

    assert identity() == identity(from_rest=False) == "2c2917490913d22d4355"
    assert identity(from_rest=True) != identity()
    gaussian = ah.asynchronous(n=20, m=36, reading="notebook", weights=ah.Gaussian())
    assert identity(gaussian) == "d6eba0ab38aded35e457"
    assert identity(ah.asynchronous(n=20, m=36, reading="notebook", weights=ah.Gaussian(scale=0.2))) != identity(
        gaussian
    )
    probed = ah.Run(network, [ah.Phase(BARS, 10, 50)], [ah.Probe(BARS, from_rest=True)])
    assert probed.identity != identity()


def test_a_run_from_rest_that_was_broken_off_ends_in_the_same_bits(tmp_path, engine):
    run = ah.Run(NETWORK, [ah.Phase(BARS, 12, 40, snapshots=3, from_rest=True)], ah.Probe(BARS, 10, 60, from_rest=True))
    whole = [*ah.simulate(run, engine)]
    rest = [*ah.simulate(run, engine, after=whole[1])]
    assert np.array_equal(whole[-1].state.W, rest[-1].state.W)
    assert whole[-1].measures["error"] == rest[-1].measures["error"]


@pytest.mark.parametrize("weights", [ah.Gaussian, ah.Exponential])
def test_scaled_weights_are_the_usual_ones_times_the_scale(weights):
    usual, scaled = (each.draw(np.random.default_rng(0), (4, 5), 7) for each in (weights(), weights(scale=0.2)))
    assert weights().scale == 1 and scaled == pytest.approx(0.2 * usual)
    with pytest.raises(InputError, match="scale is 0; it must be a number above 0"):
        weights(scale=0)


def test_bad_onsets_are_refused():
    for make in (lambda v: ah.Phase(BARS, 1, from_rest=v), lambda v: ah.Probe(BARS, from_rest=v)):
        with pytest.raises(InputError, match=r"from_rest is 'no'; it must be True or False"):
            make("no")
    with pytest.raises(InputError, match=r"from_rest is 1; it must be True or False"):
        ah.advance(NETWORK, NETWORK.init(np.random.default_rng(0)), X, 5, from_rest=1)


def test_presets_are_read_by_name():
    assert ah.discrete(5, 4, reading="notebook") == ah.READINGS["notebook"].network("discrete", 5, 4)
    assert ah.asynchronous(5, 4) == ah.READINGS["paper"].network("asynchronous", 5, 4) == ah.Network(5, 4)
    with pytest.raises(InputError, match="reading is 'mine'; it must be one of paper, notebook"):
        ah.continuous(reading="mine")


SMALL = ("--stimulus", "Crossbars(6)", "--n", 20, "--samples", 6, "--hold", 20, "--snapshots", 1)


def test_the_command_line_shows_stimuli_as_the_reading_does_unless_it_is_told(tmp_path):
    def phase(*options):
        done = call_here("run", *SMALL, *options, "--out", tmp_path / "run.nc", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        with ah.open_run(tmp_path / "run.nc") as dataset:
            told = dataset.attrs["phases"], ah.network_of(dataset)
        (tmp_path / "run.nc").unlink()
        return told

    usual, network = phase()
    assert "from_rest=True" in usual and network == ah.asynchronous(20, 36)
    assert "from_rest=False" in phase("--carried-over")[0]
    notebook, network = phase("--reading", "notebook")
    assert "from_rest=False" in notebook and network == ah.asynchronous(20, 36, reading="notebook")
    assert "from_rest=True" in phase("--reading", "notebook", "--from-rest")[0]
    assert "reading is 'mine'; it must be one of paper, notebook" in refused("run", "--reading", "mine")


def test_a_sweep_varies_the_onset_and_its_models_keep_the_reading(tmp_path):
    run = ah.Run(
        ah.asynchronous(15, 36, reading="notebook"), [ah.Phase(BARS, 4, 20, snapshots=1)], ah.Probe(BARS, 5, 50)
    )
    dataset = ah.sweep(run, {"from_rest": [False, True]}, tmp_path, engine="reference", workers=1, progress=False)
    assert list(dataset.from_rest.values) == [False, True] and len({*dataset.run.values}) == 2
    runs = list(grid(run, {"model": ["discrete", "continuous"]}))
    assert [run.network for run in runs] == [
        ah.discrete(15, 36, reading="notebook"),
        ah.continuous(15, 36, reading="notebook"),
    ]


def test_an_estimator_learns_from_rest_if_it_is_asked_to(engine):
    images = BARS.sample(np.random.default_rng(0), 12)

    def learn(from_rest):
        model = ah.AsyncHebbian(
            20, max_iter=1, hold=60, r_b=0.2, r_r=5, from_rest=from_rest, random_state=0, engine=engine
        )
        return model.fit(images)

    carried_over, from_rest = learn(False), learn(True)
    assert not np.array_equal(carried_over.components_, from_rest.components_)
    stream = learn(True)
    stream.partial_fit(images[:3])
    one_by_one = learn(True)
    for image in images[:3]:
        one_by_one.partial_fit(image[None])
    assert np.array_equal(stream.components_, one_by_one.components_)
