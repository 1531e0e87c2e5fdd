"""`planforge evidence`: run the project's own checks on a tree, in a fresh checkout."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from planforge.interfaces.cli.layout import paragraphs, table
from planforge.interfaces.cli.output import JsonCommand, show, talk
from planforge.kernel.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planforge.app.evidence.gatherer import Look
    from planforge.kernel.evidence import Delta, Part
    from planforge.workspace.detection import Detected

SHOWN = 20
"""How many names of tests are shown; `--json` has all."""

EXIT_CODES = {"pass": 0, "fail": 1, "cannot_tell": 6}
WORDS = {"pass": "pass", "fail": "fail", "cannot_tell": "cannot tell"}


@click.command(cls=JsonCommand)
@click.option("--tree", default="", metavar="TREE", help="Check this tree instead of HEAD's.")
@click.option("--commit", default="", metavar="REV", help="Check this commit instead of HEAD.")
@click.option("--no-reuse", is_flag=True, help="Run the checks even if this tree was measured before.")
@click.option("--detect", is_flag=True, help="Only show which checks were found and why; run none.")
def evidence(tree: str, commit: str, no_reuse: bool, detect: bool) -> int:
    """Run the project's own checks on a tree

    Runs build, types, lint and tests in a fresh checkout of HEAD, in the strongest sandbox of this machine,
    without a network. The checks come from `checks` in `planforge.toml`, or are detected. The same checks are
    not run twice on the same tree. Without `planforge init` nothing is recorded.

    Exits with 0 if they pass, 1 if one fails, and 6 if Planforge cannot tell: a tool is missing, no test ran,
    or the time limit was reached.

    \b
    Examples:
      planforge evidence --detect
      planforge evidence
      planforge evidence --commit HEAD~1 --json
    """
    from planforge.app.evidence import gatherer as gathering

    if detect:
        show(gathering.detected(Path.cwd()), _detected)
        return 0
    looked = gathering.look(Path.cwd(), tree=tree, commit=commit, reuse=not no_reuse, watch=_tell)
    if not looked.recorded:
        talk("nothing was recorded, because there is no ledger: `planforge init` creates one")
    show(looked, _looked)
    return EXIT_CODES[looked.evidence.outcome.value]


def _tell(name: str, part: Part | None) -> None:
    """Show progress on standard error."""
    if part is None:
        talk(f"{name} …")
    else:
        talk(f"{name}: {WORDS[part.outcome.value]}, {part.reason} ({part.seconds:.1f} s)")


def _looked(looked: Look) -> Iterator[str]:
    found = looked.evidence
    yield f"{WORDS[found.outcome.value]}: {found.reason}"
    how = "measured before and reused" if found.reused else f"sandbox: {found.sandbox or 'none'}"
    yield f"  tree {found.tree[:12]}, {how}"
    yield table([_row(part) for part in found.parts], "  ")
    if not found.parts:
        yield "  no check was found; `planforge evidence --detect` shows what Planforge looked for"
    yield from _names("Failing", found.failing)
    if looked.delta is not None:
        yield from _compared(looked.compared_with, looked.delta)


def _row(part: Part) -> tuple[str, ...]:
    word = WORDS[part.outcome.value] if part.required else f"({WORDS[part.outcome.value]})"
    extra = []
    if part.warnings:
        extra.append(counted(part.warnings, "warning"))
    if part.coverage is not None and part.coverage.total:
        extra.append(f"{100 * part.coverage.covered / part.coverage.total:.1f} % of lines covered")
    said = ", ".join([part.reason, *extra])
    time = f"{part.seconds:.1f} s" if part.ran else ""
    return part.name, word, said, time, _command(part.command)


def _command(words: tuple[str, ...]) -> str:
    """The command as a person would type it where they are."""
    return " ".join(words).replace("${root}/", "")


def _names(title: str, names: tuple[str, ...]) -> Iterator[str]:
    if names:
        yield f"\n{title}"
        yield from (f"  {name}" for name in names[:SHOWN])
        if len(names) > SHOWN:
            yield f"  and {len(names) - SHOWN} more"


def _compared(base: str, delta: Delta) -> Iterator[str]:
    yield f"\nAgainst {base[:12]}"
    rows = []
    if delta.counts is not None:
        changes = {name: getattr(delta.counts, name) for name in ("total", "passed", "failed", "skipped")}
        rows.append(("tests", ", ".join(f"{name} {number:+d}" for name, number in changes.items())))
    for name, number in (("warnings", delta.warnings_delta), ("findings", delta.lint_delta)):
        if number is not None:
            rows.append((name, f"{number:+d}"))
    if delta.coverage_delta is not None:
        rows.append(("coverage", f"{delta.coverage_delta / 100:+.2f} %"))
    yield table(rows or [("nothing", "that can be compared")], "  ")
    yield from _names("Newly failing", delta.newly_failing)
    yield from _names("Fixed", delta.fixed)
    yield from _names("Vanished", delta.vanished)


def _detected(found: Detected) -> str:
    rows = [(item.name, _command(item.check.command), item.why) for item in found.found]
    return paragraphs(
        table(rows) or "no check was found",
        f"Not found: {', '.join(found.missing)}" if found.missing else "",
        "\n  ".join(["Passed over", *found.passed_over]) if found.passed_over else "",
        "\n  ".join(["Projects in subdirectories, not checked", *found.elsewhere]) if found.elsewhere else "",
        "" if found.found else f"Looked for\n  {', '.join(found.looked)}",
    )
