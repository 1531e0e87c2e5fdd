"""
A ledger that something happened to, through the real command: one clear line each time, and nothing lost.

Each test spoils a copy of the same small project and then does what a user would:
`status`, `log`, `verify`.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kernel.another_client import another_client
from kernel.histories import Clock
from kernel.ledger_contract import parked, started
from kernel.processes import child
from planforge.errors import PlanforgeError
from planforge.kernel.events import ItemOpened, Payload, RunStarted
from planforge.kernel.ledger import Ledger
from planforge.kernel.ledger.storage import FORMAT
from planforge.kernel.ledger.wal import PAGE_BYTES
from programs import COMMAND, environment, planforge
from repositories import repository

READING = (("status",), ("log", "-n", "50"), ("verify",))
FRAME = PAGE_BYTES + 24


def fill(ledger: Ledger) -> None:
    """Some events, over several pages of the file."""
    ledger.append("run-001", [started("run-001")], expected=0)
    ledger.append("plan-001", [ItemOpened(item="plan-001", title="It", request="do it", path="")], expected=0)
    for number in range(40):
        ledger.append("run-001", [parked(f"{number} " + "reason " * (number * 7 % 50))], expected=1 + number)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = repository(tmp_path_factory.mktemp("pristine") / "project")
    assert planforge("init", cwd=root).returncode == 0
    ledger = Ledger.open(root / ".planforge")
    fill(ledger)
    ledger.close()
    return root


@pytest.fixture
def project(pristine: Path, tmp_path: Path) -> Path:
    root = tmp_path / "project"
    shutil.copytree(pristine, root)
    return root


def state(root: Path) -> Path:
    return root / ".planforge"


def files(root: Path) -> dict[str, bytes]:
    """The ledger and its log, byte by byte; what SQLite only uses to coordinate is left out."""
    found = (state(root) / "ledger.db", state(root) / "ledger.db-wal")
    return {path.name: path.read_bytes() for path in found if path.is_file() and path.stat().st_size}


def said(root: Path, *arguments: str) -> tuple[int, str]:
    """The exit code of a command, and its error. It has one line, or none; a hint may follow."""
    done = planforge(*arguments, cwd=root)
    assert "Traceback" not in done.stderr
    message, _, hint = done.stderr.strip().partition("\n\n")
    assert "\n" not in message
    assert not hint or (hint.startswith("hint: ") and "\n" not in hint)
    assert bool(done.returncode) == bool(message) or arguments[0] == "verify"
    return done.returncode, message or done.stdout.strip()


def test_the_project_that_the_others_spoil_is_fine(project: Path) -> None:
    assert [said(project, *command)[0] for command in READING] == [0, 0, 0]
    assert said(project, "verify") == (0, "intact: 42 events, 0 objects")


def test_a_ledger_of_a_newer_version_is_refused_and_left_alone(project: Path) -> None:
    another_client(state(project), f"PRAGMA user_version = {FORMAT + 1}")
    before = files(project)
    for command in READING:
        code, message = said(project, *command)
        assert code == 3
        assert message.endswith(f"has format {FORMAT + 1}, this Planforge reads format {FORMAT}")
    assert files(project) == before


@pytest.mark.parametrize("name", ["ledger.db", "ledger.db-wal", "ledger.db-shm"])
def test_what_is_no_file_is_refused_and_not_waited_for(project: Path, name: str) -> None:
    path = state(project) / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    for command in (*READING, ("plan", "create", "Another")):
        assert said(project, *command) == (3, f"error: `{path}` is not a file")


@pytest.mark.parametrize(
    ("flow", "version", "problem"),
    [
        ("moon", 1, "`run-009` is a `moon`, which this Planforge does not know"),
        ("land", 900, "`run-009` was recorded by version 900 of `land`, this Planforge has version 2"),
        (
            "land",
            2,
            "the request of `run-009` does not fit `land` as it is now: Expected `object`, got `null`",
        ),
    ],
)
def test_a_run_of_another_version_is_not_taken_up_and_can_be_ended(
    project: Path, flow: str, version: int, problem: str
) -> None:
    begun = RunStarted(run="run-009", flow=flow, flow_version=version, subject="plan-001", request=Payload())
    with closing(Ledger.open(state(project))) as ledger:
        ledger.append("run-009", [begun], expected=0)
    resumed = planforge("resume", "run-009", cwd=project)
    assert resumed.returncode == 1
    assert f"error: {problem}\n" in resumed.stderr
    assert "`planforge cancel run-009 --reason TEXT`" in resumed.stderr
    assert said(project, "replay", "run-009") == (1, f"error: {problem}")
    assert said(project, "cancel", "run-009", "--reason", "it is over")[0] == 0
    assert said(project, "verify")[0] == 0


def test_an_event_of_a_newer_version_is_refused_by_its_number(project: Path) -> None:
    changed = "UPDATE events SET kind = 'MoonRose' WHERE seq = 42"
    another_client(state(project), changed, unguarded=True)
    code, message = said(project, "log")
    assert (code, message) == (
        3,
        "error: event 42 is of kind `MoonRose`, which this Planforge does not know",
    )


@pytest.mark.parametrize(
    "length", [0, 1, 20, 50, 99, 100, PAGE_BYTES - 1, PAGE_BYTES, 8192, -1, -PAGE_BYTES, -20_000]
)
def test_a_truncated_ledger_is_refused_and_left_alone(project: Path, length: int) -> None:
    path = state(project) / "ledger.db"
    whole = path.read_bytes()
    path.write_bytes(whole[:length])
    before = files(project)
    answers = [said(project, *command) for command in READING]
    assert answers[-1][0] != 0, "`verify` takes it for whole"
    assert files(project) == before


# Flipped bytes


def problems(root: Path) -> list[str]:
    """Whatever is said of a ledger by whoever opens, checks and reads it."""
    try:
        ledger = Ledger.open(state(root))
        found = [fault.problem for fault in ledger.faults()]
        list(ledger.since())
        ledger.last(20)
        ledger.close()
    except PlanforgeError as error:
        return [error.message]
    return found


def flip(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 0x55
    path.write_bytes(content)


def test_a_flipped_byte_in_an_event_is_found_and_the_event_named(project: Path) -> None:
    path = state(project) / "ledger.db"
    flip(path, path.read_bytes().index(b'"17 reason') + 4)
    before = files(project)
    code, answer = said(project, "verify")
    assert (code, answer) == (
        1,
        "not intact: event 20 (RunParked of run-001): its content does not match its hash",
    )
    assert files(project) == before


def test_a_flipped_byte_in_an_index_is_found(project: Path) -> None:
    ledger = Ledger.open(state(project))
    ((root,),) = ledger.query("SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_events_1'")
    ledger.close()
    path = state(project) / "ledger.db"
    page = path.read_bytes()[(root - 1) * PAGE_BYTES : root * PAGE_BYTES]
    flip(path, (root - 1) * PAGE_BYTES + page.index(b"run-001") + 6)
    before = files(project)
    code, answer = said(project, "verify")
    assert code == 1
    assert "the file is damaged" in answer
    assert "sqlite_autoindex_events_1" in answer
    assert files(project) == before


@pytest.mark.parametrize("offset", [*range(0, 100, 3), 18, 19, 52])
def test_a_flipped_byte_in_the_header_never_leads_to_more_than_a_line(project: Path, offset: int) -> None:
    flip(state(project) / "ledger.db", offset)
    before = files(project)
    assert all("\n" not in problem for problem in problems(project))
    assert files(project) == before or offset in (18, 19)  # which say whether there is a log


@pytest.mark.parametrize("offset", [0, 17, 56, 60, 70])
def test_a_flipped_byte_in_the_header_is_one_line_for_a_user(project: Path, offset: int) -> None:
    flip(state(project) / "ledger.db", offset)
    before = files(project)
    for command in READING:
        said(project, *command)
    assert files(project) == before


def test_a_flipped_byte_anywhere_never_leads_to_more_than_a_line(project: Path) -> None:
    path = state(project) / "ledger.db"
    whole = path.read_bytes()
    chance = random.Random(3)
    places = chance.sample([at for at in range(100, len(whole)) if whole[at]], 400)
    refused = 0
    for place in places:
        content = bytearray(whole)
        content[place] ^= 1 << chance.randrange(8)
        path.write_bytes(content)
        found = problems(project)
        assert all("\n" not in problem for problem in found)
        refused += bool(found)
        assert path.read_bytes() == content
    assert refused > 50


@pytest.fixture
def crashed(project: Path, tmp_path: Path) -> Path:
    """The project, with thirty more events that are in the log alone because their writer was killed."""
    with child("write_for_ever", state(project)) as writer:
        for _ in range(30):
            writer.hear()
        writer.kill()
    assert (state(project) / "ledger.db-wal").stat().st_size > 20 * FRAME
    return project


def test_what_is_in_the_log_alone_is_read(crashed: Path) -> None:
    code, answer = said(crashed, "verify")
    assert code == 0
    assert int(answer.split()[1]) >= 72


@pytest.mark.parametrize("place", ["header", "first", "salt", "middle"])
def test_a_flipped_byte_in_the_log_is_refused_and_nothing_is_touched(crashed: Path, place: str) -> None:
    log = state(crashed) / "ledger.db-wal"
    middle = 32 + (log.stat().st_size // FRAME // 2) * FRAME + 1000
    flip(log, {"header": 20, "first": 32 + 24 + 100, "salt": 32 + 10, "middle": middle}[place])
    before = files(crashed)
    for command in READING:
        code, message = said(crashed, *command)
        assert code == 3
        assert "is damaged" in message
        assert "transactions in it cannot be read" in message
    assert files(crashed) == before


def test_a_commit_that_a_crash_cut_short_is_no_damage(crashed: Path) -> None:
    log = state(crashed) / "ledger.db-wal"
    log.write_bytes(log.read_bytes()[:-2000])
    code, answer = said(crashed, "verify")
    assert code == 0
    assert int(answer.split()[1]) >= 72 - 3


# Disks


def apart(*script: str) -> list[str]:
    """A command prefix that runs a program where mounts are seen by nobody else."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("needs root and `unshare` to mount a file system of its own")
    wrapper = ["unshare", "--mount", "sh", "-ec", " && ".join((*script, 'exec "$@"')), "sh"]
    if subprocess.run([*wrapper, "true"], check=False, capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    return wrapper


def run_apart(wrapper: list[str], root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*wrapper, *COMMAND, *arguments],
        cwd=root,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_on_a_read_only_file_system_the_ledger_can_be_read(project: Path) -> None:
    wrapper = apart(
        f"mount --bind '{project}' '{project}'", f"mount -o remount,ro,bind '{project}'", f"cd '{project}'"
    )
    for command in READING:
        done = run_apart(wrapper, project, *command)
        assert (done.returncode, done.stderr) == (0, "")
        assert ageless(done.stdout) == ageless(planforge(*command, cwd=project).stdout)


def ageless(text: str) -> str:
    """A text without how long something has waited, which is more the next time."""
    return re.sub(r"\b\d+ (s|min)\b", "a while", text)


def test_on_a_read_only_file_system_a_change_is_refused_in_a_line(project: Path) -> None:
    another_client(state(project), "UPDATE runs SET reason = 'changed'")
    wrapper = apart(
        f"mount --bind '{project}' '{project}'", f"mount -o remount,ro,bind '{project}'", f"cd '{project}'"
    )
    done = run_apart(wrapper, project, "rebuild")
    assert done.returncode == 1
    assert done.stderr.startswith("error: the ledger in ")
    assert "can only be read" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_in_a_directory_without_write_permission_the_ledger_can_be_read(
    pristine: Path, open_path: Path
) -> None:
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("needs `setpriv` to be somebody else than root")
    others = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    project = open_path / "project"
    shutil.copytree(pristine, project)
    project.chmod(0o755)
    state(project).chmod(0o555)
    try:
        probe = subprocess.run([*others, *COMMAND, "--version"], check=False, capture_output=True)
        if probe.returncode:
            pytest.skip("somebody else cannot run this interpreter")
        for command in READING:
            done = run_apart(others, project, *command)
            assert (done.returncode, done.stderr) == (0, "")
    finally:
        state(project).chmod(0o755)


def test_a_full_disk_stops_a_command_with_a_line_and_costs_nothing(project: Path) -> None:
    another_client(state(project), "UPDATE runs SET reason = 'changed'")  # so that there is something to mend
    small = project.parent / "small"
    small.mkdir()
    wrapper = apart(f"mount -t tmpfs -o size=2m tmpfs '{small}'", f"cp -r '{project}' '{small}/project'")
    script = """
        cd "$0/project"
        dd if=/dev/zero of="$0/ballast" bs=4k 2>/dev/null
        "$@" rebuild
        echo "exit $?"
        "$@" log -n 100 | wc -l
        rm "$0/ballast"
        "$@" rebuild | tail -1
        "$@" verify
    """
    done = subprocess.run(
        [*wrapper, "sh", "-c", script, str(small), *COMMAND],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stderr.startswith("error: the ledger")
    assert len(done.stderr.splitlines()) == 1
    code, shown, rebuilt, verified = done.stdout.splitlines()
    assert code == "exit 1"
    assert int(shown) >= 42
    assert rebuilt.startswith("rebuilt: 42 events")
    assert verified == "intact: 42 events, 0 objects"


# Clocks and copies


def test_a_clock_that_was_set_back_a_year_changes_no_order_and_no_verdict(project: Path) -> None:
    ledger = Ledger.open(state(project), Clock())
    before = datetime.now(UTC)
    ledger.close()
    behind = Ledger.open(state(project), lambda: before - timedelta(days=365))
    behind.append("run-001", [parked("a year ago")], expected=41)
    behind.close()
    ledger = Ledger.open(state(project))
    ledger.append("run-001", [parked("today")], expected=42)
    newest = ledger.last(2)
    assert [item.seq for item in newest] == [43, 44]
    assert newest[0].at < newest[1].at
    ledger.close()
    assert said(project, "verify") == (0, "intact: 44 events, 0 objects")
    shown = planforge("log", "-n", "2", cwd=project).stdout.strip().splitlines()
    assert "a year ago" in shown[0]
    assert "today" in shown[1]


MERGES: dict[str, str] = {
    "appended": "INSERT INTO events "
    "SELECT seq + 42, stream, version + 100, kind, revision, key, at, body, hash FROM other.events",
    "one stream": "INSERT INTO events SELECT 42 + row_number() OVER (ORDER BY seq), 'run-002', "
    "row_number() OVER (ORDER BY seq), kind, revision, key, at, body, hash FROM other.events "
    "WHERE stream = 'run-001'",
    "one event": "INSERT INTO events SELECT 43, 'run-009', 1, kind, revision, key, at, body, hash "
    "FROM other.events WHERE seq = 5",
}


@pytest.mark.parametrize("merge", MERGES)
def test_the_first_event_of_another_ledger_that_was_merged_in_by_hand_is_named(
    project: Path, tmp_path: Path, merge: str
) -> None:
    other = Ledger.create(tmp_path / "other")
    fill(other)
    other.close()
    attach = f"ATTACH '{tmp_path / 'other' / 'ledger.db'}' AS other"
    outside_a_transaction = ("COMMIT", attach, "BEGIN IMMEDIATE")
    another_client(state(project), *outside_a_transaction, MERGES[merge])
    code, answer = said(project, "verify")
    assert code == 1
    first = answer.splitlines()[0]
    assert first.startswith("not intact: event 43 (")
    assert first.endswith("its content does not match its hash")
    ledger = Ledger.open(state(project))
    assert len(list(ledger.since(limit=42))) == 42
    ledger.close()
