"""
What is kept under `refs/planforge/archive/`, as a list that people can search.

The name of a ref says what it is: `phase-1-2` is what was committed of the second
attempt of `phase-1`; after a dot comes how else it got there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from planforge.workspace.archive import ARCHIVE, BASES, WORK, refs
from planforge.workspace.git import Git
from planforge.workspace.git.objects import PLAIN, beyond, lines, text
from planforge.workspace.git.patches import counted

LABEL = re.compile(r"(?P<stem>[^.]+)(?:\.(?P<kind>[a-z]+)(?P<about>-[^.]*)?)?(?:\.\d+)?")
ATTEMPT = re.compile(r"(.+)-(\d+)")
HEADER = re.compile(rb"([0-9a-f]{40,64}) ([0-9a-f]{40,64})\n")
REASONS = {
    "": "proposed",
    "branch": "on a branch made meanwhile",
    "head": "committed by the agent itself",
    "left": "left in the worktree",
    "lost": "left behind by a reset, a rebase or an amend",
    "nested": "in a repository inside the worktree",
    "onto": "moved onto what had landed",
    "staged": "staged and changed since",
    "stash": "stashed",
    "turn": "handed over unfinished",
    "was": "on a branch that was moved or deleted meanwhile",
}


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One commit that is kept."""

    name: str
    """What `planforge recover` calls it: the run and the label."""
    ref: str
    run: str
    step: str
    attempt: int
    why: str
    commit: str
    tree: str
    base: str
    """What it is compared with; empty if there is nothing to compare it with."""
    at: str
    subject: str
    files: tuple[str, ...]
    changed_lines: int
    landed: bool
    """Whether a branch or a tag reaches it."""


class _Ref(NamedTuple):
    name: str
    commit: str
    tree: str
    parents: tuple[str, ...]
    at: str
    subject: str


def everything(git: Git, run: str = "") -> list[Work]:
    """All that is kept, of one run if it is named, the oldest first."""
    found = _refs(git, f"{ARCHIVE}/{run}" if run else ARCHIVE)
    bases = refs(git, BASES)
    compared = {ref.name: _base(git, ref, bases) for ref in found}
    sizes = _changes(git, [(compared[ref.name], ref.tree) for ref in found])
    reached = landed(git, [ref.commit for ref in found])
    made = []
    for ref, (files, count) in zip(found, sizes, strict=True):
        run_, _, label = ref.name.removeprefix(f"{ARCHIVE}/").partition("/")
        stem, kind = parts(label)
        step = ATTEMPT.fullmatch(stem)
        made.append(
            Work(
                name=f"{run_}/{label}",
                ref=ref.name,
                run=run_,
                step=step[1] if step else stem,
                attempt=int(step[2]) if step else 0,
                why=REASONS.get(kind, kind),
                commit=ref.commit,
                tree=ref.tree,
                base=compared[ref.name],
                at=ref.at,
                subject=ref.subject,
                files=files,
                changed_lines=count,
                landed=ref.commit in reached,
            )
        )
    return sorted(made, key=lambda work: (work.at, work.name))


def parts(label: str) -> tuple[str, str]:
    """The worktree that a label speaks of, and what kind of work it is; nothing for a proposal."""
    found = LABEL.fullmatch(label)
    return (found["stem"], found["kind"] or "") if found else (label, "")


def landed(git: Git, commits: Iterable[str]) -> set[str]:
    """Those of the commits that a branch or a tag of the person's or of a plan reaches."""
    wanted = list(dict.fromkeys(commits))
    if not wanted:
        return set()
    there = refs(git, "refs/heads", "refs/tags", "refs/remotes")
    known = {found for name, found in there.items() if not name.startswith(f"{WORK}/")}
    missing = set(git.run("rev-list", "--stdin", stdin=beyond(wanted, known)).stdout.decode().split())
    return {commit for commit in wanted if commit not in missing}


def _refs(git: Git, pattern: str) -> list[_Ref]:
    fields = ("refname", "objectname", "tree", "parent", "committerdate:iso-strict", "subject")
    listing = "%00".join(f"%({field})" for field in fields)
    output = text(git.run("for-each-ref", f"--format={listing}", pattern).stdout)
    found = []
    for line in output.split("\n"):
        if line.count("\0") == len(fields) - 1:
            name, commit, tree, parents, at, subject = line.split("\0")
            found.append(_Ref(name, commit, tree, tuple(parents.split()), _moment(at), subject))
    return found


def _moment(text: str) -> str:
    """A time as git says it, in UTC; agents date their commits as they like."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return datetime.fromtimestamp(0, UTC).isoformat()


def _base(git: Git, ref: _Ref, bases: dict[str, str]) -> str:
    """What a commit is best compared with: its parent, or for a series where its worktree began."""
    run, _, label = ref.name.removeprefix(f"{ARCHIVE}/").partition("/")
    stem, kind = parts(label)
    if kind in ("head", "branch", "lost", "was"):
        began = re.compile(re.escape(f"{BASES}/{run}/{stem}") + r"(\.\d+)?")
        for name, commit in bases.items():
            if began.fullmatch(name):
                process = git.run("merge-base", commit, ref.commit, accept=(0, 1))
                if process.stdout:
                    return process.stdout.decode().split()[0]
    return ref.parents[0] if ref.parents else ""


def _changes(git: Git, pairs: Sequence[tuple[str, str]]) -> list[tuple[tuple[str, ...], int]]:
    """For each commit and tree, the paths that differ and how many lines; all by one command."""
    if not pairs:
        return []
    trees = _trees(git, [commit for commit, _ in pairs])
    asked = lines(f"{old} {new}" for old, (_, new) in zip(trees, pairs, strict=True))
    output = git.run("diff-tree", "--stdin", "-r", "-z", "--numstat", *PLAIN, stdin=asked).stdout
    found: list[tuple[tuple[str, ...], int]] = []
    at = 0
    while header := HEADER.match(output, at):
        at, files, total = header.end(), [], 0
        while at < len(output) and not HEADER.match(output, at):
            record, _, _ = output[at:].partition(b"\0")
            at += len(record) + 1
            path, count = counted(record)
            files.append(path)
            total += count
        found.append((tuple(sorted(files)), total))
    return found


def _trees(git: Git, commits: Sequence[str]) -> list[str]:
    """The trees of commits, in order; the empty tree for none."""
    empty = git.run("mktree", stdin=b"").stdout.decode().strip()
    asked = lines(f"{commit}^{{tree}}" for commit in commits if commit)
    answers = iter(
        git.run("cat-file", "--batch-check=%(objectname)", stdin=asked).stdout.decode().split("\n")
    )
    return [next(answers).split()[0] if commit else empty for commit in commits]
