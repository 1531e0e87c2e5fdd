"""The way of one change through the workspace: worktree, commit, rebase, fresh checkout, landing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from planforge.kernel.effects import Checkout, Patch
from planforge.workspace.git import Git
from planforge.workspace.landing import branches
from planforge.workspace.landing.places import using
from planforge.workspace.worktrees import Worktrees
from repositories import DATE, write

RUN = "run-1"
BRANCH = "planforge/plan-1"


class Journey(msgspec.Struct, frozen=True, kw_only=True):
    """What came out of it."""

    git: Git
    start: Checkout
    untouched: str
    """The tree of the worktree before anybody edited it."""
    patch: Patch
    rebased: Patch
    fresh: dict[bytes, bytes]
    """What was in the fresh checkout of the rebased change: contents, and where links lead."""


def travel(place: Path, edit: Callable[[Path], None]) -> Journey:
    """Take what `edit` does in a worktree all the way, while somebody else lands another change."""
    git = Git.find(place)
    head = git.commit_of("HEAD")
    branches.open_branch(git, BRANCH, head)
    worktrees = Worktrees(git, place / ".planforge", RUN)
    start = worktrees.open("a", head)
    untouched = worktrees.tree("a")
    edit(worktrees.path("a"))
    patch = worktrees.commit("a", head, "an edit\n", "a", DATE)

    worktrees.open("b", head)
    write(worktrees.path("b"), {"of-somebody-else.txt": "else\n"})
    other = worktrees.commit("b", head, "another edit\n", "b", DATE)
    assert branches.land(git, BRANCH, other.commit, head).landed
    assert not branches.land(git, BRANCH, patch.commit, head).landed

    rebased = worktrees.rebase(patch.commit, other.commit, "c", DATE)
    assert rebased.conflicts == ()
    checkout = worktrees.make_fresh(rebased.commit)
    fresh = contents(checkout)
    worktrees.discard(checkout)
    assert branches.land(git, BRANCH, rebased.commit, other.commit).landed
    assert git.ref(f"refs/heads/{BRANCH}") == rebased.commit
    worktrees.sweep()
    return Journey(git=git, start=start, untouched=untouched, patch=patch, rebased=rebased, fresh=fresh)


def contents(checkout: Path) -> dict[bytes, bytes]:
    """What is in a directory, by path, without `.git`."""
    found = {}
    for path in checkout.rglob("*"):
        name = bytes(path.relative_to(checkout))
        if name != b".git" and (path.is_symlink() or path.is_file()):
            found[name] = bytes(path.readlink()) if path.is_symlink() else path.read_bytes()
    return found


def exercise(place: Path) -> None:
    """Call everything that the workspace does with git."""
    git = Git.find(place)
    head = git.commit_of("HEAD")
    assert git.has_commits()
    git.tree_of(head)
    git.identity()
    using(git, "refs/heads/main")
    for command in (("status", "--porcelain"), ("diff",), ("diff-files",), ("diff-index", "HEAD")):
        git.run(*command, work_tree=place)
    for command in (("diff", head), ("log", "-p"), ("show", head), ("archive", head)):
        git.run(*command)
    git.line("rev-parse", "HEAD")
    made = git.commit_tree(git.tree_of(head), [head], "made\n\nTrailer: value\n", DATE)
    git.move_ref("refs/planforge/test", made, None)
    git.ref("refs/planforge/test")
    worktrees = Worktrees(git, place / ".planforge", "run-1")
    worktrees.open("a", head)
    write(worktrees.path("a"), {"README.md": "theirs\n", "new": "new\n"})
    first = worktrees.commit("a", head, "theirs\n", "a", DATE)
    worktrees.open("b", head)
    write(worktrees.path("b"), {"app.py": "print('bye')\n"})
    second = worktrees.commit("b", head, "ours\n", "b", DATE)
    assert not worktrees.rebase(second.commit, first.commit, "c", DATE).conflicts
    write(worktrees.path("b"), {"README.md": "quite another thing\n"})
    third = worktrees.commit("b", head, "ours\n", "d", DATE)
    assert worktrees.rebase(third.commit, first.commit, "e", DATE).conflicts == ("README.md",)
    worktrees.discard(worktrees.make_fresh(first.commit))
    worktrees.sweep()
    branches.open_branch(git, "planforge/x", head)
    assert branches.land(git, "planforge/x", first.commit, head).landed
    assert branches.holds(git, "planforge/x", first.commit)
