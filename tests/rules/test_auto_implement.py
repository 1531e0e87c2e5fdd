"""What is carried out at once, and each thing that stands in the way of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from planforge.interfaces.cli.typed import command
from planforge.rules.auto_implement import Because, Forged, refusal
from planforge.rules.findings import Severity
from planforge.rules.verdicts import Verdict

CLEAN = Forged(plan="plan-007", verdict=Verdict.APPROVED)
MANUAL = ("planforge plan approve plan-007", "planforge plan run plan-007")
NEW = ('planforge forge "what you want"', "planforge plan list")
AGAIN = ("planforge forge plan-007", "planforge plan approve plan-007")


def changed(**fields: Any) -> Forged:
    return msgspec.structs.replace(CLEAN, **fields)


@pytest.mark.parametrize("severity", [None, Severity.MEDIUM, Severity.MINOR, Severity.SUGGESTION])
@pytest.mark.parametrize("phases", ["none", "current"])
def test_a_clean_plan_goes_on_whatever_was_found_that_does_not_block(
    severity: Severity | None, phases: str
) -> None:
    assert refusal(changed(severity=severity, phases=phases)) is None


@pytest.mark.parametrize(
    ("fields", "because", "words", "commands"),
    [
        ({"plan": ""}, Because.NO_PLAN, "there is no plan", NEW),
        ({"written": False}, Because.NO_PLAN, "there is no plan", AGAIN),
        ({"error": "git refused"}, Because.FORGE_ERROR, "the forge failed: git refused", AGAIN),
        ({"cap_reached": True}, Because.CAP_REACHED, "the rounds of audit are used up", MANUAL),
        ({"cancelled": True}, Because.CANCELLED, "the forge was cancelled", NEW),
        ({"verdict": None}, Because.NO_VERDICT, "no audit has given a verdict", MANUAL),
        ({"verdict": Verdict.UNKNOWN}, Because.NO_VERDICT, "nobody can tell", MANUAL),
        ({"verdict": Verdict.REVISION}, Because.BLOCKING, "something that blocks", MANUAL),
        ({"severity": Severity.BLOCKING}, Because.BLOCKING, "something that blocks", MANUAL),
        ({"structure": "no file"}, Because.STRUCTURE, "the form of the plan is not right: no file", MANUAL),
        ({"running": "run-009"}, Because.RUNNING, "`run-009` is at the plan already", MANUAL),
        ({"phases": "stale"}, Because.PHASES, "phases of an earlier text", MANUAL),
        ({"phases": "unreadable"}, Because.PHASES, "cannot be read", MANUAL),
    ],
)
def test_everything_else_is_refused_with_its_reason_and_what_to_type_instead(
    fields: dict[str, Any], because: Because, words: str, commands: tuple[str, str]
) -> None:
    found = refusal(changed(**fields))
    assert found is not None
    assert (found.because, tuple(map(command, found.next))) == (because, commands)
    assert words in found.reason


def test_every_reason_has_a_case_here() -> None:
    (cases,) = test_everything_else_is_refused_with_its_reason_and_what_to_type_instead.pytestmark
    assert {case[1] for case in cases.args[1]} == set(Because)


def test_how_the_forge_ended_is_told_before_what_its_last_audit_said() -> None:
    found = refusal(changed(cap_reached=True, verdict=Verdict.REVISION, structure="no file"))
    assert found is not None
    assert found.because is Because.CAP_REACHED
