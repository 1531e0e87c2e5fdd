"""
`planforge bench`: benchmarks, each a distribution of its own.

A benchmark is a click command that its distribution names in an entry point:

    [project.entry-points."planforge.benchmarks"]
    guardrails = "planforge_guardrails.command:guardrails"
"""

from __future__ import annotations

from importlib.metadata import entry_points

import click

from planforge.errors import NotFound

GROUP = "planforge.benchmarks"
OURS = {"guardrails": "benchmarks/guardrails"}
"""The benchmarks of this repository, and where each is."""


class Benchmarks(click.Group):
    """The installed benchmarks, and those of this repository."""

    def list_commands(self, _: click.Context) -> list[str]:
        """The names of the benchmarks; loads none of them."""
        return sorted({*OURS, *(found.name for found in entry_points(group=GROUP))})

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        """Load one benchmark; if it is ours and not installed, a command that says how to install it."""
        for found in entry_points(group=GROUP, name=cmd_name):
            command: click.Command = found.load()
            return command
        return _absent(cmd_name) if cmd_name in OURS else None


def _absent(name: str) -> click.Command:
    """A command that accepts all words and says that the benchmark is not installed."""

    def refuse(words: tuple[str, ...]) -> None:
        del words
        raise NotFound(
            f"the benchmark `{name}` is not installed; "
            f"`pip install ./{OURS[name]}` in a clone of Planforge installs it"
        )

    return click.Command(
        name,
        callback=refuse,
        params=[click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)],
        short_help="Not installed",
        add_help_option=False,
        context_settings={"ignore_unknown_options": True},
    )


@click.group(cls=Benchmarks)
def bench() -> None:
    """Measure Planforge, or another orchestrator"""
