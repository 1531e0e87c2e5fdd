"""What one command shows, and what it does not."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from planforge.kernel.evidence import Counts, Evidence, Outcome
from planforge.kernel.objects import Objects
from planforge.workspace.checks.observation import observe, observe_async


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    return Objects(tmp_path / "objects")


def seen(objects: Objects, command: Sequence[str], *, tests: int = 2, seconds: float = 30) -> Evidence:
    return observe(command, tree="7ree", tests=tests, objects=objects, seconds=seconds)


def python(code: str) -> tuple[str, ...]:
    return sys.executable, "-c", code


def test_a_command_that_ends_well_has_passed_all_its_tests(objects: Objects) -> None:
    evidence = seen(objects, python("import sys; print('out'); print('err', file=sys.stderr)"))
    assert (evidence.outcome, evidence.exit_code, evidence.tree) == (Outcome.PASS, 0, "7ree")
    assert evidence.counts == Counts(total=2, passed=2, failed=0, skipped=0)
    assert evidence.reason == "exit code 0"
    assert set(objects.get(evidence.output).split()) == {b"out", b"err"}
    assert evidence.seconds > 0


def test_a_command_that_ends_badly_has_passed_none(objects: Objects) -> None:
    evidence = seen(objects, python("raise SystemExit(3)"))
    assert (evidence.outcome, evidence.exit_code, evidence.reason) == (Outcome.FAIL, 3, "exit code 3")
    assert evidence.counts == Counts(total=2, passed=0, failed=2, skipped=0)


@pytest.mark.parametrize(
    ("command", "tests", "seconds", "reason"),
    [
        (python("pass"), 0, 30, "no test ran"),
        (python("raise SystemExit(1)"), 0, 30, "no test ran"),
        (python("import os; os.kill(os.getpid(), 9)"), 1, 30, "it was killed by signal 9"),
        (python("import time; time.sleep(600)"), 1, 0.2, "it did not end within 0.2 s"),
        (("no-such-program-anywhere",), 1, 30, "cannot start `no-such-program-anywhere`"),
        ((), 1, 30, "cannot start a command that is empty"),
    ],
)
def test_what_could_not_be_seen_is_not_told(
    objects: Objects, command: tuple[str, ...], tests: int, seconds: float, reason: str
) -> None:
    evidence = seen(objects, command, tests=tests, seconds=seconds)
    assert evidence.outcome is Outcome.CANNOT_TELL
    assert evidence.counts is None
    assert evidence.reason.startswith(reason)


def test_what_a_command_leaves_behind_does_not_hold_it_up(objects: Objects) -> None:
    began = time.monotonic()
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"
    assert seen(objects, python(code)).outcome is Outcome.PASS
    assert seen(objects, python(f"{code}; import time; time.sleep(600)"), seconds=1).exit_code is None
    assert time.monotonic() - began < 60


def test_a_command_sees_no_secret_of_ours_and_none_is_kept(
    objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "b4ByL0nishtower")
    evidence = seen(objects, python("import os; print(os.environ.get('SHOP_TOKEN'), 'b4ByL0nishtower')"))
    assert objects.get(evidence.output) == b"None [redacted:SHOP_TOKEN]\n"
    assert "b4ByL0nishtower" not in " ".join(evidence.command)


def test_a_command_runs_where_it_is_told_with_what_it_is_given(objects: Objects, tmp_path: Path) -> None:
    code = "import os; print(os.getcwd(), os.environ['COLOUR'])"
    evidence = observe(
        python(code), tree="7ree", tests=1, objects=objects, cwd=tmp_path, env={"COLOUR": "green"}
    )
    assert objects.get(evidence.output).decode() == f"{os.path.realpath(tmp_path)} green\n"


def test_in_an_event_loop_it_is_awaited(objects: Objects) -> None:
    async def both() -> list[Evidence]:
        looks = (observe_async(python("pass"), tree="7ree", tests=1, objects=objects) for _ in range(2))
        return await asyncio.gather(*looks)

    assert [evidence.outcome for evidence in asyncio.run(both())] == [Outcome.PASS, Outcome.PASS]
