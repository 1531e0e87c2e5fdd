"""Commands about the set-up of a repository and its machine: `planforge init` and `planforge doctor`."""

from __future__ import annotations

from pathlib import Path

import click

from planforge.app.upkeep.doctor import Diagnosis, diagnose, mend
from planforge.app.upkeep.setup import initialise
from planforge.interfaces.cli.layout import table
from planforge.interfaces.cli.output import JsonCommand, show
from planforge.interfaces.cli.typed import line

MARKS = {"ok": "✓ ok", "warn": "⚠ warn", "fail": "✗ fail", "unknown": "? unknown"}


@click.command(cls=JsonCommand)
def init() -> None:
    """Set up this repository for Planforge

    Creates `.planforge`, which git ignores, and `planforge.toml`, unless they exist.
    """
    made = initialise(Path.cwd())
    what = "wrote" if made.settings_written else "left"
    check = f"tests: {made.check}" if made.check else "tests: none found; set `[check]` before running a plan"
    show(made, f"ready: {made.root}\n{what} {made.settings}\n{check}")


@click.command(cls=JsonCommand)
@click.option("--fix", is_flag=True, help="Repair what can be repaired without losing anything.")
def doctor(fix: bool) -> int:
    """Check this machine and this repository

    Each line is one check and, if something is wrong, the command that repairs it. Exits with 1 if a check
    fails; a warning is not a failure. Some things, such as some logins, cannot be checked and are `unknown`.

    With --fix it writes a missing `.planforge/.gitignore`, removes git's lock files whose processes are dead,
    ends processes that a dead Planforge left, and archives and removes worktrees of ended runs. It prints
    each repair and leaves everything else to you.

    \b
    Examples:
      planforge doctor
      planforge doctor --fix
      planforge doctor --json | jq '.findings[] | select(.status != "ok")'
    """
    found = mend(Path.cwd()) if fix else diagnose(Path.cwd())
    show(found, _diagnosis)
    return 0 if found.healthy else 1


def _diagnosis(found: Diagnosis) -> str:
    rows = [
        (MARKS[item.status], item.id, item.evidence, f"fix: {line(item.fix)}" if item.fix else "")
        for item in found.findings
    ]
    done = [
        f"{'repaired' if item.done else 'could not repair'} {item.id}: {item.said}" for item in found.mended
    ]
    return "\n".join([*done, *([""] if done else []), table(rows)])
