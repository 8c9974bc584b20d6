"""Programs compiled for a GPU, and kept. Each is compiled in a process of its own: within one, NVRTC compiles little at
a time, and a reproduction needs dozens of them.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from asynchebb.checks import InputError
from asynchebb.threads import cores

FOLDER = "ASYNCHEBB_GPU_CACHE"  # an environment variable: where they are kept instead
REFUSED = 3  # the exit code for a program that cannot be compiled


at_once = threading.BoundedSemaphore(cores())


def compiled(source: str, options: tuple[str, ...], architecture: str, version: str) -> Path:
    """The file that this source is compiled to, for GPUs of this architecture, by this version of the compiler."""
    content = "\0".join((source, *options, architecture, version))
    file = _folder() / f"{hashlib.sha256(content.encode()).hexdigest()[:32]}.cubin"
    if not file.exists():
        part = file.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
        command = [sys.executable, "-m", __name__, architecture, str(part), *options]
        with at_once:
            ended = subprocess.run(command, input=source, text=True, capture_output=True, encoding="utf-8")
        if ended.returncode == REFUSED:
            lines = ended.stderr.splitlines()
            what = next((line for line in lines if "error" in line), lines[-1])
            raise InputError(f"equations cannot be compiled for a GPU ({what.strip()}); use the engine cpu")
        if ended.returncode:  # no process could be started, or its memory was short
            part.write_bytes(_compile(source, options, None))
        part.replace(file)
    return file


def _compile(source: str, options: Sequence[str], architecture: str | None) -> bytes:
    from cupy.cuda import compiler

    program, _ = compiler.compile_using_nvrtc(source, tuple(options), architecture, cache_in_memory=True)
    return program


def _folder() -> Path:
    import platformdirs

    folder = Path(os.environ.get(FOLDER) or Path(platformdirs.user_cache_dir("asynchebb")) / "gpu")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="asynchebb-gpu-"))


def main() -> None:
    from cupy.cuda.compiler import CompileException

    architecture, file, *options = sys.argv[1:]
    try:
        Path(file).write_bytes(_compile(sys.stdin.read(), options, architecture))
    except CompileException as error:
        print(error, file=sys.stderr)
        sys.exit(REFUSED)


if __name__ == "__main__":
    main()
