"""
The six guards of a polish loop: is it getting better, is it good enough, or is the reviewer inventing things?

All comparisons are of whole numbers, so that a threshold means the same on every machine. They are asked in
the order of `convergence`; the first that fires decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, takewhile

import msgspec

from planforge.rules.findings import Finding
from planforge.rules.loops.decisions import Done, Halt, Numbers
from planforge.rules.loops.guards import Guard, Look
from planforge.rules.loops.rounds import Counts, History
from planforge.rules.verdicts import Verdict

RISE_PERCENT = 20
"""A total that rises by more than this after a decline is a spike."""
DECLINES = 2
"""How many rounds in a row the total must have fallen before a rise is one."""
WINDOW = 3
"""Over how many earlier rounds the mean of a severity is taken."""
MEAN_PERCENT = 150
"""A severity with more than so many percent of its mean is inflated."""
LEAST_RISE = 2
"""By so much it must have risen over the mean at least."""
NEAR = 2
"""Within so many times the thresholds a round was close to the end."""
ROTATED_PERCENT = 70
"""When less than this of the findings are those of the round before, they rotate."""
DIFFERENT_PERCENT = 20
"""Two descriptions that differ in no more of their letters are of the same finding."""


class Thresholds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a deliverable is good enough, and when a loop has gone on for long enough."""

    critical_max: int = 0
    medium_max: int = 3
    minor_max: int = 5
    max_iterations: int = 50
    stagnation_limit: int = 3
    code: bool = False
    """Whether tests must pass besides."""

    def met(self, counts: Counts, times: int = 1) -> bool:
        """Whether no severity has more than it may, or than so many times that."""
        return (
            counts.critical <= times * self.critical_max
            and counts.medium <= times * self.medium_max
            and counts.minor <= times * self.minor_max
        )


def convergence(thresholds: Thresholds) -> tuple[Guard, ...]:
    """The guards in their order."""
    return (
        fix_regression(),
        termination(thresholds),
        hallucination(),
        fabrication(thresholds),
        stagnation(thresholds.stagnation_limit),
        max_iterations(thresholds.max_iterations),
    )


def fix_regression() -> Guard:
    """A fix that leaves more than it found is a warning; two such fixes in a row end it."""

    def look(history: History) -> Look:
        grown = [
            (item.counts.total, Counts.of(item.fixed).total) for item in history if item.fixed is not None
        ]
        latest = history[-1].fixed
        if latest is None:
            return Look(guard="fix regression", saw="no fix to look at")
        before, after = grown[-1]
        numbers: Numbers = {"before": before, "after": after}
        if after <= before:
            return Look(guard="fix regression", saw=f"the fix left {after} of {before}", numbers=numbers)
        if len(grown) > 1 and grown[-2][1] > grown[-2][0]:
            reason = f"two fixes in a row left more than they found, the last {after} instead of {before}"
            return Look(guard="fix regression", saw=reason, numbers=numbers, decision=Halt(reason, numbers))
        saw = f"warning: the fix left {after} instead of {before}"
        return Look(guard="fix regression", saw=saw, numbers=numbers)

    return look


def termination(thresholds: Thresholds) -> Guard:
    """Good enough: no severity has more than it may, and in code mode all tests pass."""

    def look(history: History) -> Look:
        latest = history[-1]
        counts = latest.counts
        numbers: Numbers = {"critical": counts.critical, "medium": counts.medium, "minor": counts.minor}
        saw = _counted(counts)
        if latest.verdict is Verdict.UNKNOWN:
            return Look(guard="termination", saw="nobody can tell what the review says", numbers=numbers)
        if not thresholds.met(counts):
            return Look(guard="termination", saw=f"{saw}: more than there may be", numbers=numbers)
        if thresholds.code and (latest.tests is None or not latest.tests.all_pass):
            return Look(guard="termination", saw=f"{saw}, but not all tests pass", numbers=numbers)
        allowed = f", of which {thresholds.critical_max} critical are allowed" if counts.critical else ""
        reason = f"good enough: {saw}{allowed}"
        return Look(guard="termination", saw=saw, numbers=numbers, decision=Done(reason, numbers))

    return look


