"""The help: commands by what a person wants, short enough to be read."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import click
import pytest

from calls import every_command
from planforge.interfaces.cli.commands import COMMANDS, SECTIONS, planforge
from planforge.interfaces.cli.help_sections import SectionedGroup

GROUPS = {(): planforge} | {
    path: command for path, command in every_command().items() if isinstance(command, click.Group)
}
LONG = 8
"""A list of more commands than this has sections."""


def helped(path: tuple[str, ...], width: int) -> list[str]:
    name = " ".join(("planforge", *path))
    context = click.Context(
        GROUPS[path],
        info_name=name,
        terminal_width=width,
        max_content_width=width,
        help_option_names=planforge.context_settings["help_option_names"],
    )
    return GROUPS[path].get_help(context).splitlines()


def test_the_whole_help_fits_a_hundred_columns_and_eighty_lines() -> None:
    lines = helped((), 100)
    assert len(lines) <= 80
    assert max(map(len, lines)) <= 100


def test_every_command_is_in_exactly_one_section() -> None:
    named = Counter(name for commands in SECTIONS.values() for name in commands)
    assert set(named.values()) == {1}
    assert set(named) == set(COMMANDS)
    lines = helped((), 100)
    for name, (_, text) in COMMANDS.items():
        assert len([line for line in lines if line.split() == [name, *text.split()]]) == 1


def test_the_sections_begin_with_the_ways_to_work_and_end_with_what_programs_call() -> None:
    assert list(SECTIONS) == ["Get work done", "Decide", "Look", "Trust", "Set up", "For programs"]
    assert list(SECTIONS["Get work done"])[:6] == ["forge", "plan", "fix", "pipeline", "task", "chat"]
    titles = [line.rstrip(":") for line in helped((), 100) if line.endswith(":") and line[0] != " "]
    assert titles == ["Options", *SECTIONS]


@pytest.mark.parametrize("path", GROUPS, ids=" ".join)
def test_a_long_list_of_commands_has_sections_that_name_each_once(path: tuple[str, ...]) -> None:
    group = GROUPS[path]
    if isinstance(group, SectionedGroup):
        named = Counter(name for names in group.sections.values() for name in names)
        assert set(named.values()) == {1}
        assert set(named) == {name for name, command in group.commands.items() if not command.hidden}
    elif path:
        assert len(group.commands) <= LONG


@pytest.mark.parametrize("path", GROUPS, ids=" ".join)
def test_no_line_of_a_list_is_cut_off_in_a_terminal_of_eighty_columns(path: tuple[str, ...]) -> None:
    assert [line for line in helped(path, 80)[1:] if line.endswith("...")] == []


def test_the_help_loads_no_command() -> None:
    script = (
        "import sys; from planforge.interfaces.cli.commands import call, COMMANDS; call(['--help'])\n"
        "loaded = {name.rpartition('.')[2] for name in sys.modules if 'interfaces.cli.' in name}\n"
        "assert not loaded & {module for module, _ in COMMANDS.values()}, loaded"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
