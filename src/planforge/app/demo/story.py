"""
The demo's sample project, and the script that the rehearsal agent plays on it.

The project counts words. The request asks for two things that do not depend on
each other. The first draft of the plan has a hole that the auditor finds; later
one of the two developers says that all tests pass when they do not.
"""

from __future__ import annotations

import json

TITLE = "Common words and reading time"
REQUEST = """\
Common words and reading time

Tell which words of a text are the most common, and how many minutes it takes to read the text."""

PYTHON = "python3"
CHECK = (
    '["python3", "-m", "unittest", "discover", "--start-directory", "tests", "--top-level-directory", "."]'
)

FILES = {
    ".gitignore": """\
__pycache__/
# Plans are working papers here. Drop this line to keep them in git.
/docs/plans/
""",
    "README.md": "# wordcount\n\nCounts words. A sample project for `planforge demo`.\n",
    "planforge.toml": f"""\
# How Planforge checks a tree of this project: the command, and how its counts are read.
[check]
command = {CHECK}
report = "unittest"

# The rehearsal agent plays a script. No model is called. Put an agent you have in its place
# (`default = "claude"`) and the same flows drive it.
[agents]
default = "rehearsal"

[agents.profiles.rehearsal]
writes = ["${{root}}/.planforge/rehearsal"]

[agents.profiles.rehearsal.env]
PLANFORGE_REHEARSAL_SCRIPT = "${{root}}/.planforge/rehearsal/script.json"
PLANFORGE_REHEARSAL_JOURNAL = "${{root}}/.planforge/rehearsal/journal.jsonl"
""",
    "wordcount/__init__.py": '"""Counts words."""\n',
    "wordcount/counting.py": '''\
"""How many words a text has."""


def words(text):
    """The words of a text, in order."""
    return text.split()


def count(text):
    """How many words a text has."""
    return len(words(text))
''',
    "tests/__init__.py": "",
    "tests/test_counting.py": """\
import unittest

from wordcount.counting import count


class CountTest(unittest.TestCase):
    def test_words_are_separated_by_any_white_space(self):
        self.assertEqual(count("one two\\nthree"), 3)

    def test_an_empty_text_has_no_words(self):
        self.assertEqual(count(""), 0)
""",
}

UNCONFINED = """
# No sandbox works on the machine where this demo was made. The rehearsal agent only plays its script.
# Remove this before you put a real agent in its place: that would run with all your rights.
[sandbox]
unconfined = true
"""


def files(*, python: str = PYTHON, unconfined: bool = False) -> dict[str, str]:
    """The files of the sample project, for a machine with this `python`; `unconfined` if no sandbox works."""
    settings = FILES["planforge.toml"].replace(json.dumps(PYTHON), json.dumps(python))
    return FILES | {"planforge.toml": settings + (UNCONFINED if unconfined else "")}


DRAFT = """\
# Plan: Common words and reading time

## Objective

Readers of a text want to know which words are the most common in it, and how many minutes it takes to read.

## Scope

Two new modules beside `wordcount/counting.py`, each with its tests. Nothing that exists changes.

## Changes

- `wordcount/frequency.py` — `most_common(text, n)`: the `n` most common words with their counts.
- `tests/test_frequency.py` — tests of `most_common`.
- `wordcount/reading.py` — `minutes(text)`: reading time at 200 words a minute.
- `tests/test_reading.py` — tests of `minutes`.

## Risks

Texts are small; no care is taken of memory.

## Testing

`python3 -m unittest` runs all tests; each new function has tests of its own.
"""

REVISED = DRAFT.replace(
    "the `n` most common words with their counts.",
    "the `n` most common words with their counts,\n"
    "  without regard to case, words that are equally common in alphabetical order.",
).replace(
    "reading time at 200 words a minute.",
    "reading time at 200 words a minute,\n  rounded up, and 0 for an empty text.",
)


def _audit(severity: str, summary: str, *concerns: tuple[str, str, str]) -> str:
    """An audit in the form that auditors are held to: each concern with its severity and what shows it."""
    found = [
        {"title": title, "severity": each, "detail": detail, "location": "Changes"}
        for title, each, detail in concerns
    ]
    return json.dumps({"maxSeverity": severity, "summary": summary, "concerns": found}, indent=1) + "\n"


FIRST_AUDIT = _audit(
    "blocking",
    "The result of `most_common` is not determined.",
    (
        "`most_common` does not say what happens to words that are equally common, nor to upper case, so two "
        "correct implementations would give different results",
        "blocking",
        "A test of `most_common` could not be written from this plan.",
    ),
    ("`minutes` does not say how it rounds", "medium", "201 words could be 1 minute or 2."),
)

