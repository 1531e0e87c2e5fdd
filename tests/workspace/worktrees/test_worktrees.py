"""Worktrees in real repositories, with agents that leave all sorts of things in them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from archives import archived, content, listing, registered
from planforge.errors import GitFailed
from planforge.interfaces.cli.typed import text
from planforge.kernel.locks import is_held
from planforge.workspace.git import Git, patches
from planforge.workspace.worktrees import Worktrees
from repositories import DATE, commit, fingerprint, git, repository, trap, write

RUN = "run-1"
FILES: dict[str, str | bytes] = {
    "README.md": "# A project\n",
    "app.py": "one\ntwo\nthree\n",
    "old.py": "old\n",
    ".gitignore": "*.log\nbuild/\n",
    "docs/guide.md": "guide\n",
}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A person's checkout with work of their own under way, which must come out of every test untouched."""
    place = repository(tmp_path / "place", FILES)
    write(place, {"kept.log": "tracked although ignored\n"})
    git(place, "add", "--force", "kept.log")
    git(place, "commit", "--quiet", "--message=keep a log")
    git(place, "branch", "feature")
    write(place, {"app.py": "being edited\n", "staged.py": "staged\n", "untracked.py": "untracked\n"})
    git(place, "add", "staged.py")
    before = fingerprint(place)
    yield place
    assert fingerprint(place) == before


@pytest.fixture
def worktrees(place: Path) -> Worktrees:
    return Worktrees(Git.find(place), place / ".planforge", RUN)


@pytest.fixture
def head(place: Path) -> str:
    return git(place, "rev-parse", "HEAD")


# Opening


def branch_of(worktrees: Worktrees, name: str) -> str:
    """The branch that a worktree was made on."""
    opened = worktrees.opened(name)
    assert opened is not None
    return opened.branch.removeprefix("refs/heads/")


def test_a_worktree_is_made_at_the_commit_that_was_named_on_a_branch_of_its_own(
    place: Path, worktrees: Worktrees, head: str
) -> None:
    earlier = git(place, "rev-parse", "HEAD~1")
    checkout = worktrees.open("a", earlier)
    assert (checkout.commit, checkout.tree) == (earlier, git(place, "rev-parse", f"{earlier}^{{tree}}"))
    path = worktrees.path("a")
    assert git(path, "rev-parse", "HEAD") == earlier
    assert git(path, "symbolic-ref", "--short", "HEAD") == "planforge/work/run-1/a"
    assert branch_of(worktrees, "a") == "planforge/work/run-1/a"
    assert "branch." not in git(place, "config", "--list")
    assert git(path, "status", "--porcelain") == ""
    assert (path / "app.py").read_text() == "one\ntwo\nthree\n"


def test_a_branch_name_is_resolved_once(place: Path, worktrees: Worktrees, head: str) -> None:
    assert worktrees.open("a", "feature").commit == head


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b", "../escaped", "check-1"])
def test_a_name_that_leads_elsewhere_is_refused(worktrees: Worktrees, name: str) -> None:
    with pytest.raises(GitFailed, match="cannot name a worktree"):
        worktrees.path(name)


def test_an_unknown_commit_makes_nothing(place: Path, worktrees: Worktrees) -> None:
    with pytest.raises(GitFailed, match="there is no commit `nonsense`"):
        worktrees.open("a", "nonsense")
    with pytest.raises(GitFailed):
        worktrees.make_fresh("nonsense")
    assert registered(place) == [str(place)]
    assert list((place / ".planforge" / "worktrees" / RUN).iterdir()) == []


def test_a_sparse_checkout_of_the_persons_does_not_thin_out_the_worktree(tmp_path: Path) -> None:
    place = repository(tmp_path / "sparse", FILES)
    git(place, "sparse-checkout", "set", "nothing")
    worktrees = Worktrees(Git.find(place), place / ".planforge", RUN)
    checkout = worktrees.open("a", "HEAD")
    assert (worktrees.path("a") / "docs" / "guide.md").exists()
    assert worktrees.tree("a") == checkout.tree


def test_the_branch_goes_with_the_worktree(place: Path, worktrees: Worktrees, head: str) -> None:
    worktrees.open("a", head)
    worktrees.open("b c!", head)
    assert len(git(place, "for-each-ref", "refs/heads/planforge/work").splitlines()) == 2
    worktrees.open("a", head)
    worktrees.close("a")
    worktrees.close("b c!")
    assert git(place, "for-each-ref", "refs/heads/planforge") == ""


def test_names_that_look_alike_in_a_ref_get_branches_of_their_own(worktrees: Worktrees, head: str) -> None:
    names = ("a b", "a-b", "a.b", "ä", "-", "a.lock", "a..b")
    for name in names:
        worktrees.open(name, head)
    assert len({branch_of(worktrees, name) for name in names}) == len(names)
    worktrees.sweep()


