import pytest

from planforge.rules.findings import Evidence, Finding, Severity, evidence_in, worst


def finding(severity: Severity) -> Finding:
    return Finding(severity=severity, title="something")


@pytest.mark.parametrize(
    ("word", "severity"),
    [
        ("blocking", Severity.BLOCKING),
        ("medium", Severity.MEDIUM),
        ("minor", Severity.MINOR),
        ("suggestion", Severity.SUGGESTION),
        ("critical", Severity.BLOCKING),
        ("high", Severity.BLOCKING),
        ("error", Severity.BLOCKING),
        ("required", Severity.BLOCKING),
        ("warning", Severity.MEDIUM),
        ("major", Severity.MEDIUM),
        ("low", Severity.MINOR),
        ("info", Severity.SUGGESTION),
        ("suggested", Severity.SUGGESTION),
    ],
)
def test_every_word_for_a_severity_is_read_in_any_case(word: str, severity: Severity) -> None:
    assert [Severity.parse(each) for each in (word, word.upper(), f" {word.title()} ")] == [severity] * 3


@pytest.mark.parametrize("word", ["", "none", "catastrophic", "non-blocking", "blocking!", "4"])
def test_any_other_word_is_no_severity(word: str) -> None:
    assert Severity.parse(word) is None


def test_blocking_ranks_highest_and_suggestion_lowest() -> None:
    assert sorted(Severity, key=lambda each: each.rank, reverse=True) == [
        Severity.BLOCKING,
        Severity.MEDIUM,
        Severity.MINOR,
        Severity.SUGGESTION,
    ]


def test_the_worst_of_several_findings_is_found_wherever_it_stands() -> None:
    assert (
        worst([finding(Severity.MINOR), finding(Severity.BLOCKING), finding(Severity.MEDIUM)])
        is Severity.BLOCKING
    )


def test_nothing_found_has_no_worst() -> None:
    assert worst([]) is None


@pytest.mark.parametrize(
    ("said", "detail", "location", "evidence"),
    [
        ("", "", "", Evidence.CLAIMED),
        ("", "it is slow", "## Changes", Evidence.CLAIMED),
        ("none", "it prints\n$ make\nexit code 2", "src/a.py:3", Evidence.CLAIMED),  # it says so itself
        ("", "", "src/a.py", Evidence.LOCATED),
        ("", "", "a.py:3:1", Evidence.LOCATED),
        ("", "", "Makefile", Evidence.CLAIMED),
        ("", "`foo` is slow", "src/a.py", Evidence.LOCATED),
        ("", "the plan says “no tests needed”", "", Evidence.QUOTED),
        ("", 'the plan says "no tests are needed"', "", Evidence.QUOTED),
        ("", "see:\n```\nx = 1\n```", "", Evidence.QUOTED),
        ("", "> no tests", "src/a.py", Evidence.QUOTED),
        ("x = open(path)", "", "", Evidence.QUOTED),
        ("quote", "", "", Evidence.QUOTED),
        ("", "$ pytest\n1 failed", "", Evidence.EXECUTED),
        ("pytest exited with code 1", "", "", Evidence.EXECUTED),
        ("Executed", "", "", Evidence.EXECUTED),
    ],
)
def test_what_shows_a_finding_is_told_by_what_is_given_for_it(
    said: str, detail: str, location: str, evidence: Evidence
) -> None:
    assert evidence_in(said, detail, location) is evidence
