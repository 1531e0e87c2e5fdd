"""
A home of its own for every conversation with an agent.

Programs keep settings, hooks, tools, memories and conversations in a person's home. An agent of ours finds a
home with nothing in it but what its profile says, so that it behaves the same for everybody and two at once
do not meet. The login alone is brought along, and brought back if the agent has renewed it.

An agent may change its home as it likes, so nothing in there is trusted afterwards: no link is followed, what
is remembered about it lies beside it, and only a login that still looks like the person's is taken back.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from planforge.agents import logins, private
from planforge.agents.logins import Brought
from planforge.agents.profiles import Profile, Way, fill
from planforge.errors import AgentUnavailable, InvalidInput
from planforge.kernel import directories
from planforge.kernel.effects import Access

HOMES = "homes"
"""Where they lie, beneath the state of a project."""
TEMPORARY = "tmp"
KEY = ".key"
"""The file in which an agent finds its key, if it takes that from a file."""
ESCAPED = (".json", ".toml")
"""Files in which a text stands between quotation marks."""
UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
SHORT = 32
"""How long a name in the path of a home may be: the path of a socket has to fit into 107 bytes."""


class Furnished(msgspec.Struct, frozen=True, kw_only=True):
    """A private home, and how an agent is started in it."""

    home: Path
    argv: tuple[str, ...]
    env: dict[str, str]
    """Everything that it finds in its environment, besides what every program gets."""
    profile: Profile
    """As it holds here: with the modes that go with our sandbox, and no blanks in what a session is told."""
    login: tuple[Brought, ...] = ()


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """A home that is still there."""

    run: str
    name: str
    path: Path
    bytes: int
    changed: float
    """When it was last changed, in seconds since 1970."""


def place(state: Path, run: str, conversation: str, agent: str) -> Path:
    """Where the home of an agent for one conversation, or one worktree, of a run lies."""
    return state / HOMES / _short(run) / _short(conversation) / _short(agent)


def _short(name: str) -> str:
    safe = UNSAFE.sub("-", name).strip(".") or "-"
    if safe == name and len(name) <= SHORT:
        return name
    return f"{safe[: SHORT - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def prepare(
    directory: Path,
    profile: Profile,
    *,
    access: Access,
    root: Path,
    cwd: Path,
    model: str = "",
    endpoint: str = "",
    confined: bool = False,
    person: Path | None = None,
    tools: Sequence[Path] = (),
) -> Furnished:
    """
    Furnish `directory` as the home of an agent, and say how it is started there.

    Pointed at an `endpoint`, it gets no login: nobody's key goes to a server that it is not for. `confined`
    is whether our own sandbox keeps it from writing elsewhere. `tools` are directories of the person's home
    that it finds at the same place in its own, such as compilers; `person` is that home.
    """
    person = person or Path.home()
    program = shutil.which(profile.program)
    if program is None or not profile.installed:
        where = "installed" if profile.missing == profile.needs else "on PATH"
        raise AgentUnavailable(f"`{profile.missing}` is not {where}", profile.install or None)
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    directory = directory.resolve()
    directory.chmod(0o700)
    logins.take_back(directory)
    brought: tuple[Brought, ...] = ()
    if endpoint:
        logins.withdraw(directory, profile, person)
    else:
        brought = logins.bring(directory, profile, person)
    ways = [profile.way(reading=access is Access.READ)]
    ways += [profile.confined] if confined else []
    ways += [profile.logged_in] if brought else []
    ways += [profile.endpoint] if endpoint else []
    ways += [_with_model(profile.model, model)] if model else []
    values = {
        "home": str(directory),
        "cwd": str(cwd),
        "root": str(root),
        "model": model,
        "endpoint": endpoint.rstrip("/"),
    }
    _furnish(directory, profile, ways, values)
    _link(directory, person, tools)
    return Furnished(
        home=directory,
        argv=(
            program,
            *(fill(word, values) for word in profile.command[1:]),
            *(fill(word, values) for way in ways for word in way.args),
        ),
        env=_environment(directory, profile, ways, values, alone=bool(endpoint)),
        profile=_here(profile, values, confined=confined),
        login=brought,
    )


def leave(furnished: Furnished) -> tuple[str, ...]:
    """Bring a renewed login back, when the agent has ended; what a person should know about it."""
    if furnished.profile.login_file:
        private.remove(furnished.home, KEY)
    return logins.take_back(furnished.home)


def remove(directory: Path) -> tuple[str, ...]:
    """Remove a home for good, and bring a renewed login back first; what a person should know about it."""
    notes = logins.take_back(directory)
    try:
        directories.remove(directory)
    except OSError:
        shutil.rmtree(directory, ignore_errors=True)  # as much of it as goes
    logins.forget(directory)
    for parent in directory.parents[:2]:  # of the conversation and of the run, once they are empty
        with suppress(OSError):
            parent.rmdir()
    return notes


def left(state: Path) -> Iterator[Left]:
    """All homes that are still there, for a cleanup."""
    homes = state / HOMES
    for path in sorted(homes.glob("*/*/*")):
        if path.is_dir() and not path.is_symlink():
            run, *names = path.relative_to(homes).parts
            yield Left(
                run=run, name="/".join(names), path=path, bytes=_size(path), changed=path.stat().st_mtime
            )


def _size(directory: Path) -> int:
    total = 0
    for place_, _, names in directories.walk(directory):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(place_, name)).st_blocks * 512  # noqa: PTH118
    return total


# What is in it


def _with_model(way: Way, model: str) -> Way:
    # It stands between quotation marks in some settings, and in arguments.
    if not model.isprintable() or any(letter in "\"\\'" for letter in model) or model.startswith("-"):
        raise InvalidInput(f"`{model!r}` is no name of a model")
    return way


def _furnish(home: Path, profile: Profile, ways: Sequence[Way], values: Mapping[str, str]) -> None:
    """Make the directories and write the files."""
    for name in (TEMPORARY, *map(str.lower, profile.directories)):
        os.close(private.directory(home, (name,)))
    files = dict(profile.files)
    for way in ways:
        files |= way.files
    for path, text in files.items():
        told = values
        if path.endswith(ESCAPED):
            told = {name: _escaped(value) for name, value in values.items()}
        private.write(home, path, fill(text, told).encode(), executable=text.startswith("#!"))


def _escaped(text: str) -> str:
    """A text as it stands between quotation marks in JSON and in TOML."""
    return json.dumps(text, ensure_ascii=False)[1:-1].replace("\x7f", "\\u007f")


def _environment(
    home: Path, profile: Profile, ways: Sequence[Way], values: Mapping[str, str], *, alone: bool
) -> dict[str, str]:
    keys = [] if alone else [name for name in profile.login_env if os.environ.get(name, "").strip()]
    seen = () if alone else (*profile.inherit, *([] if profile.login_file else keys))
    env = {name: os.environ[name] for name in seen if os.environ.get(name)}
    if profile.login_file:
        env |= _handed(home, profile.login_file, os.environ[keys[0]] if keys else "")
    env |= {"HOME": str(home), "TMPDIR": str(home / TEMPORARY)}
    env |= {name: str(home / name.lower()) for name in profile.directories}
    parts: tuple[Profile | Way, ...] = (profile, *ways)
    for part in parts:
        env |= {name: fill(value, values) for name, value in part.env.items()}
    return env


def _handed(home: Path, variable: str, key: str) -> dict[str, str]:
    """Put a key where the agent takes it from; what an agent has left there that never took it is removed."""
    private.remove(home, KEY)
    if not key:
        return {}
    private.write(home, KEY, key.encode())
    return {variable: str(home / KEY)}


def _here(profile: Profile, values: Mapping[str, str], *, confined: bool) -> Profile:
    """The profile with the session modes and data that apply in this home."""

    def of(way: Way) -> Way:
        mode = (profile.confined.mode if confined else "") or way.mode
        meta = way.meta | (profile.confined.meta if confined else {})
        return msgspec.structs.replace(way, mode=fill(mode, values), meta=_filled(meta, values))

    return msgspec.structs.replace(profile, read=of(profile.read), write=of(profile.write))


def _filled(value: Any, values: Mapping[str, str]) -> Any:
    match value:
        case str():
            return fill(value, values)
        case dict():
            return {key: _filled(part, values) for key, part in value.items()}
        case list() | tuple():
            return [_filled(part, values) for part in value]
    return value


def _link(home: Path, person: Path, tools: Sequence[Path]) -> None:
    """Let the agent find tools where it would in the person's home."""
    for tool in tools:
        if not tool.exists() or not tool.is_relative_to(person) or tool == person:
            continue
        *parents, name = tool.relative_to(person).parts
        handle = private.directory(home, parents)
        try:
            with suppress(FileExistsError):
                os.symlink(tool, name, dir_fd=handle)
        finally:
            os.close(handle)