def test_a_branch_that_was_deleted_is_made_again(place: Path, worktrees: Worktrees, head: str) -> None:
    worktrees.open("a", head)
    git(worktrees.path("a"), "checkout", "--quiet", "--detach")
    git(place, "update-ref", "-d", "refs/heads/planforge/work/run-1/a")
    worktrees.open("a", head)
    assert git(worktrees.path("a"), "symbolic-ref", "--short", "HEAD") == "planforge/work/run-1/a"


def test_a_branch_that_somebody_has_checked_out_elsewhere_stays_theirs(
    place: Path, worktrees: Worktrees, head: str, tmp_path: Path
) -> None:
    worktrees.open("a", head)
    mine = commit(worktrees.path("a"), {"mine.py": "mine\n"}, "mine")
    git(worktrees.path("a"), "checkout", "--quiet", "--detach")
    git(place, "worktree", "add", "--quiet", str(tmp_path / "look"), "planforge/work/run-1/a")
    worktrees.open("a", head)
    assert branch_of(worktrees, "a") == "planforge/work/run-1/a.2"
    assert git(tmp_path / "look", "rev-parse", "HEAD") == mine
    worktrees.sweep()
    assert git(tmp_path / "look", "rev-parse", "planforge/work/run-1/a") == mine
    assert git(tmp_path / "look", "status", "--porcelain") == ""
    git(place, "worktree", "remove", str(tmp_path / "look"))
    worktrees.sweep()
    assert git(place, "for-each-ref", "refs/heads/planforge") == ""
    assert archived(place)["a.head"] == mine


def test_a_branch_without_commits_that_somebody_has_checked_out_is_not_filled_under_them(
    place: Path, worktrees: Worktrees, head: str, tmp_path: Path
) -> None:
    git(place, "worktree", "add", "--quiet", "-b", "planforge/work/run-1/a", str(tmp_path / "look"))
    git(place, "update-ref", "-d", "refs/heads/planforge/work/run-1/a")
    worktrees.open("a", head)
    assert branch_of(worktrees, "a") == "planforge/work/run-1/a.2"
    worktrees.sweep()
    assert git(place, "for-each-ref", "refs/heads/planforge") == ""


