import json
import time
from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planforge.rules.findings import Evidence, Severity
from planforge.rules.verdicts import Judgement, Verdict, parse_audit

A, R, U = Verdict.APPROVED, Verdict.REVISION, Verdict.UNKNOWN
BLOCKING, MEDIUM, MINOR, SUGGESTION = Severity
CONCERN = {"title": "no rollback", "severity": "blocking"}


def outcome(text: str) -> tuple[Verdict, Severity | None]:
    audit = parse_audit(text)
    return audit.verdict, audit.max_severity


def read(said: Mapping[str, object]) -> Judgement:
    return parse_audit(json.dumps(said))


@pytest.mark.parametrize(
    ("text", "verdict", "severity"),
    [
        ("severity: blocking", R, BLOCKING),
        ("severity: high", R, BLOCKING),
        ("severity: medium", A, MEDIUM),
        ("severity: minor", A, MINOR),
        ("severity: low", A, MINOR),
        ("severity: suggestion", A, SUGGESTION),
        ("severity: none", A, None),
        ("The plan is ready to approve.", A, MINOR),
        ("The plan needs revision.", R, BLOCKING),
        ("I looked at it.", U, None),
        ("", U, None),
    ],
)
def test_each_row_of_the_documented_table(text: str, verdict: Verdict, severity: Severity | None) -> None:
    assert outcome(text) == (verdict, severity)


@pytest.mark.parametrize(
    "text",
    [
        "Severity: blocking",
        "SEVERITY: HIGH",
        "**Severity:** blocking",
        "**Severity: blocking**",
        "**Severity**: **Blocking**",
        "- Severity: `critical` - it loses data",
        "Severity level: __error__",
        "Severity: 🔴 Blocking",
        "Max severity: required",
        "maxSeverity: blocking",
        "Severity:\n\n- blocking",
        "| 1 | no rollback | blocking |",
        "| blocking |",
        "no rollback | **HIGH** | now",
        "- no rollback (blocking)",
        "1. No rollback (**High**)",
        "| # | Severity | Issue |\n|---|:-:|---|\n| 1 | required | no rollback |",
        "| Issue | Confidence | Severity |\n|-|-|-|\n| naming | high | minor |\n| no rollback | low | high |",
    ],
)
def test_a_blocking_marker_in_any_of_the_three_shapes_asks_for_revision(text: str) -> None:
    assert outcome(f"Some prose.\n\n{text}\n\nMore prose.\n") == (R, BLOCKING)


@pytest.mark.parametrize(
    "text",
    [
        "This is **blocking** in spirit.",
        "A blocking call.",
        "`name` (required)",
        "| info |",
        "```\nSeverity: blocking\n```",
        "~~~~\n~~~\nSeverity: blocking\n~~~\n~~~~",
        "> Severity: blocking",
        "> | blocking |",
    ],
)
def test_bold_words_code_and_quotes_are_no_markers(text: str) -> None:
    assert outcome(text) == (U, None)
    assert outcome(f"{text}\n\nSeverity: minor") == (A, MINOR)


@pytest.mark.parametrize(
    "text",
    [
        "The fixture says `Severity: minor`.",
        'text = "Severity: minor"',
        "He wrote “Severity: minor” before.",
        "The enum has `Priority(low)` and `f(minor)`.",
        "    Severity: minor",
        "> before\nSeverity: minor",
        "`code\n(minor)`",
        "<pre>\nSeverity: minor\n</pre>",
        "\u017feverity: minor",
        '> before\n{"maxSeverity": "minor"}',
        'So:\n\n    {"maxSeverity": "minor"}',
        '```json\n{"maxSeverity": "minor"}',
        '<a title=\'{"maxSeverity": "minor"}\'>x</a>',
        "[naming](minor)",
    ],
)
def test_a_severity_in_code_or_in_quotation_marks_approves_nothing(text: str) -> None:
    assert parse_audit(text).verdict is U


def test_one_that_is_blocking_in_quotation_marks_is_not_passed_over() -> None:
    text = "`Severity: blocking` no rollback\n\nSeverity: minor, naming"
    assert parse_audit(text).reason == "it quotes something blocking, and may mean it"


