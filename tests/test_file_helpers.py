"""What files.py is made of, piece by piece: whose leftovers are removed, what is refused, and what counts as full."""

import errno
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from asynchebb import files
from asynchebb.checks import InputError


@pytest.fixture(scope="module")
def dead():
    """The number of a process that ran here."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_process_is_alive_until_it_ends_and_a_zombie_is_dead(dead):
    assert files.is_alive(os.getpid()) and files.is_alive(os.getppid()) and not files.is_alive(dead)
    zombie = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    assert not files.is_alive(zombie.pid)
    zombie.wait()


def test_without_proc_a_process_is_asked_whether_it_takes_signals(dead, monkeypatch):
    monkeypatch.setattr(Path, "exists", lambda path: False)
    assert files.is_alive(os.getpid()) and not files.is_alive(dead)

    def refuse(process, signal):
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)  # as it does of another user's process
    assert files.is_alive(dead)


def test_only_marks_of_dead_processes_of_this_place_are_left_over(dead):
    mark = files.mark()
    assert mark != files.mark() and not files.is_left_over(mark)
    place, _, call = mark.split(".")
    assert place == files.place() and files.is_left_over(f"{place}.{dead}.{call}")
    for other in (
        f"{'0' * 12}.{dead}.{call}",
        f"{place}.{dead}",
        f"{place}.{dead}.{call}.x",
        f"{place}.{dead}.{call}0",
        "",
    ):
        assert not files.is_left_over(other)


def test_a_write_removes_what_dead_processes_have_left_and_nothing_else(dead, tmp_path):
    place, _, call = files.mark().split(".")
    left, others = tmp_path / f".any.txt.{place}.{dead}.{call}", []
    for name in (f"any.txt.{place}.{dead}.{call}", f".any.txt.{place}.{os.getpid()}.{call}", ".any.txt", ".a.b.c.d"):
        others.append(tmp_path / name)
    for file in (left, *others):
        file.write_text("")
    files.write_text(tmp_path / "new.txt", "η")
    assert {*tmp_path.iterdir()} == {tmp_path / "new.txt", *others}
    assert (tmp_path / "new.txt").read_bytes() == "η".encode()


def test_what_another_process_removes_at_the_same_time_is_no_error(tmp_path, monkeypatch):
    left = tmp_path / ".x"
    left.write_text("")
    monkeypatch.setattr(files, "is_left_over", lambda mark: left.unlink() or True)
    files.write_text(tmp_path / "new.txt", "")
    assert [*tmp_path.iterdir()] == [tmp_path / "new.txt"]


def test_a_file_is_sealed_only_where_it_is_to_be_and_the_temporary_one_lies_in_its_folder(tmp_path):
    folder, file = tmp_path / "unfinished", tmp_path / "x"
    folder.mkdir()
    for sealed in (False, True):
        with files.atomic(file, folder, sealed) as temporary:
            assert temporary.parent == folder and temporary.name.startswith(".x.")
            temporary.write_bytes(b"content" * 10**6)
        assert files.is_whole(file) == sealed and not [*folder.iterdir()]
    content = file.read_bytes()
    digest = hashlib.sha256(b"content" * 10**6).hexdigest()
    assert content[7 * 10**6 :] == files.SEAL + digest.encode() and len(content) == 7 * 10**6 + files.SEALED
    files.write_json(tmp_path / "y.json", {"a": 1}, folder)
    assert files.read_json("y", tmp_path / "y.json") == {"a": 1} == files.read_json_if_whole(tmp_path / "y.json")


@pytest.mark.parametrize("size", [0, 1, 2, 2**20 - 1, 2**20, 2**20 + 1])
def test_a_file_of_any_size_may_be_sealed(size, tmp_path):
    (tmp_path / "x").write_bytes(b"x" * size)
    assert not files.is_whole(tmp_path / "x")
    files.seal(tmp_path / "x")
    assert files.is_whole(tmp_path / "x") and not files.is_whole(tmp_path)


@pytest.mark.parametrize("digest", [None, 3, "", "0" * 64, "f" * 64])
def test_json_with_another_digest_is_damaged(digest, tmp_path):
    (tmp_path / "x.json").write_text(json.dumps({"a": 1, files.DIGEST: digest}))
    with pytest.raises(InputError, match=r"^file is '.*/x.json', which is damaged: its content does not fit its check"):
        files.read_json("file", tmp_path / "x.json")
    assert files.read_json_if_whole(tmp_path / "x.json") == {} == files.read_json_if_whole(tmp_path / "absent.json")


def test_a_broken_seal_is_said_to_be_one(tmp_path):
    file = tmp_path / "x"
    file.write_text("content")
    with pytest.raises(
        InputError, match=r"^path is '.*x'; it must be a run saved by asynchebb, but it is damaged or tru"
    ):
        files.check_seal("path", file, "a run")
    files.seal(file)
    files.check_seal("path", file, "a run")


@pytest.mark.parametrize("error", [OSError("e"), KeyError("k"), UnicodeDecodeError("a", b"", 0, 1, "r"), MemoryError()])
def test_what_a_library_raises_names_the_file(error, tmp_path):
    with (
        pytest.raises(InputError, match=rf"^path is '{tmp_path}/x'; it cannot be read \("),
        files.reading("path", tmp_path / "x"),
    ):
        raise error


def test_an_error_that_names_the_file_is_left_as_it_is_and_a_missing_one_is_said_to_be_missing(tmp_path):
    with pytest.raises(InputError, match=r"^mine$"), files.reading("path", tmp_path):
        raise InputError("mine")
    with (
        pytest.raises(InputError, match=r"^path is '.*/x'; there is no such file"),
        files.reading("path", tmp_path / "x"),
    ):
        (tmp_path / "x").read_bytes()
    with pytest.raises(KeyboardInterrupt), files.reading("path", tmp_path):
        raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["x.csv", "x.NPY", "x.nc", "x.json", "x.png", "x.py", "x.html", "a/x.zip"])
def test_what_looks_like_a_file_is_no_folder_unless_it_is_one(name, tmp_path):
    with pytest.raises(
        InputError, match=r"^out is '.*', which looks like a file; it must be a folder or a .nc file or a"
    ):
        files.is_folder("out", tmp_path / name, ".nc", ".csv")
    with pytest.raises(InputError, match=r"it must be a folder$"):
        files.is_folder("out", tmp_path / name)
    (tmp_path / name).mkdir(parents=True)
    files.is_folder("out", tmp_path / name)


def test_any_other_name_may_be_a_folders(tmp_path):
    for name in ("x", "x.runs", "seed-0.5", ".hidden"):
        files.is_folder("out", tmp_path / name)


def test_folders_are_made_and_tried(tmp_path):
    files.make_writable("out", tmp_path / "a", tmp_path / "a" / "b", tmp_path / "c")
    files.make_writable("out", tmp_path / "a", tmp_path / "a" / "b", tmp_path / "c")
    assert [*(tmp_path / "a" / "b").iterdir()] == [] and (tmp_path / "c").is_dir()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"^out is '.*/file/x'; it must be a writable folder \(Not a directory\)$"):
        files.make_writable("out", tmp_path / "file" / "x", tmp_path / "file" / "x")
    with pytest.raises(InputError, match=r"^out is '.*/x.csv'; it must be in a writable folder \(File exists\)$"):
        files.make_writable("out", tmp_path / "file" / "x.csv", tmp_path / "file")


def chained(cause=None, context=None):
    error = ValueError("later")
    error.__cause__, error.__context__ = cause, context
    return error


def test_a_full_disk_is_found_behind_what_it_has_caused():
    full = [OSError(number, "said") for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)]
    full.append(RuntimeError("HDF5: No space left on device"))
    for error in full:
        assert files.disk_is_full(error) and files.disk_is_full(chained(cause=error))
        assert files.disk_is_full(chained(context=chained(context=error)))
    for error in (None, ValueError(), OSError(errno.EACCES, "said"), chained(), chained(cause=KeyError())):
        assert not files.disk_is_full(error)


def test_room_is_taken_at_once_and_a_full_disk_is_not_overlooked(tmp_path, monkeypatch):
    file = tmp_path / "x"
    file.write_bytes(b"abc")
    files.reserve(file, 10_000)
    assert file.stat().st_size == 10_000 and file.read_bytes()[:4] == b"abc\0"
    for number in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSPC):

        def fail(*arguments, number=number):
            raise OSError(number, "said")

        monkeypatch.setattr(os, "posix_fallocate", fail)
        if number == errno.ENOSPC:
            with pytest.raises(OSError, match="said"):
                files.reserve(file, 10)
        else:
            files.reserve(file, 10)  # a file system that cannot
