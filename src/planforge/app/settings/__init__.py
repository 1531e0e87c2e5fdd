"""
What a project says about itself in `planforge.toml`.

Every setting has a default and an unknown one is an error, so a slip of the pen
never passes for a setting.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from planforge.actions import Action, Advice, Hint
from planforge.agents import roster
from planforge.agents.prices import Price
from planforge.agents.profiles import Profile, problems
from planforge.agents.roster import complete
from planforge.agents.tiers import TIERS, Overrides
from planforge.app.places import PLANS, SETTINGS
from planforge.documents import toml
from planforge.errors import InvalidInput, nearest
from planforge.kernel.events import Amounts
from planforge.kernel.files import read_regular
from planforge.kernel.paths import exact, normalise_all
from planforge.rules import small
from planforge.rules.pipelines import Pipeline
from planforge.rules.protection import Protection
from planforge.rules.protection.bounds import SizeSettings
from planforge.rules.protection.patterns import Patterns
from planforge.rules.scanning.issues import Waiver, check_waiver
from planforge.workspace.checks import Check
from planforge.workspace.preparation import Preparation
from planforge.workspace.sandbox import Sandboxing
from planforge.workspace.secrets import SecretSettings

MOST = 1_000_000_000
"""More than this of anything in the settings is a slip of the pen."""

HEARTBEAT = ("forge", "heartbeat_seconds")
LEAST = {
    ".".join(HEARTBEAT): 1,
    "agents.limits.retry_minutes": 1,
    "agents.seconds": 1,
    "context.task": 500,
    "fix.max_files": 1,
    "fix.max_lines": 1,
    "fix.max_wishes": 1,
    "fix.max_words": 1,
    "forge.cap": 1,
    "land.tries": 1,
    "protect.size.factor": 1,
    "protect.size.lines": 1,
    "run.attempts": 1,
    "run.jobs": 1,
    "run.lease_seconds": 1,
    "run.max_files": 1,
    "sandbox.processes": 10,
}
"""The least that makes sense of a number; 0 for all others. No heartbeat at all is 0 too."""


VARIABLE = re.compile(r"[^=\0]+")
"""The name of an environment variable: anything that a system takes for one."""

NO_BRANCH = re.compile(r"[\s~^:?*\[\\]|\.\.|@\{|//|^[-/]|(?:^|/)\.")
"""What git refuses in the name of a branch."""

CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""All control characters but the ends of lines and tabs, which scripts have."""
OWNED = {".git": "git", ".planforge": "Planforge"}
"""Directories of the repository that no setting may lead into."""


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


class ForgeSettings(_Section, frozen=True, kw_only=True):
    """How plans are made."""

    cap: int = 5
    """How many rounds of audit a plan gets."""
    plans: str = PLANS
    """Where plan files are written."""
    constraints: str = ".context/project.md"
    """A file of the repository with what every plan has to keep to; empty for none."""
    auto_implement: bool = False
    """Whether a plan that was forged clean is approved in your name and carried out at once."""
    research: Literal["auto", "always", "never"] = "auto"
    """Whether a drafter first chooses the files to plan from: `auto` is for agents that have no tools."""
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
    files: int = 12_000
    """The files that an agent without tools is shown, and those that a drafter has chosen to plan from."""
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
    """In US dollars; what an agent reports in another currency is unknown."""
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
    path = root / SETTINGS
    try:
        content = read_regular(path)
    except FileNotFoundError as error:
        if path.is_symlink():
            raise InvalidInput(f"`{path}` is a link to a file that is not there") from error
        return Settings()
    except OSError as error:
        raise InvalidInput(f"cannot read `{path}`: {error.strerror}") from error
    settings = parse(content)
    if settings.agents.roles or settings.agents.models or settings.budget.roles:
        require_roles(root, settings)
    return settings


def parse(content: bytes) -> Settings:
    """The settings that such a file says."""
    said = toml.parse(content, SETTINGS)
    settings = toml.convert(said, Settings, SETTINGS)
    if settings.agents.profiles:
        settings = _with_what_is_known(settings, said["agents"]["profiles"])
    for key, value in _values(settings, ()):
        _require_text(key, value)
        _require_variable(key)
        if not isinstance(value, int | float):
            continue
        least = LEAST.get(".".join(key), 0)
        if not value >= least and not (key == HEARTBEAT and value == 0):  # nor does NaN pass
            raise wrong(f"`{toml.dotted(key)}` must be at least {least}, not {value}")
        if value > MOST:
            raise wrong(f"`{toml.dotted(key)}` must be at most {MOST}, not {value}")
    _require_money_put_aside(settings.budget)
    _require_sense(settings.protect)
    _require_reasons(settings.scan)
    _require_commands(settings)
    _require_branch(settings.land.branch)
    for key, path, may_be_empty in _paths(settings):
        if path or not may_be_empty:
            _require_path(key, path)
    if settings.agents != AgentSettings():
        require_agents(settings.agents)
    return settings


