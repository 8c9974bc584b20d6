"""Every door that takes a state checks it: what it cannot use is refused, and the rest converted."""

import numpy as np
import pytest

import asynchebb as ah
from asynchebb import engines

STIMULUS = ah.Crossbars(4)
NETWORK = ah.asynchronous(n=6, m=16)
X = STIMULUS.sample(np.random.default_rng(0), 3)
PROBE = ah.Probe(STIMULUS, samples=2, hold=5)
RUN = ah.Run(NETWORK, ah.Phase(STIMULUS, samples=6, hold=20, snapshots=3, from_rest=True), PROBE)
SNAPSHOTS = [*ah.simulate(RUN, "reference")]
MIDDLE, STATE = SNAPSHOTS[1], SNAPSHOTS[1].state

# Each takes a network and a state.
DOORS = {
    "advance": lambda network, state: ah.advance(network, state, X, 5, "reference")[0],
    "advance_many": lambda network, state: ah.advance_many(network, [state], X, 5, "reference")[0][0],
    "respond": lambda network, state: ah.respond(network, state, X, 5, "reference"),
    "reconstruction_error": lambda network, state: ah.reconstruction_error(network, state, X, 5, "reference"),
    "error_matrix": lambda network, state: ah.error_matrix(network, [state], [X], 5, "reference"),
    "settle": lambda network, state: engines.settle(network, state, X.astype(np.float32), 5, "reference"),
    "simulate": lambda network, state: [
        *ah.simulate(
            ah.Run(network, RUN.phases, PROBE) if isinstance(network, ah.Network) else network,
            "reference",
            after=MIDDLE._replace(state=state),
        )
    ],
}


def nan(values):
    return np.full_like(values, np.nan)


