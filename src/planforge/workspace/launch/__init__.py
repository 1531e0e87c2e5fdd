"""
Starts one program in a process of its own, and lets nothing that it started outlive it.

    python -I -S -c BOOT PACKAGES PARENT STATUS LIMITS [landlock NETWORK r:PATH … | become] -- PROGRAM …

What is to be arranged in a new process is arranged here and not between the fork and the start of a
program: Planforge has threads, and Python code that runs in a fork can wait for ever for what one of
them held.

This process stays as the program's parent. Whatever loses its own parent below becomes its child, so
nothing gets out of its sight by starting a session or by forking twice. When the program ends, or
when Planforge does, all that is left below is killed. The program itself may be confined by
Landlock first, which needs no privilege and no namespace.

It says in a line on the descriptor STATUS that the program was started, or why not. Then it ends
as the program did: with its exit code, or by its signal. With `become` it does not stay: it turns into
the program, and only says why that cannot be done, on standard error if STATUS is empty.

Every program waits for this to load: only a little of the standard library is imported, and what
is needed later is imported later.
"""

from __future__ import annotations

import ctypes
import os

TYPE_CHECKING = False  # not from `typing`, which takes longer to load than the rest of this
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

BOOT = (
    "import sys; sys.path.append(sys.argv.pop(1)); from planforge.workspace import launch; "
    "launch.main(sys.argv[1:])"
)

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 36, 38
KILL, PIPE, XFSZ = 9, 13, 25  # signals, without the module that names them
ALL = -1
CAPABILITIES = 0x20080522  # the version of `capset` for two words

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
CHANGES = sum(1 << bit for bit in range(4, 13))  # making, linking and removing, of every kind
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
READING = EXECUTE | READ_FILE | READ_DIR
BIND_TCP, CONNECT_TCP = 1 << 0, 1 << 1
ABSTRACT_SOCKETS, SIGNALS = 1 << 0, 1 << 1

LEAST_ABI, NETWORK_ABI, IOCTL_ABI, SCOPE_ABI = 3, 4, 5, 6
"""Before version 3 of Landlock a file that may not be written can still be cut to nothing."""

libc = ctypes.CDLL(None, use_errno=True)


class Ruleset(ctypes.Structure):
    """What is restricted unless a rule allows it."""

    _fields_ = (
        ("filesystem", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class PathBeneath(ctypes.Structure):
    """A rule: what is allowed at a path and below."""

    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("descriptor", ctypes.c_int32))


def landlock_version() -> int:
    """The version of Landlock that the kernel has; 0 if it has none."""
    return max(0, int(libc.syscall(CREATE_RULESET, None, 0, 1)))


def main(arguments: Sequence[str]) -> NoReturn:
    """Start the program and stay until nothing of it is left."""
    split = arguments.index("--")
    (parent, told, limits), rules, program = arguments[:3], arguments[3:split], arguments[split + 1 :]
    _tie(int(parent))
    status = int(told or 2)
    if told:
        os.set_inheritable(status, False)
    if rules == ["become"]:
        _become(program, limits, (), status, b"error " if told else program[0].encode() + b": ")
    adopts = libc.prctl(PR_SET_CHILD_SUBREAPER, 1) == 0
    hears, tells = os.pipe()
    child = os.fork()
    if child == 0:
        libc.prctl(PR_SET_PDEATHSIG, KILL)
        os.setsid()
        _become(program if adopts else (), limits, rules, tells)
    os.close(tells)
    error = os.read(hears, 1000)
    os.write(status, b"error " + error if error else b"started")
    os.close(status)
    if error:
        os._exit(127)
    # Whoever reads what the program writes must see the end of it when the program closes it.
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    _end_as(_stay(child, int(parent)))


def _tie(parent: int) -> None:
    """End when Planforge ends, also if that was before we were here."""
    if hasattr(libc, "prctl"):
        libc.prctl(PR_SET_PDEATHSIG, KILL)
        if os.getppid() != parent:
            os._exit(1)


def _limit(limits: str) -> None:
    """Keep to what the kernel can count: `KIND:SOFT:HARD`, with commas between."""
    if limits:
        import resource

        for kind, soft, hard in (map(int, limit.split(":")) for limit in limits.split(",")):
            resource.setrlimit(kind, (soft, hard))


def _become(
    program: Sequence[str], limits: str, rules: Sequence[str], tells: int, first: bytes = b""
) -> NoReturn:
    """Turn into the program, restricted, or tell why that cannot be done."""
    try:
        if not program:
            raise OSError(0, "the kernel does not let us keep the processes that a program leaves behind")
        _limit(limits)
        for signal in (PIPE, XFSZ):  # which Python ignores, and a program would inherit that
            libc.signal(signal, None)
        if rules:
            restrict(network=rules[1] == "1", rules=rules[2:])
        os.execvp(program[0], list(program))  # noqa: S606
    except OSError as error:
        os.write(tells, first + (error.strerror or str(error)).encode())
    finally:
        os._exit(127)


def _stay(child: int, parent: int) -> int | None:
    """Wait until the program or Planforge ends, then end all that is left; the program's status, if any."""
    import signal
    import time

    awaited = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM))
    ended = _collect()
    heard: int = signal.SIGCHLD
    while child not in ended and heard == signal.SIGCHLD and os.getppid() == parent:
        heard = signal.sigwait(awaited)
        ended |= _collect()
    if not ended.pop(ALL, 0):
        from planforge.workspace.launch import trees

        for _ in trees.ending(lambda: trees.descendants(os.getpid())):
            ended |= _collect()
            time.sleep(trees.PAUSE / 5)
    return ended.get(child)


