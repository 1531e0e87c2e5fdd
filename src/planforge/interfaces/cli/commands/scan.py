"""`planforge scan`: find tests that cannot fail, and other weak spots."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planforge.interfaces.cli.layout import paragraphs, plain, table
from planforge.interfaces.cli.output import JsonCommand, show
from planforge.kernel.wording import counted

if TYPE_CHECKING:
    from planforge.app.evidence.scanning import Scanned
    from planforge.rules.scanning.issues import Issue

QUIET_SECONDS = 1.0
"""A scan that takes no longer shows no progress."""
PACE_SECONDS = 0.1


@click.command(cls=JsonCommand)
@click.argument("places", nargs=-1, metavar="[PATH]...", type=click.Path(path_type=Path))
@click.option("--diff", metavar="REVISION", help="Only lines that differ from this revision.")
@click.option("--staged", is_flag=True, help="Only staged lines, in their staged version.")
@click.option(
    "--format",
    "shape",
    type=click.Choice(["text", "json", "sarif"]),
    default="text",
    help="The output format.",
)
@click.option("--rule", "rules", multiple=True, metavar="NAME", help="Only this rule; can be repeated.")
@click.option("--tests-only", is_flag=True, help="Only test files and the files they load.")
def scan(
    places: tuple[Path, ...],
    diff: str | None,
    staged: bool,
    shape: str,
    rules: tuple[str, ...],
    tests_only: bool,
) -> int:
    """Find tests that cannot fail, and other weak spots

    Reads source code, tests, scripts and CI files in PATH, or in the current directory. Finds tests that
    cannot fail, assert nothing or are always skipped, checks whose failure is ignored, and unfinished code.
    Needs no `planforge init` and, except for --diff and --staged, no git. Exits with 1 if a finding is
    blocking. `planforge.toml` can exempt places, with a reason and an end date.

    \b
    Examples:
      planforge scan
      planforge scan tests --rule skip --rule CR-AF12
      planforge scan --diff main
      planforge scan --format sarif > scan.sarif
    """
    from planforge.app.evidence import scanning

    with _Line() as line:
        found = scanning.scan(
            Path.cwd(),
            places,
            diff=diff,
            staged=staged,
            rules=rules,
            tests_only=tests_only,
            progress=line.show if sys.stderr.isatty() else None,
        )
    if shape == "sarif":
        show(found.sarif, "", as_json=True)
    else:
        show(found, _told, as_json=shape == "json")
    return 1 if found.blocking else 0


class _Line:
    """One line on the terminal with the progress of a long scan."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.begun = self.shown = clock()
        self.visible = False

    def __enter__(self) -> _Line:
        return self

    def __exit__(self, *error: object) -> None:
        if self.visible:
            click.echo("\r\x1b[K", err=True, nl=False)

    def show(self, done: int, total: int) -> None:
        """Say that `done` of `total` files are scanned, if it is time to."""
        now = self.clock()
        if now - self.begun > QUIET_SECONDS and now - self.shown > PACE_SECONDS:
            self.shown = now
            self.visible = True
            click.echo(f"\r\x1b[Kscanned {done} of {counted(total, 'file')}", err=True, nl=False)


def _told(found: Scanned) -> str:
    open_ = [issue for issue in found.issues if not issue.waived]
    waived = len(found.issues) - len(open_)
    said = ", ".join(f"{count} {reason}" for reason, count in found.left_out.items())
    files = f"{counted(found.files, 'file')} scanned{f', left out: {said}' if said else ''}"
    tests = found.tests
    counts = f"{counted(tests.tests, 'test')}, {counted(tests.assertions, 'assertion')}"
    counts += f", {counted(tests.skips, 'skip')}"
    verdict = f"{found.blocking} blocking, {len(open_) - found.blocking} other"
    verdict += f", {waived} waived" if waived else ""
    return paragraphs(table(list(map(_row, open_))), f"{files}\n{counts}\n{verdict}")


def _row(issue: Issue) -> tuple[str, ...]:
    place = f"{plain(issue.path)}:{issue.line}:{issue.column}"
    return (place, issue.severity.value, issue.rule, plain(issue.message))
