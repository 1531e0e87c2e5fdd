"""
Which program an agent's name leads to here: its path, its hash, its version, whether it is logged in.

Whatever lies first on PATH is what is started, so an impostor is seen by its path and by the hash of its
file.
Hashes of large programs and versions of slow ones are remembered for as long as the file stays the same.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from planforge.agents.acp.connection import Connection
from planforge.agents.acp.requests import HELLO, INITIALIZE
from planforge.agents.acp.wire import Wire
from planforge.agents.homes import Furnished
from planforge.agents.logins import located, logged_in
from planforge.agents.profiles import Profile
from planforge.agents.rpc import Nobody, Refusal
from planforge.kernel.objects import write_atomically

CACHE = ".programs.json"
"""What is remembered of programs, beneath the state of a project."""
PATIENCE = 30.0
"""How many seconds a program has to say its version, or to start."""
SAID = 400
VERSION = re.compile(r"\d+\.\d+[\w.+-]*")
PASSED_ON = ("LANG", "LC_ALL", "PATH", "SHELL", "USER", "LOGNAME")


class _Known(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is remembered about a file for as long as it is the same one."""

    stamp: tuple[int, ...] = ()
    sha256: str
    """Of that file. Of a program in several files it is the one that is started."""
    version: str = ""
    """What it says of itself; empty if it says nothing."""
    seconds: float | None = None
    """How long it took to say so."""
    startup: float | None = None
    """How long it took until it could be talked to, when that was last measured."""


class Found(_Known, frozen=True, kw_only=True):
    """A program that is installed."""

    path: str
    """Where PATH leads."""
    real: str
    """The file that is, once all links are followed."""


class Memory:
    """What is remembered of programs; without a file nothing is, beyond this process."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._known: dict[str, _Known] = {}
        if file is not None:
            try:
                self._known = msgspec.json.decode(file.read_bytes(), type=dict[str, _Known])
            except (OSError, msgspec.MsgspecError):  # then it is found out anew
                self._known = {}
        self._before = dict(self._known)

    def recall(self, key: str, stamp: tuple[int, ...]) -> _Known | None:
        """What is known of a file, if it is the same still."""
        known = self._known.get(key)
        return known if known is not None and known.stamp == stamp else None

    def remember(self, key: str, known: _Known) -> None:
        """Keep it in mind."""
        self._known[key] = known

    def keep(self) -> None:
        """Write it down, if there is anything new; that it cannot be written is no harm."""
        if self._file is None or self._known == self._before:
            return
        try:
            write_atomically(self._file, msgspec.json.encode(self._known))
        except OSError:
            return
        self._before = dict(self._known)


def find(profile: Profile, memory: Memory, *, version: bool = True) -> Found | None:
    """The program of a profile; `None` if it is not installed. Asking for the version starts it."""
    path = shutil.which(profile.program) if profile.installed else None
    if path is None:
        return None
    real = Path(path).resolve()
    # By path and version arguments: one file may be several programs, by the name that it is started with.
    key = " ".join([path, *profile.version])
    try:
        stamp = _stamp(real)
        known = memory.recall(key, stamp)
        if known is None:
            with real.open("rb") as file:
                known = _Known(stamp=stamp, sha256=hashlib.file_digest(file, "sha256").hexdigest())
            memory.remember(key, known)
    except OSError:  # it can be started but not read
        return Found(path=path, real=str(real), sha256="")
    if version and profile.version and known.seconds is None:
        said, seconds = _version(path, profile)
        if said is not None:
            known = msgspec.structs.replace(known, version=said, seconds=round(seconds, 3))
            memory.remember(key, known)
    return Found(path=path, real=str(real), **msgspec.structs.asdict(known))


def started_in(profile: Profile, memory: Memory, seconds: float) -> None:
    """Remember how long it took until the program could be talked to."""
    found = find(profile, memory, version=False)
    key = " ".join([found.path, *profile.version]) if found else ""
    if found and (known := memory.recall(key, found.stamp)):
        memory.remember(key, msgspec.structs.replace(known, startup=round(seconds, 3)))


def _stamp(real: Path) -> tuple[int, ...]:
    found = real.stat()
    return (found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns)


def _version(path: str, profile: Profile) -> tuple[str | None, float]:
    """
    What a program says when it is asked for its version, in a home where it finds and leaves nothing.

    None if it did not come to an end: another time it may.
    """
    with tempfile.TemporaryDirectory(prefix="planforge-") as home:
        env = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        env |= {"HOME": home, "TMPDIR": home}
        env |= {name: f"{home}/{name.lower()}" for name in profile.directories}
        env |= {name: value for name, value in profile.env.items() if "${" not in value}
        began = time.monotonic()
        said = _heard([path, *profile.version], env, home)
        seconds = time.monotonic() - began
    if said is None:
        return None, seconds
    match = VERSION.search(said)
    first = next(iter(said.strip().splitlines()), "")
    return match[0] if match else "".join(filter(str.isprintable, first))[:40], seconds


def _heard(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> str | None:
    """The first words of a program, None if it does not end; it and its group are gone afterwards."""
    heard, unheard = subprocess.PIPE, subprocess.DEVNULL
    try:
        process = subprocess.Popen(
            argv, env=env, cwd=cwd, stdin=unheard, stdout=heard, stderr=unheard, start_new_session=True
        )
    except OSError:
        return ""
    try:
        output, _ = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _kill(process.pid)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    return output[:SAID].decode("utf-8", "replace")


def start_up(furnished: Furnished, cwd: Path) -> float | None:
    """
    How many seconds it takes until the agent answers the first message; None if it does not.

    It is asked nothing that a model would have to answer, and it need not be logged in.
    """
    env = {name: os.environ[name] for name in PASSED_ON if name in os.environ} | furnished.env
    began = time.monotonic()
    return time.monotonic() - began if asyncio.run(_greets(furnished.argv, env, cwd)) else None


async def _greets(argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> bool:
    """Whether an agent says in time that it is there; it and its group are gone afterwards."""
    heard, unheard = subprocess.PIPE, subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, env=env, cwd=cwd, stdin=heard, stdout=heard, stderr=unheard, start_new_session=True
        )
    except OSError:
        return False
    connection = Connection(Wire(process), Nobody())
    try:
        with suppress(ValueError):  # an answer that is not valid is one all the same
            await asyncio.wait_for(connection.ask(INITIALIZE, HELLO), PATIENCE)
    except (OSError, TimeoutError, Refusal):
        return False
    finally:
        await connection.close()
        _kill(process.pid)
        await process.wait()
    return True


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def login(profile: Profile, person: Path | None = None) -> str:
    """Whether somebody is logged in: `yes (variable)`, `yes (file)`, `no`, or `unknown`; nobody is asked."""
    person = person or Path.home()
    if any(os.environ.get(name, "").strip() for name in profile.login_env):
        return "yes (variable)"
    found = [logged_in(located(profile, path, person)[0]) for path in profile.login]
    if any(found):
        return "yes (file)"
    if None in found:
        return "unknown"
    if not profile.login:
        return "no" if profile.login_env and profile.vendor else "unknown"
    # Elsewhere than on Linux programs keep logins where only they can look.
    return "no" if sys.platform == "linux" else "unknown"
