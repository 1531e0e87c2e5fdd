"""`planforge plan audit` and `plan decompose`: any Markdown file, without a repository or any state."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planforge.errors import InvalidInput
from planforge.interfaces.cli.printing import table
from planforge.interfaces.cli.show import json_option, show

if TYPE_CHECKING:
    from planforge.documents.phases import Phase
    from planforge.rules.findings import Finding

file_argument = click.argument("file", type=click.Path(path_type=Path, allow_dash=True))


@click.command()
@click.argument("plan", metavar="PLAN|FILE", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--structural", is_flag=True, help="Look at the form alone; no agent is asked.")
@json_option
def audit(plan: Path, structural: bool, as_json: bool) -> int:
    """Audit a plan once more, or say what is wrong with the form of any Markdown file

    With --structural no agent is paid: it exits with 0 if nothing has to change, 1 if something has, 2 if
    FILE cannot be read; `-` reads standard input. What is missing is blocking; a section that is empty or
    says nothing, changes that name no file and example paths are medium, and have to be put right as well.

    Without, PLAN is a draft or in review. Its form is looked at first; then an auditor reads it as it is on
    disk, and a round is added to its audit log. Nothing is revised: `planforge forge PLAN` does that. Exits
    with 6 if the auditor has something against it.

    \b
    Examples:
      planforge plan audit 17
      planforge plan audit docs/plans/plan-001-rate-limits.md --structural
      planforge plan audit - --structural --json < plan.md
    """
    from planforge.documents.plan import looks_like_plan_id

    known = looks_like_plan_id(str(plan)) and not plan.exists()
    if structural:
        return _structural(_of_plan(str(plan)) if known else _text(plan), as_json=as_json)
    if not known:
        raise InvalidInput(
            f"`{plan}` is not a plan's id, and only plans are audited by agents",
            "look at its form: `--structural`; to make a plan of it: `planforge plan import`",
        )
    return _audited(str(plan), as_json=as_json)


def _of_plan(name: str) -> str:
    from planforge.app import plans
    from planforge.interfaces.cli.views import here

    project = here()
    return plans.text(project, plans.row(project, name))


def _audited(name: str, *, as_json: bool) -> int:
    from planforge.app import forges
    from planforge.interfaces.cli.views import here
    from planforge.interfaces.cli.work import drive

    project = here()
    return drive(project, forges.audit(project, name), as_json=as_json)


def _structural(text: str, *, as_json: bool) -> int:
    from planforge.documents.plan import structural_findings
    from planforge.rules.findings import Severity, worst

    findings = structural_findings(text)
    severity = worst(findings)
    loops = severity in (Severity.BLOCKING, Severity.MEDIUM)
    document = {
        "verdict": "revision" if loops else "approved",
        "max_severity": severity.value if severity else "none",
        "loops": loops,
        "findings": findings,
    }
    show(document, lambda: _findings(findings), as_json=as_json)
    return int(loops)


@click.command()
@file_argument
@click.option(
    "--parallel/--chain",
    default=None,
    help="Phases side by side, or one after the other; as the plan declares if neither is given.",
)
@click.option(
    "--max-files", type=click.IntRange(min=1), default=5, show_default=True, help="Files of one phase."
)
@json_option
def decompose(file: Path, parallel: bool | None, max_files: int, as_json: bool) -> None:
    """Show the phases that a Markdown file would be split into

    The files come from `## Change Manifest` if there is one, else from list items, headings and bold lines of
    `## Changes` that have a path in backticks. A file without any is read, implemented and audited. `-` reads
    standard input.

    Phases are a chain unless the header says `**Parallel:** yes`; then each waits only for what its items
    declare, as in ``- `src/api.py` (after `src/model.py`)``.

    \b
    Examples:
      planforge plan decompose docs/design.md
      planforge plan decompose - --json < plan.md | jq '.[].files'
    """
    from planforge.documents.phases import decompose as decomposed

    phases = decomposed(_text(file), max_files=max_files, parallel=parallel)
    found = [
        {
            "id": phase.id,
            "kind": phase.kind.value,
            "files": phase.files,
            "depends_on": phase.depends_on,
            "change_spec": phase.change_spec,
        }
        for phase in phases
    ]
    show(found, lambda: table(list(map(_row, phases))), as_json=as_json)


def _row(phase: Phase) -> tuple[str, str, str, str]:
    after = f"after {', '.join(phase.depends_on)}" if phase.depends_on else ""
    return phase.id, phase.kind.value, ", ".join(phase.files) or "-", after


def _findings(findings: tuple[Finding, ...]) -> str:
    if not findings:
        return "nothing has to change"
    return table([(each.severity.value, each.location, each.title) for each in findings])


def _text(file: Path) -> str:
    try:
        content = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        return content.decode()
    except OSError as error:
        raise InvalidInput(f"`{file}` cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"`{file}` is not UTF-8") from error
