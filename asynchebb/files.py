"""Atomic file writing, and checks that folders are writable."""

from __future__ import annotations

import errno
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from asynchebb.checks import InputError


@contextmanager
def atomic(path: Path, folder: Path) -> Iterator[Path]:
    """Yield a temporary name in this folder; the file is renamed to `path` once it is complete and on disk."""
    temporary = folder / f".{path.name}.{socket.gethostname()}.{os.getpid()}"
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    with atomic(path, path.parent) as temporary:
        temporary.write_text(text, encoding="utf-8")


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
        raise InputError(f"{name} is {str(given)!r}; it must be a writable folder ({error.strerror})") from None


def disk_is_full(error: BaseException | None) -> bool:
    while error is not None:
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False
