"""
Running the checks of a proof again, each in a clean checkout of the tree that it was about.

This runs commands and code that the proof names. Whoever asks for it trusts where
the proof comes from, or runs it where nothing can be harmed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from planforge.app.history.proofs import evidence_of
from planforge.errors import GitFailed, InvalidInput, LedgerUnreadable
from planforge.kernel.events import Recorded
from planforge.kernel.evidence import CHECK, TESTS, Evidence, Part
from planforge.kernel.objects import Objects
from planforge.kernel.replay.proof import Proof
from planforge.workspace.checks import Check, Report, execution
from planforge.workspace.git import Git, bare_objects
from planforge.workspace.worktrees import Worktrees


class Rerun(msgspec.Struct, frozen=True, kw_only=True):
    """A check that was run again."""

    seq: int
    """The event that holds the evidence."""
    tree: str
    command: tuple[str, ...]
    recorded: str
    found: str
    agrees: bool


async def rerun(proof: Proof, repository: Path | None = None) -> list[Rerun]:
    """Run every recorded check again, from the files in the proof or from a repository that has them."""
    if repository is None and proof.manifest.files != "whole":
        raise InvalidInput("the files are not in the proof", "say where they are with `--repo`")
    with tempfile.TemporaryDirectory(prefix="planforge-rerun-") as place:
        directory = Path(place)
        if repository is None:
            git = bare_objects.lay_out(proof.git, directory / "repository", _cut(proof))
        else:
            git = Git.find(repository)
        again = _Again(proof, git, directory)
        return [await again.run(item, evidence) for item, evidence in _recorded_checks(proof)]


def _cut(proof: Proof) -> list[str]:
    """The commits whose parents are not in the proof."""
    commits = {
        name: bare_objects.commit(content)
        for name, content in proof.git.items()
        if content.startswith(b"commit ")
    }
    return [name for name, found in commits.items() if not set(found.parents) <= set(commits)]


def _recorded_checks(proof: Proof) -> Iterator[tuple[Recorded, Evidence]]:
    """Each tree that was checked in the run, once for each command."""
    seen = set()
    for item in proof.stream(proof.manifest.about.run):
        evidence = evidence_of(item.event)
        if evidence and evidence.command and (evidence.tree, evidence.command) not in seen:
            seen.add((evidence.tree, evidence.command))
            yield item, evidence


class _Again:
    """Runs checks in checkouts of their own."""

    def __init__(self, proof: Proof, git: Git, directory: Path) -> None:
        self._git = git
        self._proof = proof
        self._checks = {check.command: check for check in proof.manifest.checks}
        self._worktrees = Worktrees(git, directory / "state", proof.manifest.about.run)
        self._objects = Objects(directory / "objects")

    async def run(self, item: Recorded, evidence: Evidence) -> Rerun:
        try:
            found = _words(await self._evidence(evidence))
        except GitFailed as error:
            found = error.message
        recorded = _words(evidence)
        return Rerun(
            seq=item.seq,
            tree=evidence.tree,
            command=evidence.command,
            recorded=recorded,
            found=found,
            agrees=found == recorded,
        )

    async def _evidence(self, evidence: Evidence) -> Evidence:
        if self._git.tree_of(evidence.commit) != evidence.tree:
            raise GitFailed(f"commit `{evidence.commit[:12]}` holds another tree")
        checkout = self._worktrees.make_fresh(evidence.commit)
        try:
            return await self._checked(evidence, checkout)
        finally:
            self._worktrees.discard(checkout)

    async def _checked(self, evidence: Evidence, checkout: Path) -> Evidence:
        rest = (checkout, evidence.commit, evidence.tree, self._objects)
        named = {part.name: self._attached(part) for part in evidence.parts}
        named = named or {TESTS: self._check(evidence.command)}
        return await execution.run_all(named, *rest, root=self._git.top)

    def _attached(self, part: Part) -> Check:
        """The check that a part of the evidence came from."""
        name = part.attachment(CHECK)
        try:
            return msgspec.json.decode(self._proof.objects.get(name), type=Check)
        except (LedgerUnreadable, msgspec.MsgspecError) as error:
            raise InvalidInput(f"the proof does not say how `{part.name}` was checked") from error

    def _check(self, command: tuple[str, ...]) -> Check:
        told = self._checks.get(command)
        if told is None or told.report not in tuple(Report):
            raise InvalidInput(f"the proof does not say how to read `{' '.join(command)}`")
        return Check(command=command, report=Report(told.report), junit=told.junit, seconds=told.seconds)


def _words(evidence: Evidence) -> str:
    """The outcome and the counts, which must be the same again."""
    counts = evidence.counts
    if counts is None:
        return evidence.outcome.value
    numbers = f"{counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped"
    return f"{evidence.outcome.value}: {numbers} of {counts.total}"
