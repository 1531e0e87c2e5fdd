"""
How each agent program is started, as data.

A profile says everything that is particular about one agent: its command, what it speaks, its environment
and configuration, how it is kept from writing, how a model is chosen, where its login is. The well-known ones
are in `known`; a person adds others in `planforge.toml`, or says there what is different about a known one.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, Literal

import msgspec

from planforge.kernel.tokens import THRESHOLD

REHEARSAL = "rehearsal"
MODELS = "planforge.agents.api"
"""Our own program that asks models; `--tools none` and the mode `text` give them no tools."""

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
"""What an agent may be called: it is a part of paths, of settings and of what people type."""

BLANK = re.compile(r"\$(\$|\{(\w*)\})")
BLANKS = ("home", "cwd", "root", "model", "endpoint")
"""What `${…}` may stand for in the texts of a profile; `$$` is a `$`."""


class Way(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One way to start an agent differently: for reading, for writing, with a model, at an endpoint.

    `${home}`, `${cwd}`, `${root}`, `${model}` and `${endpoint}` may be used in every text.
    """

    args: tuple[str, ...] = ()
    """Arguments after those of the command."""
    env: dict[str, str] = {}
    files: dict[str, str] = {}
    """Files in the private home, by their path in it."""
    mode: str = ""
    """The session mode, for an agent that speaks the Agent Client Protocol."""
    option: str = ""
    """The session option that is set to `${model}`, for such an agent."""
    meta: dict[str, Any] = {}
    """What goes into `_meta` of a new session, for such an agent."""
    tools: bool = True
    """Whether it has tools then. One that reads without any is shown the files that its task is about."""


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How to start one agent."""

    command: tuple[str, ...] = ()
    """The program and its arguments; empty for a known agent of which only something else is different."""
    either: tuple[str, ...] = ()
    """Instead of a command: agents of which the first one that is installed is meant."""
    needs: str = ""
    """A package of Python that must be there as well."""
    starts: tuple[str, ...] = ()
    """Programs that it starts in turn, so they must be on PATH as well."""
    by_name: bool = False
    """It is never taken unless somebody names it."""
    speaks: Literal["acp", "claude", "codex"] = "acp"
    """What it speaks on its streams: the Agent Client Protocol, or its own JSON lines."""
    vendor: str = ""
    """Whose models it asks, for a setting that wants an auditor of another vendor; empty if nobody says."""
    directories: dict[str, str] = {}
    """Variables that name a directory of the agent's own, and which directory of a home that is without them.
    In a private home each one names a directory that is called like the variable, in small letters."""
    env: dict[str, str] = {}
    files: dict[str, str] = {}
    """Configuration files to write into its private home, by their path in it."""
    login: tuple[str, ...] = ()
    """Files of a person's home that hold the login; they are brought into the private home."""
    logged_in: Way = Way()
    """What is different where such a file was brought."""
    login_env: tuple[str, ...] = ()
    """Variables of which one is enough for a login; the agent gets to see them."""
    login_file: str = ""
    """A variable that leads to a file with what the first of these holds, for an agent that reads and removes
    it: then it sees none of them, and neither does whatever it starts."""
    login_command: str = ""
    """How a person logs in."""
    version: tuple[str, ...] = ("--version",)
    """Arguments that make the program say its version; none if it has no such thing."""
    read: Way = Way()
    """How it is kept from changing anything; our sandbox and a look at the tree come on top."""
    write: Way = Way()
    confined: Way = Way()
    """What is different where our own sandbox confines it, on top of `read` or `write`."""
    model: Way = Way()
    """How a model is chosen."""
    tiers: dict[str, str] = {}
    """Which model is `heavy`, `balanced` and `light`."""
    endpoint: Way = Way()
    """How it is pointed at another server, such as the scripted one."""
    resume: Literal["none", "load", "resume"] = "none"
    """How a conversation is taken up in a new process."""
    resume_after: float = 0.0
    """How many seconds must have passed since the conversation began, or its history is lost."""
    usage: Literal["turn", "thread", "last_step", "quota", "none"] = "none"
    """What its usage figures mean: this turn, the whole conversation so far, its last step, `_meta.quota`."""
    inherit: tuple[str, ...] = ()
    """Names of variables of our own environment that the agent gets to see, such as a proxy."""
    reads: tuple[str, ...] = ()
    """Paths that it needs to see besides programs and the repository; `~` and `${root}` may be used."""
    writes: tuple[str, ...] = ()
    """Paths besides its worktree and its private home that it may change."""
    handoff_tokens: int = THRESHOLD
    """At how many tokens in its context the agent hands over to another; 0 if it looks after that itself."""
    install: str = ""
    """How to get the program, for the message that says it is missing."""

    @property
    def program(self) -> str:
        """What must be on PATH."""
        return self.command[0] if self.command else ""

    @property
    def installed(self) -> bool:
        """Whether it could be started here."""
        return bool(self.command) and not self.missing

    @property
    def missing(self) -> str:
        """The first that it needs and that is not here: a package, or a program."""
        if self.needs and find_spec(self.needs) is None:
            return self.needs
        programs = (self.program, *self.starts)
        return next((program for program in programs if shutil.which(program) is None), "")

    def way(self, *, reading: bool) -> Way:
        """How it is started to read or to write."""
        return self.read if reading else self.write

    def has_tools(self, *, reading: bool) -> bool:
        """Whether it can open files when it is started to read or to write."""
        way = self.way(reading=reading)
        words = [part for word in (*self.command, *way.args) for part in word.split("=", 1)]
        if MODELS in words:
            said = dict(pairwise(words))
            return way.tools and said.get("--tools") != "none" and (way.mode or said.get("--mode")) != "text"
        return way.tools


