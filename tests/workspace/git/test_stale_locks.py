"""Locks that a git left behind, with owners that live, that died, and that nobody can tell."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from planforge.workspace.git import Git, stale_locks
from planforge.workspace.worktrees import Worktrees, changing
from repositories import ENVIRONMENT, git, repository

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc")

BEFORE_THE_START = 1_000_000_000
NAMES = [
    *("index", "HEAD", "packed-refs", "config", "shallow", "refs/heads/main", "refs/heads/a/b/c"),
    *("refs/planforge/archive/run-1/a", "objects/info/commit-graph"),
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return repository(tmp_path / "place")


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that do not survive the test."""
    found: list[subprocess.Popen[str]] = []
    yield found
    for process in found:
        process.kill()
        process.communicate()


def lock(place: Path, name: str, *, old: bool = False) -> Path:
    path = place / ".git" / f"{name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    if old:
        os.utime(path, (BEFORE_THE_START, BEFORE_THE_START))
    return path


def test_a_repository_without_locks_has_none(place: Path) -> None:
    with changing(Git.find(place)):  # a lock of our own kind, which is never left behind
        assert stale_locks.find(Git.find(place)) == ()


@pytest.mark.parametrize("name", NAMES)
def test_a_lock_from_before_the_machine_was_started_is_dead_and_goes_when_told(
    place: Path, name: str
) -> None:
    path = lock(place, name, old=True)
    (found,) = stale_locks.find(Git.find(place))
    assert (found.path, found.name, found.dead) == (str(path), name, True)
    assert found.why == "it is from before this machine was started"
    assert path.exists()
    (removed,) = stale_locks.remove(Git.find(place))
    assert removed.path == str(path)
    assert not path.exists()


def test_the_locks_of_worktrees_are_found(place: Path) -> None:
    found = Git.find(place)
    Worktrees(found, place / ".planforge", "run-1").open("a", "HEAD")
    (entry,) = (place / ".git" / "worktrees").iterdir()
    lock(place, f"worktrees/{entry.name}/index")
    (left,) = stale_locks.find(found)
    assert (left.name, left.dead) == (f"worktrees/{entry.name}/index", False)
    (left,) = stale_locks.remove(found, alone=True)
    assert left.why == "it is Planforge's own, and no other Planforge is at work"
    assert stale_locks.find(found) == ()


def test_a_young_lock_of_the_persons_is_never_removed(place: Path) -> None:
    path = lock(place, "index")
    (found,) = stale_locks.find(Git.find(place), alone=True)
    assert not found.dead  # another git of this machine may be the reason that is given
    assert stale_locks.remove(Git.find(place), alone=True) == ()
    assert path.exists()


def test_a_young_lock_of_ours_is_removed_only_by_who_is_alone(place: Path) -> None:
    path = lock(place, "refs/planforge/archive/run-1/a")
    assert stale_locks.remove(Git.find(place)) == ()
    assert path.exists()
    assert len(stale_locks.remove(Git.find(place), alone=True)) == 1
    assert not path.exists()


def test_a_lock_that_a_process_has_open_is_not_dead_however_old(
    place: Path, started: list[subprocess.Popen[str]]
) -> None:
    path = lock(place, "index", old=True)
    code = "import sys; f = open(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    words = [sys.executable, "-c", code, str(path)]
    started.append(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    stdout = started[0].stdout
    assert stdout is not None
    assert stdout.readline() == "open\n"
    (found,) = stale_locks.find(Git.find(place))
    assert (found.dead, f"process {started[0].pid}" in found.why) == (False, True)
    assert stale_locks.remove(Git.find(place)) == ()
    started[0].kill()
    started[0].wait()
    assert len(stale_locks.remove(Git.find(place))) == 1


def test_a_commit_whose_message_is_being_written_keeps_its_lock(
    place: Path, tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    editor, reached = tmp_path / "editor", tmp_path / "reached"
    editor.write_text(f"#!/bin/sh\ntouch '{reached}'\nexec sleep 300\n")
    editor.chmod(0o755)
    (place / "app.py").write_text("changed\n")
    variables = ENVIRONMENT | {"GIT_EDITOR": str(editor)}
    words = ["git", "commit", "--all"]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        words, cwd=place, env=variables, stdout=quiet, stderr=quiet, text=True, start_new_session=True
    )
    started.append(process)
    until = time.monotonic() + 60
    while not reached.exists() and time.monotonic() < until:
        time.sleep(0.02)
    try:
        (found,) = stale_locks.find(Git.find(place), alone=True)
        assert not found.dead
        assert found.why == f"process {process.pid} (`git`) may be at work on it"
        assert stale_locks.remove(Git.find(place), alone=True) == ()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    (left,) = stale_locks.find(Git.find(place))
    assert (left.name, left.dead) == ("index", False)  # as dead as can be, but from this start of the machine


def test_a_git_elsewhere_is_nobodys_owner(
    place: Path, tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    other = repository(tmp_path / "other")
    words = ["git", "cat-file", "--batch"]
    started.append(
        subprocess.Popen(
            words, cwd=other, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
    )
    stdin, stdout = started[0].stdin, started[0].stdout
    assert stdin is not None
    assert stdout is not None
    stdin.write("HEAD\n")
    stdin.flush()
    assert "commit" in stdout.readline()
    time.sleep(stale_locks.MARGIN)  # the process is older than the lock by more than the margin
    lock(place, "refs/planforge/a")
    lock(other, "refs/planforge/a")
    (found,) = stale_locks.find(Git.find(place), alone=True)
    assert found.dead
    (found,) = stale_locks.find(Git.find(other), alone=True)
    assert (found.dead, f"process {started[0].pid}" in found.why) == (False, True)


def test_without_knowing_processes_no_lock_is_dead(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock(place, "index", old=True)
    monkeypatch.setattr(stale_locks, "PROCESSES", tmp_path / "none")
    (found,) = stale_locks.find(Git.find(place))
    assert (found.dead, found.why) == (False, "who has it open cannot be told on this system")


def test_on_a_disk_that_other_machines_share_no_lock_is_dead(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lock(place, "index", old=True)
    device = path.stat().st_dev
    mounts = f"1 0 {os.major(device)}:{os.minor(device)} / / rw - nfs4 server:/ rw\n"
    processes = tmp_path / "proc"
    (processes / "self").mkdir(parents=True)
    (processes / "self" / "mountinfo").write_text(mounts)
    shutil.copy("/proc/stat", processes / "stat")
    monkeypatch.setattr(stale_locks, "PROCESSES", processes)
    (found,) = stale_locks.find(Git.find(place))
    assert (found.dead, found.why) == (False, "another machine may have made it, on a disk that is shared")


def test_after_the_removal_git_works_again(place: Path) -> None:
    lock(place, "index", old=True)
    lock(place, "refs/heads/main", old=True)
    assert len(stale_locks.remove(Git.find(place))) == 2
    git(place, "commit", "--quiet", "--allow-empty", "--message=again")
