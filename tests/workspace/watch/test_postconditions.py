"""
After an attempt everything but the worktree is as it was, or it is told what is not.

The agent is a real process that misbehaves in a real worktree; nothing confines it, so
that each of its tricks works and has to be found.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from planforge.kernel.locks import held
from planforge.kernel.objects import Objects
from planforge.workspace.git import Git
from planforge.workspace.watch.postconditions import Watch
from planforge.workspace.worktrees import Worktrees
from repositories import ENVIRONMENT, commit, git, repository, write

IGNORE = "*.pyc\n.env\nnode_modules/\n.venv/\n.planforge/\n"
FILES = {
    ".gitignore": IGNORE,
    "README": "",
    "app.py": "print(1)\n",
    "lib/util.py": "",
    "docs/plans/plan-001.md": "# plan\n",
}


class Place:
    """The person's checkout, one more of theirs, a worktree of a run that died, and the agent's."""

    def __init__(self, place: Path) -> None:
        self.root = repository(place / "main", FILES)
        write(self.root, {".env": "SECRET=1\n", "node_modules/pad/index.js": "", "notes/todo.txt": "x"})
        self.git = Git.find(self.root)
        self.base = git(self.root, "rev-parse", "HEAD")
        git(self.root, "branch", "feature")
        self.own = place / "own"
        git(self.root, "worktree", "add", "--quiet", "-b", "mine", str(self.own))
        self.state = self.root / ".planforge"
        (self.state / "locks").mkdir(parents=True)
        (self.state / ".gitignore").write_text("*\n")
        (self.state / "ledger.db").write_text("events")
        for content in (b"evidence", b"patch"):
            Objects(self.state / "objects").put(content)
        self.dead = self.opened("run-001", "left")
        (self.state / "locks" / "run-001.lock").write_text("process 1")
        self.busy = self.opened("run-002", "busy")
        self.worktree = self.opened("run-002", "work")
        write(self.root, {"kept": "x"})
        git(self.root, "update-ref", "refs/planforge/archive/run-001/phase-1-1", self.base)

    def opened(self, run: str, name: str) -> Path:
        path = self.state / "worktrees" / run / name
        git(self.root, "worktree", "add", "--quiet", "--detach", str(path), self.base)
        return path

    def watch(self, **more: object) -> Watch:
        wanted = {"base": self.base, "state": self.state, "written": ("docs/plans",)} | more
        watch = Watch(self.git, self.worktree, **wanted)  # type: ignore[arg-type]
        watch.take()
        return watch

    def play(self, code: str, cwd: Path | None = None) -> None:
        """Have a process do something in the worktree, as an agent would."""
        known = {
            "MAIN": self.root,
            "OWN": self.own,
            "DEAD": self.dead,
            "BUSY": self.busy,
            "STATE": self.state,
        }
        begin = (
            "import os, shutil, subprocess, sys\nfrom pathlib import Path\n"
            "names = 'MAIN OWN DEAD BUSY STATE'.split()\n"
            "MAIN, OWN, DEAD, BUSY, STATE = (Path(os.environ[name]) for name in names)\n"
            "GIT = MAIN / '.git'\n"
            "def git(*words, cwd='.'):\n"
            "    subprocess.run(['git', *words], cwd=cwd, check=True, capture_output=True)\n"
        )
        subprocess.run(
            [sys.executable, "-I", "-S", "-c", begin + code],
            cwd=cwd or self.worktree,
            env=ENVIRONMENT | {name: str(path) for name, path in known.items()},
            check=True,
            timeout=60,
        )

    def problems(self, code: str, **more: object) -> tuple[str, ...]:
        watch = self.watch(**more)
        self.play(code)
        return watch.problems()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Made once; all of it knows where it lies, so it is put back to the same place for every test."""
    directory = tmp_path_factory.mktemp("made").resolve()
    made = Place(directory / "place")
    shutil.copytree(directory / "place", directory / "as it was", symlinks=True)
    return made


