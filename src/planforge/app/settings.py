"""
What a project says about itself in `planforge.toml`.

Every setting has a default and an unknown one is an error, so a slip of the pen
never passes for a setting.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from planforge.agents.profiles import Profile
from planforge.errors import InvalidInput
from planforge.workspace.checks import Check

FILE = "planforge.toml"


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class AgentSettings(_Section, frozen=True, kw_only=True):
    """Which agent does what."""

    default: str = ""
    """The agent for every role; empty takes the first one that is installed."""
    roles: dict[str, str] = {}
    """Another agent for a role, such as `auditor = "codex"`."""
    profiles: dict[str, Profile] = {}
    """Agents of your own, or a known one started differently."""
    seconds: float = 1800.0
    """How long one answer may take."""

    def of(self, role: str) -> str:
        """The agent that plays `role`."""
        return self.roles.get(role, self.default)


class ForgeSettings(_Section, frozen=True, kw_only=True):
    """How plans are made."""

    cap: int = 5
    """How many rounds of audit a plan gets."""
    plans: str = "docs/plans"
    """Where plan files are written."""


class RunSettings(_Section, frozen=True, kw_only=True):
    """How plans are carried out."""

    attempts: int = 3
    """How often a step may be tried."""
    jobs: int = 2
    """How many steps may be under way at once."""
    max_files: int = 5
    """How many files one phase may span."""


class Settings(_Section, frozen=True, kw_only=True):
    """All of `planforge.toml`."""

    agents: AgentSettings = AgentSettings()
    forge: ForgeSettings = ForgeSettings()
    run: RunSettings = RunSettings()
    check: Check | None = None
    """How a tree is checked; without it no evidence can pass."""


def read(root: Path) -> Settings:
    """The settings of the project at `root`."""
    path = root / FILE
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        raise InvalidInput(f"cannot read `{path}`: {error.strerror}") from error
    try:
        settings = msgspec.toml.decode(content, type=Settings)
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"`{FILE}` is not right: {error}") from error
    _require_at_least_one(settings.forge.cap, "forge.cap")
    _require_at_least_one(settings.run.attempts, "run.attempts")
    _require_at_least_one(settings.run.jobs, "run.jobs")
    _require_at_least_one(settings.run.max_files, "run.max_files")
    return settings


def _require_at_least_one(value: int, name: str) -> None:
    if value < 1:
        raise InvalidInput(f"`{FILE}` is not right: `{name}` must be at least 1, not {value}")
