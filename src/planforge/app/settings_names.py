"""
Names that the settings use: every agent, tier, role and stage must be one that there is.

Without this a slip such as `agents.models.draftr` would be a setting that nothing ever reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from planforge.actions import Action, Advice, Hint
from planforge.agents import roster
from planforge.agents.tiers import TIERS
from planforge.app.places import SETTINGS
from planforge.documents import toml
from planforge.errors import InvalidInput, nearest

if TYPE_CHECKING:
    from planforge.app.settings import AgentSettings, Settings

WORKTREES = ("forge", "chat")
"""Stages that are in no pipeline: the worktrees of `workflows/forge.py` and `workflows/chat.py`."""


def agents_named(agents: AgentSettings) -> Iterator[tuple[toml.Key, str]]:
    """Every place where the settings name an agent."""
    if agents.default:
        yield ("agents", "default"), agents.default
    yield from ((("agents", "roles", role), name) for role, name in agents.roles.items())
    yield from ((("agents", "tiers", name), name) for name in agents.tiers)
    for own, profile in agents.profiles.items():
        yield from ((("agents", "profiles", own, "either"), name) for name in profile.either)
    yield from ((("agents", "limits", "switch_to"), name) for name in agents.limits.switch_to)


def require_agents(agents: AgentSettings) -> None:
    """Make sure that all agents and tiers exist."""
    known = roster.every(agents.profiles)
    for key, name in agents_named(agents):
        _require(key, name, known, "agent", Action("agent list"))
    for own, profile in agents.profiles.items():
        for tier in profile.tiers:
            _require(("agents", "profiles", own, "tiers", tier), tier, TIERS, "tier")
    for name, tiers in agents.tiers.items():
        for tier in tiers:
            _require(("agents", "tiers", name, tier), tier, TIERS, "tier")


def require_roles(root: Path, settings: Settings) -> None:
    """Make sure that all roles and stages exist, in the project at `root`."""
    from planforge.app.role_library import library_at
    from planforge.rules.pipelines.builtin import BUILTIN

    roles = library_at(root, settings.agents.roles_directory).roles
    for role in settings.agents.roles:
        _require(("agents", "roles", role), role, roles, "role", Action("role list"))
    for role in settings.budget.roles:
        _require(("budget", "roles", role), role, roles, "role", Action("role list"))
    pipelines = {**BUILTIN, **settings.pipelines}.values()
    stages = {stage.name: None for pipeline in pipelines for stage in pipeline.stages}
    both = {**roles, **stages, **dict.fromkeys(WORKTREES)}
    for name in settings.agents.models:
        _require(("agents", "models", name), name, both, "role or stage", Action("role list"))


def _require(
    key: toml.Key, name: str, known: Collection[str], what: str, list_: Action | None = None
) -> None:
    if name in known:
        return
    is_key = key[-1] == name
    problem = f"`{toml.dotted(key)}` " + (
        f"names no {what}" if is_key else f"is `{name}`, which is no {what}"
    )
    if near := nearest(name, known):
        raise wrong(f"{problem}; did you mean `{toml.dotted((*key[:-1], near)) if is_key else near}`?")
    listed = f"known are {', '.join(f'`{each}`' for each in known)}"
    raise wrong(problem, Advice("{}; see {}", listed, list_) if list_ else listed)


def wrong(problem: str, hint: Hint | None = None) -> InvalidInput:
    """What is said about a setting that makes no sense."""
    return InvalidInput(f"`{SETTINGS}`: {problem}", hint)
