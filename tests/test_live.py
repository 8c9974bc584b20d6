"""The live page without a browser: what is simulated, messages, frames, downloads, and who may do what."""

import http.client
import io
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from live_browser import eventually as until
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

import asynchebb as ah
from asynchebb.live_page import Live, as_python, server, simulation
from asynchebb.live_page import setting as settings
from asynchebb.live_page.frames import unpacked
from asynchebb.live_page.history import Thinned
from asynchebb.live_page.session import Session
from asynchebb.live_page.simulation import Simulation

BARS = ah.Crossbars(6)
NETWORK = ah.asynchronous(30, 36)
COMMAND = Path(sys.executable).with_name("asynchebb")


def beginning(**given):
    return settings.beginning(given.pop("network", NETWORK), given.pop("stimulus", BARS), **{"hold": 50, **given})


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def change(watched, **message):
    watched.change(settings.changed(watched.setting, message.pop("do"), message))


# What is simulated


@pytest.mark.parametrize("hold", [50, 100, 500])
def test_a_run_that_is_watched_and_one_that_is_recorded_have_the_same_bits(tmp_path, hold):
    watched = Simulation(beginning(seed=3, hold=hold))
    for samples, is_watched in ((7, False), (1, True), (100, False), (3, True)):
        while samples:
            samples -= watched.advance(samples, is_watched)[0]
    run = ah.Run(NETWORK, ah.Phase(BARS, 111, hold, from_rest=True), seed=3)
    with ah.record(run, tmp_path / "run.nc") as recorded:
        assert same(ah.state_at(recorded), watched.states[0])


def test_the_python_code_of_whatever_was_done_gives_the_same_network():
    watched = Simulation(beginning())
    for message in (
        dict(do="constant", name="r_r", value=10),
        dict(do="constant", name="r_b", value=0.5),
        dict(do="constant", name="eta", value=0.01),
        dict(do="stimulus", stimulus="Diagonals(6)"),
        dict(do="plasticity", on=False),
        dict(do="plasticity", on=True),
        dict(do="hold", hold=30),
        dict(do="from_rest", from_rest=False),
        dict(do="dynamics", dynamics="Potential(dt=0.01)"),
        dict(do="draw", image=[0, 255, 100] * 12),
        dict(do="model", model="discrete"),
        dict(do="model", model="continuous"),
    ):
        watched.advance(4)
        change(watched, **message)
    watched.advance(4)
    found = {}
    exec(as_python.code(watched), found)
    assert same(found["state"], watched.states[0])


def test_a_run_without_changes_is_written_as_one_run():
    watched = Simulation(beginning())
    watched.advance(5)
    code, found = as_python.code(watched), {}
    exec(code, found)
    assert "for " not in code and same(found["state"], watched.states[0])
    assert found["run"].phases[0].samples == 5


def test_two_networks_start_alike_and_see_the_same_stimuli():
    watched = Simulation(settings.changed(beginning(), "second", {"model": "discrete"}))
    assert same(*(state[:4] for state in watched.states))
    _, (left, right) = watched.advance(5, watched=True)
    assert np.array_equal(left.x, right.x) and not np.array_equal(*(state.W for state in watched.states))
    alone = Simulation(beginning(network=ah.discrete(30, 36)))
    alone.advance(5)
    assert same(alone.states[0], watched.states[1])


def test_sets_follow_each_other_by_themselves():
    sets = (ah.Squares(6), ah.Diagonals(6))
    watched = Simulation(settings.Setting((NETWORK,), BARS, hold=20, then=sets, after=10))
    while watched.step < 800:
        watched.advance(5)
    assert [repr(phase.stimulus) for phase in watched.phases] == ["Crossbars(p=6)", "Squares(p=6)"]
    assert [phase.samples for phase in watched.phases] == [10, 10]
    assert watched.changed_at == [200, 400] and watched.step == 800
    assert watched.setting.stimulus == ah.Diagonals(6) and [*watched.sets][-1] == "Diagonals(p=6)"


def test_each_tour_is_a_setting_that_runs():
    for name in settings.tours.TOURS:
        toured = settings.changed(beginning(), "tour", {"tour": name})
        assert len(toured.networks) == 2 and toured.networks[0].n == 30
        Simulation(toured).advance(1)


