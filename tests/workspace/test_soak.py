"""
Generated histories with real crashes: nothing that was there when an attempt ended is ever lost.

A handful here; `python -m soak` in `tests/` tells ten thousand.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from repositories import git, repository, write
from soak.crashing import Manner
from soak.hashing import tree_of
from tries import tries

TESTS = Path(__file__).parents[1]


def soak(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "soak", "--jobs", "1", *options],
        env=os.environ | {"PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.mark.dear
def test_some_histories_lose_nothing() -> None:
    number = tries(60)
    told = soak("--sequences", str(number), "--first", "1", "--length", "9")
    assert told.returncode == 0, told.stderr
    assert told.stderr.splitlines()[-1] == f"{number} histories told, nothing lost"


@pytest.mark.dear
def test_a_soak_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    done = tmp_path / "done"
    for sequences, told in ((1, "1 histories"), (2, "1 histories"), (2, "0 histories")):
        words = ("--length", "2", "--sequences", str(sequences), "--done", str(done))
        process = soak(*words)
        assert process.returncode == 0, process.stderr
        assert process.stderr.startswith(told)
    assert sorted(done.read_text().split()) == ["1", "2"]


def test_the_tree_that_the_histories_compute_themselves_is_what_git_says(tmp_path: Path) -> None:
    place = repository(tmp_path / "place", {".gitignore": "*.log\nbuild/\n", "a.py": "a\n"})
    write(place, {"a b/ü.txt": "x\n", "a.b": "y\n", "a/z": "z\n", "x.log": "noise\n", "build/out": "noise\n"})
    write(place, {"line\nbreak": "", "bad\udcff": "bad\n", "docs/build": "a file\n", "kept.log": "kept\n"})
    (place / "a.py").chmod(0o755)
    (place / "link").symlink_to("a")
    (place / "empty").mkdir()
    git(place, "add", "--force", "kept.log")
    git(place, "add", "--all")
    assert tree_of(place, frozenset({b"kept.log"})) == git(place, "write-tree")


KILLING = """
import sys
from pathlib import Path
from planforge.workspace.git import Git
from planforge.workspace.worktrees import Worktrees
from soak.crashing import Crash, Manner, perform

place, manner = Path(sys.argv[1]), Manner(sys.argv[2])
worktrees = Worktrees(Git.find(place), place / ".planforge", "run-1")
for at in (1, 5, 10, 15, 10_000):
    crash = Crash(at, manner, 0.0)
    print(perform(lambda: worktrees.open("a", "HEAD"), crash, place / ".git" / "notes").word)
"""


@pytest.mark.parametrize("manner", list(Manner))
def test_a_process_is_really_killed_where_it_was_to_be(tmp_path: Path, manner: Manner) -> None:
    place = repository(tmp_path / "place")
    told = subprocess.run(
        [sys.executable, "-c", KILLING, str(place), manner.value],
        env=os.environ | {"PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert told.stdout.split() == ["killed"] * 4 + ["done"]
