"""A person's checkout brought up to date: all of it or none, and nothing of theirs lost."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest

from planforge.errors import Locked, RefusedByGate
from planforge.interfaces.cli.typed import text
from planforge.workspace.git import Git
from planforge.workspace.landing import updates
from repositories import commit, fingerprint, git, repository, trap, write

OLD: dict[str, str | bytes] = {
    "kept.txt": "kept\n",
    "changed.txt": "old\n",
    "gone.txt": "gone\n",
    "sub/deep/gone.txt": "gone\n",
    "was-a-file": "a file\n",
    "was-a-directory/inside": "inside\n",
}
NEW: dict[str, str | bytes] = {
    "changed.txt": "new\n" * 1000,
    "added.txt": "added\n",
    "new/deep/added.txt": "added\n",
    "was-a-file/inside": "now inside\n",
    "was-a-directory": "now a file\n",
    os.fsdecode(b"odd\n\xff name"): "odd\n",
}


NOTE = ".git/planforge-update.json"


class Checkout:
    """A checkout of `main`, and a commit that is ahead of it."""

    def __init__(self, place: Path, *, object_format: str = "sha1") -> None:
        self.place = repository(place, OLD, object_format=object_format)
        self.old = git(place, "rev-parse", "HEAD")
        self.new = self.ahead(NEW, remove=("gone.txt", "sub", "was-a-file", "was-a-directory"))
        self.git = Git.find(place)

    def ahead(self, files: Mapping[str, str | bytes], *, remove: tuple[str, ...] = (), link: str = "") -> str:
        """A commit on top of `main` that the checkout does not have."""
        git(self.place, "checkout", "--quiet", "--detach", "main")
        if remove:
            git(self.place, "rm", "--quiet", "-r", *remove)
        if link:
            (self.place / "link").symlink_to(link)
        made = commit(self.place, files, "landed")
        git(self.place, "checkout", "--quiet", "main")
        return made

    def update(self, to: str = "") -> None:
        updates.update(self.git, "main", to or self.new)

    def require_new(self) -> None:
        """All of it is new: branch, index and files."""
        assert git(self.place, "rev-parse", "HEAD", "refs/heads/main").split() == [self.new, self.new]
        assert git(self.place, "symbolic-ref", "HEAD") == "refs/heads/main"
        assert git(self.place, "status", "--porcelain") == ""
        assert git(self.place, "write-tree") == git(self.place, "rev-parse", f"{self.new}^{{tree}}")
        assert not (self.place / ".git" / "index.lock").exists()
        assert not (self.place / NOTE).exists()
        git(self.place, "fsck", "--strict")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "pla ce")


def test_branch_index_and_files_go_forward_together(checkout: Checkout) -> None:
    (checkout.place / "mine.txt").write_text("not tracked, and in nobody's way\n")
    updates.look(checkout.git, "main", checkout.new)
    change = updates.update(checkout.git, "main", checkout.new)
    assert (change.place, change.was, change.now, change.files) == (
        str(checkout.place),
        checkout.old,
        checkout.new,
        10,
    )
    assert (checkout.place / "mine.txt").exists()
    (checkout.place / "mine.txt").unlink()
    checkout.require_new()
    assert not (checkout.place / "sub").exists()


def test_looking_changes_nothing(checkout: Checkout) -> None:
    before = fingerprint(checkout.place)
    updates.look(checkout.git, "main", checkout.new)
    assert fingerprint(checkout.place) == before


def test_to_where_it_is_already_nothing_happens(checkout: Checkout) -> None:
    before = fingerprint(checkout.place)
    checkout.update(checkout.old)
    assert fingerprint(checkout.place) == before


def test_a_repository_with_long_hashes(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path / "place", object_format="sha256")
    checkout.update()
    checkout.require_new()


def test_links_are_links(checkout: Checkout) -> None:
    checkout.new = checkout.ahead({}, link="/nowhere")
    checkout.update()
    assert str((checkout.place / "link").readlink()) == "/nowhere"
    checkout.require_new()


def test_a_branch_that_is_checked_out_nowhere_is_moved_alone(checkout: Checkout) -> None:
    git(checkout.place, "checkout", "--quiet", "-b", "other")
    before = fingerprint(checkout.place)
    change = updates.update(checkout.git, "main", checkout.new)
    assert (change.place, change.files) == ("", 0)
    assert git(checkout.place, "rev-parse", "main") == checkout.new
    assert {**fingerprint(checkout.place), "refs": ""} == {**before, "refs": ""}


def test_a_checkout_in_another_worktree_is_brought_up_to_date_and_no_other(
    checkout: Checkout, tmp_path: Path
) -> None:
    git(checkout.place, "checkout", "--quiet", "-b", "other")
    elsewhere = tmp_path / "elsewhere"
    git(checkout.place, "worktree", "add", "--quiet", str(elsewhere), "main")
    change = updates.update(checkout.git, "main", checkout.new)
    assert change.place == str(elsewhere)
    assert git(elsewhere, "status", "--porcelain") == ""
    assert git(elsewhere, "rev-parse", "HEAD") == checkout.new
    assert (elsewhere / "added.txt").read_text() == "added\n"
    assert git(checkout.place, "status", "--porcelain") == ""
    assert git(checkout.place, "rev-parse", "HEAD") == checkout.old


# What refuses it


def edit(place: Path) -> str:
    (place / "kept.txt").write_text("mine\n")
    return "has changes that are not committed: `kept.txt`"


def stage(place: Path) -> str:
    write(place, {"staged.txt": "mine\n"})
    git(place, "add", "staged.txt")
    return "has changes that are not committed: `staged.txt`"


def remove(place: Path) -> str:
    (place / "changed.txt").unlink()
    return "has changes that are not committed: `changed.txt`"


def edit_secretly(place: Path) -> str:
    """A change that git was told not to look for."""
    git(place, "update-index", "--assume-unchanged", "changed.txt")
    (place / "changed.txt").write_text("mine\n")
    return "cannot be updated: .*changed.txt|changed.txt"


def untracked(place: Path) -> str:
    write(place, {"added.txt": "mine\n", "new/deep/added.txt": "mine\n"})
    return "are in the way in .*: `added.txt`, `new/deep/added.txt`"


def ignored(place: Path) -> str:
    (place / ".git" / "info" / "exclude").write_text("added.txt\n")
    (place / "added.txt").write_text("mine\n")
    return "are in the way in .*: `added.txt`"


def file_for_directory(place: Path) -> str:
    (place / "new").write_text("mine\n")
    return "are in the way in .*: `new`"


def link_for_directory(place: Path) -> str:
    (place.parent / "outside").mkdir()
    (place / "new").symlink_to(place.parent / "outside")
    return "are in the way in .*: `new`"


def more_in_directory(place: Path) -> str:
    (place / "was-a-directory" / "mine").write_text("mine\n")
    return "are in the way in .*: `was-a-directory/mine`"


def sparse(place: Path) -> str:
    git(place, "update-index", "--skip-worktree", "kept.txt")
    return "is a sparse checkout"


def merging(place: Path) -> str:
    (place / ".git" / "MERGE_HEAD").write_text(git(place, "rev-parse", "HEAD") + "\n")
    return "a merge is under way in"


def bisecting(place: Path) -> str:
    git(place, "bisect", "start")
    return "a bisect is under way in"


def line_ends(place: Path) -> str:
    git(place, "config", "core.autocrlf", "true")
    return "`core.autocrlf` is `true`"


@pytest.mark.parametrize(
    "hinder",
    [
        edit,
        stage,
        remove,
        edit_secretly,
        untracked,
        ignored,
        file_for_directory,
        link_for_directory,
        more_in_directory,
        sparse,
        merging,
        bisecting,
        line_ends,
    ],
)
def test_it_is_refused_where_something_is_in_the_way_and_says_what(
    checkout: Checkout, hinder: Callable[[Path], str]
) -> None:
    said = hinder(checkout.place)
    before = fingerprint(checkout.place)
    if hinder is not edit_secretly:
        with pytest.raises(RefusedByGate, match=said):
            updates.look(checkout.git, "main", checkout.new)
    with pytest.raises(RefusedByGate, match=said):
        checkout.update()
    assert fingerprint(checkout.place) == before
    assert not (checkout.place / ".git" / "index.lock").exists()
    assert not (checkout.place / NOTE).exists()


def test_a_change_to_the_same_size_in_the_tick_in_which_git_looked_is_seen(checkout: Checkout) -> None:
    kept, index = checkout.place / "kept.txt", checkout.place / ".git" / "index"
    old = git(checkout.place, "rev-parse", "HEAD:kept.txt")
    kept.write_text("mine\n")
    git(checkout.place, "update-index", "kept.txt")
    new = git(checkout.place, "rev-parse", ":kept.txt")
    # As if git had written the old content, and we the new one, before the clock moved on: the index has the
    # old content and the times of the new one, and is as old as these.
    body = index.read_bytes()[:-20].replace(bytes.fromhex(new), bytes.fromhex(old))
    index.write_bytes(body + hashlib.sha1(body, usedforsecurity=False).digest())
    tick = kept.stat().st_mtime_ns
    os.utime(index, ns=(tick, tick))
    while time.time() < tick // 10**9 + 1:  # many a git counts in seconds
        time.sleep(0.01)
    with pytest.raises(RefusedByGate, match=r"`kept\.txt`"):
        checkout.update()
    assert kept.read_text() == "mine\n"


def test_line_ends_that_the_person_has_converted_everywhere_refuse_it_too(
    checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text("[core]\n\tautocrlf = true\n")
    with pytest.raises(RefusedByGate, match=r"`core\.autocrlf` is `true`"):
        checkout.update()


def test_files_that_go_through_a_filter_are_left_to_git(checkout: Checkout) -> None:
    checkout.new = checkout.ahead({".gitattributes": "*.bin filter=lfs\n", "large.bin": "pointer\n"})
    with pytest.raises(RefusedByGate, match=r"`large\.bin` goes through a filter") as refused:
        checkout.update()
    assert text(refused.value.hint) == f"run `git merge --ff-only {checkout.new[:12]}` there yourself"


def test_what_is_no_step_forward_is_refused(checkout: Checkout) -> None:
    commit(checkout.place, {"kept.txt": "the person's\n"})
    with pytest.raises(RefusedByGate, match="has commits that what has landed is not built on") as refused:
        checkout.update()
    assert "run `planforge land` first" in text(refused.value.hint)


def test_another_git_at_work_is_left_alone(checkout: Checkout) -> None:
    lock = checkout.place / ".git" / "index.lock"
    lock.write_bytes(b"")
    before = fingerprint(checkout.place)
    with pytest.raises(Locked, match="another git command is at work in"):
        checkout.update()
    assert lock.exists()
    assert fingerprint(checkout.place) == before


def test_a_branch_that_moves_in_the_last_moment_stays_where_it_is_and_the_files_go_back(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = fingerprint(checkout.place)
    theirs = checkout.git.commit_tree(
        checkout.git.tree_of("main"), [checkout.old], "theirs\n", "2026-01-02T00:00:00+00:00"
    )
    moved = Git.move_ref

    def move_first(self: Git, name: str, new: str, old: str | None) -> bool:
        git(checkout.place, "update-ref", "refs/heads/main", theirs)
        return moved(self, name, new, old)

    monkeypatch.setattr(Git, "move_ref", move_first)
    with pytest.raises(RefusedByGate, match="`main` moved meanwhile"):
        checkout.update()
    assert git(checkout.place, "rev-parse", "main") == theirs
    assert {**fingerprint(checkout.place), "refs": ""} == {**before, "refs": ""}
    assert git(checkout.place, "status", "--porcelain") == ""


def test_no_hook_and_no_monitor_of_the_repository_is_run(checkout: Checkout, tmp_path: Path) -> None:
    program, mark = trap(tmp_path)
    for name in ("post-checkout", "post-index-change", "reference-transaction", "post-merge"):
        (checkout.place / ".git" / "hooks" / name).symlink_to(program)
    git(checkout.place, "config", "core.fsmonitor", str(program))
    checkout.update()
    assert not mark.exists()


# Half-way


KILLED = """
import os, pathlib, signal, sys
from planforge.workspace.landing import updates
from planforge.workspace.git import Git

