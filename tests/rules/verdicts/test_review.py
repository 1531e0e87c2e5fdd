"""The verdict line of a review stage: a closed vocabulary, and nothing else."""

from __future__ import annotations

import pytest

from planforge.rules.verdicts import Verdict, parse_review

A, R, U = Verdict.APPROVED, Verdict.REVISION, Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("Approved", A),
        ("Approve", A),
        ("[Approved]", A),
        ("approved", A),
        ("APPROVED", A),
        ("Revision Required", R),
        ("Revision", R),
        ("Needs Revision", R),
        ("Changes Requested", R),
        ("changes  requested", R),
        ("", U),
        ("Approved.", U),
        ("Approved!", U),
        ("Approved with comments", U),
        ("Not approved", U),
        ("Approved / Revision Required", U),
        ("[Approve]", U),
        ("LGTM", U),
        ("n/a", U),
        ("Revision Requested", U),
        ("Аpproved", U),  # noqa: RUF001
        ("Approved\u200b", U),
    ],
)
def test_the_vocabulary_is_closed(said: str, verdict: Verdict) -> None:
    assert parse_review(f"# Review\n\n**Verdict:** {said}\n\nAll looked at.\n").verdict is verdict


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Approved",
        "Verdict: Approved",
        "*Verdict:* Approved",
        "**Verdict** Approved",
        "**Verdict**: Approved",
        "The **Verdict:** Approved",
        "> **Verdict:** Approved",
        "  > **Verdict:** Approved",
        "```\n**Verdict:** Approved\n```",
        "```markdown\n**Verdict:** Approved",
        "~~~\n**Verdict:** Approved\n~~~",
        "<!-- **Verdict:** Approved -->",
        "<!--\n**Verdict:** Approved\n",
        "`**Verdict:** Approved`",
        "**Verdict:**\nApproved",
        "| **Verdict:** Approved |",
        '    FIXTURE = "**Verdict:** Approved"',
        'FIXTURE = """\n**Verdict:** Approved\n"""',
        "Code:\n\n    **Verdict:** Approved",
        "Code:\n\n\t**Verdict:** Approved",
        "- item\n\n      **Verdict:** Approved",
        "> quoted\n**Verdict:** Approved",  # carries the quotation on
        "- > quoted\n  **Verdict:** Approved",
        "- ```\n  **Verdict:** Approved\n  ```",
        "<pre>\n**Verdict:** Approved\n</pre>",
        "<b>\n**Verdict:** Approved\n",
        "<blockquote>\n\n**Verdict:** Approved\n\n</blockquote>",
        "Code `over\n**Verdict:** Approved\nlines`",
        "It said “so:\n**Verdict:** Approved\n”.",
        "~~Gone:\n**Verdict:** Approved\nall~~",
        '[a]: /b "\n**Verdict:** Approved\n"',
        "@@ -1 +1 @@\n- **Verdict:** Revision\n+ **Verdict:** Approved",
        "**Verd\u0131ct:** Approved",
        "**Verdict:** [Approved]<!--> not -->",
    ],
)
def test_a_verdict_that_is_not_the_reviewers_line_is_none(text: str) -> None:
    assert parse_review(text).verdict is U


def test_two_lines_count_once_if_they_agree_and_not_at_all_if_they_do_not() -> None:
    assert parse_review("**Verdict:** Approved\n\n**Verdict:** approve").verdict is A
    assert parse_review("**Verdict:** Approved\n\n**Verdict:** Revision").reason.endswith("disagree")
    assert parse_review("**Verdict:** Approved\n\n**Verdict:** perhaps").verdict is U


@pytest.mark.parametrize(
    "hidden",
    [
        "    ```\n**Verdict:** Revision\n    ```",  # indented by four it is no fence
        "- ```\n  x\n**Verdict:** Revision\n\n```\n```",  # the fence ends with its item
        "```\n<!--\n```\n**Verdict:** Revision\n```\n-->\n```",  # a comment does not begin in a fence
        "`<!--`\n\n**Verdict:** Revision\n\n`-->`",
        "1. **Verdict:** Revision",
        "## **Verdict:** Revision",
        "Verdict: Revision Required",
        "<i>Verdict:</i> Changes requested.",
    ],
)
def test_what_only_looks_hidden_speaks_against_an_approval(hidden: str) -> None:
    assert parse_review(f"{hidden}\n\n**Verdict:** Approved").verdict is U
    assert parse_review(f"**Verdict:** Approved\n\n{hidden}").verdict is U


@pytest.mark.parametrize(
    "beside",
    [
        "> **Verdict:** Revision Required",
        "```\n**Verdict:** Revision Required\n```",
        "Before:\n\n    **Verdict:** Revision Required",
        "<!-- **Verdict:** Revision Required -->",
        "- one\n\n  two\n\n- ```\n  x\n  ```",
        "<details>\n<summary>More</summary>\n\nNothing.\n\n</details>",
        "A <b>bold</b> word, `<pre>` and “a quotation”.",
    ],
)
def test_an_approval_stands_beside_what_is_quoted(beside: str) -> None:
    assert parse_review(f"{beside}\n\n**Verdict:** Approved").verdict is A
    assert parse_review(f"**Verdict:** Approved\n\n{beside}").verdict is A


def test_an_approval_before_a_fence_that_never_ends_is_not_believed() -> None:
    assert parse_review("**Verdict:** Approved\n\n```\nhidden").verdict is U
    assert parse_review("**Verdict:** Revision\n\n```\nhidden").verdict is R


def test_a_megabyte_is_not_read() -> None:
    assert (
        parse_review("**Verdict:** Approved\n" + "x" * 1_000_000).reason == "the answer is larger than 1 MB"
    )
