"""`python -m tests.torture`: kill commands a hundred times each; exit with 1 if one does not end as undisturbed."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from . import kills


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of the random moments")
    parser.add_argument("--kills", type=int, default=100, help="of each command")
    parser.add_argument("--only", default=",".join(kills.COMMANDS), help="commands, separated by commas")
    given = parser.parse_args()
    names = given.only.split(",")
    if unknown := {*names} - {*kills.COMMANDS}:
        parser.error(f"--only names {', '.join(unknown)}; it must name some of {', '.join(kills.COMMANDS)}")
    folder, wrong = Path(tempfile.mkdtemp(prefix="torture-")), 0
    print(f"seed {given.seed}, in {folder}", flush=True)
    for name in names:
        (folder / name).mkdir()
        shown = 0
        for tally in kills.torture(
            kills.COMMANDS[name], given.kills, random.Random(f"{given.seed} {name}"), folder / name
        ):
            for sentence in tally.bad[shown:]:
                print(f"{name}: BAD: {sentence}", flush=True)
            shown = len(tally.bad)
            print(f"{name}: {tally.kills} kills, {tally.completions} ends", file=sys.stderr, flush=True)
        places = ", ".join(f"{count} {place}" for place, count in tally.places.most_common())
        print(f"{name}: {tally.kills} kills ({places}); {tally.completions} ends, {shown} of them bad", flush=True)
        wrong += shown
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
