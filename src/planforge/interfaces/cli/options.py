"""Options that several commands have."""

from __future__ import annotations

import click

reason_option = click.option("--reason", required=True, metavar="TEXT", help="Why; recorded with your name.")
given_up_option = click.option(
    "--reason", default="it is not wanted any more", metavar="TEXT", help="Why, for the record."
)
actor_option = click.option(
    "--as", "actor", metavar="NAME", help="Who decides; by default you, as git knows you."
)
