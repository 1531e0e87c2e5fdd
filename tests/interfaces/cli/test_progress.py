"""What a person sees while work goes on, on a terminal and elsewhere."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from kernel.histories import EXAMPLES
from planforge.app.demo import story
from planforge.interfaces.cli.event_words import FIELD, FORMS, SENTENCES, said
from planforge.interfaces.cli.progress import UnderWay, shown
from planforge.kernel import events
from planforge.kernel.events import EVENTS, Event, Payload, Recorded
from programs import COMMAND, Told, environment
from workshops import workshop


def recorded(event: Event, key: str = "") -> Recorded:
    return Recorded(
        seq=1, stream="run-001", version=1, at="2026-01-02T03:04:05+00:00", key=key, event=event, hash=""
    )


def intended(about: str) -> events.EffectIntended:
    return events.EffectIntended(effect="RunAgent", about=about, fingerprint="f", body=Payload())


STARTED = events.StepStarted(plan="plan-001", step="phase-1", attempt=1, base="b" * 40)


def test_elsewhere_each_fact_is_a_plain_line_and_effects_are_left_to_the_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with shown() as observe:
        observe(recorded(STARTED, "/2/phase-1/0"))
        observe(recorded(intended("developer"), "/2/phase-1/1"))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "· phase-1   attempt 1 begins at bbbbbbbbbbbb\n"


def test_elsewhere_a_line_now_and_then_says_what_is_still_under_way(
    capsys: pytest.CaptureFixture[str],
) -> None:
    heard = ""
    with shown(heartbeat=0.001) as observe:
        observe(recorded(intended("developer"), "/2/phase-1/1"))
        while "\n" not in heard:
            heard += capsys.readouterr().err
        observe(recorded(events.EffectCompleted(effect="RunAgent", outcome=Payload()), "/2/phase-1/1"))
    assert heard.startswith("… phase-1   the developer is at work (0 s)\n")


def test_the_last_sign_of_life_stands_beside_what_is_under_way_without_anything_that_moves_a_cursor(
    capsys: pytest.CaptureFixture[str],
) -> None:
    heard = ""
    with shown(heartbeat=0.001) as screen:
        screen(recorded(intended("developer"), "/2/phase-1/1"))
        screen.heard("/2/phase-1/1", "reads a file")
        screen.heard("/2/phase-1/1", "writes\x1b[2J\r\nnew.py\x00" + "y" * 500)
        while "new.py" not in heard:
            heard = capsys.readouterr().err
    line = next(line for line in heard.splitlines() if "new.py" in line)
    assert line.startswith("… phase-1   the developer is at work (0 s): writes[2J new.pyyyy")
    assert len(line) < 120
    assert line.isprintable()


def test_what_a_person_should_know_is_shown_at_once_and_nobody_is_asked_without_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with shown() as screen:
        screen.told("`claude` has reached\x1b its limit")
        assert not screen.attended
    assert capsys.readouterr().err == "! `claude` has reached its limit\n"


@pytest.mark.dear
def test_work_goes_on_when_nobody_reads_what_is_shown(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    process = subprocess.Popen(
        [*COMMAND, "demo", str(tmp_path / "story"), "--pace", "0", "--json"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=write,
    )
    os.close(write)
    out, _ = process.communicate(timeout=100)
    assert process.returncode == 0
    assert b'"status": "done"' in out


@pytest.mark.dear
@pytest.mark.parametrize(("cap", "code"), [("5", 0), ("1", 6)])
def test_the_exit_code_is_that_of_the_work_although_nobody_reads_the_result(
    tmp_path: Path, cap: str, code: int
) -> None:
    root = workshop(tmp_path)
    read, write = os.pipe()
    os.close(read)
    process = subprocess.Popen(
        [*COMMAND, "forge", story.REQUEST, "--cap", cap],
        cwd=root,
        env=environment(),
        stdout=write,
        stderr=subprocess.PIPE,
    )
    os.close(write)
    _, said_meanwhile = process.communicate(timeout=100)
    assert process.returncode == code, said_meanwhile
    assert b"Traceback" not in said_meanwhile


@pytest.mark.dear
def test_on_a_terminal_what_is_under_way_is_shown_live(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "demo", str(tmp_path / "story"), "--pace", "0.3"],
        env=environment({"TERM": "xterm-256color", "COLUMNS": "120"}),
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        seen += chunk
    os.close(ours)
    assert process.wait(timeout=60) == 0
    text = seen.decode("utf-8", "replace")
    for words in ("the drafter is at work", "the developer is at work", "landed on", "\x1b["):
        assert words in text


def test_the_story_is_plain_where_there_is_no_terminal(told: Told) -> None:
    assert "\x1b" not in told.progress
    assert all(line.isprintable() for line in told.progress.splitlines())


@pytest.mark.parametrize("kind", sorted(EVENTS))
def test_every_kind_of_event_has_words_of_its_own(kind: str) -> None:
    has_function = said.dispatch(EVENTS[kind]) is not said.dispatch(Event)
    assert has_function is not (EVENTS[kind] in SENTENCES)
    assert said(EXAMPLES[kind]).isprintable()


@pytest.mark.parametrize("kind", SENTENCES, ids=lambda kind: kind.__name__)
def test_a_sentence_names_fields_of_its_event_and_forms_that_exist(kind: type[Event]) -> None:
    fields = FIELD.findall(SENTENCES[kind])
    assert {name.partition(".")[0] for name, _ in fields} <= set(kind.__struct_fields__)
    for _, form in fields:
        assert form in {"", "03", ".12", *FORMS} or form.startswith("count ") or form.count(" or ") == 1


def test_a_part_of_a_sentence_is_left_out_or_replaced_if_its_field_is_empty() -> None:
    moved = events.ItemMoved(item="task-001", status="done", by="finish", actor="Ada")
    assert said(moved) == "task-001 is done (finish, by Ada)"
    assert said(msgspec.structs.replace(moved, actor="")) == "task-001 is done (finish)"
    parked = events.RunParked(run="run-001", reason="a [limit] | a gate", until="2026-01-02T03:04:05+00:00")
    assert said(parked) == "waits until 2026-01-02 03:04:05 UTC: a [limit] | a gate"
    assert said(msgspec.structs.replace(parked, until="")) == "waits for a person: a [limit] | a gate"


def test_the_terminal_library_is_not_loaded_elsewhere() -> None:
    code = (
        "import sys\n"
        "from planforge.interfaces.cli.progress import UnderWay, shown\n"
        "with shown(): pass\n"
        "print([name for name in sys.modules if name.split('.')[0] == 'rich'])\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    assert process.stdout == "[]\n"


class Watch:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def at_work(heartbeat: float = 45.0, progress: float = 3.0) -> tuple[UnderWay, Watch]:
    clock = Watch()
    found = UnderWay(heartbeat=heartbeat, progress=progress, clock=clock)
    found.take(recorded(intended("auditor"), "/1"))
    return found, clock


def test_what_is_shown_of_an_agent_stays_long_enough_to_be_read() -> None:
    under_way, clock = at_work(progress=3.0)
    shown_lines = []
    for second in range(8):
        clock.now = float(second)
        under_way.hear("/1", f"word {second}")
        shown_lines.append(under_way.lines()[0][1].partition(": ")[2])
    assert shown_lines == ["word 0"] * 3 + ["word 3"] * 3 + ["word 6"] * 2


def test_an_agent_that_is_silent_is_said_to_be_so_until_it_is_heard_again() -> None:
    under_way, clock = at_work(heartbeat=45.0)
    clock.now = 44.0
    assert "silent" not in under_way.lines()[0][1]
    clock.now = 50.0
    assert "the auditor is at work (50 s, silent for 50 s)" in under_way.lines()[0][1]
    under_way.hear("/1", "reads")
    clock.now = 60.0
    assert "the auditor is at work (60 s): reads" in under_way.lines()[0][1]


def test_between_two_lines_about_the_same_lies_a_heartbeat() -> None:
    under_way, clock = at_work(heartbeat=45.0)
    beats = []
    for second in range(0, 200, 5):
        clock.now = float(second)
        beats += [second for _ in under_way.due()]
    assert beats == [45, 90, 135, 180]


def test_a_check_that_takes_long_is_not_called_silent() -> None:
    under_way, clock = at_work()
    under_way.take(recorded(events.EffectCompleted(effect="RunAgent", outcome=Payload()), "/1"))
    check = events.EffectIntended(effect="RunCheck", about="", fingerprint="f", body=Payload())
    under_way.take(recorded(check, "/2"))
    clock.now = 100.0
    assert [line.endswith("(100 s)") for _, line in under_way.lines()] == [True]


def test_without_a_heartbeat_there_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    under_way, clock = at_work(heartbeat=0.0)
    clock.now = 1000.0
    assert "silent" not in under_way.lines()[0][1]
    with shown(heartbeat=0.0) as observe:
        observe(recorded(intended("developer"), "/2/phase-1/1"))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("clean", "warning", "mark"), [(True, "", "✓"), (True, "no file", "⚠"), (False, "", "⚠")]
)
def test_a_forge_that_needs_a_look_is_marked_as_such(
    capsys: pytest.CaptureFixture[str], clean: bool, warning: str, mark: str
) -> None:
    with shown() as observe:
        observe(
            recorded(
                events.PlanForged(
                    plan="plan-001", content="c", rounds=2, reason="so", clean=clean, warning=warning
                )
            )
        )
    assert capsys.readouterr().err.startswith(f"{mark} plan-001")
