"""What every command shares: the `--json` option, and printing either way."""

from __future__ import annotations

from collections.abc import Callable

import click

from planforge.interfaces.cli.printing import as_document

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output.")
"""Adds `--json` to a command."""


def show(value: object, text: str | Callable[[], str], *, as_json: bool) -> None:
    """Print `value` as JSON, or `text` for people."""
    if as_json:
        click.echo(as_document(value))
    else:
        click.echo(text() if callable(text) else text)
