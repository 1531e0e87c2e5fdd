"""A worktree has what the project needs before an agent starts, and none of it can be committed."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from planforge.app import settings
from planforge.errors import CannotPerform, InvalidInput
from planforge.interfaces.cli.typed import text
from planforge.workspace.git import Git
from planforge.workspace.preparation import Preparation, ports, setup
from planforge.workspace.preparation.setup import Prepared
from planforge.workspace.worktrees import Worktrees
from repositories import commit, git, repository, write

IGNORE = ".env*\n*.local\nnode_modules/\n.venv/\nbuild/\n.planforge/\n"


class Place(NamedTuple):
    """The person's checkout and a worktree of it."""

    root: Path
    worktree: Path
    worktrees: Worktrees
    base: str

    @property
    def state(self) -> Path:
        return self.root / ".planforge"

    def prepare(self, **wanted: object) -> Prepared:
        return asyncio.run(self.preparing(**wanted))

    async def preparing(self, **wanted: object) -> Prepared:
        asked = msgspec.convert({"ports": 0, **wanted}, Preparation)
        return await setup.prepare(self.worktree, self.root, asked, git=Git.find(self.root), state=self.state)

    def refused(self, **wanted: object) -> CannotPerform:
        with pytest.raises(CannotPerform) as refusal:
            self.prepare(**wanted)
        return refusal.value

    def would_be_committed(self) -> list[str]:
        """What a commit of the worktree as it is now would change."""
        tree = self.worktrees.tree("work")
        return git(self.root, "diff-tree", "-r", "--name-only", f"{self.base}^{{tree}}", tree).splitlines()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    root = repository(tmp_path / "a project", {".gitignore": IGNORE, "app.py": "", "config/base.toml": ""})
    return opened(root)


def opened(root: Path) -> Place:
    base = git(root, "rev-parse", "HEAD")
    worktrees = Worktrees(Git.find(root), root / ".planforge", "run-001")
    worktrees.open("work", base)
    return Place(root, worktrees.path("work"), worktrees, base)


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


# What is copied


def test_ignored_files_that_worktreeinclude_names_are_copied_with_their_modes(place: Place) -> None:
    write(
        place.root,
        {
            ".worktreeinclude": "# what the tests need\n.env*\n!.env.production\nconfig/*.local\n",
            ".env": "KEY=1\n",
            ".env.test": "",
            ".env.production": "",
            "config/db.local": "x",
            "y.local": "",
        },
    )
    (place.root / ".env").chmod(0o600)
    (place.root / ".env.test").chmod(0o755)
    prepared = place.prepare()
    assert sorted(prepared.copied) == [".env", ".env.test", "config/db.local"]
    assert (place.worktree / ".env").read_text() == "KEY=1\n"
    assert (place.worktree / ".env").stat().st_mode & 0o777 == 0o600
    assert (place.worktree / ".env.test").stat().st_mode & 0o777 == 0o755
    assert not (place.worktree / ".env.production").exists()
    assert not (place.worktree / "y.local").exists()
    assert any("copied `.env`" in note for note in prepared.notes)


def test_what_was_copied_is_the_worktrees_own(place: Place) -> None:
    write(place.root, {".worktreeinclude": ".env\n", ".env": "before"})
    place.prepare()
    assert (place.worktree / ".env").stat().st_nlink == 1
    (place.worktree / ".env").write_text("spoilt")
    assert (place.root / ".env").read_text() == "before"


def test_nothing_that_was_copied_is_in_a_commit(place: Place) -> None:
    write(
        place.root,
        {
            ".worktreeinclude": ".env\n*.local\n",
            ".env": "KEY=1",
            "deep/x.local": "",
            "node_modules/a/b.js": "",
        },
    )
    prepared = place.prepare(caches=["node_modules"])
    assert sorted(prepared.copied) == [".env", "deep/x.local", "node_modules"]
    assert place.would_be_committed() == []
    (place.worktree / "new.py").write_text("")
    assert place.would_be_committed() == ["new.py"]


def test_files_that_git_does_not_ignore_are_not_copied(place: Place) -> None:
    write(place.root, {".worktreeinclude": "*\n", "notes.txt": "untracked", ".env": ""})
    (place.root / "app.py").write_text("changed and not committed")
    assert place.prepare().copied == (".env",)
    assert not (place.worktree / "notes.txt").exists()
    assert (place.worktree / "app.py").read_text() == ""


