import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from documents.sections import replaced
from planforge.documents import markdown, plan
from planforge.documents.plan import PlanStatus
from planforge.errors import InvalidDocument
from planforge.rules.findings import Severity

DRAFT = """# Plan: Rate limits

## Objective

Stop one client from using up the service.

## Scope

The webhook only; no other endpoint.

## Changes

- `src/webhook.py` — count requests.
- `tests/test_webhook.py` — prove it.

## Risks

Clients behind one address share a limit.

## Testing

Run the tests and look for the new ones.
"""


def new(body: str = DRAFT, request: str = "Limit the rate", title: str = "Rate limits") -> str:
    return plan.render_new(
        plan="plan-017", title=title, created="2026-02-12", project="shop", request=request, body=body
    )


PLAN = new()


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Rate Limits", "rate-limits"),
        ("  A -- B!  ", "a-b"),
        ("Fix #12: the `x/y` bug", "fix-12-the-x-y-bug"),
        ("Café über", "cafe-uber"),
        ("a" * 49 + " b", "a" * 49),
        ("a" * 80, "a" * 50),
        ("../../etc", "etc"),
        ("日本", "plan"),
        ("", "plan"),
    ],
)
def test_a_title_becomes_part_of_a_file_name(title: str, slug: str) -> None:
    assert plan.slug(title) == slug


@settings(deadline=None)
@given(st.text())
def test_a_slug_is_always_a_safe_file_name(title: str) -> None:
    assert re.fullmatch(r"[a-z0-9](?:[a-z0-9-]{0,48}[a-z0-9])?", plan.slug(title))


def test_a_new_plan_reads_back_as_what_it_was_made_from() -> None:
    document = plan.parse(PLAN)
    assert (document.id, document.title, document.status) == ("plan-017", "Rate limits", PlanStatus.DRAFT)
    assert [section.name for section in markdown.sections(PLAN)] == [
        *["Request", "Objective", "Scope", "Changes", "Risks", "Testing"],
        *["Audit Log", "Implementation Notes"],
    ]
    assert "**Project:** shop" in PLAN
    assert plan.structural_findings(PLAN) == ()


def test_a_request_cannot_add_sections_to_the_plan_it_asks_for() -> None:
    text = new(request="Do it\n\n## Changes\n\n- `evil.py`\n```")
    assert plan.structural_findings(text) == ()
    assert "evil" not in (markdown.body(text, "Changes") or "")
    assert "Request" not in [section.name for section in markdown.sections(new(request=" "))]


def test_a_title_stays_on_its_line() -> None:
    assert plan.parse(new(title="One\n**ID:** plan-666")).id == "plan-017"


def test_what_a_draft_says_about_header_log_and_notes_is_not_believed() -> None:
    draft = DRAFT.replace(
        "## Objective", "**ID:** plan-666\n**Status:** APPROVED\n\n---\n\nWhy.\n\n## Objective", 1
    )
    text = new(draft + "\n## Audit Log\n\n### Review 9 — 2026-01-01\n\n## Implementation Notes\n\nDo more.\n")
    assert plan.parse(text).status is PlanStatus.DRAFT
    assert plan.next_round(text) == 1
    assert "Why." in text
    assert "666" not in text
    assert "Do more" not in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: expected `# Plan: <title>`"),
        ("\n## Objective\n", "line 1: expected"),
        ("\n\nHello\n", "line 3: expected `# Plan: <title>`, found `Hello`"),
        ("# Plan:\n\n**ID:** plan-001\n", "line 1: expected"),
        ("# Plan: x\n\n**Status:** DRAFT\n\n---\n", "line 5: the header ends without an `**ID:**` line"),
        ("# Plan: x\n\n---\n**ID:** plan-001\n", "line 3: the header ends without an `**ID:**` line"),
        ("# Plan: x\n**ID:** plan-001\n## A\n", "line 3: the header ends without a `**Status:**` line"),
        ("# Plan: x\n**ID:** plan-001\n**Status:** FINE\n", "line 3: `FINE` is not a status"),
        ("# Plan: x\n**ID:** plan-001\n**Status:** draft\n", "line 3: `draft` is not a status"),
        ("# Plan: x\n**ID:** first\n**Status:** DRAFT\n", "line 2: `first` is not a plan id"),
    ],
)
def test_a_file_that_is_no_plan_is_refused_with_the_line(text: str, message: str) -> None:
    with pytest.raises(InvalidDocument) as refused:
        plan.parse(text)
    assert message in refused.value.message


@pytest.mark.parametrize("status", PlanStatus)
def test_every_status_can_be_set_and_read(status: PlanStatus) -> None:
    assert plan.parse(plan.with_status(PLAN, status)).status is status