@pytest.fixture
def place(made: Place) -> Place:
    directory = made.root.parent
    shutil.rmtree(directory)
    shutil.copytree(directory.with_name("as it was"), directory, symlinks=True)
    made.git = Git.find(made.root)
    return made


def test_honest_work_is_no_problem_and_neither_is_what_planforge_does_meanwhile(place: Place) -> None:
    code = """
Path('app.py').write_text('print(2)'); Path('new').mkdir(); Path('new/x.py').write_text('')
Path('lib/util.py').unlink(); Path('link.py').symlink_to('app.py'); os.link('app.py', 'same.py')
git('add', '-A'); git('status'); git('diff'); git('log', '-1'); git('commit', '-qm', 'by the agent')
git('commit', '-q', '--allow-empty', '-m', 'x'); git('reset', '-q', '--hard', 'HEAD~1')
git('pack-refs', '--all'); git('repack', '-adq')
# An interpreter and a package store are linked to in places that are ignored.
os.makedirs('.venv/bin'); os.symlink(sys.executable, '.venv/bin/python')
os.makedirs('node_modules/.bin'); os.symlink('../../app.py', 'node_modules/.bin/app')
os.link(MAIN.parent / 'store', 'node_modules/stored')
# Planforge writes plans, and others of ours are at work next to it.
Path('../../../../docs/plans/plan-001.md').write_text('ticked by Planforge')
(BUSY / 'app.py').write_text('of another agent'); (BUSY / 'x').mkdir()
git('update-ref', 'refs/planforge/archive/run-002/x', 'HEAD'); git('branch', 'planforge/plan-001')
(STATE / 'objects' / 'ab').mkdir(); (STATE / 'objects' / 'ab' / 'cd').write_text('new')
(STATE / 'worktrees' / 'run-003').mkdir(); (STATE / 'ledger.db-wal').write_text('')
git('worktree', 'add', '-q', '--detach', str(STATE / 'worktrees' / 'run-002' / 'more'), cwd=MAIN)
"""
    (place.root.parent / "store").write_text("a package")
    assert place.problems(code) == ()


def test_what_tools_leave_in_the_persons_checkout_is_nobodys_fault(place: Place) -> None:
    code = """
(MAIN / 'lib' / 'util.pyc').write_text('compiled')
(MAIN / 'node_modules' / 'new').mkdir(); (MAIN / 'node_modules' / 'pad' / 'index.js').write_text('x')
(MAIN / '.venv').mkdir()
git('status', cwd=MAIN); git('add', '-A', cwd=MAIN); git('gc', '-q', cwd=MAIN)
"""
    assert place.problems(code) == ()


Attack = tuple[str, str]
"""What the agent does, and what must be told of it."""

