"""What evidence costs beside the bare test command; the fresh checkout is shown apart."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import Figure, at_most, progress, ratio, rounds

from planforge.kernel.objects import Objects
from planforge.workspace import sandbox
from planforge.workspace.checks import Check, Report, execution
from planforge.workspace.git import Git
from planforge.workspace.worktrees import Worktrees

LIMIT = 1.10
CASES = """\
import time
import unittest


class Case{number}(unittest.TestCase):
    def work(self):
        ends = time.process_time() + {seconds}
        while time.process_time() < ends:
            pass

{methods}
"""
METHOD = "    def test_{number}(self):\n        self.work()\n"


def figures(directory: Path, *, quick: bool) -> Iterator[Figure]:
    """The tests of one project, bare and as evidence, in the same checkout."""
    progress("evidence over the bare test command")
    with tempfile.TemporaryDirectory(dir=directory) as made:
        place = Path(made)
        project = _project(place / "project", files=5 if quick else 40)
        measured = _Measured(place, project)
        taken = rounds(
            {"bare": measured.bare, "evidence": measured.evidence, "confined": measured.confined},
            3 if quick else 15,
        )
        checkouts = [measured.checkout_seconds() for _ in range(3 if quick else 10)]
    median = {name: sorted(times)[len(times) // 2] for name, times in taken.items()}
    note = ", ".join(f"{name} {seconds * 1000:.0f} ms" for name, seconds in median.items())
    yield at_most("evidence / bare test command", ratio(taken["evidence"], taken["bare"]), LIMIT, note)
    level = sandbox.strongest().value
    what = f"evidence in {level} / bare test command"
    yield at_most(what, ratio(taken["confined"], taken["bare"]), LIMIT)
    checkout = sorted(checkouts)[len(checkouts) // 2]
    share = checkout / median["bare"]
    yield Figure(
        "fresh checkout / bare test command", share, note=f"{checkout * 1000:.0f} ms, apart from the above"
    )


def _project(root: Path, *, files: int) -> Path:
    """A repository whose tests take about two seconds, or a quarter of that."""
    (root / "tests").mkdir(parents=True)
    (root / "tests" / "__init__.py").touch()
    methods = "\n".join(METHOD.format(number=number) for number in range(10))
    for number in range(files):
        text = CASES.format(number=number, seconds=0.005, methods=methods)
        (root / "tests" / f"test_{number}.py").write_text(text)
    words = ("-c", "user.name=x", "-c", "user.email=x@localhost")
    for arguments in (("init", "--quiet"), ("add", "--all"), (*words, "commit", "--quiet", "--message=x")):
        subprocess.run(["git", *arguments], cwd=root, check=True)
    return root


class _Measured:
    """One checkout in which the same tests run in several ways."""

    def __init__(self, place: Path, project: Path) -> None:
        self._git = Git.find(project)
        self._head = self._git.commit_of("HEAD")
        self._worktrees = Worktrees(self._git, place / "state", "bench")
        self._checkout = self._worktrees.make_fresh(self._head)
        self._objects = Objects(place / "objects")
        words = ("-m", "unittest", "discover", "--start-directory", "tests", "--top-level-directory", ".")
        visible = (sys.prefix, sys.base_prefix)
        self._check = Check(command=(sys.executable, *words), report=Report.UNITTEST, visible=visible)

    def bare(self) -> float:
        started = time.perf_counter()
        # Its output is taken, as it is by whoever reads it.
        subprocess.run(self._check.command, cwd=self._checkout, check=True, capture_output=True)
        return time.perf_counter() - started

    def evidence(self) -> float:
        return self._gathered()

    def confined(self) -> float:
        policy = sandbox.verifying(self._checkout, repository=self._git.top)
        return self._gathered(policy, sandbox.strongest())

    def _gathered(self, policy: sandbox.Policy | None = None, level: sandbox.Level | None = None) -> float:
        started = time.perf_counter()
        found = asyncio.run(
            execution.run_all(
                {"tests": self._check},
                self._checkout,
                self._head,
                self._git.tree_of(self._head),
                self._objects,
                policy=policy,
                level=level,
            )
        )
        taken = time.perf_counter() - started
        if found.outcome.value != "pass":
            raise RuntimeError(f"the tests of the benchmark say {found.reason}")
        return taken

    def checkout_seconds(self) -> float:
        started = time.perf_counter()
        made = self._worktrees.make_fresh(self._head)
        taken = time.perf_counter() - started
        self._worktrees.discard(made)
        return taken
