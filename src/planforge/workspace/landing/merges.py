"""
Merges without a work tree, and what would conflict before anybody merges it.

A merge is a tree that git makes of two commits and a commit of ours with both as
its parents, kept under `refs/planforge/archive/` whatever becomes of it. Nothing
here moves a branch or touches a file of the person's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from planforge.kernel.effects import CommitFacts, Merged, Probed
from planforge.kernel.events import ConflictedPath, ForeseenConflict
from planforge.workspace.archive import Archive
from planforge.workspace.git import Git, objects
from planforge.workspace.worktrees import changing

MERGING = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "merge.conflictStyle",
    "GIT_CONFIG_VALUE_0": "diff3",
}
"""A conflict shows what both sides began with."""

MOST_MERGES = 500
"""How many pairs one probe merges."""

SIDES = {b"1": "base", b"2": "ours", b"3": "theirs"}


class Attempted(NamedTuple):
    """What git made of two commits."""

    tree: str
    clean: bool
    conflicts: tuple[ConflictedPath, ...]


class Work(NamedTuple):
    """Something that has not landed, by the name it goes by."""

    name: str
    commit: str


def attempt(git: Git, ours: str, theirs: str, base: str = "") -> Attempted:
    """Merge two commits into a tree. `base` replaces the merge base that git would choose."""
    if base:
        # `--merge-base` came with git 2.40; two commits that have nothing but it in common do as well.
        ours, theirs = (_grafted(git, commit, base) for commit in (ours, theirs))
    process = git.run(
        *("merge-tree", "--write-tree", "--no-messages", "-z", ours, theirs), extra=MERGING, accept=(0, 1)
    )
    tree, *entries = process.stdout.split(b"\0")
    return Attempted(tree.decode(), process.returncode == 0, _conflicts(entries))


def merge(
    git: Git, ours: str, theirs: str, *, message: str, run: str, label: str, at: str, base: str = ""
) -> Merged:
    """Merge two commits and keep the result. The same arguments give the same commit."""
    tree, clean, conflicts = attempt(git, ours, theirs, base)
    commit = git.commit_tree(tree, [ours, theirs], message, at)
    archive = keep(git, run, label if clean else f"{label}.conflict", commit)
    return Merged(commit=commit, tree=tree, clean=clean, conflicts=conflicts, archive=archive)


def keep(git: Git, run: str, label: str, commit: str) -> str:
    """Keep `commit` among what is kept of a run, and say under which ref."""
    with changing(git):
        (ref,) = Archive(git, run).keep([(label, commit)])
    return ref


def commits(git: Git, since: Sequence[str], until: str) -> tuple[str, ...]:
    """What came to `until`, one first parent after the other, that none of `since` has; the oldest first."""
    output = git.run("rev-list", "--first-parent", "--reverse", until, *(f"^{commit}" for commit in since))
    return tuple(output.stdout.decode().split())


def beyond(git: Git, tip: str, *others: str) -> tuple[str, ...]:
    """All commits that `tip` has and none of `others`, the newest first."""
    output = git.run("rev-list", "--topo-order", tip, *(f"^{commit}" for commit in others))
    return tuple(output.stdout.decode().split())


def facts(git: Git, commit: str) -> CommitFacts:
    """What a commit says of itself."""
    trailers = (
        f"%(trailers:key={key},valueonly,separator=%x2C)" for key in ("Planforge-Plan", "Planforge-Step")
    )
    form = "%x00".join(("%P", "%s", "%an", *trailers))
    output = git.run("show", "--no-patch", "--no-show-signature", f"--format={form}", commit).stdout
    parents, subject, author, plan, step = output.decode("utf-8", "replace").rstrip("\n").split("\0")[:5]
    named, _, known = step.partition(",")[0].strip().rpartition("/")
    return CommitFacts(
        parents=tuple(parents.split()),
        subject=subject,
        author=author,
        plan=plan.partition(",")[0].strip() or named,
        step=known,
    )


def is_ancestor(git: Git, older: str, newer: str) -> bool:
    """Whether `newer` is `older` or was built on it."""
    return git.run("merge-base", "--is-ancestor", older, newer, accept=(0, 1)).returncode == 0


def changed(git: Git, old: str, new: str) -> frozenset[str]:
    """The paths that differ between two commits."""
    return frozenset(objects.text(change.path) for change in objects.differences(git, old, new))


def probe(git: Git, branch: str, onto: str, items: Sequence[Work], most: int = MOST_MERGES) -> Probed:
    """
    Which of `items` conflict with `onto` or with each other.

    Only pairs that change a path in common are merged, so most of them cost nothing.
    """
    own = {item.name: _own(git, item.commit, onto) for item in items}
    touched = {name: paths for name, paths in own.items() if paths}
    pairs = list(_pairs(git, branch, onto, [item for item in items if item.name in touched], touched))
    conflicts = []
    for one, other in pairs[:most]:
        merged = attempt(git, one.commit, other.commit)
        if not merged.clean:
            paths = tuple(conflict.path for conflict in merged.conflicts)
            conflicts.append(ForeseenConflict(one=one.name, other=other.name, paths=paths))
    return Probed(
        onto=onto,
        items=tuple(item.name for item in items),
        conflicts=tuple(conflicts),
        merges=min(len(pairs), most),
        left_out=max(len(pairs) - most, 0),
    )


def _pairs(
    git: Git, branch: str, onto: str, items: Sequence[Work], touched: Mapping[str, frozenset[str]]
) -> Iterator[tuple[Work, Work]]:
    """The pairs that change a path in common and where neither is built on the other."""
    for item in items:
        base = _base(git, item.commit, onto)
        if base and base != onto and _meet(touched[item.name], changed(git, base, onto)):
            yield item, Work(branch, onto)
    for one, other in combinations(items, 2):
        if _meet(touched[one.name], touched[other.name]) and not _are_related(git, one, other):
            yield one, other


def _are_related(git: Git, one: Work, other: Work) -> bool:
    base = _base(git, one.commit, other.commit)
    return base is None or base in (one.commit, other.commit)


def _own(git: Git, commit: str, onto: str) -> frozenset[str]:
    """What a commit changes against what it has in common with `onto`; nothing if that is nothing."""
    base = _base(git, commit, onto)
    return changed(git, base, commit) if base and base != commit else frozenset()


def _base(git: Git, one: str, other: str) -> str | None:
    found = git.run("merge-base", one, other, accept=(0, 1)).stdout.decode().split()
    return found[0] if found else None


def _meet(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether a path is in both, or is a file in one and a directory in the other."""
    return bool(one & other or one & _above(other) or _above(one) & other)


def _above(paths: Iterable[str]) -> frozenset[str]:
    return frozenset(
        path[:at] for path in paths for at, character in enumerate(path) if character == "/" and at
    )


def _grafted(git: Git, commit: str, base: str) -> str:
    """A commit with the files of `commit` and no other parent than `base`."""
    return git.commit_tree(git.tree_of(commit), [base], "\n", "1970-01-01T00:00:00+00:00")


def _conflicts(entries: Iterable[bytes]) -> tuple[ConflictedPath, ...]:
    """Git's list of modes, objects, sides and paths, a line for each side, as one entry for each path."""
    found: dict[str, dict[str, str]] = {}
    for entry in filter(None, entries):
        about, _, path = entry.partition(b"\t")
        _, blob, side = about.split()
        found.setdefault(objects.text(path), {})[SIDES[side]] = blob.decode()
    return tuple(ConflictedPath(path=path, **sides) for path, sides in sorted(found.items()))
