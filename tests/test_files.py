"""What is written is whole or not there, whoever else writes; what is read is what was written."""

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import flips
import h5py
import pytest
from test_cli import call_here

import asynchebb as ah
from asynchebb import files
from asynchebb.sweeps import Folder, folder


def a_run(seed=0, **more):
    phase = ah.Phase(ah.Crossbars(6), samples=12, hold=20, snapshots=3)
    return ah.Run(ah.asynchronous(n=10, m=36), phase, seed=seed, **more)


def test_no_damage_goes_unnoticed():
    found = flips.trials(flips=105, cuts=35, seed=7)
    bad = {kind: one for kind, outcomes in found.items() for one in outcomes if one.startswith(flips.BAD)}
    assert not bad and len(found) == 7, found


def test_a_seal_breaks_with_any_byte_and_can_be_left_unread(tmp_path):
    file = tmp_path / "run.nc"
    ah.record(a_run(), file).close()
    whole = file.read_bytes()
    assert files.is_whole(file) and not files.is_whole(tmp_path / "absent")
    for at in (0, len(whole) // 2, len(whole) - files.SEALED, len(whole) - 1):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert not files.is_whole(file)
    for damaged in (whole[:-1], whole + b"\n", whole[: -files.SEALED], b"", whole[-files.SEALED :]):
        file.write_bytes(damaged)
        assert not files.is_whole(file)
    file.write_bytes(whole)
    with h5py.File(file, "r+") as content:
        content["W"][0] = 0
    with pytest.raises(
        ah.InputError, match=f"path is '{file}'; it must be a run saved by asynchebb, but it is damaged"
    ):
        ah.open_run(file)
    with pytest.raises(ah.InputError, match="damaged"):
        ah.record(a_run(), file)
    with ah.open_run(file, verify=False) as dataset:
        assert not dataset.W.values[0].any()
    os.truncate(file, 3000)
    with pytest.raises(ah.InputError, match=f"path is '{file}'; it cannot be read"):
        ah.open_run(file, verify=False)


def test_json_is_read_as_it_was_written_or_not_at_all(tmp_path):
    file, content = tmp_path / "x.json", {"a": [1, 2.5, None], "η": float("inf")}
    files.write_json(file, content)
    assert files.read_json("file", file) == content
    written = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(written | {"a": [1, 2.5, 0]}), encoding="utf-8")
    with pytest.raises(ah.InputError, match=f"file is '{file}', which is damaged"):
        files.read_json("file", file)
    assert files.read_json_if_whole(file) == {}
    for text in ("", "[]", "3", '"x"', "{", "\0", "[" * 100_000):
        file.write_text(text)
        with pytest.raises(ah.InputError, match=f"file is '{file}'"):
            files.read_json("file", file)


def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    file, synced = tmp_path / "x.txt", []
    sync = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: (synced.append(os.readlink(f"/proc/self/fd/{descriptor}")), sync(descriptor))
    )
    files.write_text(file, "first")
    assert (
        synced == [synced[0], str(tmp_path)] and ".x.txt." in synced[0]
    )  # the file before it gets its name, then the folder
    with pytest.raises(ZeroDivisionError), files.atomic(file, tmp_path) as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError
    assert file.read_text() == "first" and [*tmp_path.iterdir()] == [file]


def test_what_a_killed_process_has_left_of_a_file_is_removed_when_it_is_written_again(tmp_path):
    program = """
import os, sys
from pathlib import Path
from asynchebb import files
with files.atomic(Path(sys.argv[1]), Path(sys.argv[1]).parent) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), 9)
"""
    file, others = tmp_path / "x.txt", [tmp_path / ".x.txt.mine", tmp_path / f".x.txt.{'0' * 12}.1.01234567"]
    for other in others:  # a file of the user's, and one of a process elsewhere
        other.write_text("")
    for _ in range(2):
        subprocess.run([sys.executable, "-c", program, file])
        [left] = {*tmp_path.iterdir()} - {*others}
        assert left.read_text() == "half"
    files.write_text(file, "whole")
    assert {*tmp_path.iterdir()} == {file, *others} and file.read_text() == "whole"


def test_threads_that_record_the_same_run_at_once_all_get_it(tmp_path):
    for trial in range(4):
        out, start = tmp_path / str(trial), threading.Barrier(4)

        def record(number, out=out, start=start, seed=trial):
            start.wait()
            with ah.record(a_run(seed), out) as dataset:
                return dataset.W.values[-1].tobytes()

        with ThreadPoolExecutor(4) as threads:
            assert len({*threads.map(record, range(4))}) == 1
        [file] = out.iterdir()
        assert files.is_whole(file)