class Watched(Git):
    """A repository that sees whether whoever changes worktrees or refs of ours holds the lock."""

    seen: list[bool]

    def run(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
        if arguments[0] in ("worktree", "update-ref"):
            self.seen.append(is_held(self.git_dir / "planforge-worktrees.lock"))
        return super().run(*arguments, **options)


def test_worktrees_and_refs_of_ours_change_only_under_the_lock_of_the_repository(
    place: Path, head: str
) -> None:
    watched = Watched(place / ".git", place)
    watched.seen = []
    worktrees = Worktrees(watched, place / ".planforge", RUN)
    worktrees.open("a", head)
    write(worktrees.path("a"), {"new.py": "new\n"})
    worktrees.commit("a", head, "a change\n", "a", DATE)
    write(worktrees.path("a"), {"new.py": "newer\n"})
    worktrees.discard(worktrees.make_fresh(head))
    worktrees.sweep()
    assert len(watched.seen) >= 5
    assert all(watched.seen)


def test_a_branch_of_the_persons_in_the_way_is_named(place: Path, worktrees: Worktrees, head: str) -> None:
    git(place, "branch", "planforge")
    with pytest.raises(GitFailed, match="refs/heads/planforge' exists") as refused:
        worktrees.open("a", head)
    assert text(refused.value.hint) == "rename the branch that is in the way"
    git(place, "branch", "-D", "planforge")
    worktrees.open("a", head)


def test_a_worktree_that_somebody_moved_is_kept_left_to_them_and_made_anew(
    place: Path, worktrees: Worktrees, head: str, tmp_path: Path
) -> None:
    worktrees.open("a", head)
    write(worktrees.path("a"), {"new.py": "new\n"})
    mine = commit(worktrees.path("a"), {"mine.py": "mine\n"}, "mine")
    write(worktrees.path("a"), {"half.py": "half\n"})
    git(place, "worktree", "move", str(worktrees.path("a")), str(tmp_path / "moved"))
    checkout = worktrees.open("a", head)
    assert worktrees.tree("a") == checkout.tree
    assert (tmp_path / "moved" / "half.py").read_text() == "half\n"
    assert git(tmp_path / "moved", "rev-parse", "HEAD") == mine
    kept = archived(place)
    assert kept["a.head"] == mine
    assert listing(place, kept["a.left"])[-2:] == ["new.py", "old.py"]
    assert "half.py" in listing(place, kept["a.left"])
    worktrees.sweep()
    assert registered(place) == [str(place), str(tmp_path / "moved")]


@pytest.mark.parametrize("how", ["bent", "linked"])
def test_an_entry_that_points_at_a_directory_of_the_persons_is_not_followed(
    place: Path, worktrees: Worktrees, head: str, tmp_path: Path, how: str
) -> None:
    private = tmp_path / "private"
    write(private, {"secret": "secret\n", ".git": "gitdir: elsewhere\n"})
    worktrees.open("a", head)
    [entry] = (place / ".git" / "worktrees").iterdir()
    if how == "linked":
        (tmp_path / "link").symlink_to(private)
        (private / ".git").write_text(f"gitdir: {entry}\n")
    (entry / "gitdir").write_text(f"{tmp_path / 'link' if how == 'linked' else private}/.git\n")
    worktrees.open("a", head)
    worktrees.sweep()
    assert archived(place) == {}
    assert (private / "secret").read_text() == "secret\n"


# What an agent left


def test_everything_an_agent_left_is_in_the_commit_and_what_git_ignores_is_not(
    place: Path, worktrees: Worktrees, head: str
) -> None:
    worktrees.open("a", head)
    path = worktrees.path("a")
    write(path, {"new/file.py": "new\n", "app.py": "one\n2\nthree\nfour\n", "kept.log": "changed\n"})
    write(path, {"debug.log": "noise\n", "build/out": "noise\n", "tool.sh": "#!/bin/sh\n"})
    (path / "tool.sh").chmod(0o755)
    (path / "old.py").unlink()
    (path / "link").symlink_to("/etc/passwd")
    os.mkfifo(path / "pipe")
    patch = worktrees.commit("a", head, "a change\n", "a", DATE)
    assert patch.files == ("app.py", "kept.log", "link", "new/file.py", "old.py", "tool.sh")
    assert patch.changed_lines == 3 + 2 + 1 + 1 + 1 + 1
    assert (patch.parent, patch.tree) == (head, git(place, "rev-parse", f"{patch.commit}^{{tree}}"))
    assert git(place, "rev-parse", f"{patch.commit}^") == head
    assert content(place, patch.commit, "kept.log") == "changed"
    assert content(place, patch.commit, "link") == "/etc/passwd"
    modes = git(place, "ls-tree", patch.commit, "tool.sh", "link", "app.py").splitlines()
    assert [line.split()[0] for line in modes] == ["100644", "120000", "100755"]
    assert archived(place) == {"a": patch.commit}


def test_a_worktree_that_nobody_changed_has_the_tree_it_began_with(worktrees: Worktrees, head: str) -> None:
    checkout = worktrees.open("a", head)
    assert worktrees.tree("a") == checkout.tree


def test_the_same_work_committed_again_is_the_same_commit_under_the_same_name(
    place: Path, worktrees: Worktrees, head: str
) -> None:
    worktrees.open("a", head)
    write(worktrees.path("a"), {"new.py": "new\n"})
    first = worktrees.commit("a", head, "a change\n", "a-1", DATE)
    assert worktrees.commit("a", head, "a change\n", "a-1", DATE) == first
    assert archived(place) == {"a-1": first.commit}


def test_a_name_once_given_is_never_moved(place: Path, worktrees: Worktrees, head: str) -> None:
    made = []
    for number in range(3):
        worktrees.open("a", head)
        write(worktrees.path("a"), {"new.py": f"{number}\n"})
        made.append(worktrees.commit("a", head, "a change\n", "a-1", DATE).commit)
    assert archived(place) == {"a-1": made[0], "a-1.2": made[1], "a-1.3": made[2]}


def test_the_settings_of_the_person_decide_line_endings_and_no_setting_makes_them_fail(
    tmp_path: Path,
) -> None:
    place = repository(tmp_path / "crlf", FILES)
    git(place, "config", "core.autocrlf", "true")
    git(place, "config", "core.safecrlf", "true")
    worktrees = Worktrees(Git.find(place), place / ".planforge", RUN)
    checkout = worktrees.open("a", "HEAD")
    assert worktrees.tree("a") == checkout.tree
    write(worktrees.path("a"), {"mixed.txt": b"one\r\ntwo\n"})
    patch = worktrees.commit("a", checkout.commit, "mixed\n", "a", DATE)
    assert patch.files == ("mixed.txt",)


# Agents that would rather use git themselves


def test_a_repository_planted_over_the_worktree_is_not_looked_at(
    place: Path, worktrees: Worktrees, head: str, tmp_path: Path
) -> None:
    program, mark = trap(tmp_path)
    worktrees.open("a", head)
    path = worktrees.path("a")
    (path / ".git").unlink()
    repository(path, {"theirs.py": "theirs\n"})
    git(path, "config", "core.fsmonitor", str(program))
    git(path, "config", "filter.evil.clean", str(program))
    git(path, "config", "diff.external", str(program))
    write(path / ".git" / "info", {"attributes": "* filter=evil diff=evil\n", "exclude": "theirs.py\n"})
    for name in ("pre-commit", "post-commit", "post-checkout", "reference-transaction"):
        (path / ".git" / "hooks" / name).symlink_to(program)
    patch = worktrees.commit("a", head, "a change\n", "a", DATE)
    assert patch.files == ("theirs.py",)
    assert git(place, "rev-parse", f"{patch.commit}^") == head
    worktrees.open("a", head)
    assert git(worktrees.path("a"), "rev-parse", "HEAD") == head
    worktrees.sweep()
    assert not mark.exists()
    assert registered(place) == [str(place)]


def test_an_agent_that_commits_by_itself_changes_nothing_about_our_commit(
    place: Path, worktrees: Worktrees, head: str
) -> None:
    worktrees.open("a", head)
    path = worktrees.path("a")
    commit(path, {"mine.py": "mine\n"}, "my own commit")
    git(path, "checkout", "--quiet", "--orphan", "planted")
    commit(path, {"more.py": "more\n"}, "another root")
    patch = worktrees.commit("a", head, "ours\n", "a", DATE)
    assert patch.files == ("mine.py", "more.py")
    assert git(place, "log", "--format=%s", patch.commit).splitlines() == ["ours", "keep a log", "first"]
    git(place, "update-ref", "-d", "refs/heads/planted")


def test_an_agent_that_moves_head_and_empties_its_index_changes_nothing_about_our_commit(
    place: Path, worktrees: Worktrees, head: str
) -> None:
    worktrees.open("a", head)
    path = worktrees.path("a")
    write(path, {"new.py": "new\n"})
    git(path, "reset", "--quiet", "--soft", "HEAD~1")
    git(path, "rm", "--quiet", "--cached", "-r", ".")
    patch = worktrees.commit("a", head, "ours\n", "a", DATE)
    assert (patch.files, git(place, "rev-parse", f"{patch.commit}^")) == (("new.py",), head)


@pytest.mark.parametrize("with_commit", [True, False])
def test_repositories_that_an_agent_made_inside_are_kept_as_files_and_their_programs_not_run(
    place: Path, worktrees: Worktrees, head: str, tmp_path: Path, with_commit: bool
) -> None:
    program, mark = trap(tmp_path)
    worktrees.open("a", head)
    for inner in (worktrees.path("a") / "crate", worktrees.path("a") / "crate" / "deeper"):
        repository(inner, {"lib.rs": "lib\n", ".gitignore": "target\n", "target": "noise\n"})
        if not with_commit:
            git(inner, "update-ref", "-d", "HEAD")
        git(inner, "config", "core.fsmonitor", str(program))
        git(inner, "config", "filter.evil.clean", str(program))
        write(inner / ".git" / "info", {"attributes": "* filter=evil\n"})
    repository(worktrees.path("a") / "build" / "ignored", {"x": "noise\n"})
    patch = worktrees.commit("a", head, "a crate\n", "a", DATE)
    assert patch.files == (
        "crate/.gitignore",
        "crate/deeper/.gitignore",
        "crate/deeper/lib.rs",
        "crate/lib.rs",
    )
    assert content(place, patch.commit, "crate/deeper/lib.rs") == "lib"
    worktrees.sweep()
    assert not mark.exists()


def test_a_repository_made_among_tracked_files_hides_none_of_them(
    place: Path, worktrees: Worktrees, head: str
) -> None:
    worktrees.open("a", head)
    docs = worktrees.path("a") / "docs"
    git(docs, "init", "--quiet")
    write(docs, {"guide.md": "changed\n", "more.md": "more\n"})
    patch = worktrees.commit("a", head, "docs\n", "a", DATE)
    assert patch.files == ("docs/guide.md", "docs/more.md")
    assert listing(place, patch.commit).count("docs/guide.md") == 1


def test_a_submodule_stays_as_it_was_and_no_program_inside_it_runs(tmp_path: Path) -> None:
    program, mark = trap(tmp_path)
    inner = repository(tmp_path / "inner", {"lib.py": "lib\n"})
    place = repository(tmp_path / "place")
    git(place, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "inner")
    head = commit(place, {}, "with a submodule")
    worktrees = Worktrees(Git.find(place), place / ".planforge", RUN)
    worktrees.open("a", head)
    planted = worktrees.path("a") / "inner"
    git(tmp_path, "clone", "--quiet", str(inner), str(planted))
    git(planted, "config", "filter.evil.clean", str(program))
    write(planted / ".git" / "info", {"attributes": "* filter=evil\n"})
    write(planted, {"lib.py": "bil\n"})  # of the same size, so that git must look into it to tell
    write(worktrees.path("a"), {"app.py": "changed\n"})
    patch = worktrees.commit("a", head, "a change\n", "a", DATE)
    assert patch.files == ("app.py",)
    worktrees.sweep()
    assert not mark.exists()


def test_a_worktree_replaced_by_a_link_is_neither_committed_nor_followed(
    place: Path, worktrees: Worktrees, head: str, tmp_path: Path
) -> None:
    private = tmp_path / "private"
    write(private, {"secret": "secret\n"})
    worktrees.open("a", head)
    shutil.rmtree(worktrees.path("a"))
    worktrees.path("a").symlink_to(private)
    with pytest.raises(GitFailed, match="is not the worktree that was made there"):
        worktrees.tree("a")
    worktrees.open("a", head)
    assert not worktrees.path("a").is_symlink()
    assert (private / "secret").read_text() == "secret\n"
    assert archived(place) == {}


@pytest.mark.parametrize("note", ["--index-output=planted", "HEAD", "feature", "nul\0byte", "0" * 40, ""])
def test_a_changed_note_of_where_the_worktree_began_is_not_believed(
    place: Path, worktrees: Worktrees, head: str, note: str
) -> None:
    worktrees.open("a", head)
    write(worktrees.path("a"), {"new.py": "new\n"})
    (worktrees.path("a").parent / ".a.base").write_text(note)
    with pytest.raises(GitFailed, match="is not the worktree that was made there"):
        worktrees.tree("a")
    worktrees.close("a")
    assert not (place / ".git" / "planted").exists()
    assert content(place, archived(place)["a.left"], "new.py") == "new"


def test_a_setting_that_says_where_the_files_are_is_not_believed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    write(other, {"secret": "secret\n"})
    place = repository(tmp_path / "place")
    worktrees = Worktrees(Git.find(place), place / ".planforge", RUN)
    checkout = worktrees.open("a", "HEAD")
    git(place, "config", "core.worktree", str(other))
    assert worktrees.tree("a") == checkout.tree
    worktrees.open("b", "HEAD")
    assert worktrees.tree("b") == checkout.tree
    worktrees.sweep()
    assert [path.name for path in other.iterdir()] == ["secret"]


def test_the_repository_may_itself_be_a_submodule(tmp_path: Path) -> None:
    inner = repository(tmp_path / "inner", FILES)
    outer = repository(tmp_path / "outer")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "inner")
    found = Git.find(outer / "inner")
    assert (found.top, found.git_dir) == (outer / "inner", outer / ".git" / "modules" / "inner")
    worktrees = Worktrees(found, outer / "inner" / ".planforge", RUN)
    head = worktrees.open("a", "HEAD").commit
    write(worktrees.path("a"), {"new.py": "new\n"})
    assert worktrees.commit("a", head, "new\n", "a", DATE).files == ("new.py",)
    worktrees.sweep()
    assert git(outer / "inner", "status", "--porcelain") in ("", "?? .planforge/")


