"""`python -m tests.fuzz`: try every odd value, or with a seed others at random; exits with 1 if there is any fault."""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import select
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, Queue
from typing import Any, NamedTuple

from . import POOLS, cases
from .verdicts import CRASH, FAULTS, HANG, KINDS

MEMORY = 12 * 2**30  # bytes that a worker may take
PATIENCE = 300.0  # seconds without an answer, after which a case is tried once more, alone
WORKERS = 2


class Found(NamedTuple):
    """A case, and the verdict on it (`verdicts.Verdict`)."""

    pool: str
    number: int
    case: str
    kind: str
    says: str
    place: str


class Worker:
    """A process that judges cases. It is replaced when one of them kills it, or does not end."""

    def __init__(self, seed: int | None) -> None:
        self._command = [sys.executable, "-m", "tests.fuzz", "--worker"]
        self._command += [] if seed is None else ["--seed", str(seed)]
        self._start()

    def _start(self) -> None:
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        self._process: Any = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, stderr=nowhere, text=True)
        self.counts: dict[str, int] = json.loads(self._process.stdout.readline())

    def judged(self, pool: str, number: int) -> Found:
        """The verdict; if the process does not come to one, how it ended."""
        name = self._answer("name", pool, number)
        if answer := self._answer("judge", pool, number):
            return Found(pool, number, *answer)
        self._process.kill()
        code = self._process.wait()
        self._start()
        # What we have killed ourselves had no end; what was killed otherwise had no memory.
        return Found(pool, number, str(name), HANG if self._waited else CRASH, f"exit code {code}", "")

    def _answer(self, task: str, pool: str, number: int) -> Any:
        print(json.dumps([task, pool, number]), file=self._process.stdin, flush=True)
        ready, *_ = select.select([self._process.stdout], [], [], PATIENCE)
        self._waited = not ready
        line = self._process.stdout.readline() if ready else ""
        return json.loads(line) if line else None

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


def work(seed: int | None) -> None:
    """In a worker: judge what the parent names, line by line."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    pools = {pool: cases(pool, seed) for pool in POOLS}
    folder = tempfile.TemporaryDirectory()
    os.chdir(folder.name)
    print(json.dumps({pool: len(all_cases) for pool, all_cases in pools.items()}), file=answers, flush=True)
    for line in sys.stdin:
        task, pool, number = json.loads(line)
        case = pools[pool][number]
        answer = case.name if task == "name" else [case.name, *case.judged()]
        print(json.dumps(answer), file=answers, flush=True)


def tried(chosen: Sequence[tuple[str, int]], seed: int | None, first: Worker, out: Any) -> list[Found]:
    """Judge the cases, by two workers; those that do not end once more, alone."""
    left: Queue[tuple[str, int]] = Queue()
    for case in chosen:
        left.put(case)
    found: list[Found] = []
    again: list[Found] = []

    def note(one: Found) -> None:
        found.append(one)
        print(json.dumps(one), file=out, flush=True)
        if len(found) % 500 == 0:
            print(f"{len(found):,} of {len(chosen):,}", file=sys.stderr, flush=True)

    def go_on(worker: Worker) -> None:
        while True:
            try:
                pool, number = left.get_nowait()
            except Empty:
                return
            answer = worker.judged(pool, number)
            if answer.kind == HANG:
                again.append(answer)
            else:
                note(answer)

    workers = [first, *(Worker(seed) for _ in range(WORKERS - 1))]
    threads = [threading.Thread(target=go_on, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in again:
        note(first.judged(one.pool, one.number))
    for worker in workers:
        worker.stop()
    return found


def table(found: Sequence[Found]) -> str:
    """How many cases of each pool came to what; and where the faults are."""
    columns = sorted({one.pool for one in found})
    counts = Counter((one.pool, one.kind) for one in found)
    lines = ["| | " + " | ".join(columns) + " |", "| --- |" + " ---: |" * len(columns)]
    for kind in KINDS:
        lines.append(f"| {kind} | " + " | ".join(f"{counts[pool, kind]:,}" for pool in columns) + " |")
    lines.append("| all | " + " | ".join(f"{sum(one.pool == pool for one in found):,}" for pool in columns) + " |")
    for kind in FAULTS:
        faults = [one for one in found if one.kind == kind]
        places = Counter(map(_place, faults))
        if faults:
            lines.append(f"\n{kind}: {len(faults):,} cases in {len(places)} places")
        for place, count in places.most_common():
            example = next(one for one in faults if _place(one) == place)
            lines.append(f"{count:6,}  {place}  {example.case}: {example.says}")
    return "\n".join(lines)


def _place(found: Found) -> str:
    """Where it went wrong: a line, or else the door and the arguments."""
    return found.place or re.sub(r": [^,)]*", "", found.case)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, help="draw sizes, entries and pairs of odd arguments at random")
    parser.add_argument("--cases", type=int, help="of the library, at random; by default all, or with a seed 12,500")
    parser.add_argument("--commands", type=int, help="of the command line, at random; by default all")
    parser.add_argument("--out", type=Path, default=Path(os.devnull), help="file for all verdicts, one per line")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(options.seed)
    first = Worker(options.seed)
    wanted = {"library": options.cases, "commands": options.commands}
    if options.seed is not None and options.cases is None:
        wanted["library"] = 12_500
    draw, chosen = random.Random(options.seed), list[tuple[str, int]]()
    for pool, count in first.counts.items():
        number = count if wanted[pool] is None else min(count, wanted[pool])
        drawn = range(count) if number == count else draw.sample(range(count), number)
        chosen += [(pool, one) for one in drawn]
    with open(options.out, "w", encoding="utf-8") as out:
        found = tried(chosen, options.seed, first, out)
    print(table(found))
    sys.exit(any(one.kind in FAULTS for one in found))


if __name__ == "__main__":
    main()