def test_a_confidence_beside_a_severity_column_is_no_severity() -> None:
    text = "| Issue | Severity | Confidence |\n|---|---|---|\n| naming | minor | high |"
    assert outcome(text) == (A, MINOR)


def test_a_table_about_something_else_never_approves() -> None:
    assert outcome("| Risk | Likelihood |\n|---|---|\n| outage | low |") == (U, None)


@pytest.mark.parametrize(
    "text",
    [
        "Severity: catastrophic",
        "Severity: not blocking",
        "Severity: non-blocking",
        "Severity: medium/high",
        "Severity: medium to high",
        "Severity: medium–high",  # noqa: RUF001
        "Severity: 9",
        "| Issue | Severity |\n|---|---|\n| naming | minor |\n| outage | awful |",
        "Severity: minor\n\nSeverity: dreadful",
    ],
)
def test_a_severity_nobody_knows_is_unknown_and_named(text: str) -> None:
    audit = parse_audit(text)
    assert audit.verdict is U
    assert audit.reason.endswith("is not a severity")


def test_a_blocking_marker_counts_beside_an_unknown_word() -> None:
    assert outcome("Severity: odd\n\nSeverity: blocking") == (R, BLOCKING)


def test_the_worst_marker_decides() -> None:
    assert outcome("Severity: minor\nSeverity: blocking\nSeverity: suggestion") == (R, BLOCKING)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [("Severity: minor. Needs revision.", A), ("Severity: blocking. Ready to approve.", R)],
)
def test_markers_beat_sentences(text: str, verdict: Verdict) -> None:
    assert parse_audit(text).verdict is verdict


def test_a_marker_tells_what_it_is_about() -> None:
    text = "### No rollback\n\n**Severity:** blocking\n\n- Naming of the flag (minor)\n"
    assert [finding.title for finding in parse_audit(text).findings] == ["No rollback", "Naming of the flag"]


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("No blocking issues found; the plan is **ready to approve**.", A),
        ("There are no further concerns. Ready\nto approve!", A),
        ("Nothing needs revision. It is ready to approve.", A),
        ("The plan is not ready to approve.", U),
        ("It isn't ready to approve.", U),
        ("It isn’t yet ready to approve.", U),  # noqa: RUF001
        ("This is not, in my view,\nready to approve.", U),
        ("This is not (cf. section 2) ready to approve", U),
        ("Once the tests exist it is ready to approve.", U),
        ("Ready to approve, but fix the race first.", U),
        ("Is it ready to approve?", U),
        ("No part of it is ready to approve.", U),
        ("It needs revision before it is ready to approve.", R),
        ("It needs revision. It is ready to approve.", U),
        ("> ready to approve", U),
        ("```\nready to approve\n```", U),
        ("Ready to approve.\n```\nSeverity: blocking", U),
        ("Nothing needs revision.", U),
        ('The author says it is "ready to approve".', U),
        ("The author says it is “ready to approve”.", U),
        ("~~It is ready to approve.~~", U),
        ('The last audit said "needs revision". It is ready to approve.', U),
        ('Does it say "needs revision"? Nobody does.', U),
        ("> before\nIt is ready to approve.", U),
        ("    It is ready to approve.", U),
    ],
)
def test_sentences_count_only_when_they_are_plain(text: str, verdict: Verdict) -> None:
    assert parse_audit(text).verdict is verdict