# Nothing is lost


def test_making_a_worktree_anew_keeps_what_was_in_it(place: Path, worktrees: Worktrees, head: str) -> None:
    worktrees.open("a", head)
    write(worktrees.path("a"), {"half.py": "half done\n"})
    checkout = worktrees.open("a", head)
    assert not (worktrees.path("a") / "half.py").exists()
    assert worktrees.tree("a") == checkout.tree
    [(name, kept)] = archived(place).items()
    assert name == "a.left"
    assert content(place, kept, "half.py") == "half done"
    assert git(place, "rev-parse", f"{kept}^") == head


def test_closing_keeps_what_was_in_it(place: Path, worktrees: Worktrees, head: str) -> None:
    worktrees.open("a", head)
    (worktrees.path("a") / "old.py").unlink()
    worktrees.close("a")
    assert "old.py" not in listing(place, archived(place)["a.left"])
    assert not worktrees.path("a").exists()
    assert registered(place) == [str(place)]


def test_what_is_kept_already_is_not_kept_twice(place: Path, worktrees: Worktrees, head: str) -> None:
    worktrees.open("a", head)
    write(worktrees.path("a"), {"new.py": "new\n"})
    patch = worktrees.commit("a", head, "a change\n", "a-1", DATE)
    worktrees.close("a")
    worktrees.open("a", head)
    worktrees.close("a")
    worktrees.open("a", head)
    write(worktrees.path("a"), {"new.py": "new\n"})
    worktrees.close("a")
    assert archived(place) == {"a-1": patch.commit}


