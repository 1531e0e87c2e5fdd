"""
What a project says about itself in `planforge.toml`.

Every setting has a default and an unknown one is an error, so a slip of the pen
never passes for a setting.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from planforge.agents.prices import Price
from planforge.agents.profiles import Profile, complete, problems
from planforge.agents.tiers import TIERS, Overrides
from planforge.errors import InvalidInput
from planforge.kernel.events import Amounts
from planforge.kernel.paths import exact, normalise_all
from planforge.rules import small
from planforge.rules.pipelines import Pipeline
from planforge.rules.protection import Protection, SizeSettings
from planforge.rules.protection.patterns import Patterns
from planforge.rules.scanning.issues import Waiver, check_waiver
from planforge.workspace.check import Check
from planforge.workspace.preparation import Preparation
from planforge.workspace.sandbox import Sandboxing
from planforge.workspace.secrets import SecretSettings

FILE = "planforge.toml"

MOST = 1_000_000_000
"""More than this of anything in the settings is a slip of the pen."""


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class LimitSettings(_Section, frozen=True, kw_only=True):
    """What becomes of a run whose agent has reached its usage limit."""

    policy: Literal["park", "switch"] = "park"
    """`park` waits for the agent; `switch` goes to another one meanwhile."""
    switch_to: tuple[str, ...] = ()
    """To which, the first that is installed and not limited itself; empty is any of another vendor."""
    wait_minutes: float = 10.0
    """If the limit ends sooner than that, the command itself waits for it instead of parking the run."""
    retry_minutes: float = 30.0
    """After how many minutes an agent is tried again that did not say until when it is limited."""


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
    idle_seconds: float = 600.0
    """How long an agent may give no sign of life; 0 for as long as it likes."""
    cross_vendor_auditor: bool = False
    """Whether whoever audits and reviews is of another vendor than whoever drafts and develops."""
    permissions: Literal["deny", "ask"] = "deny"
    """What becomes of a request that the role does not allow: denied, or put to you if you are there."""
    limits: LimitSettings = LimitSettings()
    prices: dict[str, Price] = {}
    """What models cost, where the table that comes with Planforge is wrong or has them not."""
    roles_directory: str = "planforge/roles"
    """Where this project keeps roles, personas and skills of its own, in the repository."""
    persona_mode: Literal["reference", "inline"] = "reference"
    """Whether agents are told in short who they are, or get the whole text of persona and skills."""
    tiers: dict[str, dict[str, str]] = {}
    """Another model for a tier of an agent, such as `claude.heavy = "opus"`."""
    models: dict[str, str] = {}
    """A model for a role or a stage, whatever its tier."""

    def overrides(self, *names: str) -> Overrides:
        """What is said here about the models of an agent, by whichever of its names."""
        tiers = {tier: model for name in names for tier, model in self.tiers.get(name, {}).items()}
        return Overrides(tiers=tiers, models=self.models)

    def of(self, role: str) -> str:
        """The agent that plays `role`."""
        return self.roles.get(role, self.default)


class ForgeSettings(_Section, frozen=True, kw_only=True):
    """How plans are made."""

    cap: int = 5
    """How many rounds of audit a plan gets."""
    plans: str = "docs/plans"
    """Where plan files are written."""
    constraints: str = ".context/project.md"
    """A file of the repository with what every plan has to keep to; empty for none."""
    auto_implement: bool = False
    """Whether a plan that was forged clean is approved in your name and carried out at once."""
    heartbeat_seconds: float = 45.0
    """After how many seconds there is a sign of life while an agent is at work; 0 for never."""
    progress_seconds: float = 3.0
    """How many seconds pass at least between two changes of what is shown of an agent at work."""


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
    escalate_after: int = 2
    """After how many attempts without progress the next one gets a model of the heavy tier; 0 is never."""
    parallel: bool = False
    """Whether phases are carried out side by side where neither the plan nor the command says."""
    fixes: int = 3
    """How often what the audit of the finished work finds may be mended; 0 leaves that to you."""
    tasks: str = "docs/tasks"
    """Where the documents of tasks are written."""


class ContextSettings(_Section, frozen=True, kw_only=True):
    """How many tokens of an agent's prompt each part may have; 0 leaves the part out."""

    role: int = 1500
    """Who it is and what it can do."""
    standards: int = 2500
    """What `AGENTS.md` and `CLAUDE.md` of the repository say."""
    architecture: int = 3000
    """What the repository's documents say about its architecture."""
    constraints: int = 2000
    """What every plan has to keep to, by the file that `forge.constraints` names."""
    lessons: int = 600
    """The lessons of the project that matter to the work."""
    overlay: int = 256
    """The files around the work, the checks, and how far the plan has come: about a kilobyte."""
    closure: int = 1500
    """What the steps did that the step depends on."""
    summaries: int = 800
    """What other steps did before."""
    task: int = 24_000
    """The task, with the request, the plan or whatever else it is about."""
    documents: tuple[str, ...] = ("ARCHITECTURE.md", "docs/architecture.md", "docs/architecture/*.md")
    """Where documents about the architecture are: paths and globs."""


