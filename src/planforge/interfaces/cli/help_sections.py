"""Help that lists commands in sections by purpose, not by the alphabet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from planforge.interfaces.cli.output import JsonGroup


def write(formatter: click.HelpFormatter, sections: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    """One block for each section; the descriptions of all blocks start in the same column."""
    longest = max(len(name) for rows in sections.values() for name, _ in rows)
    for title, rows in sections.items():
        with formatter.section(title):
            formatter.write_dl([(name.ljust(longest), text) for name, text in rows])


@click.command(name="help", hidden=True)
@click.pass_context
def help_command(ctx: click.Context) -> None:
    """Show this help"""
    assert ctx.parent is not None
    click.echo(ctx.parent.get_help())


class SectionedGroup(JsonGroup):
    """A group with too many commands for one list."""

    def __init__(self, *args: object, sections: Mapping[str, Sequence[str]], **settings: object) -> None:
        """`sections` names each command that is not hidden exactly once, in the order of the help."""
        super().__init__(*args, **settings)  # type: ignore[arg-type]
        self.sections = sections

    def list_commands(self, _: click.Context) -> list[str]:
        """The commands in the order of the help."""
        return [name for names in self.sections.values() for name in names]

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by section."""
        room = formatter.width - 6 - max(map(len, self.commands))
        rows = {
            title: [(name, self.commands[name].get_short_help_str(room)) for name in names]
            for title, names in self.sections.items()
        }
        write(formatter, rows)
