"""
Writes `docs/commands.md` from the help of every command, so that the page cannot say anything else.

`make docs` writes it; a test fails if it is not what would be written now.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from planforge.interfaces.cli.commands import SECTIONS, planforge

PAGE = Path(__file__).parents[1] / "docs" / "commands.md"
WIDTH = 100


def commands(command: click.Command, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    """A command and all below it."""
    yield command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, click.Context(found, info_name=name, parent=context))


def page() -> str:
    """The whole page."""
    parts = ["# Commands\n\nThis page is the output of `--help`. `pf` is short for `planforge`.\n"]
    begins = {next(iter(names)): title for title, names in SECTIONS.items()}
    root = click.Context(
        planforge,
        info_name="planforge",
        max_content_width=WIDTH,
        terminal_width=WIDTH,
        help_option_names=planforge.context_settings["help_option_names"],
    )
    for command, context in commands(planforge, root):
        context.terminal_width = WIDTH
        if context.parent is root and (title := begins.get(context.info_name or "")):
            parts.append(f"## {title}\n")
        parts.append(f"### {context.command_path}\n\n```text\n{command.get_help(context).rstrip()}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"wrote {PAGE.name}\n")
