"""Programs compiled for a GPU, and kept. Each is compiled in a process of its own: within one, NVRTC compiles little at
a time, and a reproduction needs dozens of them.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from asynchebb.checks import InputError

FOLDER = "ASYNCHEBB_GPU_CACHE"  # an environment variable: where they are kept instead


def compiled(source: str, options: tuple[str, ...], card: int, kind: str) -> Path:
    """The file that this source is compiled to, for this GPU; `kind` says of what kind it and the compiler are."""
    content = "\0".join((source, *options, kind))
    file = _folder() / f"{hashlib.sha256(content.encode()).hexdigest()[:32]}.cubin"
    if not file.exists():
        part = file.with_suffix(f".{os.getpid()}.{id(source)}")
        command = [sys.executable, "-m", __name__, str(card), str(part), *options]
        ended = subprocess.run(command, input=source, text=True, capture_output=True, encoding="utf-8")
        if ended.returncode:
            lines = ended.stderr.splitlines() or ["no reason given"]
            what = next((line for line in lines if "error" in line), lines[-1])
            raise InputError(f"equations cannot be compiled for a GPU ({what.strip()}); use the engine cpu")
        part.replace(file)
    return file


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
    import cupy
    from cupy.cuda import compiler

    card, file, *options = sys.argv[1:]
    cupy.cuda.Device(int(card)).use()
    program, _ = compiler.compile_using_nvrtc(sys.stdin.read(), tuple(options), cache_in_memory=True)
    Path(file).write_bytes(program)


if __name__ == "__main__":
    main()
