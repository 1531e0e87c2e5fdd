"""`planforge plan audit` and `decompose`: the form of a plan or of any Markdown file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from planforge.errors import InvalidInput
from planforge.interfaces.cli import inputs
from planforge.interfaces.cli.caller import here
from planforge.interfaces.cli.layout import cut, listed, table, terminal
from planforge.interfaces.cli.output import JsonCommand, show

if TYPE_CHECKING:
    from planforge.documents.phases import Phase

PIPED = 100
"""The columns of the output if there is no terminal."""
AFTER = 28
"""The most columns for the phases that a phase waits for."""


@click.command(cls=JsonCommand)
@click.argument("plan", metavar="PLAN|FILE", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--structural", is_flag=True, help="Check only the form; no agent is asked.")
def audit(plan: Path, structural: bool) -> int:
    """Audit a plan again, or check the form of a Markdown file

    With --structural no agent is asked. Exits with 0 if the form is right, 1 if something must change, 2 if
    FILE cannot be read; `-` reads standard input. A missing section is blocking. An empty section, a change
    without a file and an example path are medium; they must be fixed too.

    Without --structural, PLAN is a draft or in review. Its form is checked first; then an auditor reads it as
    it is on disk, and a round is added to its audit log. Nothing is revised: `planforge forge PLAN` does
    that. Exits with 6 if the auditor objects.

    \b
    Examples:
      planforge plan audit 17
      planforge plan audit docs/plans/plan-001-rate-limits.md --structural
      planforge plan audit - --structural --json < plan.md
    """
    from planforge.documents.plan import looks_like_plan_id

    known = looks_like_plan_id(str(plan)) and not plan.exists()
    if structural:
        return _structural(_text(str(plan)) if known else inputs.text(plan))
    if not known:
        raise InvalidInput(
            f"`{plan}` is not a plan's id; agents audit only plans",
            "check its form with `--structural`, or make it a plan with `planforge plan import`",
        )
    from planforge.app import forges
    from planforge.interfaces.cli.foreground import drive

    project = here()
    return drive(project, forges.audit(project, str(plan)))


def _text(name: str) -> str:
    from planforge.app.items import plans

    project = here()
    return plans.text(project, plans.row(project, name))


def _structural(text: str) -> int:
    from planforge.documents.plan import structural_faults, structural_findings
    from planforge.interfaces.cli.commands.verdict import document
    from planforge.rules.verdicts.judgement import Verdict, judged

    findings, faults = structural_findings(text), structural_faults(text)
    verdict = Verdict.REVISION if faults else Verdict.APPROVED
    reason = "; ".join(fault.title for fault in faults) or "its form is right"
    found = judged(verdict, reason, findings)
    rows = [(each.severity.value, each.location, each.title) for each in findings]
    show(document(found), table(rows) or "the form is right")
    return int(found.loops)


@click.command(cls=JsonCommand)
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--parallel/--chain",
    default=None,
    help="Phases at the same time, or one after the other; by default as the plan says.",
)
@click.option(
    "--max-files",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="The most files in one phase.",
)
def decompose(file: Path, parallel: bool | None, max_files: int) -> None:
    """Show the phases that a Markdown file would be split into

    The files come from `## Change Manifest` if there is one, or else from list items, headings and bold lines
    of `## Changes` with a path in backticks. A line name like `gradlew`, at the start of an item or in the
    manifest, is a file if the repository has it. A plan without files gets the phases read, implement and
    audit. `-` reads standard input. The screen shows what fits; `--json` has everything.

    Phases run one after the other unless the header says `**Parallel:** yes`. Then each waits only for what
    its items declare, as in ``- `src/api.py` (after `src/model.py`)``.

    \b
    Examples:
      planforge plan decompose docs/design.md
      planforge plan decompose - --json < plan.md | jq '.[].files'
    """
    from planforge.app.items import phase_views
    from planforge.documents.phases import decompose as decomposed

    text = inputs.text(file)
    present = phase_views.present_in(Path.cwd(), text)
    phases = decomposed(text, max_files=max_files, parallel=parallel, present=present)
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
    show(found, lambda _: page(phases, *terminal()))


def page(phases: tuple[Phase, ...], columns: int, lines: int) -> str:
    """One line a phase, cut to the size of the terminal; the last phase, the audit, is always shown."""
    rows = [_row(phase, (columns or PIPED) - len(phases[-1].id) - len("implement") - 4) for phase in phases]
    room = lines - 3 if columns else len(rows)
    shown = rows if len(rows) <= room else [*rows[: room - 1], rows[-1]]
    text = "\n".join(cut(line, columns or PIPED) for line in table(shown).split("\n"))
    if left := len(rows) - len(shown):
        text += f"\n… {left:,} more phases before the last; `--json` has them"
    return text


def _row(phase: Phase, room: int) -> tuple[str, str, str, str]:
    waits = min(AFTER, room // 2)
    after = f"after {listed(phase.depends_on, waits - 6)}" if phase.depends_on else ""
    return phase.id, phase.kind.value, listed(phase.files, room - waits - 2) or "-", after