ATTACKS: dict[str, list[Attack]] = {
    "settings and hooks": [
        (
            "with open(GIT / 'config', 'a') as f: f.write('[core]\\nfsmonitor = touch x\\n')",
            "main/.git/config`",
        ),
        (
            "(GIT / 'hooks').mkdir(exist_ok=True); (GIT / 'hooks/pre-commit').write_text('x')",
            "hooks/pre-commit`",
        ),
        (
            "(GIT / 'info').mkdir(exist_ok=True); (GIT / 'info/attributes').write_text('*')",
            "info/attributes`",
        ),
        ("(GIT / 'info/exclude').write_text('*')", "info/exclude`"),
        ("(GIT / 'objects/info').mkdir(exist_ok=True)", ""),
        ("(GIT / 'objects/info/alternates').write_text('/x')", "objects/info/alternates`"),
        ("(GIT / 'config.worktree').write_text('[core]')", "main/.git/config.worktree`"),
        ("(GIT / 'remotes').mkdir(); (GIT / 'remotes' / 'o').write_text('URL: ext::sh')", "remotes/o`"),
        ("(GIT / 'modules/s/hooks').mkdir(parents=True); (GIT / 'modules/s/objects').mkdir()", ""),
        ("(GIT / 'modules/s/hooks/post-checkout').write_text('x')", "modules/s/hooks/post-checkout`"),
    ],
    "a link for the hooks": [
        ("shutil.rmtree(GIT / 'hooks', True); (GIT / 'hooks').symlink_to('/tmp')", "main/.git/hooks`"),
    ],
    "another common directory": [("(GIT / 'commondir').write_text('/tmp')", "main/.git/commondir`")],
    "another directory in place of .git": [
        ("GIT.rename(MAIN / 'moved'); shutil.copytree(MAIN / 'moved', GIT)", "is not the directory any more"),
    ],
    "no .git": [("shutil.rmtree(GIT)", "cannot be looked at any more")],
    "entries of worktrees": [
        ("(GIT / 'worktrees/own/commondir').write_text('/tmp')", "worktrees/own/commondir`"),
        ("(GIT / 'worktrees/own/gitdir').write_text('/tmp/.git')", "worktrees/own/gitdir`"),
        ("(GIT / 'worktrees/busy/config.worktree').write_text('[core]')", "worktrees/busy/config.worktree`"),
        ("(GIT / 'worktrees/work/gitdir').write_text(str(BUSY / '.git'))", "worktrees/work/gitdir`"),
    ],
    "no entry": [("shutil.rmtree(GIT / 'worktrees/work')", "git has no entry for the worktree")],
    "files .git of worktrees": [
        ("(OWN / '.git').write_text('gitdir: /tmp')", "own/.git` is not what git wrote there"),
        ("(BUSY / '.git').unlink(); (BUSY / '.git').mkdir()", "busy/.git` is not what git wrote there"),
        ("Path('.git').write_text('gitdir: /tmp/evil')", "work/.git` is not what git wrote there"),
    ],
    "a repository of its own": [
        ("Path('.git').unlink(); git('init', '-q', '.')", "work/.git` is not what git wrote there"),
    ],
    "a link for .git": [
        ("Path('.git').rename('g'); Path('.git').symlink_to('g')", "work/.git` is not what git wrote there"),
    ],
    "no file .git": [("Path('.git').unlink()", "work/.git` disappeared")],
    "refs": [
        (
            "git('update-ref', '-d', 'refs/planforge/archive/run-001/phase-1-1')",
            "`refs/planforge/archive/run-001/",
        ),
        ("git('replace', 'HEAD:app.py', 'HEAD:.gitignore')", "`refs/replace/"),
        (
            "git('checkout', '-q', '-b', 'planforge/other')",
            "is on `refs/heads/planforge/other`, not detached",
        ),
    ],
    "another history": [
        (
            "git('checkout', '-q', '--orphan', 'x'); git('commit', '-qm', 'x')",
            "is on `refs/heads/x`, not detached",
        ),
        ("pass", "which does not build on"),
    ],
    "an amended base": [
        ("git('commit', '-q', '--amend', '--allow-empty', '-m', 'y')", "which does not build on")
    ],
    "no HEAD": [
        ("(GIT / 'worktrees/work/HEAD').write_text('nonsense')", "HEAD of the worktree `work` is no commit")
    ],
    "strays": [
        ("Path('../evil').write_text('x')", "worktrees/run-002/evil` appeared"),
        ("Path('../evil-directory').mkdir()", "worktrees/run-002/evil-directory` appeared"),
        ("Path('../../evil').write_text('x')", "worktrees/evil` appeared"),
        ("Path('../../../evil').write_text('x')", ".planforge/evil` appeared"),
    ],
    "the state": [
        ("(STATE / '.gitignore').unlink()", ".planforge/.gitignore` disappeared"),
        ("(STATE / 'ledger.db').rename(STATE / 'ledger.old')", ""),
        ("(STATE / 'ledger.db').write_text('')", "ledger.db` was changed"),
        ("a, b = sorted((STATE / 'objects').glob('*/*')); a.write_bytes(b'forged!!')", "` was changed"),
        ("b.unlink()", "` disappeared"),
    ],
    "links": [
        ("Path('out').symlink_to('/etc')", "`out` in the worktree leads out of it to `/etc`"),
        ("Path('up').symlink_to('../../../../app.py')", "`up` in the worktree leads out of it to `"),
        (
            "Path('a').symlink_to('.'); Path('b').symlink_to('a/../x')",
            "`b` in the worktree leads out of it",
        ),
        (
            "Path('app.py').unlink(); Path('app.py').symlink_to('/dev/null')",
            "`app.py` in the worktree leads out",
        ),
        ("os.makedirs('.venv'); os.symlink(MAIN, '.venv/m')", "`.venv/m` in the worktree leads out"),
        ("os.symlink(STATE / 'ledger.db', '.venv/l')", "`.venv/l` in the worktree leads out"),
        ("os.symlink(BUSY / 'app.py', '.venv/b')", "`.venv/b` in the worktree leads out"),
        ("os.symlink(sys.executable, '.venv/python')", ""),
    ],
    "hard links": [
        (
            "os.makedirs('.venv'); os.link(GIT / 'config', '.venv/c')",
            "`.venv/c` in the worktree shares a file",
        ),
        ("os.link(STATE / 'ledger.db', '.venv/l')", "`.venv/l` in the worktree shares a file"),
        ("os.link(BUSY / 'app.py', '.venv/b')", "`.venv/b` in the worktree shares a file"),
        ("os.link(MAIN / 'node_modules/pad/index.js', '.venv/p')", "`.venv/p` in the worktree shares a file"),
        ("Path('out').hardlink_to(MAIN.parent / 'outside')", "`out` in the worktree shares a file"),
    ],
    "its own work in the wrong place": [
        ("for d in (MAIN, Path('.')): (d / 'app.py').write_text('mine')", "app.py` got what the agent wrote"),
        (
            "for d in (OWN, Path('.')): (d / 'new.py').write_text('new')",
            "own/new.py` got what the agent wrote",
        ),
    ],
    "no worktree": [("shutil.rmtree(os.getcwd())", "is no directory any more")],
    "a link for the worktree": [
        ("c = Path(os.getcwd()); c.rename(c.parent / '.x'); c.symlink_to('.x')", "is no directory any more"),
    ],
}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_told_whether_or_not_the_person_may_change_things(place: Place, name: str) -> None:
    (place.root.parent / "outside").write_text("not ours")
    problems = place.problems("\n".join(code for code, _ in ATTACKS[name]), allowed=True)
    for told in filter(None, (told for _, told in ATTACKS[name])):
        assert any(told in problem for problem in problems), (told, problems)
    assert all("\n" not in problem for problem in problems)


