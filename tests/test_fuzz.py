"""Odd values for the whole library and the command line: a sample of what `make fuzz` tries.

The seed draws everything, so another one tries other values.
"""

import random

import fuzz
import pytest
from fuzz.verdicts import FAULTS

SEED = 37


@pytest.mark.parametrize(("pool", "count"), [("library", 280), ("commands", 20)])
def test_no_odd_value_ends_in_a_traceback_or_is_silently_wrong(pool, count, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cases = fuzz.cases(pool, SEED)
    plain = [case for case in cases if pool == "library" and not case.odd]  # one for each door, which must open
    judged = {case.name: case.judged() for case in [*plain, *random.Random(SEED).sample(cases, count)]}
    assert len(judged) > 0.9 * (len(plain) + count)  # few have the same name
    assert not {name: verdict for name, verdict in judged.items() if verdict.kind in FAULTS}
