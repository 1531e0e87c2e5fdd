"""The same finding is known again, and another one is not taken for it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planforge.kernel.events import RecordedFinding
from planforge.rules import fingerprints
from planforge.rules.findings import WORDS, Evidence, Finding, Severity
from planforge.rules.fingerprints import fingerprint

Said = tuple[str, str]

SAME: list[tuple[str, list[Said]]] = [
    ("case", [("No rollback", ""), ("NO ROLLBACK", ""), ("no Rollback", "")]),
    (
        "spacing",
        [("No  rollback ", ""), ("No\n\trollback", ""), ("No\u00a0rollback", ""), ("No rollback", "")],
    ),
    (
        "markup",
        [
            ("No check of `id`", ""),
            ("**No check** of *id*", ""),
            ("_No check_ of _id_", ""),
            ("- No check of <code>id</code>", ""),
            ("3. No check of `id`.", ""),
            ("### No check of [id](docs/id.md)", ""),
            ("> No check of ~~id~~", ""),
        ],
    ),
    ("quotes", [('No check of "id"', ""), ("No check of 'id'", ""), ("No check of “id”", "")]),
    ("dashes", [("Race – in the writer", ""), ("Race — in the writer", ""), ("Race - in the writer", "")]),  # noqa: RUF001
    (
        "severities",
        [
            ("No rollback", ""),
            ("[Blocking] No rollback", ""),
            ("**High:** No rollback", ""),
            ("Minor - no rollback", ""),
            ("No rollback (medium)", ""),
            ("Severity: low: No rollback", ""),
        ],
    ),
    (
        "line numbers",
        [
            ("No check in src/a.py:12", ""),
            ("No check in src/a.py:340:7", ""),
            ("No check in src/a.py#L12-L20", ""),
            ("No check in src/a.py (line 99)", ""),
            ("No check in src/a.py, lines 3-9", ""),
            ("No check in src/a.py", ""),
        ],
    ),
    (
        "the line of the location",
        [
            ("No check", "src/a.py"),
            ("No check", "src/a.py:4"),
            ("No check", "src/a.py:40:2"),
            ("No check", "./src/a.py:9-12"),
            ("No check", "src\\a.py"),
            ("No check", "`src/a.py` line 5"),
            ("No check", "src/a.py#L8"),
        ],
    ),
    (
        "letters nobody sees",
        [("No\u200b rollback", ""), ("\ufeffNo rollback\u2060", ""), ("No rollback", "")],
    ),
    ("ways to write a letter", [("café", ""), ("cafe\u0301", ""), ("ＣＡＦÉ", "")]),
]
DIFFERENT: list[Said] = [
    ("No rollback", ""),
    ("No rollback", "src/a.py"),
    ("No rollback", "src/b.py"),
    ("No rollback", "lib/a.py"),
    ("A rollback", ""),
    ("No rollback of the index", ""),
    ("CVE-2026-0001 applies", ""),
    ("CVE-2026-0002 applies", ""),
    ("Port 8080 is taken", ""),
    ("Port 9090 is taken", ""),
    ("localhost:8080 is taken", ""),
    ("localhost:9090 is taken", ""),
    ("3 of 5 tests fail", ""),
    ("4 of 5 tests fail", ""),
    ("No L1 norm", ""),
    ("No L2 norm", ""),
    ("Column 3 has no name", ""),
    ("Column 4 has no name", ""),
    ("a * b overflows", ""),
    ("a / b overflows", ""),
    ("a_b is unused", ""),
    ("ab is unused", ""),
    ("`__init__` is missing", ""),
    ("`init` is missing", ""),
    ("High CPU use", ""),
    ("CPU use", ""),
    ("Low-level API leaks", ""),
    ("Level API leaks", ""),
    ("x < 3", ""),
    ("x > 3", ""),
    ("!!!", ""),
    ("???", ""),
    ("", ""),
]


@pytest.mark.parametrize(("what", "pairs"), SAME, ids=[what for what, _ in SAME])
def test_what_changes_between_two_rounds_does_not_change_the_fingerprint(
    what: str, pairs: list[Said]
) -> None:
    assert {fingerprint(title, location) for title, location in pairs} == {fingerprint(*pairs[0])}


def test_different_findings_have_different_fingerprints() -> None:
    known: dict[str, Said] = {}
    for said in DIFFERENT:
        found = fingerprint(*said)
        assert found not in known, f"{said} is taken for {known.get(found)}"
        known[found] = said


def test_a_fingerprint_never_changes() -> None:
    """They are written to files that are compared with later ones: this one is from the first day."""
    assert fingerprint("No rollback", "src/a.py:3") == "fdb328af653cf798"


@pytest.mark.parametrize("word", WORDS)
def test_every_word_for_a_severity_is_left_out(word: str) -> None:
    assert fingerprint(f"[{word}] no rollback") == fingerprint(f"{word.title()}: no rollback")
    assert fingerprint(f"({word.upper()}) no rollback") == fingerprint("no rollback")


def test_how_bad_it_is_what_is_said_at_length_and_what_is_recommended_are_not_part_of_it() -> None:
    one = Finding(severity=Severity.BLOCKING, title="No rollback", location="src/a.py:3")
    other = Finding(
        severity=Severity.MINOR,
        title="no rollback",
        location="src/a.py:30",
        detail="as I said",
        recommendation="add one",
        evidence=Evidence.QUOTED,
    )
    assert one.fingerprint == other.fingerprint


def test_findings_without_a_title_differ_by_what_they_say_at_length() -> None:
    for title in fingerprints.UNTITLED:
        one, other, again = (
            Finding(severity=Severity.MINOR, title=title, detail=detail) for detail in ("a", "b", "A.")
        )
        assert one.fingerprint != other.fingerprint
        assert one.fingerprint == again.fingerprint


def test_it_can_be_made_from_what_was_recorded() -> None:
    finding = Finding(severity=Severity.BLOCKING, title="No **rollback**", location="src/a.py:3", detail="x")
    recorded = RecordedFinding(severity="blocking", title=finding.title, location=finding.location)
    assert fingerprint(recorded.title, recorded.location) == finding.fingerprint


@settings(deadline=None)
@given(title=st.text(), location=st.text(max_size=30))
def test_every_finding_has_one_and_case_and_spacing_never_matter(title: str, location: str) -> None:
    found = fingerprint(title, location)
    assert len(found) == fingerprints.DIGITS
    assert found == fingerprint(f"  {title}\n", location)


@pytest.mark.parametrize(
    "text", ["[" * 200_000, "(" * 200_000, "*a" * 100_000, "_a" * 100_000, "a/" * 100_000]
)
def test_a_hostile_title_takes_no_time(text: str) -> None:
    started = time.process_time()
    fingerprint(text, text[:1000])
    assert time.process_time() - started < 2
