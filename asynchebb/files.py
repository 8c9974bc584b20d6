"""Files that are there whole or not at all, and folders that can be written."""

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
    """A file goes by another name, in this folder, until it is whole and on the disk."""
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


def make_writable(name: str, given: Path, *folders: Path) -> None:
    """Make these folders, or say of the argument of this name why they cannot be written."""
    try:
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
    except OSError as error:
        raise InputError(
            f"{name} is {str(given)!r}; it must be a folder that can be written ({error.strerror})"
        ) from None


def disk_is_full(error: BaseException | None) -> bool:
    while error is not None:
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False
