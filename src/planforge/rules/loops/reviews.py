"""
Loops around a verdict: revise while something blocks, so many times.
"""

from __future__ import annotations

from typing import assert_never

from planforge.kernel.wording import counted
from planforge.rules.loops.decisions import Continue, Decision, Done, Escalate
from planforge.rules.loops.guards import Guard, Look
from planforge.rules.loops.rounds import History, in_a_row
from planforge.rules.verdicts import Verdict


def verdict(cap: int, gone: str) -> Guard:
    """Done when approved, a person where nobody can tell or after `cap` rounds; else once more."""
    if cap < 1:
        raise ValueError(f"a loop needs at least one round, not {cap}")

    def look(history: History) -> Look:
        latest, rounds = history[-1], len(history)
        decision: Decision
        match latest.decided:
            case Verdict.APPROVED:
                decision = Done("no blocking finding")
            case Verdict.UNKNOWN:
                decision = Escalate(f"a person must read the audit: {latest.reason}")
            case Verdict.REVISION if rounds < cap:
                decision = Continue(f"round {rounds} of {cap} asks for a revision")
            case Verdict.REVISION:
                decision = Escalate(f"{gone}: still not approved after {rounds} of {cap} rounds")
            case never:
                assert_never(never)
        saw = f"{latest.decided.value} in round {rounds} of {cap}"
        return Look(guard="verdict", saw=saw, numbers={"round": rounds, "cap": cap}, decision=decision)

    return look


def same_signature(repeats: int) -> Guard:
    """The same failure so many times in a row: whoever mends it does not."""

    def look(history: History) -> Look:
        signature = history[-1].signature
        same = in_a_row(history, lambda item: item.signature == signature) if signature else 0
        numbers = {"repeats": same, "limit": repeats}
        saw = (
            f"the same failure {counted(same, 'time')} in a row"
            if signature
            else "no failure that could be known again"
        )
        fires = signature and same >= repeats
        reason = f"the same failure {counted(same, 'time')} in a row: a person has to look"
        decision = Escalate(reason, numbers) if fires else None
        return Look(guard="signature", saw=saw, numbers=numbers, decision=decision)

    return look
