"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])

WHY = "Why; recorded with your name."

reason_option = click.option("--reason", required=True, metavar="TEXT", help=WHY)
optional_reason_option = click.option("--reason", default="", metavar="TEXT", help=WHY)
given_up_option = click.option(
    "--reason", default="it is not wanted any more", metavar="TEXT", help="Why, for the record."
)


def actor_option(who: str) -> Callable[[Function], Function]:
    """`--as NAME`; `who` begins its help, as in `Who decides`."""
    return click.option("--as", "actor", metavar="NAME", help=f"{who}; by default you, as git knows you.")
