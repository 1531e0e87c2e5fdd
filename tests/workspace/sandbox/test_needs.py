"""What is installed in odd places works in a sandbox, and what lies beside it stays hidden."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import planforge
from planforge.workspace import processes, sandbox
from planforge.workspace.processes import Ended
from planforge.workspace.sandbox import Level, Policy
from planforge.workspace.sandbox.view import Access, View
from workspace.sandbox.confining import PATIENCE, required

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sandboxes are Linux's")

CONFINING = (Level.BUBBLEWRAP, Level.LANDLOCK)
BASE = Path(sys.base_prefix) / "bin" / "python3"


class Person:
    """A home with a space in its name and secrets in it, and a directory to work in."""

    def __init__(self, place: Path) -> None:
        self.home = place / "a home"
        self.work = place / "work"
        self.work.mkdir(parents=True)
        self.write(".ssh/id", "SECRET")
        self.write("notes.txt", "SECRET")

    def write(self, name: str, text: str, mode: int = 0o644) -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def venv(self, name: str) -> Path:
        """A virtual environment, made as `python -m venv` makes it but for pip."""
        root = self.home / name
        site = root / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
        site.mkdir(parents=True)
        (root / "bin").mkdir(exist_ok=True)
        (root / "bin" / "python3").symlink_to(BASE)
        (root / "bin" / "python").symlink_to("python3")
        (root / "pyvenv.cfg").write_text(f"home = {BASE.parent}\ninclude-system-site-packages = false\n")
        return site

    def view(self, program: str = "sh", path: str = os.defpath, policy: Policy | None = None) -> View:
        env = {"HOME": str(self.home), "PATH": path}
        return View(policy or Policy(), [program], self.work, env)

    def hidden(self, view: View) -> bool:
        """Whether the secrets of the home, and the home itself, are."""
        places = (self.home, self.home / ".ssh" / "id", self.home / "notes.txt")
        return {view.access(path.resolve()) for path in places} == {Access.SCRATCH}

    def run(self, argv: list[str], level: Level, path: str = os.defpath) -> Ended:
        return asyncio.run(
            processes.run(
                argv,
                cwd=self.work,
                seconds=PATIENCE,
                extra={"HOME": str(self.home), "PATH": path},
                policy=sandbox.verifying(self.work),
                level=level,
            )
        )

    def tries(self, argv: list[str], level: Level, path: str = os.defpath) -> str:
        """What a program of Python says that imports `thing` and reaches for the secrets."""
        code = (
            "import sys, thing\nprint(thing.__name__)\n"
            "for path in sys.argv[1:]:\n"
            "    try: print(open(path).read())\n"
            "    except OSError: print('hidden')\n"
        )
        secrets = [str(self.home / name) for name in (".ssh/id", "notes.txt")]
        return self.run([*argv, "-c", code, *secrets], level, path).output.decode()


WORKS = "thing\nhidden\nhidden\n"


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    made = Person(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    return made


@pytest.fixture(params=CONFINING)
def level(request: pytest.FixtureRequest) -> Level:
    found: Level = request.param
    required(found)
    return found


# What works, tried with real programs


def test_a_virtual_environment_in_a_home_works_with_what_is_installed_editable(
    person: Person, level: Level
) -> None:
    site = person.venv("some where/.venv")
    person.write("code/lib/src/thing/__init__.py", "import other")
    person.write("code/other/other.py", "")
    (site / "thing.pth").write_text(f"{person.home}/code/lib/src\n")
    (site / "__editable___other_finder.py").write_text(f"MAPPING = {{'other': '{person.home}/code/other'}}\n")
    (site / "other.pth").write_text(
        "import __editable___other_finder as x, sys; sys.path += x.MAPPING.values()\n"
    )
    python = str(person.home / "some where" / ".venv" / "bin" / "python")
    assert person.tries([python], level) == WORKS


def test_a_virtual_environment_that_is_the_home_itself_works_and_the_home_stays_hidden(
    person: Person, level: Level
) -> None:
    (person.venv(".") / "thing.py").touch()
    assert person.tries([str(person.home / "bin" / "python")], level) == WORKS


def test_a_path_of_links_leads_to_programs_wherever_they_are(
    person: Person, level: Level, tmp_path: Path
) -> None:
    (person.venv("tools/python") / "thing.py").touch()
    links = tmp_path / "links"
    links.mkdir()
    for name in ("env", "sh"):
        (links / name).symlink_to(str(shutil.which(name)))
    tool = person.home / "tools" / "python" / "bin" / "tool"
    person.write(str(tool), f'#!/bin/sh\nexec "{tool.parent}/python3" "$@"\n', 0o755)
    (tmp_path / "hop").symlink_to(tool)
    (links / "python3").symlink_to("../hop")
    # Not what is started itself leads there, but what that starts.
    assert person.tries(["env", "python3"], level, str(links)) == WORKS


def test_a_shim_of_any_kind_leads_to_what_it_turns_into(person: Person, level: Level) -> None:
    (person.venv("opt/real one") / "thing.py").touch()
    person.write("scripts/python3", '#!/bin/sh\nexec "$HOME/opt/real one/bin/python3" "$@"\n', 0o755)
    assert person.tries(["python3"], level, f"{person.home}/scripts:{os.defpath}") == WORKS
    assert person.tries(["env", "python3"], level, f"{person.home}/scripts:{os.defpath}") == WORKS


def test_versions_behind_the_shims_of_a_manager_are_seen_also_if_they_are_links(
    person: Person, level: Level
) -> None:
    (person.venv("elsewhere/3.99") / "thing.py").touch()
    manager = person.home / "manager"
    (manager / "versions").mkdir(parents=True)
    (manager / "versions" / "3.99").symlink_to(person.home / "elsewhere" / "3.99")
    shim = '#!/bin/sh\nexec "${0%/*}/../versions/$(cat "${0%/*}/../version")/bin/${0##*/}" "$@"\n'
    person.write("manager/shims/python3", shim, 0o755)
    person.write("manager/version", "3.99")
    assert person.tries(["env", "python3"], level, f"{manager}/shims:{os.defpath}") == WORKS


CALL = """
import asyncio, sys
from pathlib import Path
from planforge.agents.known import KNOWN
from planforge.workspace import processes, sandbox
argv = [*KNOWN["rehearsal"].command, "--help"]
run = processes.run(argv, cwd=Path(sys.argv[2]), seconds=60, policy=sandbox.verifying(Path(sys.argv[2])),
                    level=sandbox.Level(sys.argv[1]))