PERHAPS_THE_PERSON: dict[str, list[Attack]] = {
    "files": [
        ("(MAIN / 'app.py').write_text('other')", "main/app.py` was changed"),
        ("Path('../../../../README').write_text('other')", "main/README` was changed"),
        ("(MAIN / 'lib' / 'util.py').unlink()", "main/lib/util.py` disappeared"),
        ("(MAIN / 'lib' / 'more.py').write_text('')", "main/lib/more.py` appeared"),
        ("(MAIN / 'lib' / 'deeper' / 'deep').mkdir(parents=True)", "main/lib/deeper` appeared"),
        ("(MAIN / '.env').write_text('SECRET=2\\n')", "main/.env` was changed"),
        ("(MAIN / 'notes' / 'todo.txt').write_text('y')", "main/notes/todo.txt` was changed"),
    ],
    "files in other ways": [
        ("(MAIN / 'README').chmod(0o777)", "main/README` got another mode"),
        ("p = MAIN / 'app.py'; s = p.stat(); p.write_text('print(9)\\n')", "main/app.py` was changed"),
        ("os.utime(p, ns=(s.st_atime_ns, s.st_mtime_ns)); assert p.stat().st_size == s.st_size", ""),
        ("(MAIN / '.gitignore').unlink(); (MAIN / '.gitignore').symlink_to('.env')", "main/.gitignore` was"),
        ("shutil.rmtree(MAIN / 'lib'); (MAIN / 'lib').symlink_to('/tmp')", "main/lib` was changed"),
        ("os.makedirs('.venv'); os.link(MAIN / 'kept', '.venv/a')", "main/kept` got another name"),
    ],
    "other worktrees": [
        ("(OWN / 'app.py').write_text('other')", "own/app.py` was changed"),
        ("(DEAD / 'app.py').write_text('other')", "run-001/left/app.py` was changed"),
        ("(DEAD / 'more').write_text('other')", "run-001/left/more` appeared"),
    ],
    "branches": [
        ("git('checkout', '-q', 'feature', cwd=MAIN)", "main/.git/HEAD` was changed"),
        ("git('commit', '-q', '--allow-empty', '-m', 'x', cwd=OWN)", "`refs/heads/mine` was moved"),
        ("git('update-ref', '-d', 'refs/heads/main')", "`refs/heads/main` disappeared"),
        ("git('tag', 'v1')", "`refs/tags/v1` appeared"),
        ("Path('app.py').write_text('x'); git('stash', '-q')", "`refs/stash` appeared"),
    ],
    "worktrees that come and go": [
        ("git('worktree', 'add', '-q', '--detach', str(MAIN.parent / 'more'))", "more` appeared"),
        ("git('worktree', 'remove', str(OWN))", "own` disappeared"),
    ],
}


