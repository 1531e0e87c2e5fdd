"""Numbers in words, and that nobody makes plurals by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import planforge
from planforge.kernel.wording import counted, money

NOUNS = (
    "action|assertion|attempt|batch|byte|call|check|commit|event|file|finding|line|object|phase|plan|process|"
    "round|row|run|second|skip|step|table|test|time|token|worktree"
)
BY_HAND = re.compile(
    rf"\((?:s|es)\)[\"' ,.:;]"  # file(s)
    rf"|\{{len\([^{{}}]*\)\}} (?:{NOUNS})(?:s|es)\b"  # {len(x)} files
    rf"|else ['\"]e?s['\"]\}}"  # file{'' if n == 1 else 's'}
)
MORE_THAN_ONE = {
    "agents/api/tools/files.py",
    "agents/native/lines.py",
    "app/plans/imports.py",
    "documents/imports/__init__.py",
    "documents/toml.py",
    "rules/commands/actions.py",
    "rules/small.py",
    "workspace/git/repository.py",
}
"""Where the number is a limit that was exceeded, or can be no 1 for another reason."""


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 files"), (1, "1 file"), (2, "2 files"), (1000, "1000 files")]
)
def test_a_number_of_things(number: int, words: str) -> None:
    assert counted(number, "file") == words


def test_a_noun_may_have_a_plural_of_its_own() -> None:
    assert [counted(number, "process", "processes") for number in (1, 2)] == ["1 process", "2 processes"]


@pytest.mark.parametrize(
    ("millionths", "words"),
    [
        (0, "$0.00"),
        (1, "$0.000001"),
        (99, "$0.000099"),
        (4_200, "$0.0042"),
        (4_999, "$0.005"),
        (500_000, "$0.50"),
        (995_000, "$0.995"),
        (1_250_001, "$1.25"),
        (12_340_000, "$12.34"),
        (1_999_999, "$2.00"),
        (-250_000, "-$0.25"),
    ],
)
def test_money_is_in_dollars_and_a_small_cost_is_not_nothing(millionths: int, words: str) -> None:
    assert money(millionths) == words


def test_no_message_makes_a_plural_by_hand() -> None:
    root = Path(planforge.__file__).parent
    found = {
        f"{path.relative_to(root)}:{number}: {line.strip()}"
        for path in root.rglob("*.py")
        if "testing" not in path.parts and path.relative_to(root).as_posix() not in MORE_THAN_ONE
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if BY_HAND.search(line)
    }
    assert found == set()
