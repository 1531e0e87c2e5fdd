"""What an agent's answer asks for: a closed set, all of it or nothing, and never what it only quotes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planforge.rules.commands import Asked, Command, Malformed, asked
from planforge.rules.commands.actions import FORMS, LABEL, MOST


def block(body: str, fence: str = "```") -> str:
    return f"{fence}{LABEL}\n{body}\n{fence}"


EVERY: dict[str, Command] = {
    '{"action": "forgeCreate", "description": "a cache", "context": "it is slow"}': Command(
        name="forge create", description="a cache", context="it is slow"
    ),
    '{"action": "forgeResume", "planId": "17"}': Command(name="forge resume", plan="plan-017"),
    '{"action": "forgeStatus"}': Command(name="forge status"),
    '{"action": "forgeCancel"}': Command(name="forge cancel"),
    '{"action": "planList"}': Command(name="plan list"),
    '{"action": "planList", "status": "review"}': Command(name="plan list", status="REVIEW"),
    '{"action": "planShow", "planId": "ws-12"}': Command(name="plan show", plan="ws-12"),
    '{"action": "planApprove", "planId": "plan-17"}': Command(name="plan approve", plan="plan-017"),
    '{"action": "planClose", "planId": "plan-017"}': Command(name="plan close", plan="plan-017"),
    '{"action": "planCreate", "description": "list it"}': Command(name="plan create", description="list it"),
    '{"action": "planRun", "planId": "17"}': Command(name="plan run", plan="plan-017"),
}


@pytest.mark.parametrize("action", EVERY)
def test_an_action_is_the_command_that_a_person_would_type(action: str) -> None:
    assert asked(f"I look.\n\n{block(f'[{action}]')}\n\nDone.") == Asked(
        text="I look.\n\n\nDone.", commands=(EVERY[action],)
    )


def test_agents_are_told_every_action_there_is() -> None:
    told = {form.partition("{")[0] for form in FORMS}
    assert told == {action.split('"')[3] for action in EVERY}


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('[{"action": "planErase", "planId": "17"}]', "planErase"),
        ('[{"action": "planShow", "planId": "17", "force": true}]', "force"),
        ('[{"action": "planShow"}]', "planId"),
        ('[{"action": "planShow", "planId": 17}]', "str"),
        ('[{"action": "planShow", "planId": "the one"}]', "not the id"),
        ('[{"action": "planShow", "planId": "17 --force"}]', "not the id"),
        ('[{"action": "planList", "status": "lost"}]', "no status"),
        ('[{"action": "forgeCreate", "description": "  "}]', "says nothing"),
        ('{"action": "planList"}', "array"),
        ("[", "cannot be read"),
        ("[" * 5000, "cannot be read"),
        ("[" + ", ".join(['{"action": "planList"}'] * (MOST + 1)) + "]", f"at most {MOST}"),
    ],
)
def test_what_cannot_be_read_is_refused_as_a_whole(body: str, problem: str) -> None:
    found = asked(block(body))
    assert isinstance(found, Malformed)
    assert problem in found.problem


def test_one_bad_action_takes_the_good_one_with_it() -> None:
    assert isinstance(asked(block('[{"action": "planList"}, {"action": "planErase"}]')), Malformed)


LISTED = '[{"action": "planList"}]'


@pytest.mark.parametrize(
    "answer",
    {
        "quoted": "> " + block(LISTED).replace("\n", "\n> "),
        "inside another fence": f"````text\n{block(LISTED)}\n````",
        "indented as code": "    " + block(LISTED).replace("\n", "\n    "),
        "in a comment": f"<!--\n{block(LISTED)}\n-->",
        "in HTML": f"<pre>\n{block(LISTED)}\n</pre>",
        "another label": f"```json\n{LISTED}\n```",
        "a label and more": f"```{LABEL} example\n{LISTED}\n```",
        "in a line": f"write ```{LABEL} {LISTED}``` if you want",
    }.items(),
    ids=lambda item: item[0],
)
def test_what_an_answer_only_quotes_is_not_asked_for(answer: tuple[str, str]) -> None:
    found = asked(answer[1])
    assert isinstance(found, Asked)
    assert found.commands == ()


def test_two_blocks_are_refused() -> None:
    assert isinstance(asked(f"{block(LISTED)}\n\n{block(LISTED)}"), Malformed)


def test_a_block_that_is_never_closed_is_refused() -> None:
    assert isinstance(asked(block(LISTED).removesuffix("```")), Malformed)


def test_an_answer_without_a_block_is_text() -> None:
    assert asked("It is done.\n") == Asked(text="It is done.")


@given(st.text() | st.builds(block, st.text(), st.sampled_from(["```", "~~~", "````"])))
def test_no_answer_breaks_it(answer: str) -> None:
    assert asked(answer) == asked(answer)
