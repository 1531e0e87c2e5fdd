"""`planforge policy`: list loop policies and simulate one."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from planforge.documents.pictures import course
from planforge.documents.pictures.course import Bar
from planforge.errors import InvalidInput
from planforge.interfaces.cli import inputs
from planforge.interfaces.cli.layout import table
from planforge.interfaces.cli.output import JsonGroup, show, write_file
from planforge.rules.loops import simulation
from planforge.rules.loops.policies import POLICIES, named
from planforge.rules.loops.simulation import Simulation


@click.group(cls=JsonGroup)
def policy() -> None:
    """List the loop policies, and simulate one"""


@policy.command("list")
def list_() -> None:
    """List the policies with their settings

    \b
    Examples:
      planforge policy list
    """
    found, rows = [], []
    for name, known in POLICIES.items():
        settings = {field.name: field.default for field in msgspec.structs.fields(known.settings)}
        found.append({"policy": name, "about": known.about, "settings": settings})
        values = " ".join(f"{key}={str(value).lower()}" for key, value in settings.items())
        rows.append((name, known.about, values))
    show(found, table(rows))


@policy.command()
@click.argument("trajectory", metavar="TRAJECTORY.json", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--policy", "name", required=True, metavar="NAME", help="See `planforge policy list`.")
@click.option(
    "--set",
    "pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Change a setting of the policy; can be repeated.",
)
@click.option("--plot", is_flag=True, help="Plot the iterations in the terminal.")
@click.option(
    "--svg", type=click.Path(path_type=Path, dir_okay=False), help="Plot the iterations to this file."
)
def simulate(trajectory: Path, name: str, pairs: tuple[str, ...], plot: bool, svg: Path | None) -> None:
    """Show what every guard saw in each iteration, and which one fired

    TRAJECTORY.json is a list of iterations, each with `issues` (severity, description) and optionally
    `post_fix_issues` and `tests` {total, passed, failed}; `-` reads standard input.

    \b
    Examples:
      planforge policy simulate course.json --policy convergence
      planforge policy simulate course.json --policy convergence --set medium_max=2 --plot
      planforge policy simulate course.json --policy progress --json
    """
    seen = simulation.simulate(named(name, _settings(pairs)), simulation.trajectory(inputs.text(trajectory)))
    if svg is not None:
        _draw(seen, svg)
    show(seen, lambda seen: _told(seen, plot=plot))


def _settings(pairs: tuple[str, ...]) -> dict[str, object]:
    values: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise InvalidInput(f"`--set {pair}` is not NAME=VALUE")
        values[key.strip()] = value.strip()
    return values


def _told(seen: Simulation, *, plot: bool) -> str:
    parts = []
    if plot:
        parts.append(course.as_text(_bars(seen)))
    for item in seen.iterations:
        counts = item.counts
        found = f"{counts.critical} critical, {counts.medium} medium, {counts.minor} minor"
        head = f"iteration {item.iteration}: {found}"
        rows = [("✗" if look.decision else " ", look.guard, look.saw) for look in item.looks]
        what = f"{type(item.decision).__name__.lower()}: {item.decision.reason}"
        parts.append(f"{head}\n{table(rows)}\n→ {what}")
    if not seen.ended:
        parts.append("The trajectory ends before the loop does.")
    return "\n\n".join(parts)


def _bars(seen: Simulation) -> list[Bar]:
    return [
        Bar(
            label=str(item.iteration),
            counts=item.counts,
            note=f"{type(item.decision).__name__.lower()} ({item.fired})" if item.fired else "",
        )
        for item in seen.iterations
    ]


def _draw(seen: Simulation, path: Path) -> None:
    last = seen.decision
    ending = f"{type(last).__name__.lower()} at iteration {len(seen.iterations)}: {last.reason}"
    write_file(path, course.as_svg(_bars(seen), f"policy {seen.policy}", ending))
