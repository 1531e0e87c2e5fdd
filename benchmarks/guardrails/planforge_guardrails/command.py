"""`planforge bench guardrails`: the benchmark as a command of Planforge."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TextIO

import click

from planforge.interfaces.cli.layout import table
from planforge.interfaces.cli.output import JsonCommand, show
from planforge_guardrails import bench, report_html, report_text
from planforge_guardrails.cases import chosen


@click.command(cls=JsonCommand)
@click.option("--only", multiple=True, metavar="CASE", help="Only this case; can be repeated.")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="Only this group; can be repeated.")
@click.option(
    "--workflow",
    "workflows",
    multiple=True,
    metavar="NAME",
    help="Only in this workflow; can be repeated.",
)
@click.option("--sample", is_flag=True, help="One case of each group, in about a minute.")
@click.option("--list", "listed", is_flag=True, help="Show the cases and run none.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=lambda: (os.cpu_count() or 1) + 1,
    show_default="one more than there are cores",
    help="How many cases run at once.",
)
@click.option(
    "--done",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Save results to this file, and skip the cases that it has already.",
)
@click.option(
    "--baseline/--no-baseline", default=True, help="Also run the cases without an orchestrator; the default."
)
@click.option("--orchestrator", default="planforge", metavar="NAME", help="Measure another orchestrator.")
@click.option(
    "--settings",
    metavar="FILE",
    type=click.File(),
    help="Compare these settings with the defaults, to see what a gate is worth.",
)
@click.option(
    "--html",
    metavar="FILE",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Also write the report to this file, as one static page.",
)
def guardrails(
    only: tuple[str, ...],
    groups: tuple[str, ...],
    workflows: tuple[str, ...],
    sample: bool,
    listed: bool,
    jobs: int,
    done: Path | None,
    baseline: bool,
    orchestrator: str,
    settings: TextIO | None,
    html: Path | None,
) -> int:
    """Run agents that misbehave, and measure what is caught

    Each case is a scripted agent that misbehaves, and an honest twin. Both work in a sample repository, in
    every workflow that fits the case. Planforge then inspects the repository, its surroundings and the
    processes; it believes nothing that the orchestrator says. Needs no model, no account and no repository;
    Linux only.

    Exits with 0 if everything that can be caught was caught before it landed, every honest twin landed,
    nothing was lost, no process was left and every exit code was true; otherwise with 1.

    \b
    Examples:
      planforge bench guardrails --sample
      planforge bench guardrails --html guardrails.html
      planforge bench guardrails --group tests --only "hook planter" --no-baseline
      planforge bench guardrails --workflow fix --workflow "plan run"
      planforge bench guardrails --json --done build/guardrails.jsonl > guardrails.json
      planforge bench guardrails --orchestrator bare
    """
    cases = chosen(only, groups, workflows, sample=sample)
    if listed:
        rows = [(case.group, case.name, case.workflow.value, case.about) for case in cases]
        document = {
            "cases": [
                {"name": case.name, "group": case.group, "workflow": case.workflow.value, "about": case.about}
                for case in cases
            ]
        }
        show(document, table(rows))
        return 0
    report = bench.measure(
        cases,
        orchestrator=orchestrator,
        baseline=baseline,
        at_once=jobs,
        done=done,
        settings=settings.read() if settings else "",
        tell=lambda progress: click.echo(report_text.progress_line(progress), err=True),
    )
    if html is not None:
        html.write_text(report_html.page(report))
    show(report, report_text.told)
    return 0 if report.passed else 1