class LessonSettings(_Section, frozen=True, kw_only=True):
    """Where the project keeps what it has learned."""

    file: str = "docs/lessons.md"
    """The file, in the repository."""


class LandSettings(_Section, frozen=True, kw_only=True):
    """How finished plans get onto your branch."""

    branch: str = ""
    """The branch that plans land on; empty is the one that is checked out."""
    tries: int = 5
    """How often a plan is merged anew because the branch has moved meanwhile."""


class FixSettings(small.Limits, frozen=True, kw_only=True):
    """What is small enough for `planforge fix`."""


class ProtectSettings(Protection, frozen=True, kw_only=True):
    """Which changes need a person, which are too large, and what is a secret."""

    size: SizeSettings = SizeSettings()
    secrets: SecretSettings = SecretSettings()


class ScanSettings(_Section, frozen=True, kw_only=True):
    """What `planforge scan` lets pass, and which tests an implementing step may not touch."""

    waivers: tuple[Waiver, ...] = ()
    """Places that may break a rule, each with a reason and a last day."""
    pinned: tuple[str, ...] = ()
    """Paths and globs of acceptance tests."""


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
    context: ContextSettings = ContextSettings()
    lessons: LessonSettings = LessonSettings()
    budget: BudgetSettings = BudgetSettings()
    land: LandSettings = LandSettings()
    fix: FixSettings = FixSettings()
    protect: ProtectSettings = ProtectSettings()
    scan: ScanSettings = ScanSettings()
    workspace: Preparation = Preparation()
    """What a worktree gets before an agent starts in it, and what is watched while it works."""
    sandbox: Sandboxing = Sandboxing()
    """How agents and checks are confined."""
    check: Check | None = None
    """How the tests of a tree are run: the same as `checks.tests`."""
    checks: dict[str, Check] = {}
    """How a tree is checked: `build`, `types`, `lint`, `tests`, and others of your own; detected if none."""
    pipelines: dict[str, Pipeline] = {}
    """Pipelines of your own, or others in the place of those that come with Planforge."""


def read(root: Path) -> Settings:
    """The settings of the project at `root`."""
    path = root / FILE
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        raise InvalidInput(f"cannot read `{path}`: {error.strerror}") from error
    return parse(content)


def parse(content: bytes) -> Settings:
    """The settings that such a file says."""
    try:
        settings = msgspec.toml.decode(content, type=Settings)
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"`{FILE}` is not right: {error}") from error
    if settings.agents.profiles:
        settings = _with_what_is_known(settings, msgspec.toml.decode(content)["agents"]["profiles"])
    for name, value, least in _numbers(settings):
        if not value >= least:  # what is no number at all is not either
            raise InvalidInput(f"`{FILE}` is not right: `{name}` must be at least {least:g}, not {value}")
        if value > MOST:
            raise InvalidInput(f"`{FILE}` is not right: `{name}` must be at most {MOST}, not {value}")
    _require_money_put_aside(settings.budget)
    _require_tiers(settings.agents)
    _require_sense(settings.protect)
    _require_reasons(settings.scan)
    _require_file(settings.lessons)
    return settings


def _with_what_is_known(settings: Settings, said: dict[str, dict[str, object]]) -> Settings:
    """The settings with each profile complete: a table about a known agent says only what is different."""
    profiles = {name: complete(name, table) for name, table in said.items()}
    for name, profile in profiles.items():
        for problem in problems(name, profile):
            raise InvalidInput(f"`{FILE}` is not right: `agents.profiles.{name}`: {problem}")
    return msgspec.structs.replace(
        settings, agents=msgspec.structs.replace(settings.agents, profiles=profiles)
    )


