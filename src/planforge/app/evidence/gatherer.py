"""
Gathering evidence: which checks, where they run, and whether it was done before.

`Gathering` is for whoever has trees to check, a run as much as a person: it makes a fresh
checkout, runs the checks that the settings name or, where they name none, those that are
detected, and takes what is on record for the same tree and the same checks instead.
`look` is what a person asks for with `planforge evidence`.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from planforge.app import settings as settings_of
from planforge.app.project import Project
from planforge.app.settings import Settings, wrong
from planforge.errors import GitFailed, InvalidInput, LedgerUnreadable, NoRepository, NotFound, NotInitialised
from planforge.kernel import evidence as kept
from planforge.kernel import recorded_evidence
from planforge.kernel.events import VerifyFailed, VerifyOk
from planforge.kernel.evidence import Delta, Evidence, Outcome
from planforge.kernel.ledger import Ledger
from planforge.kernel.objects import Objects
from planforge.workspace import detection, processes
from planforge.workspace.checks import Check, execution
from planforge.workspace.checks.execution import Watch
from planforge.workspace.detection import Detected
from planforge.workspace.git import Git
from planforge.workspace.preparation import Preparation, setup
from planforge.workspace.preparation.setup import Prepared
from planforge.workspace.preparation.untracked import INCLUDE
from planforge.workspace.worktrees import Worktrees

if TYPE_CHECKING:
    from planforge.workspace.sandbox import Level, Policy

STREAM = "evidence"
"""Where evidence is kept that a person asked for, outside of any run."""

EPOCH = "1970-01-01T00:00:00+00:00"


def configured(settings: Settings) -> dict[str, Check] | None:
    """The checks that the settings name; None where they name none, and they have to be detected."""
    named = dict(settings.checks)
    if settings.check is not None:
        if kept.TESTS in named:
            raise wrong("`check` and `checks.tests` are the same", "keep one")
        named[kept.TESTS] = settings.check
    return named or None


class Gathering:
    """How evidence is gathered for the trees of one repository."""

    def __init__(
        self,
        git: Git,
        state: Path,
        settings: Settings,
        worktrees: Worktrees,
        *,
        checks: Mapping[str, Check] | None,
        ledger: Ledger | None,
        watch: Watch | None = None,
    ) -> None:
        self._git = git
        self._state = state
        self._settings = settings
        self._worktrees = worktrees
        self._checks = checks
        """None where they are to be detected, in each tree anew."""
        self._ledger = ledger
        """Where evidence is looked for before it is gathered again."""
        self._watch = watch
        self._level = settings.sandbox.chosen()
        self._preparation = preparation_of(git.top, settings.workspace)

    async def on(self, commit: str, tree: str, *, reuse: bool = True) -> Evidence:
        """Evidence for `commit`, whose tree is `tree`: what is on record already, or else anew."""
        if self._checks is not None and reuse and (found := self._known(commit, tree, self._checks)):
            return found
        checkout = await asyncio.to_thread(self._worktrees.make_fresh, commit)
        try:
            named = self._checks
            if named is None:
                named = (await asyncio.to_thread(detection.detect, checkout, self._git.top)).checks
                if reuse and (found := self._known(commit, tree, named)):
                    return found
            return await self._measured(checkout, commit, tree, named)
        finally:
            await asyncio.to_thread(self._worktrees.discard, checkout)

    def fingerprint(self, named: Mapping[str, Check]) -> str:
        """All that is known to determine evidence besides the tree; empty where that is not known."""
        if self._preparation is None:
            return ""
        return execution.fingerprint(
            named,
            root=self._git.top,
            sandbox=self._level.value,
            network=self._policy(self._git.top).network,
            preparation=self._preparation,
        )

    def _policy(self, checkout: Path) -> Policy:
        """What the checks in a checkout may see and change."""
        return self._settings.sandbox.verifying(checkout, self._git.top, state=self._state)

    def _known(self, commit: str, tree: str, named: Mapping[str, Check]) -> Evidence | None:
        if self._ledger is None:
            return None
        found = recorded_evidence.lookup(self._ledger, tree, self.fingerprint(named))
        return msgspec.structs.replace(found, commit=commit, reused=True) if found else None

    async def _measured(self, checkout: Path, commit: str, tree: str, named: Mapping[str, Check]) -> Evidence:
        prepared = await prepare(checkout, self._git, self._state, self._settings, self._level)
        try:
            return await execution.run_all(
                named,
                checkout,
                commit,
                tree,
                self._ledger.objects if self._ledger else Objects(self._state / "objects"),
                root=self._git.top,
                extra=prepared.env,
                policy=self._policy(checkout),
                level=self._level,
                fingerprint=self.fingerprint(named),
                watch=self._watch,
            )
        finally:
            prepared.close()


def gathering(project: Project, worktrees: Worktrees, watch: Watch | None = None) -> Gathering:
    """
    How a run gathers evidence.

    Where the settings name no checks, those that the person's own checkout shows are taken: what an agent
    wrote into its tree says nothing about how that tree is to be checked.
    """
    named = configured(project.settings)
    if named is None:
        named = detection.detect(project.root).checks
    return Gathering(
        project.git,
        project.state,
        project.settings,
        worktrees,
        checks=named,
        ledger=project.ledger,
        watch=watch,
    )


async def prepare(checkout: Path, git: Git, state: Path, settings: Settings, level: Level) -> Prepared:
    """Make a worktree ready, for an agent or for checks, confined as an agent is that writes in it."""
    # What `setup` downloads is kept for the next worktree; agents do not get there.
    policy = settings.sandbox.writing(checkout, git.top, state=state, own=[state / "caches"])
    run = partial(processes.run, policy=policy, level=level)
    return await setup.prepare(checkout, git.top, settings.workspace, git=git, state=state, run=run)


def preparation_of(root: Path, settings: Preparation) -> str | None:
    """What is known to determine how checkouts are prepared; None where files come from outside of git."""
    if (root / INCLUDE).exists():
        return None
    caches = []
    for name in settings.caches:
        with suppress(OSError):
            caches.append([name, (root / name).stat().st_mtime_ns])
    return msgspec.json.encode([settings, caches], order="deterministic").decode()


# What a person asks for


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """Evidence for one tree, and how it compares with that of the tree before."""

    schema_version: int = 1
    evidence: Evidence
    delta: Delta | None
    """None where there is nothing to compare with."""
    compared_with: str
    """The commit whose evidence it is compared with; empty where there is none."""
    detected: bool
    """Whether the checks were detected, and not named by the settings."""
    recorded: bool
    """Whether it is on record now."""


class _Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A commit to check, its tree, and the commit that it is compared with."""

    commit: str
    tree: str
    base: str