def test_a_file_that_the_commit_does_not_ignore_is_not_copied_although_the_checkout_ignores_it(
    place: Place,
) -> None:
    write(
        place.root,
        {".worktreeinclude": "secret.txt\n", "secret.txt": "s", ".gitignore": IGNORE + "secret.txt\n"},
    )
    prepared = place.prepare()
    assert prepared.copied == ()
    assert not (place.worktree / "secret.txt").exists()
    assert prepared.notes == ("did not copy `secret.txt`: not ignored at the worktree's commit",)


def test_a_file_that_the_checkout_does_not_ignore_is_not_copied_although_the_commit_ignores_it(
    place: Place,
) -> None:
    write(place.root, {".worktreeinclude": "*.local\n", "work.local": "mine", ".gitignore": ".planforge/\n"})
    assert place.prepare().copied == ()
    assert not (place.worktree / "work.local").exists()


def test_the_state_of_planforge_and_of_git_is_never_copied(place: Place) -> None:
    write(
        place.root, {".worktreeinclude": "*\n**/*\n", ".planforge/ledger.db": "x", "build/.git/config": "x"}
    )
    write(place.root, {"build/nested/.git/HEAD": "x", ".env": ""})
    assert place.prepare().copied == (".env",)


def test_a_link_that_leads_out_is_neither_followed_nor_copied(place: Place, tmp_path: Path) -> None:
    (tmp_path / "shared.env").write_text("SECRET=1")
    (place.root / ".env").symlink_to("../shared.env")
    (place.root / ".env.absolute").symlink_to(tmp_path / "shared.env")
    (place.root / ".env.inside").symlink_to("config/base.toml")
    write(place.root, {".worktreeinclude": ".env*\n"})
    prepared = place.prepare()
    assert prepared.copied == (".env.inside",)
    assert (place.worktree / ".env.inside").readlink() == Path("config/base.toml")
    assert not os.path.lexists(place.worktree / ".env")
    assert "did not copy `.env`, `.env.absolute`: a link that leads out of your checkout" in prepared.notes


def test_nothing_is_written_through_a_link_that_the_commit_has(tmp_path: Path) -> None:
    root = repository(tmp_path / "project", {".gitignore": IGNORE, "app.py": ""})
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "config").symlink_to(outside)
    commit(root, {}, "a link out")
    place = opened(root)
    (root / "config").unlink()
    write(root, {"config/db.local": "x", ".worktreeinclude": "*.local\n"})
    prepared = place.prepare()
    assert prepared.copied == ()
    assert list(outside.iterdir()) == []
    assert len(prepared.notes) == 1
    assert prepared.notes[0].startswith("did not copy `config/db.local`: ")


def test_a_file_that_is_there_is_not_overwritten(place: Place) -> None:
    write(place.root, {".worktreeinclude": ".env\n", ".env": "theirs"})
    (place.worktree / ".env").write_text("there")
    assert place.prepare().notes == ("did not copy `.env`: the worktree has a file of that name",)
    assert (place.worktree / ".env").read_text() == "there"


def test_names_that_mean_something_to_git_are_names(place: Place) -> None:
    write(place.root, {".worktreeinclude": "*.local\n", ":(glob)x.local": "x", "-n.local": "y"})
    assert set(place.prepare().copied) == {":(glob)x.local", "-n.local"}


def test_names_that_are_no_text_are_copied_and_told(place: Place) -> None:
    odd = os.fsencode(place.root) + b"/caf\xe9 \n.local"
    with open(odd, "wb") as file:  # noqa: PTH123  (bytes)
        file.write(b"x")
    write(place.root, {".worktreeinclude": "*.local\n"})
    prepared = place.prepare()
    assert [os.fsencode(path) for path in prepared.copied] == [b"caf\xe9 \n.local"]
    assert (place.worktree / os.fsdecode(b"caf\xe9 \n.local")).read_bytes() == b"x"


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"include_files": 2}, "`.worktreeinclude` names 3 files that git ignores, more than 2"),
        ({"include_megabytes": 1}, "`.worktreeinclude` names files of 2 MB together, more than 1"),
    ],
)
def test_too_much_is_refused_before_anything_is_copied(
    place: Place, limits: Mapping[str, int], message: str
) -> None:
    large = b"x" * 800_000
    write(place.root, {".worktreeinclude": "*.local\n", "a.local": large, "b.local": large, "c.local": large})
    refusal = place.refused(**limits)
    assert refusal.message == message
    assert next(iter(limits)) in text(refusal.hint)
    assert not list(place.worktree.glob("*.local"))