def test_leftovers_of_several_attempts_get_names_of_their_own(
    place: Path, worktrees: Worktrees, head: str
) -> None:
    for body in ("one\n", "two\n", "one\n"):
        worktrees.open("a", head)
        write(worktrees.path("a"), {"new.py": body})
    worktrees.close("a")
    kept = archived(place)
    assert sorted(kept) == ["a.left", "a.left.2"]
    assert [content(place, kept[name], "new.py") for name in sorted(kept)] == ["one", "two"]


def test_closing_what_is_not_there_is_no_failure(worktrees: Worktrees) -> None:
    worktrees.close("a")


def test_a_file_that_git_cannot_hold_does_not_keep_the_rest_from_being_kept(
    place: Path, worktrees: Worktrees, head: str
) -> None:
    worktrees.open("a", head)
    write(worktrees.path("a"), {".GIT/config": "not allowed\n", "new.py": "new\n"})
    with pytest.raises(GitFailed, match="`git add` failed"):
        worktrees.tree("a")
    worktrees.close("a")
    assert content(place, archived(place)["a.left"], "new.py") == "new"
    assert not worktrees.path("a").exists()


def test_directories_that_nobody_may_write_to_are_removed_all_the_same(tmp_path: Path) -> None:
    place = repository(tmp_path / "place")
    cache = place / ".planforge" / "worktrees" / RUN / "a" / "cache"
    code = (
        "import sys, pathlib\n"
        "from planforge.workspace.git import Git\n"
        "from planforge.workspace.worktrees import Worktrees\n"
        "place, run = pathlib.Path(sys.argv[1]), sys.argv[2]\n"
        "worktrees = Worktrees(Git.find(place), place / '.planforge', run)\n"
        "worktrees.open('a', 'HEAD')\n"
        "cache = worktrees.path('a') / 'cache'\n"
        "cache.mkdir()\n"
        "(cache / 'module').write_text('read only')\n"
        "cache.chmod(0o555)\n"
        "worktrees.close('a')\n"
    )
    command = [sys.executable, "-c", code, str(place), RUN]
    if os.geteuid() == 0:  # for whom no directory is closed, so somebody else must do it
        if not shutil.which("setpriv"):
            pytest.skip("needs a user who is not root")
        command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *command]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    assert not cache.exists()


