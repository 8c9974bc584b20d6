"""How much memory there is for large arrays. It is asked for before any is taken, since Linux kills who takes more."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path


def available() -> int:
    """Bytes that this process may still take, as far as the system, its control group and its own limits say."""
    found = [_system(), _address_space(), *_control_groups()] if sys.platform == "linux" else []
    return max(0, min((left for left in found if left is not None), default=sys.maxsize))


def _system() -> int | None:
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    return None


def _address_space() -> int | None:
    """What `ulimit -v` leaves."""
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    pages = next(iter(_lines("/proc/self/statm")), "0").split()[0]
    return limit - int(pages) * resource.getpagesize()


def _control_groups(root: str = "/sys/fs/cgroup", own: str = "/proc/self/cgroup") -> Iterator[int]:
    """What the limits of containers and batch systems leave. Files that were read count as taken, but make room."""
    for line in _lines(own):
        _, kinds, path = line.split(":", 2)
        if kinds and "memory" not in kinds.split(","):
            continue
        most, taken, cached = "memory.max", "memory.current", "inactive_file"
        if kinds:  # version 1
            most, taken, cached = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
        base = Path(root, "memory") if kinds else Path(root)
        folder = Path(base, path.strip().lstrip("/"))
        for group in (folder, *folder.parents):
            if base not in (group, *group.parents):
                break
            limit, usage = (next(iter(_lines(group / name)), "") for name in (most, taken))
            if limit.isdecimal() and usage.isdecimal():
                stat = dict(one.split(" ", 1) for one in _lines(group / "memory.stat") if " " in one)
                yield int(limit) - int(usage) + int(stat.get(cached, 0))


def _lines(path: str | Path) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