def _numbers(settings: Settings) -> Iterator[tuple[str, float, float]]:
    """Every number whose size matters, with its name and the least that makes sense."""
    forge, run, budget = settings.forge, settings.run, settings.budget
    yield "forge.cap", forge.cap, 1
    yield "forge.heartbeat_seconds", forge.heartbeat_seconds, 1 if forge.heartbeat_seconds else 0
    yield "forge.progress_seconds", forge.progress_seconds, 0
    for name in ("attempts", "jobs", "max_files", "lease_seconds"):
        yield f"run.{name}", getattr(run, name), 1
    for name in ("handoffs", "lease_patience", "escalate_after", "fixes"):
        yield f"run.{name}", getattr(run, name), 0
    yield from _of_context(settings.context)
    for name in ("max_files", "max_lines", "max_words", "max_wishes"):
        yield f"fix.{name}", getattr(settings.fix, name), 1
    yield "land.tries", settings.land.tries, 1
    yield "sandbox.memory_mb", settings.sandbox.memory_mb, 0
    yield "sandbox.processes", settings.sandbox.processes, 10
    for name, least in (("lines", 1), ("lines_per_file", 0), ("factor", 1), ("refuse", 0)):
        yield f"protect.size.{name}", getattr(settings.protect.size, name), least
    for name in ("tokens", "money", "minutes"):
        yield f"budget.reserve_{name}", getattr(budget, f"reserve_{name}"), 0
    yield from _agent_numbers(settings.agents)
    for name, check in settings.checks.items():
        yield f"checks.{name}.seconds", check.seconds, 0
    for scope, limits in _limits(budget):
        for field in limits.__struct_fields__:
            if (value := getattr(limits, field)) is not None:
                yield f"budget.{scope}.{field}", value, 0


def _of_context(context: ContextSettings) -> Iterator[tuple[str, float, float]]:
    names = ("role", "standards", "architecture", "constraints", "lessons", "overlay", "closure", "summaries")
    for name in names:
        yield f"context.{name}", getattr(context, name), 0
    yield "context.task", context.task, 500


def _agent_numbers(agents: AgentSettings) -> Iterator[tuple[str, float, float]]:
    for name, least in (("seconds", 1), ("idle_seconds", 0)):
        yield f"agents.{name}", getattr(agents, name), least
    for name, least in (("wait_minutes", 0), ("retry_minutes", 1)):
        yield f"agents.limits.{name}", getattr(agents.limits, name), least
    for model, price in agents.prices.items():
        for name in ("input", "output", "cached"):
            if (value := getattr(price, name)) is not None:
                yield f"agents.prices.{model}.{name}", value, 0
    for name, profile in agents.profiles.items():
        yield f"agents.profiles.{name}.handoff_tokens", profile.handoff_tokens, 0


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


def _require_tiers(agents: AgentSettings) -> None:
    for name, tiers in agents.tiers.items():
        for tier in tiers:
            if tier not in TIERS:
                known = ", ".join(f"`{each}`" for each in TIERS)
                raise InvalidInput(f"`{FILE}` is not right: `agents.tiers.{name}.{tier}`; tiers are {known}")


def _require_sense(protect: ProtectSettings) -> None:
    for name in ("add", "remove", "replace"):
        try:
            Patterns(getattr(protect, name) or ())
        except InvalidInput as error:
            problem = f"`{FILE}` is not right: `protect.{name}`: {error.message}"
            raise InvalidInput(problem, error.hint) from error
    for item in protect.secrets.allow:
        if not item.reason.strip() or not item.fingerprint.strip():
            raise InvalidInput(
                f"`{FILE}` is not right: `protect.secrets.allow` needs a fingerprint and a reason",
                "the fingerprint is in the reason why the attempt was refused: `planforge log`",
            )


def _require_file(lessons: LessonSettings) -> None:
    try:
        exact(lessons.file)
    except InvalidInput as error:
        raise InvalidInput(f"`{FILE}` is not right: `lessons.file`: {error.message}", error.hint) from error


def _require_reasons(scan: ScanSettings) -> None:
    try:
        for waiver in scan.waivers:
            check_waiver(waiver)
        normalise_all(scan.pinned)
    except InvalidInput as error:
        raise InvalidInput(f"`{FILE}` is not right: `scan`: {error.message}", error.hint) from error
