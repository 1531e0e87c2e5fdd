"""`planforge log`: which events it shows, and following them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import pytest

from kernel.another_client import another_client
from kernel.bus_children import runtime_directory
from kernel.histories import STORY
from kernel.ledger_contract import parked, tell
from planforge.interfaces.cli.main import plain_form
from planforge.kernel.ledger import Ledger
from programs import COMMAND, environment, planforge, python

BY_CLICK = "import sys; from planforge.interfaces.cli.commands import call; sys.exit(call(sys.argv[1:]))"


@pytest.fixture(autouse=True)
def runtime() -> Iterator[None]:
    """Whoever is killed here leaves a socket in a directory that goes with the test."""
    with runtime_directory():
        yield


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one event of each kind, which nobody changes."""
    root = tmp_path_factory.mktemp("story")
    ledger = Ledger.create(root / ".planforge")
    tell(ledger)
    ledger.close()
    return root


def shown(root: Path, *words: str) -> list[int]:
    """The numbers of the events that are shown."""
    process = planforge("log", *words, "--json", cwd=root)
    assert process.returncode == 0, process.stderr
    return [json.loads(line)["seq"] for line in process.stdout.splitlines()]


def numbers(*kinds: str, after: int = 0) -> list[int]:
    """Where in the story events of these kinds are."""
    return [
        number
        for number, (_, event) in enumerate(STORY, 1)
        if type(event).__name__ in kinds and number > after
    ]


def test_events_are_shown_by_kind_stream_plan_and_number_and_by_all_of_them(story: Path) -> None:
    started = numbers("StepStarted")
    assert shown(story, "--kind", "StepStarted") == started
    assert shown(story, "--kind", "STEP_STARTED", "--kind", "leasegranted") == numbers(
        "StepStarted", "LeaseGranted"
    )
    leases = [number for number, (stream, _) in enumerate(STORY, 1) if stream == "leases"]
    assert shown(story, "--stream", "leases") == shown(story, "--run", "leases") == leases
    assert shown(story, "--stream", "leases", "--run", "budgets", "-n", "0")[: len(leases)] == leases
    assert shown(story, "--since", str(started[0]), "--kind", "StepStarted") == started[1:]
    assert shown(story, "--kind", "StepStarted", "-n", "2") == started[-2:]
    assert shown(story, "--plan", "1", "--kind", "StepStarted", "--kind", "LeaseGranted") == started
    assert shown(story, "--plan", "7") == []


def test_thirty_are_shown_unless_told_otherwise_and_all_since_a_number(story: Path) -> None:
    end = len(STORY)
    assert end > 35
    assert shown(story) == list(range(end - 29, end + 1))
    assert shown(story, "-n", "0") == list(range(1, end + 1))
    assert shown(story, "--since", "3") == list(range(4, end + 1))
    assert shown(story, "--since", "3", "-n", "2") == [end - 1, end]


@pytest.mark.parametrize(
    "words",
    [
        ["--kind", "StepStarted"],
        ["--kind", "VERIFY_OK", "--kind", "VerifyFailed", "--json"],
        ["--stream", "leases", "--run", "budgets", "-n", "0"],
        ["--plan", "1", "--since", "10", "-n", "5"],
        ["--since", "1000"],
        ["--kind", "Nonsense"],
        ["--plan", "nonsense", "--json"],
    ],
)
def test_the_quick_way_and_the_way_through_click_print_the_same(story: Path, words: list[str]) -> None:
    assert plain_form(["log", *words]) is not None
    code = f"import sys; sys.argv = ['planforge', 'log', *{words!r}]\n"
    code += "from planforge.interfaces.cli import main\nmain.plain_form = lambda words: None\nmain.run()"
    by_click = python(code, cwd=story)
    quick = planforge("log", *words, cwd=story)
    assert (quick.returncode, quick.stdout, quick.stderr) == (
        by_click.returncode,
        by_click.stdout,
        by_click.stderr,
    )


def test_an_unknown_kind_is_a_usage_error_that_names_the_nearest(story: Path) -> None:
    process = planforge("log", "--kind", "StepComplete", cwd=story)
    assert process.returncode == 2
    assert process.stdout == ""
    assert process.stderr.startswith(
        "error: there is no event `StepComplete`\n\nhint: did you mean `StepCompl"
    )


def test_nothing_that_matches_is_said_in_words(story: Path, tmp_path: Path) -> None:
    assert planforge("log", "--run", "nobody", cwd=story).stdout == "no such events yet\n"
    assert planforge("log", "--run", "nobody", "--json", cwd=story).stdout == ""
    Ledger.create(tmp_path / ".planforge").close()
    assert planforge("log", cwd=tmp_path).stdout == "no events yet\n"


