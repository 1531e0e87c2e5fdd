"""`planforge states`: the status diagrams."""

from __future__ import annotations

from pathlib import Path

import click

from planforge.documents.pictures import machine as pictures
from planforge.documents.pictures.machine import Arrow
from planforge.interfaces.cli.layout import paragraphs, table
from planforge.interfaces.cli.output import JsonCommand, show, write_file
from planforge.interfaces.cli.typed import line
from planforge.kernel.work.lifecycle import Machine
from planforge.kernel.work.lifecycle.tables import MACHINES, named


@click.command(cls=JsonCommand)
@click.argument("name", required=False)
@click.option(
    "--svg", type=click.Path(path_type=Path, dir_okay=False), help="Write the diagram to this file, as SVG."
)
def states(name: str | None, svg: Path | None) -> None:
    """Show the status diagrams of plans, phases, tasks and others

    Without NAME, lists the diagrams.

    \b
    Examples:
      planforge states
      planforge states plan
      planforge states task --svg task.svg
    """
    if name is None:
        listed = [(each.name, str(len(each.states)), each.about) for each in MACHINES.values()]
        show(list(MACHINES.values()), table(listed))
        return
    found = named(name)
    arrows = [
        Arrow(source=row.source, target=row.target, label=row.event, person=row.person)
        for row in found.transitions
    ]
    if svg is not None:
        write_file(svg, pictures.as_svg(found.name, found.about, found.states, arrows, found.final))
    show(
        found, lambda found: paragraphs(pictures.as_text(found.states, arrows, found.final), _commands(found))
    )


def _commands(found: Machine) -> str:
    """The events that have a command, each with it."""
    typed = dict.fromkeys((row.event, line(row.action)) for row in found.transitions if row.action)
    return table(list(typed))
