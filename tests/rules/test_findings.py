import pytest

from planforge.rules.findings import Finding, Severity, worst


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
