"""
What gates are held against: sizes of files, what records say, what stages came to.

`planforge gate check` holds the gate of one stage against the facts as they are now, for a task or a plan;
a run looks up the same facts and records them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from planforge.app import tasks
from planforge.app.items import plans, task_rows
from planforge.app.tasks import pipelines
from planforge.errors import InvalidInput, NotFound
from planforge.kernel.effects import FoundFacts, ReadFacts
from planforge.rules.gates import grammar
from planforge.rules.gates.evaluation import Reason, Result, evaluate, places
from planforge.rules.gates.grammar import Gate, InvalidGate, Kind
from planforge.workspace.files import beneath

if TYPE_CHECKING:
    from planforge.app.project import Project
    from planforge.rules.pipelines import Pipeline

PLAN_FIELDS = ("status", "title", "path", "branch")


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """A gate that was held against the facts."""

    result: Result
    exit_code: int
    """0 open, 1 closed, 2 if the gate or the question makes no sense."""


class Now:
    """The facts about a task or a plan, as they are now."""

    def __init__(self, project: Project, subject: str, pipeline: Pipeline | None = None) -> None:
        self._project = project
        self._pipeline = pipeline
        self.task: task_rows.TaskRow | None = None
        self.plan: plans.PlanRow | None = None
        if subject.startswith("plan"):
            self.plan = plans.row(project, subject)
        else:
            self.task = task_rows.row(project, subject)

    @property
    def places(self) -> Mapping[str, str]:
        """What `{task}`, `{plan}` and `{engineering}` stand for."""
        return places(task=self.task.path if self.task else "", plan=self.plan.path if self.plan else "")

    def size(self, path: str) -> int | None:
        """How many bytes a file of the project has; a link or anything else is no file."""
        return size(self._project.root, path)

    def field(self, name: str) -> str | None:
        """What the record says."""
        if self.task:
            return tasks.field(self._project, self.task.task, name)
        kind, _, rest = name.partition(".")
        if kind != "plan" or rest not in PLAN_FIELDS:
            raise KeyError(name)
        return getattr(self.plan, rest) or None

    def verdict(self, stage: str) -> str | None:
        """What a stage came to last."""
        if self._pipeline and stage not in {each.name for each in self._pipeline.stages}:
            raise KeyError(stage)
        if self.task:
            return tasks.verdict(self._project, self.task.task, stage)
        assert self.plan is not None
        return _audited(self._project, self.plan.plan) if stage == "audit" else None


def _audited(project: Project, plan: str) -> str | None:
    """What the last audit of a plan came to."""
    from planforge.kernel.events import AuditRecorded

    found = None
    for (run,) in list(project.ledger.query("SELECT run FROM runs WHERE subject = ?", plan)):
        for recorded in project.ledger.stream(run):
            if isinstance(recorded.event, AuditRecorded) and not recorded.event.step:
                found = recorded.event.verdict
    return found


def size(root: Path, path: str) -> int | None:
    """How many bytes a file beneath `root` has; None if there is no such file."""
    with beneath.Directory.at(root) as directory:
        try:
            with directory.opened(path, os.O_RDONLY | os.O_NONBLOCK) as handle:
                found = os.fstat(handle)
        except (FileNotFoundError, NotADirectoryError):
            return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def found(project: Project, effect: ReadFacts) -> FoundFacts:
    """What the gates of a stage ask for."""
    now = Now(project, effect.task)
    sizes: dict[str, int | None] = {}
    unreadable: dict[str, str] = {}
    for path in effect.paths:
        try:
            sizes[path] = now.size(path)
        except OSError as error:
            unreadable[path] = error.strerror or str(error)
    fields: dict[str, str | None] = {}
    for name in effect.fields:
        try:
            fields[name] = now.field(name)
        except KeyError:
            continue  # which the gate itself says, with what it asked for
    there = {path: each for path, each in sizes.items() if each is not None}
    return FoundFacts(sizes=there, unreadable=unreadable, fields=fields)


def check(
    project: Project,
    stage: str,
    subject: str,
    *,
    outputs: bool = False,
    pipeline: str = "",
    document: str = "",
) -> Checked:
    """Hold the gate of a stage against the facts as they are now."""
    try:
        now = Now(project, subject)
        if document:
            gate = in_document(project.root, document, stage, Kind.OUTPUTS if outputs else Kind.GATES)
            chosen = None
        else:
            name = pipeline or (now.task.pipeline if now.task else "forge")
            chosen = pipelines.find(project.root, name)
            of = chosen.stages[chosen.index(stage)]
            gate = of.exit if outputs else of.entry
        result = evaluate(gate, Now(project, subject, chosen), now.places)
    except (InvalidInput, NotFound) as error:
        problem = Result(
            phase=stage,
            reason_code=Reason.TOOL_ERROR,
            detail=error.message,
            remediation=error.hint or "fix the gate",
        )
        return Checked(result=problem, exit_code=2)
    return Checked(result=result, exit_code=0 if result.ok else 1)


def in_document(root: Path, path: str, stage: str, kind: Kind) -> Gate:
    """The gate that a Markdown file of the project has for a stage; no gate is one that is open."""
    try:
        content = beneath.read(root, path, grammar.MAX_BYTES)
    except OSError as error:
        raise InvalidGate(f"cannot read `{path}`: {error.strerror}") from error
    for gate in grammar.in_markdown(content.decode("utf-8", "replace")):
        if (gate.stage, gate.kind) == (stage, kind):
            return gate
    return Gate(stage=stage, kind=kind)
