"""
Moves the branches that work lands on, and no other.

A landing is a fast-forward by compare-and-swap: the branch goes from the commit
it was checked against to a child of it, or it does not move at all. A branch
that is checked out somewhere is not moved under the person's feet: what would
land on it lands on `planforge/landed/<branch>` beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from planforge.actions import Action, Advice
from planforge.errors import GitFailed
from planforge.kernel.effects import Landing, Restarted, Target, Tip
from planforge.workspace.git import Git, said_by
from planforge.workspace.landing.merges import beyond, changed, is_ancestor, keep
from planforge.workspace.landing.places import using

PREFIX = "planforge/"
BESIDE = f"{PREFIX}landed/"
TRIES = 5


# A plan's own branch


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
    if found == commit or is_ancestor(git, commit, found):
        return Landing(landed=True, tip=found)
    _require_built_on(git, commit, expected)
    _require_free(git, branch)
    if found == expected and git.move_ref(ref, commit, expected):
        return Landing(landed=True, tip=commit)
    return Landing(landed=False, tip=git.ref(ref) or expected)


def holds(git: Git, branch: str, commit: str) -> bool:
    """Whether `commit` is on `branch`."""
    tip = git.ref(_ref(branch))
    return tip is not None and is_ancestor(git, commit, tip)


def keeps(git: Git, branch: str, changes: Sequence[tuple[str, str]]) -> bool:
    """
    Whether the first of these changes is on `branch`, and its files are as it or a later one left them.

    Each is a commit with its parent before it. A person's commit may have taken back what an older one did.
    """
    tip = git.ref(_ref(branch))
    there = [] if tip is None else [each for each in changes if is_ancestor(git, each[1], tip)]
    if tip is None or there[:1] != list(changes[:1]):
        return False
    own = changed(git, *there[0])
    left = {path: after for before, after in there for path in own & changed(git, before, after)}
    return not any(
        left[path] == commit for commit in {*left.values()} for path in own & changed(git, commit, tip)
    )


def _ref(branch: str) -> str:
    if not branch.startswith(PREFIX):
        raise GitFailed(f"`{branch}` is not a branch of Planforge's")
    return f"refs/heads/{branch}"


def _require_built_on(git: Git, commit: str, expected: str) -> None:
    if not is_ancestor(git, expected, commit):
        raise GitFailed(f"`{commit[:12]}` is not built on `{expected[:12]}`, so it cannot be a fast-forward")


# The person's branch, and the one beside it


def beside(branch: str) -> str:
    """The branch that things land on while `branch` is checked out."""
    return f"{BESIDE}{branch}"


class Move(NamedTuple):
    """A branch that is to be moved forward."""

    branch: str
    new: str
    old: str | None


def open_target(git: Git, branch: str, ours: Collection[str]) -> Target:
    """
    Where plans land for `branch` now; `ours` are the commits that Planforge made.

    The branch beside it is made, or moved forward, as long as nothing on it is lost. What has landed there
    goes to the branch itself as soon as that is checked out nowhere.
    """
    for _ in range(TRIES):
        target, move = find_target(git, branch, ours)
        if move is None:
            return target
        _require_free(git, move.branch)
        git.move_ref(f"refs/heads/{move.branch}", move.new, move.old)
    raise GitFailed(f"`{branch}` keeps moving", Advice("run {} again when it is quiet", Action("land")))


def find_target(git: Git, branch: str, ours: Collection[str]) -> tuple[Target, Move | None]:
    """Where plans land for `branch`, and what has to be moved first, if anything."""
    at, tip = _at(git, branch), git.ref(f"refs/heads/{beside(branch)}")
    places = using(git, f"refs/heads/{branch}")
    foreign = next((commit for commit in beyond(git, tip, at) if commit not in ours), "") if tip else ""
    landing, now = beside(branch), tip or at
    if not places:
        ahead = tip is not None and not foreign and is_ancestor(git, at, tip)
        landing, now, foreign = branch, tip if tip and ahead else at, ""
        move = Move(branch, now, at) if now != at else None
    elif is_ancestor(git, now, at):
        now, move = at, Move(landing, at, tip) if tip != at else None
    else:
        move = None
    target = Target(
        branch=branch,
        landing=landing,
        tip=now,
        tree=git.tree_of(now),
        branch_at=at,
        missing=not is_ancestor(git, at, now),
        foreign=foreign,
        checkout=str(places[0].path) if places else "",
    )
    return target, move


def advance(git: Git, branch: str, branch_at: str, landing: str, commit: str, expected: str) -> Landing:
    """
    Move `landing` from `expected` to `commit` if `branch` is at `branch_at` still.

    Both are looked at in one transaction of git's. Asking again after a crash finds it done.
    """
    found = _at(git, landing)
    if found == commit or is_ancestor(git, commit, found):
        return Landing(landed=True, tip=found)
    _require_built_on(git, commit, expected)
    if landing != branch:
        _require_free(git, landing)
    elif using(git, f"refs/heads/{branch}"):
        return Landing(landed=False, tip=found)  # somebody has checked it out meanwhile
    moves = f"update refs/heads/{landing} {commit} {expected}\n"
    if landing != branch:
        moves = f"verify refs/heads/{branch} {branch_at}\n{moves}"
    process = git.run("update-ref", "--no-deref", "--stdin", stdin=moves.encode(), accept=(0, 1, 128))
    if process.returncode == 0:
        return Landing(landed=True, tip=commit)
    now = _at(git, landing)
    if now == expected and _at(git, branch) == branch_at:
        raise GitFailed(f"cannot move `{landing}`: {said_by(process)}")
    return Landing(landed=False, tip=now)


def restart(git: Git, run: str, landing: str, expected: str, to: str) -> Restarted:
    """Keep what is on `landing`, a branch of ours, and begin it again at `to`."""
    if not landing.startswith(BESIDE):
        raise GitFailed(f"`{landing}` is not a branch of Planforge's")
    _require_free(git, landing)
    archive = keep(git, run, "landed", expected)
    git.move_ref(f"refs/heads/{landing}", to, expected)
    return Restarted(tip=_at(git, landing), archive=archive)


def _at(git: Git, branch: str) -> str:
    found = git.ref(f"refs/heads/{branch}")
    if found is None:
        raise GitFailed(f"there is no branch `{branch}`")
    return found


def _require_free(git: Git, branch: str) -> None:
    if places := using(git, f"refs/heads/{branch}"):
        hint = "switch that checkout to another branch"
        raise GitFailed(f"`{branch}` is checked out in `{places[0].path}`", hint)
