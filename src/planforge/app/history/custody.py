"""
What must hold between the events of a proof: what landed was checked, what ran was approved.

Each check looks at events, objects and git objects alone, and names the event that
is wrong. None of them believes an outcome: it is judged again from the exit code,
the counts and, where a check's own words are kept, from those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from planforge.app.history.proofs import (
    commits_of,
    evidence_of,
    mentioned,
    proposed_of,
    references,
    summary_of,
)
from planforge.errors import GitFailed, LedgerUnreadable
from planforge.kernel import events
from planforge.kernel.events import Event, Recorded
from planforge.kernel.evidence import TESTS, Counts, Evidence, Outcome
from planforge.kernel.ledger import Fault
from planforge.kernel.replay.proof import Proof
from planforge.kernel.replay.proof_faults import fault
from planforge.kernel.work.decisions import hashed
from planforge.rules.attempts import fault_of_evidence
from planforge.workflows import chat
from planforge.workspace.checks.judgement import rejudged
from planforge.workspace.git import bare_objects
from planforge.workspace.reports.runners import read_unittest


def faults(proof: Proof, recorded: Sequence[Recorded]) -> Iterator[Fault]:
    """Everything that does not hold."""
    yield from _about(proof, recorded)
    yield from _objects(proof, recorded)
    yield from _evidence(proof, recorded)
    yield from _landings(recorded)
    yield from _approvals(recorded, proof.manifest.about.run)
    if proof.manifest.files == "none":
        yield from (fault(f"`git/{name}` belongs to nothing") for name in proof.git)
    else:
        yield from _Files(proof, recorded).faults()


def _at(recorded: Recorded, problem: str) -> Fault:
    return Fault(seq=recorded.seq, stream=recorded.stream, kind=recorded.kind, problem=problem)


def _about(proof: Proof, recorded: Sequence[Recorded]) -> Iterator[Fault]:
    manifest = proof.manifest
    about = manifest.about
    named = about.flow, about.flow_version
    for item in recorded:
        if isinstance(item.event, events.RunStarted) and item.stream == about.run:
            recorded_as = item.event.flow, item.event.flow_version
            if recorded_as != named:
                yield _at(item, "the manifest names another flow")
            subject = item.event.subject
            if _has_history(subject) and subject not in about.plans:
                yield _at(item, f"the manifest does not name `{subject}`")
    plans = {getattr(item.event, "plan", "") for item in recorded if item.stream == about.run}
    for plan in sorted(plans - {"", *about.plans}):
        yield fault(f"the run is about `{plan}`, which the manifest does not name")
    if summary_of(recorded) != manifest.summary:
        yield fault("the summary in the manifest does not say what the events say")


def _has_history(subject: str) -> bool:
    """Whether what a run is about has events of its own; a branch and a chat have none."""
    return bool(subject) and subject != chat.SUBJECT and not subject.startswith("refs/")


def _objects(proof: Proof, recorded: Sequence[Recorded]) -> Iterator[Fault]:
    found = proof.objects
    try:
        wanted = set(references(found, recorded))
    except LedgerUnreadable as error:
        yield fault(error.message)
        return
    for name in sorted(wanted | set(found.content)):
        try:
            found.get(name)
        except LedgerUnreadable as error:
            yield fault(error.message)
    for name in sorted(set(found.content) - wanted - mentioned(recorded)):
        yield fault(f"object `{name[:12]}` belongs to nothing")


def _evidence(proof: Proof, recorded: Iterable[Recorded]) -> Iterator[Fault]:
    told = {check.command for check in proof.manifest.checks if check.report == "unittest"}
    for item in recorded:
        seen = evidence_of(item.event)
        if seen is None:
            continue
        if isinstance(item.event, events.VerifyOk) is not (fault_of_evidence(seen) is None):
            yield _at(item, f"its evidence says {seen.outcome.value}")
        judged = rejudged(seen)
        if seen.outcome is not Outcome.CANNOT_TELL and judged is not seen.outcome:
            numbers = f"exit code and counts say {judged.value}"
            yield _at(item, f"its evidence says {seen.outcome.value}, but its {numbers}")
        tests = seen.part(TESTS)
        counts = tests.counts if tests else seen.counts
        if seen.command in told and _printed(proof, seen) not in (None, counts):
            yield _at(item, "its counts are not those that the check printed")


def _printed(proof: Proof, seen: Evidence) -> Counts | None:
    """The counts in what a check printed, if there are any."""
    output = proof.objects.content.get(seen.output, b"")
    tally = read_unittest(output.decode("utf-8", "replace"))
    return tally.counts if tally else None


def _landings(recorded: Iterable[Recorded]) -> Iterator[Fault]:
    """Whatever landed passed before, as exactly that tree, in the same attempt."""
    passed: set[tuple[object, ...]] = set()
    started: dict[str, str] = {}
    for item in recorded:
        match item.event:
            case events.VerifyOk(plan=plan, step=step, attempt=attempt, evidence=seen):
                passed.add((item.stream, plan, step, attempt, seen.commit, seen.tree))
            case events.PlanStarted(content=content):
                started[item.stream] = content
            case events.PatchApplied() as event:
                landed = (event.plan, event.step, event.attempt, event.commit, event.tree)
                if (item.stream, *landed) not in passed:
                    yield _at(item, f"no evidence before it is about tree `{event.tree[:12]}`")
                if event.content != started.get(item.stream, event.content):
                    yield _at(item, "it landed under another plan than the one that was started")


def _approvals(recorded: Iterable[Recorded], run: str) -> Iterator[Fault]:
    """An approval is of exact content, and opens one gate once, before anything runs."""
    asked: dict[tuple[str, int], tuple[str, str]] = {}
    given: dict[tuple[str, str], tuple[str, int, str]] = {}
    used_by: dict[tuple[str, str], tuple[str, int, str]] = {}
    taken: set[tuple[str, str]] = set()
    for item in recorded:
        match item.event:
            case events.DecisionAsked() as about if about == hashed(about):
                asked.setdefault((about.kind, about.number), (about.hash, about.content))
            case events.DecisionMade(approves=True, subject=plan) as made if item.stream == plan:
                if asked.get((made.kind, made.number)) == (made.hash, made.content):
                    given[plan, made.name] = (made.kind, made.number, made.content)
            case events.DecisionUsed(subject=plan, content=content) as used if item.stream == plan:
                which = (used.kind, used.number, content)
                # The same yes still holds for going on with a plan that was stopped.
                before = used_by.get((plan, used.continues))
                yes = before if used.continues else given.pop((plan, used.name), None)
                if yes != which:
                    yield _at(item, f"nobody approved `{content[:12]}`, or it was used before")
                used_by[plan, used.run] = which
                if used.run == run:
                    taken.add((plan, content))
            case events.PlanStarted(plan=plan, content=content) if item.stream == run:
                if (plan, content) not in taken:
                    yield _at(item, f"it runs `{content[:12]}`, for which it used no approval")


class _Files:
    """The commits, trees and files of a proof."""

    def __init__(self, proof: Proof, recorded: Sequence[Recorded]) -> None:
        self._objects = proof.git
        self._whole = proof.manifest.files == "whole"
        self._recorded = recorded
        self._trees: dict[str, Mapping[bytes, bare_objects.TreeEntry]] = {}

    def faults(self) -> Iterator[Fault]:
        damaged = [
            name for name, content in self._objects.items() if not bare_objects.is_named(name, content)
        ]
        yield from (fault(f"`git/{name[:12]}` is not what its name says") for name in damaged)
        if damaged:
            return
        for item in self._recorded:
            try:
                yield from self._of_event(item)
            except GitFailed as error:
                yield _at(item, error.message)
        yield from self._left_over()

    def _of_event(self, item: Recorded) -> Iterator[Fault]:
        for commit, tree in _commits(item.event):
            if self._commit(commit).tree != tree:
                yield _at(item, f"commit `{commit[:12]}` does not hold tree `{tree[:12]}`")
            if self._whole:
                self._require_files(tree)
        match item.event:
            case events.PatchApplied(commit=commit, parent=parent):
                if not self._is_on_top(commit, parent):
                    yield _at(item, f"commit `{commit[:12]}` is not on top of `{parent[:12]}`")
            case events.PatchProposed(commit=commit, files=files):
                paths = self._changed(commit)
                if tuple(sorted(path.decode("utf-8", "backslashreplace") for path in paths)) != files:
                    yield _at(item, f"commit `{commit[:12]}` changes other files than it says")

    def _commit(self, name: str) -> bare_objects.CommitObject:
        if name not in self._objects:
            raise GitFailed(f"commit `{name[:12]}` is missing from the proof")
        return bare_objects.commit(self._objects[name])

    def _is_on_top(self, commit: str, base: str) -> bool:
        """Whether a commit was made on `base`, or on proposals that were: revisions land together."""
        landed = {item.event.commit for item in self._recorded if isinstance(item.event, events.PatchApplied)}
        between = set(proposed_of(self._recorded)) - landed
        left = [commit]
        while left:
            parents = self._commit(left.pop()).parents
            if base in parents:
                return True
            left += between.intersection(parents)
            between.difference_update(parents)
        return False

    def _files(self, tree: str) -> Mapping[bytes, bare_objects.TreeEntry]:
        if tree not in self._trees:
            self._trees[tree] = bare_objects.files(self._objects, tree)
        return self._trees[tree]

    def _changed(self, commit: str) -> list[bytes]:
        own = self._commit(commit)
        old = self._files(self._commit(own.parents[0]).tree) if own.parents else {}
        new = self._files(own.tree)
        paths = bare_objects.changed(old, new)
        self._require({new[path].object for path in paths if path in new and _is_file(new[path])})
        return paths

    def _require_files(self, tree: str) -> None:
        self._require({entry.object for entry in self._files(tree).values() if _is_file(entry)})

    def _require(self, names: Iterable[str]) -> None:
        for name in sorted(names):
            if name not in self._objects:
                raise GitFailed(f"file `{name[:12]}` is missing from the proof")

    def _left_over(self) -> Iterator[Fault]:
        """What no commit of the run leads to."""
        left = [name for name in commits_of(self._recorded) if name in self._objects]
        proposed = set(proposed_of(self._recorded))
        wanted = set(left)
        while left:
            name = left.pop()
            content = self._objects[name]
            below: Iterable[str] = ()
            if content.startswith(b"commit "):
                own = bare_objects.commit(content)
                below = (own.tree, *own.parents) if name in proposed else (own.tree,)
            elif content.startswith(b"tree "):
                below = [entry.object for entry in bare_objects.tree(content, len(name))]
            new = [name for name in below if name in self._objects and name not in wanted]
            wanted.update(new)
            left += new
        for name in sorted(set(self._objects) - wanted):
            yield fault(f"`git/{name[:12]}` belongs to nothing")


def _is_file(entry: bare_objects.TreeEntry) -> bool:
    return entry.mode != bare_objects.SUBMODULE


def _commits(event: Event) -> list[tuple[str, str]]:
    """The commits of an event with the trees that it says they hold."""
    seen = evidence_of(event)
    if seen is not None:
        return [(seen.commit, seen.tree)]
    if isinstance(event, events.PatchProposed | events.PatchApplied):
        return [(event.commit, event.tree)]
    return []
