"""Memory is asked for before it is taken."""

import sys

import numpy as np
import pytest

import asynchebb as ah
from asynchebb import checks, memory


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it is not known how much there is")
@pytest.mark.parametrize("n", [2**20, 2**40, 2**62])
def test_a_network_that_does_not_fit_is_refused_before_anything_is_drawn(n):
    class Drawn:
        def draw(self, rng, shape, n):
            raise AssertionError("weights were drawn")

    network = ah.Network(n, 4, weights=Drawn())
    run = ah.Run(network, ah.Phase(ah.Crossbars(2), samples=1))
    for door in (lambda: network.init(np.random.default_rng(0)), lambda: ah.simulate(run), lambda: ah.record(run, "r")):
        with pytest.raises(
            ah.InputError, match=rf"^n is {n}; it must be smaller: that needs .* GB of memory, and .* GB"
        ):
            door()


def test_what_fits_is_not_refused_and_what_cannot_be_known_is_tried(monkeypatch):
    monkeypatch.setattr(checks, "available", lambda: 10**9)
    checks.memory("p", 10, 10**9)
    with pytest.raises(ah.InputError, match=r"^p is 10; it must be .* needs 1\.2 GB of memory, and 1\.0 GB are free$"):
        checks.memory("p", 10, 12 * 10**8)
    monkeypatch.setattr(checks, "available", lambda: 0)
    checks.memory("p", 10, checks.PLENTY)
    monkeypatch.undo()
    monkeypatch.setattr(sys, "platform", "darwin")
    checks.memory("p", 10, 2**62)


@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux says of memory")
def test_the_least_of_all_limits_counts(monkeypatch, tmp_path):
    import resource

    left = memory.available()
    assert 2**20 < left < 2**60
    limit = 2**30 + int(memory._lines("/proc/self/statm")[0].split()[0]) * resource.getpagesize()
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (limit, limit))
    assert (
        memory.available() == min(left, 2**30) or abs(memory.available() - 2**30) < 2**26
    )  # what this process grew by


def test_limits_of_control_groups_are_read_up_to_the_root(tmp_path):
    def group(path, files):
        (tmp_path / path).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (tmp_path / path / name).write_text(text)

    def left(line):
        (tmp_path / "own").write_text(f"12:cpuset:/elsewhere\n{line}\n")
        return [*memory._control_groups(str(tmp_path), str(tmp_path / "own"))]

    stat = "anon 5\ninactive_file 100\ntotal_inactive_file 300\n"
    group("job", {"memory.max": "5000\n", "memory.current": "2000\n", "memory.stat": stat})
    group("job/step", {"memory.max": "max\n", "memory.current": "1500\n", "memory.stat": stat})
    assert left("0::/job/step") == [5000 - 2000 + 100]
    assert left("0::/nowhere/job") == [] == left("0::/")
    group("memory", {"memory.limit_in_bytes": "9000\n", "memory.usage_in_bytes": "4000\n", "memory.stat": stat})
    assert left("4:cpu,memory:/docker/x") == [9000 - 4000 + 300]
    assert [*memory._control_groups(str(tmp_path), str(tmp_path / "missing"))] == []