def test_the_newest_few_of_a_kind_are_found_without_reading_what_is_before(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / ".planforge")
    ledger.append("a", [parked(str(number)) for number in range(100)], expected=0)
    ledger.close()
    spoil = "UPDATE events SET body = CAST('{' AS BLOB) WHERE seq = 50"
    another_client(tmp_path / ".planforge", spoil, unguarded=True)
    assert shown(tmp_path, "--kind", "RunParked", "-n", "20") == list(range(81, 101))
    assert planforge("log", "--kind", "RunParked", "-n", "60", cwd=tmp_path).returncode == 3


def test_without_following_neither_sockets_nor_click_are_loaded(story: Path) -> None:
    code = (
        "import sys, atexit\n"
        "atexit.register(lambda: print(*sorted(sys.modules), file=sys.stderr))\n"
        "sys.argv = ['planforge', 'log', '--kind', 'StepStarted', '-n', '2']\n"
        "from planforge.interfaces.cli.main import run\n"
        "run()\n"
    )
    loaded = set(python(code, cwd=story).stderr.split())
    assert "planforge.kernel.filters" in loaded
    assert {
        "click",
        "socket",
        "asyncio",
        "planforge.kernel.bus",
        "planforge.kernel.projections",
    } & loaded == set()


# Following


@contextmanager
def following(root: Path, *words: str, by_click: bool = False) -> Iterator[subprocess.Popen[str]]:
    """`log --follow`, running; it does not outlive the test."""
    command = [sys.executable, "-c", BY_CLICK] if by_click else COMMAND
    with subprocess.Popen(
        [*command, "log", "--follow", *words],
        cwd=root,
        env=environment({"PYTHONUNBUFFERED": ""}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        watchdog = Timer(60, process.kill)
        watchdog.start()
        try:
            yield process
        finally:
            watchdog.cancel()
            process.kill()


def heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.mark.parametrize("by_click", [False, True], ids=["quick", "by click"])
def test_what_is_on_record_comes_first_then_what_is_new_until_ctrl_c(tmp_path: Path, by_click: bool) -> None:
    ledger = Ledger.create(tmp_path / ".planforge")
    tell(ledger)
    with following(tmp_path, "-n", "2", "--json", by_click=by_click) as process:
        end = len(STORY)
        assert [json.loads(heard(process))["seq"] for _ in range(2)] == [end - 1, end]
        for number in range(1, 6):
            ledger.append("a", [parked(str(number))], expected=None)
            line = json.loads(heard(process))
            assert (line["seq"], line["event"]["reason"]) == (end + number, str(number))
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
    ledger.close()


def test_only_what_matches_is_followed(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / ".planforge")
    with following(tmp_path, "--kind", "StepStarted", "--plan", "plan-001", "--json") as process:
        tell(ledger)
        assert [json.loads(heard(process))["seq"] for _ in numbers("StepStarted")] == numbers("StepStarted")
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        assert process.stdout.read() == ""
        assert process.wait() == 0
    ledger.close()


def test_lines_for_people_go_on_in_the_columns_that_were_begun(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / ".planforge")
    ledger.append("a-long-name", [parked("first")], expected=None, key="/1/2/3")
    with following(tmp_path) as process:
        first = heard(process)
        ledger.append("b", [parked("second")], expected=None)
        second = heard(process)
        assert first.index("RunParked") == second.index("RunParked")
        assert second.endswith("waits for a person: second\n")
    ledger.close()


def test_following_ends_when_nobody_reads_even_if_nothing_happens(story: Path) -> None:
    with following(story, "-n", "1") as process:
        heard(process)
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait() == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_following_ends_when_nobody_reads_what_happens(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / ".planforge")
    ledger.append("a", [parked("first")], expected=None)
    with following(tmp_path) as process:
        heard(process)
        assert process.stdout is not None
        process.stdout.close()
        while process.poll() is None:
            ledger.append("a", [parked("more")], expected=None)
        assert process.returncode == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
    ledger.close()


def test_output_that_is_no_pipe_is_taken_to_be_read(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / ".planforge")
    ledger.append("a", [parked("first")], expected=None)
    with (tmp_path / "out").open("w") as out:
        process = subprocess.Popen([*COMMAND, "log", "-f"], cwd=tmp_path, env=environment(), stdout=out)
    try:
        while "first" not in (tmp_path / "out").read_text():
            assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(2.5)
        ledger.append("a", [parked("second")], expected=None)
        while "second" not in (tmp_path / "out").read_text():
            assert process.poll() is None
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
    ledger.close()