def _with_what_is_known(settings: Settings, said: dict[str, dict[str, object]]) -> Settings:
    """The settings with each profile complete: a table about a known agent says only what is different."""
    profiles = {name: complete(name, table) for name, table in said.items()}
    for name, profile in profiles.items():
        for problem in problems(name, profile):
            raise wrong(f"`{toml.dotted(('agents', 'profiles', name))}`: {problem}")
    return msgspec.structs.replace(
        settings, agents=msgspec.structs.replace(settings.agents, profiles=profiles)
    )


def _values(value: object, key: toml.Key) -> Iterator[tuple[toml.Key, object]]:
    """Everything that the settings say with its key."""
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _values(getattr(value, name), (*key, name))
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from _values(part, (*key, name))
    elif isinstance(value, tuple):
        for index, part in enumerate(value):
            yield from _values(part, (*key, f"[{index}]"))
    else:
        yield key, value


def _require_text(key: toml.Key, value: object) -> None:
    """Refuse what no program and no path takes, and what a terminal would obey; a script may have lines."""
    for name in key:
        if not name.isprintable():
            raise wrong(
                f"`{toml.dotted(key)}`: {name!r} is not a name", "remove characters that cannot be seen"
            )
    if isinstance(value, str) and (found := CONTROL.search(value)):
        raise wrong(f"`{toml.dotted(key)}` has the control character {found[0]!r} in it")


def _require_variable(key: toml.Key) -> None:
    """Refuse what no environment can hold: no program could be started with it."""
    if key[-2:-1] == ("env",) and not VARIABLE.fullmatch(key[-1]):
        raise wrong(f"`{toml.dotted(key)}`: `{key[-1]}` is not the name of an environment variable")


def _paths(settings: Settings) -> Iterator[tuple[toml.Key, str, bool]]:
    """Every setting that is one path inside the repository, and whether it may be empty."""
    yield ("lessons", "file"), settings.lessons.file, False
    yield ("forge", "plans"), settings.forge.plans, False
    yield ("forge", "constraints"), settings.forge.constraints, True
    yield ("run", "tasks"), settings.run.tasks, False
    yield ("agents", "roles_directory"), settings.agents.roles_directory, False
    for name, pipeline in settings.pipelines.items():
        yield ("pipelines", name, "gates"), pipeline.gates, True


def _require_path(key: toml.Key, path: str) -> None:
    """Refuse what is not in the repository, and what there belongs to git or to Planforge."""
    try:
        parts = exact(path).casefold().split("/")
    except InvalidInput as error:
        raise wrong(f"`{toml.dotted(key)}`: {error.message}", error.hint) from error
    for owned, owner in OWNED.items():
        if owned in parts:
            raise wrong(
                f"`{toml.dotted(key)}`: {path!r} is in `{owned}`, which belongs to {owner}",
                "name another place in the repository",
            )
    if not path.isprintable():
        raise wrong(f"`{toml.dotted(key)}`: {path!r} is no path that can be shown")


def _require_money_put_aside(budget: BudgetSettings) -> None:
    named = {"run": budget.run, "plan": budget.plan, "step": budget.step}
    named |= {f"roles.{role}": limits for role, limits in budget.roles.items()}
    for name, limits in named.items():
        if limits is not None and limits.money is not None and not budget.reserve_money:
            raise wrong(
                f"`budget.{name}.money` needs `budget.reserve_money`",
                "set a price for answers whose agent gives none, such as `reserve_money = 0.5`",
            )


def _require_sense(protect: ProtectSettings) -> None:
    for name in ("add", "remove", "replace"):
        try:
            Patterns(getattr(protect, name) or ())
        except InvalidInput as error:
            raise wrong(f"`protect.{name}`: {error.message}", error.hint) from error
    for item in protect.secrets.allow:
        if not item.reason.strip() or not item.fingerprint.strip():
            raise wrong(
                "`protect.secrets.allow` needs a fingerprint and a reason",
                Advice("the fingerprint is in the reason why the attempt was refused: {}", Action("log")),
            )


def _require_commands(settings: Settings) -> None:
    """Refuse a check that runs nothing: it would be found out only after an agent was paid."""
    checks: list[tuple[toml.Key, Check]] = [
        (("checks", name), each) for name, each in settings.checks.items()
    ]
    checks += [(("check",), settings.check)] if settings.check else []
    for key, check in checks:
        if not check.command or not check.command[0].strip():
            raise wrong(
                f"`{toml.dotted((*key, 'command'))}` names no program",
                "name one, or remove the setting: checks are detected then",
            )


def _require_branch(branch: str) -> None:
    """Refuse what git does not take as the name of a branch."""
    if branch and (NO_BRANCH.search(branch) or branch.endswith((".", "/", ".lock"))):
        raise wrong(f"`land.branch`: `{branch}` is not the name of a branch")


def _require_reasons(scan: ScanSettings) -> None:
    key = "scan.pinned"
    try:
        normalise_all(scan.pinned)
        for index, waiver in enumerate(scan.waivers):
            key = f"scan.waivers[{index}]"
            check_waiver(waiver)
    except InvalidInput as error:
        raise wrong(f"`{key}`: {error.message}", error.hint) from error


# Names that the settings use: every agent, tier, role and stage must be one that there is.
# Without this a slip such as `agents.models.draftr` would be a setting that nothing ever reads.

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
    from planforge.app.settings.role_library import library_at
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
