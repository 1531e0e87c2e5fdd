"""What agents did with git in their worktrees, and what must not or cannot be in git: none of it is lost."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from archives import archived, content, listing
from planforge.errors import GitFailed, SecretFound
from planforge.workspace.archive import quarantine
from planforge.workspace.git import Git
from planforge.workspace.worktrees import Worktrees
from repositories import DATE, commit, git, repository, trap, write

RUN = "run-1"
FILES: dict[str, str | bytes] = {"app.py": "one\n", "docs/guide.md": "guide\n", ".gitignore": "*.log\n"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return repository(tmp_path / "place", FILES)


@pytest.fixture
def worktrees(place: Path) -> Worktrees:
    return Worktrees(Git.find(place), place / ".planforge", RUN)


@pytest.fixture
def head(place: Path) -> str:
    return git(place, "rev-parse", "HEAD")


@pytest.fixture
def path(worktrees: Worktrees, head: str) -> Path:
    """A worktree `a` that an agent may work in."""
    worktrees.open("a", head)
    return worktrees.path("a")


def wipe(place: Path) -> None:
    """Do to a repository what makes everything go that no ref reaches."""
    git(place, "reflog", "expire", "--expire=now", "--all")
    git(place, "worktree", "prune")
    git(place, "gc", "--quiet", "--prune=now")


# Commits of the agent's own


def test_commits_that_an_agent_made_are_kept_with_their_history(
    place: Path, worktrees: Worktrees, path: Path, head: str
) -> None:
    commit(path, {"one.py": "1\n"}, "one")
    mine = commit(path, {"two.py": "2\n"}, "two")
    worktrees.commit("a", head, "ours\n", "a-1", DATE)
    worktrees.close("a")
    assert sorted(archived(place)) == ["a-1", "a.head"]
    assert archived(place)["a.head"] == mine
    wipe(place)
    assert git(place, "log", "--format=%s", mine).splitlines() == ["two", "one", "first"]


def test_commits_that_an_agent_reset_away_or_amended_are_kept_under_one_name(
    place: Path, worktrees: Worktrees, path: Path, head: str
) -> None:
    made = [commit(path, {"a.py": f"{number}\n"}, f"try {number}") for number in range(2)]
    git(path, "reset", "--quiet", "--hard", head)
    made.append(commit(path, {"b.py": "b\n"}, "another"))
    git(path, "commit", "--quiet", "--amend", "--message=amended")
    made.append(git(path, "rev-parse", "HEAD"))
    git(path, "reset", "--quiet", "--hard", head)
    worktrees.close("a")
    assert list(archived(place)) == ["a.lost"]
    wipe(place)
    kept = git(place, "rev-list", archived(place)["a.lost"]).split()
    assert set(made) < set(kept)


def test_a_single_commit_that_was_left_behind_is_kept_as_it_is(
    place: Path, worktrees: Worktrees, path: Path, head: str
) -> None:
    made = commit(path, {"a.py": "1\n"}, "gone")
    git(path, "reset", "--quiet", "--hard", head)
    git(place, "reflog", "expire", "--expire=now", "--all")  # so that only ORIG_HEAD names it
    worktrees.close("a")
    assert archived(place) == {"a.lost": made}


def test_a_rebase_that_was_under_way_loses_nothing(
    place: Path, worktrees: Worktrees, path: Path, head: str
) -> None:
    commit(path, {"app.py": "mine\n"}, "mine")
    mine = commit(path, {"more.py": "more\n"}, "more")
    other = commit(place, {"app.py": "theirs\n"}, "theirs")
    process = subprocess.run(["git", "rebase", other], cwd=path, capture_output=True, check=False)
    assert process.returncode
    shutil.rmtree(place / ".git" / "worktrees" / "a" / "logs")
    (place / ".git" / "worktrees" / "a" / "ORIG_HEAD").unlink()
    git(place, "update-ref", "-d", "refs/heads/planforge/work/run-1/a")
    worktrees.close("a")
    assert mine in git(place, "rev-list", *archived(place).values()).split()


def test_branches_and_tags_that_an_agent_made_are_kept(place: Path, worktrees: Worktrees, path: Path) -> None:
    git(path, "checkout", "--quiet", "-b", "feature/mine")
    on_branch = commit(path, {"mine.py": "mine\n"}, "mine")
    tree = git(path, "rev-parse", "HEAD^{tree}")
    beside = git(path, "commit-tree", "-m", "beside", tree)
    git(path, "update-ref", "refs/heads/beside", beside)
    tagged = git(path, "commit-tree", "-m", "tagged", tree)
    git(path, "tag", "--annotate", "--message=x", "v1", tagged)
    git(path, "checkout", "--quiet", "--detach", "main")
    worktrees.close("a")
    kept = archived(place)
    assert kept == {"a.branch-feature-mine": on_branch, "a.branch-beside": beside, "a.branch-v1": tagged}
    for ref in ("refs/heads/feature/mine", "refs/heads/beside", "refs/tags/v1"):
        git(place, "update-ref", "-d", ref)
    wipe(place)
    assert content(place, on_branch, "mine.py") == "mine"


def test_a_branch_of_the_persons_that_an_agent_deletes_or_rewinds_is_kept(
    place: Path, worktrees: Worktrees, head: str
) -> None:
    git(place, "checkout", "--quiet", "-b", "topic")
    theirs = commit(place, {"theirs.py": "theirs\n"}, "theirs")
    git(place, "checkout", "--quiet", "-b", "draft")
    draft = commit(place, {"draft.py": "draft\n"}, "draft")
    git(place, "checkout", "--quiet", "main")
    worktrees.open("a", head)
    git(worktrees.path("a"), "branch", "--quiet", "-D", "draft")
    git(worktrees.path("a"), "branch", "--quiet", "--force", "topic", head)
    worktrees.close("a")
    wipe(place)
    assert content(place, archived(place)["a.was-draft"], "draft.py") == "draft"
    assert git(place, "rev-list", draft).split()[1] == theirs


def test_what_the_person_does_meanwhile_is_not_taken_for_the_agents(
    place: Path, worktrees: Worktrees, path: Path
) -> None:
    commit(place, {"mine.py": "mine\n"}, "the person's")
    git(place, "commit", "--quiet", "--amend", "--message=the person's, amended")
    git(place, "update-ref", "refs/remotes/origin/main", "HEAD")
    git(path, "checkout", "--quiet", "--detach", "refs/remotes/origin/main")
    worktrees.close("a")
    assert list(archived(place)) == ["a.left"]


def test_stashes_that_an_agent_made_are_kept_and_the_persons_stay(
    place: Path, worktrees: Worktrees, head: str
) -> None:
    write(place, {"app.py": "the person's\n"})
    git(place, "stash", "--quiet")
    before = git(place, "stash", "list", "--format=%H")
    worktrees.open("a", head)
    path = worktrees.path("a")
    for number in range(2):
        write(path, {"app.py": f"stashed {number}\n", "new.py": "new\n"})
        git(path, "stash", "--quiet", "--include-untracked")
    made = git(path, "stash", "list", "--format=%H").splitlines()[:2]
    worktrees.close("a")
    assert set(archived(place).values()) == set(made)
    assert sorted(archived(place)) == ["a.stash", "a.stash.2"]
    git(place, "stash", "drop", "--quiet")
    git(place, "stash", "drop", "--quiet")
    assert git(place, "stash", "list", "--format=%H") == before
    wipe(place)
    assert content(place, f"{made[0]}^3", "new.py") == "new"


def test_what_was_staged_and_changed_since_is_kept(place: Path, worktrees: Worktrees, path: Path) -> None:
    write(path, {"app.py": "staged\n"})
    git(path, "add", "app.py")
    write(path, {"app.py": "changed again\n"})
    worktrees.close("a")
    kept = archived(place)
    assert {name: content(place, found, "app.py") for name, found in kept.items()} == {
        "a.left": "changed again",
        "a.staged": "staged",
    }


def test_a_worktree_that_an_agent_made_inside_its_own_is_kept_too(
    place: Path, worktrees: Worktrees, path: Path
) -> None:
    git(path, "worktree", "add", "--quiet", "--detach", "inner")
    made = commit(path / "inner", {"inner.py": "inner\n"}, "inner")
    write(path / "inner", {"half.py": "half\n"})
    worktrees.close("a")
    assert git(place, "worktree", "list").count("\n") == 0
    kept = archived(place)
    assert kept["a.head"] == made
    assert content(place, kept["a.left"], "inner/half.py") == "half"


def test_a_commit_of_which_something_is_missing_is_named_and_no_ref_is_made_of_it(
    place: Path, worktrees: Worktrees, path: Path
) -> None:
    made = commit(path, {"new.py": "new\n"}, "mine")
    blob = git(path, "rev-parse", "HEAD:new.py")
    broken = commit(path, {"other.py": "other\n"}, "broken")
    git(path, "rm", "--quiet", "new.py", "other.py")
    (place / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    worktrees.close("a")
    assert not {made, broken} & set(archived(place).values())
    assert any(broken[:12] in said for said in worktrees.not_kept)
    assert not path.exists()


# Repositories inside


@pytest.mark.parametrize("where", ["crate", "docs"])
def test_commits_of_a_repository_inside_are_kept_and_nothing_of_it_runs(
    place: Path, worktrees: Worktrees, path: Path, tmp_path: Path, where: str
) -> None:
    program, mark = trap(tmp_path)
    inner = repository(path / where, {"lib.rs": "lib\n"})
    made = commit(inner, {"lib.rs": "better\n"}, "better")
    git(inner, "config", "core.fsmonitor", str(program))
    git(inner, "config", "uploadpack.packObjectsHook", str(program))
    worktrees.close("a")
    wipe(place)
    assert archived(place)[f"a.nested-{where}"] == made
    assert git(place, "log", "--format=%s", made).splitlines() == ["better", "first"]
    assert content(place, archived(place)["a.left"], f"{where}/lib.rs") == "better"
    assert not mark.exists()


def test_commits_in_a_repository_that_an_agent_put_over_its_worktree_are_kept(
    place: Path, worktrees: Worktrees, path: Path
) -> None:
    (path / ".git").unlink()
    repository(path, {"theirs.py": "theirs\n"})
    made = commit(path, {"theirs.py": "more\n"}, "more")
    git(path, "reset", "--quiet", "--hard", "HEAD~1")
    worktrees.close("a")
    wipe(place)
    assert content(place, archived(place)["a.nested-root"], "theirs.py") == "more"
    assert archived(place)["a.nested-root"] == made


def test_a_clone_with_nothing_of_its_own_is_kept_as_files_only(
    place: Path, worktrees: Worktrees, path: Path, tmp_path: Path
) -> None:
    origin = repository(tmp_path / "origin", {"lib.py": "lib\n"})
    git(path, "clone", "--quiet", str(origin), "lib")
    worktrees.close("a")
    assert list(archived(place)) == ["a.left"]
    assert content(place, archived(place)["a.left"], "lib/lib.py") == "lib"


def test_the_history_of_a_repository_that_we_cannot_read_is_said_to_be_missing(
    place: Path, worktrees: Worktrees, path: Path
) -> None:
    repository(path / "crate", {"lib.rs": "lib\n"}, object_format="sha256")
    worktrees.close("a")
    assert content(place, archived(place)["a.left"], "crate/lib.rs") == "lib"
    [said] = worktrees.not_kept
    assert said.startswith("the repository in `crate` is not kept as one:")


@pytest.mark.parametrize("changed", ["files", "commits", "nothing"])
def test_work_in_a_submodule_is_kept(tmp_path: Path, changed: str) -> None:
    inner = repository(tmp_path / "inner", {"lib.py": "lib\n"})
    place = repository(tmp_path / "place")
    allow = ("-c", "protocol.file.allow=always")
    git(place, *allow, "submodule", "--quiet", "add", str(inner), "inner")
    head = commit(place, {}, "with a submodule")
    worktrees = Worktrees(Git.find(place), place / ".planforge", RUN)
    worktrees.open("a", head)
    path = worktrees.path("a")
    git(path, *allow, "submodule", "--quiet", "update", "--init")
    if changed == "files":
        write(path / "inner", {"lib.py": "changed\n"})
    elif changed == "commits":
        for key, value in (("user.name", "A"), ("user.email", "a@b.c")):
            git(path / "inner", "config", key, value)
        commit(path / "inner", {"lib.py": "changed\n"}, "mine")
    worktrees.close("a")
    kept = archived(place)
    if changed == "nothing":
        assert kept == {}
    else:
        wipe(place)
        assert content(place, kept["a.nested-inner"], "lib.py") == "changed"


# What git cannot hold


def test_a_file_that_git_cannot_hold_is_kept_outside_git(
    place: Path, worktrees: Worktrees, path: Path
) -> None:
    write(path, {".GIT/config": "not allowed\n", "new.py": "new\n"})
    worktrees.close("a")
    [kept] = quarantine.everything(place / ".planforge")
    assert kept.held.paths == (".GIT/config",)
    assert (kept.directory / "files" / ".GIT" / "config").read_text() == "not allowed\n"
    assert any("`.GIT/config`" in said for said in worktrees.not_kept)
    assert "`.GIT/config`" in git(place, "log", "-1", "--format=%b", archived(place)["a.left"])


CLOSED = """
import os, sys, pathlib
from planforge.errors import GitFailed, SecretFound
from planforge.workspace.git import Git
from planforge.workspace.worktrees import Worktrees
place = pathlib.Path(sys.argv[1])
worktrees = Worktrees(Git.find(place), place / '.planforge', 'run-1')
path = worktrees.path('a')
worktrees.open('a', 'HEAD')
(path / 'shut').mkdir()
(path / 'shut' / 'file').write_text('inside')
(path / 'shut').chmod(0)
try:
    worktrees.tree('a')
