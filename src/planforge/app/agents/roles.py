"""Roles as a person sees them: which there are, who plays each, with which model, and what it is told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from planforge.app import settings as settings_of
from planforge.app.agents.casting import Casting
from planforge.app.context import gather
from planforge.errors import NoAgent
from planforge.kernel.effects import Access

if TYPE_CHECKING:
    from planforge.agents.roles import Role
    from planforge.app.settings import Settings


class RoleRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list of roles."""

    role: str
    persona: str
    skills: tuple[str, ...]
    access: str
    output: str
    tier: str
    agent: str
    """Who plays it here; empty if nobody can."""
    model: str
    """The model that is asked for; empty if the agent takes its own."""
    because: str
    """Why it is that agent, or why there is none."""
    tools: bool
    """Whether that agent can open files in this role; one that cannot is shown them."""
    source: str


class RoleView(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one role."""

    row: RoleRow
    why: str
    """Why it gets the model that it gets."""
    continues: str
    """The role whose conversation it goes on with; empty if none."""
    architecture: bool
    summaries: str
    overlay: bool
    lessons: bool
    sources: tuple[tuple[str, str], ...]
    """The texts that it comes from, with their hashes."""
    block: str
    """What an agent that plays it is told about it."""


class Here(NamedTuple):
    """A directory with its settings; no repository is needed."""

    root: Path
    settings: Settings


def listed(root: Path) -> list[RoleRow]:
    """Every role at `root`; one whose persona or skills are missing fails here as it would in a run."""
    here = Here(root, settings_of.read(root))
    found = gather.library(here)
    found.require(found.roles)
    casting = Casting(here)
    return [_row(casting, role)[0] for role in found.roles.values()]


def show(root: Path, name: str) -> RoleView:
    """One role."""
    here = Here(root, settings_of.read(root))
    found = gather.library(here)
    role = found.role(name)
    row, why = _row(Casting(here), role)
    block = found.block(name, here.settings.agents.persona_mode)
    return RoleView(
        row=row,
        why=why,
        continues=role.continues,
        architecture=role.architecture,
        summaries=role.summaries,
        overlay=role.overlay,
        lessons=role.lessons,
        sources=tuple((source.path, source.hash) for source in block.sources),
        block=block.text,
    )


def _row(casting: Casting, role: Role) -> tuple[RoleRow, str]:
    """The role with who is asked to play it, as a run chooses; and why it gets its model."""
    agent, model, why, tools = "", "", "there is no agent", False
    try:
        chosen = casting.of(role.name)
    except NoAgent as error:
        because = error.message
    else:
        agent, model, why = chosen.name, chosen.model or chosen.shown, chosen.why
        because = casting.why(role.name)
        tools = chosen.profile.has_tools(reading=role.access is Access.READ)
    row = RoleRow(
        role=role.name,
        persona=role.persona,
        skills=role.skills,
        access=role.access.value,
        output=role.output,
        tier=role.tier,
        agent=agent,
        model=model,
        because=because,
        tools=tools,
        source=role.source,
    )
    return row, why