def test_without_a_worktreeinclude_nothing_is_copied(place: Place) -> None:
    write(place.root, {".env": ""})
    assert place.prepare() == Prepared(env=setup.UNLINKED, notes=())


def test_a_person_who_works_in_a_linked_worktree_has_their_own_files_copied(tmp_path: Path) -> None:
    main = repository(tmp_path / "main", {".gitignore": IGNORE, "app.py": ""})
    git(main, "worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"))
    place = opened(tmp_path / "linked")
    write(main, {".env": "of the main one"})
    write(place.root, {".env": "of the linked one", ".worktreeinclude": ".env\n"})
    place.prepare()
    assert (place.worktree / ".env").read_text() == "of the linked one"


# Caches


def test_a_cache_is_copied_with_its_links_and_modes_and_is_the_worktrees_own(place: Place) -> None:
    modules = place.root / "node_modules"
    write(modules, {"left-pad/index.js": "pad", "left-pad/cli.js": "#!/usr/bin/env node\n"})
    (modules / "left-pad" / "cli.js").chmod(0o755)
    (modules / ".bin").mkdir()
    (modules / ".bin" / "pad").symlink_to("../left-pad/cli.js")
    (modules / "workspace").symlink_to("../config")
    (modules / "global").symlink_to("/usr/lib")
    (modules / "sly").symlink_to("workspace/../../..")
    os.link(modules / "left-pad" / "index.js", modules / "left-pad" / "same.js")
    prepared = place.prepare(caches=["node_modules"])
    copy = place.worktree / "node_modules"
    assert (copy / "left-pad" / "cli.js").stat().st_mode & 0o777 == 0o755
    assert (copy / ".bin" / "pad").readlink() == Path("../left-pad/cli.js")
    assert (copy / "workspace" / "base.toml").exists()
    assert not os.path.lexists(copy / "global")
    assert not os.path.lexists(copy / "sly")
    assert any(
        "`node_modules/global`, `node_modules/sly`: a link that leads out" in n for n in prepared.notes
    )
    (copy / "left-pad" / "index.js").write_text("spoilt")
    assert (modules / "left-pad" / "index.js").read_text() == "pad"
    assert (copy / "left-pad" / "same.js").read_text() == "pad"


def test_times_are_kept_so_that_build_tools_do_not_start_over(place: Place) -> None:
    write(place.root, {"build/object": "x"})
    os.utime(place.root / "build" / "object", ns=(1_700_000_000_000_000_001, 1_700_000_000_000_000_001))
    place.prepare(caches=["build"])
    assert (place.worktree / "build" / "object").stat().st_mtime_ns == 1_700_000_000_000_000_001


def test_a_cache_that_your_checkout_does_not_have_is_only_noted(place: Place) -> None:
    (note,) = place.prepare(caches=["node_modules"]).notes
    assert note.startswith("no `node_modules` was copied: your checkout has none")