except GitFailed as error:
    print(error.message)
(path / 'closed').write_text('closed')
(path / 'closed').chmod(0)
worktrees.close('a')
print(worktrees.not_kept)
"""


def test_files_that_nobody_may_read_are_no_part_of_a_commit_silently_and_are_kept(place: Path) -> None:
    command = [sys.executable, "-c", CLOSED, str(place)]
    if os.geteuid() == 0:  # for whom nothing is closed, so somebody else must do it
        if not shutil.which("setpriv"):
            pytest.skip("needs a user who is not root")
        command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *command]
    process = subprocess.run(command, check=True, capture_output=True, timeout=60, text=True)
    said, not_kept = process.stdout.splitlines()
    assert "could not open directory 'shut/'" in said
    assert not_kept == "[]"
    kept = archived(place)["a.left"]
    assert (content(place, kept, "closed"), content(place, kept, "shut/file")) == ("closed", "inside")


# What must not be in git


def objects_with(place: Path, text: bytes) -> list[str]:
    """The objects of a repository, reachable or not, that hold a text."""
    listed = git(
        place, "cat-file", "--batch-check=%(objectname) %(objecttype)", "--batch-all-objects"
    ).split()
    names = [name for name, kind in zip(listed[::2], listed[1::2], strict=True) if kind == "blob"]
    read = ["git", "cat-file", "blob"]
    return [
        name
        for name in names
        if text in subprocess.run([*read, name], cwd=place, capture_output=True, check=True).stdout
    ]


def hunter(path: str, content: bytes) -> tuple[str, ...]:
    """A finder of one secret."""
    return (path,) if b"hunter2" in content else ()


@pytest.fixture
def careful(place: Path) -> Worktrees:
    return Worktrees(Git.find(place), place / ".planforge", RUN, secret=hunter)


def test_a_finder_of_secrets_keeps_files_out_of_what_is_archived_and_their_bytes_for_their_owner_only(
    place: Path, careful: Worktrees, head: str
) -> None:
    careful.open("a", head)
    path = careful.path("a")
    write(path, {"new.py": "new\n", "docs/guide.md": "hunter2\n", "env": "hunter2\n"})
    (path / "link").symlink_to("hunter2")
    repository(path / "crate", {"lib.rs": "lib\n"})
    write(path / "crate", {"secrets.rs": "hunter2\n"})
    careful.close("a")
    kept = archived(place)["a.left"]
    assert "new.py" in listing(place, kept)
    assert content(place, kept, "docs/guide.md") == "guide"
    assert objects_with(place, b"hunter2") == []
    [held] = quarantine.everything(place / ".planforge")
    assert set(held.held.paths) == {"docs/guide.md", "env", "link", "crate/secrets.rs"}
    assert (held.directory / "files" / "link").readlink() == Path("hunter2")
    for file in (place / ".planforge" / "quarantine").rglob("*"):
        mode = file.lstat().st_mode
        assert not stat.S_ISREG(mode) or not stat.S_IMODE(mode) & 0o077, file
    assert stat.S_IMODE((place / ".planforge" / "quarantine").stat().st_mode) == 0o700


def test_what_holds_a_secret_is_not_committed(place: Path, careful: Worktrees, head: str) -> None:
    careful.open("a", head)
    write(careful.path("a"), {"new.py": "new\n", "env": "hunter2\n"})
    with pytest.raises(SecretFound, match="env"):
        careful.commit("a", head, "ours\n", "a-1", DATE)
    careful.close("a")
    assert objects_with(place, b"hunter2") == []
    [held] = quarantine.everything(place / ".planforge")
    assert (held.held.why, held.held.paths) == ("it holds a secret", ("env",))


def test_commits_that_hold_a_file_with_a_secret_are_kept_outside_git(
    place: Path, careful: Worktrees, head: str
) -> None:
    careful.open("a", head)
    made = commit(careful.path("a"), {"key.pem": "hunter2\n", "new.py": "new\n"}, "oops")
    careful.close("a")
    assert list(archived(place)) == ["a.left"]
    wipe(place)
    assert objects_with(place, b"hunter2") == []
    [pack] = [kept for kept in quarantine.everything(place / ".planforge") if kept.held.commits]
    assert pack.held.commits == (made,)
    git(place, "unpack-objects", "-q", stdin=(pack.directory / "commits.pack").read_bytes())
    assert content(place, made, "key.pem") == "hunter2"


@pytest.mark.parametrize("path_", ["../outside", "/etc/hostname", ".git", "link/file", "nowhere"])
def test_a_path_that_leads_out_of_the_worktree_is_not_read(
    place: Path, path: Path, tmp_path: Path, path_: str
) -> None:
    write(tmp_path, {"private/file": "private\n"})
    (path / "link").symlink_to(tmp_path / "private")
    kept = quarantine.Quarantine(place / ".planforge", RUN)
    assert kept.copy("a", path, [os.fsencode(path_)], "asked for") is None
    assert quarantine.everything(place / ".planforge") == []


# Objects that vanish


class Pruned(Git):
    """A repository in which somebody prunes away all that we keep, as soon as we keep it."""

    pruning = True

    def run(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
        process = super().run(*arguments, **options)
        if self.pruning and arguments[0] == "update-ref":
            git(self.top, "update-ref", "-d", "refs/planforge/archive/run-1/a.left")
            git(self.top, "prune", "--expire=now")
        return process


def test_nothing_is_removed_while_objects_vanish(place: Path, path: Path) -> None:
    write(path, {"new.py": "new\n"})
    pruned = Pruned(place / ".git", place)
    worktrees = Worktrees(pruned, place / ".planforge", RUN)
    with pytest.raises(GitFailed, match="vanish while they are kept"):
        worktrees.close("a")
    assert (path / "new.py").read_text() == "new\n"
    pruned.pruning = False
    worktrees.close("a")
    assert content(place, archived(place)["a.left"], "new.py") == "new"


def test_commits_that_were_taken_over_by_a_process_that_died_right_after_are_still_kept(
    place: Path, worktrees: Worktrees, path: Path
) -> None:
    inner = repository(path / "crate", {"lib.rs": "lib\n"})
    made = commit(inner, {"lib.rs": "better\n"}, "better")
    git(place, "fetch", "--quiet", str(inner), "main")  # its objects are here, and no ref to them
    (place / ".git" / "FETCH_HEAD").unlink()
    worktrees.close("a")
    assert archived(place)["a.nested-crate"] == made


# What others keep for now


def test_a_tree_that_only_a_branch_of_the_persons_has_is_kept_all_the_same(
    place: Path, worktrees: Worktrees, head: str
) -> None:
    git(place, "checkout", "--quiet", "-b", "topic")
    commit(place, {"theirs.py": "theirs\n"}, "theirs")
    git(place, "checkout", "--quiet", "main")
    worktrees.open("a", head)
    git(worktrees.path("a"), "checkout", "--quiet", "topic", "--", ".")
    worktrees.close("a")
    git(place, "branch", "-D", "topic")
    wipe(place)
    assert content(place, archived(place)["a.left"], "theirs.py") == "theirs"


def test_where_a_worktree_began_is_kept_although_nobody_changed_anything(
    place: Path, worktrees: Worktrees, path: Path, head: str
) -> None:
    worktrees.close("a")
    git(place, "commit", "--quiet", "--amend", "--message=amended")
    wipe(place)
    assert archived(place) == {}
    assert head in git(place, "rev-list", "--all").split()


# Paths that are longer than the system takes


DEEPEST = pytest.param(["d"] * 2100, marks=pytest.mark.dear)


@pytest.fixture
def shallow(place: Path) -> Iterator[None]:
    """Leave nothing behind that is too deep for the runner of the tests to remove."""
    yield
    subprocess.run(["rm", "-rf", str(place)], check=True)


def deepen(directory: Path, names: list[str]) -> None:
    """Make directories inside one another and a file in the last one; no path is longer than a name."""
    here = os.open(directory, os.O_RDONLY)
    for name in names:
        os.mkdir(name, dir_fd=here)
        inner = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(os.open("deep.txt", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    os.close(here)


def kept_deep(place: Path) -> bool:
    """Whether the file is in quarantine; `find` goes to any depth."""
    found = subprocess.run(
        ["find", str(place / ".planforge" / "quarantine"), "-name", "deep.txt", "-printf", "found"],
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout == "found"


@pytest.mark.usefixtures("shallow")
@pytest.mark.parametrize(
    "names", [["d" * 100] * 60, ["d" * 255] * 15 + ["e" * 250], ["d" * 255] * 15 + ["e" * 200], DEEPEST]
)
def test_what_lies_too_deep_for_git_is_kept_and_the_worktree_goes(
    place: Path, worktrees: Worktrees, path: Path, names: list[str]
) -> None:
    write(path, {"app.py": "two\n"})
    deepen(path, names)
    with pytest.raises(GitFailed, match=r"git cannot read everything|more than can be looked at") as refused:
        worktrees.tree("a")
    assert len(refused.value.message) < 500
    worktrees.close("a")
    assert not path.exists()
    assert content(place, archived(place)["a.left"], "app.py") == "two"
    assert kept_deep(place)
    assert "git cannot take it in" in worktrees.not_kept[0]


@pytest.mark.dear
@pytest.mark.usefixtures("shallow")
def test_what_is_deeper_than_python_recurses_is_kept_in_git_and_the_worktree_goes(
    place: Path, worktrees: Worktrees, path: Path
) -> None:
    deepen(path, ["d"] * 1050)
    worktrees.close("a")
    assert not path.exists()
    assert f"{'d/' * 1050}deep.txt" in listing(place, archived(place)["a.left"])
    assert worktrees.not_kept == []