def detected(start: Path) -> Detected:
    """How the project that `start` is in would be checked; it need not be in a repository."""
    try:
        root = Git.find(start).top
    except NoRepository:
        root = start
    return detection.detect(root)


def look(
    start: Path,
    *,
    tree: str = "",
    commit: str = "",
    reuse: bool = True,
    watch: Watch | None = None,
) -> Look:
    """Gather evidence for HEAD, or for another commit or tree of the repository that `start` is in."""
    if tree and commit:
        raise InvalidInput("a tree and a commit were given", "give `--tree` or `--commit`")
    project = _project(start)
    git = project.git if project else Git.find(start)
    subject = _subject(git, tree, commit)
    settings = project.settings if project else settings_of.read(git.top)
    named = configured(settings)
    with _laid_out(project, git) as state:
        worktrees = Worktrees(git, state, STREAM)
        ledger = project.ledger if project else None
        how = Gathering(git, state, settings, worktrees, checks=named, ledger=ledger, watch=watch)
        found = asyncio.run(how.on(subject.commit, subject.tree, reuse=reuse))
        recorded = _record(project, found)
        delta = _delta(project, git, subject, found)
    base = subject.base if delta else ""
    return Look(evidence=found, delta=delta, compared_with=base, detected=named is None, recorded=recorded)


def _project(start: Path) -> Project | None:
    try:
        return Project.find(start)
    except NotInitialised:
        return None


def _subject(git: Git, tree: str, commit: str) -> _Subject:
    if tree:
        found = git.ref(f"{tree}^{{tree}}")
        if found is None:
            raise NotFound(
                f"there is no tree `{tree}`", "`git write-tree` or `git rev-parse HEAD^{tree}` names one"
            )
        # A checkout is made of a commit; this one has no parents, and no ref leads to it.
        made = git.commit_tree(found, [], "a tree to gather evidence on\n", EPOCH)
        return _Subject(commit=made, tree=found, base=git.ref("HEAD^{commit}") or "")
    name = commit or "HEAD"
    try:
        found = git.commit_of(name)
    except GitFailed as error:
        raise NotFound(
            error.message, "commit something first, or name another one with `--commit`"
        ) from error
    return _Subject(commit=found, tree=git.tree_of(found), base=git.ref(f"{found}^1^{{commit}}") or "")


@contextmanager
def _laid_out(project: Project | None, git: Git) -> Iterator[Path]:
    """Where checkouts and outputs go: among the project's own, or away when they are not needed any more."""
    if project is not None:
        yield project.state
        return
    state = _aside(git.top)
    try:
        yield state
    finally:
        Worktrees(git, state, STREAM).discard_checks()
        shutil.rmtree(state, ignore_errors=True)


def _aside(root: Path) -> Path:
    """A directory for a while, inside the repository if possible: there, Node finds what is installed."""
    prefix = ".planforge-evidence-"
    try:
        state = Path(tempfile.mkdtemp(prefix=prefix, dir=root))
        (state / ".gitignore").write_text("*\n")
    except OSError:
        return Path(tempfile.mkdtemp(prefix=prefix))
    return state


def _record(project: Project | None, found: Evidence) -> bool:
    """Put evidence on record, if there is a ledger; what was found there is on record."""
    if project is None:
        return False
    if found.reused:
        return True
    event = VerifyOk if found.outcome is Outcome.PASS else VerifyFailed
    project.ledger.append(STREAM, [event(plan="", step="", attempt=0, evidence=found)], expected=None)
    return True


def _delta(project: Project | None, git: Git, subject: _Subject, found: Evidence) -> Delta | None:
    if project is None or not subject.base:
        return None
    base = recorded_evidence.latest(project.ledger, git.tree_of(subject.base))
    if base is None:
        return None
    objects = project.ledger.objects
    return kept.compare(base, found, names_of(base, objects), names_of(found, objects))


def names_of(evidence: Evidence, objects: Objects) -> list[str] | None:
    """The names of all tests of evidence, if they are known."""
    counting = [part for part in evidence.parts if part.counts is not None and part.counts.total]
    if not counting or not all(part.attachment(kept.NAMES) for part in counting):
        return None
    try:
        texts = [objects.get(part.attachment(kept.NAMES)) for part in counting]
    except LedgerUnreadable:
        return None
    return [name for text in texts for name in text.decode("utf-8", "replace").split("\n")]
