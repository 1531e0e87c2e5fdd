"""The file that a plan begins as."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents.sections import replaced
from imported import body
from planforge.documents import markdown, plan, template
from planforge.documents.plan import PlanStatus
from planforge.errors import InvalidDocument


def filled(form: str = template.BUILT_IN, title: str = "Rate limits") -> str:
    return template.filled(
        form, plan="plan-017", title=title, task="ws-017", date="2026-02-12", project="shop"
    )


def test_the_built_in_template_has_the_header_and_every_section_in_order() -> None:
    text = filled()
    document = plan.parse(text)
    assert (document.id, document.title, document.status) == ("plan-017", "Rate limits", PlanStatus.DRAFT)
    assert "**Task:** ws-017\n**Created:** 2026-02-12\n" in text
    assert "**Project:** shop\n" in text
    names = [section.name for section in markdown.sections(text)]
    assert names == [*plan.REQUIRED, "Audit Log", "Implementation Notes"]
    assert "{{" not in text


def test_a_new_plan_is_whole_and_says_nothing_yet() -> None:
    assert {finding.severity.value for finding in plan.structural_findings(filled())} == {"medium"}


def test_a_template_of_ones_own_keeps_its_sections_and_line_ends_and_its_status_becomes_draft() -> None:
    own = (
        "# Plan: {{ TITLE }}\r\n\r\n**ID:** {{PLAN_ID}}\r\n**Status:** DRAFT | REVIEW | DONE\r\n"
        "\r\n---\r\n\r\n## Objective\r\n\r\nOf {{PROJECT}} for {{TASK_ID}} on {{DATE}}.\r\n\r\n## Rollout\r\n"
    )
    text = filled(own)
    assert plan.parse(text).status is PlanStatus.DRAFT
    assert "**Status:** DRAFT\r\n" in text
    assert "Of shop for ws-017 on 2026-02-12.\r\n" in text
    assert [each.name for each in markdown.sections(text)] == [
        "Objective",
        "Rollout",
        "Audit Log",
        "Implementation Notes",
    ]
    assert "\n" not in text.replace("\r\n", "")


@pytest.mark.parametrize(
    ("form", "problem"),
    [
        ("", "no `**Status:**` line"),
        ("# Plan: {{TITLE}}\n\n**ID:** {{PLAN_ID}}\n", "no `**Status:**` line"),
        ("# Plan: {{TITLE}}\n\n**Status:** DRAFT\n", "without an `**ID:**` line"),
        ("# {{TITLE}}\n\n**ID:** {{PLAN_ID}}\n**Status:** DRAFT\n", "expected `# Plan: <title>`"),
        ("# Plan: {{TITLE}}\n\n**ID:** plan-001\n**Status:** DRAFT\n", "its `**ID:**` is `plan-001`"),
        (template.BUILT_IN + "\n```\n", "never closes it"),
    ],
)
def test_a_template_that_is_not_the_beginning_of_a_plan_is_refused_and_why_is_said(
    form: str, problem: str
) -> None:
    with pytest.raises(InvalidDocument) as refused:
        filled(form)
    assert problem in refused.value.message


@given(st.text(min_size=1).filter(lambda title: title.strip() and title.split()))
def test_a_title_is_one_line_and_never_a_token_whatever_it_says(title: str) -> None:
    text = filled(title=f"t {title} {{{{PLAN_ID}}}}")
    assert plan.parse(text).title.endswith("{{PLAN_ID}}")
    names = [section.name for section in markdown.sections(text)]
    assert names == [*plan.REQUIRED, "Audit Log", "Implementation Notes"]


# What was given along with a request

LINES = st.sampled_from(
    ["## Audit Log", "# Plan: x", "```", "~~~", "---", "**Status:** DONE", "", "  ## X", "a\r"]
)


@given(st.lists(st.one_of(LINES, st.text(max_size=8))).map("\n".join).filter(lambda text: text.strip()))
def test_what_is_given_along_is_nothing_but_quoted_whatever_it_says(given_along: str) -> None:
    text = plan.with_context(filled(), given_along, "notes.md")
    names = [section.name for section in markdown.sections(text)]
    assert names == [*plan.REQUIRED, "Context", "Audit Log", "Implementation Notes"]
    assert plan.parse(text).status is PlanStatus.DRAFT
    said = body(text, "Context").splitlines()
    assert said[0] == "Given with the request, quoted as it was, from notes.md:"
    assert all(line.startswith(">") for line in said[2:])


def test_a_revision_keeps_what_was_given_and_cannot_change_it() -> None:
    before = plan.with_context(filled(), "the notes", "notes.md")
    revised = "# Plan: Rate limits\n\n## Objective\n\nAnother one.\n\n## Context\n\nMade up.\n"
    after = plan.with_body(before, revised)
    assert "> the notes" in after
    assert "Another one." in after
    assert "Made up." not in after
    assert plan.content_hash(before) != plan.content_hash(before.replace("the notes", "other notes"))


def test_a_section_of_that_name_that_a_drafter_wrote_is_the_drafters() -> None:
    mine = "# Plan: T\n\n## Context\n\nMine.\n"
    text = plan.render_new(plan="plan-001", title="T", created="", project="", request="", body=mine)
    assert "Mine." in text
    assert "Mine." not in plan.with_body(text, "# Plan: T\n\n## Objective\n\nO\n")
    assert "Mine." not in plan.render_new(
        plan="plan-001", title="T", created="", project="", request="", body=mine, context="theirs"
    )


# How tasks are named


@pytest.mark.parametrize(
    ("said", "task"),
    [("ws-17", "ws-017"), ("WS-0017", "ws-017"), ("PROJ-12", "PROJ-12"), ("owner/repo#12", "owner/repo#12")],
)
def test_a_task_is_known_by_what_people_call_it(said: str, task: str) -> None:
    assert plan.task_id(said) == task


@pytest.mark.parametrize("said", ["17", "plan-17", "", "a b", "--x", "../x", "x\n", "x" * 101])
def test_what_names_a_plan_or_nothing_names_no_task(said: str) -> None:
    assert plan.task_id(said) == ("x" if said == "x\n" else "")


OWN = filled(template.BUILT_IN.replace("## Testing", "## Rollout\n\n_In which order._\n\n## Testing"))


def written(text: str) -> str:
    """The plan with something in each section, and no rollout."""
    for name in plan.REQUIRED:
        text = replaced(text, name, f"Something about the {name.lower()} of it.")
    found = markdown.find(text, "Rollout")
    return text[: found.start] + text[found.end :] if found else text


def test_a_plan_is_blank_until_somebody_writes_into_one_of_its_sections() -> None:
    assert template.is_blank(filled())
    assert template.is_blank(plan.with_context(filled(), "what somebody said", "notes.md"))
    assert not template.is_blank(replaced(filled(), "Risks", "None that anybody could think of."))
    assert not template.is_blank("# Plan: Without any section\n")


def test_whoever_drafts_a_plan_fills_in_what_is_not_ours() -> None:
    form = plan.with_context(plan.with_request(OWN, "Do it"), "what somebody said", "notes.md")
    asked = template.to_fill_in(form)
    names = [section.name for section in markdown.sections(asked)]
    assert names == ["Objective", "Scope", "Changes", "Risks", "Rollout", "Testing"]
    assert "_In which order._" in asked
    assert template.to_fill_in("") == ""


def test_a_section_of_the_template_that_a_draft_leaves_out_is_missing() -> None:
    (found,) = template.missing(written(OWN), OWN)
    assert found.title == "the section `## Rollout` of the template is missing"
    assert template.missing(written(OWN) + "\n## Rollout\n\nAll at once.\n", OWN) == ()
    assert template.missing(written(OWN), "") == ()


def test_a_draft_that_says_what_the_template_says_is_the_template_given_back() -> None:
    assert template.given_back(OWN, OWN) == "the draft gives `## Objective` back as the template has it"
    assert template.given_back(written(OWN), OWN) == ""
    assert template.given_back(OWN, "") == ""
