"""`planforge states`: the status diagrams."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from planforge.interfaces.cli.printing import table
from planforge.interfaces.cli.show import json_option, show, talk
from planforge.interfaces.cli.typed import line

if TYPE_CHECKING:
    from planforge.kernel.work.lifecycle import Machine


@click.command()
@click.argument("name", required=False)
@click.option(
    "--svg", type=click.Path(path_type=Path, dir_okay=False), help="Write the diagram to this file, as SVG."
)
@json_option
def states(name: str | None, svg: Path | None, as_json: bool) -> None:
    """Show the status diagrams of plans, phases, tasks and others

    Without NAME, lists the diagrams.

    \b
    Examples:
      planforge states
      planforge states plan
      planforge states task --svg task.svg
    """
    from planforge.documents.pictures import machine as pictures
    from planforge.documents.pictures.machine import Arrow
    from planforge.kernel.work.lifecycle.tables import MACHINES, named

    if name is None:
        listed = [(each.name, str(len(each.states)), each.about) for each in MACHINES.values()]
        show(list(MACHINES.values()), lambda: table(listed), as_json=as_json)
        return
    found = named(name)
    arrows = [
        Arrow(source=row.source, target=row.target, label=row.event, person=row.person)
        for row in found.transitions
    ]
    if svg is not None:
        _write(svg, pictures.as_svg(found.name, found.about, found.states, arrows, found.final))
        talk(f"wrote {svg}")
    show(
        found,
        lambda: pictures.as_text(found.states, arrows, found.final) + _commands(found),
        as_json=as_json,
    )


def _commands(found: Machine) -> str:
    """What a person types, where there are commands for it."""
    typed = dict.fromkeys((row.event, line(row.action)) for row in found.transitions if row.action)
    return f"\n\n{table(list(typed))}" if typed else ""


def _write(path: Path, drawn: str) -> None:
    from planforge.errors import NotFound

    try:
        path.write_text(drawn, encoding="utf-8")
    except OSError as error:
        raise NotFound(f"cannot write `{path}`: {error.strerror}") from error