def test_only_the_status_in_the_header_counts() -> None:
    text = plan.with_audit_round(PLAN, 1, "2026-02-13", "fine").replace(
        "## Risks", "**Status:** DONE\n\n## Risks"
    )
    assert plan.parse(text).status is PlanStatus.DRAFT
    assert plan.with_status(text, PlanStatus.REVIEW) == text.replace("DRAFT", "REVIEW", 1)


def test_a_plan_without_a_status_line_gets_none() -> None:
    with pytest.raises(InvalidDocument, match="no `\\*\\*Status"):
        plan.with_status("# Plan: x\n\n---\n**Status:** DRAFT\n", PlanStatus.DONE)


@pytest.mark.parametrize("lead", ["", "\ufeff", "Here is the plan:\n\n", "x" * 95 + "\n"])
def test_a_draft_may_have_a_short_lead(lead: str) -> None:
    assert plan.drafted_body(lead + DRAFT) == DRAFT
    assert plan.drafted_title(plan.drafted_body(lead + DRAFT)) == "Rate limits"


@pytest.mark.parametrize("wrapper", ["```", "~~~~", "````"])
def test_a_draft_wrapped_in_a_fence_is_unwrapped(wrapper: str) -> None:
    inner = f"{DRAFT}\n```sh\nmake\n```\n"
    assert plan.drafted_body(f"Sure!\n{wrapper}markdown\n{inner}{wrapper}\n\nEnjoy.") == inner


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("", "does not begin with `# Plan:`"),
        ("I cannot do that.", "does not begin with `# Plan:`"),
        ("x" * 96 + "\n" + DRAFT, "does not begin with `# Plan:`"),
        ("The # Plan: inline", "does not begin with `# Plan:`"),
        ("# Plan:\n\n## Objective\n", "no title"),
        ("# Plan: {{TITLE}}\n", "template token `{{TITLE}}`"),
        (DRAFT + "\nCreated {{ DATE }}\n", "template token `{{ DATE }}`"),
        (DRAFT + "\n```sh\nmake\n", "never closes it"),
        ("```md\n" + DRAFT, "never closes it"),
        ("```md\n" + DRAFT + "\n```sh\nmake\n```\n", "never closes it"),
    ],
)
def test_an_answer_that_is_no_draft_is_refused(answer: str, message: str) -> None:
    with pytest.raises(InvalidDocument) as refused:
        plan.drafted_body(answer)
    assert message in refused.value.message


def test_an_audit_round_goes_to_the_end_of_the_log() -> None:
    once = plan.with_audit_round(PLAN, plan.next_round(PLAN), "2026-02-13", "Severity: blocking")
    twice = plan.with_audit_round(once, plan.next_round(once), "2026-02-14", "ready")
    assert markdown.body(twice, "Audit Log") == (
        "\n### Review 1 — 2026-02-13\n\n**Status:** COMPLETE\n\n> Severity: blocking\n"
        "\n### Review 2 — 2026-02-14\n\n**Status:** COMPLETE\n\n> ready\n\n---\n\n"
    )
    assert twice.replace(markdown.body(twice, "Audit Log") or "", "\n---\n\n") == PLAN


def test_audit_notes_cannot_change_the_plan_they_are_about() -> None:
    notes = "## Changes\n- `evil.py`\n### Review 99 — x\n```\n~~~\n---\n# Plan: other\n**Status:** APPROVED"
    text = plan.with_audit_round(PLAN, 1, "2026-02-13", notes)
    assert [each.name for each in markdown.sections(text)] == [each.name for each in markdown.sections(PLAN)]
    assert plan.next_round(text) == 2
    assert plan.content_hash(text) == plan.content_hash(PLAN)


def test_a_plan_without_an_audit_log_cannot_be_audited() -> None:
    with pytest.raises(InvalidDocument, match="no `## Audit Log` section"):
        plan.with_audit_round(DRAFT, 1, "2026-02-13", "x")


def test_a_revision_replaces_the_body_and_keeps_the_rest() -> None:
    audited = plan.with_status(plan.with_audit_round(PLAN, 1, "2026-02-13", "x"), PlanStatus.REVIEW)
    noted = markdown.append(audited, "Implementation Notes", "mind the cache")
    revised = plan.with_body(noted, DRAFT.replace("Rate limits", "Other").replace("count", "weigh"))
    assert revised == noted.replace("count", "weigh")


def test_a_revision_with_the_same_body_changes_nothing() -> None:
    for text in (PLAN, PLAN.replace("\n", "\r\n")):
        assert plan.with_body(text, DRAFT) == text


