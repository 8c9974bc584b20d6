"""Files on disk: written atomically, sealed against damage, and read with errors that name them."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import socket
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from asynchebb.checks import InputError

SEAL = b"\nasynchebb sha256 "  # begins the end of a sealed file; the digest of all bytes before it follows
SEALED = len(SEAL) + 64  # bytes of the whole seal
DIGEST = "sha256"  # key of a JSON file: the digest of all the rest
# What libraries raise while they read a file that is not what it should be.
UNREADABLE = (
    *(OSError, RuntimeError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, EOFError),
    *(MemoryError, BadZipFile),
)


@contextmanager
def atomic(path: Path, folder: Path, sealed: bool = False) -> Iterator[Path]:
    """Yield a temporary name in this folder; rename the file to `path` once it is complete and on disk.

    The temporary files that killed processes have left in the folder are removed.
    """
    for left in folder.glob(".*"):
        if is_left_over(".".join(left.name.rsplit(".", 3)[1:])):
            left.unlink(missing_ok=True)
    temporary = folder / f".{path.name}.{mark()}"
    try:
        yield temporary
        if sealed:
            seal(temporary)
        _sync(temporary)
        temporary.replace(path)
        _sync(path.parent)  # or a power cut may undo the renaming
    finally:
        temporary.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    with suppress(PermissionError, IsADirectoryError):  # of a folder, where the system has no such thing
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


MARK = r"[0-9a-f]{12}\.\d+\.[0-9a-f]{8}"  # the place, the process, and one of its calls


def mark() -> str:
    """Make a name that no other call has: no other thread's, and no process's of this number in another container."""
    return f"{place()}.{os.getpid()}.{uuid.uuid4().hex[:8]}"


def is_left_over(mark: str) -> bool:
    """Is this the mark of a process that ran here and is dead?"""
    return bool(re.fullmatch(MARK, mark)) and mark.startswith(place()) and not is_alive(int(mark.split(".")[1]))


@cache
def place() -> str:
    """Where this process runs: the same for all that see each other's process ids. Containers may share a host's name,
    and number their processes alike."""
    sources = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")
    known = [os.readlink(one) if one.is_symlink() else one.read_text() for one in sources if os.path.lexists(one)]
    return hashlib.sha256(repr((socket.gethostname(), known)).encode()).hexdigest()[:12]


def is_alive(process: int) -> bool:
    """Is this process alive on this machine? A zombie is not."""
    if Path("/proc/self/stat").exists():
        try:
            return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except OSError:
            return False
    if os.name != "posix":
        return True  # its claim will expire if it is dead
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's process
        return True
    return True


def write_text(path: Path, text: str) -> None:
    with atomic(path, path.parent) as temporary:
        temporary.write_text(text, encoding="utf-8")


def seal(path: Path) -> None:
    """Append a digest of all the file's bytes. Readers of NetCDF and zip files take no notice of it."""
    with open(path, "r+b") as file:
        file.write(SEAL + hashlib.file_digest(file, "sha256").hexdigest().encode())


def is_whole(path: Path) -> bool:
    """Is this a sealed file of which no byte has changed?"""
    try:
        with open(path, "rb") as file:
            left = os.fstat(file.fileno()).st_size - SEALED
            digest = hashlib.sha256()
            while left > 0 and (block := file.read(min(left, 2**20))):
                digest.update(block)
                left -= len(block)
            return left == 0 and file.read() == SEAL + digest.hexdigest().encode()
    except PermissionError:  # which says nothing about its content
        raise
    except OSError:
        return False


def check_seal(name: str, path: Path, what: str) -> None:
    """Raise an error unless no byte of the file has changed since it was written; `what` names what it should be."""
    with reading(name, path):
        whole = is_whole(path)
    if not whole:
        raise InputError(
            f"{name} is {str(path)!r}; it must be {what} saved by asynchebb, but it is damaged or truncated, or "
            "another program wrote it: its checksum is missing or differs"
        )


@contextmanager
def reading(name: str, path: Path) -> Iterator[None]:
    """Turn whatever a library raises while it reads this file into an error that names it."""
    try:
        yield
    except InputError:
        raise
    except UNREADABLE as error:
        reason = "there is no such file" if isinstance(error, FileNotFoundError) else f"it cannot be read ({error})"
        raise InputError(f"{name} is {str(path)!r}; {reason}") from None


def look_into(path: Path) -> None:
    """Raise HDF5's error if the file is damaged where h5netcdf would print a traceback, besides raising it."""
    import h5py

    with h5py.File(path) as file:
        dict(file.attrs)


def write_json(path: Path, content: dict[str, Any], folder: Path | None = None) -> None:
    """Write the content with a digest, atomically; `folder` holds the temporary file."""
    with atomic(path, folder or path.parent) as temporary:
        temporary.write_text(_text({**content, DIGEST: _digest(content)}) + "\n", encoding="utf-8")


def read_json(name: str, path: Path) -> dict[str, Any]:
    """Read what `write_json` wrote, or raise an error that says what is wrong with the file."""
    with reading(name, path):
        content = json.loads(path.read_text(encoding="utf-8"))
        if content.pop(DIGEST, None) != _digest(content):
            raise InputError(f"{name} is {str(path)!r}, which is damaged: its content does not fit its checksum")
        return content


def read_json_if_whole(path: Path) -> dict[str, Any]:
    """Read what `write_json` wrote; nothing if the file is missing or damaged."""
    try:
        return read_json("file", path)
    except InputError:
        return {}


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(_text(content).encode()).hexdigest()


def _text(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False)


def reserve(path: Path, size: int) -> None:
    """Take so many bytes of disk for the file now: HDF5 crashes if there is no room for what it has already taken."""
    if hasattr(os, "posix_fallocate"):
        with open(path, "r+b") as file:
            try:
                os.posix_fallocate(file.fileno(), 0, size)
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):  # a file system that cannot
                    raise


# Kinds of file that a person may give where a folder belongs.
NO_FOLDERS = {
    ".csv",
    ".tsv",
    ".parquet",
    ".json",
    ".npy",
    ".npz",
    ".h5",
    ".hdf5",
    ".nc",
    ".mat",
    ".pkl",
    ".txt",
    ".toml",
}
NO_FOLDERS |= {".png", ".pdf", ".svg", ".jpg", ".gif", ".mp4", ".html", ".md", ".zip", ".py"}


def is_folder(name: str, path: Path, *files: str) -> None:
    """Refuse what looks like a file; `files` are the kinds of file that may be given instead of a folder."""
    if path.suffix.lower() in NO_FOLDERS and not path.is_dir():
        accepted = " or ".join(["a folder", *(f"a {kind} file" for kind in files)])
        raise InputError(f"{name} is {str(path)!r}, which looks like a file; it must be {accepted}")


def make_writable(name: str, given: Path, *folders: Path) -> None:
    """Create these folders, or raise an error that names the argument and says why they cannot be written."""
    try:
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
    except OSError as error:
        must = "be" if any(given in (folder, *folder.parents) for folder in folders) else "be in"  # it is a file
        raise InputError(f"{name} is {str(given)!r}; it must {must} a writable folder ({error.strerror})") from None


def disk_is_full(error: BaseException | None) -> bool:
    """Say whether the disk, a quota or a limit on the size of files caused this error."""
    while error is not None:
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or "No space left" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False