def hallucination() -> Guard:
    """The total fell for a while and now jumps up: fixes and findings chase each other."""

    def look(history: History) -> Look:
        totals = [item.counts.total for item in history]
        falls = _falls(totals[:-1])
        if len(totals) < 2:
            return Look(guard="hallucination", saw="nothing to compare with")
        before, now = totals[-2], totals[-1]
        numbers: Numbers = {"falls": falls, "before": before, "now": now}
        saw = f"from {before} to {now} after {falls} rounds of decline"
        spikes = 100 * (now - before) > RISE_PERCENT * before
        decision = None
        if falls >= DECLINES and spikes:
            course = " → ".join(str(total) for total in totals[-falls - 2 :])
            decision = Halt(f"findings fell for {falls} rounds and then jumped: {course}", numbers)
        return Look(guard="hallucination", saw=saw, numbers=numbers, decision=decision)

    return look


def fabrication(thresholds: Thresholds) -> Guard:
    """It was nearly done, and now one severity is suddenly full: the reviewer may be making things up."""

    def look(history: History) -> Look:
        earlier = history[:-1]
        near = any(thresholds.met(item.counts, NEAR) for item in earlier)
        if len(history) <= WINDOW:
            return Look(guard="fabrication", saw=f"too early: it looks at {WINDOW} rounds before this one")
        inflated = [name for name in ("critical", "medium", "minor") if _is_inflated(history, name)]
        numbers: Numbers = {"near": int(near)}
        for name in inflated:
            numbers[name] = getattr(history[-1].counts, name)
        was = "it was close to the end before" if near else "it was never close to the end"
        saw = f"{_listed(inflated)} inflated, {was}" if inflated else f"no severity is inflated, {was}"
        decision = None
        if inflated and near:
            reason = f"{_listed(inflated)} inflated although it was close to the end: findings may be made up"
            decision = Halt(reason, numbers)
        return Look(guard="fabrication", saw=saw, numbers=numbers, decision=decision)

    return look


def _is_inflated(history: History, name: str) -> bool:
    window: list[int] = [getattr(item.counts, name) for item in history[-WINDOW - 1 : -1]]
    now: int = getattr(history[-1].counts, name)
    total = sum(window)
    return 100 * WINDOW * now > MEAN_PERCENT * total and WINDOW * now - total >= WINDOW * LEAST_RISE


def stagnation(limit: int) -> Guard:
    """The total stays and the findings rotate: nothing real is left to be found."""
    if limit < 2:
        raise ValueError(f"a plateau needs at least two rounds, not {limit}")

    def look(history: History) -> Look:
        totals = [item.counts.total for item in history[-limit:]]
        if len(history) < limit or len(set(totals)) > 1:
            course = " → ".join(str(total) for total in totals)
            return Look(guard="stagnation", saw=f"no plateau of {limit} rounds: {course}")
        findings = history[-1].findings
        kept = _kept(findings, history[-2].findings)
        numbers: Numbers = {"total": totals[-1], "rounds": limit, "kept": kept, "of": len(findings)}
        saw = (
            f"{totals[-1]} in each of {limit} rounds, {kept} of {len(findings)} are those of the round before"
        )
        decision = None
        readable = history[-1].verdict is not Verdict.UNKNOWN
        if readable and 100 * kept < ROTATED_PERCENT * len(findings):
            critical = history[-1].counts.critical
            still = f"; {critical} critical are still open" if critical else ""
            decision = Done(f"a plateau: {saw}{still}", numbers)
        return Look(guard="stagnation", saw=saw, numbers=numbers, decision=decision)

    return look


def max_iterations(ceiling: int) -> Guard:
    """It has gone on for long enough."""
    if ceiling < 1:
        raise ValueError(f"a loop needs at least one round, not {ceiling}")

    def look(history: History) -> Look:
        rounds = len(history)
        numbers: Numbers = {"round": rounds, "ceiling": ceiling}
        saw = f"round {rounds} of {ceiling}"
        decision = Halt(f"not good enough after {rounds} rounds", numbers) if rounds >= ceiling else None
        return Look(guard="max iterations", saw=saw, numbers=numbers, decision=decision)

    return look


def _kept(now: Sequence[Finding], before: Sequence[Finding]) -> int:
    """How many findings of this round are about the same as one of the round before."""
    return sum(any(_alike(finding.title, other.title) for other in before) for finding in now)


def _alike(one: str, other: str) -> bool:
    from rapidfuzz.distance.Levenshtein import distance

    return 100 * distance(one, other) <= DIFFERENT_PERCENT * max(len(one), len(other))


def _falls(totals: Sequence[int]) -> int:
    """In how many rounds in a row, up to the last, the total was lower than before."""
    steps = reversed([*pairwise(totals)])
    return sum(1 for _ in takewhile(lambda step: step[1] < step[0], steps))


def _counted(counts: Counts) -> str:
    return f"{counts.critical} critical, {counts.medium} medium, {counts.minor} minor"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names)
