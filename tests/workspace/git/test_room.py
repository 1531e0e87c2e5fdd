"""The room that git runs in: what of a repository's settings counts, and that nobody changes it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from planforge.errors import GitFailed
from planforge.interfaces.cli.typed import text
from planforge.workspace import git as hardened
from planforge.workspace.git import Git
from planforge.workspace.landing.places import using
from planforge.workspace.worktrees import Worktrees
from repositories import DATE, EMAIL, NAME, commit, fingerprint, git, repository, write


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return repository(tmp_path / "place")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return home


@pytest.fixture
def rooms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where rooms are made in this test."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / f"planforge-git-{os.getuid()}"


def open_rooms(rooms: Path) -> list[Path]:
    return sorted(rooms.iterdir()) if rooms.exists() else []


# Settings that count


def test_settings_that_say_what_a_file_looks_like_count_and_no_others_do(place: Path) -> None:
    git(place, "config", "core.eol", "crlf")
    git(place, "config", "core.sharedRepository", "group")
    git(place, "config", "core.pager", "less")
    git(place, "config", "merge.renames", "false")
    kept = dict(Git.find(place).settings().kept)
    assert (kept["core.eol"], kept["core.sharedrepository"], kept["core.filemode"]) == (
        "crlf",
        "group",
        "true",
    )
    assert not {"core.pager", "merge.renames", "core.bare", "core.worktree"} & set(kept)


def test_a_value_cannot_break_out_of_the_line_it_is_on(place: Path) -> None:
    evil = 'x"\n[core]\n\teol = lf\n\\'
    git(place, "config", "user.name", evil)
    found = Git.find(place)
    assert found.run("config", "--get", "user.name").stdout.decode() == evil.strip() + "\n"
    assert found.run("config", "--get", "core.eol", accept=(1,)).stdout == b""


def test_what_the_person_ignores_here_or_everywhere_is_not_committed(place: Path, home: Path) -> None:
    (home / ".gitconfig").write_text("[core]\n\texcludesFile = ~/ignored\n")
    write(home, {"ignored": "everywhere\n", ".config/git/ignore": "not-read\n"})
    write(place / ".git" / "info", {"exclude": "here\n"})
    worktrees = Worktrees(Git.find(place), place / ".planforge", "run-1")
    start = worktrees.open("a", "HEAD")
    write(worktrees.path("a"), {"everywhere": "x", "here": "x", "not-read": "x"})
    assert worktrees.commit("a", start.commit, "m\n", "a", DATE).files == ("not-read",)


def test_without_a_setting_git_has_a_file_of_its_own_for_that(place: Path, home: Path) -> None:
    write(home, {".config/git/ignore": "everywhere\n"})
    assert Git.find(place).settings().ignored == b"everywhere\n"


def test_what_is_changed_later_does_not_count_until_the_next_start(place: Path) -> None:
    found = Git.find(place)
    assert found.identity() == (NAME, EMAIL)
    git(place, "config", "user.name", "Somebody Else")
    git(place, "config", "core.eol", "crlf")
    write(place / ".git" / "info", {"exclude": "*\n"})
    (place / "new").write_text("x")
    assert found.identity() == (NAME, EMAIL)
    assert found.run("config", "--get", "core.eol", accept=(1,)).stdout == b""
    assert found.run("status", "--porcelain", work_tree=place).stdout == b"?? new\n"
    assert Git.find(place).identity() == ("Somebody Else", EMAIL)


def test_branches_that_are_moved_leave_a_trace_with_the_persons_name(place: Path) -> None:
    found = Git.find(place)
    found.move_ref("refs/heads/planforge/x", found.commit_of("HEAD"), None)
    log = (place / ".git" / "logs" / "refs" / "heads" / "planforge" / "x").read_text()
    assert f"{NAME} <{EMAIL}>" in log


def test_refs_are_the_repositorys_whether_they_are_packed_or_not(place: Path) -> None:
    found = Git.find(place)
    head = found.commit_of("HEAD")
    found.move_ref("refs/planforge/a", head, None)
    found.move_ref("refs/planforge/b", head, None)
    git(place, "pack-refs", "--all")
    assert not (place / ".git" / "refs" / "planforge" / "a").exists()
    found.run("update-ref", "-d", "refs/planforge/a", head)
    found.run("pack-refs", "--all")
    assert git(place, "for-each-ref", "--format=%(refname)", "refs/planforge") == "refs/planforge/b"
    assert (place / ".git" / "packed-refs").is_file()
    assert not (place / ".git" / "packed-refs").is_symlink()


def test_what_only_a_worktree_holds_survives_a_cleaning_of_objects(place: Path, tmp_path: Path) -> None:
    found = Git.find(place)
    found.run("worktree", "add", "--detach", str(tmp_path / "linked"), "HEAD")
    made = commit(tmp_path / "linked", {"kept": "kept\n"})
    found.run("prune", "--expire=now")
    assert found.ref(f"{made}^{{tree}}") is not None
    git(place, "fsck", "--connectivity-only")


# The room itself


def test_a_room_goes_with_its_process_and_those_of_killed_ones_go_with_the_next(
    place: Path, rooms: Path
) -> None:
    code = (
        "import os, pathlib, signal, sys\n"
        "from planforge.workspace.git import Git\n"
        "git = Git.find(pathlib.Path(sys.argv[1]))\n"
        "git.commit_of('HEAD')\n"
        "rooms = os.listdir(sys.argv[2])\n"
        "if os.fork() == 0:\n"
        "    sys.exit()\n"  # which must not take the room away from its parent
        "os.wait()\n"
        "git.commit_of('HEAD')\n"
        "print(len(rooms), os.listdir(sys.argv[2]) == rooms, flush=True)\n"
        "if len(sys.argv) > 3:\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    words = [sys.executable, "-c", code, str(place), str(rooms)]
    ended = subprocess.run(words, capture_output=True, text=True, check=True)
    assert (ended.stdout, open_rooms(rooms)) == ("1 True\n", [])
    killed = subprocess.run([*words, "kill"], capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = open_rooms(rooms)
    found = Git.find(place)
    found.commit_of("HEAD")
    assert len(open_rooms(rooms)) == 2  # it may be so young that it is not locked yet
    os.utime(left, (1, 1))
    Git.find(place).commit_of("HEAD")
    assert left not in open_rooms(rooms)
    assert found.ref("HEAD")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config", "[core]\n\tfsmonitor = x\n"),
        ("info/exclude", "*\n"),
        ("info/attributes", "* text\n"),
        ("ignored", "*\n"),
        ("nowhere/.gitattributes", "* merge=union\n"),
    ],
)
def test_a_room_that_somebody_changed_is_left_for_a_new_one(
    place: Path, rooms: Path, name: str, content: str
) -> None:
    (place / "new").write_text("x")
    found = Git.find(place)
    found.commit_of("HEAD")
    (room,) = open_rooms(rooms)
    path = room / name
    before = path.stat() if path.exists() else None
    path.write_text(content)
    if before:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert found.run("status", "--porcelain", work_tree=place).stdout == b"?? new\n"
    assert room not in open_rooms(rooms)


def test_a_room_that_was_cleaned_away_is_made_again(tmp_path: Path, rooms: Path) -> None:
    place = repository(tmp_path / "place", object_format="sha256")
    found = Git.find(place)
    head = found.commit_of("HEAD")
    shutil.rmtree(rooms)
    assert found.commit_of("HEAD") == head
    (room,) = open_rooms(rooms)
    (room / "config").unlink()
    assert found.commit_of("HEAD") == head


def test_a_place_for_rooms_that_others_may_write_to_is_refused(place: Path, rooms: Path) -> None:
    rooms.mkdir()
    rooms.chmod(0o777)
    with pytest.raises(GitFailed, match="is not a directory of yours alone"):
        Git.find(place).commit_of("HEAD")
    rooms.rmdir()
    rooms.symlink_to(place)
    with pytest.raises(GitFailed, match="is not a directory of yours alone"):
        Git.find(place).commit_of("HEAD")


def test_threads_share_one_room(place: Path, rooms: Path) -> None:
    found = Git.find(place)
    together = threading.Barrier(8)
    answers: list[str] = []

    def ask() -> None:
        together.wait()
        answers.append(found.line("rev-parse", "--path-format=absolute", "--git-common-dir"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [str(room) for room in open_rooms(rooms)] * 8


def test_a_repository_that_may_only_be_read_can_be_read(place: Path) -> None:
    shutil.rmtree(place / ".git" / "logs")
    paths = [place / ".git", *(path for path in (place / ".git").rglob("*") if path.is_dir())]
    for path in paths:
        path.chmod(0o555)
    try:
        assert Git.find(place).commit_of("HEAD") == git(place, "rev-parse", "HEAD")
    finally:
        for path in paths:
            path.chmod(0o755)


# Worktrees, which need the real directory


def test_a_worktree_belongs_to_the_repository_and_not_to_the_room(place: Path, tmp_path: Path) -> None:
    before = fingerprint(place)
    found = Git.find(place)
    found.run("worktree", "add", "--quiet", "-b", "planforge/x", str(tmp_path / "linked"), "HEAD")
    assert (tmp_path / "linked" / ".git").read_text() == f"gitdir: {place}/.git/worktrees/linked\n"
    assert git(tmp_path / "linked", "status", "--porcelain=2", "--branch").splitlines()[1:] == [
        "# branch.head planforge/x"
    ]
    assert [each.path for each in using(found, "refs/heads/planforge/x")] == [tmp_path / "linked"]
    assert [each.path for each in using(found, "refs/heads/main")] == [place]
    assert fingerprint(place) == before


def test_a_worktree_whose_files_cannot_be_written_is_not_left_half_made(place: Path, tmp_path: Path) -> None:
    blob = git(place, "rev-parse", "HEAD:app.py")
    (place / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(GitFailed, match=r"app\.py") as caught:
        Git.find(place).run("worktree", "add", "--detach", str(tmp_path / "linked"), "HEAD")
    assert caught.value.hint is None
    assert not (tmp_path / "linked").exists()
    assert git(place, "worktree", "list").splitlines()[1:] == []


# Waiting


def test_a_lock_on_the_index_that_another_git_lets_go_of_is_waited_for(place: Path) -> None:
    lock = place / ".git" / "index.lock"
    lock.write_text("")
    (place / "app.py").write_text("changed\n")
    timer = threading.Timer(0.3, lock.unlink)
    timer.start()
    Git.find(place).run("add", "app.py", work_tree=place)
    timer.join()
    assert git(place, "diff", "--cached", "--name-only") == "app.py"


@pytest.mark.parametrize("name", ["index", "refs/heads/planforge/x"])
def test_a_lock_that_nobody_lets_go_of_is_named_in_the_end(place: Path, name: str) -> None:
    lock = place / ".git" / f"{name}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_text("")
    found = Git(place / ".git", place, patience=0.2)
    head = found.commit_of("HEAD")
    tries: dict[str, Callable[[], object]] = {
        "index": lambda: found.run("add", "app.py", work_tree=place),
        "refs/heads/planforge/x": lambda: found.move_ref(name, head, None),
    }
    with pytest.raises(GitFailed, match="File exists") as caught:
        tries[name]()
    assert text(caught.value.hint) == "run `planforge doctor` to see whose lock that is"
    assert lock.exists()


def test_a_pipe_that_git_would_read_without_end_is_found(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hardened, "SLOW", 0.5)
    (place / "deep").mkdir()
    os.mkfifo(place / "deep" / ".gitignore")
    (place / "deep" / "file").write_text("x")
    with pytest.raises(GitFailed, match=r"deep/\.gitignore` is a pipe"):
        Git.find(place).run("status", work_tree=place)
    assert not (place / ".git" / "index.lock").exists()


def test_a_command_that_does_not_end_is_ended(place: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    started = time.monotonic()
    with pytest.raises(GitFailed, match="did not end within 1 s"):
        Git.find(place).run("hash-object", str(tmp_path / "pipe"), seconds=1)
    assert time.monotonic() - started < 60