@pytest.mark.parametrize("name", PERHAPS_THE_PERSON)
def test_a_change_that_may_be_the_persons_is_a_problem_unless_they_allow_it(place: Place, name: str) -> None:
    watch, lenient = place.watch(), place.watch(allowed=True)
    place.play("\n".join(code for code, _ in PERHAPS_THE_PERSON[name]))
    problems = watch.problems()
    rest = [text for text in lenient.problems() if "in the worktree shares" not in text]
    assert rest == []
    for told in filter(None, (told for _, told in PERHAPS_THE_PERSON[name])):
        problem = next((text for text in problems if told in text), "")
        assert "while the attempt ran, and no sandbox kept the agent from it" in problem, (told, problems)
        assert 'own_changes = "allow"' in problem
        assert any(told in note for note in lenient.notes)


def test_where_a_sandbox_confined_the_agent_the_persons_own_work_is_no_problem(place: Place) -> None:
    code = "(MAIN / 'app.py').write_text('other'); git('tag', 'v1'); git('commit', '-aqm', 'x', cwd=MAIN)"
    watch = place.watch(confined=True)
    place.play(code)
    assert watch.problems() == ()
    assert any("refs/tags/v1" in note for note in watch.notes)


def test_what_a_sandbox_should_have_prevented_is_found_all_the_same(place: Place) -> None:
    assert place.problems("git('config', 'a.b', 'c')", confined=True) != ()
    assert place.problems("Path('out').symlink_to('/etc')", confined=True) != ()
    assert place.problems("os.makedirs('.venv'); os.link(MAIN / '.env', '.venv/e')", confined=True) != ()


def test_a_worktree_of_the_persons_that_is_removed_is_told_once_and_not_file_by_file(place: Place) -> None:
    (problem,) = place.problems("git('worktree', 'remove', str(OWN))")
    assert "own` disappeared while the attempt ran" in problem


def test_a_run_that_somebody_takes_up_meanwhile_may_change_its_worktree(place: Place) -> None:
    watch = place.watch()
    with held(place.state / "locks" / "run-001.lock", "run-001"):
        (place.dead / "app.py").write_text("by its own agent")
        during = watch.problems()
    assert during == ()
    assert watch.problems() == ()


