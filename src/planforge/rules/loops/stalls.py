"""
Loops that go on as long as they get somewhere.

Strictly fewer open points than the round before is progress; a round whose tests all pass is further along
than any whose tests fail, however many findings its review has. Without progress for a while the approach is
changed, once; without progress after that, or at the ceiling, a person has to choose.
"""

from __future__ import annotations

import itertools

from planforge.kernel.wording import counted
from planforge.rules.findings import Severity
from planforge.rules.loops.decisions import Decision, Done, Escalate, Halt, Replan
from planforge.rules.loops.guards import Guard, Look
from planforge.rules.loops.rounds import History, Round, in_a_row
from planforge.rules.verdicts import Verdict

APPROACHES = 2
"""The first one, and the one after the only replan."""


def nothing_open() -> Guard:
    """Done when the tests pass, nothing required is open and the reviewer does not object."""

    def look(history: History) -> Look:
        latest = history[-1]
        failing, required = _open(latest)
        tests = latest.tests
        green = tests is None or tests.all_pass
        done = green and required == 0 and latest.decided is Verdict.APPROVED
        numbers = {"failing": failing, "required": required}
        saw = f"{counted(failing, 'failing test')}, {counted(required, 'required finding')}"
        if tests is not None and tests.total == 0:
            saw = "there are no tests, so nothing says that it works"
        decision = Done("all tests pass and nothing required is open", numbers) if done else None
        return Look(guard="open", saw=saw, numbers=numbers, decision=decision)

    return look


def stall(limit: int, ceiling: int) -> Guard:
    """After `limit` rounds without progress another approach, after as many more a person."""
    if limit < 1 or ceiling < 1:
        raise ValueError("a loop needs room for at least one round")

    def look(history: History) -> Look:
        stalls, approach = _stalls(history, limit)
        retries = len(history) - 1
        numbers = {
            "stalls": stalls,
            "limit": limit,
            "retries": retries,
            "ceiling": ceiling,
            "approach": approach,
        }
        stalled = f"{counted(stalls, 'round')} without progress"
        saw = f"{stalled}, {retries} of {ceiling} retries, approach {approach}"
        decision: Decision | None = None
        if approach > APPROACHES:
            reason = f"diagnosis: the second approach got no further in {counted(limit, 'round')} either"
            decision = Escalate(reason, numbers)
        elif retries >= ceiling:
            decision = Escalate(f"diagnosis: {retries} retries are as many as there may be", numbers)
        elif approach == APPROACHES and _stalls(history[:-1], limit)[1] < APPROACHES:
            decision = Replan(f"no progress in {counted(limit, 'round')}: another approach", numbers)
        return Look(guard="stall", saw=saw, numbers=numbers, decision=decision)

    return look


def _stalls(history: History, limit: int) -> tuple[int, int]:
    """How many rounds in a row there was no progress, and which approach this is."""
    stalls, approach = 0, 1
    for before, after in itertools.pairwise(history):
        stalls = 0 if _measure(after) < _measure(before) else stalls + 1
        if stalls >= limit:
            stalls, approach = 0, approach + 1
    return stalls, approach


def _measure(item: Round) -> tuple[int, int]:
    """What must get smaller: failing tests first, and when none fails, required findings."""
    failing, required = _open(item)
    blind = item.tests is not None and item.tests.total == 0
    return (1, failing) if failing or blind else (0, required)


def _open(item: Round) -> tuple[int, int]:
    failing = item.tests.total - item.tests.passed if item.tests else 0
    required = sum(finding.severity is Severity.BLOCKING for finding in item.findings)
    return failing, required


def same_tests_fail(times: int) -> Guard:
    """The very same tests failing so many rounds in a row: whoever builds is stuck."""

    def look(history: History) -> Look:
        wanted = _failing(history[-1])
        same = in_a_row(history, lambda item: _failing(item) == wanted) if wanted else 0
        numbers = {"same": same, "limit": times}
        saw = (
            f"the same {counted(len(wanted), 'failing test')} in {counted(same, 'round')} in a row"
            if wanted
            else "no test is known to fail"
        )
        decision = Halt(f"stuck: {saw}", numbers) if wanted and same >= times else None
        return Look(guard="same tests", saw=saw, numbers=numbers, decision=decision)

    return look


def _failing(item: Round) -> frozenset[str]:
    return frozenset(item.tests.failing) if item.tests else frozenset()


def task_fails(times: int) -> Guard:
    """Whoever works on one task ended badly so many times in a row."""

    def look(history: History) -> Look:
        task = history[-1].task
        failed = in_a_row(history, lambda item: item.task == task and bool(item.exit_code))
        numbers = {"failed": failed, "limit": times}
        saw = f"the work on `{task}` failed {counted(failed, 'time')} in a row"
        decision = Halt(f"stuck: {saw}", numbers) if failed >= times else None
        return Look(guard="task", saw=saw, numbers=numbers, decision=decision)

    return look