# Leftovers of processes that died


def test_a_directory_removed_behind_our_back_is_made_again(
    place: Path, worktrees: Worktrees, head: str
) -> None:
    worktrees.open("a", head)
    shutil.rmtree(worktrees.path("a"))
    with pytest.raises(GitFailed, match="is not there any more"):
        worktrees.tree("a")
    checkout = worktrees.open("a", head)
    assert worktrees.tree("a") == checkout.tree
    assert registered(place) == [str(place), str(worktrees.path("a"))]


def test_a_directory_without_gits_entry_is_kept_and_made_again(
    place: Path, worktrees: Worktrees, head: str
) -> None:
    worktrees.open("a", head)
    write(worktrees.path("a"), {"new.py": "new\n"})
    shutil.rmtree(place / ".git" / "worktrees")
    checkout = worktrees.open("a", head)
    assert worktrees.tree("a") == checkout.tree
    assert content(place, archived(place)["a.left"], "new.py") == "new"


def test_a_directory_that_we_know_nothing_about_is_kept_before_it_makes_room(
    place: Path, worktrees: Worktrees, head: str
) -> None:
    write(worktrees.path("a"), {"strange.py": "strange\n"})
    worktrees.open("a", head)
    assert content(place, archived(place)["a.left"], "strange.py") == "strange"
    assert worktrees.tree("a") == git(place, "rev-parse", "HEAD^{tree}")


def test_an_empty_directory_is_not_worth_keeping(place: Path, worktrees: Worktrees, head: str) -> None:
    worktrees.path("a").mkdir(parents=True)
    worktrees.open("a", head)
    assert archived(place) == {}


@pytest.mark.parametrize("locked", [True, False])
def test_gits_entry_without_a_directory_is_made_good(
    place: Path, worktrees: Worktrees, head: str, locked: bool
) -> None:
    worktrees.open("a", head)
    shutil.rmtree(worktrees.path("a"))
    [entry] = (place / ".git" / "worktrees").iterdir()
    if locked:  # as `git worktree add` leaves it when it is killed
        (entry / "locked").write_text("initializing")
    (place / ".git" / "worktrees" / "half-made").mkdir()
    worktrees.open("a", head)
    assert git(worktrees.path("a"), "status", "--porcelain") == ""
    assert registered(place) == [str(place), str(worktrees.path("a"))]


@pytest.mark.parametrize("worked", [False, True])
def test_a_checkout_that_was_half_made_when_we_died_is_not_taken_for_work(
    place: Path, worktrees: Worktrees, head: str, worked: bool
) -> None:
    worktrees.open("a", head)
    note = worktrees.path("a").parent / ".a.base"
    assert '"ready":true' in note.read_text()
    note.write_text(note.read_text().replace('"ready":true', '"ready":false'))
    (worktrees.path("a") / "old.py").unlink()
    if worked:  # whatever the note says, what is in no commit is never dropped
        write(worktrees.path("a"), {"new.py": "new\n"})
    worktrees.close("a")
    assert list(archived(place)) == (["a.left"] if worked else [])


@pytest.mark.parametrize("missing", ["HEAD", "commondir", "index", "gitdir"])
def test_a_broken_entry_of_gits_is_made_good(
    place: Path, worktrees: Worktrees, head: str, missing: str
) -> None:
    worktrees.open("a", head)
    [entry] = (place / ".git" / "worktrees").iterdir()
    (entry / missing).unlink()
    checkout = worktrees.open("a", head)
    assert worktrees.tree("a") == checkout.tree
    assert git(worktrees.path("a"), "rev-parse", "HEAD") == head