def test_a_sequence_that_is_thinned_stays_short_keeps_both_ends_and_is_even():
    kept = Thinned(10)
    for item in range(1000):
        kept.add(item)
        assert len(kept.items) <= 12 and kept.items[0] == 0 and kept.items[-1] == item
    assert len({*np.diff(kept.items[:-1])}) == 1


# Messages

BAD = [
    (dict(do="fly"), "do is 'fly'; it must be one of play, pause"),
    (dict(), "do is 'None'; it must be one of"),
    (dict(do=["pause"]), "it must be one of play, pause"),
    (dict(do="pause", now=1), "pause has the fields now; it must have none"),
    (dict(do="step"), "step has the fields none; it must have of"),
    (dict(do="step", of="year"), "of is 'year'; it must be one of step, stimulus"),
    (dict(do="speed", steps_per_second=0), "steps_per_second is 0; it must be a number above 0"),
    (dict(do="speed", steps_per_second="fast"), "steps_per_second is 'fast'"),
    (dict(do="select", neuron=30), "neuron is 30; it must be a whole number from 0 to 29"),
    (dict(do="model", model="spiking"), "model is 'spiking'; it must be one of asynchronous, continuous, discrete"),
    (dict(do="model", model="discrete", network=1), "network is 1; it must be a whole number from 0 to 0"),
    (dict(do="constant", name="eta", value=0), "Oja.eta is 0; it must be a number above 0"),
    (dict(do="constant", name="r_r", value=-1), "Asynchronous.r_r is -1"),
    (dict(do="constant", name="r_b", value=None), "r_b is None; it must be a finite number"),
    (dict(do="constant", name="n", value=5), "name is 'n'; it must be one of r_b, r_r, eta"),
    (dict(do="hold", hold=0), "hold is 0"),
    (dict(do="hold", hold=10**6), "hold is 1000000; it must be a whole number from 1 to 2,000"),
    (dict(do="from_rest", from_rest=1), "from_rest is 1; it must be True or False"),
    (dict(do="plasticity", on="no"), "plasticity is 'no'"),
    (dict(do="dynamics", dynamics="Chaos()"), "dynamics is 'Chaos'; it must be one of Potential, Projected"),
    (dict(do="dynamics", dynamics=["Potential()"]), "dynamics is \"['Potential()']\"; it must be text like Name("),
    (dict(do="dynamics", dynamics="evil.py:Potential()"), "dynamics is 'evil.py:Potential()'; it must be written like"),
    (dict(do="stimulus", stimulus="Crossbars(7)"), "which has 49 pixels; it must have 36"),
    (dict(do="stimulus", stimulus="FromArray('/etc/passwd')"), "stimulus is 'FromArray'; it must be one of Crossbars"),
    (dict(do="stimulus", stimulus="(" * 150), "stimulus is '((((("),
    (dict(do="stimulus", stimulus="(" * 250), "stimulus is '((((("),
    (dict(do="stimulus", stimulus={"images": [[0]], "shape": [1, 99999]}), "shape is 99999"),
    (dict(do="draw", image=[0] * 35), "each image must be a list of 36 grey levels"),
    (dict(do="draw", image=[300] * 36), "a grey level is 300; it must be a whole number from 0 to 255"),
    (dict(do="reset", seed=-1), "seed is -1"),
    (dict(do="reset", seed=0, n=2001), "n is 2001; it must be a whole number from 1 to 2,000"),
    (dict(do="second", model="none"), "model is 'none'"),
    (dict(do="tour", tour="moon"), "tour is 'moon'; it must be one of refractoriness"),
    (dict(do="start", n=5), "start has the fields n; it must have networks"),
]


@pytest.fixture
def session():
    found = Session(beginning(), engine="reference", playing=False)
    found.start()
    yield found
    found.stop()


@pytest.mark.parametrize(("message", "said"), BAD, ids=[json.dumps(message)[:40] for message, _ in BAD])
def test_an_invalid_message_is_refused_in_one_sentence_and_changes_nothing(session, message, said):
    session.do({"do": "step", "of": "stimulus"}).result()
    before = (session.simulation.setting, session.simulation.step, session.playing, session.speed)
    with pytest.raises(ah.InputError) as refused:
        session.do(message).result()
    assert said in str(refused.value)
    assert (session.simulation.setting, session.simulation.step, session.playing, session.speed) == before


