"""
What a repository or an agent can do to have programs run by git, done to ours.

Each attack is tried on a git that is not hardened first: one that springs no trap there
would prove nothing here. Where an attack has no command among ours that it could meet,
no such proof is asked for.
"""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from planforge.errors import GitFailed, NoRepository, PlanforgeError
from planforge.interfaces.cli.typed import text
from planforge.workspace.git import Git
from planforge.workspace.landing import branches
from planforge.workspace.worktrees import Worktrees
from repositories import DATE, ENVIRONMENT, commit, fingerprint, git, repository, trap, write
from workspace.git.journey import exercise, travel

Plant = Callable[[Path, Path], None]
ATTRIBUTES = "* filter=evil diff=evil merge=evil\n"
FILES: dict[str, str | bytes] = {
    "README.md": "# A project\n",
    "app.py": "print('hello')\n",
    ".gitattributes": ATTRIBUTES,
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = repository(tmp_path / "place", FILES)
    git(place, "branch", "other")
    return place


def settings(*pairs: tuple[str, str]) -> Plant:
    def plant(place: Path, program: Path) -> None:
        for name, value in pairs:
            git(place, "config", "--add", name, value.format(program=program))

    return plant


def both(*plants: Plant) -> Plant:
    def plant(place: Path, program: Path) -> None:
        for each in plants:
            each(place, program)

    return plant


def file(name: str, content: str) -> Plant:
    def plant(place: Path, program: Path) -> None:
        write(place / ".git", {name: content.format(program=program, place=place)})

    return plant


def hooks(directory: str) -> Plant:
    names = [
        *("applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-checkout", "post-commit"),
        *("post-index-change", "post-merge", "post-rewrite", "pre-auto-gc", "pre-commit"),
        *("prepare-commit-msg", "pre-push", "pre-rebase", "reference-transaction", "update"),
    ]

    def plant(place: Path, program: Path) -> None:
        (place / ".git" / directory).mkdir(exist_ok=True)
        for name in names:
            (place / ".git" / directory / name).symlink_to(program)

    return plant


def missing_object(place: Path, program: Path) -> None:
    blob = git(place, "rev-parse", "HEAD:app.py")
    (place / ".git" / "objects" / blob[:2] / blob[2:]).unlink()


FILTER = (("filter.evil.clean", "{program}"), ("filter.evil.smudge", "{program}"))
FILTER_FILE = '[filter "evil"]\n\tclean = {program}\n\tsmudge = {program}\n'
PROMISOR = (
    ("core.repositoryformatversion", "1"),
    ("extensions.partialClone", "there"),
    ("remote.there.promisor", "true"),
)

SPRINGS: dict[str, Plant] = {
    "hooks in .git/hooks": hooks("hooks"),
    "core.hooksPath": both(hooks("elsewhere"), settings(("core.hooksPath", ".git/elsewhere"))),
    "core.fsmonitor": settings(("core.fsmonitor", "{program}"), ("core.fsmonitorHookVersion", "1")),
    "filter": settings(*FILTER),
    "filter of a process": settings(("filter.evil.process", "{program}")),
    "filter with a name that -c cannot say": both(
        settings(("filter.a=b.clean", "{program}"), ("filter.a=b.smudge", "{program}")),
        file("info/attributes", "* filter=a=b\n"),
    ),
    "filter by info/attributes": both(settings(*FILTER), file("info/attributes", "* filter=evil\n")),
    "filter by core.attributesFile": both(
        settings(
            ("core.attributesFile", ".git/theirs"),
            ("filter.x.clean", "{program}"),
            ("filter.x.smudge", "{program}"),
        ),
        file("theirs", "* filter=x\n"),
        lambda place, _: (place / ".gitattributes").unlink(),
    ),
    "include": both(file("theirs", FILTER_FILE), settings(("include.path", "theirs"))),
    "includeIf": both(
        file("theirs", FILTER_FILE), settings(("includeIf.gitdir:**/worktrees/**.path", "theirs"))
    ),
    "includeIf on a branch": both(
        file("theirs", FILTER_FILE), settings(("includeIf.onbranch:main.path", "theirs"))
    ),
    "config.worktree": both(
        settings(("extensions.worktreeConfig", "true")), file("config.worktree", FILTER_FILE)
    ),
    "merge driver by default": settings(("merge.default", "evil"), ("merge.evil.driver", "{program}")),
    "diff driver": settings(("diff.evil.command", "{program}")),
    "textconv": settings(("diff.evil.textconv", "{program}")),
    "diff.external": settings(("diff.external", "{program}")),
}


def unhardened(place: Path) -> None:
    """Do with plain git what we do, and let it fail."""
    scratch = place.parent / "scratch"
    commands = [
        *(["worktree", "add", "--quiet", "--detach", str(scratch)], ["add", "--all"], ["status"]),
        *(["diff", "HEAD"], ["commit", "--quiet", "--all", "--message=x"], ["log", "-p", "--ext-diff"]),
        ["merge-tree", "--write-tree", "HEAD", "other"],
    ]
    for command in commands:
        subprocess.run(
            ["git", *command],
            cwd=place,
            env=ENVIRONMENT,
            input=b"",
            capture_output=True,
            check=False,
            timeout=60,
        )


@pytest.mark.parametrize("what", SPRINGS)
def test_a_program_that_the_repository_names_is_never_run(place: Path, tmp_path: Path, what: str) -> None:
    program, mark = trap(tmp_path)
    SPRINGS[what](place, program)
    before = fingerprint(place)
    exercise(place)
    assert not mark.exists()
    assert fingerprint(place) == before


@pytest.mark.parametrize("what", SPRINGS)
def test_that_trap_does_spring_for_a_git_that_is_not_hardened(place: Path, tmp_path: Path, what: str) -> None:
    git(place, "checkout", "--quiet", "other")
    commit(place, {"app.py": "print('other')\n"})
    git(place, "checkout", "--quiet", "main")
    commit(place, {"app.py": "print('main')\n"})
    write(place, {"app.py": "print('changed')\n"})
    program, mark = trap(tmp_path)
    SPRINGS[what](place, program)
    unhardened(place)
    assert mark.exists()


NEVER_MET: dict[str, Plant] = {
    "alias": settings(
        *((f"alias.{name}", "!{program}") for name in ("add", "rev-parse", "update-ref", "worktree", "reset"))
    ),
    "merge driver": settings(("merge.evil.driver", "{program}")),
    "pagers and editors": settings(
        ("core.pager", "{program}"), ("pager.status", "{program}"), ("core.editor", "{program}"),
        ("sequence.editor", "{program}"), ("interactive.diffFilter", "{program}"),
    ),
    "signing": settings(
        ("commit.gpgSign", "true"), ("log.showSignature", "true"), ("gpg.program", "{program}"),
        ("gpg.ssh.program", "{program}"), ("tag.gpgSign", "true"),
    ),
    "maintenance": settings(
        ("gc.auto", "1"), ("alias.gc", "!{program}"), ("alias.maintenance", "!{program}")
    ),
    "transports": settings(
        ("core.sshCommand", "{program}"), ("core.gitProxy", "{program}"), ("core.askPass", "{program}"),
        ("credential.helper", "!{program}"), ("remote.origin.vcs", "ext"), ("protocol.allow", "always"),
        ("uploadpack.packObjectsHook", "{program}"), ("core.alternateRefsCommand", "{program}"),
    ),
    "trailers and tools": settings(
        ("trailer.a.key", "Trailer"), ("trailer.a.command", "{program}"), ("trailer.a.cmd", "{program}"),
        ("tar.x.command", "{program}"), ("mergetool.x.cmd", "{program}"), ("difftool.x.cmd", "{program}"),
    ),
    "a hook by its setting": settings(
        ("hook.x.command", "{program}"), ("hook.x.event", "reference-transaction")
    ),
}  # fmt: skip


def test_settings_for_commands_that_are_not_ours_do_nothing(place: Path, tmp_path: Path) -> None:
    program, mark = trap(tmp_path)
    both(*NEVER_MET.values())(place, program)
    exercise(place)
    assert not mark.exists()


FETCHES: dict[str, Plant] = {
    "core.sshCommand": settings(
        *PROMISOR, ("remote.there.url", "ssh://there/x"), ("core.sshCommand", "{program}")
    ),
    "uploadpack": settings(*PROMISOR, ("remote.there.url", "."), ("remote.there.uploadpack", "{program}")),
    "a program as address": settings(
        *PROMISOR, ("remote.there.url", "ext::{program}"), ("protocol.ext.allow", "always")
    ),
}


@pytest.mark.parametrize("what", FETCHES)
def test_an_object_that_is_missing_is_not_fetched_by_whatever_means_the_repository_names(
    place: Path, tmp_path: Path, what: str
) -> None:
    program, mark = trap(tmp_path)
    program.write_text(f"#!/bin/sh\ntouch '{mark}'\nexit 1\n")
    missing_object(place, program)
    FETCHES[what](place, program)
    found = Git.find(place)
    with pytest.raises(GitFailed, match=r"app\.py") as caught:
        Worktrees(found, place / ".planforge", "run-1").open("a", "HEAD")
    assert "partial clone" in text(caught.value.hint)
    assert not mark.exists()
    git(place, "reset", "--quiet")
    plain = subprocess.run(
        ["git", "cat-file", "-p", "HEAD:app.py"],
        cwd=place,
        env=ENVIRONMENT,
        input=b"",
        check=False,
        timeout=60,
    )
    assert plain.returncode
    assert mark.exists()


# Where an agent works


def test_settings_that_an_agent_makes_while_it_works_run_nothing_and_change_no_commit(
    place: Path, tmp_path: Path
) -> None:
    program, mark = trap(tmp_path)
    files: dict[str, str | bytes] = {"hidden.py": "hidden = 1\n", "lines.txt": b"one\r\ntwo\r\n"}

    def edit(worktree: Path) -> None:
        write(worktree, files)
        (worktree / "tool.sh").write_text("#!/bin/sh\n")
        (worktree / "tool.sh").chmod(0o755)
        settings(
            *FILTER, ("core.autocrlf", "input"), ("core.fileMode", "false"), ("core.ignoreCase", "true")
        )(worktree, program)
        settings(("core.worktree", "/"), ("core.bare", "true"), ("core.symlinks", "false"))(worktree, program)
        write(place / ".git" / "info", {"exclude": "hidden.py\n", "attributes": "* text filter=evil\n"})
        (worktree / "link").symlink_to("app.py")

    journey = travel(place, edit)
    assert journey.patch.files == ("hidden.py", "lines.txt", "link", "tool.sh")
    assert journey.fresh[b"lines.txt"] == b"one\r\ntwo\r\n"
    modes = journey.git.line("ls-tree", journey.patch.commit, "link", "tool.sh").splitlines()
    assert [line.split()[0] for line in modes] == ["120000", "100755"]
    assert not mark.exists()


def replace_by_repository(worktree: Path, program: Path) -> None:
    (worktree / ".git").unlink()
    planted = repository(worktree, {"planted": "x\n"})
    settings(*FILTER, ("core.fsmonitor", "{program}"))(planted, program)
    file("info/attributes", "* filter=evil\n")(planted, program)
    hooks("hooks")(planted, program)


def replace_by_link(worktree: Path, program: Path) -> None:
    elsewhere = repository(program.parent / "elsewhere")
    settings(*FILTER, ("core.fsmonitor", "{program}"))(elsewhere, program)
    (worktree / ".git").unlink()
    (worktree / ".git").symlink_to(elsewhere / ".git")


def replace_by_file(worktree: Path, program: Path) -> None:
    elsewhere = repository(program.parent / "elsewhere")
    settings(*FILTER, ("core.fsmonitor", "{program}"))(elsewhere, program)
    (worktree / ".git").write_text(f"gitdir: {elsewhere}/.git\n")


@pytest.mark.parametrize("replace", [replace_by_repository, replace_by_link, replace_by_file])
def test_a_dot_git_that_an_agent_replaced_is_not_looked_at(
    place: Path, tmp_path: Path, replace: Plant
) -> None:
    program, mark = trap(tmp_path)

    def edit(worktree: Path) -> None:
        replace(worktree, program)
        mark.unlink(missing_ok=True)
        write(worktree, {"app.py": "print('edited')\n"})

    journey = travel(place, edit)
    assert journey.patch.files in {("app.py",), ("app.py", "planted")}
    assert journey.fresh[b"app.py"] == b"print('edited')\n"
    assert not mark.exists()


def test_a_repository_swapped_for_another_is_noticed(place: Path, tmp_path: Path) -> None:
    found = Git.find(place)
    head = found.commit_of("HEAD")
    other = repository(tmp_path / "other")
    (place / ".git").rename(tmp_path / "aside")
    (other / ".git").rename(place / ".git")
    with pytest.raises(GitFailed, match="is another directory than it was"):
        found.ref(head)
    (place / ".git").rename(other / ".git")
    with pytest.raises(GitFailed, match="is not there any more"):
        found.ref(head)
    (tmp_path / "aside").rename(place / ".git")
    assert found.ref("HEAD") == head


def test_attributes_among_gits_own_files_do_not_decide_a_merge(place: Path) -> None:
    write(place / ".git", {".gitattributes": "* merge=union\n"})
    exercise(place)  # which wants a conflict


def test_renamed_files_are_merged_where_they_went(place: Path) -> None:
    head = commit(place, {"old.py": "".join(f"line {n}\n" for n in range(30))})
    found = Git.find(place)
    worktrees = Worktrees(found, place / ".planforge", "run-1")
    worktrees.open("a", head)
    (worktrees.path("a") / "old.py").rename(worktrees.path("a") / "new.py")
    renamed = worktrees.commit("a", head, "rename\n", "a", DATE)
    worktrees.open("a", head)
    write(worktrees.path("a"), {"old.py": "".join(f"line {n}\n" for n in range(30)) + "and more\n"})
    edited = worktrees.commit("a", head, "edit\n", "b", DATE)
    merged = worktrees.rebase(edited.commit, renamed.commit, "c", DATE)
    assert (merged.conflicts, merged.files) == ((), ("new.py",))


# Submodules


@pytest.fixture
def with_submodule(place: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A repository with a populated submodule whose own settings mean harm, and the mark of the trap."""
    program, mark = trap(tmp_path)
    inner = repository(tmp_path / "inner", {"inner": "inner\n"})
    git(place, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    git(place, "config", "--file", ".gitmodules", "submodule.sub.ignore", "none")
    git(place, "config", "--file", ".gitmodules", "submodule.sub.url", f"ext::{program}")
    git(place, "config", "submodule.recurse", "true")
    git(place, "config", "submodule.sub.update", f"!{program}")
    git(place, "config", "status.submoduleSummary", "true")
    commit(place, {})
    settings(*FILTER, ("core.fsmonitor", "{program}"))(place / "sub", program)
    write(place / ".git" / "modules" / "sub" / "info", {"attributes": "* filter=evil\n"})
    os.utime(place / "sub" / "inner", (1, 1))
    mark.unlink(missing_ok=True)
    return place, mark


def test_looking_at_files_does_not_look_into_submodules(with_submodule: tuple[Path, Path]) -> None:
    place, mark = with_submodule
    exercise(place)
    assert not mark.exists()
    git(place, "status")
    assert mark.exists()


def test_adding_everything_fails_rather_than_look_into_a_submodule(
    with_submodule: tuple[Path, Path], tmp_path: Path
) -> None:
    place, mark = with_submodule
    found = Git.find(place)
    found.run("read-tree", "HEAD", index=tmp_path / "index")
    with pytest.raises(GitFailed, match="submodule sub"):
        found.run("add", "--all", work_tree=place, index=tmp_path / "index")
    found.run("add", "--all", "--", ".", ":(exclude)sub", work_tree=place, index=tmp_path / "index")
    assert found.line("write-tree", index=tmp_path / "index") == found.tree_of("HEAD")
    assert not mark.exists()


def test_a_worktree_is_not_removed_by_looking_at_its_files(place: Path, tmp_path: Path) -> None:
    program, mark = trap(tmp_path)
    found = Git.find(place)
    found.run("worktree", "add", "--detach", str(tmp_path / "linked"), "HEAD")
    settings(*FILTER)(place, program)
    os.utime(tmp_path / "linked" / "app.py", (1, 1))
    with pytest.raises(GitFailed, match="worktree remove"):
        found.run("worktree", "remove", str(tmp_path / "linked"))
    found.run("worktree", "remove", "--force", str(tmp_path / "linked"))
    assert not (tmp_path / "linked").exists()
    assert not mark.exists()


# History that is not as it seems


def test_other_parents_by_grafts_or_a_forged_commit_graph_are_not_believed(place: Path) -> None:
    first = git(place, "rev-parse", "HEAD")
    second = commit(place, {"second": "2\n"})
    third = commit(place, {"third": "3\n"})
    git(place, "commit-graph", "write", "--reachable")
    forge_no_parent(place / ".git" / "objects" / "info" / "commit-graph", second)
    branches.open_branch(Git.find(place), "planforge/x", third)
    assert branches.holds(Git.find(place), "planforge/x", first)
    assert git(place, "rev-list", "--count", "HEAD") == "2"
    (place / ".git" / "objects" / "info" / "commit-graph").unlink()
    write(place / ".git" / "info", {"grafts": f"{second}\n"})
    assert branches.holds(Git.find(place), "planforge/x", first)
    assert git(place, "rev-list", "--count", "HEAD") == "2"


def forge_no_parent(graph: Path, commit: str) -> None:
    """Have a commit graph say that a commit has no parent."""
    graph.chmod(0o644)
    data = bytearray(graph.read_bytes())
    chunks = {
        bytes(data[at : at + 4]): struct.unpack(">Q", data[at + 4 : at + 12])[0]
        for at in range(8, 8 + 12 * data[6], 12)
    }
    names = chunks[b"OIDL"]
    count = struct.unpack(">I", data[chunks[b"OIDF"] + 1020 : chunks[b"OIDF"] + 1024])[0]
    position = [data[names + 20 * n : names + 20 * n + 20].hex() for n in range(count)].index(commit)
    parent = chunks[b"CDAT"] + position * 36 + 20
    data[parent : parent + 4] = struct.pack(">I", 0x70000000)
    graph.write_bytes(data)


# Words that are more than words


WORDS = ["--upload-pack=touch x", "-d", "--help", "$(touch x)", "; touch x", "`touch x`", "| touch x", "a\nb"]


@pytest.mark.parametrize("word", WORDS)
def test_a_title_a_name_or_a_revision_is_never_more_than_that(
    place: Path, tmp_path: Path, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = Git.find(place)
    head = found.commit_of("HEAD")
    before = fingerprint(place)
    made = found.commit_tree(found.tree_of(head), [head], f"{word}\n", DATE)
    assert found.line("cat-file", "commit", made).endswith(f"\n\n{word}")
    assert found.ref(word) is None
    tries: list[Callable[[], object]] = [
        lambda: found.commit_of(word),
        lambda: found.tree_of(word),
        lambda: found.move_ref(word, head, None),
        lambda: found.move_ref(f"refs/heads/{word}", word, None),
        lambda: found.commit_tree(word, [], "m\n", DATE),
        lambda: found.commit_tree(found.tree_of(head), [word], "m\n", DATE),
        lambda: branches.open_branch(found, word, head),
        lambda: Worktrees(found, place / ".planforge", "run-1").open("a", word),
    ]
    for attempt in tries:
        with pytest.raises(PlanforgeError):
            attempt()
    assert fingerprint(place) == before
    assert [path.name for path in tmp_path.iterdir()] == ["place"]
    assert not (place / ".git" / word).exists()


def test_files_with_names_that_mean_something_to_git_are_files(place: Path) -> None:
    words = ["-n", "--all", "--pathspec-from-file=x", ":(exclude)*", ":!app.py", "*", "$(touch x)"]
    names = [*words, *(f"dir/{word}" for word in words)]
    journey = travel(place, lambda worktree: write(worktree, dict.fromkeys(names, "x\n")))
    assert journey.patch.files == tuple(sorted(names))
    assert {journey.fresh[os.fsencode(name)] for name in names} == {b"x\n"}


# Finding a repository whose settings lead elsewhere


def test_a_setting_that_the_files_are_elsewhere_is_noticed(place: Path) -> None:
    (place / "inner").mkdir()
    git(place, "config", "core.worktree", str(place.parent))
    with pytest.raises(NoRepository, match="knows nothing of it") as caught:
        Git.find(place / "inner")
    assert "core.worktree" in text(caught.value.hint)


def test_a_setting_that_there_are_no_files_is_noticed(place: Path) -> None:
    git(place, "config", "core.bare", "true")
    with pytest.raises(NoRepository, match=r"says `core\.bare`") as caught:
        Git.find(place)
    assert text(caught.value.hint) == "run `git config core.bare false`"


def test_a_configuration_that_cannot_be_read_is_named_and_nothing_is_done(place: Path) -> None:
    found = Git.find(place)
    with (place / ".git" / "config").open("a") as config:
        config.write("[broken\n")
    with pytest.raises(GitFailed, match=r"cannot read the settings of .*bad config line"):
        found.commit_of("HEAD")


def test_a_format_that_git_does_not_know_stays_one(place: Path) -> None:
    git(place, "config", "core.repositoryformatversion", "1")
    found = Git.find(place)
    git(place, "config", "extensions.fromTheFuture", "true")
    with pytest.raises(GitFailed, match="fromthefuture"):
        found.commit_of("HEAD")