print(asyncio.run(run).output.decode())
"""


def test_our_own_package_is_found_by_a_confined_program_wherever_we_have_found_it(
    person: Person, level: Level
) -> None:
    ours = person.home / "my packages"
    shutil.copytree(Path(planforge.__file__).parent, ours / "planforge")
    person.write("notes.py", "raise SystemExit('the current directory is not ours')")
    (person.work / "msgspec.py").write_text("raise SystemExit('neither is the worktree')")
    sites = [entry for entry in sys.path if entry.endswith("site-packages")]
    env = {"PYTHONPATH": os.pathsep.join([str(ours), *sites]), "HOME": str(person.home), "PATH": os.defpath}
    argv = [str(BASE), "-c", CALL, level.value, str(person.work)]
    said = subprocess.run(argv, env=env, cwd=person.home, capture_output=True, check=False, text=True)
    assert "usage: " in said.stdout, said


# What stays hidden


def test_a_home_on_path_is_not_shown_nor_a_directory_for_temporary_files(person: Person) -> None:
    (person.home / "lib").mkdir()
    (person.home / "bin").mkdir()
    path = f"{person.home}:{person.home}/bin:{person.home.parent}:/tmp:{os.defpath}"
    view = person.view(path=path)
    assert person.hidden(view)
    assert view.access(person.home.resolve() / "bin") is Access.READ
    assert view.access(Path("/tmp").resolve()) is Access.SCRATCH


def test_a_home_behind_a_link_is_not_shown_for_what_is_installed_in_it(person: Person) -> None:
    real = person.home.rename(person.home.with_name("real"))
    person.home.symlink_to(real)
    for name in ("bin", "lib", ".local/bin", ".local/lib"):
        (real / name).mkdir(parents=True)
    view = person.view(path=f"{real}/bin:{person.home}/bin:{person.home}/.local/bin")
    assert person.hidden(view)
    assert view.access(real / "bin") is Access.READ


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("place", [".local/lib/../bin", ".local/bin", ".local/bin/.."])
def test_what_lies_beside_programs_in_a_home_is_hidden_however_it_is_named(
    level: Level, person: Person, place: str, linked: bool
) -> None:
    local = person.home / ("dot/local" if linked else ".local")
    for name in ("bin", "lib", "state"):
        (local / name).mkdir(parents=True)
    (local / "state" / "tok").write_text("SECRET")
    (local / "tok").write_text("SECRET")
    if linked:  # as `stow` makes it
        (person.home / ".local").symlink_to("dot/local")
    tool = person.write(
        ".local/bin/tool", f'#!/bin/sh\necho works; cat "{local}/state/tok" "{local}/tok"\n', 0o755
    )
    path = f"{person.home}/{place}:{os.defpath}"
    word = "tool" if place.endswith("bin") else str(tool)
    said = person.run([word], level, path).output.decode()
    assert said.startswith("works\n")
    assert "SECRET" not in said


def test_a_link_on_path_that_leads_to_no_program_shows_nothing(
    person: Person, level: Level, tmp_path: Path
) -> None:
    person.write(".codex/auth.json", "SECRET")
    person.write("private/shims/key", "SECRET")
    (tmp_path / "secret").write_text("SECRET")
    links = tmp_path / "links"
    links.mkdir()
    targets = {
        "codex": person.home / ".codex",
        "s": person.home / "notes.txt",
        "t": tmp_path / "secret",
        "hop": links / "s",
        "shim": person.home / "private" / "shims" / "key",
    }
    for name, target in targets.items():
        (links / name).symlink_to(target)
    (links / "tool").symlink_to(person.write("apart/tool", "#!/bin/sh\necho works\n", 0o755))
    files = " ".join(f'"{links}/{name}"' for name in ("codex/auth.json", "s", "t", "hop", "shim"))
    said = person.run(["sh", "-c", f"tool; cat {files}"], level, f"{links}:{os.defpath}").output.decode()
    assert said.startswith("works\n")
    assert "SECRET" not in said


def test_a_directory_we_were_started_in_is_not_shown(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    (person.home / "private").mkdir()
    monkeypatch.chdir(person.home / "private")
    monkeypatch.syspath_prepend(str(Path.cwd()))
    assert person.view(path=os.defpath).access(Path.cwd()) is Access.SCRATCH


def test_a_project_to_which_something_on_path_leads_is_not_shown_until_that_is_started(
    person: Person,
) -> None:
    tool = person.write("projects/other/bin/tool", "#!/bin/sh\n", 0o755)
    for name in (".git", "lib", "config"):
        (person.home / "projects" / "other" / name).mkdir()
    (person.home / "bin").mkdir()
    (person.home / "bin" / "tool").symlink_to(tool)
    person.write("bin/wrapper", f'#!/bin/sh\nexec "{tool}"\n', 0o755)
    config = (person.home / "projects" / "other" / "config").resolve()
    path = f"{person.home}/bin:{os.defpath}"
    assert person.view(path=path).access(config) is Access.SCRATCH
    assert person.view("tool", path).access(config) is Access.READ
    assert person.view(path=f"{tool.parent}:{path}").access(config) is Access.READ


@pytest.fixture
def planted(person: Person) -> Path:
    """A virtual environment in the worktree that says where else to look."""
    secret = person.home / "private"
    (secret / "bin").mkdir(parents=True)
    (secret / "lib").mkdir()
    root = person.work / ".venv"
    site = root / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    (root / "bin").mkdir()
    (root / "pyvenv.cfg").write_text(f"home = {secret}/bin\n")
    (site / "x.pth").write_text(f"{secret}\n{person.home}/.ssh\n")
    tool = root / "bin" / "tool"
    tool.write_text(f"#!/bin/sh\nexec {shutil.which('sh')} {secret}/bin/tool\n")
    tool.chmod(0o755)
    person.write("private/bin/tool", "#!/bin/sh\n", 0o755)
    return tool


def test_what_an_agent_may_have_written_does_not_say_what_is_shown(person: Person, planted: Path) -> None:
    policy = sandbox.verifying(person.work)
    link = person.work / "link"
    link.symlink_to(person.home / "private" / "bin" / "tool")
    script = person.work / "script"
    (person.home.parent / "h").symlink_to(person.home)  # no space in a first line
    script.write_text(f"#!{person.home.parent}/h/private/bin/tool\n")
    script.chmod(0o755)
    private = (person.home / "private").resolve()
    path = f"{planted.parent}:{os.defpath}"
    for program in (str(planted), "tool", "./link", "./script"):
        view = person.view(program, path, policy)
        assert person.hidden(view)
        assert {view.access(private), view.access(private / "bin" / "tool")} == {Access.SCRATCH}
    # The same, in a place that only the person can change, does.
    shown = person.view(str(planted))
    assert shown.access(private) is Access.READ
    assert shown.access((person.home / ".ssh").resolve()) is not Access.READ


def test_a_python_that_a_worktree_leads_to_is_shown_and_nothing_beside_it(
    person: Person, planted: Path
) -> None:
    person.write("py/bin/python3", "", 0o755)
    person.write("py/lib/python3.11/os.py", "")
    person.write("py/private", "SECRET")
    (planted.parent.parent / "pyvenv.cfg").write_text(f"home = {person.home}/py/bin\n")
    view = person.view(str(planted), policy=sandbox.verifying(person.work))
    home = person.home.resolve()
    assert view.access(home / "py" / "lib" / "python3.11" / "os.py") is Access.READ
    assert view.access(home / "py" / "bin" / "python3") is Access.READ
    assert view.access(home / "py" / "private") is Access.SCRATCH
    assert person.hidden(view)


def test_a_program_that_another_is_told_to_start_is_shown(person: Person, level: Level) -> None:
    (person.venv("opt/py") / "thing.py").touch()
    assert person.tries(["env", f"{person.home}/opt/py/bin/python3"], level) == WORKS
