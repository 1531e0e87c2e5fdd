from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planforge.rules.friction import DETAIL, ISSUES, MOST, drain, is_known


def fence(*lines: str, ticks: str = "```") -> str:
    return "\n".join([f"{ticks}friction", *lines, ticks, ""])


def signal(issue: str = "skill_missing", **more: object) -> str:
    return json.dumps({"issue": issue} | more)


@pytest.mark.parametrize("issue", ISSUES)
def test_each_of_the_five_kinds_is_drained(issue: str) -> None:
    found = drain(f"Done.\n\n{fence(signal(issue, skill='writing-tests', detail='why'))}")
    assert found.text == "Done.\n\n"
    assert [(each.issue, each.skill, each.detail) for each in found.signals] == [
        (issue, "writing-tests", "why")
    ]


@pytest.mark.parametrize(
    ("issue", "known"),
    [
        ("x_slow_tool", True),
        ("x_", False),
        ("x_Slow", False),
        ("skill_bad", False),
        ("", False),
        ("None", False),
    ],
)
def test_a_token_of_ones_own_begins_with_x(issue: str, known: bool) -> None:
    assert is_known(issue) is known
    found = drain(fence(signal(issue)))
    assert (len(found.signals), found.unreadable) == ((1, 0) if known else (0, 1))


@pytest.mark.parametrize(
    "line", ["nonsense", "[]", "3", '{"skill": "a"}', '{"issue": 1}', '{"issue": "skill_missing"']
)
def test_what_is_no_signal_is_counted(line: str) -> None:
    found = drain(fence(line, signal()))
    assert (len(found.signals), found.unreadable) == (1, 1)


def test_one_signal_a_line_and_not_too_many() -> None:
    found = drain(fence(*[signal(detail=str(number)) for number in range(MOST + 3)]))
    assert [each.detail for each in found.signals] == [str(number) for number in range(MOST)]
    assert found.unreadable == 3


def test_a_detail_is_one_line_and_not_too_long() -> None:
    found = drain(fence(signal(detail="a\nb " + "x" * 1000)))
    assert found.signals[0].detail.startswith("a b x")
    assert len(found.signals[0].detail) == DETAIL


def test_an_answer_without_friction_is_as_it_was() -> None:
    text = "# Plan\n\n```python\nfriction = 1\n```\n\nfriction: none\n"
    assert drain(text).text == text
    assert drain(text).signals == ()


def test_a_fence_that_is_never_closed_is_left_as_it_is() -> None:
    text = f"```friction\n{signal()}\n"
    assert (drain(text).text, drain(text).signals) == (text, ())


@given(st.text(), st.lists(st.text()))
def test_nothing_an_agent_says_breaks_it(text: str, lines: list[str]) -> None:
    found = drain(text + "\n" + fence(*lines))
    assert len(found.signals) <= MOST