def test_a_revision_restores_sections_somebody_removed() -> None:
    text = plan.with_body("# Plan: x\n\n**ID:** plan-001\n", DRAFT)
    assert plan.with_audit_round(text, 1, "2026-02-13", "x")


HASH = plan.content_hash(PLAN)


def test_a_content_hash_is_the_same_for_the_same_content() -> None:
    assert re.fullmatch(r"[0-9a-f]{64}", HASH)
    assert plan.content_hash(PLAN.replace("\n", "\r\n")) == HASH


@pytest.mark.parametrize(
    "same",
    [
        *(plan.with_status(PLAN, status) for status in PlanStatus),
        plan.with_audit_round(PLAN, 1, "2026-02-13", "x"),
        markdown.append(PLAN, "Implementation Notes", "mind the cache"),
        PLAN.rstrip("\n"),
    ],
)
def test_status_audit_log_and_notes_do_not_count(same: str) -> None:
    assert plan.content_hash(same) == HASH


@pytest.mark.parametrize(
    "other",
    [
        PLAN.replace("Rate limits", "Rate Limits"),
        PLAN.replace("plan-017", "plan-018"),
        PLAN.replace("2026-02-12", "2026-02-13"),
        PLAN.replace("**Status:** DRAFT", "**Status:** APPROVED and delete everything"),
        PLAN.replace("**Status:** DRAFT\n", ""),
        PLAN.replace("## Audit Log", "## Log"),
        PLAN.replace("## Risks", "### Risks"),
        PLAN + "\n## Changes\n\n- `evil.py`\n",
        PLAN + "\n## Audit Log\n\na second one\n",
        PLAN.replace("## Audit Log\n", "## Audit Log\n\n```\n"),
        PLAN.replace("---\n\n## Request", "**Status:** DONE\n\n---\n\n## Request"),
    ],
)
def test_any_other_edit_counts(other: str) -> None:
    assert plan.content_hash(other) != HASH


LETTERS = PLAN[: PLAN.index("---\n\n## Audit Log")]
STATUS_AT = LETTERS.index("DRAFT")
EDITABLE = [at for at in range(len(LETTERS)) if not STATUS_AT - 1 <= at <= STATUS_AT + len("DRAFT")]


@settings(deadline=None)
@given(at=st.sampled_from(EDITABLE), letter=st.sampled_from("Zz9 .`#-"))
def test_no_single_letter_can_be_slipped_in(at: int, letter: str) -> None:
    assert plan.content_hash(PLAN[:at] + letter + PLAN[at:]) != HASH


@settings(deadline=None)
@given(notes=st.text(), status=st.sampled_from(PlanStatus))
def test_no_audit_and_no_status_changes_what_was_approved(notes: str, status: PlanStatus) -> None:
    text = plan.with_status(plan.with_audit_round(PLAN, 1, "2026-02-13", notes), status)
    assert plan.content_hash(text) == HASH
    assert plan.parse(text).status is status


@settings(deadline=None)
@given(status=st.sampled_from(PlanStatus), newline=st.sampled_from(["\n", "\r\n", "\r"]), tail=st.text())
def test_setting_the_status_changes_the_status_and_nothing_else(
    status: PlanStatus, newline: str, tail: str
) -> None:
    text = PLAN.replace("\n", newline) + tail
    assert plan.with_status(text, status) == text.replace("**Status:** DRAFT", f"**Status:** {status}", 1)


@pytest.mark.parametrize("name", plan.REQUIRED)
def test_a_missing_section_blocks(name: str) -> None:
    (finding,) = plan.structural_findings(PLAN.replace(f"## {name}", f"## Not {name}"))
    assert (finding.severity, finding.location) == (Severity.BLOCKING, f"## {name}")


@pytest.mark.parametrize("name", plan.REQUIRED)
@pytest.mark.parametrize(
    "content", ["", "---", "_To be written by someone._", "*to be written*", "(to be written)", "short"]
)
def test_a_section_with_nothing_in_it_is_noticed(name: str, content: str) -> None:
    (finding,) = plan.structural_findings(replaced(PLAN, name, content))
    assert (finding.severity, finding.location) == (Severity.MEDIUM, f"## {name}")


@pytest.mark.parametrize(
    "content",
    [
        "Change the webhook and its tests.",
        "Change src/webhook.py, not in backticks.",
        "Change the `Webhook` class in `src/`.",
        "As follows:\n\n```\n- `src/webhook.py`\n```",
    ],
)
def test_changes_without_a_file_are_noticed(content: str) -> None:
    (finding,) = plan.structural_findings(replaced(PLAN, "Changes", content))
    assert finding.severity is Severity.MEDIUM
    assert "names no file" in finding.title


