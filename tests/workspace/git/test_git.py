"""The hardened git against real repositories; `test_git_attacks` has those that mean harm."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from planforge.errors import GitFailed, NoRepository
from planforge.interfaces.cli.typed import text
from planforge.workspace.git import FALLBACK_EMAIL, FALLBACK_NAME, MINIMUM, Git, environment, version
from planforge.workspace.landing.places import using
from planforge.workspace.worktrees import Worktrees
from repositories import DATE, EMAIL, NAME, commit, empty_repository, fingerprint, git, repository, trap
from workspace.git.journey import exercise

ODD_NAMES = [b"with space", b"with\nnewline", "ünïcode-字".encode(), b"not-utf8-\xff\xfe", b'"quoted\\"']


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return repository(tmp_path / "place")


@pytest.fixture
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory without any settings."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return home


# Finding one


def test_a_repository_is_found_from_a_directory_inside_it(place: Path) -> None:
    (place / "deep" / "down").mkdir(parents=True)
    found = Git.find(place / "deep" / "down")
    assert (found.top, found.git_dir) == (place, place / ".git")


def test_from_a_linked_worktree_the_files_are_its_own_and_the_repository_is_the_common_one(
    place: Path, tmp_path: Path
) -> None:
    git(place, "worktree", "add", "--quiet", "--detach", str(tmp_path / "other"))
    found = Git.find(tmp_path / "other")
    assert (found.top, found.git_dir) == (tmp_path / "other", place / ".git")
    assert found.own == place / ".git" / "worktrees" / "other"


def test_in_a_linked_worktree_head_and_index_are_its_own(place: Path, tmp_path: Path) -> None:
    git(place, "worktree", "add", "--quiet", "-b", "feature", str(tmp_path / "other"))
    made = commit(tmp_path / "other", {"feature.py": "x\n"})
    found = Git.find(tmp_path / "other")
    assert found.commit_of("HEAD") == made
    assert found.run("status", "--porcelain", work_tree=found.top).stdout == b""
    exercise(tmp_path / "other")
    same = Git(place / ".git" / "worktrees" / "other", tmp_path / "other")
    assert same.commit_of("HEAD") == made
    assert same.run("status", "--porcelain", "feature.py", work_tree=same.top).stdout == b""


def test_a_repository_that_git_does_not_trust_says_how_to(place: Path) -> None:
    if os.getuid():
        pytest.skip("only root can give a directory to somebody else")
    for path in (place, place / ".git"):
        os.chown(path, 12345, 12345)
    with pytest.raises(NoRepository, match="dubious ownership") as caught:
        Git.find(place)
    assert "safe.directory" in text(caught.value.hint)


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_repository_may_lie_in_a_directory_with_an_odd_name(tmp_path: Path, name: bytes) -> None:
    directory = tmp_path / os.fsdecode(name)
    place = repository(directory)
    found = Git.find(place)
    assert (found.top, found.git_dir) == (directory, directory / ".git")
    assert found.commit_of("HEAD") == git(place, "rev-parse", "HEAD")
    assert [each.path for each in using(found, "refs/heads/main")] == [directory]


def test_where_there_is_no_repository_the_answer_says_so_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NoRepository, match="no git repository at") as caught:
        Git.find(tmp_path)
    assert str(tmp_path) in caught.value.message
    assert "git init" in text(caught.value.hint)


def test_a_bare_repository_has_no_files_to_work_on(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "store.git")
    with pytest.raises(NoRepository, match="bare repository"):
        Git.find(tmp_path / "store.git")


def test_the_inside_of_dot_git_is_no_place_to_work(place: Path) -> None:
    with pytest.raises(NoRepository, match=r"inside `\.git`"):
        Git.find(place / ".git" / "refs")


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoRepository, match=r"there is no directory `.*gone`"):
        Git.find(tmp_path / "gone")
    (tmp_path / "file").write_text("")
    with pytest.raises(NoRepository, match=r"there is no directory `.*file`"):
        Git.find(tmp_path / "file")


def test_without_git_on_the_path_the_message_is_about_git(place: Path, tmp_path: Path) -> None:
    code = (
        "import pathlib, sys\n"
        "from planforge.errors import NoRepository\n"
        "from planforge.workspace.git import Git\n"
        "try:\n"
        "    Git.find(pathlib.Path(sys.argv[1]))\n"
        "except NoRepository as error:\n"
        "    print(error.message, error.hint, sep=' / ')\n"
    )
    empty = tmp_path / "empty"
    empty.mkdir()
    said = subprocess.run(
        [sys.executable, "-c", code, str(place)],
        env=os.environ | {"PATH": str(empty)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "`git` is not on PATH / install git\n"


def test_the_git_here_is_new_enough() -> None:
    assert version() >= MINIMUM


# The environment


def test_variables_that_steer_git_do_not_come_through(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, mark = trap(tmp_path)
    other = repository(tmp_path / "other", {"other": "other\n"})
    head = git(place, "rev-parse", "HEAD")
    hostile = {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(tmp_path / "index"),
        "GIT_OBJECT_DIRECTORY": str(tmp_path / "objects"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": str(program),
        "GIT_EXTERNAL_DIFF": str(program),
        "GIT_AUTHOR_NAME": "Somebody Else",
        "GIT_COMMITTER_EMAIL": "else@example.org",
        "GIT_AUTHOR_DATE": "1999-01-01T00:00:00Z",
        "GIT_TRACE": str(tmp_path / "trace"),
        "GIT_NAMESPACE": "elsewhere",
    }
    for name, value in hostile.items():
        monkeypatch.setenv(name, value)
    found = Git.find(place)
    assert (found.top, found.commit_of("HEAD")) == (place, head)
    exercise(place)
    made = found.ref("refs/planforge/test")
    assert made is not None
    assert git(place, "log", "-1", "--format=%an %ae %aI", made) == f"{NAME} {EMAIL} {DATE}"
    assert not mark.exists()
    assert not (tmp_path / "trace").exists()
    assert sorted(name for name in environment() if name in hostile) == []


def test_what_a_person_told_git_about_all_repositories_changes_no_commit(
    place: Path, nobody: Path, tmp_path: Path
) -> None:
    program, mark = trap(tmp_path)
    (nobody / ".gitconfig").write_text(
        f"[core]\n\tfsmonitor = {program}\n\tautocrlf = true\n[alias]\n\tadd = !{program}\n"
    )
    exercise(place)
    assert not mark.exists()
    worktrees = Worktrees(Git.find(place), place / ".planforge", "run-2")
    worktrees.open("a", "HEAD")
    assert (worktrees.path("a") / "app.py").read_bytes() == b"print('hello')\n"


def test_looking_does_not_write_the_index_of_the_person(place: Path) -> None:
    os.utime(place / "app.py", (1, 1))
    before = fingerprint(place)
    Git.find(place).run("status", work_tree=place)
    assert fingerprint(place) == before
    git(place, "status")
    assert fingerprint(place) != before


# Refs


def test_a_ref_moves_if_it_is_where_it_is_expected(place: Path) -> None:
    found = Git.find(place)
    first = found.commit_of("HEAD")
    second = found.commit_tree(found.tree_of(first), [first], "second\n", DATE)
    assert found.move_ref("refs/planforge/x", first, None)
    assert found.move_ref("refs/planforge/x", second, first)
    assert found.ref("refs/planforge/x") == second


def test_a_ref_that_was_moved_meanwhile_is_left_where_it_is(place: Path) -> None:
    found = Git.find(place)
    first = found.commit_of("HEAD")
    second = found.commit_tree(found.tree_of(first), [first], "second\n", DATE)
    third = found.commit_tree(found.tree_of(first), [first], "third\n", DATE)
    git(place, "update-ref", "refs/planforge/x", second)
    assert not found.move_ref("refs/planforge/x", third, first)
    assert found.ref("refs/planforge/x") == second


def test_a_ref_that_was_created_meanwhile_is_not_overwritten(place: Path) -> None:
    found = Git.find(place)
    first = found.commit_of("HEAD")
    second = found.commit_tree(found.tree_of(first), [first], "second\n", DATE)
    git(place, "update-ref", "refs/planforge/x", first)
    assert not found.move_ref("refs/planforge/x", second, None)
    assert found.ref("refs/planforge/x") == first


def test_a_ref_that_was_deleted_meanwhile_is_not_made_again(place: Path) -> None:
    found = Git.find(place)
    first = found.commit_of("HEAD")
    assert not found.move_ref("refs/planforge/x", first, first)
    assert found.ref("refs/planforge/x") is None


def test_a_ref_that_cannot_be_made_at_all_is_a_failure_that_says_why(place: Path) -> None:
    found = Git.find(place)
    with pytest.raises(GitFailed, match=r"cannot move `refs/planforge/\.\.`"):
        found.move_ref("refs/planforge/..", found.commit_of("HEAD"), None)


def test_an_unknown_revision_is_named(place: Path) -> None:
    with pytest.raises(GitFailed, match="there is no commit `nonsense`"):
        Git.find(place).commit_of("nonsense")


def test_a_revision_that_looks_like_an_option_is_only_a_name(place: Path) -> None:
    with pytest.raises(GitFailed, match="there is no commit `--help`"):
        Git.find(place).commit_of("--help")
    assert Git.find(place).ref("--git-dir") is None


def test_what_git_says_when_it_fails_is_in_the_message(place: Path) -> None:
    with pytest.raises(GitFailed, match=r"^`git read-tree` failed: fatal: .*0000"):
        Git.find(place).run("read-tree", "0000")


def test_a_directory_that_vanished_is_a_failure_of_the_command_and_not_of_git(
    place: Path, tmp_path: Path
) -> None:
    with pytest.raises(GitFailed, match="is not there any more"):
        Git.find(place).run("status", work_tree=tmp_path / "gone")


# Commits


def test_the_same_arguments_give_the_same_commit_dated_as_asked(place: Path) -> None:
    found = Git.find(place)
    head = found.commit_of("HEAD")
    made = {found.commit_tree(found.tree_of(head), [head], "same\n", DATE) for _ in range(3)}
    assert len(made) == 1
    assert git(place, "log", "-1", "--format=%aI %cI", made.pop()) == f"{DATE} {DATE}"
    with_offset = found.commit_tree(found.tree_of(head), [head], "same\n", "2026-01-02T05:04:05+02:00")
    assert with_offset == found.commit_tree(found.tree_of(head), [head], "same\n", DATE)


def test_another_message_date_or_parent_gives_another_commit(place: Path) -> None:
    found = Git.find(place)
    head = found.commit_of("HEAD")
    tree = found.tree_of(head)
    made = {
        found.commit_tree(tree, [head], "one\n", DATE),
        found.commit_tree(tree, [head], "two\n", DATE),
        found.commit_tree(tree, [head], "one\n", "2026-01-02T03:04:06+00:00"),
        found.commit_tree(tree, [], "one\n", DATE),
    }
    assert len(made) == 4


def test_a_message_is_kept_to_the_letter_whatever_the_repository_says_of_encodings(place: Path) -> None:
    git(place, "config", "i18n.commitEncoding", "latin1")
    git(place, "config", "i18n.logOutputEncoding", "latin1")
    found = Git.find(place)
    head = found.commit_of("HEAD")
    message = "subject ü 字\n\n# not a comment\n\nPlanforge-Step: phase-1\n"
    made = found.commit_tree(found.tree_of(head), [head], message, DATE)
    raw = found.run("cat-file", "commit", made).stdout
    header, _, body = raw.partition(b"\n\n")
    assert body == message.encode()
    assert b"encoding" not in header


def test_commits_bear_the_name_of_the_person_whose_repository_it_is(place: Path) -> None:
    assert Git.find(place).identity() == (NAME, EMAIL)


def test_the_name_may_come_from_the_persons_own_settings(tmp_path: Path, nobody: Path) -> None:
    place = empty_repository(tmp_path / "place")
    git(place, "config", "--unset", "user.name")
    git(place, "config", "--unset", "user.email")
    (nobody / ".gitconfig").write_text("[user]\n\tname = Grace Hopper\n\temail = grace@example.org\n")
    assert Git.find(place).identity() == ("Grace Hopper", "grace@example.org")


def test_without_a_name_anywhere_commits_bear_ours(place: Path, nobody: Path) -> None:
    git(place, "config", "--unset", "user.name")
    git(place, "config", "--unset", "user.email")
    found = Git.find(place)
    assert found.identity() == (FALLBACK_NAME, FALLBACK_EMAIL)
    made = found.commit_tree(found.tree_of("HEAD"), [], "made\n", DATE)
    assert git(place, "log", "-1", "--format=%an <%ae>", made) == f"{FALLBACK_NAME} <{FALLBACK_EMAIL}>"


@pytest.mark.parametrize("command", ["commit-tree", "update-ref"])
def test_what_is_committed_is_on_the_disk_before_git_says_so(
    place: Path, tmp_path: Path, command: str
) -> None:
    found = Git.find(place)
    head, trace = found.commit_of("HEAD"), tmp_path / "trace"
    arguments = {"commit-tree": (found.tree_of(head),), "update-ref": ("refs/planforge/x", head)}[command]
    found.run(command, *arguments, stdin=b"made\n", extra={"GIT_TRACE2_EVENT": str(trace)})
    assert "fsync/hardware-flush" in trace.read_text()


def test_an_object_that_stands_in_for_another_is_not_taken_for_it(place: Path) -> None:
    found = Git.find(place)
    head = found.commit_of("HEAD")
    forged = found.commit_tree(git(place, "mktree"), [], "forged\n", DATE)
    git(place, "replace", head, forged)
    assert "app.py" in found.line("ls-tree", "--name-only", found.tree_of(head))


# Unusual repositories


def test_files_may_have_odd_names(place: Path) -> None:
    found = Git.find(place)
    worktrees = Worktrees(found, place / ".planforge", "run-1")
    head = found.commit_of("HEAD")
    worktrees.open("a", head)
    for name in ODD_NAMES:
        (worktrees.path("a") / os.fsdecode(name)).write_bytes(b"x\n")
    patch = worktrees.commit("a", head, "odd\n", "a", DATE)
    listed = found.run("ls-tree", "-z", "--name-only", patch.commit).stdout.split(b"\0")
    assert set(ODD_NAMES) < set(listed)
    assert patch.changed_lines == len(ODD_NAMES)
    assert sorted(patch.files) == sorted(name.decode("utf-8", "backslashreplace") for name in ODD_NAMES)


def test_repositories_with_sha256_names_work(tmp_path: Path) -> None:
    place = repository(tmp_path / "place", object_format="sha256")
    exercise(place)
    assert len(Git.find(place).commit_of("HEAD")) == 64


def test_a_detached_head_is_as_good_as_a_branch(place: Path) -> None:
    git(place, "checkout", "--quiet", "--detach")
    before = fingerprint(place)
    exercise(place)
    assert fingerprint(place) == before
    assert using(Git.find(place), "refs/heads/main") == []


def test_a_repository_without_a_commit_says_so(tmp_path: Path) -> None:
    found = Git.find(empty_repository(tmp_path / "place"))
    assert not found.has_commits()
    with pytest.raises(GitFailed, match="there is no commit `HEAD`"):
        found.commit_of("HEAD")


def test_a_lock_that_a_dead_git_left_on_the_index_is_not_in_the_way(place: Path) -> None:
    (place / ".git" / "index.lock").write_text("")
    exercise(place)
