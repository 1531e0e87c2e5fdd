"""
How much of the machine a program may use, and what it is told when that was too much.

The kernel refuses what it can count for one process: the size of a file, open files, core dumps.
Memory and processes are counted here, over all that the program started, because what the
kernel would count is address space, which some runtimes take by the terabyte and never touch.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import sys
from pathlib import Path

from planforge.workspace.launch import trees
from planforge.workspace.sandbox import Policy, landlock

OPEN_FILES = 65536
PAGE = resource.getpagesize()

PROGRAM = "prlimit"
"""A program of every Linux that starts another one within limits."""
NAMES = {
    resource.RLIMIT_CORE: "core",
    resource.RLIMIT_NOFILE: "nofile",
    resource.RLIMIT_FSIZE: "fsize",
    resource.RLIMIT_NPROC: "nproc",
}
"""What it calls them."""


def told(policy: Policy | None) -> str:
    """What the kernel can count, as `launch` understands it."""
    bounds = _bounds(policy) if policy is not None else {}
    return ",".join(f"{kind}:{soft}:{hard}" for kind, (soft, hard) in bounds.items())


def imposing(policy: Policy) -> list[str]:
    """The beginning of a command that keeps to what the kernel can count; it must tie itself to us."""
    program = shutil.which(PROGRAM)
    if program is None:
        return landlock.launcher(None, told(policy), ("become",))
    words = (f"--{NAMES[kind]}={soft}:{hard}" for kind, (soft, hard) in _bounds(policy).items())
    return [program, *words, "--"]


def _bounds(policy: Policy) -> dict[int, tuple[int, int]]:
    """What is limited, softly and for good; nothing gets more than we have."""
    bounds = {resource.RLIMIT_CORE: 0, resource.RLIMIT_NOFILE: OPEN_FILES}
    if policy.file_bytes is not None:
        bounds[resource.RLIMIT_FSIZE] = policy.file_bytes
    if policy.processes is not None and os.getuid() != 0 and sys.platform == "linux":
        # It counts all that this person runs, and root is exempt. So it is there to make a bomb stand
        # still, and leaves it to us to see that there are too many.
        bounds[resource.RLIMIT_NPROC] = _tasks(os.getuid()) + 2 * policy.processes
    return {kind: _within(most, resource.getrlimit(kind)) for kind, most in bounds.items()}


def _within(most: int, now: tuple[int, int]) -> tuple[int, int]:
    soft, hard = (most if limit == resource.RLIM_INFINITY else min(limit, most) for limit in now)
    return soft, hard


def _tasks(user: int) -> int:
    """How many processes and threads a person has."""
    count = 0
    for pid, known in trees.table().items():
        with contextlib.suppress(OSError):
            count += known.threads if Path(f"/proc/{pid}").stat().st_uid == user else 0
    return count


def exceeded(program: int, policy: Policy) -> str:
    """What the process `program` and all below it have too much of; empty if nothing."""
    members = [pid for pid, _ in trees.descendants(program)]
    if policy.processes is not None and len(members) > policy.processes:
        return f"it had more than {policy.processes} processes at once"
    most = policy.memory_bytes
    # What is shared is counted again for each who shares it, unless that is looked at more closely.
    if most is None or sum(map(_anonymous, members)) <= most or sum(map(_share, members)) <= most:
        return ""
    return f"it used more than {most / 2**20:.0f} MiB of memory"


def _anonymous(pid: int) -> int:
    """The memory of a process that is not of some file."""
    try:
        _, resident, shared, *_ = map(int, Path(f"/proc/{pid}/statm").read_bytes().split())
    except (OSError, ValueError):
        return 0
    return (resident - shared) * PAGE


def _share(pid: int) -> int:
    """The same, where each who shares a page is charged with a part of it."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines()
    except OSError:
        return _anonymous(pid)
    return sum(
        int(line.split()[1]) * 1024 for line in lines if line.startswith((b"Pss_Anon:", b"Pss_Shmem:"))
    )
