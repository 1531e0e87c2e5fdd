"""
Runs the tests that need the real agent programs: `make test-agents`.

The programs are installed from whatever npm registry this machine is set up for, at the versions of
`real-agents/package.json` and with the content that its lock names, into a cache outside of the repository
(`$PLANFORGE_AGENTS_CACHE`, else `$XDG_CACHE_HOME/planforge/agents`). The tests then run where nothing but
loopback can be reached. A program that cannot be installed is told to the tests, which report it as not run;
where none at all can be run that is a failure, unless it is asked for.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
PINNED = HERE / "real-agents"
TESTS = HERE.parent / "tests" / "real"

PROGRAMS = "PLANFORGE_REAL_AGENTS"
"""The directory in which the tests find the programs and the node they need."""
MISSING = "PLANFORGE_REAL_AGENTS_MISSING"
"""Why each of the others is not there, as JSON."""

PROJECTS = "PLANFORGE_TOUR"
"""The directory in which they find the projects of the tour."""

INSTALL_SECONDS = 600
VERSION_SECONDS = 60
"""A first start reads hundreds of megabytes from the disk."""


class Wanted(NamedTuple):
    """One program, the package that it is in, and what must be run once before it works."""

    program: str
    package: str
    finish: str = ""
    speaks: bool = True
    """Whether it says its version."""


WANTED = (
    Wanted("claude", "@anthropic-ai/claude-code", finish="install.cjs"),
    Wanted("codex", "@openai/codex"),
    Wanted("gemini", "@google/gemini-cli"),
    Wanted("claude-agent-acp", "@agentclientprotocol/claude-agent-acp"),
    Wanted("codex-acp", "@agentclientprotocol/codex-acp"),
    Wanted("opencode", "opencode-ai", finish="postinstall.mjs"),
    Wanted("pi", "@earendil-works/pi-coding-agent"),
    Wanted("pi-acp", "pi-acp", speaks=False),
)


class CannotInstall(Exception):
    """Why a program is not there."""


def main() -> None:
    """Install the programs, then run the tests; the exit code is that of the tests."""
    parser = argparse.ArgumentParser(description="Run the tests that need the real agent programs.")
    parser.add_argument("--only-install", action="store_true", help="install them and say where they are")
    parser.add_argument(
        "--allow-none", action="store_true", help="exit with 0 also if no program can be installed"
    )
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, after `--`")
    arguments = parser.parse_args()
    programs, missing = provided(cache())
    found = [wanted.program for wanted in WANTED if wanted.program not in missing]
    say(f"{', '.join(found) or 'none'} in {programs}")
    for name, why in missing.items():
        say(f"{name} is NOT RUN: {why}")
    if arguments.only_install:
        sys.exit(0)
    if not found:
        say("no program could be installed, so nothing was tested")
        sys.exit(0 if arguments.allow_none else 1)
    sys.exit(tested(programs, missing, arguments.pytest))


def say(words: str) -> None:
    """Tell whoever waits."""
    sys.stdout.write(f"agents: {words}\n")
    sys.stdout.flush()


def cache() -> Path:
    """Where the programs are kept from one run to the next."""
    if named := os.environ.get("PLANFORGE_AGENTS_CACHE"):
        return Path(named).absolute()
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "planforge" / "agents"


# Installing


def provided(place: Path) -> tuple[Path, dict[str, str]]:
    """The directory with the programs, and why some are not in it; what is there already is used again."""
    pinned = (PINNED / "package-lock.json").read_bytes() + (PINNED / "package.json").read_bytes()
    directory = place / hashlib.sha256(pinned).hexdigest()[:12]
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        missing = {name: why for name, why in installed(directory) if why}
    return directory / "bin", missing


def installed(directory: Path) -> Iterator[tuple[str, str]]:
    """Each program and why it cannot be run, if it cannot."""
    programs = directory / "bin"
    programs.mkdir(exist_ok=True)
    absent = [wanted for wanted in WANTED if not (programs / wanted.program).exists()]
    if absent and shutil.which("npm") is None:
        for wanted in WANTED:
            yield wanted.program, "there is no `npm`" if wanted in absent else ""
        return
    if absent:
        say(f"installing {len(absent)} programs into {directory}")
    together = _reason(lambda: fetch(WANTED, directory / "all")) if len(absent) == len(WANTED) else "again"
    for wanted in WANTED:
        if wanted not in absent:
            yield wanted.program, ""
            continue
        # One that cannot be had must not keep the others away, so then each is installed by itself.
        own = directory / ("all" if not together else wanted.program)
        yield wanted.program, _reason(lambda own=own, wanted=wanted: _one(wanted, own, programs))  # type: ignore[misc]


def _one(wanted: Wanted, own: Path, programs: Path) -> None:
    if own.name != "all":
        fetch((wanted,), own)
    modules = own / "node_modules"
    if wanted.finish:
        run([str(modules / ".bin" / "node"), wanted.finish], modules / wanted.package)
    node = programs / "node"
    if not node.exists():
        run([str(modules / ".bin" / "node"), "--version"], own)
        _link(node, modules / ".bin" / "node")
    program = modules / ".bin" / wanted.program
    if not program.exists():
        raise CannotInstall(f"`{wanted.package}` holds no program `{wanted.program}`")
    if wanted.speaks:
        run([str(program), "--version"], own, seconds=VERSION_SECONDS)
    _link(programs / wanted.program, program)


def fetch(programs: Sequence[Wanted], place: Path) -> None:
    """Install the packages of these programs; what they hold is held against the lock."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    package = json.loads((PINNED / "package.json").read_text())
    lock = json.loads((PINNED / "package-lock.json").read_text())
    kept = {wanted.package: package["dependencies"][wanted.package] for wanted in programs}
    package["dependencies"] = lock["packages"][""]["dependencies"] = kept
    (place / "package.json").write_text(json.dumps(package))
    (place / "package-lock.json").write_text(json.dumps(lock))
    # Not `npm ci`: it wants the packages of all platforms, and a registry may not have them all.
    words = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-progress", "--loglevel=error"]
    run(["npm", "install", *words], place, seconds=INSTALL_SECONDS)
    changed = _changed(lock["packages"], json.loads((place / "package-lock.json").read_text())["packages"])
    if changed:
        raise CannotInstall(f"the registry has other content than the lock names: {', '.join(changed[:3])}")


