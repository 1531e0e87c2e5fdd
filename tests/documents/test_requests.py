"""Words that say what somebody wants, and words that do not."""

from __future__ import annotations

import pytest

from planforge.documents.requests import COMMANDS, EMPTY, item, means_nothing
from planforge.interfaces.cli import commands

NAMES = {
    "plan-001": "plan 1|PLAN 001|plan001|plan_001|#1|p1|1|plan-001.md|docs/plans/plan-001-count-words.md"
    "|no. 1|1 2|1,2|plan-1/phase-1|plan-001 plan-002|plans 1 and 2|1.md",
    "phase-001": "phase 1|phase-1 of plan-001|Phase_1",
    "step-002": "step 2|step-2",
    "run-001": "run 1|RUN-1|run-001",
    "lesson-001": "lesson-1|lesson 1",
    "fix-004": "fix-004|fix4",
    "ws-099": "ws-099|WS 99",
}


@pytest.mark.parametrize(
    ("name", "said"), [(name, each) for name in NAMES for each in NAMES[name].split("|")]
)
def test_names_are_known_however_they_are_written(name: str, said: str) -> None:
    kind, _, number = name.partition("-")
    found = item(f" {said} ")
    assert found is not None
    assert (found.kind, int(found.name.removeprefix(f"{kind}-"))) == (kind, int(number))


POINTING = (
    "this| That |it.|The  task|the issue!|above|Same||?|this one|it all|all|everything|both|one|next|latest"
    "|the first one|the last one|the one above|plans|the draft|the audit|what we discussed|continue|go on"
    "|resume|please|yes|ok|fix it|fix this now|please continue with the 2nd one|the plan-001, please|fix 404"
    "|\U0001f680"
)


@pytest.mark.parametrize("said", POINTING.split("|"))
def test_words_that_only_point_at_something_mean_nothing(said: str) -> None:
    assert means_nothing(said)


SAYING = (
    "more speed|Count lines|fix typo|Add rate limiting|faster tests|Some texts|Some more|Rewrite everything"
    "|fix chat|Cleanup log|add status|all bugs|Fix all bugs|undo|use Go|support HTTP 2|plan-001 lacks tests"
    "|run tests|Make it faster|\u4fee\u590d\u767b\u5f55|Rate limits|2 factor|Plan the move"
)


@pytest.mark.parametrize("said", SAYING.split("|"))
def test_a_short_request_is_one(said: str) -> None:
    assert item(said) is None
    assert not means_nothing(said)


def test_no_command_alone_is_a_request() -> None:
    assert [name for name in commands.COMMANDS if not means_nothing(name)] == []
    assert not EMPTY & COMMANDS