# Texts with blanks


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with every `${…}` replaced by what it stands for."""
    return BLANK.sub(lambda match: "$" if match[1] == "$" else values[match[2]], text)


def problems(name: str, profile: Profile) -> Iterator[str]:
    """What is wrong with a profile that a person wrote, before anything is started."""
    if not NAME.fullmatch(name):
        yield f"`{name}` is no name for an agent: small letters, digits, `-` and `_`"
    if "" in profile.command[:1]:
        yield "the program in `command` has no name"
    known = ", ".join(f"`${{{blank}}}`" for blank in BLANKS)
    for match in (match for text in _texts(profile) for match in BLANK.finditer(text)):
        if match[1] != "$" and match[2] not in BLANKS:
            yield f"`{match[0]}` stands for nothing; known are {known}, and `$$` for a `$`"
    inside = {
        "file": (*profile.files, *(path for way in _ways(profile) for path in way.files)),
        "login": profile.login,
        "directory": tuple(filter(None, profile.directories.values())),
    }
    for what, paths in inside.items():
        yield from (f"the {what} `{path}` is no path in a home" for path in paths if not contained(path))


def contained(path: str) -> bool:
    """Whether a relative path stays where it begins."""
    parts = path.split("/")
    return bool(path) and "\0" not in path and not any(part in ("", ".", "..") for part in parts)


def _ways(profile: Profile) -> tuple[Way, ...]:
    return (profile.read, profile.write, profile.confined, profile.model, profile.endpoint, profile.logged_in)


def _texts(profile: Profile) -> Iterator[str]:
    yield from profile.command
    parts: tuple[Profile | Way, ...] = (profile, *_ways(profile))
    for part in parts:
        yield from part.env.values()
        yield from part.files.values()
    for way in _ways(profile):
        yield from (*way.args, way.mode, way.option)
        yield from strings(way.meta)


def strings(value: object) -> Iterator[str]:
    """Every text in a structure."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from strings(part)
    elif isinstance(value, Iterable):
        for part in value:
            yield from strings(part)