def shown(session):
    return unpacked(session.call(session.frame).result())


def test_play_pause_step_and_speed(session):
    session.do({"do": "step", "of": "step"}).result()
    assert shown(session)[0]["step"] == 1 and session.simulation.step == 50  # computed as a whole, shown step by step
    session.do({"do": "step", "of": "step"}).result()
    assert shown(session)[0]["step"] == 2
    session.do({"do": "step", "of": "stimulus"}).result()
    assert shown(session)[0]["step"] == 50
    session.do({"do": "speed", "steps_per_second": 200}).result()
    began = time.monotonic()
    session.do({"do": "play"}).result()
    until(lambda: shown(session)[0]["step"] > 100)
    assert time.monotonic() - began > 0.2
    session.do({"do": "speed", "steps_per_second": None}).result()
    until(lambda: shown(session)[0]["step"] > 2000)
    session.do({"do": "pause"}).result()
    paused = shown(session)[0]["step"]
    time.sleep(0.1)
    assert shown(session)[0]["step"] == paused


def test_a_frame_shows_what_the_network_does(session):
    session.do({"do": "select", "neuron": 4}, client="me").result()
    session.do({"do": "step", "of": "stimulus"}).result()
    until(lambda: session.history.latest is not None and session.history.latest.stop[2] == 50)
    header, parts = shown(session)
    state, seen = session.state().result(), session.playback.seen[0]
    assert np.array_equal(parts["stimulus", 0].ravel(), (255 * seen.x).astype(np.uint8))
    field = state.W[4] / state.W[4].max()
    assert np.array_equal(parts["fields", 0][4].ravel(), (255 * field).astype(np.uint8))
    assert np.array_equal(parts["lateral 4", 0], state.M[4])
    columns = {tuple(pair) for pair in parts["raster", 0].tolist()}
    assert columns == {(k, i) for k, i in np.argwhere(seen.burst & (seen.y > 0)).tolist()}
    tested = session.simulation.run(0)
    X = simulation.simulate.test_stimuli(tested)[0]
    expected = ah.respond(tested.network, state, X, 150, "reference", from_rest=True)
    assert parts["error", 0][-1, 0] == pytest.approx(expected.error.mean, rel=1e-5)
    assert parts["gini", 0][-1] == pytest.approx(ah.metrics.gini(expected.mean_activity), rel=1e-5)
    assert parts["active_neurons", 0][-1] == pytest.approx(expected.active, rel=1e-5)
    assert header["setting"]["networks"] == [{"model": "asynchronous", "r_b": 0.75, "r_r": 100, "eta": 0.002}]


def test_a_network_that_diverges_says_so_and_can_be_reset(session):
    session.do({"do": "constant", "name": "eta", "value": 1e30}).result()
    session.do({"do": "plasticity", "on": True}).result()
    session.do({"do": "model", "model": "continuous"}).result()
    session.do({"do": "constant", "name": "eta", "value": 1e30}).result()
    session.do({"do": "play"}).result()
    until(lambda: session.trouble)
    header, _ = shown(session)  # a frame with what is not finite is still a frame
    assert "diverged" in header["trouble"] and not header["playing"]
    with pytest.raises(ah.InputError, match="reset it first"):
        session.do({"do": "play"}).result()
    session.do({"do": "model", "model": "asynchronous"}).result()
    session.do({"do": "reset", "seed": 1}).result()
    session.do({"do": "play"}).result()
    until(lambda: session.simulation.step > 100)
    assert session.trouble == ""


def test_a_network_that_is_unstable_says_so_and_how_it_would_not_be(session):
    assert shown(session)[0]["warning"] == ""
    session.do({"do": "dynamics", "dynamics": "Projected(dt=0.5)"}).result()
    assert "the network is unstable: dt · λ(M) is " in shown(session)[0]["warning"]
    session.do({"do": "dynamics", "dynamics": "Projected(dt=0.01)"}).result()
    assert shown(session)[0]["warning"] == ""