def _collect() -> dict[int, int]:
    """How those have ended that did; with an entry for `ALL` if there is nobody else."""
    found: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found | {ALL: 1}
        if pid == 0:
            return found
        found[pid] = status


def _end_as(status: int | None) -> NoReturn:
    """End the way the program did."""
    import signal

    code = -int(signal.SIGKILL) if status is None else os.waitstatus_to_exitcode(status)
    if code < 0:
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


# Landlock


def restrict(*, network: bool, rules: Sequence[str]) -> None:
    """Allow this process, and all it will start, what the rules say and nothing else."""
    version = landlock_version()
    every = READING | WRITE_FILE | CHANGES | REFER | TRUNCATE | (IOCTL_DEV if version >= IOCTL_ABI else 0)
    ruleset = Ruleset(
        filesystem=every,
        network=0 if network or version < NETWORK_ABI else BIND_TCP | CONNECT_TCP,
        scoped=ABSTRACT_SOCKETS | SIGNALS if version >= SCOPE_ABI else 0,
    )
    held = _checked(libc.syscall(CREATE_RULESET, ctypes.byref(ruleset), ctypes.sizeof(ruleset), 0))
    allowed = {"r": READING, "w": every, "d": WRITE_FILE | READ_FILE | READ_DIR | IOCTL_DEV & every}
    for rule in rules:
        _allow(held, rule[2:], allowed[rule[0]])
    _checked(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked(libc.syscall(RESTRICT_SELF, held, 0))
    os.close(held)
    # What root could do by other means than files: load a module, or write to a disk as a device.
    header, none = (ctypes.c_uint32 * 2)(CAPABILITIES, 0), (ctypes.c_uint32 * 6)()
    _checked(libc.capset(header, none))


def _allow(ruleset: int, path: str, allowed: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # it is gone, so there is nothing to allow
    if os.fstat(place).st_mode & 0o170000 != 0o040000:
        allowed &= OF_FILES
    rule = PathBeneath(allowed=allowed, descriptor=place)
    done = libc.syscall(ADD_RULE, ruleset, 1, ctypes.byref(rule), 0)
    os.close(place)
    _checked(done)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{os.strerror(number)} (Landlock)")
    return result
