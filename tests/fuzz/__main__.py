"""`python -m tests.fuzz`: try every odd value, or with a seed others at random; exits with 1 if there is any fault."""

from __future__ import annotations

import argparse
import json
import os
import random
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

MEMORY = 12 * 2**30  # bytes that a worker may take
PATIENCE = 300.0  # seconds without an answer, after which a case is tried once more, alone
WORKERS = 2


class Found(NamedTuple):
    """A case, and the verdict on it, as `judge.Verdict` has it."""

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

    def judged(self, pool: str, number: int) -> Found | str:
        """The verdict, or how the process ended without one."""
        print(json.dumps([pool, number]), file=self._process.stdin, flush=True)
        ready, *_ = select.select([self._process.stdout], [], [], PATIENCE)
        if ready and (line := self._process.stdout.readline()):
            return Found(*json.loads(line))
        self._process.kill()
        code = self._process.wait()
        self._start()
        return f"exit code {code}" if ready else "no end"

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


def work(seed: int | None) -> None:
    """In a worker: judge what the parent names, line by line."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from . import pools
    from .judge import judge

    cases = pools(seed)
    folder = tempfile.TemporaryDirectory()
    os.chdir(folder.name)
    print(json.dumps({name: len(pool) for name, pool in cases.items()}), file=answers, flush=True)
    for line in sys.stdin:
        pool, number = json.loads(line)
        case = cases[pool][number]
        verdict = case.judged() if pool == "commands" else judge(case)
        print(json.dumps([pool, number, case.name, *verdict]), file=answers, flush=True)


def tried(chosen: Sequence[tuple[str, int]], seed: int | None, first: Worker, out: Any) -> list[Found]:
    """Judge the cases, by two workers; those that do not end once more, alone."""
    left: Queue[tuple[str, int]] = Queue()
    for one in chosen:
        left.put(one)
    found: list[Found] = []
    again: list[tuple[str, int]] = []

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
            if isinstance(answer, Found):
                note(answer)
            elif answer == "no end":
                again.append((pool, number))
            else:
                note(Found(pool, number, "?", "the process died", answer, "?"))

    workers = [first, *(Worker(seed) for _ in range(WORKERS - 1))]
    threads = [threading.Thread(target=go_on, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for pool, number in again:
        answer = first.judged(pool, number)
        kind = "no end" if answer == "no end" else "the process died"
        note(answer if isinstance(answer, Found) else Found(pool, number, "?", kind, str(answer), "?"))
    for worker in workers:
        worker.stop()
    return found


def table(found: Sequence[Found]) -> str:
    """How many cases of each pool came to what; and where the faults are."""
    from .judge import FAULTS, KINDS

    columns = sorted({one.pool for one in found})
    counts = Counter((one.pool, one.kind) for one in found)
    lines = ["| | " + " | ".join(columns) + " |", "| --- |" + " ---: |" * len(columns)]
    for kind in KINDS:
        lines.append(f"| {kind} | " + " | ".join(f"{counts[pool, kind]:,}" for pool in columns) + " |")
    lines.append("| all | " + " | ".join(f"{sum(one.pool == pool for one in found):,}" for pool in columns) + " |")
    for kind in FAULTS:
        faults = [one for one in found if one.kind == kind]
        places = Counter(one.place or one.case.partition(":")[0] for one in faults)
        if faults:
            lines.append(f"\n{kind}: {len(faults):,} cases in {len(places)} places")
        for place, count in places.most_common():
            example = next(one for one in faults if (one.place or one.case.partition(":")[0]) == place)
            lines.append(f"{count:6,}  {place}  {example.case}: {example.says}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, help="draw sizes, entries and pairs of odd arguments at random")
    parser.add_argument(
        "--cases", type=int, help="of the Python interface, at random; by default all, with a seed 12,500"
    )
    parser.add_argument("--commands", type=int, help="of the command line, at random; by default all")
    parser.add_argument("--out", type=Path, default=Path(os.devnull), help="file for all verdicts, one per line")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(options.seed)
    first = Worker(options.seed)
    wanted = {"api": options.cases, "commands": options.commands}
    if options.seed is not None and options.cases is None:
        wanted["api"] = 12_500
    draw, chosen = random.Random(options.seed), list[tuple[str, int]]()
    for pool, count in first.counts.items():
        number = count if wanted[pool] is None else min(count, wanted[pool])
        drawn = range(count) if number == count else draw.sample(range(count), number)
        chosen += [(pool, one) for one in drawn]
    with open(options.out, "w", encoding="utf-8") as out:
        found = tried(chosen, options.seed, first, out)
    print(table(found))
    from .judge import FAULTS

    sys.exit(any(one.kind in FAULTS for one in found))


if __name__ == "__main__":
    main()
