"""
Which processes belong together, and how all of them are ended.

A process is known by its id and by when it started, so one that was given a used id is never
taken for another. It belongs to a program if it descends from it, or if it carries the
program's cookie in its environment, wherever it went: into another session, or to
another parent after its own had ended.

Nothing but the standard library is imported, and little of that: `launch` needs this, and
loads before every program.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # not from `typing`, which takes longer to load than the rest of this
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Seen = tuple[int, int]
    """A process: its id and when it started, in ticks since the machine did."""

COOKIE = "PLANFORGE_COOKIE"
"""The variable that everything a program starts inherits."""

PASSES = 500
"""How often we look for what is left before we give up: some processes cannot end while a disk hangs."""

PAUSE = 0.01
"""How long to wait between two looks, in seconds."""

CHUNK = 65536
"""How much of a file of the kernel's is asked for at once: of most, all."""


class Row:
    """What the kernel says about one process."""

    __slots__ = ("parent", "running", "started", "threads")

    def __init__(self, stat: bytes) -> None:
        fields = stat[stat.rindex(b")") + 2 :].split()  # its name may hold anything
        self.parent = int(fields[1])
        self.threads = int(fields[17])
        self.started = int(fields[19])
        # One whose first thread has ended looks ended, and others may run on.
        self.running = fields[0] not in (b"Z", b"X") or self.threads > 1


def row(pid: int) -> Row | None:
    """What is known of the process `pid`; None if there is none."""
    stat = _read(f"/proc/{pid}/stat")
    return Row(stat) if stat else None


def table() -> dict[int, Row]:
    """Every process that can be seen."""
    found = {}
    for name in os.listdir("/proc"):  # noqa: PTH208  (`pathlib` loads slowly)
        if name.isdigit() and (known := row(int(name))):
            found[int(name)] = known
    return found


def identity(pid: int) -> Seen | None:
    """The process that has the id `pid` now."""
    known = row(pid)
    return (pid, known.started) if known else None


def runs(seen: Seen) -> bool:
    """Whether that very process still runs; one that ended and was not collected does not."""
    known = row(seen[0])
    return known is not None and known.started == seen[1] and known.running


def descendants(ancestor: int, rows: dict[int, Row] | None = None) -> set[Seen]:
    """Everything below `ancestor`, which is not among it."""
    rows = table() if rows is None else rows
    children: dict[int, list[int]] = {}
    for pid, known in rows.items():
        children.setdefault(known.parent, []).append(pid)
    found, waiting = set(), list(children.get(ancestor, ()))
    while waiting:
        pid = waiting.pop()
        waiting += children.get(pid, ())
        if rows[pid].running:
            found.add((pid, rows[pid].started))
    return found


def bearing(cookie: str) -> set[Seen]:
    """Everything that was given `cookie` when it started."""
    carried = f"{COOKIE}={cookie}".encode()
    found = set()
    for pid, known in table().items():
        if known.running and carried in _environment(pid, known).split(b"\0"):
            found.add((pid, known.started))
    return found


def _environment(pid: int, known: Row) -> bytes:
    if (read := _read(f"/proc/{pid}/environ")) or known.threads == 1:
        return read
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208  (`pathlib` loads slowly)
    except OSError:
        return b""
    # The first thread has ended and knows nothing any more.
    return b"\0".join(_read(f"/proc/{pid}/task/{thread}/environ") for thread in threads)


def send(seen: Seen, signal_number: int) -> None:
    """Send a signal to that very process, or to none."""
    import signal

    try:
        held = os.pidfd_open(seen[0])
    except OSError:
        return
    try:
        if runs(seen):  # whoever has the id now is the one that is held
            signal.pidfd_send_signal(held, signal_number)
    except OSError:
        pass
    finally:
        os.close(held)


def ending(find: Callable[[], set[Seen]]) -> Iterator[int]:
    """
    End all that `find` finds, yielding how many are left as often as it is worth waiting for them.

    All are stopped before the first one is killed: what runs could start another one meanwhile.
    """
    import signal

    stopped: set[Seen] = set()
    for _ in range(PASSES):
        fresh = find() - stopped
        if not fresh:
            break
        for seen in fresh:
            send(seen, signal.SIGSTOP)
        stopped |= fresh
    for _ in range(PASSES if stopped else 0):
        left = find() | {seen for seen in stopped if runs(seen)}
        if not left:
            return
        for seen in left:
            send(seen, signal.SIGKILL)
        stopped = left
        yield len(left)


def _read(path: str) -> bytes:
    """A file of the kernel's; empty if it is gone or not for us."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        read = os.read(opened, CHUNK)
        while more := os.read(opened, CHUNK):
            read += more
    except OSError:
        return b""
    else:
        return read
    finally:
        os.close(opened)
