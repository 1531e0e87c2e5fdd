"""
Which levels of confinement work here, found out by using them.

Whether a kernel lets an ordinary user have namespaces depends on its settings, on security modules and
on containers around us: what is installed says little. Each level is tried once, with a program that
must succeed in what is allowed and fail in what is not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import msgspec

from planforge.errors import InvalidInput, RefusedByGate
from planforge.workspace import launch
from planforge.workspace.sandbox import bubblewrap, landlock
from planforge.workspace.sandbox.policy import Level, Policy
from planforge.workspace.sandbox.view import View

AUTO = "auto"
ORDER = tuple(Level)
PATIENCE = 30.0
PROBE = "echo in > inside/mark || exit 3; (echo out > outside/mark) 2>/dev/null && exit 4; exit 5"
MEANT, INSIDE, OUTSIDE = 5, 3, 4


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """What came of trying a level."""

    level: Level
    works: bool
    why: str
    """What it does here, or why it does not work."""


class Confined(msgspec.Struct, frozen=True, kw_only=True):
    """A command that runs another one confined."""

    argv: tuple[str, ...]
    env: dict[str, str]
    scratch: Path | None = None
    """A directory that was made for it and must go with it."""


def enough(level: Level, wanted: Level) -> bool:
    """Whether `level` confines at least as firmly as `wanted`."""
    return ORDER.index(level) <= ORDER.index(wanted)


def strongest() -> Level:
    """The firmest level that works here."""
    return next(level for level in ORDER if tried(level).works)


def explain() -> tuple[Tried, ...]:
    """Every level, the firmest first, and whether it works here and why."""
    return tuple(map(tried, ORDER))


def chosen(wanted: str, *, unconfined: bool = False) -> Level:
    """The level that the settings ask for, if it works; `none` only where that was asked for."""
    level = strongest() if wanted == AUTO else Level(wanted)
    found = tried(level)
    if not found.works:
        hint = f'install what is missing, or set `level = "auto"`; here works `{strongest()}`'
        raise InvalidInput(f"sandbox level `{level}` does not work here: {found.why}", hint)
    if level is Level.NONE and not unconfined:
        raise RefusedByGate(
            "agents and checks would run without any sandbox",
            "set `unconfined = true` under `[sandbox]` in `planforge.toml` if that is meant",
        )
    return level


def confine(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    policy: Policy,
    level: Level,
    status: int,
    limits: str = "",
) -> Confined:
    """
    The command that runs `argv` in `cwd` at `level`, and tells the descriptor `status` what came of it.

    The limits are kept at every level but that of bubblewrap, which has to be started within them.
    """
    if level not in (Level.BUBBLEWRAP, Level.LANDLOCK):
        how = () if level is Level.PROCESSES else ("become",)
        return Confined(argv=(*landlock.launcher(status, limits, how), *argv), env=dict(env))
    told = _told(cwd, dict(env), policy)
    view = View(policy, argv, cwd, told)
    # A place for temporary files that the program was given and may write to stays what it is.
    own = {"TMPDIR": told["TMPDIR"]} if _is_given(told.get("TMPDIR", ""), policy) else {}
    if level is Level.BUBBLEWRAP:
        told |= {"TMPDIR": "/tmp"} | own  # noqa: S108  (its own)
        return Confined(argv=tuple(bubblewrap.command(argv, view, policy, status)), env=told)
    scratch = Path(tempfile.mkdtemp(prefix="planforge-")).resolve()
    told |= landlock.furnish(scratch, view) | own
    rules = tuple(landlock.rules(view, scratch, network=policy.network))
    return Confined(argv=(*landlock.launcher(status, limits, rules), *argv), env=told, scratch=scratch)


def _is_given(place: str, policy: Policy) -> bool:
    """Whether a directory lies in what a program may change, and is not just one for everybody."""
    return bool(place) and any(
        Path(place).resolve().is_relative_to(path.resolve()) for path in policy.writable
    )


def _told(cwd: Path, env: dict[str, str], policy: Policy) -> dict[str, str]:
    """The environment, with a word to git if what it finds belongs to somebody else."""
    owners = {path.stat().st_uid for path in (cwd, *policy.visible) if path.exists()}
    if owners <= {os.geteuid()}:
        return env
    count = int(env.get("GIT_CONFIG_COUNT") or 0)
    return env | {
        "GIT_CONFIG_COUNT": str(count + 1),
        f"GIT_CONFIG_KEY_{count}": "safe.directory",
        f"GIT_CONFIG_VALUE_{count}": "*",
    }


@cache
def tried(level: Level) -> Tried:
    """Try one level, once."""
    why = _missing(level)
    if why is None and level is not Level.NONE:
        why = _probe(level)
    return Tried(level=level, works=why is None, why=_does(level) if why is None else why)


def _missing(level: Level) -> str | None:
    """What a level needs and this machine has not."""
    if level is Level.NONE:
        return None
    if sys.platform != "linux":
        return "it needs Linux"
    if level is Level.BUBBLEWRAP and bubblewrap.found() is None:
        return "`bwrap` is not on PATH; it comes with the package `bubblewrap`"
    if level is Level.LANDLOCK and (version := launch.landlock_version()) < launch.LEAST_ABI:
        found = f"version {version} of Landlock" if version else "no Landlock"
        return f"the kernel has {found}; version {launch.LEAST_ABI} is needed (Linux 6.2)"
    return None


def _does(level: Level) -> str:
    if level is Level.LANDLOCK and launch.landlock_version() < launch.NETWORK_ABI:
        return "it confines files and processes; the network only from Linux 6.7 on"
    return {
        Level.BUBBLEWRAP: "it confines files, processes and the network",
        Level.LANDLOCK: "it confines files, processes and TCP",
        Level.PROCESSES: "it leaves no process behind; files and the network are open",
        Level.NONE: "nothing is confined; what leaves its process group may live on",
    }[level]


def _probe(level: Level) -> str | None:
    """Why a program that is confined at `level` does not do what it should; None if it does."""
    with tempfile.TemporaryDirectory(prefix="planforge-") as name:
        place = Path(name).resolve()
        for part in ("inside", "outside"):
            (place / part).mkdir()
        policy = Policy(writable=(place / "inside",), visible=(place,))
        try:
            code, said = _run(["/bin/sh", "-c", PROBE], place, policy, level)
        except (OSError, subprocess.SubprocessError) as error:
            return f"it cannot be started: {error}"
    if code == (OUTSIDE if level is Level.PROCESSES else MEANT):
        return None
    if code == OUTSIDE:
        return "a program could write where it must not"
    if code == INSIDE:
        return "a program could not write where it may"
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:200] if lines else f"it ended with {code}"


def _run(argv: Sequence[str], cwd: Path, policy: Policy, level: Level) -> tuple[int, bytes]:
    hears, tells = os.pipe()
    told = b""
    try:
        env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": os.environ.get("HOME", "/")}
        confined = confine(argv, cwd=cwd, env=env, policy=policy, level=level, status=tells)
        try:
            ended = subprocess.run(
                confined.argv,
                cwd=cwd,
                env=confined.env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(tells,),
                timeout=PATIENCE,
                check=False,
            )
        finally:
            if confined.scratch:
                shutil.rmtree(confined.scratch, ignore_errors=True)
        os.set_blocking(hears, False)
        with suppress(BlockingIOError):  # nothing was said
            told = os.read(hears, 1000)
    finally:
        os.close(hears)
        os.close(tells)
    return ended.returncode, told.removeprefix(b"error ") if told.startswith(b"error ") else ended.stdout
