"""The live page's speed and memory: `make bench-live`, or `python benchmarks/live.py --minutes 60`.

Starts `asynchebb live` (500 neurons, 14 × 14 pixels) and measures Euler steps per second with no page open and with
one, frames per second, and then the server's memory over time, with one page that keeps up, one that takes a frame
every two seconds, and ones that vanish without a word. Writes benchmarks/live.md.
"""

import argparse
import itertools
import json
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from asynchebb.live_page.frames import unpacked
from asynchebb.provenance import machine

HERE = Path(__file__).parent
COMMAND = Path(sys.executable).with_name("asynchebb")
NEXT = json.dumps({"do": "next"})


class Page:
    """A page that reads frames and asks for the next one, each after a pause."""

    def __init__(self, url, pause=0.0):
        address, _, token = url.partition("?")
        self.frames, self.step, self._pause, self._open = 0, 0, pause, True
        self._connection = connect(
            f"{address.replace('http', 'ws')}ws?{token}", origin=address.rstrip("/"), max_size=None
        )
        self.socket = self._connection.__enter__()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        while self._open:
            try:
                frame = self.socket.recv()
                if isinstance(frame, bytes):
                    self.frames, self.step = self.frames + 1, unpacked(frame)[0]["step"]
                    time.sleep(self._pause)
                    self.socket.send(NEXT)
            except ConnectionClosed:
                return

    def close(self):
        self._open = False
        self._connection.__exit__(None, None, None)


def vanishing_page(url):
    """A page that opens the websocket, and from then on neither reads nor answers."""
    address, _, token = url.removeprefix("http://").partition("/?")
    host, port = address.split(":")
    found = socket.create_connection((host, int(port)))
    found.sendall(
        f"GET /ws?{token} HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    return found


def step_now(url):
    page = Page(url)
    while not page.frames:
        time.sleep(0.01)
    page.close()
    return time.perf_counter(), page.step


def pace(url, seconds, watched):
    """Steps and frames per second."""
    page = Page(url) if watched else None
    (start, first), frames = step_now(url), page.frames if page else 0
    time.sleep(seconds)
    frames = (page.frames - frames) / seconds if page else 0
    end, last = step_now(url)
    if page:
        page.close()
    return (last - first) / (end - start), frames


def memory(url, process, minutes, say):
    """The server's resident memory, in MB, each minute."""
    pages, vanished, found, start = [Page(url), Page(url, pause=2.0)], [], [], time.monotonic()
    for minute in itertools.count():
        found.append(process.memory_info().rss / 1e6)
        say(f"{minute} min: {found[-1]:.0f} MB, {pages[0].frames:,} frames, step {pages[0].step:,}")
        if minute == minutes:
            break
        vanished.append(vanishing_page(url))
        while time.monotonic() < start + 60 * (minute + 1):
            time.sleep(0.2)
    frames = pages[0].frames / (60 * minutes), pages[1].frames / (60 * minutes)
    for page in (*pages, *vanished):
        page.close()
    return found, frames


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=int, default=60, help="for which memory is measured")
    options.add_argument("--seconds", type=float, default=10, help="for which each speed is measured")
    given = options.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([COMMAND, "live", "--no-browser", "--port", str(port)], stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().strip()
        time.sleep(15)  # compiled, and some bars learned
        alone, _ = pace(url, given.seconds, watched=False)
        watched, frames = pace(url, given.seconds, watched=True)
        again, _ = pace(url, given.seconds, watched=False)
        lines = [
            f"Made by `python benchmarks/live.py --minutes {given.minutes}` on {machine()['processor']}, "
            f"{machine()['cores']} cores. 500 neurons, 14 × 14 pixels, hold 500, full speed.",
            "",
            "| | Euler steps/s | frames/s |",
            "| --- | ---: | ---: |",
            f"| no page open | {alone:,.0f} | |",
            f"| one page open | {watched:,.0f} | {frames:.1f} |",
            f"| no page open, again | {again:,.0f} | |",
        ]
        print("\n".join(lines), flush=True)
        sizes, rates = memory(url, psutil.Process(server.pid), given.minutes, lambda text: print(text, flush=True))
        shown = sorted({0, 1, 2, 5, *range(10, given.minutes, 10), given.minutes} - {*range(given.minutes + 1, 6)})
        lines += ["", "| minutes | " + " | ".join(map(str, shown)) + " |", "| --- |" + " ---: |" * len(shown)]
        lines += ["| MB | " + " | ".join(f"{sizes[minute]:.0f}" for minute in shown) + " |", ""]
        lines.append(
            f"Resident memory of the server, with a page that keeps up ({rates[0]:.1f} frames/s), one that takes a "
            f"frame every two seconds ({rates[1]:.1f}) and, each minute, one that vanishes without a word."
        )
        (HERE / "live.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print((HERE / "live.md").read_text())
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
