"""A live page under attack from this machine: messages that mean nothing, requests that never end, many at once.

All counts are bounded, and nothing leaves 127.0.0.1.
"""

import json
import socket
import subprocess
import sys
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from live_browser import eventually as until
from websockets.sync.client import connect

import asynchebb as ah
from asynchebb.live_page import Live, server
from asynchebb.live_page import setting as settings
from asynchebb.live_page.session import Session


def opened_page():
    setting = settings.beginning(ah.asynchronous(30, 64), ah.Crossbars(8), hold=20)
    return Live(Session(setting, engine="reference", playing=False))


@pytest.fixture
def page():
    found = opened_page()
    yield found
    found.stop()


def websocket_of(page):
    own = f"127.0.0.1:{page.port}"
    return connect(f"ws://{own}/ws?token={page._server.token}", origin=f"http://{own}", max_size=None)


def reached(page):
    return socket.create_connection(("127.0.0.1", page.port), timeout=60)


def connections(page):
    return len(page._server._server.server_state.connections)


def download(url, name):
    with urllib.request.urlopen(url.replace("/?", f"/{name}?"), timeout=300) as answer:
        return answer.read()


# Messages

START = {"networks": [], "n": 5, "stimulus": "Crossbars(8)", "hold": 5, "from_rest": True, "seed": 0}
ODD = [None, 3, True, "x", "__init__", [], {}, ["play"], -1, 1e400, float("nan"), 1e-300, 10**400, "\ud800", "(" * 190]
ODD += ["/nowhere/evil.py:X()", "FromArray('/etc/passwd')", "Crossbars(10**9)", "Crossbars(100000)", "Digits(2000)"]
ODD += [
    "Crossbars(__import__)",
    "Relaxing(tau={})",
    "Relaxing(**{})",
    "EscapeNoise(dt=[])",
    "\0",
    "Gaussian(scale=1e308)",
]
FIELDS = {
    "speed": ["steps_per_second"],
    "select": ["neuron"],
    "step": ["of"],
    "model": ["model", "network"],
    "constant": ["name", "value", "network"],
    "dynamics": ["dynamics"],
    "stimulus": ["stimulus"],
    "draw": ["image", "add"],
    "hold": ["hold"],
    "from_rest": ["from_rest"],
    "plasticity": ["on"],
    "reset": ["seed", "n"],
    "second": ["model"],
    "tour": ["tour"],
    "start": [*START],
}
RIGHT = START | {"model": "discrete", "network": 0, "name": "eta", "value": 0.01, "of": "step", "image": [0] * 64}
RIGHT |= {
    "add": False,
    "tour": "no_waiting",
    "on": True,
    "neuron": 0,
    "steps_per_second": 1e4,
    "dynamics": "Potential()",
}
RIGHT["networks"] = [dict(dynamics="Projected()", rule="Oja()", schedule="Discrete()", weights="Exponential()")]


def odd_messages():
    """Each field of each message with each odd value, and what is no message at all."""
    for odd in ODD:
        yield {"do": odd}
        yield {"do": "pause", str(odd): odd}
        for part in RIGHT["networks"][0]:
            yield {"do": "start", **RIGHT, "networks": [RIGHT["networks"][0] | {part: odd}]}
        for images in ({"images": odd, "shape": [8, 8]}, {"images": [[odd] * 64], "shape": [8, 8]}, {"shape": odd}):
            yield {"do": "stimulus", "stimulus": images}
        for control, names in FIELDS.items():
            for name in names:
                yield {"do": control, **{each: RIGHT[each] for each in names}, name: odd}


NO_MESSAGES = ["", "x", "[]", "3", "null", "[" * 100_000, '{"a":' * 50_000, '{"do":"hold","hold":' + "9" * 5000 + "}"]
NO_MESSAGES += [b"", b"\xff\xfe binary", b"\0" * 1000, b"\x80", json.dumps({"do": "hold", "hold": 0}).encode("utf-16")]
NO_MESSAGES += ['{"do":"pause","\\ud800":1}', '{"\\udfff":1}', '{"do":"\\ud83d\\ude00"}', '{"do":"pause","do":[]}']


def answer_to(websocket, message):
    websocket.send(message)
    while not isinstance(answer := websocket.recv(timeout=60), str):
        pass  # a frame
    return json.loads(answer)


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_any_message_is_answered_and_none_closes_the_page(page, every):
    session = page._session
    with websocket_of(page) as websocket:
        assert "tours" in json.loads(websocket.recv(timeout=60))
        for message in NO_MESSAGES:
            before = session.simulation.setting
            answer = answer_to(websocket, message)
            assert [*answer] == ["error"] and "must" in answer["error"], message
            assert session.simulation.setting is before
        answered = {"error": 0, "done": 0}
        for message in [*odd_messages()][::every]:
            before, playing, speed = session.simulation.setting, session.playing, session.speed
            answer = answer_to(websocket, json.dumps(message))
            (kind,) = answer
            answered[kind] += 1
            if kind == "error":  # in a sentence of ours, and nothing has changed
                assert "cannot be carried out" not in answer["error"], (message, answer)
                assert (session.simulation.setting, session.playing, session.speed) == (before, playing, speed)
            else:
                answer_to(websocket, json.dumps({"do": "start", **START, "networks": RIGHT["networks"]}))
                answer_to(websocket, '{"do": "speed", "steps_per_second": null}')
        assert answered["error"] > 10 * answered["done"] > 0, answered
        assert answer_to(websocket, b'{"do": "play"}') == {"done": "play"}
    until(lambda: session.simulation.step > 0)


