"""A gate held against the facts."""

from __future__ import annotations

import msgspec
import pytest

from planforge.rules.gates.evaluation import Reason, Result, evaluate
from planforge.rules.gates.grammar import InvalidGate, Kind, parse

PLACES = {"task": "sprints/S1/T1"}


class World(msgspec.Struct):
    """Facts as a test has them."""

    sizes: dict[str, int] = {}
    fields: dict[str, str | None] = {}
    verdicts: dict[str, str | None] = {}

    def size(self, path: str) -> int | None:
        if path == "broken":
            raise OSError(5, "Input/output error")
        return self.sizes.get(path)

    def field(self, name: str) -> str | None:
        return self.fields[name]

    def verdict(self, stage: str) -> str | None:
        return self.verdicts[stage]


def held(text: str, world: World, kind: Kind = Kind.GATES) -> Result:
    return evaluate(parse(text, "implement", kind), world, PLACES)


PLAN = "sprints/S1/T1/PLAN.md"


@pytest.mark.parametrize(
    ("text", "world", "reason"),
    [
        ("", World(), None),
        ("artifact {task}/PLAN.md", World({PLAN: 1}), None),
        ("artifact {task}/PLAN.md", World({PLAN: 0}), Reason.ARTIFACT_MISSING),
        ("artifact {task}/PLAN.md", World(), Reason.ARTIFACT_MISSING),
        ("artifact {task}/PLAN.md min=200", World({PLAN: 200}), None),
        ("artifact {task}/PLAN.md min=200", World({PLAN: 199}), Reason.ARTIFACT_MISSING),
        ("artifact broken", World(), Reason.TOOL_ERROR),
        ("require task.status == a", World(fields={"task.status": "a"}), None),
        ("require task.status == a", World(fields={"task.status": "b"}), Reason.ILLEGAL_STATUS),
        ("require task.status == a", World(fields={"task.status": None}), Reason.ILLEGAL_STATUS),
        ("require task.status != a", World(fields={"task.status": "b"}), None),
        ("require task.status in [a, b]", World(fields={"task.status": "b"}), None),
        ("require task.status in [a, b]", World(fields={"task.status": "c"}), Reason.ILLEGAL_STATUS),
        ("forbid task.status == a", World(fields={"task.status": "a"}), Reason.ILLEGAL_STATUS),
        ("forbid task.status == a", World(fields={"task.status": "b"}), None),
        ("forbid task.status in [a, b]", World(fields={"task.status": "b"}), Reason.ILLEGAL_STATUS),
        ("after plan = approved", World(verdicts={"plan": "approved"}), None),
        ("after plan = approved", World(verdicts={"plan": "revision"}), Reason.PREDECESSOR_VERDICT_MISSING),
        ("after plan = approved", World(verdicts={"plan": None}), Reason.PREDECESSOR_VERDICT_MISSING),
        ("after plan = approved", World(verdicts={"plan": "unknown"}), Reason.PREDECESSOR_VERDICT_MISSING),
    ],
)
def test_a_gate_is_open_only_if_every_directive_holds(text: str, world: World, reason: Reason | None) -> None:
    result = held(text, world)
    assert (result.ok, result.reason_code) == (reason is None, reason)
    assert bool(result.detail) == bool(result.remediation) == (reason is not None)


@pytest.mark.parametrize(
    ("text", "world", "reason"),
    [
        ("artifact {task}/PLAN.md min=200", World(), Reason.OUTPUT_MISSING),
        ("artifact {task}/PLAN.md min=200", World({PLAN: 199}), Reason.OUTPUT_STUB),
        ("require task.status == a", World(fields={"task.status": "b"}), Reason.REQUIRE_FAILED),
    ],
)
def test_what_a_stage_did_not_leave_behind_has_codes_of_its_own(
    text: str, world: World, reason: Reason
) -> None:
    assert held(text, world, Kind.OUTPUTS).reason_code is reason


def test_the_first_directive_that_fails_decides() -> None:
    world = World(fields={"task.status": "escalated"}, verdicts={"review-plan": None})
    text = "forbid task.status == escalated\nafter review-plan = approved"
    assert held(text, world) == Result(
        phase="implement",
        reason_code=Reason.ILLEGAL_STATUS,
        detail="`task.status == escalated` holds, and must not",
        remediation="`task.status` has to change first",
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("require task.colour == red", "there is no field `task.colour`"),
        ("forbid task.colour == red", "there is no field `task.colour`"),
        ("after lunch = approved", "there is no stage `lunch`"),
        ("artifact {bug}/x", "needs `{bug}`"),
    ],
)
def test_a_gate_about_what_does_not_exist_is_an_error_in_its_definition(text: str, problem: str) -> None:
    with pytest.raises(InvalidGate, match=problem):
        held(text, World())


def test_a_closed_gate_is_told_to_programs_in_the_documents_names() -> None:
    told = msgspec.json.decode(
        msgspec.json.encode(held("after plan = approved", World(verdicts={"plan": None})))
    )
    assert told == {
        "phase": "implement",
        "reasonCode": "predecessor-verdict-missing",
        "detail": "`plan` came to no verdict, not `approved`",
        "remediation": "run `plan` first",
    }
