"""
Moves a plan's branch, and no other.

A landing is a fast-forward by compare-and-swap: the branch goes from the commit
it was checked against to a child of it, or it does not move at all. A branch
that is checked out somewhere is not moved under the person's feet.
"""

from __future__ import annotations

from planforge.errors import GitFailed
from planforge.kernel.effects import Landing, Tip
from planforge.workspace.git import Git

PREFIX = "planforge/"


def open_branch(git: Git, branch: str, commit: str) -> Tip:
    """Make `branch` at `commit` unless it exists; say where it points."""
    ref = _ref(branch)
    found = git.ref(ref)
    if found is None and git.move_ref(ref, git.commit_of(commit), None):
        found = git.ref(ref)
    if found is None:
        raise GitFailed(f"cannot make the branch `{branch}`")
    return Tip(commit=found)


def land(git: Git, branch: str, commit: str, expected: str) -> Landing:
    """Move `branch` from `expected` to `commit`; asking again after a crash finds it done."""
    ref = _ref(branch)
    found = git.ref(ref)
    if found is None:
        raise GitFailed(f"the branch `{branch}` is gone")
    if found == commit or _is_ancestor(git, commit, found):
        return Landing(landed=True, tip=found)
    if not _is_ancestor(git, expected, commit):
        raise GitFailed(f"`{commit[:12]}` is not built on `{expected[:12]}`, so it cannot be a fast-forward")
    if place := git.checked_out(ref):
        raise GitFailed(f"`{branch}` is checked out in `{place}`", "switch that checkout to another branch")
    if found == expected and git.move_ref(ref, commit, expected):
        return Landing(landed=True, tip=commit)
    return Landing(landed=False, tip=git.ref(ref) or expected)


def holds(git: Git, branch: str, commit: str) -> bool:
    """Whether `commit` is on `branch`."""
    tip = git.ref(_ref(branch))
    return tip is not None and _is_ancestor(git, commit, tip)


def _ref(branch: str) -> str:
    if not branch.startswith(PREFIX):
        raise GitFailed(f"`{branch}` is not a branch of Planforge's")
    return f"refs/heads/{branch}"


def _is_ancestor(git: Git, older: str, newer: str) -> bool:
    return git.run("merge-base", "--is-ancestor", older, newer, accept=(0, 1)).returncode == 0
