"""
Which agent plays a role, and with which model: the settings, the tiers, and what is installed.

Whoever wants to know asks here, so that what `planforge role list` says is what a run does. A role that goes
on with the conversation of another one (`continues`) is played by the same agent with the same model, unless
the settings say something about the role itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from planforge.actions import Action, Advice
from planforge.agents import roster, tiers
from planforge.agents.profiles import Profile
from planforge.app.agents.audience import NOBODY, Audience
from planforge.app.context import gather
from planforge.errors import InvalidInput
from planforge.kernel.effects import Access, RunAgent

if TYPE_CHECKING:
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
    why: str = ""
    """Why it gets this model."""
    shown: str = ""
    """The model by name where it is known though none is asked for."""


class _Named(NamedTuple):
    """An agent, and why it is the one."""

    name: str
    why: str


class Casting:
    """Chooses agents and models."""

    def __init__(self, place: gather.Place, audience: Audience = NOBODY, cast: Cast | None = None) -> None:
        self._place = place
        self._audience = audience
        self._cast = cast
        self._warned: set[str] = set()

    @property
    def _settings(self) -> AgentSettings:
        # Not before an agent is asked: a demo makes the settings that it is run under.
        return self._place.settings.agents

    @property
    def endpoint(self) -> str:
        """The server that agents are pointed at; empty is their own service."""
        return self._cast.endpoint if self._cast else ""

    def agent_of(self, role: str) -> str:
        """The agent that plays a role."""
        return self._agent(role).name

    def why(self, role: str) -> str:
        """Why it is that agent."""
        return self._agent(role).why

    def of(self, role: str) -> Chosen:
        """Who is asked to play a role, with the model of its own tier."""
        return self._chosen(self.agent_of(role), role)

    def chosen(self, name: str, effect: RunAgent) -> Chosen:
        """An agent with its profile, and the model that it is asked for."""
        found = self._chosen(name, effect.role, effect.tier, effect.worktree)
        if effect.model and not self.endpoint:
            return found._replace(model=effect.model, why="the stage names it")
        return found

    def require(self, wanted: Mapping[str, Access]) -> None:
        """Make sure that somebody can play every role, before anything is begun."""
        for role, access in wanted.items():
            name, profile = self.of(role)[:2]
            if access is Access.WRITE and not profile.has_tools(reading=False):
                raise InvalidInput(
                    f"agent `{name}` has no tools and cannot change files, as a {role} has to",
                    Advice(
                        "name another one in `planforge.toml`, under `[agents.roles]`: `{} = ...`; see {}",
                        role,
                        Action("agent list"),
                    ),
                )

    def can_read(self, role: str) -> bool:
        """Whether the agent of a role can open files when it only reads."""
        return self.of(role).profile.has_tools(reading=True)

    def goes_on(self, role: str) -> bool:
        """Whether the role's agent remembers what it was told as the role whose conversation it continues."""
        other = self._continued(role)
        if not other:
            return False
        mine, before = self.of(role), self.of(other)
        same = (mine.name, mine.model) == (before.name, before.model)
        return same and mine.profile.resume != "none"

    def _continued(self, role: str) -> str:
        found = gather.library(self._place).roles.get(role)
        return found.continues if found else ""

    # Agents

    def _agent(self, role: str) -> _Named:
        own = self._settings.profiles
        if self._cast is not None:
            return _Named(roster.choose(self._cast.agent, own)[0], "it plays every role here")
        if role in self._settings.roles:
            return _Named(roster.choose(self._settings.roles[role], own)[0], f"`agents.roles.{role}`")
        if other := self._continued(role):
            return self._agent(other)._replace(why=f"as the {other}, whose conversation it goes on with")
        name = roster.choose(self._settings.default, own)[0]
        if role in JUDGED and self._settings.cross_vendor_auditor:
            return self._of_another_vendor(name, role)
        why = "`agents.default`" if self._settings.default else "the first that is installed"
        return _Named(name, why)

    def _of_another_vendor(self, name: str, role: str) -> _Named:
        own, judged = self._settings.profiles, JUDGED[role]
        other = self.agent_of(judged)
        vendor = roster.vendor_of(other, own)
        why = f"`agents.cross_vendor_auditor`: of another vendor than `{other}`, the {judged}"
        if vendor and roster.vendor_of(name, own) not in ("", vendor):
            return _Named(name, why)
        found = roster.others(vendor, own) if vendor else ()
        if found:
            return _Named(found[0], why)
        problem = (
            "`agents.cross_vendor_auditor` is set, but no agent of another vendor than that of the "
            f"{judged} is installed: the {role} is `{name}` too"
        )
        self._warn(problem)
        return _Named(name, problem)

    def _warn(self, what: str) -> None:
        if what not in self._warned:
            self._warned.add(what)
            self._audience.told(what)

    # Models

    def _chosen(self, name: str, role: str, tier: str = "", stage: str = "") -> Chosen:
        found, profile = roster.choose(name, self._settings.profiles)
        other = self._continued(role)
        choice = tiers.resolve(
            role,
            tier or gather.tier_of(self._place, role),
            profile,
            self._settings.overrides(*roster.names_of(found, self._settings.profiles)),
            os.environ,
            stage=stage,
            # A model is known to the agent that it was named for.
            like=other if other and found == self.agent_of(other) else "",
        )
        # A scripted server has no models to choose from; some agents behave otherwise with names they know.
        model = "" if self.endpoint else choice.model
        return Chosen(found, profile, choice.tier, model, choice.words, choice.why, choice.shown)
