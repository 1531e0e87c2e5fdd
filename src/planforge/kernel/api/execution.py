"""One attempt from start to end: budget, lease, work, proposal, check, then accepted or rejected."""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from inspect import isawaitable
from math import ceil
from typing import Any, ParamSpec, TypeVar

import msgspec

from planforge.errors import PlanforgeError
from planforge.kernel import budgets
from planforge.kernel.api.shapes import (
    TTL,
    AnyVerify,
    AnyWork,
    Assignment,
    StepOutcome,
    Verify,
    Work,
)
from planforge.kernel.api.steps import Attempts
from planforge.kernel.events import Amounts
from planforge.kernel.evidence import Evidence
from planforge.kernel.graph import steps as lookup

NOTHING = Amounts(tokens=0, money=0, seconds=0, attempts=0)

Given = ParamSpec("Given")
Value = TypeVar("Value")


class Steps(Attempts):
    """Attempts at steps, command by command or as a whole."""

    def execute(
        self,
        step: str,
        work: Work,
        verify: Verify,
        *,
        holder: str = "",
        base: str = "",
        ttl: timedelta = TTL,
        baseline: Evidence | None = None,
        budget: Amounts | None = None,
        role: str = "",
    ) -> StepOutcome:
        """
        Have `work` make a change and `verify` check it, then accept or reject it as the evidence says.

        The files are leased, and the lease renewed while this goes on. With a `budget`, that much is first
        put aside for the step, its plan and the `role`, or nothing starts (`BudgetGone`). Whatever is raised
        on the way reaches the caller, after the attempt was rejected and the files were given back.
        """
        bill = _Bill()
        with self._budgeted(step, budget, role, bill):
            assignment = self.start(step, holder=holder, base=base, ttl=ttl)
            bill.started()
            try:
                with self._renewed(assignment, ttl):
                    proposal = work(assignment)
                    bill.spent = proposal.spent
                    self.propose(assignment, proposal)
                    evidence = verify(assignment, proposal)
                    if self.verify(assignment, evidence):
                        return self.accept(assignment, proposal, evidence, baseline=baseline)
                    return self.reject(assignment, evidence.reason)
            except BaseException as error:
                self._end(assignment, error)
                raise

    async def execute_in_thread(
        self, step: str, work: AnyWork, verify: AnyVerify, **options: Any
    ) -> StepOutcome:
        """
        `execute` without holding up the event loop, with the same options.

        `work` and `verify` may be plain functions, called in a thread, or `async def`, awaited in this loop.
        Who cancels it waits until what is under way has ended; then the attempt is rejected.
        """
        bridge = _Bridge()
        call = partial(self.execute, step, bridge.plain(work), bridge.plain(verify), **options)
        done = asyncio.ensure_future(asyncio.to_thread(call))
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            bridge.stop()
            await asyncio.wait([done])
            if not done.cancelled():
                done.exception()  # it is known, and not what the caller must hear of
            raise

    def _end(self, assignment: Assignment, error: BaseException) -> None:
        """Leave the step free for others. What cannot be done about that must not hide what went wrong."""
        reason = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")[:500]
        try:
            self.reject(assignment, reason)
        except PlanforgeError:  # it is not under way any more: rescoped, taken over, or done
            with suppress(PlanforgeError):
                self.release(assignment, reason)

    @contextmanager
    def _renewed(self, assignment: Assignment, ttl: timedelta) -> Iterator[None]:
        """Keep the lease alive. Should it be lost all the same, accepting the change says so."""
        over = threading.Event()

        def renew() -> None:
            while not over.wait(ttl.total_seconds() / 3):
                with suppress(PlanforgeError):
                    self.renew(assignment, ttl)

        thread = threading.Thread(target=renew, name=f"lease of {assignment.step}", daemon=True)
        if assignment.fence:
            thread.start()
        try:
            yield
        finally:
            over.set()
            if assignment.fence:
                thread.join()

    @contextmanager
    def _budgeted(self, step: str, budget: Amounts | None, role: str, bill: _Bill) -> Iterator[None]:
        if budget is None:
            yield
            return
        view = lookup.current(self._ledger, step)
        scopes = (f"plan:{view.plan}", f"step:{view.plan}/{view.step}", *([f"role:{role}"] if role else []))
        # A name of its own: two who try the same step must not reconcile each other's reservation.
        name = f"{view.node}@{secrets.token_hex(8)}"
        budgets.reserve(self._ledger, name, scopes, budget)
        reason = "done"
        try:
            yield
        except BaseException as error:
            reason = type(error).__name__
            raise
        finally:
            budgets.reconcile(self._ledger, name, bill.total(), reason)


class _Bill:
    """What an attempt came to."""

    def __init__(self) -> None:
        self.spent = Amounts()
        self._began: float | None = None

    def started(self) -> None:
        """From now on it costs something."""
        self._began = time.monotonic()

    def total(self) -> Amounts:
        """Nothing if it never started; otherwise what is known, and the time and the attempt always are."""
        if self._began is None:
            return NOTHING
        seconds = ceil(time.monotonic() - self._began)
        return msgspec.structs.replace(
            self.spent,
            seconds=max(self.spent.seconds or 0, seconds),
            attempts=max(self.spent.attempts or 0, 1),
        )


class _Bridge:
    """Calls functions from a thread, in the loop where they are `async def`, until it is stopped."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopped = False
        self._running: set[Future[Any]] = set()

    def plain(self, function: Callable[Given, Value | Awaitable[Value]]) -> Callable[Given, Value]:
        """The function, to be called from a thread."""

        def call(*args: Given.args, **options: Given.kwargs) -> Value:
            self._require_going()
            found = function(*args, **options)
            value: Value = self._awaited(found) if isawaitable(found) else found
            self._require_going()
            return value

        return call

    def stop(self) -> None:
        """Cancel what is awaited, and call nothing more."""
        self._stopped = True
        for future in list(self._running):
            future.cancel()

    def _awaited(self, waiting: Awaitable[Value]) -> Value:
        async def wait() -> Value:
            return await waiting

        future = asyncio.run_coroutine_threadsafe(wait(), self._loop)
        self._running.add(future)
        try:
            if self._stopped:
                future.cancel()
            return future.result()
        finally:
            self._running.discard(future)

    def _require_going(self) -> None:
        if self._stopped:
            raise asyncio.CancelledError
