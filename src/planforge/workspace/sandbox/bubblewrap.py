"""
Confines a program by bubblewrap: namespaces of its own for files, processes, messages and the network.

The program sees the machine read-only, with what is hidden covered. It is alone in its process
namespace, whose first process the kernel kills with all others when bubblewrap or Planforge ends.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from planforge.workspace.sandbox.policy import Policy
from planforge.workspace.sandbox.view import TEMPORARY, Access, View

PROGRAM = "bwrap"
APART = (
    *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
)

KERNEL = ("fs", "sys", "sysrq-trigger")
"""Parts of `/proc` that bubblewrap leaves open, and that root may write to without any capability."""


@cache
def found() -> str | None:
    """Where bubblewrap is, and was when it was tried: what is on PATH may change."""
    return shutil.which(PROGRAM)


def command(argv: Sequence[str], view: View, policy: Policy, status: int) -> list[str]:
    """
    The command that runs `argv` confined.

    The environment is handed to bubblewrap as its own, which it passes on: as arguments, everybody on the
    machine could read what is secret in it.
    """
    told = ["--json-status-fd", str(status)]
    net = [] if policy.network else ["--unshare-net"]
    mounts = _mounts(view, policy.scratch_bytes)
    return [found() or PROGRAM, *mounts, *APART, *net, *told, "--chdir", str(view.cwd), "--", *argv]


def _mounts(view: View, scratch: int) -> Iterator[str]:
    yield from ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    for name in KERNEL if os.geteuid() == 0 else ():
        yield from ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}")
    for path, access in view.places:
        yield from _mount(path, access, scratch)
    for link, target in view.links().items():
        yield from ("--symlink", str(target), str(link))
    if view.access(view.home.resolve()) is Access.SCRATCH:
        yield from ("--dir", str(view.home.resolve()))
    # Only now: what is seen inside of a hidden directory had to be made there first.
    for path, access in view.places:
        if access is Access.HIDDEN and path.is_dir():
            yield from ("--remount-ro", str(path))


def _mount(path: Path, access: Access, scratch: int) -> tuple[str, ...]:
    place = str(path)
    match access:
        case Access.SCRATCH:
            mode = "1777" if place in TEMPORARY else "0755"
            return ("--perms", mode, "--size", str(scratch), "--tmpfs", place)
        case Access.HIDDEN:
            return ("--tmpfs", place) if path.is_dir() else ("--ro-bind", os.devnull, place)
        case Access.READ:
            return ("--ro-bind", place, place)
        case Access.WRITE:
            return ("--bind", place, place)
