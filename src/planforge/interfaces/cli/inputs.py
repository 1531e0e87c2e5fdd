"""Text that a person gives to a command: a request, its background, a file, or standard input for `-`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from planforge.errors import InvalidInput
from planforge.kernel.files import read_regular

if TYPE_CHECKING:
    from planforge.app.project import Project
    from planforge.documents.imports import Imported

Function = TypeVar("Function", bound=Callable[..., Any])

LIMIT = 64 * 1024 * 1024
"""How many bytes one text may have; standard input may have no end."""


def text(source: str | Path) -> str:
    """The text of a file, or of standard input for `-`; refused if it is not UTF-8."""
    is_input = str(source) == "-"
    shown = "standard input" if is_input else f"`{source}`"
    try:
        content = sys.stdin.buffer.read(LIMIT + 1) if is_input else read_regular(Path(source), LIMIT + 1)
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"{shown} cannot be read: {getattr(error, 'strerror', None) or error}", "name a file, or use `-`"
        ) from error
    if len(content) > LIMIT:
        raise InvalidInput(f"{shown} has more than {LIMIT} bytes", "give a part of it")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{shown} is not UTF-8 at byte {error.start}", "save it as UTF-8") from error


def request_text(word: str) -> str:
    """The request itself; `-` reads it from standard input."""
    return text(word) if word == "-" else word


def context_options(command: Function) -> Function:
    """Adds `--context` and `--issue` to a command."""
    command = click.option(
        "--issue", metavar="REF", help="The issue behind it: `owner/repo#12`, `#12` or its URL."
    )(command)
    return click.option(
        "--context", metavar="FILE", help="Background text; `-` reads it from standard input."
    )(command)


def given(project: Project, context: str | None, issue: str | None) -> Imported | None:
    """The background text of a request, if any."""
    from planforge.app.plans import imports

    if context and issue:
        raise InvalidInput("give either `--context` or `--issue`", "put both into one file, or use `-`")
    if context:
        return imports.given(project, context, sys.stdin.buffer.read)
    return imports.issue(project, issue) if issue else None


def source(project: Project, name: str) -> Imported:
    """A request that was written elsewhere: an issue, a spec-kit directory, a file."""
    from planforge.app.plans import imports

    return imports.found(project, name, sys.stdin.buffer.read)


def asked(
    project: Project, request: str | None, source_: str | None, context: str | None, issue: str | None
) -> tuple[str, Imported | None]:
    """The request of a forge and its background text."""
    if source_ and (context or issue):
        raise InvalidInput(
            "`--from` is what is given with the request", "leave `--context` and `--issue` out"
        )
    if [request, source_, context].count("-") > 1:
        raise InvalidInput("standard input can be read once", "put one of them into a file")
    found = source(project, source_) if source_ else given(project, context, issue)
    if request is None and found is None:
        raise InvalidInput('say what you want: `planforge forge "..."`')
    if request is None:
        return found.title if found else "", found
    return request_text(request), found