def test_a_setting_that_is_shared_starts_the_same_elsewhere(session):
    for message in (
        dict(do="second", model="discrete"),
        dict(do="constant", name="r_r", value=7),
        dict(do="draw", image=[0, 255] * 18),
    ):
        session.do(message).result()
    other = Session(beginning(stimulus=ah.Squares(8), network=ah.continuous(9, 64)), engine="reference", playing=False)
    other.start()
    other.do({"do": "start", **json.loads(json.dumps(session.shared()))}).result()
    assert settings.described(other.simulation.setting) == session.shared()
    session.do(dict(do="reset", seed=0)).result()
    for each in (session, other):
        each.do({"do": "step", "of": "stimulus"}).result()
    assert all(map(same, session.simulation.states, other.simulation.states))
    other.stop()


def test_what_is_remembered_can_be_saved_as_a_run(session, tmp_path):
    session.do({"do": "step", "of": "stimulus"}).result()
    session.do({"do": "stimulus", "stimulus": "Squares(6)"}).result()
    session.do({"do": "constant", "name": "r_r", "value": 7}).result()
    session.do({"do": "step", "of": "stimulus"}).result()
    (tmp_path / "run.nc").write_bytes(session.netcdf())
    with ah.open_run(tmp_path / "run.nc") as dataset:
        assert same(ah.state_at(dataset), session.state().result())
        assert [*dataset.stimulus.values] == ["Crossbars(p=6)", "Squares(p=6)"] and int(dataset.step[-1]) == 100
        assert np.isfinite(dataset.error[-1]).all()
        assert ah.network_of(dataset) == session.simulation.setting.networks[0]
        found = {}
        exec(dataset.attrs["history"], found)
        assert np.allclose(found["state"].W, dataset.W[-1])


# The server

DOWNLOADS = ("/run.nc", "/state.npz", "/fields.png", "/code.py", "/setting.json")


@pytest.fixture
def page():
    found = ah.live(NETWORK, BARS)
    yield found
    found.stop()


def address(page):
    return f"127.0.0.1:{page.port}"


def opened(page, token=None, origin=None, host=None):
    host = host or address(page)
    path = f"ws://{host}/ws?token={page._server.token if token is None else token}"
    reached = socket.create_connection(("127.0.0.1", page.port))
    return connect(path, sock=reached, origin=origin or f"http://{host}", max_size=None)


def get(page, path, token=True, **headers):
    url = f"http://{address(page)}{path}" + (f"?token={page._server.token}" if token else "")
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60)


