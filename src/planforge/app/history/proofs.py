"""
Writing a proof of a run: which events, objects and files belong to it.

An event belongs to a run if it is in the run's stream, is about a plan of the run,
or is a lease, a budget or a handoff of either. Everything between the first and
the last such event is in the slice, if only as a hash.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from planforge.actions import Action, Advice
from planforge.errors import GitFailed, InvalidInput, LedgerUnreadable, NotFound
from planforge.kernel import events
from planforge.kernel.events import Event, Recorded
from planforge.kernel.evidence import TESTS, Evidence
from planforge.kernel.ledger import Ledger
from planforge.kernel.ledger.rows import COLUMNS, chain, content, read_event
from planforge.kernel.objects import encode, write_atomically
from planforge.kernel.replay import proof
from planforge.kernel.replay.proof import About, CheckCommand, Files, Line, Position, Row, Skipped, Summary
from planforge.kernel.replay.proof_faults import chain_faults, unpack
from planforge.kernel.replay.tape import Bodies, Tape
from planforge.workspace.git import bare_objects

if TYPE_CHECKING:
    from planforge.app.project import Project
    from planforge.workspace.git import Git

LEASES = (
    events.LeaseGranted,
    events.LeaseRenewed,
    events.LeaseReleased,
    events.LeaseExpired,
    events.LeasePassed,
    events.LeaseAwaited,
    events.LeaseWaitEnded,
)

ADDRESS = re.compile("[0-9a-f]{64}")

FILES_LIMIT = 64 * 1024 * 1024
"""Repositories with more than this in the trees that were checked give only the files that changed."""


class Proved(msgspec.Struct, frozen=True, kw_only=True):
    """What was written."""

    schema_version: int = 1
    file: str
    run: str
    events: int
    others: int
    """Events of others, of which only the hash is in it."""
    objects: int
    files: Files
    head: Position
    size: int


def prove(project: Project, run: str, path: Path, *, force: bool = False, files: bool = True) -> Proved:
    """Write the proof of a run to `path`."""
    if path.exists() and not force:
        raise InvalidInput(f"`{path}` is there already", "use `--force` to replace it")
    data = made(project, run, files=files)
    try:
        write_atomically(path, data)
    except OSError as error:
        raise NotFound(f"cannot write `{path}`: {error.strerror}") from error
    found, _ = unpack(data)
    rows = sum(isinstance(line, Row) for line in found.lines)
    return Proved(
        file=str(path),
        run=run,
        events=rows,
        others=len(found.lines) - rows,
        objects=len(found.objects.content),
        files=found.manifest.files,
        head=found.manifest.head,
        size=len(data),
    )


def made(project: Project, run: str, *, files: bool = True) -> bytes:
    """The bytes of the proof of a run."""
    ledger = project.ledger
    tape = Tape(ledger, run)
    selection = Selection(ledger, tape)
    before, lines = sliced(ledger, selection)
    recorded = list(proof.recorded(lines))
    objects = {name: ledger.objects.get(name) for name in references(ledger.objects, recorded)}
    for name in mentioned(recorded):  # an artifact's hash need not be the address of an object
        if name not in objects and (ledger.directory / "objects" / name[:2] / name[2:]).exists():
            objects[name] = ledger.objects.get(name)
    which: Files = "none"
    git: Mapping[str, bytes] = {}
    if files:
        which, git = files_of(project.git, recorded)
    started = tape.started
    data = proof.pack(
        lines,
        objects,
        git,
        about=About(
            run=run, flow=started.flow, flow_version=started.flow_version, plans=tuple(selection.plans)
        ),
        before=before,
        files=which,
        checks=_checks(project, recorded),
        summary=summary_of(recorded),
    )
    for fault in chain_faults(unpack(data)[0]):
        raise LedgerUnreadable(f"event {fault.seq}: {fault.problem}", Advice("run {}", Action("verify")))
    return data


class Selection:
    """Which events belong to a run."""

    def __init__(self, ledger: Ledger, tape: Tape) -> None:
        self.run = tape.run
        subject = tape.started.subject
        named = {subject} if subject else set()
        self._holders: set[str] = set()
        for recorded in ledger.stream(tape.run):
            named.add(getattr(recorded.event, "plan", subject))
            if holder := getattr(recorded.event, "holder", ""):
                self._holders.add(holder)
        self.plans = sorted(plan for plan in named if plan and ledger.version(plan))
        self._names = (self.run, *self.plans)
        self._scopes = {f"run:{self.run}", *(f"plan:{plan}" for plan in self.plans)}
        self._reservations: set[str] = set()

    def takes(self, stream: str, event: Event) -> bool:
        """Whether an event belongs. They must be asked about in order."""
        if stream in self._names or getattr(event, "plan", "") in self.plans:
            self._holders.update(
                getattr(event, name) for name in ("holder", "successor") if getattr(event, name, "")
            )
            return True
        if isinstance(event, events.BudgetReserved) and any(map(self._in_scope, event.scopes)):
            self._reservations.add(event.reservation)
            return True
        if isinstance(event, events.BudgetSet):
            return self._in_scope(event.scope)
        if isinstance(event, events.BudgetSpent | events.BudgetReconciled):
            return event.reservation in self._reservations
        if not isinstance(event, LEASES):
            return False
        return self._holds(event.holder) or self._holds(getattr(event, "successor", ""))

    def _in_scope(self, scope: str) -> bool:
        return scope in self._scopes or any(scope.startswith(f"step:{plan}/") for plan in self.plans)

    def _holds(self, holder: str) -> bool:
        return holder in self._holders or any(
            holder == name or holder.startswith((f"{name}/", f"{name}.")) for name in self._names
        )


def sliced(ledger: Ledger, selection: Selection) -> tuple[Position, list[Line]]:
    """The slice of the ledger from the first event that belongs to the last, and what is before it."""
    previous = before = Position(seq=0, hash="")
    lines: list[Line] = []
    kept = 0
    for values in ledger.query(f"SELECT {COLUMNS} FROM events ORDER BY seq"):  # noqa: S608  (a constant)
        seq, stream, _, kind, revision, *_, body, digest = values
        belongs = selection.takes(stream, read_event(seq, kind, revision, body))
        if belongs and not kept:
            before = previous
        if belongs or kept:
            lines.append(_line(belongs, previous, values))
        if belongs:
            kept = len(lines)
        previous = Position(seq=seq, hash=digest.hex())
    return before, lines[:kept]


def _line(belongs: bool, previous: Position, values: tuple[Any, ...]) -> Line:
    *fields, digest = values
    own = content(*fields)
    if not belongs and digest == chain(bytes.fromhex(previous.hash), own):
        return Skipped(seq=values[0], content=own.hex())
    # Beside our own events, one that does not match its hash: whole, so that the check of the proof names it.
    names = ("seq", "stream", "version", "kind", "revision", "key", "at")
    try:
        return Row(**dict(zip(names, values, strict=False)), body=values[7].decode(), hash=digest.hex())
    except UnicodeDecodeError as error:
        raise LedgerUnreadable(
            f"event {values[0]} is not text", Advice("run {}", Action("verify"))
        ) from error


def references(objects: Bodies, recorded: Iterable[Recorded]) -> list[str]:
    """The addresses of all objects that events refer to, in their bodies and in the objects themselves."""
    found: dict[str, None] = {}
    left = [msgspec.json.decode(encode(item.event)) for item in recorded]
    while left:
        value = left.pop()
        if isinstance(value, list):
            left += value
        if not isinstance(value, dict):
            continue
        left += value.values()
        for name in ("object", "output"):
            where = value.get(name)
            if not (isinstance(where, str) and ADDRESS.fullmatch(where)) or where in found:
                continue
            found[where] = None
            if "inline" in value:  # a body that is too large for its event
                left.append(msgspec.json.decode(objects.get(where)))
    return sorted(found)


def mentioned(recorded: Iterable[Recorded]) -> set[str]:
    """What may be the address of an object, or may be the hash of something else."""
    found = (item.event.hash for item in recorded if isinstance(item.event, events.ArtifactRecorded))
    return {name for name in found if ADDRESS.fullmatch(name)}


def evidence_of(event: Event) -> Evidence | None:
    """The evidence that an event carries, if any."""
    return event.evidence if isinstance(event, events.VerifyOk | events.VerifyFailed) else None


def summary_of(recorded: Iterable[Recorded]) -> Summary:
    """Approvals, evidence and landings, a line each."""
    approvals, evidence, landed = [], [], []
    for item in recorded:
        match item.event:
            case events.DecisionMade(approves=True) as event:
                approvals.append(f"{item.seq}: {event.actor} approved {event.subject} {event.content}")
            case events.DecisionUsed() as event:
                approvals.append(f"{item.seq}: {event.run} used it for {event.subject} {event.content}")
            case events.VerifyOk(evidence=seen) | events.VerifyFailed(evidence=seen):
                command = " ".join(seen.command)
                evidence.append(
                    f"{item.seq}: tree {seen.tree} {seen.outcome.value}, {seen.reason}: {command}"
                )
            case events.PatchApplied() as event:
                landed.append(f"{item.seq}: {event.plan} {event.step} as {event.commit} tree {event.tree}")
    return Summary(approvals=tuple(approvals), evidence=tuple(evidence), landed=tuple(landed))


def _checks(project: Project, recorded: Iterable[Recorded]) -> list[CheckCommand]:
    """How trees were checked. The settings say how counts are read, if they have not changed since."""
    found = {}
    for item in recorded:
        evidence = evidence_of(item.event)
        if evidence and evidence.command and evidence.command not in found:
            found[evidence.command] = _check(project, evidence.command)
    return [found[command] for command in sorted(found)]


def _check(project: Project, command: tuple[str, ...]) -> CheckCommand:
    check = project.settings.check or project.settings.checks.get(TESTS)
    if check is not None and check.command == command:
        report, junit, seconds = check.report.value, check.junit, check.seconds
        return CheckCommand(command=command, report=report, junit=junit, seconds=seconds)
    report = "junit" if any("junit" in word for word in command) else "unittest"
    return CheckCommand(command=command, report=report, junit="junit.xml", seconds=600.0)


def proposed_of(recorded: Iterable[Recorded]) -> list[str]:
    """The commits that agents proposed. Which files one changes is known from its parent alone."""
    return [item.event.commit for item in recorded if isinstance(item.event, events.PatchProposed)]


def commits_of(recorded: Sequence[Recorded]) -> list[str]:
    """The commits that were begun from, proposed, checked or landed."""
    found: dict[str, None] = dict.fromkeys(proposed_of(recorded))
    for item in recorded:
        match item.event:
            case events.PatchApplied(commit=commit, parent=parent):
                found |= {commit: None, parent: None}
            case events.VerifyOk(evidence=seen) | events.VerifyFailed(evidence=seen):
                found[seen.commit] = None
            case events.StepStarted(base=base) | events.PlanStarted(base=base):
                found[base] = None
    return [name for name in found if name]


def files_of(git: Git, recorded: Sequence[Recorded]) -> tuple[Files, dict[str, bytes]]:
    """The commits of a run with their trees and files; if those are too many, with what changed."""
    try:
        commits = bare_objects.take(git, commits_of(recorded))
        parents = [bare_objects.commit(commits[name]).parents for name in proposed_of(recorded)]
        commits |= bare_objects.take(git, [name for each in parents for name in each if name not in commits])
        wanted: dict[str, None] = {}
        sizes: dict[str, int] = {}
        for whole in commits.values():
            trees, files = bare_objects.trees_and_files(git, bare_objects.commit(whole).tree)
            wanted |= dict.fromkeys(sorted(trees))
            sizes |= files
        found = commits | bare_objects.take(git, wanted)
        if sum(sizes.values()) <= FILES_LIMIT:
            return "whole", found | bare_objects.take(git, sorted(sizes))
        return "changed", found | bare_objects.take(git, sorted(_changed(found, commits)))
    except GitFailed as error:
        raise NotFound(
            error.message, "use `--no-files` for a proof without the repository's files"
        ) from error


def _changed(objects: Mapping[str, bytes], commits: Mapping[str, bytes]) -> set[str]:
    """The files that any of the commits changed against a parent that is there."""
    found = set()
    for whole in commits.values():
        own = bare_objects.commit(whole)
        for parent in own.parents:
            if parent in commits:
                old = bare_objects.files(objects, bare_objects.commit(commits[parent]).tree)
                new = bare_objects.files(objects, own.tree)
                paths = [path for path in bare_objects.changed(old, new) if path in new]
                found |= {new[path].object for path in paths if new[path].mode != bare_objects.SUBMODULE}
    return found
