"""
One generated history: what agents, people and Planforge do to a repository, with crashes in between.

The history knows which trees there were when attempts ended, because it computed
them itself, and which commits the agents had made that git still knew of then. At
the end all of them must be reachable from a ref, and everything that a ref reaches
must be there.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from planforge.workspace.archive import ARCHIVE
from planforge.workspace.git import Git
from planforge.workspace.worktrees import Worktrees, cleanup
from planforge.workspace.worktrees.cleanup import Standing, Wishes
from repositories import DATE, ENVIRONMENT, git
from soak.agents import Agents
from soak.crashing import Crash, Manner, Outcome, perform
from soak.hashing import tree_of
from soak.people import People
from soak.scene import NESTED, RUN, Attempt

NAMES = ("phase-1-1", "phase-1-2", "plan")
KEPT_LOG = b"kept.log"
TYPICAL = {"open": 45, "commit": 33, "close": 60, "sweep": 80, "fresh": 26, "rebase": 18, "cleanup": 70}
"""About how many boundaries each of our operations crosses, so that crashes fall all over them."""

CRASHING = 0.6
"""How many of our operations are to be killed; some end before it comes to that."""

HEX = re.compile("[0-9a-f]{40}")


class Violation(Exception):
    """Something was lost."""


class History(Agents, People):
    """One history, from its seed."""

    def __init__(self, seed: int, origin: Path, directory: Path, length: int = 12) -> None:
        super().__init__(seed, origin, directory)
        self._length = length
        self._git = Git.find(self._place)
        self._git.settings()  # which prepares what the processes that are killed then share
        self._commits: dict[str, str] = {}
        """The commits that must be reachable in the end, and where they were."""
        self._ending: dict[str, str] = {}
        """The commits of attempts that are just being put away."""
        self._kept: list[str] = []
        self.crashes = 0

    # Telling it

    def tell(self) -> None:
        """Do everything, then recover as a second process would, then look whether anything is missing."""
        self._open(NAMES[0])
        for _ in range(self._length):
            self._step()
        self._trace("recover")
        self._end_all()
        self._ours("sweep", lambda: self._worktrees().sweep(), crash=False)
        self._attempts.clear()
        self._put_right = True
        self._hostile()
        self._check()

    def _step(self) -> None:
        live = [name for name, attempt in self._attempts.items() if not attempt.frozen and attempt.there]
        doing = self._random.random()
        if live and doing < 0.5:
            self._agent(self._random.choice(live))
        elif doing < 0.6:
            self._hostile()
        elif not live and doing < 0.9:
            self._some_open()
        else:
            acts = {
                self._some_open: 6,
                self._commit: 6,
                self._close: 6,
                self._sweep: 1,
                self._fresh: 1,
                self._rebase: 2,
                self._cleanup: 2,
            }
            self._random.choices(list(acts), list(acts.values()))[0]()

    # What we do, in processes that may be killed

    def _worktrees(self) -> Worktrees:
        return Worktrees(self._git, self._state, RUN)

    def _ours(
        self, kind: str, action: Callable[[], object], *, crash: bool = True, may_fail: bool = False
    ) -> bool:
        """Do something of ours; whether it was done to the end."""
        planned = self._crash(kind) if crash and self._random.random() < CRASHING else None
        outcome: Outcome = perform(action, planned, self._directory / "notes")
        if planned and planned.manner is Manner.WITHOUT_GIT and outcome.word == "killed":
            time.sleep(0.02)  # its git goes on for a moment
        self._trace(f"{kind}: {outcome.word} {planned or ''} {outcome.said}".rstrip())
        # Until we could keep them, commits that only a reflog names are at the mercy of others.
        ending, self._ending = self._ending, {}
        if outcome.word == "done":
            self._commits = ending | self._commits
        if outcome.word == "killed":
            self.crashes += 1
            # The one lock that may be anybody's: git tells the person to remove it.
            (self._place / ".git" / "packed-refs.lock").unlink(missing_ok=True)
        elif outcome.word != "done" and not (may_fail and outcome.word == "refused"):
            raise Violation(f"`{kind}` {outcome.word}: {outcome.said}")
        return outcome.word == "done"

    def _crash(self, kind: str) -> Crash:
        manner = self._random.choices(list(Manner), [6, 3, 1])[0]
        return Crash(
            self._random.randint(1, TYPICAL[kind]), manner, self._random.choice((0.0, 0.001, 0.002, 0.004))
        )

    def _some_open(self) -> None:
        self._open(self._random.choice(NAMES))

    def _open(self, name: str) -> None:
        base = git(self._place, "rev-parse", self._random.choice(["HEAD", "HEAD", *self._kept[-3:]]))
        listed = git(self._place, "ls-tree", "-r", base).splitlines()
        if any(line.startswith("160000") for line in listed):  # which the trees of our own do not know
            return
        self._ends(name)
        if self._ours("open", lambda: self._worktrees().open(name, base), crash=bool(self._attempts)):
            path = self._path(name)
            entry = Path(git(path, "rev-parse", "--absolute-git-dir"))
            tracked = frozenset({KEPT_LOG} if any(line.endswith("\tkept.log") for line in listed) else ())
            self._attempts[name] = Attempt(base, entry, tracked)
            branch = git(path, "symbolic-ref", "HEAD")
            if not branch.startswith(f"refs/heads/planforge/work/{RUN}/") or tree_of(path, tracked) != git(
                self._place, "rev-parse", f"{base}^{{tree}}"
            ):
                raise Violation(f"`{name}` was opened wrongly on {branch}")
        elif name in self._attempts:
            self._attempts[name].frozen = True

    def _commit(self) -> None:
        if not self._attempts:
            return
        name = self._random.choice(list(self._attempts))
        attempt = self._attempts[name]
        self._ends(name, goes=False)
        label = f"{name}.turn-{self._random.randint(1, 2)}"
        proper = not attempt.frozen and attempt.there

        def action() -> None:
            self._worktrees().commit(name, attempt.base, "ours\n", label, DATE)

        if self._ours("commit", action, may_fail=not proper):
            found = git(self._place, "for-each-ref", "--format=%(objectname)", f"{ARCHIVE}/{RUN}").split()
            self._kept += [kept for kept in found if kept not in self._kept]
        elif proper:
            attempt.frozen = True

    def _close(self) -> None:
        name = self._random.choice([*self._attempts] or NAMES)
        self._ends(name)
        self._after(self._ours("close", lambda: self._worktrees().close(name)), [name])

    def _sweep(self) -> None:
        self._end_all()
        self._after(self._ours("sweep", lambda: self._worktrees().sweep()), list(self._attempts))

    def _fresh(self) -> None:
        def action() -> None:
            worktrees = self._worktrees()
            worktrees.discard(worktrees.make_fresh("HEAD"))
            worktrees.discard_checks()

        self._ours("fresh", action)

    def _rebase(self) -> None:
        if self._kept:
            one = self._random.choice(self._kept)
            # A change that can be carried over has one parent, and is not from a repository inside.
            related = set(git(self._place, "rev-list", "--max-parents=0", one, "main").split())
            if len(related) == len(git(self._place, "rev-parse", f"{one}^@").split()) == 1:
                self._ours("rebase", lambda: self._worktrees().rebase(one, "main", "moved", DATE))

    def _cleanup(self) -> None:
        standing = self._random.choice(list(Standing))
        forced = self._random.random() < 0.5
        later = datetime.now(UTC) + timedelta(days=36_500)
        wishes = Wishes(before=later if self._random.random() < 0.5 else None, interrupted=forced)
        if standing is Standing.ENDED or (standing is Standing.INTERRUPTED and forced):
            self._end_all()

        def action() -> None:
            for item in cleanup.survey(self._git, self._state, lambda _: standing, lambda _: None, wishes):
                if item.goes:
                    cleanup.remove(self._git, self._state, item, wishes)

        done = self._ours("cleanup", action)
        if wishes.before is not None and standing is Standing.ENDED:
            self._release()
        if standing is Standing.ENDED or (standing is Standing.INTERRUPTED and forced):
            self._after(done, list(self._attempts))
        self._kept = [kept for kept in self._kept if self._exists(kept)]

    def _release(self) -> None:
        """Work that is on a branch or a tag need not be kept by us, and after a cleanup is not."""
        lines = git(self._place, "log", "--branches", "--tags", "--format=%T %H").split()
        for found in lines:
            self._trees.pop(found, None)
            self._commits.pop(found, None)

    def _after(self, done: bool, names: list[str]) -> None:
        for name in names:
            if done:
                self._attempts.pop(name, None)
            elif name in self._attempts:
                self._attempts[name].frozen = True

    # What is expected

    def _end_all(self) -> None:
        for name in list(self._attempts):
            self._ends(name)

    def _ends(self, name: str, *, goes: bool = True) -> None:
        """The attempt is over: what is there now must never be lost, nor its commits if the worktree goes."""
        attempt = self._attempts.get(name)
        if attempt is None:
            return
        path = self._path(name)
        if not attempt.frozen and attempt.there and path.is_dir():
            tree = tree_of(path, attempt.tracked)
            attempt.number += 1
            self._trees.setdefault(tree, f"{name} at step {len(self.trace)}")
        known = self._known_to_git(attempt) if goes and attempt.made else set()
        if goes and not attempt.frozen and attempt.there:
            known |= (planted := self._planted(path))
            attempt.made |= planted
        for made in attempt.made & known:
            self._ending.setdefault(made, f"{name} at step {len(self.trace)}")

    def _planted(self, path: Path) -> set[str]:
        """The commits that repositories inside a worktree are at."""
        found = set()
        for inner in (path, *(path / name for name in NESTED)):
            if (inner / ".git").is_dir() and not any(at.is_symlink() for at in (inner, inner.parent)):
                with suppress(AssertionError):  # it has no commit
                    found.add(git(inner, "rev-parse", "--verify", "HEAD"))
        return found

    def _known_to_git(self, attempt: Attempt) -> set[str]:
        """The commits that git can still find for an attempt, by a ref or by its reflog."""
        tips = []
        for file in (attempt.entry / "logs" / "HEAD", attempt.entry / "HEAD", attempt.entry / "ORIG_HEAD"):
            with suppress(OSError):
                tips += HEX.findall(file.read_text())
        stash = self._place / ".git" / "logs" / "refs" / "stash"
        with suppress(OSError):
            tips += HEX.findall(stash.read_text())
        there = [tip for tip in dict.fromkeys(tips) if tip.strip("0") and self._exists(tip)]
        # Not `--all`: that stumbles over the HEAD of a worktree that git was killed while making.
        refs = git(self._place, "for-each-ref", "--format=%(objectname)").split()
        return set(git(self._place, "rev-list", *refs, *there).split())

    def _exists(self, name: str) -> bool:
        query = ["git", "cat-file", "-e", f"{name}^{{commit}}"]
        return not subprocess.run(
            query, cwd=self._place, env=ENVIRONMENT, capture_output=True, check=False
        ).returncode

    # Looking

    def _check(self) -> None:
        trees = set(git(self._place, "log", "--all", "--format=%T").split())
        commits = set(git(self._place, "rev-list", "--all").split())
        git(self._place, "rev-list", "--objects", "--all", "--quiet")
        for tree, what in self._trees.items():
            if tree not in trees:
                raise Violation(f"tree {tree} of {what} is not reachable")
        for made, what in self._commits.items():
            if made not in commits:
                raise Violation(f"commit {made} of {what} is not reachable")
        for aside, tree in self._aside.items():
            if tree_of(aside, frozenset({KEPT_LOG})) != tree and tree_of(aside) != tree:
                raise Violation(f"{aside} was changed")
        self._check_nothing_is_left()

    def _check_nothing_is_left(self) -> None:
        if (self._state / "worktrees" / RUN).exists():
            left = [path.name for path in (self._state / "worktrees" / RUN).iterdir()]
            raise Violation(f"the sweep left {left}")
        listed = git(self._place, "worktree", "list", "--porcelain").splitlines()
        ours = [line for line in listed if line.startswith("worktree ") and ".planforge" in line]
        if ours:
            raise Violation(f"git still knows {ours}")
        if git(self._place, "status", "--porcelain") not in ("", "?? .planforge/"):
            raise Violation("the person's checkout was changed")
