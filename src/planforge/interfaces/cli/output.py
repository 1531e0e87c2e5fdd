"""What every command shares: the `--json` option, and printing either way."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from planforge.errors import NotFound
from planforge.interfaces.cli.layout import visible
from planforge.interfaces.cli.streams import as_document, hush, unprinted

Value = TypeVar("Value")

JSON = "planforge.json"
"""Where the context of a call keeps whether `--json` was given."""


def _keep(ctx: click.Context, _: click.Parameter, given: bool) -> None:
    ctx.meta[JSON] = given


JSON_OPTION = click.Option(
    ["--json"], is_flag=True, expose_value=False, callback=_keep, help="Print JSON on standard output."
)


class JsonCommand(click.Command):
    """A command with `--json` as its last option; `show` heeds it."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.params.append(JSON_OPTION)


class JsonGroup(click.Group):
    """A group whose commands have `--json`, unless one says otherwise."""

    command_class = JsonCommand


def wants_json() -> bool:
    """Whether this command was called with `--json`."""
    return bool(click.get_current_context().meta.get(JSON))


def show(value: Value, words: str | Callable[[Value], str | Iterable[str]], *, as_json: bool = False) -> None:
    """
    Print `value` as JSON if that is asked for, and otherwise in words.

    `words` is a text, or a function that makes a text or lines of `value`. A reader that stops early is not a
    failure.
    """
    if as_json or wants_json():
        shown: str | Iterable[str] = as_document(value)
    else:
        shown = words(value) if callable(words) else words
    try:
        click.echo(shown if isinstance(shown, str) else "\n".join(shown))
    except BrokenPipeError:
        hush(sys.stdout)
    except OSError as error:
        raise unprinted(sys.stdout, error) from error


def write_file(path: Path, text: str) -> None:
    """Write a file that was asked for besides the output, and say so."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise NotFound(f"cannot write `{path}`: {error.strerror}") from error
    talk(f"wrote {path}")


def talk(text: str) -> None:
    """Print a message on standard error, without control characters."""
    try:
        click.echo("\n".join(map(visible, text.split("\n"))), err=True)
    except OSError:
        hush(sys.stderr)