CLEAN_AUDIT = _audit(
    "minor",
    "Ready to approve: order and case are settled.",
    ("200 words a minute could be a named constant", "minor", "It stands in one place only."),
)

FREQUENCY_TEST = """\
import unittest

from wordcount.frequency import most_common


class MostCommonTest(unittest.TestCase):
    def test_the_most_common_word_comes_first(self):
        self.assertEqual(most_common("b a b", 2), [("b", 2), ("a", 1)])

    def test_case_does_not_count(self):
        self.assertEqual(most_common("The the THE end", 1), [("the", 3)])

    def test_equally_common_words_are_in_alphabetical_order(self):
        self.assertEqual(most_common("pear apple fig", 3), [("apple", 1), ("fig", 1), ("pear", 1)])

    def test_an_empty_text_has_no_common_words(self):
        self.assertEqual(most_common("", 3), [])
"""

WRONG_FREQUENCY = '''\
"""Which words are the most common."""

from collections import Counter

from wordcount.counting import words


def most_common(text, n):
    """The `n` most common words of a text with their counts."""
    return Counter(words(text)).most_common(n)
'''

FREQUENCY = '''\
"""Which words are the most common."""

from collections import Counter

from wordcount.counting import words


def most_common(text, n):
    """The `n` most common words of a text with their counts, ties in alphabetical order."""
    counts = Counter(words(text.lower()))
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:n]
'''

READING_TEST = """\
import unittest

from wordcount.reading import minutes


class MinutesTest(unittest.TestCase):
    def test_two_hundred_words_take_a_minute(self):
        self.assertEqual(minutes("word " * 200), 1)

    def test_a_begun_minute_counts(self):
        self.assertEqual(minutes("word " * 201), 2)

    def test_an_empty_text_takes_no_time(self):
        self.assertEqual(minutes(""), 0)
"""

READING = '''\
"""How long it takes to read a text."""

from math import ceil

from wordcount.counting import count

WORDS_A_MINUTE = 200


def minutes(text):
    """How many minutes it takes to read a text, rounded up."""
    return ceil(count(text) / WORDS_A_MINUTE)
'''

LIE = "Done: `most_common` is in and all 6 tests pass."
CORRECTION = "Right, case and ties were wrong. `most_common` now ignores case and sorts ties; all tests pass."


def script(pace: float) -> str:
    """The script, with about `pace` seconds of work to each scene."""

    def scene(*when: str, does: list[dict[str, object]], tokens: tuple[int, int]) -> dict[str, object]:
        usage = {"usage": {"input": tokens[0], "output": tokens[1]}}
        return {"when": list(when), "do": [{"sleep": pace}, *does, usage]}

    def write(path: str, text: str) -> dict[str, object]:
        return {"write": {"path": path, "text": text}}

    frequency, reading = "wordcount/frequency.py", "wordcount/reading.py"
    frequency_test = write("tests/test_frequency.py", FREQUENCY_TEST)
    scenes = [
        scene("Role: drafter", does=[{"say": DRAFT}], tokens=(2100, 410)),
        scene("Role: auditor", "Round: 1", does=[{"say": FIRST_AUDIT}], tokens=(2600, 180)),
        scene("Role: reviser", "Round: 1", does=[{"say": REVISED}], tokens=(2900, 450)),
        scene("Role: auditor", "Round: 2", does=[{"say": CLEAN_AUDIT}], tokens=(2800, 90)),
        scene(
            "Role: developer",
            frequency,
            "Attempt: 1",
            does=[write(frequency, WRONG_FREQUENCY), frequency_test, {"say": LIE}],
            tokens=(3200, 520),
        ),
        scene(
            "Role: developer",
            frequency,
            does=[write(frequency, FREQUENCY), frequency_test, {"say": CORRECTION}],
            tokens=(3700, 560),
        ),
        scene(
            "Role: developer",
            reading,
            does=[
                write(reading, READING),
                write("tests/test_reading.py", READING_TEST),
                {"say": "`minutes` is in, with its tests."},
            ],
            tokens=(3100, 430),
        ),
        scene("Role: auditor", "Step: ", does=[{"say": CLEAN_AUDIT}], tokens=(4000, 95)),
    ]
    return json.dumps({"name": "planforge demo", "scenes": scenes}, indent=1) + "\n"
