"""Python imports this in every process of a command under torture: it can kill at a file operation.

A run takes seconds to compute and milliseconds to write; kills by the clock would hardly ever hit the writing.
"""

import os
import signal
import sys
import threading

OUT, TALLY, NUMBER, DELAY, WHOM = (
    os.environ.get(f"TORTURE_{name}", "") for name in ("OUT", "TALLY", "NUMBER", "DELAY", "WHOM")
)
OPERATIONS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.utime", "os.link"}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
WIDTH = 120  # bytes of a line of the tally


def watch(event: str, arguments: tuple) -> None:
    """Note each file operation in the output folder, and kill at the one that is asked for."""
    if event not in OPERATIONS or (event == "open" and not arguments[2] & WRITES):
        return
    if not isinstance(arguments[0], str | os.PathLike):
        return
    path = os.path.abspath(arguments[0])
    if not f"{path}/".startswith(f"{OUT}/"):
        return
    line = f"{event} {os.path.relpath(path, OUT)}".encode()[: WIDTH - 1]
    os.write(tally, line.ljust(WIDTH - 1) + b"\n")
    if os.fstat(tally).st_size == int(NUMBER) * WIDTH:
        threading.Timer(float(DELAY), kill).start() if float(DELAY) else kill()


def kill() -> None:
    """Kill the command, which leads its process group, or the whole group."""
    (os.killpg if WHOM == "group" else os.kill)(os.getpgrp(), signal.SIGKILL)


if OUT:
    tally = os.open(TALLY, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    sys.addaudithook(watch)