place, new, after = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]

def die(before):
    def killed(*arguments, **options):
        if before:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = real(*arguments, **options)
        os.kill(os.getpid(), signal.SIGKILL)
    return killed

owner, _, name = after.removeprefix("before ").rpartition(".")
holder = Git if owner == "Git" else updates
real = getattr(holder, name)
setattr(holder, name, die(after.startswith("before ")))
updates.update(Git.find(place), "main", new)
"""
"""Dies before or after one of the things that an update does, as the kernel would kill it."""


@pytest.mark.parametrize(
    "moment",
    ["before updates._carry_out", "updates._switch", "Git.move_ref", "updates._carry_out"],
)
def test_a_process_that_was_killed_leaves_old_or_new_and_doing_it_again_finishes(
    checkout: Checkout, moment: str
) -> None:
    process = subprocess.run(
        [sys.executable, "-c", KILLED, str(checkout.place), checkout.new, moment],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == -signal.SIGKILL, process.stderr
    assert (checkout.place / ".git" / "index.lock").exists()
    assert updates.is_begun(checkout.git, "main")
    with pytest.raises(AssertionError, match=r"index\.lock"):
        git(checkout.place, "commit", "--quiet", "--all", "--message=half of it")
    checkout.update()
    checkout.require_new()


def half_way(checkout: Checkout) -> None:
    """As git leaves it when it is killed while it writes the files."""
    write(checkout.place, {"changed.txt": "new\n" * 10})
    for name in ("was-a-file", "gone.txt"):
        (checkout.place / name).unlink()
    write(
        checkout.place,
        {"was-a-file/inside": "now inside\n", "added.txt": "added\n", "new/deep/added.txt": ""},
    )
    begun = updates.Begun(branch="main", old=checkout.old, new=checkout.new)
    (checkout.place / NOTE).write_bytes(msgspec.json.encode(begun))
    (checkout.place / ".git" / "index.lock").write_bytes(updates.OURS)


def test_files_that_were_half_written_are_written_again(checkout: Checkout) -> None:
    half_way(checkout)
    checkout.update()
    checkout.require_new()


def test_what_landed_since_an_update_was_interrupted_is_brought_in_as_well(checkout: Checkout) -> None:
    half_way(checkout)
    tree = checkout.git.tree_of(checkout.new)
    later = checkout.git.commit_tree(tree, [checkout.new], "later\n", "2026-01-02T00:00:00+00:00")
    checkout.new = later
    checkout.update()
    checkout.require_new()


@pytest.mark.parametrize("name", ["changed.txt", "added.txt", "kept.txt"])
def test_what_the_person_changed_since_an_update_was_interrupted_is_not_lost(
    checkout: Checkout, name: str
) -> None:
    half_way(checkout)
    (checkout.place / name).write_text("mine\n")
    with pytest.raises(RefusedByGate, match=f"`{name}`"):
        checkout.update()
    assert (checkout.place / name).read_text() == "mine\n"
    assert updates.is_begun(checkout.git, "main")


def test_a_person_who_put_it_right_by_hand_is_not_held_up(checkout: Checkout) -> None:
    half_way(checkout)
    (checkout.place / ".git" / "index.lock").unlink()
    git(checkout.place, "reset", "--quiet", "--hard")
    git(checkout.place, "clean", "--quiet", "-d", "--force")
    checkout.update()
    checkout.require_new()
