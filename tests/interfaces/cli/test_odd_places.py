"""Every command where something of the project is not what it must be: one line, and nothing done."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import oddities
from calls import Said
from oddities import Combination, Walk, commands, contents, sample, wrong
from programs import COMMAND, environment
from rehearsals import Rehearsal, copied

PLANS = "docs/plans"


def gone(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def put(name: str, content: bytes = b"x") -> Callable[[Path], None]:
    """Have a file there, whatever is there now."""

    def spoil(root: Path) -> None:
        gone(root, name)
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)

    return spoil


def directory(name: str) -> Callable[[Path], None]:
    def spoil(root: Path) -> None:
        gone(root, name)
        (root / name).mkdir(parents=True)

    return spoil


def each_plan(spoil: Callable[[str], Callable[[Path], None]]) -> Callable[[Path], None]:
    def spoil_all(root: Path) -> None:
        for path in list((root / PLANS).glob("plan-*.md")):
            spoil(str(path.relative_to(root)))(root)

    return spoil_all


def cut_short(root: Path) -> None:
    ledger = root / ".planforge/ledger.db"
    os.truncate(ledger, ledger.stat().st_size // 2)


PLACES: dict[str, Callable[[Path], object]] = {
    "`.planforge` is a file": put(".planforge"),
    "`.planforge` is gone": lambda root: gone(root, ".planforge"),
    "`.planforge` is empty": directory(".planforge"),
    "the ledger is empty": put(".planforge/ledger.db", b""),
    "the ledger is garbage": put(".planforge/ledger.db", b"garbage" * 1000),
    "the ledger is cut short": cut_short,
    "the ledger is a directory": directory(".planforge/ledger.db"),
    "the objects are a file": put(".planforge/objects"),
    "the objects are gone": lambda root: gone(root, ".planforge/objects"),
    "the locks are a file": put(".planforge/locks"),
    "the homes are a file": put(".planforge/homes"),
    "the worktrees are a file": put(".planforge/worktrees"),
    "the processes are a file": put(".planforge/processes"),
    "the settings are a directory": directory("planforge.toml"),
    "the settings are not UTF-8": put("planforge.toml", b"\xff\xfe"),
    "`docs` is a file": put("docs"),
    "`docs/plans` is a file": put(PLANS),
    "`docs` is gone": lambda root: gone(root, "docs"),
    "the plans are empty": each_plan(lambda name: put(name, b"")),
    "the plans are not UTF-8": each_plan(lambda name: put(name, b"\xff\xfe\x00")),
    "the plans are directories": each_plan(directory),
    "the lessons are not UTF-8": put("docs/lessons.md", b"\xff\xfe"),
    "the lessons are a directory": directory("docs/lessons.md"),
    "the template is not UTF-8": put(f"{PLANS}/.plan-template.md", b"\xff\xfe"),
    "`AGENTS.md` is not UTF-8": put("AGENTS.md", b"\xff\xfe"),
    "the constraints are not UTF-8": put(".context/project.md", b"\xff\xfe"),
    "the roles are not UTF-8": put("planforge/roles/roles.toml", b"\xff\xfe"),
    "`.git` is gone": lambda root: gone(root, ".git"),
    "`.git` is a file": put(".git"),
    "`HEAD` is garbage": put(".git/HEAD", b"\xff"),
    "the index is garbage": put(".git/index", b"garbage"),
    "the objects of git are gone": lambda root: gone(root, ".git/objects"),
    "the settings of git are garbage": put(".git/config", b"[\xff"),
    "the directory is gone": lambda root: gone(root.parent, root.name),
}

IN_EVERY_BUILD = ("status", "plan show", "plan cancel", "plan create")

DEAR = pytest.mark.dear


@pytest.fixture(scope="module")
def prepared(two_texts: Rehearsal, tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    return oddities.prepare(copied(two_texts, tmp_path_factory.mktemp("odd")))


@pytest.mark.parametrize("names", [IN_EVERY_BUILD, pytest.param((), id="all", marks=DEAR)])
@pytest.mark.parametrize("place", PLACES)
def test_a_place_that_is_not_what_it_must_be_is_one_line_and_nothing_is_done(
    prepared: Rehearsal,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    place: str,
    names: tuple[str, ...],
) -> None:
    walk = Walk(prepared, tmp_path, monkeypatch, capsys, PLACES[place])
    chosen = [each for each in commands() if each.name in names or (not names and each.name != "demo")]
    tried = [Combination(each, place, "so", sample(each)) for each in chosen]
    faults = {str(each): fault for each in tried if (fault := walk.fault(each))}
    assert not faults


# What only the system can refuse: in a process of its own, because it cannot be taken back

CHANGING = (
    ("init",),
    ("forge", "1"),
    ("plan", "create", "More texts"),
    ("plan", "cancel", "1", "--reason=no"),
    ("plan", "approve", "1"),
    ("plan", "skip", "2", "--reason=no"),
    ("lesson", "add", "Never write to a disk that is full"),
    ("agent", "add", "mine", "true"),
    ("prove", "run-001", "--output=proof"),
    ("states", "plan", "--svg=plan.svg"),
    ("fix", "Correct a typo in one/old.txt"),
    ("pipeline", "run", "bug-quick", "Mend it"),
    ("cleanup", "--yes"),
    ("evidence",),
)
READING = (("status",), ("log",), ("plan", "list"), ("plan", "show", "1"), ("doctor",), ("verify",))


def called(root: Path, words: tuple[str, ...], *before: str) -> Said:
    """How a command ends that is started by another one."""
    argv = [*before, *COMMAND, *words]
    ended = subprocess.run(
        argv,
        cwd=root,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return Said(ended.returncode, ended.stdout, ended.stderr)


ENVIRONMENTS = {
    "no HOME": ("env", "-u", "HOME"),
    "a HOME that is not there": ("env", "HOME=/nowhere"),
    "no git": ("env", "PATH=/nowhere"),
    "no language": ("env", "-u", "LANG", "LC_ALL=C", "PYTHONUTF8=0", "PYTHONCOERCECLOCALE=0"),
    "a dumb terminal": ("env", "TERM=dumb"),
    "nothing at all": ("env", "-i"),
    "no standard input": ("sh", "-c", 'exec "$@" <&-', "sh"),
    "no standard output": ("sh", "-c", 'exec "$@" >&-', "sh"),
    "no standard error": ("sh", "-c", 'exec "$@" 2>&-', "sh"),
    "a reader that has seen enough": ("sh", "-c", '"$@" | head -n 1', "sh"),
}


@pytest.mark.dear
@pytest.mark.parametrize("words", [*CHANGING[2:5], *READING, ("plan", "show", "9")], ids=" ".join)
@pytest.mark.parametrize("odd", ENVIRONMENTS)
def test_an_environment_that_lacks_something_is_no_traceback(
    prepared: Rehearsal, tmp_path: Path, words: tuple[str, ...], odd: str
) -> None:
    at = copied(prepared, tmp_path / "here")
    said = called(at.root, words, *ENVIRONMENTS[odd])
    assert "Traceback" not in said.err
    assert "Exception ignored" not in said.err
    if odd not in ("no standard output", "no standard error"):
        assert not wrong(words, said)


def is_possible(*argv: str) -> bool:
    return subprocess.run(argv, check=False, capture_output=True).returncode == 0


WITHOUT_PRIVILEGE = (
    "setpriv",
    "--bounding-set=-dac_override,-dac_read_search",
    "--inh-caps=-dac_override,-dac_read_search",
)
"""Starts a program that has to keep to the modes of files, as whoever is not root has."""


@pytest.mark.dear
@pytest.mark.parametrize("words", [*CHANGING, *READING], ids=" ".join)
def test_without_permission_to_write_it_is_one_line_and_nothing_is_done(
    prepared: Rehearsal, tmp_path: Path, words: tuple[str, ...]
) -> None:
    before = WITHOUT_PRIVILEGE if os.geteuid() == 0 else ()
    if before and not is_possible(*before, "true"):
        pytest.skip("root cannot give up what it may")
    at = copied(prepared, tmp_path / "closed")
    subprocess.run(["chmod", "-R", "a-w", str(at.root.parent)], check=True)
    there = contents(at.root.parent)
    try:
        said = called(at.root, words, *before)
        assert not wrong(words, said)
        assert contents(at.root.parent) == there
    finally:
        subprocess.run(["chmod", "-R", "u+w", str(at.root.parent)], check=True)


ON_ANOTHER_DISK = """\
set -e
cp -a "$1" "$1.copy"
mount -t tmpfs -o size=24m none "$1"
cp -a "$1.copy/." "$1"
{then}
cd "$1/$2"
shift 2
exec "$@"
"""
"""Puts a project on a disk of its own, which nobody else sees and which goes with the process."""

DISKS = {
    "full": 'dd if=/dev/zero of="$1/filler" bs=4k 2>/dev/null || true',
    "read-only": 'mount -o remount,ro "$1"',
}


@pytest.mark.dear
@pytest.mark.parametrize("words", [*CHANGING, *READING], ids=" ".join)
@pytest.mark.parametrize("disk", DISKS)
def test_on_a_disk_that_takes_nothing_it_is_one_line(
    prepared: Rehearsal, tmp_path: Path, words: tuple[str, ...], disk: str
) -> None:
    if not is_possible("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"):
        pytest.skip("nothing can be mounted here")
    at = copied(prepared, tmp_path / "disk")
    script = ON_ANOTHER_DISK.format(then=DISKS[disk])
    place = (str(at.root.parent), at.root.name)
    said = called(at.root, words, "unshare", "--mount", "sh", "-c", script, "sh", *place)
    assert not wrong(words, said)