def test_a_cache_that_is_a_link_is_not_followed(place: Place, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", {"secret": ""})
    (place.root / "node_modules").symlink_to(tmp_path / "elsewhere")
    assert place.prepare(caches=["node_modules"]).copied == ()
    assert not (place.worktree / "node_modules").exists()


def test_a_cache_that_git_does_not_ignore_is_refused(place: Place) -> None:
    write(place.root, {"vendor/x": ""})
    assert "`vendor` in `workspace.caches` is not ignored by git" in place.refused(caches=["vendor"]).message


def test_a_cache_too_large_to_copy_is_refused(place: Place) -> None:
    write(place.root, {"build/a": b"x" * 700_000, "build/b": b"x" * 700_000})
    if can_share_blocks(place.root):
        pytest.skip("this file system shares blocks, so nothing is too large")
    refusal = place.refused(caches=["build"], cache_megabytes=1)
    assert "`build` is too large to copy for each worktree" in refusal.message


def can_share_blocks(root: Path) -> bool:
    made = subprocess.run(
        ["cp", "--reflink=always", root / "app.py", root / "build" / "shared"],
        capture_output=True,
        check=False,
    )
    return made.returncode == 0


def test_a_python_environment_is_not_copied_because_it_would_change_the_original(place: Place) -> None:
    write(place.root, {".venv/pyvenv.cfg": "home = /usr/bin\n"})
    refusal = place.refused(caches=[".venv"])
    assert refusal.message.startswith("`.venv` is a Python environment")
    assert "setup" in text(refusal.hint)


# Setup and smoke


def test_setup_and_smoke_run_in_the_worktree_with_what_they_need(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGISTRY_TOKEN", "of-the-person")
    monkeypatch.setenv("UNRELATED_TOKEN", "kept-back")
    tell = "import json, os; json.dump(dict(os.environ, cwd=os.getcwd()), open('build/seen', 'w'))"
    write(place.root, {".env": "", ".worktreeinclude": ".env\n"})
    prepared = place.prepare(
        setup=python(f"import os; os.mkdir('build'); os.stat('.env'); {tell}"),
        smoke=python(
            "import os; assert os.path.exists('build/seen'); assert 'UV_CACHE_DIR' not in os.environ"
        ),
        shared={"UV_CACHE_DIR": "uv"},
        inherit=["REGISTRY_TOKEN"],
    )
    seen = json.loads((place.worktree / "build" / "seen").read_text())
    assert seen["cwd"] == str(place.worktree)
    assert seen["PLANFORGE_SOURCE"] == str(place.root)
    assert seen["UV_CACHE_DIR"] == str(place.state / "caches" / "uv")
    assert seen["REGISTRY_TOKEN"] == "of-the-person"
    assert "UNRELATED_TOKEN" not in seen
    assert Path(seen["UV_CACHE_DIR"]).is_dir()
    assert prepared.env == setup.UNLINKED
    assert place.would_be_committed() == []


def test_files_that_setup_links_from_a_cache_become_the_worktrees_own(place: Place) -> None:
    """Otherwise an agent that edits an installed package edits it for every worktree."""
    cache = "os.environ['PIP_CACHE_DIR']"
    link = (
        f"import os; os.mkdir('build'); open({cache} + '/wheel', 'w').write('good')\n"
        f"os.link({cache} + '/wheel', 'build/wheel'); os.chmod('build/wheel', 0o555)\n"
        "open('build/a', 'w').close(); os.link('build/a', 'build/b')"
    )
    prepared = place.prepare(setup=python(link), shared={"PIP_CACHE_DIR": "pip"})
    assert (place.worktree / "build" / "wheel").stat().st_mode & 0o777 == 0o555
    (place.worktree / "build" / "wheel").chmod(0o644)
    (place.worktree / "build" / "wheel").write_text("spoilt")
    assert (place.state / "caches" / "pip" / "wheel").read_text() == "good"
    assert prepared.notes == ("made 1 file the worktree's own that `setup` had linked from elsewhere",)
    assert (place.worktree / "build" / "a").samefile(place.worktree / "build" / "b")


@pytest.mark.parametrize("what", ["setup", "smoke"])
def test_a_command_that_fails_stops_the_attempt_and_its_last_lines_are_told(place: Place, what: str) -> None:
    code = "import sys; [print('line', n) for n in range(99)]; print('no database'); sys.exit(3)"
    refusal = place.refused(**{what: python(code)})
    assert refusal.message.startswith(f"the {what} command `{sys.executable} -c ")
    assert "ended with 3, so the worktree is not ready: " in refusal.message
    assert refusal.message.endswith("line 95 | line 96 | line 97 | line 98 | no database")
    assert f"`workspace.{what}`" in text(refusal.hint)
    assert "\n" not in refusal.message


def test_a_smoke_command_that_hangs_is_ended_and_told(place: Place) -> None:
    refusal = place.refused(smoke=python("import time; time.sleep(600)"), smoke_seconds=0.5)
    assert "did not end in time" in refusal.message


def test_a_program_that_is_missing_is_told(place: Place) -> None:
    assert "cannot start `no-such-program`" in place.refused(setup=["no-such-program"]).message


def test_secrets_in_what_a_command_prints_are_not_told(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "correct-horse-battery")
    code = "import os, sys; print('using', os.environ['DATABASE_PASSWORD']); sys.exit(1)"
    refusal = place.refused(smoke=python(code), inherit=["DATABASE_PASSWORD"])
    assert "using [redacted:DATABASE_PASSWORD]" in refusal.message
    assert "correct-horse" not in refusal.message


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("open('app.py', 'a').write('#')", "`app.py`"),
        ("open('lock.json', 'w').close()", "`lock.json`"),
        ("import os; os.unlink('config/base.toml')", "`config/base.toml`"),
    ],
)
def test_what_setup_changes_does_not_pass_for_the_agents_work(place: Place, code: str, named: str) -> None:
    refusal = place.refused(setup=python(code))
    assert refusal.message.startswith(f"`setup` or `smoke` changed {named}, which git does not ignore")