def test_a_run_that_is_cleaned_up_meanwhile_is_no_problem(place: Place) -> None:
    watch = place.watch()
    Worktrees(place.git, place.state, "run-001").sweep()
    assert watch.problems() == ()


def test_a_link_that_came_with_the_commit_is_no_problem_until_it_leads_elsewhere(place: Place) -> None:
    (place.root / "data").symlink_to("/usr/share")
    base = commit(place.root, {}, "a link")
    git(place.worktree, "checkout", "--quiet", base)
    assert place.problems("pass", base=base) == ()
    assert place.problems("Path('data').unlink(); Path('data').symlink_to('/etc')", base=base) != ()


def test_a_setting_behind_a_link_is_watched_too(place: Place) -> None:
    config = place.root / ".git" / "config"
    config.rename(place.root.parent / "dotfile")
    config.symlink_to("../../dotfile")
    place.git = Git.find(place.root)
    problems = place.problems("(MAIN.parent / 'dotfile').open('a').write('[core]\\nfsmonitor = x\\n')")
    assert any("main/.git/config`" in problem for problem in problems)


def test_a_broken_worktree_of_the_persons_is_no_reason_not_to_start(place: Place) -> None:
    (place.root / ".git" / "worktrees" / "own" / "index").write_text("broken")
    assert place.problems("pass") == ()
    assert place.problems("(OWN / 'app.py').write_text('x')") != ()


def test_an_expected_branch_is_expected(place: Place) -> None:
    git(place.worktree, "checkout", "--quiet", "-b", "planforge/work/x")
    assert place.problems("pass", branch="planforge/work/x") == ()
    assert place.problems("git('commit', '-q', '--allow-empty', '-m', 'x')", branch="planforge/work/x") == ()
    (problem,) = place.problems("git('checkout', '-q', '--detach')", branch="planforge/work/x")
    assert problem == "the worktree `work` is on `no branch`, not on `refs/heads/planforge/work/x`"


def test_copied_files_that_are_not_ignored_any_more_are_told(place: Place) -> None:
    (place.worktree / ".env").write_text("SECRET=1")
    code = "Path('.gitignore').write_text('*.pyc\\n')"
    assert place.problems("pass", copied=[".env"]) == ()
    (problem,) = place.problems(code, copied=[".env"])
    assert problem == "`.env` was copied from your checkout and is not ignored any more"


def test_many_changes_are_counted_and_not_all_told(place: Place) -> None:
    problems = place.problems("for n in range(50): (MAIN / f'{n:02}.py').write_text('x')")
    assert len(problems) == 11
    assert problems[-1].startswith("40 more next to `")


def test_names_that_are_no_text_are_told(place: Place) -> None:
    (problem,) = place.problems("open(os.fsencode(MAIN) + b'/caf\\xe9\\n', 'w').close()")
    assert "main/caf\\xe9\\n` appeared" in problem


def test_what_lies_too_deep_to_be_looked_at_is_told(place: Place) -> None:
    """A way to hide a link: below a path that is longer than any that can be opened."""
    code = "for n in range(20): os.mkdir('d' * 250); os.chdir('d' * 250)\nos.symlink('/etc', 'out')"
    (problem,) = place.problems(code)
    assert problem.startswith("`ddd")
    assert problem.endswith("` in the worktree cannot be looked into")


def test_looking_at_a_large_repository_stats_each_file_once_and_reads_none(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What makes it affordable: the number of files read does not grow with the repository."""
    commit(place.root, {f"many/{n:04}.py": f"{n}" for n in range(500)})
    opened: list[str] = []
    original = Path.read_bytes

    def read_bytes(path: Path) -> bytes:
        opened.append(str(path))
        return original(path)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    watch = place.watch()
    watch.problems()
    assert not [path for path in opened if "/many/" in path]
    assert len(opened) < 200
