"""`planforge pipeline`: list, check and run pipelines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from planforge.interfaces.cli.caller import here, settings_root
from planforge.interfaces.cli.layout import table
from planforge.interfaces.cli.output import JsonGroup, show
from planforge.kernel.wording import counted

if TYPE_CHECKING:
    from planforge.app.tasks.pipelines import Checked
    from planforge.rules.pipelines import Pipeline


@click.group(cls=JsonGroup)
def pipeline() -> None:
    """Take a request through stages, reviews and gates"""


@pipeline.command("list")
def list_() -> None:
    """List the pipelines: your own and the built-in ones

    \b
    Examples:
      planforge pipeline list
    """
    from planforge.app.tasks import pipelines

    found = pipelines.known(settings_root())
    show(found, table([(each.name, " → ".join(stage.name for stage in each.stages)) for each in found]))


@pipeline.command("show")
@click.argument("name")
def show_(name: str) -> None:
    """Show the stages of a pipeline

    \b
    Examples:
      planforge pipeline show default
    """
    from planforge.app.tasks import pipelines

    show(pipelines.find(settings_root(), name), _shown)


@pipeline.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
def check(names: tuple[str, ...]) -> int:
    """Prove that nothing lands past the gates of a pipeline

    Walks through every possible course of the pipeline. Reports a path to landing without an approval of
    exactly what lands, a stage that is never reached, an endless loop, a gate that waits for a verdict that
    no stage gives, and unknown names. Exits with 1 if it finds one.

    \b
    Examples:
      planforge pipeline check
      planforge pipeline check default --json
    """
    from planforge.app.tasks import pipelines

    found = pipelines.check(settings_root(), names)
    show(found, lambda found: map(_checked, found))
    return 0 if all(each.clean for each in found) else 1


@pipeline.command()
@click.argument("name")
@click.argument("request")
def run(name: str, request: str) -> int:
    """Open a task for REQUEST and take it through the pipeline NAME

    REQUEST is what you want, in your words; `-` reads it from standard input. The task has its own directory
    for documents. The change lands on the branch `planforge/TASK` once every required stage has approved
    exactly that change. Exits with 5 if a gate stopped the task and with 6 if a person has to decide;
    `planforge task show` lists the next commands.

    \b
    Examples:
      planforge pipeline run default "Add rate limiting to the webhook"
      planforge pipeline run bug-quick - < report.md
    """
    from planforge.app import tasks
    from planforge.interfaces.cli import inputs
    from planforge.interfaces.cli.foreground import drive

    project = here()
    return drive(project, tasks.begin(project, name, inputs.request_text(request)))


def _checked(found: Checked) -> str:
    if found.clean:
        return f"✓ {found.pipeline}: clean ({found.states} states)"
    return "\n".join([f"✗ {found.pipeline}", *(f"  {fault}" for fault in found.faults)])


def _shown(found: Pipeline) -> list[str]:
    lines = [f"{found.name}: {found.about}" if found.about else found.name]
    for index, stage in enumerate(found.stages):
        lines.append(f"\n{stage.name} ({stage.role}{', lands' if stage.lands else ''})")
        lines += [f"  gate     {line}" for line in stage.gate.splitlines()]
        lines += [f"  output   {line}" for line in stage.outputs.splitlines()]
        if stage.verdict:
            back = found.stages[found.back_to(index)].name
            lines.append(f"  verdict  {stage.verdict} of {' and '.join(stage.judges)}")
            lines.append(f"  revision back to {back}, at most {counted(stage.max_iterations, 'time')}")
    if found.requires:
        lines.append(f"\nLands only what {', '.join(found.requires)} approved.")
    return lines