@pytest.mark.parametrize(
    ("said", "verdict", "severity"),
    [
        ({"maxSeverity": "blocking"}, R, BLOCKING),
        ({"maxSeverity": "HIGH", "shouldLoop": True}, R, BLOCKING),
        ({"maxSeverity": "medium", "shouldLoop": False}, A, MEDIUM),
        ({"maxSeverity": "low"}, A, MINOR),
        ({"maxSeverity": "none", "shouldLoop": False, "concerns": []}, A, None),
        ({"max_severity": "minor"}, A, MINOR),
        ({"shouldLoop": False}, A, None),
        ({"shouldLoop": True}, R, BLOCKING),
        ({"shouldLoop": True, "maxSeverity": "none"}, R, BLOCKING),
        ({"shouldLoop": True, "maxSeverity": "minor"}, R, MINOR),
        ({"concerns": [CONCERN]}, R, BLOCKING),
        ({"findings": [CONCERN]}, R, BLOCKING),
        ({"concerns": [{"title": "naming", "severity": "minor"}]}, A, MINOR),
        ({"maxSeverity": "minor", "concerns": [{"title": "x", "severity": "medium"}]}, A, MEDIUM),
        ({"maxSeverity": "none", "concerns": [{"title": "all fine", "severity": "none"}]}, A, None),
        ({"verdict": {"maxSeverity": "minor"}}, A, MINOR),
        ({"verdict": {"maxSeverity": "blocking"}}, R, BLOCKING),
        ({"verdict": "needs revision", "maxSeverity": "minor"}, R, MINOR),
        ({"verdict": "approved", "maxSeverity": "minor"}, A, MINOR),
        ({"concerns": [CONCERN, {"title": "x", "severity": "odd"}]}, R, BLOCKING),
    ],
)
@pytest.mark.parametrize("fenced", [False, True])
def test_a_json_verdict_is_read_bare_or_fenced(
    said: Mapping[str, object], verdict: Verdict, severity: Severity | None, fenced: bool
) -> None:
    written = json.dumps(said, indent=2)
    text = (
        f"My verdict:\n\n```json\n{written}\n```\n\nThat is all." if fenced else f"So: {written} and no more"
    )
    assert outcome(text) == (verdict, severity)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"shouldLoop": False, "concerns": [CONCERN]}, "no further round"),
        ({"shouldLoop": False, "maxSeverity": "blocking"}, "no further round"),
        ({"maxSeverity": "minor", "concerns": [CONCERN]}, "lower severity"),
        ({"maxSeverity": "none", "concerns": [CONCERN]}, "lower severity"),
        ({"verdict": "approved", "concerns": [CONCERN]}, "no further round"),
        ({"verdict": "approved", "shouldLoop": True}, "disagree"),
        ({"verdict": "fine by me", "maxSeverity": "minor"}, "not a verdict"),
        ({"maxSeverity": "awful"}, "`awful` is not a severity"),
        ({"maxSeverity": 3}, "not a severity"),
        ({"shouldLoop": "false", "maxSeverity": "minor"}, "neither true nor false"),
        (
            {"maxSeverity": "minor", "concerns": [{"title": "x", "severity": "odd"}]},
            "`odd` is not a severity",
        ),
        ({"maxSeverity": "minor", "concerns": [{"title": "x"}]}, "no severity"),
        ({"maxSeverity": "minor", "concerns": "none worth naming"}, "no severity"),
        ({"maxSeverity": None}, "cannot be read"),
        ({"verdict": {"maxSeverity": "minor"}, "maxSeverity": "blocking"}, "disagree"),
        ({"findings": []}, "states no verdict"),
        ({"verdict": "approved"}, "states no verdict"),
    ],
)
def test_json_that_contradicts_itself_or_cannot_be_understood_is_unknown(
    said: Mapping[str, object], reason: str
) -> None:
    audit = read(said)
    assert audit.verdict is U
    assert reason in audit.reason


def test_two_json_verdicts_that_disagree_are_unknown_and_two_that_agree_are_one() -> None:
    assert outcome('{"maxSeverity": "minor"} then {"maxSeverity": "blocking"}')[0] is U
    assert outcome('{"maxSeverity": "minor"} then {"maxSeverity": "medium"}') == (A, MEDIUM)


def test_a_json_approval_falls_when_the_text_marks_something_worse() -> None:
    approval = '{"maxSeverity": "minor"}'
    assert outcome(f"{approval}\n\nSeverity: blocking") == (U, BLOCKING)
    assert outcome(f"{approval}\n\nSeverity: awful")[0] is U
    assert outcome(f"{approval}\n\nSeverity: medium\n\nIt needs revision.") == (A, MINOR)


def test_a_marker_inside_the_json_itself_is_not_prose() -> None:
    assert outcome('{"maxSeverity": "minor", "summary": "nothing (blocking) left"}') == (A, MINOR)


def test_a_quoted_json_verdict_is_somebody_elses() -> None:
    assert outcome('> {"maxSeverity": "minor"}') == (U, None)


