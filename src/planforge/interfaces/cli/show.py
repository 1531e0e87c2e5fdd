"""What every command shares: the `--json` option, and printing either way."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from planforge.interfaces.cli.printing import as_document, hush, unprinted, visible

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output.")
"""Adds `--json` to a command."""


def show(value: object, text: str | Callable[[], str], *, as_json: bool) -> None:
    """Print `value` as JSON, or `text` for people. A reader that stops early is not a failure."""
    shown = as_document(value) if as_json else text() if callable(text) else text
    try:
        click.echo(shown)
    except BrokenPipeError:
        hush(sys.stdout)
    except OSError as error:
        raise unprinted(sys.stdout, error) from error


def talk(text: str) -> None:
    """Print a message on standard error, without control characters."""
    try:
        click.echo("\n".join(map(visible, text.split("\n"))), err=True)
    except OSError:
        hush(sys.stderr)
