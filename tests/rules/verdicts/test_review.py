"""The verdict line of a review stage: a closed vocabulary, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planforge.rules.verdicts import Verdict, parse_review
from planforge.rules.verdicts.review import VOCABULARY

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
    ],
)
def test_a_verdict_that_is_not_the_reviewers_line_is_none(text: str) -> None:
    assert parse_review(text).verdict is U


def test_two_lines_count_once_if_they_agree_and_not_at_all_if_they_do_not() -> None:
    assert parse_review("**Verdict:** Approved\n\n**Verdict:** approve").verdict is A
    assert parse_review("**Verdict:** Approved\n\n**Verdict:** Revision").reason.endswith("disagree")
    assert parse_review("**Verdict:** Approved\n\n**Verdict:** perhaps").verdict is U


def test_an_approval_before_a_fence_that_never_ends_is_not_believed() -> None:
    assert parse_review("**Verdict:** Approved\n\n```\nhidden").verdict is U
    assert parse_review("**Verdict:** Revision\n\n```\nhidden").verdict is R


def test_a_megabyte_is_not_read() -> None:
    assert (
        parse_review("**Verdict:** Approved\n" + "x" * 1_000_000).reason == "the answer is larger than 1 MB"
    )


PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "**Verdict:**",
                "Verdict:",
                " ",
                "\n",
                "> ",
                "```\n",
                "~~~\n",
                "<!--",
                "-->",
                "[",
                "]",
                "not ",
                ".",
            ]
        ),
        st.sampled_from([*VOCABULARY, "Approved", "REVISION", "n/a"]),
        st.text(max_size=6),
    ),
    max_size=14,
).map("".join)


@settings(max_examples=1000, deadline=None)
@given(text=PIECES)
def test_no_text_is_approved_without_a_line_that_says_exactly_that(text: str) -> None:
    judgement = parse_review(text)
    if judgement.verdict is A:
        lines = [" ".join(line.split()).lower().lstrip("-*+ ") for line in text.splitlines()]
        bare = [line.removeprefix("verdict:**").strip() for line in lines if line.startswith("verdict:**")]
        assert any(VOCABULARY.get(line) is A for line in bare)
        assert not any(VOCABULARY.get(line) is R for line in bare)
