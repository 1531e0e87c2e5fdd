"""Which agent plays a role, and with which model: the settings, the tiers, and what is installed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from planforge.agents import profiles, tiers
from planforge.agents.profiles import Profile
from planforge.app import contexts
from planforge.app.audience import Audience
from planforge.kernel.effects import RunAgent

if TYPE_CHECKING:
    from planforge.app.project import Project
    from planforge.app.settings import AgentSettings

JUDGED = {"auditor": "drafter", "reviewer": "developer"}
"""Whose work each of these judges."""


class Cast(msgspec.Struct, frozen=True, kw_only=True):
    """Who plays all roles instead of whom the settings say, as in a demo."""

    agent: str
    endpoint: str = ""
    """The server that it is pointed at; empty is its own service."""


class Chosen(NamedTuple):
    """The agent that is asked, and what of it."""

    name: str
    profile: Profile
    tier: str
    model: str
    words: str
    """Tier and model as they are announced."""


class Casting:
    """Chooses agents and models."""

    def __init__(self, project: Project, audience: Audience, cast: Cast | None = None) -> None:
        self._project = project
        self._audience = audience
        self._cast = cast
        self._warned: set[str] = set()

    @property
    def _settings(self) -> AgentSettings:
        # Not before an agent is asked: a demo makes the settings that it is run under.
        return self._project.settings.agents

    @property
    def endpoint(self) -> str:
        """The server that agents are pointed at; empty is their own service."""
        return self._cast.endpoint if self._cast else ""

    def agent_of(self, role: str) -> str:
        """The agent that plays a role."""
        own = self._settings.profiles
        if self._cast is not None:
            return profiles.choose(self._cast.agent, own)[0]
        name = profiles.choose(self._settings.of(role), own)[0]
        if role in JUDGED and role not in self._settings.roles and self._settings.cross_vendor_auditor:
            return self._of_another_vendor(name, role)
        return name

    def _of_another_vendor(self, name: str, role: str) -> str:
        own, judged = self._settings.profiles, JUDGED[role]
        vendor = profiles.vendor_of(profiles.choose(self._settings.of(judged), own)[0], own)
        if vendor and profiles.vendor_of(name, own) not in ("", vendor):
            return name
        found = profiles.others(vendor, own) if vendor else ()
        if not found:
            self._warn(
                "`agents.cross_vendor_auditor` is set, but no agent of another vendor than that of the "
                f"{judged} is installed: the {role} is `{name}` too"
            )
            return name
        return found[0]

    def _warn(self, what: str) -> None:
        if what not in self._warned:
            self._warned.add(what)
            self._audience.told(what)

    def chosen(self, name: str, effect: RunAgent) -> Chosen:
        """An agent with its profile, and the model that it is asked for."""
        found, profile = profiles.choose(name, self._settings.profiles)
        choice = tiers.resolve(
            effect.role,
            effect.tier or self._tier(effect.role),
            profile,
            self._settings.overrides(name, found),
            os.environ,
            stage=effect.worktree,
        )
        if effect.model:
            choice = msgspec.structs.replace(choice, model=effect.model, why="the stage names it")
        # A scripted server has no models to choose from; some agents behave otherwise with names they know.
        return Chosen(found, profile, choice.tier, "" if self.endpoint else choice.model, choice.words)

    def _tier(self, role: str) -> str:
        return contexts.tier_of(self._project, role)