def test_a_finding_keeps_what_the_auditor_said_about_it() -> None:
    concern = {"title": "Race", "severity": "high", "description": "two writers", "file": "src/a.py"}
    audit = read({"concerns": [concern], "summary": "one problem"})
    assert audit.summary == "one problem"
    (finding,) = audit.findings
    assert (finding.title, finding.detail, finding.location) == ("Race", "two writers", "src/a.py")


@pytest.mark.parametrize(
    ("more", "recommendation", "evidence"),
    [
        ({}, "", Evidence.CLAIMED),
        ({"recommendation": "add one"}, "add one", Evidence.CLAIMED),
        ({"suggested_fix": "add one", "location": "src/a.py:3"}, "add one", Evidence.LOCATED),
        ({"fix": "add one", "evidence": "x = open(path)"}, "add one", Evidence.QUOTED),
        ({"evidenceClass": "executed"}, "", Evidence.EXECUTED),
        ({"description": "$ make\nexit code 2"}, "", Evidence.EXECUTED),
    ],
)
def test_a_finding_has_what_to_do_about_it_and_what_shows_it(
    more: Mapping[str, object], recommendation: str, evidence: Evidence
) -> None:
    (finding,) = read({"concerns": [{**CONCERN, **more}]}).findings
    assert (finding.recommendation, finding.evidence) == (recommendation, evidence)


def test_what_the_auditor_said_can_always_be_written_down() -> None:
    audit = parse_audit('{"maxSeverity": "minor", "summary": "\\ud800"}')
    assert msgspec.json.decode(msgspec.json.encode(audit), type=Judgement) == audit


@pytest.mark.parametrize(
    "text",
    [
        '{"maxSeverity": NaN}',
        '{"maxSeverity": "minor", "score": NaN}',
        '{"maxSeverity": "minor", "score": Infinity}',
        '{"maxSeverity": "minor", "score": ' + "9" * 10_000 + "}",
        '{"maxSeverity": "blocking", "maxSeverity": "minor"}',
        '{"maxSeverity": "blocking", "max_severity": "minor"}',
        '{"maxSeverity": "minor"',
        '{"maxSeverity": "minor", "concerns": [{"title": "x", "severity": "minor"},\n\nReady to approve.',
        '{"a": ' * 100_000 + "1" + "}" * 100_000,
        '{"maxSeverity": "minor", "concerns": ' + "[" * 100_000,
        '{"maxSeverity": "minor"}' + " " * 1_000_000,
        '{"' * 400_000,
        "{" * 900_000,
    ],
    ids=lambda text: text[:40],
)
def test_hostile_json_is_unknown_and_quickly(text: str) -> None:
    started = time.process_time()
    assert parse_audit(text).verdict is U
    assert time.process_time() - started < 5


@settings(deadline=None)
@given(st.text() | st.text(alphabet='{}[]":,`~|>()*\n severityblockingminorshouldLoopmaxS'))
def test_no_text_makes_the_parser_raise(text: str) -> None:
    audit = parse_audit(text)
    assert audit.reason
    msgspec.json.encode(audit)


BLOCKING_WORDS = st.sampled_from(["blocking", "BLOCKING", "high", "Critical"])
SHAPES = st.sampled_from(
    ["Severity: {}", "**Severity:** {}", "| {} |", "(a finding) ({})", "Severity: **{}**"]
)
PROSE = st.lists(
    st.sampled_from(
        [
            "The plan is ready to approve.",
            "Severity: minor",
            "Severity: none",
            "- naming (low)",
            "| naming | minor |",
            '{"maxSeverity": "none", "shouldLoop": false}',
            "```json\n{}\n```",
            "```\nSeverity: minor\n```",
            "> Severity: minor",
            "# Verdict",
            "",
        ]
    )
    | st.text(alphabet=st.characters(exclude_characters="`~>|"), max_size=30)
)


@settings(deadline=None)
@given(before=PROSE, shape=SHAPES, word=BLOCKING_WORDS, after=PROSE)
def test_no_text_with_a_blocking_marker_is_ever_approved(
    before: list[str], shape: str, word: str, after: list[str]
) -> None:
    text = "\n\n".join([*before, shape.format(word), *after])
    assert parse_audit(text).verdict is not A
