"""
What a run may cost: put aside before an agent is asked, settled when it has answered.

Limits come from `[budget]` in `planforge.toml` and are read when a run is driven,
so raising one and resuming the run is the way on. What an agent did not report
counts as what was put aside for it, and so does the call of a process that died.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

from planforge.actions import Action, Advice
from planforge.app import places
from planforge.app.settings import BudgetSettings, Limits
from planforge.errors import BudgetGone
from planforge.kernel import budgets
from planforge.kernel.budgets import Account
from planforge.kernel.effects import Access, AgentAnswer, RunAgent, Usage
from planforge.kernel.events import Amounts, BudgetSet

if TYPE_CHECKING:
    from planforge.app.project import Project
    from planforge.kernel.driver import Call

SETTINGS = {"tokens": "tokens", "money": "money", "seconds": "minutes", "attempts": "attempts"}
"""What each kind is called in the settings."""


class Bill:
    """What one call has come to, as far as it is known."""

    tokens: int | None = None
    money: int | None = None
    context: int | None = None
    """How many tokens it had in its context, where it was stopped before it could say what it has used."""
    least = Amounts()
    """What it is known to have cost at the least, where it was cut short."""
    attempted = True
    """Whether it was an attempt at all, and not an agent that could not begin, or not go on, through no fault
    of its own."""
    reason = "it gave no answer"

    def settle(self, answer: AgentAnswer) -> None:
        """Take in what the agent says it cost."""
        if answer.usage is not None:
            self.tokens = answer.usage.input_tokens + answer.usage.output_tokens
        if answer.context is not None:
            self.context = answer.context.used
        self.money = answer.money
        self.reason = answer.stop_reason

    def note(self, usage: Usage | None, money: int | None, *, whole: bool) -> None:
        """Take in what a call that failed has cost: all of it, or at the least."""
        tokens = usage.input_tokens + usage.output_tokens if usage is not None else None
        if self.tokens is None and self.money is None:
            if whole:
                self.tokens, self.money = tokens, money
            else:
                self.least = Amounts(tokens=tokens, money=money)


class Spending:
    """Keeps the accounts of one run."""

    def __init__(self, project: Project, run: str, plan: str) -> None:
        self._project = project
        self._ledger = project.ledger
        self._run = run
        self._plan = plan
        self._under_way: set[asyncio.Future[None]] = set()
        """One for each call of this process that has not been settled."""

    @property
    def _settings(self) -> BudgetSettings:
        return self._project.settings.budget

    @asynccontextmanager
    async def on(self, effect: RunAgent, call: Call) -> AsyncIterator[Bill]:
        """Put aside what a call may cost while it goes on; however it ends, its bill is what was spent."""
        name = await self._reserved(effect, call)
        bill, started = Bill(), time.monotonic()
        settled = asyncio.get_running_loop().create_future()
        self._under_way.add(settled)
        try:
            yield bill
        finally:
            least = bill.least
            if bill.tokens is None and bill.context is not None:
                least = Amounts(tokens=bill.context)
            if least != Amounts():
                budgets.spend(self._ledger, name, least)
            spent = Amounts(
                tokens=bill.tokens,
                money=bill.money,
                seconds=math.ceil(time.monotonic() - started),
                attempts=_attempts(effect) if bill.attempted else 0,
            )
            budgets.reconcile(self._ledger, name, spent, bill.reason)
            self._under_way.discard(settled)
            settled.set_result(None)

    async def _reserved(self, effect: RunAgent, call: Call) -> str:
        """Put aside what a call may cost, as soon as the run's other calls leave room for it, and name it."""
        name, scopes, asked = self._name(call), self._scopes(effect), self._asked(effect)
        for scope, (_, limits) in scopes.items():
            self._allow(scope, limits)
        while True:
            try:
                budgets.reserve(self._ledger, name, tuple(scopes), asked)
            except BudgetGone as error:
                # What is put aside for a call that goes on may be more than it will have cost.
                if not self._under_way:
                    raise self._explained(error, scopes, asked) from error
                await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)
            else:
                return name

    def _name(self, call: Call) -> str:
        """A name that no earlier try of the same call has: what was put aside for that one stays spent."""
        first = f"{self._run}{call.key}"
        names = itertools.chain([first], (f"{first}#{number}" for number in itertools.count(2)))
        return next(name for name in names if budgets.find(self._ledger, name) is None)

    def _asked(self, effect: RunAgent) -> Amounts:
        settings = self._settings
        asked = Limits(
            tokens=settings.reserve_tokens,
            money=settings.reserve_money or None,
            minutes=settings.reserve_minutes,
        )
        return msgspec.structs.replace(asked.amounts, attempts=_attempts(effect))

    def _scopes(self, effect: RunAgent) -> dict[str, tuple[str, Limits | None]]:
        """What a call is charged to, with the setting that limits it and what that says."""
        settings = self._settings
        scopes = {
            f"run:{self._run}": ("budget.run", settings.run),
            f"plan:{self._plan}": ("budget.plan", settings.plan),
            f"role:{self._run}/{effect.role}": (
                f"budget.roles.{effect.role}",
                settings.roles.get(effect.role),
            ),
        }
        if effect.access is Access.WRITE:
            step = effect.worktree.rpartition("-")[0]
            scopes[f"step:{self._plan}/{step}"] = ("budget.step", settings.step)
        return scopes

    def _allow(self, scope: str, limits: Limits | None) -> None:
        """Do as the settings say. A limit that is gone from them is lifted, unless somebody else set it."""
        if limits is not None:
            budgets.allow(self._ledger, scope, limits.amounts, places.SETTINGS)
        elif budgets.account(self._ledger, scope).limits != Amounts() and self._is_ours(scope):
            budgets.allow(self._ledger, scope, Amounts(), places.SETTINGS)

    def _is_ours(self, scope: str) -> bool:
        actor = ""
        for recorded in self._ledger.stream(budgets.STREAM):
            if isinstance(recorded.event, BudgetSet) and recorded.event.scope == scope:
                actor = recorded.event.actor
        return actor == places.SETTINGS

    def _explained(
        self, error: BudgetGone, scopes: dict[str, tuple[str, Limits | None]], asked: Amounts
    ) -> BudgetGone:
        """The same refusal, with the setting to change and how to resume."""
        raised = [
            f"`{setting}.{SETTINGS[kind]}`"
            for scope, (setting, limits) in scopes.items()
            for kind in _short(budgets.account(self._ledger, scope), asked)
            if limits is not None
        ]
        what = (
            f"raise {' and '.join(raised)} in `{places.SETTINGS}`"
            if raised
            else f"allow it more ({error.hint})"
        )
        message = f"the budget is used up: {error.message}"
        return BudgetGone(message, Advice("{}, then run {}", what, Action("resume", self._run)))


def _short(account: Account, asked: Amounts) -> list[str]:
    """The kinds of which less is left than is asked for."""
    found = []
    for kind in budgets.KINDS:
        left, wanted = getattr(account.left, kind), getattr(asked, kind)
        if left is not None and left < (1 if wanted is None else wanted):
            found.append(kind)
    return found


def _attempts(effect: RunAgent) -> int:
    """A change that another agent goes on with is the same attempt."""
    return 1 if effect.access is Access.WRITE and effect.turn <= 1 else 0