def refusal(page, path, **given):
    """The status and the words with which a request is refused."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        get(page, path, **given)
    return refused.value.code, refused.value.read().decode()


def next_of(websocket, kind):
    while not isinstance(message := websocket.recv(timeout=20), kind):
        if isinstance(message, bytes):
            websocket.send('{"do": "next"}')
    return message


def test_a_page_without_the_token_or_from_elsewhere_is_refused(page):
    for refused in (dict(token="x"), dict(token=""), dict(origin="http://evil.example"), dict(origin="null")):
        with pytest.raises((InvalidStatus, ConnectionClosed)), opened(page, **refused) as websocket:
            websocket.recv(timeout=5)
    cookie = f"token={page._server.token}; asynchebb-live-{page.port}={page._server.token}"
    for path in DOWNLOADS:
        assert refusal(page, path, token=False) == (403, server.REFUSED)
        assert refusal(page, path, token=False, Cookie=cookie) == (403, server.REFUSED)
    assert page._server.token not in get(page, "/", False).read().decode()
    assert page._server._socket.getsockname()[0] == "127.0.0.1"


def test_a_download_is_for_the_page_itself_and_for_what_is_not_a_browser(page):
    page.pause()
    for path in DOWNLOADS:
        for site in ("same-site", "cross-site", "anything"):
            said = f"Sec-Fetch-Site is {site!r}; only the live page itself may load this"
            assert refusal(page, path, Sec_Fetch_Site=site) == (403, said)
    for path in ("/code.py", "/setting.json"):  # which are made at once
        for allowed in ({"Sec_Fetch_Site": "same-origin"}, {"Sec_Fetch_Site": "none"}, {}):
            assert get(page, path, **allowed).status == 200


OTHER_HOSTS = ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}", "localhost@evil.example", ""]
OTHER_HOSTS += ["192.0.2.1:{port}", "[::2]:{port}", "0.0.0.0:{port}", socket.gethostname() + ".example"]


def test_a_request_to_another_name_is_refused_whatever_it_knows(page):
    """A page whose own name was made to point at this machine would have the same origin."""
    for host in (host.format(port=page.port) for host in OTHER_HOSTS):
        for path in ("/", "/app.js", "/nothing", *DOWNLOADS):
            status, said = refusal(page, path, Host=host)
            assert status == 403 and said.startswith(f"Host is {host!r}; it must be one of 127.0.0.1, ::1, localhost")
        handshake = {"Host": host, "Origin": f"http://{host}", "Upgrade": "websocket", "Connection": "Upgrade"}
        handshake |= {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
        connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=60)
        connection.request("GET", f"/ws?token={page._server.token}", headers=handshake)
        answer = connection.getresponse()
        assert answer.status == 403 and answer.read().decode().startswith(f"Host is {host!r}")
        connection.close()


def test_a_request_to_a_name_of_this_machine_is_answered_whatever_the_port(page):
    for host in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        assert get(page, "/", Host=f"{host}:1").status == 200  # of a tunnel
        with opened(page, host=f"{host}:1", origin=f"http://{host}:1".lower()) as websocket:
            assert "tours" in json.loads(next_of(websocket, str))


@pytest.mark.parametrize(
    "url",
    ["hebb.example", "ftp://hebb.example", "https://", "https://hebb.example/path", "https://x:99999", "https://[::"],
)
def test_a_public_address_is_one_without_a_path(url):
    with pytest.raises(ah.InputError) as refused:
        Live(Session(beginning(), engine="reference"), public_url=url)
    assert str(refused.value) == (
        f"public_url is {url!r}; it must be an address without a path, like https://hebb.example.org"
    )


def test_a_page_for_other_machines_knows_its_names_and_says_that_it_is_one():
    for host, public_url, is_public, url, own, other in (
        ("0.0.0.0", None, True, "http://127.0.0.1:{port}/", socket.gethostname(), "hebb.example"),
        ("127.0.0.1", "https://Hebb.example:8443/", False, "https://hebb.example:8443/", "hebb.example:8443", "x"),
        ("localhost", None, False, "http://localhost:{port}/", "localhost", "x"),
    ):
        session = Session(beginning(), engine="reference", playing=False)
        live = Live(session, host=host, port=0, public_url=public_url)
        assert live.is_public is is_public and live.url.startswith(url.format(port=live.port) + "?token=")
        assert get(live, "/", Host=own).status == 200
        assert refusal(live, "/", Host=other)[0] == 403
        origin = (public_url or f"http://{own}").removesuffix("/").lower()
        with opened(live, host=own, origin=origin) as websocket:
            assert "tours" in json.loads(next_of(websocket, str))
        live.stop()


def test_files_say_what_a_browser_may_do_with_them(page):
    """Word by word: each part of these headers keeps some page out."""
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
        "frame-ancestors 'self'"
    )
    alone = Live(Session(beginning(), engine="reference", playing=False))
    for live, own in ((alone, policy), (page, policy.removesuffix("; frame-ancestors 'self'"))):  # a notebook frames it
        for name, kind in server.FILES.items():
            for token in (True, False):
                headers = get(live, f"/{name}".replace("index.html", ""), token).headers
                del headers["Date"], headers["Content-Length"]
                assert {key.lower(): value for key, value in headers.items()} == {
                    "content-type": f"{kind}; charset=utf-8",
                    "content-security-policy": own,
                    "x-content-type-options": "nosniff",
                    "referrer-policy": "no-referrer",
                    "cache-control": "no-store",
                    "connection": "close",
                }  # and no cookie
    alone.stop()


def test_the_ninth_page_is_told_why_it_is_one_too_many(page):
    with ExitStack() as pages:
        eight = [pages.enter_context(opened(page)) for _ in range(8)]
        for websocket in eight:
            assert "tours" in json.loads(next_of(websocket, str))
        with opened(page) as ninth, pytest.raises(ConnectionClosed) as closed:
            ninth.recv(timeout=20)
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4429, "at most 8 pages can be open at a time")
        eight[0].close()
        until(lambda: len(page._server.clients) == 7)
        with opened(page) as again:
            assert "tours" in json.loads(next_of(again, str))


def test_the_page_loads_nothing_from_elsewhere(page):
    for name in server.FILES:
        text = get(page, f"/{name}".replace("index.html", "")).read().decode()
        assert "http://" not in text and "https://" not in text and "//cdn" not in text, name


def test_invalid_messages_are_answered_and_the_page_goes_on(page):
    with opened(page) as websocket:
        assert "tours" in json.loads(next_of(websocket, str))
        for bad in ("{", "[]", '{"do": "hold", "hold": 0}', "[" * 10000):
            websocket.send(bad)
            assert "must be" in json.loads(next_of(websocket, str))["error"]
        websocket.send('{"do": "pause"}')
        assert json.loads(next_of(websocket, str)) == {"done": "pause"}
        websocket.send("x" * (server.LARGEST_MESSAGE + 1))
        with pytest.raises(ConnectionClosed):
            next_of(websocket, str)
    with opened(page) as websocket:
        assert isinstance(next_of(websocket, bytes), bytes)


def test_the_newest_frame_wins_and_a_slow_page_does_not_hold_up_another(page):
    with opened(page) as slow, opened(page) as fast:
        first = unpacked(next_of(slow, bytes))[0]
        until(
            lambda: (
                unpacked(next_of(fast, bytes))[0]["frame"] + (fast.send('{"do": "next"}') or 0) > first["frame"] + 20
            )
        )
        with pytest.raises(TimeoutError):
            slow.recv(timeout=0.2)  # nothing more before it asks
        slow.send('{"do": "next"}')
        second = unpacked(next_of(slow, bytes))[0]
        assert second["frame"] > first["frame"] + 15  # those in between were dropped


def test_a_page_that_vanishes_is_forgotten(page):
    with opened(page) as websocket:
        next_of(websocket, bytes)
        assert len(page._server.clients) == 1
        websocket.socket.shutdown(socket.SHUT_RDWR)
    until(lambda: not page._server.clients)
    step = page._session.simulation.step
    until(lambda: page._session.simulation.step > step)


def test_downloads_are_what_they_say(page):
    until(lambda: page._session.simulation.step > 0)
    page.pause()
    assert get(page, "/fields.png").read().startswith(b"\x89PNG")
    saved = ah.State(**np.load(io.BytesIO(get(page, "/state.npz").read())))
    assert same(saved[:6], page.state[:6])
    found = {}
    exec(get(page, "/code.py").read().decode(), found)
    assert same(found["state"], page.state)
    assert json.loads(get(page, "/setting.json").read()) == page._session.shared()
    with pytest.raises(urllib.error.HTTPError, match="400"):
        urllib.request.urlopen(f"http://{address(page)}/code.py?token={page._server.token}&network=1")


def test_one_thing_is_computed_at_a_time(monkeypatch):
    inside, most, everybody_has_asked = [], [], threading.Event()

    def compute(self, number):
        inside.append(number)
        most.append(len(inside))
        everybody_has_asked.wait(60)
        inside.pop()
        return b"done"

    monkeypatch.setattr(server.Server, "_fields", compute)
    monkeypatch.setattr(server.Server, "_state", compute)
    page = Live(Session(beginning(), engine="reference", playing=False))
    with ThreadPoolExecutor(30) as threads:
        found = [threads.submit(get, page, path) for path in 15 * ("/fields.png", "/state.npz")]
        until(lambda: len(page._server._server.server_state.connections) == 30)
        time.sleep(0.3)  # for those that come in to come in
        everybody_has_asked.set()
        assert [one.result().read() for one in found] == 30 * [b"done"]
    assert most == 30 * [1]
    page.stop()


def test_a_port_in_use_is_named_and_the_next_free_one_is_taken_if_none_was_asked_for():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            ah.InputError, match=f"port is {port}, which cannot be used .*; choose another, or leave it"
        ):
            server.listening("127.0.0.1", port)
    one, other = server.listening("127.0.0.1", None), server.listening("127.0.0.1", None)
    assert one.getsockname()[1] < other.getsockname()[1]
    one.close(), other.close()
    with pytest.raises(ah.InputError, match=r"host is '203.0.113.1'; it must be an address of this machine"):
        server.listening("203.0.113.1", None)


# In a notebook and on the command line


def test_in_a_notebook_it_shows_itself_and_its_state_can_be_read(page):
    assert f'<iframe src="{page.url}"' in page._repr_html_()
    until(lambda: page._session.simulation.step > 0)
    page.pause()
    before = page.state
    time.sleep(0.05)
    assert same(before, page.state)
    page.play()
    until(lambda: not same(before, page.state))
    page.stop()
    assert page.state.W.shape == (30, 36) and "stopped" in page._repr_html_()
    with pytest.raises(ah.InputError, match="has been stopped"):
        page.pause()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (dict(network="asynchronous"), "network is 'asynchronous'; it must be a Network"),
        (dict(network=ah.asynchronous(30, 35), stimulus=BARS), "which has 36 pixels; it must have 35"),
        (dict(network=ah.asynchronous(3000, 36), stimulus=BARS), "n is 3000"),
        (dict(stimulus=3), "stimulus is 3"),
        (dict(port=99999), "port is 99999"),
        (dict(seed=-1), "seed is -1"),
    ],
)
def test_bad_arguments_are_named(given, said):
    with pytest.raises(ah.InputError) as refused:
        ah.live(**given)
    assert said in str(refused.value)


def test_the_command_opens_a_browser_without_showing_it_the_token_and_ctrl_c_ends_all(tmp_path):
    """What a browser is called with, every user of the machine can read."""
    (tmp_path / "browser.py").write_text(
        "import json, pathlib, sys; pathlib.Path(sys.argv[1]).write_text(json.dumps(sys.argv[2:]))"
    )
    called = tmp_path / "called.json"
    process = subprocess.Popen(
        [COMMAND, "live", "--n", "30", "--stimulus", "Crossbars(6)"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"BROWSER": shlex.join([sys.executable, str(tmp_path / "browser.py"), str(called), "%s"])},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # tests may run in the background
    )
    try:
        url = next(line for line in process.stdout if line.startswith("http")).strip()
        host, _, token = url.removeprefix("http://").partition("/?token=")
        with connect(f"ws://{host}/ws?token={token}", origin=f"http://{host}", max_size=None) as websocket:
            while unpacked(next_of(websocket, bytes))[0]["step"] == 0:
                websocket.send('{"do": "next"}')
            until(lambda: called.exists() and called.read_text())
            (address,) = json.loads(called.read_text())
            file = Path(address.removeprefix("file://"))
            assert address.startswith("file:///") and token not in address
            assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
            assert f'content="0; url={url}"' in file.read_text()
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 0
            with pytest.raises(ConnectionClosed):
                next_of(websocket, str)
    finally:
        process.kill()
    assert "Traceback" not in process.stderr.read()
    assert not file.parent.exists()


def test_stopping_does_not_wait_for_what_is_busy(page):
    begun, end = threading.Event(), threading.Event()
    page._session.call(lambda: (begun.set(), end.wait()))
    assert begun.wait(60)
    with opened(page) as websocket:  # which reads nothing
        stopping = threading.Thread(target=page.stop)
        stopping.start()
        stopping.join(timeout=60)
        assert not stopping.is_alive() and page._session._thread.is_alive()
        end.set()
        with pytest.raises(ConnectionClosed):
            while True:
                websocket.recv(timeout=60)
    page._session._thread.join(timeout=60)
    assert not page._session._thread.is_alive()


def test_a_page_that_other_machines_can_reach_comes_with_a_warning():
    arguments = [COMMAND, "live", "--no-browser", "--n", "30", "--stimulus", "Crossbars(6)", "--host", "0.0.0.0"]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        next(line for line in process.stdout if line.startswith("http"))
    finally:
        process.kill()
    assert "warning: other machines can reach the page, and it speaks plain HTTP" in process.stderr.read()


def test_the_command_refuses_what_it_cannot_show():
    for arguments, said in (
        (["--model", "spiking"], "model is 'spiking'; it must be one of asynchronous, continuous, discrete"),
        (["--stimulus", "Bars(0)"], "Bars.p is 0"),
        (["--engine", "gpus"], "engine is 'gpus'; it must be one of"),
        (["--n", "5000"], "n is 5000; it must be a whole number from 1 to 2,000"),
    ):
        done = subprocess.run([COMMAND, "live", "--no-browser", *arguments], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1


def test_without_the_extra_it_says_what_to_install():
    code = "import sys; sys.modules['starlette'] = None\nimport asynchebb as ah\nassert 'uvicorn' not in sys.modules\n"
    code += "try: ah.live()\nexcept ah.InputError as error: print(error)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert "pip install 'asynchebb[live]'" in said