def _changed(pinned: Mapping[str, dict[str, object]], got: Mapping[str, dict[str, object]]) -> list[str]:
    """The packages that are not the ones of the lock."""
    return [
        name
        for name, package in got.items()
        if name and package.get("integrity") and package["integrity"] != pinned.get(name, {}).get("integrity")
    ]


def run(argv: Sequence[str], cwd: Path, *, seconds: float = VERSION_SECONDS) -> None:
    """Run a command, which must succeed."""
    path = f"{cwd / 'node_modules' / '.bin'}:{os.environ['PATH']}"
    name = Path(argv[0]).name
    try:
        done = subprocess.run(
            list(argv),
            cwd=cwd,
            env=os.environ | {"PATH": path, "CI": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CannotInstall(f"`{name}` did not end within {seconds:g} s") from error
    except OSError as error:
        raise CannotInstall(f"`{name}` cannot be started: {error.strerror}") from error
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if line.strip()] or [""]
        told = next((line for line in lines if "error code" in line), lines[0])
        raise CannotInstall(f"`{name} {argv[1]}` failed with {done.returncode}: {told.strip()[:200]}")


def _link(path: Path, target: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def _reason(action: Callable[[], None]) -> str:
    try:
        action()
    except CannotInstall as error:
        return str(error)
    return ""


# Testing


def tested(programs: Path, missing: Mapping[str, str], extra: Sequence[str]) -> int:
    """Run the tests with nothing but loopback; their exit code."""
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "2",
        "--dist",
        "worksteal",
        "--durations=8",
        *(extra or [str(TESTS)]),
    ]
    environment = os.environ | {PROGRAMS: str(programs), MISSING: json.dumps(missing)}
    environment |= {PROJECTS: projects()}  # fetched before the network is taken away
    began = time.monotonic()
    code = subprocess.run([*alone(), *argv], cwd=HERE.parent, env=environment, check=False).returncode
    say(f"took {time.monotonic() - began:.0f} s")
    return code


def projects() -> str:
    """Where the projects of the tour are, each with what its tests need."""
    argv = [sys.executable, str(HERE / "take_tour.py"), "--only-fetch"]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)  # it has said why
    return done.stdout.strip()


def alone() -> list[str]:
    """The words before a command that is to reach nothing but loopback."""
    unshare = shutil.which("unshare")
    if unshare is None:
        sys.exit("`unshare` is needed, so that the programs reach nothing but loopback")
    words = [unshare, "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    tried = subprocess.run([*words, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        sys.exit(f"the network cannot be taken away here: {tried.stderr.strip()}")
    return [*words, sys.executable, str(Path(__file__).resolve()), "--inside"]


def inside(argv: Sequence[str]) -> None:
    """Become the command, once loopback is up."""
    up = 1
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as any_socket:
        set_flags = 0x8914  # SIOCSIFFLAGS
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sh14x", b"lo", up))
    os.execvp(argv[0], list(argv))  # noqa: S606


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(sys.argv[2:])
    main()
