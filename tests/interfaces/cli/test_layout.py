"""Tables line up whatever is in them, and fold where the terminal is narrow."""

from __future__ import annotations

import pytest

from planforge.interfaces.cli.layout import cut, table, width


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("plan", 4),
        ("計画", 4),
        ("e\u0301te", 3),
        ("\x1b[31mred\x1b[0m", 3),
        ("✓ done", 6),
        ("👍", 2),
        ("", 0),
    ],
)
def test_the_width_is_what_a_terminal_shows(text: str, columns: int) -> None:
    assert width(text) == columns


def test_columns_line_up_with_wide_letters_accents_and_colours() -> None:
    rows = [("計画", "a"), ("plan-1", "b"), ("e\u0301te\u0301", "c"), ("\x1b[31mred\x1b[0m", "d")]
    lines = table(rows).splitlines()
    assert {width(line) for line in lines} == {9}
    assert [line[-1] for line in lines] == ["a", "b", "c", "d"]


def test_a_last_column_that_does_not_fit_goes_on_below_itself() -> None:
    rows = [("developer", "reading-code, implementing, writing-tests"), ("tester", "")]
    assert table(rows, "  ", room=40) == (
        "  developer  reading-code, implementing,\n             writing-tests\n  tester"
    )


def test_without_a_terminal_nothing_is_folded_and_no_line_ends_in_a_space() -> None:
    shown = table([("a", "", ""), ("bb", "x" * 200, "y " * 60)])
    assert len(shown.splitlines()) == 2
    assert all(line == line.rstrip() for line in shown.splitlines())


def test_where_there_is_no_room_for_the_last_column_it_stands_below() -> None:
    rows = [("x" * 30, "one", "two three four"), ("y", "", "five")]
    lines = table(rows, room=42).splitlines()
    assert lines == [f"{'x' * 30}  one", "    two three four", f"y{' ' * 36}five"]


@pytest.mark.parametrize(
    ("text", "room", "shown"),
    [
        ("plan", 4, "plan"),
        ("plans", 4, "pla…"),
        ("計画書", 4, "計…"),
        ("a b", 2, "a…"),
        ("abc", 1, "…"),
        ("a", 0, ""),
    ],
)
def test_what_is_cut_fits(text: str, room: int, shown: str) -> None:
    assert cut(text, room) == shown
    assert width(shown) <= room
