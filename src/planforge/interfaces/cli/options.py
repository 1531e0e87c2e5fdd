"""Options that several commands have."""

from __future__ import annotations

import click

reason_option = click.option(
    "--reason", required=True, metavar="TEXT", help="Why; it is kept on record with your name."
)
actor_option = click.option(
    "--as", "actor", metavar="NAME", help="Who decides; otherwise it is you, as git knows you."
)