def test_a_run_that_another_container_computes_is_left_to_it(tmp_path, monkeypatch):
    at = Folder(tmp_path)
    at.prepare()
    identity = "0" * 20
    with folder.claimed(at, identity):
        assert not folder.abandoned(at.file(identity, "claim"))
        monkeypatch.setattr(files, "is_alive", lambda process: False)
        assert folder.abandoned(at.file(identity, "claim"))  # of a process that is dead here
        monkeypatch.setattr(files, "place", lambda: "0" * 12)
        assert not folder.abandoned(at.file(identity, "claim"))  # there, processes have other numbers
        theirs = at.write_runs("0" * 12, [a_run()])
        monkeypatch.undo()
        monkeypatch.setattr(files, "is_alive", lambda process: False)
        at.tidy()
        assert theirs.exists()
    theirs.unlink()


def test_place_tells_containers_of_one_name_apart():
    here = "from asynchebb.files import place; print(place())"
    [first, again] = [subprocess.run([sys.executable, "-c", here], capture_output=True, text=True).stdout for _ in "12"]
    assert first == again and len(first) == 13
    command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", here]
    other = subprocess.run(command, capture_output=True, text=True)
    if other.returncode:
        pytest.skip(f"processes cannot be given numbers of their own here: {other.stderr.strip()}")
    assert other.stdout != first and len(other.stdout) == 13


@pytest.mark.parametrize("bad", ["../../victim/letter", "*", "../../victim/*", "", "0" * 19, "0" * 20 + "/x", 3, None])
def test_what_a_sweep_calls_its_runs_cannot_reach_other_files(bad, tmp_path):
    flips.swept(a_run(), tmp_path / "F")
    victim = tmp_path / "victim" / "letter.d"
    victim.mkdir(parents=True)
    for file in (victim / "x.txt", tmp_path / "victim" / "letter.txt", tmp_path / "F" / "runs" / "mine.nc"):
        file.write_text("mine")
    [definition] = (tmp_path / "F" / "grids").glob("*.json")
    content = files.read_json("file", definition)
    content["runs"][0] = bad
    files.write_json(definition, content)  # whoever can write there knows how to make a digest
    before = sorted(tmp_path.rglob("*"))
    done = call_here("sweep", "rm", tmp_path / "F", definition.stem, "--yes")
    assert done.returncode == 2 and f"folder holds '{definition}', which is not a sweep's definition" in done.stderr
    with pytest.raises(ah.InputError, match="is not a sweep's definition"):
        ah.open_sweep(tmp_path / "F")
    assert sorted(tmp_path.rglob("*")) == before


def test_only_a_sweeps_own_files_are_deleted_with_it(tmp_path):
    flips.swept(a_run(), tmp_path / "F")
    identities = Folder(tmp_path / "F").points().identities
    runs = tmp_path / "F" / "runs"
    others = [runs / name for name in (f"{identities[0]}.notes.txt", f"{identities[0]}x.nc", f"{'0' * 20}.nc")]
    for file in others:
        file.write_text("mine")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.txt").write_text("mine")
    (runs / f"{identities[1]}.parts").symlink_to(outside)
    [definition] = (tmp_path / "F" / "grids").glob("*.json")
    done = call_here("sweep", "rm", tmp_path / "F", definition.stem, "--yes")
    assert "2 runs deleted" in done.stdout, done.stderr
    assert {*runs.iterdir()} == {*others} and (outside / "x.txt").exists()


def test_a_limit_on_the_size_of_files_is_met_with_a_sentence(tmp_path):
    program = (
        "import resource, sys\nresource.setrlimit(resource.RLIMIT_FSIZE, (40 * 1024, 40 * 1024))\n"
        "from asynchebb import cli\ncli.main()"
    )
    command = [sys.executable, "-c", program, "run", "--n", "60", "--stimulus", "Crossbars(6)", "--samples", "20"]
    command += ["--hold", "20", "--snapshots", "4", "--engine", "reference", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1, (done.returncode, done.stderr)
    [sentence] = done.stderr.strip().splitlines()
    assert "space" in sentence and "the same command resumes" in sentence
    again = call_here(*command[3:])
    assert again.returncode == 0 and len([*Path(tmp_path).glob("*.nc")]) == 1