def test_an_error_of_our_own_is_answered_too(page, monkeypatch):
    def broken(*arguments):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(settings, "changed", broken)
    with websocket_of(page) as websocket:
        websocket.recv(timeout=60)
        said = "the message cannot be carried out: ZeroDivisionError('a bug')"
        assert answer_to(websocket, '{"do": "hold", "hold": 5}') == {"error": said}
        assert answer_to(websocket, '{"do": "pause"}') == {"done": "pause"}


# Requests

UNFINISHED = [b"", b"GET", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-", b"GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\n"]


def is_closed(connection):
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_request_that_never_ends_is_dropped_and_what_was_asked_for_is_not(monkeypatch):
    monkeypatch.setattr(server, "REQUEST_SECONDS", 0.3)
    drawn = threading.Event()
    monkeypatch.setattr(server.Server, "_fields", lambda self, number: drawn.wait(60) and b"a picture")
    page = opened_page()
    with websocket_of(page) as websocket, ThreadPoolExecutor() as threads:
        picture = threads.submit(download, page.url, "fields.png")
        held = [reached(page) for _ in range(5) for _ in UNFINISHED]
        for connection, begun in zip(held, 5 * UNFINISHED, strict=True):
            connection.sendall(begun)
        assert all(map(is_closed, held))  # each waits until it is, or fails after a minute
        again = reached(page)
        again.sendall(b"GET /style.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET / HT")
        answer = b"".join(iter(lambda: again.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 200") and answer.count(b"HTTP/1.1") == 1
        until(lambda: connections(page) == 2)
        drawn.set()
        assert picture.result() == b"a picture"
        websocket.recv(timeout=60)
        assert answer_to(websocket, '{"do": "pause"}') == {"done": "pause"}
    page.stop()


def test_connections_are_bounded_and_the_page_goes_on(monkeypatch):
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 10)
    page = opened_page()
    with websocket_of(page) as websocket:
        websocket.recv(timeout=60)
        held = [reached(page) for _ in range(9)]
        until(lambda: connections(page) == 10)
        more = [reached(page) for _ in range(20)]
        assert all(map(is_closed, [*held, *more[:-9]]))  # the oldest, of those that have asked for nothing
        assert connections(page) == 10
        assert b"asynchebb" in download(page.url, "")  # closes one more
        assert is_closed(more[-9])
        until(lambda: connections(page) == 9)
        assert answer_to(websocket, '{"do": "pause"}') == {"done": "pause"}
        for connection in more:
            connection.close()
        until(lambda: connections(page) == 1)
    page.stop()


@pytest.mark.slow
def test_sixty_pictures_at_once_take_the_memory_of_a_few():
    command = [Path(sys.executable).with_name("asynchebb"), "live", "--no-browser", "--n", "100"]
    process = subprocess.Popen([*command, "--stimulus", "Crossbars(8)"], stdout=subprocess.PIPE, text=True)
    try:
        url = next(line for line in process.stdout if line.startswith("http")).strip()
        own, _, token = url.removeprefix("http://").partition("/?token=")
        with connect(f"ws://{own}/ws?token={token}", origin=f"http://{own}", max_size=None) as websocket:
            websocket.recv(timeout=60)
            assert answer_to(websocket, '{"do": "pause"}') == {"done": "pause"}
        watched, seen, threads_seen, done = psutil.Process(process.pid), [], [], threading.Event()
        for _ in range(20):  # Matplotlib is loaded, and malloc has what it keeps
            download(url, "fields.png")
        before, threads_before = watched.memory_info().rss, watched.num_threads()

        def watch():
            while not done.wait(0.01):
                seen.append(watched.memory_info().rss)
                threads_seen.append(watched.num_threads())

        watching = threading.Thread(target=watch)
        watching.start()
        with ThreadPoolExecutor(60) as threads:
            pictures = [*threads.map(download, 60 * [url], 60 * ["fields.png"])]
        done.set()
        watching.join()
        assert {*pictures} == {pictures[0]} and pictures[0].startswith(b"\x89PNG")
        assert max(seen) - before < 5 * 16e6  # bytes; 60 drawn at once take 16 MB each
        assert max(threads_seen) <= threads_before
    finally:
        process.terminate()
        process.wait(timeout=60)
