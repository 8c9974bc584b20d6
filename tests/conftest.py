"""GPUs, emulated and real."""

import emulated
import pytest

from asynchebb.engines.gpu import device


@pytest.fixture
def host(monkeypatch):
    """A CPU in place of the GPU."""
    found = emulated.Host()
    monkeypatch.setattr(device, "current", lambda: found)
    monkeypatch.setattr(device, "missing", lambda: None)
    monkeypatch.setattr(device, "count", lambda: 1)
    monkeypatch.setattr(device, "choose", lambda card: None)
    return found


@pytest.fixture(
    params=[pytest.param("emulated", marks=emulated.needs_compiler), pytest.param("gpu", marks=pytest.mark.gpu)]
)
def card(request):
    """Tests that ask for one run on an emulated GPU, and on a real one where there is one."""
    if request.param == "emulated":
        request.getfixturevalue("host")
    else:
        device.current()  # which lays out networks once for all tests, before one of them changes how
