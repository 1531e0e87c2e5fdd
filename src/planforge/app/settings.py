"""
What a project says about itself in `planforge.toml`.

Every setting has a default and an unknown one is an error, so a slip of the pen
never passes for a setting.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from planforge.agents.profiles import Profile
from planforge.errors import InvalidInput
from planforge.kernel.events import Amounts
from planforge.workspace.checks import Check

FILE = "planforge.toml"

MOST = 1_000_000_000
"""More than this of anything in the settings is a slip of the pen."""


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
    handoffs: int = 3
    """How often the agent of one attempt may hand over to another when its context fills up."""
    lease_seconds: int = 300
    """How long a step keeps its files leased after Planforge was last heard of; renewed while it runs."""
    lease_patience: int = 3600
    """How many seconds a step waits for files that another one has."""


class Limits(_Section, frozen=True, kw_only=True):
    """What something may cost; what is not named has no limit."""

    tokens: int | None = None
    money: float | None = None
    """In the currency that the agents report."""
    minutes: float | None = None
    """Of agents at work."""
    attempts: int | None = None

    @property
    def amounts(self) -> Amounts:
        """The same in whole units."""
        return Amounts(
            tokens=self.tokens,
            money=None if self.money is None else round(self.money * 1_000_000),
            seconds=None if self.minutes is None else round(self.minutes * 60),
            attempts=self.attempts,
        )


class BudgetSettings(_Section, frozen=True, kw_only=True):
    """What work may cost. A run that would go over waits for a person."""

    run: Limits | None = None
    """One run."""
    plan: Limits | None = None
    """All runs of one plan."""
    step: Limits | None = None
    """One step of a plan."""
    roles: dict[str, Limits] = {}
    """One role in one run, such as `roles.auditor.tokens = 200000`."""
    reserve_tokens: int = 50_000
    """How many tokens are put aside for each answer of an agent; an answer of unknown cost costs this."""
    reserve_money: float = 0.0
    """The same for money; to be set where money is limited, for most agents do not say what they cost."""
    reserve_minutes: float = 5.0
    """The same for minutes."""


class Settings(_Section, frozen=True, kw_only=True):
    """All of `planforge.toml`."""

    agents: AgentSettings = AgentSettings()
    forge: ForgeSettings = ForgeSettings()
    run: RunSettings = RunSettings()
    budget: BudgetSettings = BudgetSettings()
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
    for name, value, least in _numbers(settings):
        if not value >= least:  # what is no number at all is not either
            raise InvalidInput(f"`{FILE}` is not right: `{name}` must be at least {least:g}, not {value}")
        if value > MOST:
            raise InvalidInput(f"`{FILE}` is not right: `{name}` must be at most {MOST}, not {value}")
    _require_money_put_aside(settings.budget)
    return settings


def _numbers(settings: Settings) -> Iterator[tuple[str, float, float]]:
    """Every number whose size matters, with its name and the least that makes sense."""
    forge, run, budget = settings.forge, settings.run, settings.budget
    yield "forge.cap", forge.cap, 1
    for name in ("attempts", "jobs", "max_files", "lease_seconds"):
        yield f"run.{name}", getattr(run, name), 1
    for name in ("handoffs", "lease_patience"):
        yield f"run.{name}", getattr(run, name), 0
    for name in ("tokens", "money", "minutes"):
        yield f"budget.reserve_{name}", getattr(budget, f"reserve_{name}"), 0
    for name, profile in settings.agents.profiles.items():
        yield f"agents.profiles.{name}.handoff_tokens", profile.handoff_tokens, 0
    for scope, limits in _limits(budget):
        for field in limits.__struct_fields__:
            if (value := getattr(limits, field)) is not None:
                yield f"budget.{scope}.{field}", value, 0


def _limits(budget: BudgetSettings) -> Iterator[tuple[str, Limits]]:
    named = {"run": budget.run, "plan": budget.plan, "step": budget.step}
    named |= {f"roles.{role}": limits for role, limits in budget.roles.items()}
    yield from ((name, limits) for name, limits in named.items() if limits is not None)


def _require_money_put_aside(budget: BudgetSettings) -> None:
    for name, limits in _limits(budget):
        if limits.money is not None and not budget.reserve_money:
            raise InvalidInput(
                f"`{FILE}` is not right: `budget.{name}.money` needs `budget.reserve_money`",
                "say what an answer costs whose agent does not say so, such as `reserve_money = 0.5`",
            )
