"""`planforge lease`: list and release leases."""

from __future__ import annotations

import click

from planforge.app.runs import leases
from planforge.app.runs.leases import LeaseList
from planforge.interfaces.cli.caller import here
from planforge.interfaces.cli.event_words import moment
from planforge.interfaces.cli.layout import paragraphs, section
from planforge.interfaces.cli.options import reason_option
from planforge.interfaces.cli.output import JsonGroup, show


@click.group(cls=JsonGroup)
def lease() -> None:
    """List and release file leases

    A lease allows one holder to change some files until a time. Its fence is a number that only rises. A
    change with the fence of an ended lease does not land.
    """


@lease.command(name="list")
def list_() -> None:
    """Show who holds which files until when, and who waits

    Each line shows the fence, the holder, the time left and the paths.

    \b
    Examples:
      planforge lease list
      planforge lease list --json | jq '.leases[] | select(.seconds_left < 60)'
    """
    show(leases.listed(here()), _listed)


@lease.command()
@click.argument("name", metavar="FENCE|PATH")
@reason_option
def release(name: str, reason: str) -> None:
    """Take a lease away from its holder

    FENCE is its number. PATH is one of its paths or globs, or a file that it covers (write `./12` for a file
    named `12`). The holder is not stopped, but its changes under this lease cannot land any more. Exits with
    3 if there is no such lease.

    \b
    Examples:
      planforge lease release 12 --reason "its machine is gone"
      planforge lease release src/app.py --reason "needed for the hotfix"
    """
    taken = leases.take_away(here(), name, reason)
    paths = ", ".join(f"`{path}`" for path in taken.lease.paths)
    show(taken, f"took lease {taken.lease.fence} from `{taken.lease.holder}`: {paths}")


def _listed(found: LeaseList) -> str:
    held = [
        (
            str(item.fence),
            item.holder,
            f"{_span(item.seconds_left)} left",
            _clock(item.until),
            ", ".join(item.paths),
        )
        for item in found.leases
    ]
    waits = [
        (item.holder, f"behind {', '.join(item.behind)}", _clock(item.until), ", ".join(item.paths))
        for item in found.waiting
    ]
    behind = (
        f"The clock is {_span(found.clock_behind_seconds)} behind the newest event about leases; "
        "none expires until the clock has caught up."
    )
    return paragraphs(
        section("Leases", held) or "no file is leased",
        section("Waiting", waits),
        behind if found.clock_behind_seconds else "",
    )


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _clock(until: str) -> str:
    return f"until {moment(until)}"
