"""The fast engines take addresses of arrays: whatever is wrong with one is said before anything is read or written."""

import numpy as np
import pytest

import asynchebb as ah
from asynchebb import engines
from asynchebb.engines import traces

RATES = ah.Network(12, 9, ah.Potential(), ah.Hebbian(), ah.Asynchronous(0.3, 20))
SPIKES = ah.Network(12, 9, ah.HomeostaticIntegrateAndFire(), ah.Oja(), ah.Bursts(2, 7, 20))
FIELDS = ["X", "settled", *(f"state.{name}" for name in ah.State._fields)]
FIELDS += [f"traces.{name}" for name in (*traces.NAMES, "fired", "means")]


@pytest.fixture(params=["cpu", "gpu"])
def module(request):
    if request.param == "gpu":
        request.getfixturevalue("host")
    return engines.module(request.param)


def a_call(network, dtype=np.float32):
    rng = np.random.default_rng(0)
    state, X = engines.prepare(network, network.init(rng, dtype)), rng.random((3, network.m))
    return engines.call(network, state, X, 8, traces.NAMES, settled=np.zeros((3, network.n), dtype))


def field_of(call, name):
    part, _, own = name.partition(".")
    return getattr(getattr(call, part), own) if own else getattr(call, part)


def with_field(call, name, array):
    part, _, own = name.partition(".")
    return call._replace(**{part: getattr(call, part)._replace(**{own: array}) if own else array})


def wrong_ones(array):
    """Other types, shapes, orders and places in memory."""
    order = "F" if array.ndim == 2 and array.flags.f_contiguous else "C"
    for dtype in (np.float16, np.float32, np.float64, np.int32, np.int64, np.bool_, np.uint8, object):
        if dtype != array.dtype:
            with np.errstate(over="ignore"):
                yield array.astype(dtype)
    yield array.tolist()
    yield None
    yield array[..., None]
    yield array[None]
    if array.itemsize > 1:
        yield array.astype(array.dtype.newbyteorder())
        odd = np.ndarray(array.shape, array.dtype, np.zeros(array.nbytes + 1, np.uint8), 1, order=order)
        odd[...] = array
        yield odd
    if array.ndim:
        yield np.concatenate([array, array], axis=-1).copy(order)
        yield array[..., :-1].copy(order)
        yield array[..., :1].copy(order)
        yield np.repeat(array, 2, axis=0)[::2]
        yield array[::-1]
    if array.ndim == 2:
        yield array.reshape(-1)
        yield array.copy("C" if order == "F" else "F")


def read_only(array):
    array = array.copy("K")
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("network", [RATES, SPIKES], ids=["rates", "spikes"])
@pytest.mark.parametrize("name", FIELDS)
def test_an_array_that_is_not_as_it_must_be_is_named(name, network, module):
    call = a_call(network)
    array, before = field_of(call, name), call.state.copy()
    if array.size:
        wrong = [*wrong_ones(array), *([read_only(array)] if name != "X" else [])]
    else:  # not needed, or not asked for
        wrong = [np.zeros((2, 3), array.dtype), None]
    for one in wrong:
        if name == "settled" and one is None:
            continue
        precision = name == "state.W" and getattr(one, "dtype", None) == np.float64  # that of W is everyone's
        with pytest.raises(ValueError, match=r"^X is .* type float64 and" if precision else rf"^{name} is"):
            module.advance(*with_field(call, name, one))
    assert all(map(np.array_equal, call.state, before))


def test_a_clock_that_runs_backwards_is_refused(module):
    call = a_call(SPIKES)
    with pytest.raises(ValueError, match=r"state\.t is -1; it must be at least 0"):
        module.advance(*with_field(call, "state.t", np.array(-1)))


def test_arrays_that_are_as_they_must_be_are_accepted(module):
    for network in (RATES, SPIKES):
        for dtype in (np.float32, np.float64):
            call = a_call(network, dtype)
            after = module.advance(*call._replace(X=read_only(call.X)))
            assert after.is_finite() and call.traces.y.any()


def test_weights_that_are_left_alone_may_be_read_only(module):
    call = a_call(RATES)
    state = call.state._replace(W=read_only(call.state.W), M=read_only(call.state.M))
    module.advance(*call._replace(network=RATES.frozen(), state=state))
    assert call.traces.y.any()


def test_means_are_refused_where_they_would_stay_0():
    call = with_field(a_call(RATES), "traces.means", np.zeros((3, 12), np.float32))
    with pytest.raises(ValueError, match=r"traces\.means is asked for; the cpu engine does not have it"):
        engines.module("cpu").advance(*call)