def test_touching_a_file_without_changing_it_is_no_change(place: Place) -> None:
    place.prepare(setup=python("import os; os.utime('app.py', (1, 1))"))


# Ports


@pytest.fixture
def free() -> Iterator[list[Prepared]]:
    taken: list[Prepared] = []
    yield taken
    for prepared in taken:
        prepared.close()


def test_worktrees_have_ports_of_their_own_that_are_free_and_are_given_back(
    place: Place, free: list[Prepared]
) -> None:
    free += [place.prepare(ports=10) for _ in range(5)]
    ranges = [range(int(one.env["PORT"]), int(one.env["PORT"]) + 10) for one in free]
    assert len({port for range_ in ranges for port in range_}) == 50
    for prepared, range_ in zip(free, ranges, strict=True):
        assert prepared.env["PLANFORGE_PORT_BASE"] == str(range_.start)
        assert prepared.env["PLANFORGE_PORT_COUNT"] == "10"
    with closing(socket.create_server(("127.0.0.1", ranges[0].start))):
        pass
    free[0].close()
    free[0].close()
    again = place.prepare(ports=10)
    free.append(again)
    assert again.env["PORT"] == free[0].env["PORT"]


def test_a_range_in_which_something_listens_is_passed_over() -> None:
    first = ports.take(5, "wish")
    first.give_back()
    with closing(socket.create_server(("127.0.0.1", first.first + 3))):
        second = ports.take(5, "wish")
    second.give_back()
    assert second.first != first.first
    third = ports.take(5, "wish")
    third.give_back()
    assert third.first == first.first


def test_another_process_does_not_get_the_same_ports_until_its_holder_dies() -> None:
    code = (
        "from planforge.workspace.preparation import ports\n"
        "print(ports.take(3, 'wish').first, flush=True)\n"
        "input()"
    )
    holder = subprocess.Popen(python(code), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdin is not None
    theirs = int(holder.stdout.readline())
    ours = ports.take(3, "wish")
    ours.give_back()
    holder.kill()
    holder.wait()
    holder.stdin.close()
    holder.stdout.close()
    after = ports.take(3, "wish")
    after.give_back()
    assert ours.first != theirs
    assert after.first == theirs


def test_ports_are_given_back_if_the_preparation_fails(place: Place) -> None:
    place.refused(ports=4, smoke=["false"])
    first = ports.take(4, str(place.worktree))
    first.give_back()
    place.refused(ports=4, smoke=["false"])
    second = ports.take(4, str(place.worktree))
    second.give_back()
    assert first.first == second.first


def test_a_machine_without_a_free_port_is_told_how_to_do_without(monkeypatch: pytest.MonkeyPatch) -> None:
    held = ports.take(2, "")  # a slot that no other test has; from here on the machine has no other
    monkeypatch.setattr(ports, "FIRST", held.first - 1)
    monkeypatch.setattr(ports, "LAST", ports.FIRST + ports.SLOT)
    with pytest.raises(CannotPerform, match="no 2 ports in a row are free") as refused:
        ports.take(2, "")
    held.give_back()
    assert "ports = 0" in text(refused.value.hint)


# Settings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ports = 20", "`workspace.ports` must be 0 to 19, not 20"),
        ("ports = -1", "`workspace.ports` must be 0 to 19"),
        ('caches = ["../x"]', "`workspace.caches` has `../x`"),
        ('caches = ["/usr"]', "`workspace.caches` has `/usr`"),
        ('caches = ["."]', "`workspace.caches` has `.`"),
        ('caches = [".git"]', "`workspace.caches` has `.git`"),
        ('caches = ["a/.planforge"]', "`workspace.caches` has `a/.planforge`"),
        ('shared = { UV_CACHE_DIR = "../x" }', "`workspace.shared` has "),
        ('shared = { "A B" = "x" }', "`workspace.shared` has "),
        ("include_files = -1", "`workspace.include_files` must be at least 0"),
        ("setup_seconds = 0", "`workspace.setup_seconds` must be more than 0"),
        ("smoke_seconds = nan", "`workspace.smoke_seconds` must be more than 0"),
        ('own_changes = "maybe"', "own_changes"),
        ('setup = "make install"', "`workspace.setup` must be a list"),
        ("nonsense = 1", "nonsense"),
    ],
)
def test_a_setting_that_makes_no_sense_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "planforge.toml").write_text(f"[workspace]\n{text}\n")
    with pytest.raises(InvalidInput) as refused:
        settings.read(tmp_path)
    assert message in refused.value.message
