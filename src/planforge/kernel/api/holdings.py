"""Leases, budgets and handoffs, for other programs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from planforge.kernel import budgets, handoff, leases
from planforge.kernel.api.shapes import TTL, Assignment, Commands
from planforge.kernel.api.steps import assignment_of
from planforge.kernel.budgets import Account
from planforge.kernel.continuation import TouchedFile
from planforge.kernel.events import Amounts
from planforge.kernel.graph import steps
from planforge.kernel.graph.attempts import require_attempt
from planforge.kernel.handoff import AgentContext
from planforge.kernel.leases.rules import Lease, Waiting
from planforge.kernel.tokens import TokenState


class Leases(Commands):
    """Who may change which files."""

    def claim(self, holder: str, paths: Iterable[str], *, ttl: timedelta = TTL) -> Lease:
        """Take all of the paths, or raise `LeaseHeld` naming who has one of them."""
        return leases.claim(self._ledger, holder, tuple(paths), ttl=ttl)

    def wait(self, holder: str, paths: Iterable[str], *, ttl: timedelta = TTL, patience: timedelta) -> Lease:
        """Take all of the paths, waiting in line if need be; `LeaseHeld` when patience is over."""
        return leases.wait(self._ledger, holder, tuple(paths), ttl=ttl, patience=patience)

    def renew(self, lease: Lease, ttl: timedelta = TTL) -> Lease:
        """Keep it for at least `ttl` from now, or raise `StaleFence`."""
        return leases.renew(self._ledger, lease.holder, lease.fence, ttl)

    def release(self, lease: Lease, reason: str = "no longer needed") -> None:
        """Give it back, or raise `StaleFence` if it is gone."""
        leases.release(self._ledger, lease.holder, lease.fence, reason)

    def require(self, lease: Lease, paths: Iterable[str] = ()) -> Lease:
        """The lease as it is now, or `StaleFence`; `Unleased` if one of the files is beyond it."""
        return leases.require(self._ledger, lease.fence, tuple(paths), lease.holder)

    def held(self) -> list[Lease]:
        """Every lease that is live now, the oldest first."""
        return leases.held(self._ledger)

    def waiting(self) -> list[Waiting]:
        """Everybody who waits in line now."""
        return leases.waiting(self._ledger)


class Budgets(Commands):
    """What work may cost."""

    def allow(self, scope: str, limits: Amounts, *, actor: str) -> None:
        """Set what a scope may spend, such as `plan:plan-001`, `step:plan-001/load` or `role:auditor`."""
        budgets.allow(self._ledger, scope, limits, actor)

    def reserve(self, reservation: str, scopes: Iterable[str], amounts: Amounts) -> None:
        """Put aside what the next piece of work may cost, in all scopes or, with `BudgetGone`, in none."""
        budgets.reserve(self._ledger, reservation, tuple(scopes), amounts)

    def spend(self, reservation: str, amounts: Amounts) -> None:
        """Say what is known to be gone so far."""
        budgets.spend(self._ledger, reservation, amounts)

    def reconcile(self, reservation: str, spent: Amounts, reason: str = "done") -> None:
        """Record the actual cost; an unknown amount counts as what was put aside."""
        budgets.reconcile(self._ledger, reservation, spent, reason)

    def account(self, scope: str) -> Account:
        """How a scope stands."""
        return budgets.account(self._ledger, scope)


class Handoffs(Commands):
    """From an agent whose context is full to the next."""

    def emit(
        self,
        assignment: Assignment,
        context: TokenState,
        *,
        successor: str,
        files: Iterable[TouchedFile] = (),
        ttl: timedelta = TTL,
    ) -> str:
        """
        Hand the attempt over: record what the successor needs, pass the lease on, return the handoff's id.

        `files` is what was changed and not yet proposed. All of it is recorded, or nothing; asking again
        finds what was recorded. From then on nothing is taken from the one who handed over.
        """
        return handoff.emit(
            self._ledger,
            assignment.step,
            context,
            holder=assignment.holder,
            successor=successor,
            fence=assignment.fence,
            ttl=ttl,
            files=files,
        ).handoff

    def load(self, name: str) -> AgentContext:
        """The summary and the answers to its queries: all that the successor is told."""
        return handoff.load(self._ledger, name)

    def take(self, name: str, *, holder: str) -> Assignment:
        """Go on as the successor, under the lease that was passed on; `StaleFence` if that is gone by now."""
        handoff.find(self._ledger, name)
        node = name.rpartition("#")[0]
        attempt = steps.find(self._ledger, node).attempts
        view = require_attempt(self._ledger, node, max(attempt, 1))
        fence = handoff.fence_of(self._ledger, name)
        handoff.load(self._ledger, name, holder)
        return assignment_of(view, view.attempts, holder, fence)
