"""The tour in a Python project: `inflection`, which has its tests in its source distribution."""

from __future__ import annotations

from tour.stories import Part, Story

COUNTING = Part(
    module="inflection/counting.py",
    test="test_counting.py",
    asks="`counted(number, word)`: `1 mouse`, `2 mice`; the word may be given in the singular or the plural.",
    code='''\
"""Numbers with their words."""

from inflection import pluralize, singularize


def counted(number: int, word: str) -> str:
    """The number and the word in the form that goes with it."""
    return f"{number} {singularize(word) if number == 1 else pluralize(word)}"
''',
    tests="""\
import pytest

from inflection.counting import counted


@pytest.mark.parametrize(("number", "word", "said"), [(1, "mice", "1 mouse"), (2, "mouse", "2 mice")])
def test_the_word_goes_with_the_number(number, word, said):
    assert counted(number, word) == said
""",
)
INITIALS = Part(
    module="inflection/initials.py",
    test="test_initials.py",
    asks="`initials(words)`: the first letter of each word, in small letters.",
    code='''\
"""First letters."""

from inflection import underscore


def initials(words: str) -> str:
    """The first letter of each word."""
    return "".join(word[0] for word in underscore(words).replace(" ", "_").split("_") if word)
''',
    tests="""\
from inflection.initials import initials


def test_words_may_be_joined_in_any_way():
    assert initials("ActiveRecord base") == "arb"
""",
)
LISTING = Part(
    module="inflection/listing.py",
    test="test_listing.py",
    asks="`listed(words)`: `a`, `a and b`, `a, b and c`.",
    code='''\
"""Words in a row."""

from typing import Sequence


def listed(words: Sequence[str]) -> str:
    """The words with commas, and `and` before the last."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
''',
    wrong='''\
"""Words in a row."""

from typing import Sequence


def listed(words: Sequence[str]) -> str:
    """The words with commas."""
    return ", ".join(words)
''',
    tests="""\
from inflection.listing import listed


def test_one_word_stands_alone():
    assert listed(["a"]) == "a"


def test_the_last_word_comes_after_and():
    assert listed(["a", "b", "c"]) == "a, b and c"
""",
)
POSSESSIVE = Part(
    module="inflection/possessive.py",
    test="test_possessive.py",
    asks="`possessive(word)`: `cat's`, and `cats'` for a plural.",
    code="",
    wrong='''\
"""Whose it is."""


def possessive(word: str) -> str:
    """The word as an owner."""
    return f"{word}'s"
''',
    tests="""\
from inflection.possessive import possessive


def test_a_cat_owns():
    assert possessive("cat") == "cat's"


def test_cats_own():
    assert possessive("cats") == "cats'"
""",
)
ACRONYMS = Part(
    module="inflection/acronyms.py",
    test="test_acronyms.py",
    asks="`acronym(words)`: the first letters in capitals.",
    code='''\
"""Short names."""


def acronym(words: str) -> str:
    """The first letters of the words, in capitals."""
    return "".join(word[0].upper() for word in words.split())
''',
    tests="""\
from inflection.acronyms import acronym


def test_first_letters_in_capitals():
    assert acronym("portable network graphics") == "PNG"
""",
)

STORY = Story(
    project="inflection",
    kind="Python",
    about="a Python library that turns `mouse` into `mice`, with 455 tests of its own that pytest runs",
    request="Add helpers to inflection: counted words, initials, lists, possessives, acronyms",
    objective="People who use inflection write the same five helpers again and again; they come with it now.",
    testing="pytest runs all tests; each new function has tests of its own.",
    parts=(COUNTING, INITIALS, LISTING, POSSESSIVE, ACRONYMS),
    vague="`counted(number, word)`: the number and the word.",
    finding="`counted` does not say in which form the word is given, so no test can be written from the plan",
    by_hand=("in small letters.", "in small letters; words may be joined in any way."),
    reason="English has too many opinions on s'",
    readme="README.rst",
    readme_asks="a sentence that names the new modules.",
    readme_edit=(
        "Inflection is a port of `Ruby on Rails`_' `inflector`_ to Python.\n",
        "Inflection is a port of `Ruby on Rails`_' `inflector`_ to Python.\n"
        "It also counts, lists and abbreviates: see ``inflection.counting`` and its neighbours.\n",
    ),
    checks=((".venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider"),),
)