# A field, what is made of it, and what is said.
REFUSED = {
    "rows that are missing": ("W", lambda W: W[:3], r"state.W has shape \(3, 16\); the network needs \(6, 16\)"),
    "an axis more": ("u", lambda u: u[None], r"state.u has shape \(1, 6\)"),
    "rows of different lengths": ("M", lambda M: [[1], [1, 2]], "state.M has rows of different lengths"),
    "nothing": ("y", lambda y: None, "state.y is None; it must hold real numbers"),
    "imaginary numbers": ("W", lambda W: W * 1j, "state.W has dtype complex64; it must hold real numbers"),
    "text": ("u", lambda u: u.astype(str), "state.u has dtype <U32"),
    "dates": ("c", lambda c: c.astype("datetime64[s]"), r"state.c has dtype datetime64\[s\]"),
    "records": ("a", lambda a: a.astype([("a", np.float32)]), "state.a has dtype .*; it must hold real numbers"),
    "masked entries": ("y", lambda y: np.ma.masked_array(y, y >= 0), "state.y has masked entries"),
    "numbers with a fraction that count": ("c", lambda c: c / 2, "state.c has dtype float64; it must hold whole"),
    "truths that count": ("t", lambda t: t > 0, "state.t has dtype bool; it must hold whole numbers"),
    "a count before the start": ("t", lambda t: -1, "state.t holds a number that is not from 0 to 9007199254740992"),
    "a count without end": ("c", lambda c: np.full(6, 2**64 - 1, np.uint64), "state.c holds a number that is not from"),
    "three spikes in a step": ("recent", lambda recent: np.full((2, 6), 3), "state.recent holds a number that is not"),
    "a third variable too short": ("h", lambda h: np.zeros(5), r"state.h has shape \(5,\); it must be empty or \(6,\)"),
    "weights below 0": ("M", lambda M: M - 1, "state.M has weights that are negative or not a number"),
    "weights that are not numbers": ("W", nan, "state.W has weights that are negative or not a number"),
    "weights without end": ("W", lambda W: W / 0, "state.W .*not"),
    "a potential that is not a number": ("u", nan, "state.u holds a number that is not finite in float32"),
    "a potential without end": ("u", lambda u: u - np.inf, "state.u holds a number that is not finite in float32"),
    "rates below 0": ("y", lambda y: -1 - y, r"state.y holds -\S+; rates must be at least 0"),
    "rates that are not numbers": ("y", nan, "state.y holds a number that is not finite in float32"),
    "an account that is not a number": ("a", nan, "state.a holds a number that is not finite in float32"),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_each_door_refuses_what_is_no_state_of_the_network(door):
    for name, make, said in REFUSED.values():
        with pytest.raises(ah.InputError, match=said):
            DOORS[door](NETWORK, STATE._replace(**{name: make(getattr(STATE, name))}))
    for other in (None, STIMULUS, tuple(STATE), STATE.W):
        with pytest.raises(ah.InputError, match=r"states? (is|holds) .*; it must (be a|hold only) State"):
            DOORS[door](NETWORK, other)
    for other in (None, "asynchronous", ah.asynchronous):
        with pytest.raises(ah.InputError, match=r"(network|run) is .*; it must be a (Network|Run)"):
            DOORS[door](other, STATE)


def in_other_clothes(state):
    """The same numbers in other types and orders, read-only, and lists."""
    arrays = {name: array.astype(array.dtype.newbyteorder(), copy=True) for name, array in state._asdict().items()}
    arrays |= {"M": state.M.copy(), "W": np.asfortranarray(state.W), "u": state.u.tolist(), "c": state.c.astype(">i8")}
    arrays |= {"y": np.repeat(state.y, 2)[::2], "t": np.int32(state.t)}
    for array in arrays.values():
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    return ah.State(**arrays)


@pytest.mark.parametrize("door", DOORS)
def test_each_door_takes_the_same_numbers_in_other_types_and_orders(door):
    ours, theirs = DOORS[door](NETWORK, STATE), DOORS[door](NETWORK, in_other_clothes(STATE))
    np.testing.assert_equal(ours, theirs)


def test_a_lesion_by_a_mask_of_other_precision_is_the_lesion():
    mask = np.random.default_rng(0).choice([0.0, 1.0], (6, 1))
    lesioned = STATE.W * mask
    assert lesioned.dtype == np.float64
    ours, theirs = (
        [*ah.simulate(RUN, "cpu", after=MIDDLE._replace(state=STATE._replace(W=W)))]
        for W in (lesioned, lesioned.astype(np.float32))
    )
    np.testing.assert_equal(ours, theirs)
    assert ours[-1].state.W.dtype == np.float32 and not np.array_equal(ours[-1].state.W, SNAPSHOTS[-1].state.W)


def test_a_run_goes_on_after_a_snapshot_that_it_has():
    for snapshot in SNAPSHOTS:
        rest = [*ah.simulate(RUN, "reference", after=snapshot)]
        np.testing.assert_equal(rest, SNAPSHOTS[snapshot.number + 1 :])
    short = ah.Run(NETWORK, ah.Phase(STIMULUS, samples=2, hold=20, snapshots=1))
    other = ah.Run(NETWORK, ah.Phase(STIMULUS, samples=6, hold=10, snapshots=3))
    said = r"after is snapshot 2 at step 80, which this run does not have; its snapshots 0 to \d are at the steps \[0, "
    for run in (short, other):
        with pytest.raises(ah.InputError, match=said):
            ah.simulate(run, "reference", after=SNAPSHOTS[2])
    for odd in (0, "", (), False, STATE, MIDDLE._replace(number=True), MIDDLE._replace(step=40.0), tuple(MIDDLE)):
        with pytest.raises(ah.InputError, match=r"after(\.number|\.step)? is .*; it must be a (Snapshot|whole number)"):
            ah.simulate(RUN, "reference", after=odd)
    with pytest.raises(ah.InputError, match=r"state.W has shape \(6, 16\); the network needs \(7, 16\)"):
        ah.simulate(ah.Run(ah.asynchronous(n=7, m=16), RUN.phases), "reference", after=MIDDLE)


def test_the_snapshot_that_a_run_goes_on_after_stays_as_it_is():
    before = MIDDLE.state.copy()
    [*ah.simulate(RUN, "cpu", after=MIDDLE)]
    np.testing.assert_equal(MIDDLE.state, before)


@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_a_rate_below_0_that_was_not_foreseen_is_an_error(engine, monkeypatch):
    """No equation of the package gives one, and most others are refused before."""
    whole = engines.module(engine).advance

    def advance(*call):
        state = whole(*call)
        state.y[2] = -0.5
        return state

    monkeypatch.setattr(engines.module(engine), "advance", advance)
    said = r"dynamics is Projected\(dt=0.01\), whose step gave a rate of -0.5; rates are never below 0"
    with pytest.raises(ah.InputError, match=said):
        ah.advance(NETWORK, STATE, X, 5, engine)
    with pytest.raises(ah.InputError, match=said):
        ah.advance_many(NETWORK, [STATE, STATE], X, 5, engine)
    with pytest.raises(ah.InputError, match=said):
        ah.respond(NETWORK, STATE, X, 5, engine)
