"""`planforge budget`: costs and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from planforge.interfaces.cli.caller import here
from planforge.interfaces.cli.layout import table
from planforge.interfaces.cli.output import JsonCommand, show
from planforge.kernel.wording import money

if TYPE_CHECKING:
    from planforge.kernel.budgets import Account


@click.command(cls=JsonCommand)
def budget() -> None:
    """Show what runs, plans, steps and roles have spent and may still spend

    If an agent did not report its usage, the amount reserved for it counts as spent; `unknown` is the number
    of such amounts. Set limits in `planforge.toml` under `[budget]`. A run that would exceed one waits for a
    person. With --json, money is in millionths.

    \b
    Example:
      planforge budget --json | jq '.[] | select(.left.tokens == 0).scope'
    """
    from planforge.kernel.budgets import accounts

    show(accounts(here().ledger), _page)


def _page(found: list[Account]) -> str:
    rows = [row for account in found for row in _rows(account)]
    if not rows:
        return "nothing spent yet"
    return table([("scope", "kind", "limit", "spent", "reserved", "left", "unknown"), *rows])


def _rows(account: Account) -> list[tuple[str, ...]]:
    """A line for each kind that is limited or used; the first also has the unknown amounts."""
    rows: list[tuple[str, ...]] = []
    for kind in ("tokens", "money", "seconds", "attempts"):
        limit, left = getattr(account.limits, kind), getattr(account.left, kind)
        spent, aside = getattr(account.spent, kind), getattr(account.reserved, kind)
        if limit is None and not spent and not aside:
            continue
        numbers = (_told(kind, limit), _told(kind, spent), _told(kind, aside), _told(kind, left))
        unknown = str(account.unknown) if account.unknown and not rows else ""
        rows.append((account.scope if not rows else "", kind, *numbers, unknown))
    return rows


def _told(kind: str, amount: int | None) -> str:
    if amount is None:
        return "-"
    return money(amount) if kind == "money" else str(amount)
