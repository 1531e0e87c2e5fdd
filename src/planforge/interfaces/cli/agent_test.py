"""`planforge agent test`: checks of what an agent really does, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from planforge.interfaces.cli.printing import table
from planforge.interfaces.cli.show import json_option, show, talk
from planforge.kernel.wording import counted

if TYPE_CHECKING:
    from planforge.app.conformance import Checked, Conformance

WIDTH = 100
"""Columns of an observation that are shown; the JSON has all of it."""


@click.command("test")
@click.argument("name")
@click.option("--live", is_flag=True, help="Use the agent's own service, which may cost money.")
@click.option("--only", "only", multiple=True, metavar="CHECK", help="Only this check; can be repeated.")
@json_option
def test(name: str, live: bool, only: tuple[str, ...], as_json: bool) -> int:
    """Test what an agent really does

    The checks: write, read-only, resume, cancel, time-out, usage, errors.

    The agent works in a temporary repository. A scripted model on this machine answers it, so it costs
    nothing and needs no login. Exits with 0 only if every check passed.

    \b
    Examples:
      planforge agent test claude
      planforge agent test codex --only write --only read-only
      planforge agent test my-agent --live
    """
    import asyncio

    from planforge.app import conformance

    def told(checked: Checked) -> None:
        if not as_json:
            talk(f"  {checked.check}: {checked.outcome}")

    found = asyncio.run(conformance.of(name, live=live, only=only, told=told))
    show(found, lambda: drawn(found), as_json=as_json)
    return 0 if found.conforms else 1


def drawn(found: Conformance) -> str:
    """The table and a summary."""
    rows = [("check", "outcome", "seconds", "what was seen")]
    rows += [(line.check, line.outcome, f"{line.seconds:.1f}", _short(line.seen)) for line in found.checks]
    passed = sum(line.outcome == "passed" for line in found.checks)
    where = "its own service" if found.service == "live" else "a scripted model on loopback"
    started = "" if found.startup is None else f"; it started in {found.startup:.1f} s"
    summary = (
        f"`{found.agent}` passed {passed} of {counted(len(found.checks), 'check')} against {where}{started}"
    )
    return f"{table(rows)}\n\n{summary}"


def _short(text: str) -> str:
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return plain if len(plain) <= WIDTH else f"{plain[: WIDTH - 1]}…"
