"""
Who agents are asked to be: roles, personas and skills, as data.

`roles.toml` has the roles; each names a persona (`personas/NAME.md`) and skills (`skills/NAME/SKILL.md`),
texts with a few named lists at their head. A project adds its own or puts others in their place, in a
directory of the same layout. Whatever a role names must be there: a persona or skill that is missing is an
error before anything is begun.

An agent gets a role block. In `reference` mode that is what the heads say, and where the whole texts are; in
`inline` mode it is the whole texts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from planforge.actions import Action, Advice, see
from planforge.agents import forms, tiers
from planforge.agents.roles.texts import Text, parse
from planforge.documents import toml
from planforge.errors import InvalidInput, did_you_mean
from planforge.kernel.effects import Access
from planforge.kernel.events import ContextSource

HERE = Path(__file__).parent
TABLE = "roles.toml"
OURS = "planforge:"
"""Stands before the names of texts that come with Planforge."""

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

Mode = Literal["reference", "inline"]
Summaries = Literal["none", "delta", "all"]
Read = Callable[[str], bytes | None]
"""What the project has at a path beneath its directory of roles, if anything."""


class Role(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to take part in the work."""

    name: str
    persona: str
    skills: tuple[str, ...] = ()
    access: Access
    """The most it may do to its worktree."""
    output: str = ""
    """The form of its answer; empty is any."""
    tier: str
    continues: str = ""
    """The role whose conversation it goes on with: its agent, tier and model are its own, too."""
    architecture: bool = False
    summaries: Summaries = "none"
    overlay: bool = True
    lessons: bool = False
    source: str = OURS + TABLE
    """Where it is described."""


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is told about its role, and the texts that it comes from."""

    text: str
    sources: tuple[ContextSource, ...]


def nothing(path: str) -> None:
    """The directory of a project that has no roles of its own."""
    del path


class Library:
    """The roles of a project: those that come with Planforge, and its own in their place."""

    def __init__(self, read: Read = nothing, directory: str = "") -> None:
        self._read = read
        self._directory = directory.rstrip("/")
        self.roles = self._roles()

    def role(self, name: str) -> Role:
        """The role of that name."""
        if name not in self.roles:
            known = ", ".join(f"`{each}`" for each in sorted(self.roles))
            raise InvalidInput(
                f"there is no role `{name}`{did_you_mean(name, self.roles)}",
                Advice("known are {}; see {}", known, Action("role list")),
            )
        return self.roles[name]

    def persona(self, role: Role) -> Text:
        """Who plays the role."""
        return self._text("personas/{}.md", role.persona, role, "responsibilities")

    def skills(self, role: Role) -> tuple[Text, ...]:
        """The skills of the role."""
        return tuple(self._text("skills/{}/SKILL.md", skill, role, "capabilities") for skill in role.skills)

    def require(self, names: Iterable[str]) -> None:
        """Raise an error unless these roles, their personas and their skills are valid."""
        for name in names:
            role = self.role(name)
            self.persona(role)
            self.skills(role)

    def block(self, name: str, mode: Mode = "reference") -> Block:
        """What an agent that plays the role is told about it."""
        role = self.role(name)
        persona, skills = self.persona(role), self.skills(role)
        text = _inline(persona, skills) if mode == "inline" else _reference(role, persona, skills)
        sources = [ContextSource(path=each.source, hash=each.hash) for each in (persona, *skills)]
        return Block(text=text, sources=tuple(sources))

    def _roles(self) -> dict[str, Role]:
        found: dict[str, dict[str, Any]] = {name: dict(given) for name, given in _packaged_table().items()}
        own = self._read(TABLE)
        path = f"{self._directory}/{TABLE}"
        for name, given in _table(own, path).items() if own is not None else ():
            found[name] = found.get(name, {}) | given | {"source": path}
        return {name: _role(name, _continuing(name, given, found)) for name, given in found.items()}

    def _text(self, place: str, name: str, role: Role, wanted: str) -> Text:
        path, who = place.format(name), f"role `{role.name}`"
        own = self._read(path)
        content = own if own is not None else _packaged(path)
        source = f"{self._directory}/{path}" if own is not None else OURS + path
        if content is None:
            places = f"`{self._directory}/{path}`" if self._directory else f"`{path}`"
            raise InvalidInput(f"{who} wants {places}, which is not there", see("role list"))
        text = parse(content, source, hashlib.sha256(content).hexdigest())
        if text.name != name:
            raise InvalidInput(f"`{source}` is not right: its name is `{text.name}`")
        if not getattr(text, wanted):
            raise InvalidInput(f"`{source}` names no {wanted}, and {who} wants it")
        return text


@cache
def _packaged(path: str) -> bytes | None:
    place = HERE / path
    return place.read_bytes() if place.is_file() else None


@cache
def _packaged_table() -> dict[str, dict[str, Any]]:
    return _table((HERE / TABLE).read_bytes(), OURS + TABLE)


def _table(content: bytes, path: str) -> dict[str, dict[str, Any]]:
    found = toml.parse(content, path)
    for name, given in found.items():
        if not isinstance(given, dict) or not NAME.fullmatch(name):
            raise InvalidInput(f"`{path}`: `{name}` is no table of a role")
    return found


def _continuing(name: str, given: dict[str, Any], found: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """A role with the tier of the one whose conversation it goes on with, unless it has its own."""
    other = given.get("continues")
    if not other:
        return given
    path = given.get("source", OURS + TABLE)
    if other not in found or found[other].get("continues"):
        raise InvalidInput(f"`{path}` is not right: role `{name}` cannot go on with `{other}`")
    return {key: found[other][key] for key in ("tier",) if key in found[other]} | given


def _role(name: str, given: dict[str, Any]) -> Role:
    path = given.get("source", OURS + TABLE)
    role = toml.convert({**given, "name": name}, Role, path, (name,))
    for each in (role.persona, *role.skills):
        if not NAME.fullmatch(each):
            raise InvalidInput(f"`{path}`: role `{name}` names `{each}`, which is no name")
    tiers.require(role.tier, f"role `{name}` in `{path}`")
    if role.output:
        forms.require(role.output, f"role `{name}` in `{path}`")
    return role


def _reference(role: Role, persona: Text, skills: tuple[Text, ...]) -> str:
    lines = [f"You are the {role.name}. {persona.description}", "", "You are to:"]
    lines += [f"- {each}" for each in persona.responsibilities]
    if persona.outputs:
        lines += ["", "You give back:", *(f"- {each}" for each in persona.outputs)]
    if skills:
        lines += ["", "You know how to:", *(f"- {each}" for skill in skills for each in skill.capabilities)]
    places = ", ".join(f"`{each.source}`" for each in (persona, *skills))
    lines += [
        "",
        f"The whole texts are {places}. What stands here is what counts: if it is not enough, say so in your",
        "answer, and do not look for them.",
    ]
    return "\n".join(lines)


def _inline(persona: Text, skills: tuple[Text, ...]) -> str:
    parts = [persona.whole, *(f"Skill: {skill.name}. {skill.whole}" for skill in skills)]
    return "\n\n".join(parts)
