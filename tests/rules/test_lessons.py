"""Which lessons say the same, and which a piece of work should know: the same answer every time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planforge.kernel.tokens import estimate
from planforge.rules.lessons import NEAR, Lesson, Status, Work, alike, relevance, relevant, similarity, told


def lesson(
    name: str, text: str = "It is so.", *tags: str, date: str = "2026-01-01", **more: object
) -> Lesson:
    fields = {"id": name, "date": date, "title": name, "lesson": text, "tags": tags} | more
    return Lesson(**fields)  # type: ignore[arg-type]


SAME = [
    ("Run the checks from the root of the checkout.", "Checks run from the checkout's root."),
    (
        "Run the migrations before the tests, or they fail.",
        "The tests fail unless migrations are run before.",
    ),
    ("A lease must be renewed while a check runs.", "While checks are running, renew the lease."),
    ("Pin the version of ruff in CI.", "CI must pin ruff's version."),
    ("Tests that touch the clock must freeze it.", "Freeze the clock in every test that reads the time."),
    ("**Never** log `token`.", "never log token"),
    ("Die Tests laufen nur mit gesetzter Zeitzone.", "Tests laufen nur, wenn die Zeitzone gesetzt ist."),
    ("测试必须在仓库根目录运行。", "测试要在仓库根目录运行。"),
]
OTHER = [
    ("A lease must be renewed while a check runs.", "A lease must be released when a step ends."),
    ("Never log tokens.", "Never log passwords of users in the audit trail."),
    ("The parser must reject empty input.", "The renderer must escape HTML in titles."),
    ("Database migrations need a rollback.", "Database connections need a timeout."),
    (
        "Run the migrations before the tests, or they fail.",
        "Run the formatter before the commit, or it fails.",
    ),
    ("`app/main.py` must not import click at the top.", "`app/views.py` must not import asyncio at the top."),
    ("测试必须在仓库根目录运行。", "文档必须用英文书写。"),
    ("It is as it is.", "What will be will be."),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_in_other_words_is_near(one: str, other: str) -> None:
    assert similarity(one, other) >= NEAR
    assert [found.lesson.id for found in alike(one, [lesson("a", other)])] == ["a"]


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_another_thing_in_like_words_is_not(one: str, other: str) -> None:
    assert similarity(one, other) < NEAR
    assert alike(one, [lesson("a", other)]) == ()


def test_the_opposite_is_near_and_said_to_be_the_opposite() -> None:
    (found,) = alike("Never commit generated files.", [lesson("a", "Always commit generated files.")])
    assert found.contrary
    (found,) = alike("Never commit generated files.", [lesson("a", "Do not commit generated files.")])
    assert not found.contrary


def test_a_title_of_the_same_words_is_near_whatever_the_lesson_says() -> None:
    known = [lesson("a", "Something else altogether.", title="Freezing the clock")]
    assert alike("Hand it in.", known, title="Freeze the clock")
    assert not alike("Hand it in.", known, title="Stop the clock")
    assert not alike("Hand it in.", known)


def test_the_nearest_comes_first_and_of_equals_the_active_one() -> None:
    text = "Run the checks from the root of the checkout."
    known = [
        lesson("a", text, status=Status.STALE),
        lesson("b", "Run checks in the root of a checkout, not above."),
        lesson("c", text),
    ]
    assert [found.lesson.id for found in alike(text, known)] == ["c", "a", "b"]


@given(one=st.text(max_size=80), other=st.text(max_size=80))
def test_likeness_is_the_same_both_ways_and_bounded(one: str, other: str) -> None:
    assert similarity(one, other) == similarity(other, one)
    assert 0 <= similarity(one, other) <= 100


# Relevance

WORK = Work(text="Cache the sessions of the login page", files=("src/login/session.py", "docs/login.md"))


@pytest.mark.parametrize(
    ("known", "score"),
    [
        (lesson("file", "Look at `src/login/session.py` first."), 8 + 2),
        (lesson("other-file", "Look at `src/menu/main.py` first."), 0),
        (lesson("glob", "It is so.", "src/**/*.py"), 8),
        (lesson("directory", "It is so.", "src/login"), 8),
        (lesson("neighbour", "It is so.", "src/login/other.py"), 2),
        (lesson("tag", "It is so.", "login"), 4),
        (lesson("tag-of-two", "It is so.", "login-page"), 4),
        (lesson("words", "A page must not be cached."), 2),
        (lesson("one-word", "A page."), 0),
        (lesson("nothing", "Whales sing.", "sea"), 0),
        (lesson("half-a-tag", "It is so.", "login-form"), 0),
        (lesson("no-path", "It is so.", "../../etc/passwd"), 0),
        (lesson("always", "Whales sing.", "always"), 1000),
    ],
)
def test_a_lesson_matters_by_files_tags_and_words(known: Lesson, score: int) -> None:
    assert relevance(known, WORK) == score


def test_only_active_ones_are_told_the_most_relevant_first_then_the_newest() -> None:
    known = [
        lesson("old", "It is so.", "login"),
        lesson("new", "It is so.", "login", date="2026-02-01"),
        lesson("b", "It is so.", "login", "cache", date="2025-01-01"),
        lesson("sea", "It is so.", "sea"),
        *(
            lesson(f"not-{status}", "It is so.", "login", status=status)
            for status in ("stale", "superseded", None)
        ),
    ]
    assert [found.id for found in relevant(known, WORK)] == ["b", "new", "old"]
    assert relevant(known[::-1], WORK) == relevant(known, WORK)
    assert relevant(known, Work()) == ()


def test_what_there_is_no_room_for_is_named_and_nothing_is_cut() -> None:
    known = [lesson("one", "x" * 100), lesson("two", "y" * 400), lesson("three", "z" * 100)]
    found = told(known, 60)
    assert found.lines == (f"- one: {'x' * 100}", f"- three: {'z' * 100}")
    assert found.left_out == ("two",)
    assert estimate(sum(len(line) + 1 for line in found.lines)) <= 60
    assert told(known, 0).left_out == ("one", "two", "three")
    assert told(known, 1000).left_out == ()