def test_worktrees_of_the_persons_own_are_never_forgotten(
    place: Path, worktrees: Worktrees, head: str, tmp_path: Path
) -> None:
    for name in (b"unmounted", b"not-utf8-\xff", b"line\nbreak"):
        git(place, "worktree", "add", "--quiet", "--detach", str(tmp_path / os.fsdecode(name)))
        shutil.rmtree(tmp_path / os.fsdecode(name))
    entries = place / ".git" / "worktrees"
    before = {path: path.read_bytes() for path in entries.rglob("*") if path.is_file()}
    assert [path.name for path in before].count("gitdir") == 3
    worktrees.open("a", head)
    worktrees.open("a", head)
    worktrees.discard(worktrees.make_fresh(head))
    worktrees.close("a")
    worktrees.sweep()
    assert {path: path.read_bytes() for path in entries.rglob("*") if path.is_file()} == before


def test_entries_are_recognised_through_a_linked_state_directory(tmp_path: Path) -> None:
    place = repository(tmp_path / "place")
    (tmp_path / "elsewhere").mkdir()
    (place / ".planforge").symlink_to(tmp_path / "elsewhere")
    worktrees = Worktrees(Git.find(place), place / ".planforge", RUN)
    worktrees.open("a", "HEAD")
    worktrees.open("a", "HEAD")
    worktrees.make_fresh("HEAD")
    worktrees.sweep()
    assert registered(place) == [str(place)]


# Sweeping


def test_a_sweep_leaves_nothing_but_what_it_archived(place: Path, worktrees: Worktrees, head: str) -> None:
    for name in ("a", "b", "c"):
        worktrees.open(name, head)
    write(worktrees.path("a"), {"new.py": "a\n"})
    write(worktrees.path("b"), {"new.py": "b\n"})
    worktrees.make_fresh(head)
    worktrees.sweep()
    assert not (place / ".planforge" / "worktrees" / RUN).exists()
    assert registered(place) == [str(place)]
    assert {content(place, kept, "new.py") for kept in archived(place).values()} == {"a", "b"}
    worktrees.sweep()
    assert len(archived(place)) == 2


def test_a_sweep_forgets_worktrees_whose_directories_are_gone(
    place: Path, worktrees: Worktrees, head: str
) -> None:
    worktrees.open("a", head)
    worktrees.make_fresh(head)
    shutil.rmtree(place / ".planforge" / "worktrees")
    worktrees.sweep()
    assert registered(place) == [str(place)]


def test_a_sweep_forgets_a_worktree_that_was_never_made(place: Path, worktrees: Worktrees, head: str) -> None:
    write(worktrees.path("a").parent, {".a.base": head})
    worktrees.sweep()
    assert not worktrees.path("a").parent.exists()


def test_a_sweep_touches_no_other_run(place: Path, worktrees: Worktrees, head: str) -> None:
    other = Worktrees(Git.find(place), place / ".planforge", "run-2")
    other.open("a", head)
    worktrees.open("a", head)
    worktrees.sweep()
    assert other.path("a").exists()
    assert registered(place) == [str(place), str(other.path("a"))]


def test_what_an_agent_put_beside_its_worktree_does_not_stop_a_sweep(
    place: Path, worktrees: Worktrees, head: str
) -> None:
    worktrees.open("a", head)
    beside = worktrees.path("a").parent
    write(beside, {".hidden/file": "x\n", "stray": "x\n", "be side..@{/new.py": "new\n", ".check-.base": ""})
    (beside / "loop").symlink_to(".")
    worktrees.sweep()
    assert registered(place) == [str(place)]
    assert not worktrees.path("a").exists()
    [kept] = [found for name, found in archived(place).items() if name.startswith("be-side-")]
    assert content(place, kept, "new.py") == "new"


# Fresh checkouts


def test_a_fresh_checkout_holds_exactly_the_commit(place: Path, worktrees: Worktrees, head: str) -> None:
    first, second = worktrees.make_fresh(head), worktrees.make_fresh(head)
    assert first != second
    assert git(first, "status", "--porcelain", "--ignored") == ""
    assert git(first, "rev-parse", "HEAD") == head
    worktrees.discard(first)
    assert second.exists()
    worktrees.discard_checks()
    assert registered(place) == [str(place)]


def test_discarding_checks_leaves_worktrees_alone(worktrees: Worktrees, head: str) -> None:
    worktrees.open("a", head)
    worktrees.make_fresh(head)
    worktrees.discard_checks()
    assert [path.name for path in sorted(worktrees.path("a").parent.iterdir())] == [".a.base", "a"]


# Carrying a change over


def change(worktrees: Worktrees, base: str, files: dict[str, str | bytes], message: str, label: str) -> str:
    worktrees.open(label, base)
    write(worktrees.path(label), files)
    return worktrees.commit(label, base, message, label, DATE).commit