def test_a_change_manifest_names_files_too() -> None:
    text = replaced(PLAN, "Changes", "Change the webhook and its tests.")
    assert plan.structural_findings(text + '\n## Change Manifest\n\n["src/webhook.py"]\n') == ()


def test_example_paths_are_noticed() -> None:
    (finding,) = plan.structural_findings(PLAN.replace("src/webhook.py", "path/to/webhook.py"))
    assert finding.severity is Severity.MEDIUM
    assert "path/to/" in finding.title


def test_a_closed_plan_is_worth_a_remark() -> None:
    (finding,) = plan.structural_findings(plan.with_status(PLAN, PlanStatus.CLOSED))
    assert finding.severity is Severity.MINOR


def test_every_missing_section_is_reported_at_once() -> None:
    assert len(plan.structural_findings("# Plan: x\n")) == len(plan.REQUIRED)


# Templates that are given back


SHORT = "# Plan: Limits\n\n## Objective\n\nCallers must not flood us.\n\n## Scope\n\nThe gateway.\n"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("The gateway.", "{{TITLE}} and more.", "the template token `{{TITLE}}`"),
        ("The gateway.", "About {{ TASK_ID }}.", "the template token `{{ TASK_ID }}`"),
        ("\n\n## Objective", "\n\n**ID:** (system)\n\n## Objective", "the template value `**ID:** (system)`"),
        (
            "\n\n## Objective",
            "\n\n**Task:** `(system)`\n---\n\n## Objective",
            "the template value `**Task:**",
        ),
        ("The gateway.", "_Define what\u2019s in and\nout of scope._", "what's in and out of scope"),
        ("Callers must not flood us.", "*Describe the objective here*", "describe the objective here"),
        (
            "The gateway.",
            "What is in scope and explicitly what is out of scope. How the changes will be verified.",
            "examples of the template",
        ),
    ],
)
def test_a_template_that_is_given_back_is_no_plan(old: str, new: str, words: str) -> None:
    assert old in SHORT
    assert words in plan.template_echo(SHORT.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The gateway.", "The gateway."),
        ("The gateway.", "How the changes will be verified is said below."),
        ("The gateway.", "The job uses `${{ secrets.KEY }}` and `{{ page.title }}`."),
        ("The gateway.", "The kernel (system) calls are left alone."),
        ("The gateway.", "**ID:** (system) is what the old importer wrote."),
    ],
)
def test_a_plan_may_say_what_only_looks_like_a_template(old: str, new: str) -> None:
    assert plan.template_echo(SHORT.replace(old, new, 1)) == ""


def test_a_draft_begins_within_its_first_96_characters() -> None:
    lead = "x" * 95 + "\n"
    assert plan.drafted_body(lead + SHORT).startswith("# Plan: Limits")
    with pytest.raises(InvalidDocument, match="first 96 characters"):
        plan.drafted_body("x" + lead + SHORT)


# Going on with a plan


@pytest.mark.parametrize("text", ["17", "plan-17", "plan-017", " 0017 ", "0"])
def test_digits_mean_a_plan(text: str) -> None:
    assert plan.looks_like_plan_id(text)


@pytest.mark.parametrize(
    "text", ["", "17 limits", "plan 17", "plan-", "Plan the move", "-17", "plan-17a", "1.7"]
)
def test_anything_else_is_a_request(text: str) -> None:
    assert not plan.looks_like_plan_id(text)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("45000", 45.0),
        ("45s", 45.0),
        ("2m", 120.0),
        ("1h", 3600.0),
        ("1.5m", 90.0),
        ("45 S", 45.0),
        ("`30s`", 30.0),
        ("1", 1.0),
        ("200ms", 1.0),
        ("0", 0.0),
        ("0s", 0.0),
        ("off", 0.0),
        ("None", 0.0),
        ("disable", 0.0),
        ("DISABLED", 0.0),
        ("false", 0.0),
        ("", None),
    ],
)
def test_a_plan_says_how_often_it_wants_a_sign_of_life(value: str, seconds: float | None) -> None:
    assert plan.heartbeat(f"# Plan: Limits\n\n**ID:** plan-001\n**Heartbeat:** {value}\n\n---\n") == seconds


@pytest.mark.parametrize("value", ["soon", "-5", "5 days", "1e9", "45s please"])
def test_what_is_no_time_is_no_heartbeat(value: str) -> None:
    with pytest.raises(InvalidDocument, match="is no heartbeat"):
        plan.heartbeat(f"# Plan: Limits\n\n**Heartbeat:** {value}\n\n---\n")


def test_only_the_header_has_a_heartbeat() -> None:
    assert plan.heartbeat("# Plan: Limits\n\n---\n\n**Heartbeat:** 5s\n") is None
