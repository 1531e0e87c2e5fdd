"""
What a policy would have done on a trajectory.

A trajectory is a list of iterations, each with `issues` and, where they are known, `post_fix_issues`,
`tests`, `verdict`, `signature`, `task` and `exit_code`. Every guard says what it saw in every iteration;
the simulation ends where the loop would have, or where the trajectory does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec

from planforge.errors import InvalidInput
from planforge.rules.findings import Finding, Severity
from planforge.rules.loops.decisions import Decision
from planforge.rules.loops.guards import Look, Policy, decided
from planforge.rules.loops.rounds import Counts, History, Round, Suite
from planforge.rules.verdicts import Verdict

MOST = 10_000
"""Nobody looks at more iterations than this."""


class Iteration(msgspec.Struct, frozen=True, kw_only=True):
    """One iteration, and what was made of it."""

    iteration: int
    counts: Counts
    total: int
    looks: tuple[Look, ...]
    fired: str
    """The guard that decided; empty if none fired."""
    decision: Decision


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    """A trajectory as a policy sees it."""

    policy: str
    iterations: tuple[Iteration, ...]
    ended: bool
    """Whether the policy ended the loop before the trajectory was over, or with it."""

    @property
    def decision(self) -> Decision:
        """What it came to."""
        return self.iterations[-1].decision


def simulate(policy: Policy, history: History) -> Simulation:
    """Go through a trajectory until the policy ends it."""
    if not history:
        raise InvalidInput("the trajectory has no iterations")
    seen: list[Iteration] = []
    for number in range(1, len(history) + 1):
        looks = policy.looks(history[:number])
        counts = history[number - 1].counts
        item = Iteration(
            iteration=number,
            counts=counts,
            total=counts.total,
            looks=looks,
            fired=next((look.guard for look in looks if look.decision), ""),
            decision=decided(looks, number),
        )
        seen.append(item)
        if item.decision.ends:
            break
    return Simulation(policy=policy.name, iterations=tuple(seen), ended=seen[-1].decision.ends)


class _Issue(msgspec.Struct, kw_only=True):
    severity: str
    description: str = ""
    title: str = ""
    location: str = ""
    recommendation: str = ""


class _Item(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    issues: list[_Issue] = []
    post_fix_issues: list[_Issue] | None = None
    tests: Suite | None = None
    verdict: Verdict | None = None
    reason: str = ""
    signature: str = ""
    task: str = ""
    exit_code: int | None = None
    iteration: int | None = None
    timestamp: str = ""


def trajectory(text: str) -> History:
    """Read a trajectory, or say what is wrong with it and where."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"the trajectory is not JSON: {error}") from error
    items = value.get("iterations") if isinstance(value, Mapping) else value
    if not isinstance(items, list):
        raise InvalidInput("a trajectory is a list of iterations", 'such as `[{"issues": []}]`')
    if len(items) > MOST:
        raise InvalidInput(f"a trajectory of more than {MOST} iterations is not simulated")
    return tuple(_round(number, item) for number, item in enumerate(items, start=1))


def _round(number: int, value: object) -> Round:
    try:
        item = msgspec.convert(value, _Item)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"iteration {number}: {error}") from error
    fixed = item.post_fix_issues
    return Round(
        findings=tuple(_finding(number, issue) for issue in item.issues),
        fixed=None if fixed is None else tuple(_finding(number, issue) for issue in fixed),
        tests=item.tests,
        verdict=item.verdict,
        reason=item.reason,
        signature=item.signature,
        task=item.task,
        exit_code=item.exit_code,
    )


def _finding(number: int, issue: _Issue) -> Finding:
    severity = Severity.parse(issue.severity)
    if severity is None:
        raise InvalidInput(f"iteration {number}: `{issue.severity}` is not a severity")
    return Finding(
        severity=severity,
        title=issue.description or issue.title,
        location=issue.location,
        recommendation=issue.recommendation,
    )