def test_a_change_is_carried_over_with_its_message_and_trailers(
    place: Path, worktrees: Worktrees, head: str
) -> None:
    message = "a subject with ü\n\nA body.\n\n\nPlanforge-Step: phase-1\nPlanforge-Attempt: 2\n"
    tip = change(worktrees, head, {"README.md": "theirs\n"}, "theirs\n", "tip")
    mine = change(worktrees, head, {"app.py": "one\ntwo\n3\n"}, message, "mine")
    patch = worktrees.rebase(mine, tip, "carried", DATE)
    assert patch.conflicts == ()
    assert (patch.parent, patch.files, patch.changed_lines) == (tip, ("app.py",), 2)
    assert git(place, "cat-file", "commit", patch.commit).partition("\n\n")[2] + "\n" == message
    assert git(place, "log", "-1", "--format=%(trailers:key=Planforge-Step,valueonly)", patch.commit) == (
        "phase-1\n"
    )
    assert content(place, patch.commit, "README.md") == "theirs"
    assert content(place, patch.commit, "app.py") == "one\ntwo\n3"
    assert archived(place)["carried"] == patch.commit
    assert worktrees.rebase(mine, tip, "carried", DATE) == patch


def test_a_message_that_is_not_utf8_is_no_failure(place: Path, worktrees: Worktrees, head: str) -> None:
    tip = change(worktrees, head, {"README.md": "theirs\n"}, "theirs\n", "tip")
    mine = change(worktrees, head, {"app.py": "mine\n"}, "caf\udce9\n", "mine")
    patch = worktrees.rebase(mine, tip, "carried", DATE)
    assert Git.find(place).run("cat-file", "commit", patch.commit).stdout.endswith("\n\ncafé\n".encode())


def test_conflicts_are_named_and_nothing_is_lost(place: Path, worktrees: Worktrees, head: str) -> None:
    files: dict[str, str | bytes] = {"app.py": "mine\n", "ä b.txt": "mine\n", "fine.txt": "mine\n"}
    tip = change(worktrees, head, {"app.py": "theirs\n", "ä b.txt": "theirs\n"}, "theirs\n", "tip")
    mine = change(worktrees, head, files, "mine\n", "mine")
    before = archived(place)
    patch = worktrees.rebase(mine, tip, "carried", DATE)
    assert patch.conflicts == ("app.py", "ä b.txt")
    assert (patch.commit, patch.parent) == (mine, head)
    assert patch.tree == git(place, "rev-parse", f"{mine}^{{tree}}")
    assert patch.files == ("app.py", "fine.txt", "ä b.txt")
    assert archived(place) == before


# Many at once

BUSY = """
import pathlib, sys
from planforge.workspace.git import Git
from planforge.workspace.worktrees import Worktrees

place, worker = pathlib.Path(sys.argv[1]), sys.argv[2]
worktrees = Worktrees(Git.find(place), place / ".planforge", "run-1")
for number in range(5):
    name = f"w{worker}-{number}"
    worktrees.open(name, "origin/topic")
    (worktrees.path(name) / "new.py").write_text(name)
    worktrees.close(name)
worktrees.discard(worktrees.make_fresh("HEAD"))
"""


@pytest.mark.dear
def test_forty_worktrees_by_eight_processes_at_once_do_not_get_in_each_others_way(place: Path) -> None:
    git(place, "update-ref", "refs/remotes/origin/topic", "HEAD")  # where git would write to its settings
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", BUSY, str(place), str(number)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for number in range(8)
    ]
    said = [worker.communicate(timeout=300)[0].decode() for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 8, said
    kept = archived(place)
    assert len(kept) == 40
    assert all(content(place, found, "new.py") == name.removesuffix(".left") for name, found in kept.items())
    assert registered(place) == [str(place)]
    assert git(place, "for-each-ref", "refs/heads/planforge") == ""
    git(place, "update-ref", "-d", "refs/remotes/origin/topic")


# Hashes


def test_the_hashes_are_those_of_the_new_contents_and_empty_for_what_is_gone(
    place: Path, worktrees: Worktrees, head: str
) -> None:
    worktrees.open("step", head)
    left = worktrees.path("step")
    write(left, {"app.py": "changed\n", "dir/with a space.py": "new\n", "naïve.py": "ü\n"})
    (left / "old.py").unlink()
    patch = worktrees.commit("step", head, "half\n", "step-1.turn-1", DATE)
    found = patches.hashes(Git.find(place), head, patch.commit)
    assert dict(found) == {
        "app.py": git(place, "hash-object", "--stdin", stdin=b"changed\n"),
        "dir/with a space.py": git(place, "hash-object", "--stdin", stdin=b"new\n"),
        "naïve.py": git(place, "hash-object", "--stdin", stdin="ü\n".encode()),
        "old.py": "",
    }
    assert [path for path, _ in found] == list(patch.files)
    assert patches.hashes(Git.find(place), head, head) == ()
