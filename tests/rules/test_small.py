"""What is small: by the words that ask for it, and by what was changed."""

from __future__ import annotations

import pytest

from planforge.rules import small
from planforge.rules.small import Limits

LIMITS = Limits()

SMALL = [
    "The help of --verbose says --quiet",
    "Round prices up in totals()",
    "Rewrite the message of `NotFound` so that it names the file",
    "Fix the typo in README.md: “recieve”",
    "The parser also fails on empty input; see src/parse.py and tests/test_parse.py",
    "Rename `colour` to `color` in src/paint.py",
    "Port 8080 is taken on most machines, use 8081",
    "Version 2.0 of the format is not read, e.g. by v1.2.3 of the tool",
    "See https://example.org/a/b/c.html for the error and do what it says in app.py",
    "Run `rewrite everything from scratch` must print an error",
]


@pytest.mark.parametrize("request_", SMALL)
def test_words_that_sound_small(request_: str) -> None:
    assert small.before(request_, LIMITS) == ()


LARGE = [
    ("Rewrite everything in Rust", "Rewrite everything"),
    ("Please refactor the whole project to use dataclasses", "refactor the whole project"),
    ("Migrate from unittest to pytest", "Migrate from"),
    ("redesign the settings", "redesign"),
    ("replace all the loops by comprehensions", "replace all the loops"),
    ("Convert every module to async", "Convert every module"),
    ("port it to Windows", "port it to"),
]


@pytest.mark.parametrize(("request_", "said"), LARGE)
def test_words_that_are_seldom_small_are_quoted(request_: str, said: str) -> None:
    assert any(f"“{said}”" in reason for reason in small.before(request_, LIMITS))


def test_more_files_than_a_small_change_has_are_named() -> None:
    request = "Use tabs in a.py, src/b.py, src/c.ts and d.md"
    assert small.named_files(request) == ("a.py", "src/b.py", "src/c.ts", "d.md")
    (reason,) = small.before(request, LIMITS)
    assert reason == "it names 4 files (`a.py`, `src/b.py`, `src/c.ts`, `d.md`); small is at most 3"
    assert small.before(request, Limits(max_files=4)) == ()


@pytest.mark.parametrize(
    ("request_", "count"),
    [
        ("Do this", 1),
        ("- one thing\n- another thing", 2),
        ("1. one thing\n2) another\n3. a third", 3),
        ("Fix the parser. Also add a test, and then update the docs.", 3),
        ("It also fails on Windows. Also seen on BSD.", 1),
        ("```\n- a\n- b\n```\nthis list is printed wrongly", 1),
    ],
)
def test_separate_wishes_are_counted(request_: str, count: int) -> None:
    assert small.wishes(request_) == count
    assert bool(small.before(request_, LIMITS)) is (count > 1)


def test_a_long_request_is_not_small() -> None:
    assert small.before("word " * 150, LIMITS) == ()
    assert small.before("word " * 151, LIMITS) == ("it takes 151 words to ask for it; small is at most 150",)


def test_a_change_is_held_to_its_files_and_its_lines() -> None:
    assert small.after(("a", "b", "c"), 120, LIMITS) == ()
    assert small.after(("d", "b", "c", "a"), 121, LIMITS) == (
        "it changes 4 files (`a`, `b`, `c`, `d`); small is at most 3",
        "it changes 121 lines; small is at most 120",
    )
    assert "`f04` and 5 more" in small.after([f"f{n:02}" for n in range(10)], 1, LIMITS)[0]
