"""
How long a plan takes on four jobs, beside the least that it could take.

A plan of 300 files is cut into 60 phases and an audit. An agent takes two seconds, more or
less, and does nothing else, so what is over the bound is ours: phases that could have begun
and did not, and what the ledger and the driver cost. The bound is what no scheduling can
beat, from the times that the agents were told to take: what a phase waits for, on all four
at best, and the longest way from it to the end.

It is the flow, the driver and the ledger that people run; what git and checks would take is not in it.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from benchmarks.measuring import HERE, Figure, at_most, progress

from planforge.documents.phases import Phase, decompose
from planforge.kernel import effects
from planforge.kernel.driver import Call, Driver
from planforge.kernel.effects import Effect
from planforge.kernel.events import ItemOpened, Payload, RunStarted
from planforge.kernel.evidence import Counts, Evidence, Outcome
from planforge.kernel.ledger import Ledger
from planforge.kernel.turns import Turns
from planforge.rules.selection import Candidate, most_urgent_first
from planforge.workflows.plan_run import PlanRunRequest, plan_run

LIMIT = 1.10
JOBS = 4
PHASES, FILES_OF_ONE = 60, 5
SECONDS, SPREAD = 2.0, 0.25
"""What an agent takes, and by how much of that it may be quicker or slower."""
QUICK = 0.1
"""By what its time is scaled where only to see that it works."""
SEED = 20_260
PLAN, RUN = "plan-001", "run-001"

Waits = Mapping[int, Sequence[int]]


class Case(NamedTuple):
    """A plan, and what its agents take."""

    name: str
    text: str
    phases: tuple[Phase, ...]
    seconds: Mapping[str, float]


def wide(_: random.Random) -> Waits:
    """Everything is ready from the beginning."""
    return {}


def diamonds(_: random.Random) -> Waits:
    """One, then two side by side, then one that waits for both; fifteen times."""
    waits: dict[int, Sequence[int]] = {}
    for top in range(0, PHASES, 4):
        waits |= {top + 1: [top], top + 2: [top], top + 3: [top + 1, top + 2]}
    return waits


def drawn(chance: random.Random) -> Waits:
    """Chains, wide pieces and diamonds; most of them wait for some phase of an earlier one."""
    waits: dict[int, Sequence[int]] = {}
    number = 0
    while number < PHASES:
        piece = chance.choice(PIECES)
        for each, within in enumerate(piece[: PHASES - number]):
            waits[number + each] = [number + other for other in within]
        if number and chance.random() < 0.7:
            waits[number] = [chance.randrange(number)]
        number += len(piece)
    return waits


PIECES: tuple[tuple[tuple[int, ...], ...], ...] = (
    ((), (0,), (1,), (2,), (3,)),
    ((), (), (), (), (), ()),
    ((), (0,), (0,), (1, 2)),
)
"""A chain, a wide piece and a diamond: which of its phases each phase of a piece waits for."""

SHAPES = {"wide": wide, "diamonds": diamonds, "drawn": drawn}


def case(name: str) -> Case:
    """A plan of that shape, always the same one."""
    chance = random.Random(f"{SEED}/{name}")  # noqa: S311
    text = document(SHAPES[name](chance))
    phases = decompose(text, max_files=FILES_OF_ONE)
    files = sum(len(phase.files) for phase in phases[:-1])
    if (len(phases), files) != (PHASES + 1, PHASES * FILES_OF_ONE):
        raise RuntimeError(f"the plan was cut into {len(phases)} phases of {files} files")
    seconds = {phase.id: SECONDS * chance.uniform(1 - SPREAD, 1 + SPREAD) for phase in phases}
    return Case(name, text, phases, seconds)


def document(waits: Waits) -> str:
    """A plan whose items say what they come after."""
    lines = ["# Plan: A change of everything", "", "**Parallel:** yes", "", "---", "", "## Changes", ""]
    for number in range(PHASES):
        for each in range(FILES_OF_ONE):
            after = ", ".join(f"`{_file(other, 0)}`" for other in waits.get(number, ()))
            lines.append(f"- `{_file(number, each)}` — change it" + (f" (after {after})" if after else ""))
    return "\n".join(lines) + "\n"


def _file(phase: int, number: int) -> str:
    return f"part{phase:02}/file{number}.txt"


def bound(found: Case) -> float:
    """
    The seconds that no scheduling can beat.

    Whoever a phase waits for, directly or not, has to be done before it begins, on all jobs at best; from
    then on the longest way to the end is left.
    """
    phases = {phase.id: phase for phase in found.phases}
    before: dict[str, set[str]] = {}
    for phase in found.phases:
        before[phase.id] = set(phase.depends_on).union(*(before[name] for name in phase.depends_on))
    left = dict(found.seconds)
    for name in reversed(phases):
        for other in phases[name].depends_on:
            left[other] = max(left[other], found.seconds[other] + left[name])
    waits = (sum(found.seconds[other] for other in before[name]) / JOBS + left[name] for name in phases)
    return max(*waits, *left.values(), sum(found.seconds.values()) / JOBS)


def plain_bound(found: Case) -> float:
    """The longest way, or all the work on all jobs: less than the bound, and easier to work out."""
    ends: dict[str, float] = {}
    for phase in found.phases:
        begins = max((ends[name] for name in phase.depends_on), default=0.0)
        ends[phase.id] = begins + found.seconds[phase.id]
    return max(*ends.values(), sum(found.seconds.values()) / JOBS)


def scheduled(found: Case) -> float:
    """The seconds that the schedule itself takes, were nothing else to cost any."""
    waits = {phase.id: phase.depends_on for phase in found.phases}
    turns = Turns(order(found.phases), JOBS, waits)
    now, under_way = 0.0, list[tuple[float, str]]()
    while True:
        for name in turns.begin():
            heapq.heappush(under_way, (now + found.seconds[name], name))
        if not under_way:
            return now
        now, name = heapq.heappop(under_way)
        turns.end(name)


def order(phases: Sequence[Phase]) -> tuple[str, ...]:
    """Who gets a place first."""
    waiting = [Candidate(id=phase.id, status="pending", depends_on=phase.depends_on) for phase in phases]
    return most_urgent_first(waiting)


class World:
    """Answers all that a run of a plan asks for, at once; only the agents take their time."""

    def __init__(self, found: Case, text: str, scale: float) -> None:
        self._found = found
        self._text = text
        self._scale = scale
        self._tip = "0" * 40
        self._commits = 0
        self._fences = 0

    async def __call__(self, effect: Effect[object], _: Call) -> object:
        """What the world answers."""
        return await getattr(self, type(effect).__name__)(effect)

    async def RunAgent(self, effect: effects.RunAgent) -> effects.AgentAnswer:  # noqa: N802
        step = effect.worktree.removesuffix("-1") if effect.role == "developer" else effect.worktree
        await asyncio.sleep(self._found.seconds[step] * self._scale)
        said = "done" if effect.role == "developer" else '{"maxSeverity": "none", "concerns": []}'
        return effects.AgentAnswer(
            agent="patient", text=said, stop_reason="end_turn", tool_calls=0, usage=None
        )

    async def ReadPlan(self, _: effects.ReadPlan) -> effects.DocumentText:  # noqa: N802
        return effects.DocumentText(text=self._text, object="0" * 64)

    async def ReadPhases(self, effect: effects.ReadPhases) -> effects.KnownPhases:  # noqa: N802
        return effects.KnownPhases(statuses={}, parallel=True, max_files=effect.max_files)

    async def TakeApproval(self, effect: effects.TakeApproval) -> effects.Approval:  # noqa: N802
        return effects.Approval(actor="ada", content=effect.content)

    async def OpenBranch(self, _: effects.OpenBranch) -> effects.Tip:  # noqa: N802
        return effects.Tip(commit=self._tip)

    async def OpenWorktree(self, effect: effects.OpenWorktree) -> effects.Checkout:  # noqa: N802
        return effects.Checkout(commit=effect.commit, tree=effect.commit)

    async def GatherContext(self, _: effects.GatherContext) -> effects.Gathered:  # noqa: N802
        return effects.Gathered(tier="balanced", output="", parts=(), summaries="delta", steps=(), budgets={})

    async def ClaimLease(self, effect: effects.ClaimLease) -> effects.Leased:  # noqa: N802
        self._fences += 1
        return effects.Leased(holder=effect.holder, fence=self._fences)

    async def Commit(self, effect: effects.Commit) -> effects.Patch:  # noqa: N802
        return self._patch(effect.step, effect.parent)

    async def Rebase(self, effect: effects.Rebase) -> effects.Patch:  # noqa: N802
        return self._patch(effect.step, effect.onto)

    def _patch(self, step: str, parent: str) -> effects.Patch:
        self._commits += 1
        files = next(phase.files for phase in self._found.phases if phase.id == step)
        commit = f"{self._commits:040}"
        return effects.Patch(commit=commit, tree=commit, parent=parent, files=files, changed_lines=5)

    async def Inspect(self, _: effects.Inspect) -> effects.Inspection:  # noqa: N802
        return effects.Inspection()

    async def RunCheck(self, effect: effects.RunCheck) -> Evidence:  # noqa: N802
        return Evidence(
            check="tests",
            outcome=Outcome.PASS,
            reason="1 of 1 test passed",
            command=("test",),
            exit_code=0,
            counts=Counts(total=1, passed=1, failed=0, skipped=0),
            failing=(),
            commit=effect.commit,
            tree=effect.tree,
            output="0" * 64,
            seconds=0.0,
        )

    async def Land(self, effect: effects.Land) -> effects.Landing:  # noqa: N802
        landed = self._tip == effect.expected
        self._tip = effect.commit if landed else self._tip
        return effects.Landing(landed=landed, tip=self._tip)

    async def _nothing(self, _: Effect[object]) -> None:
        """Done."""

    MarkPlan = ShowPhases = CloseWorktree = ReleaseLease = _nothing


ASKED = tuple(
    getattr(effects, name) for name in vars(World) if isinstance(getattr(effects, name, None), type)
)
"""The effects that the world answers."""


def taken(found: Case, directory: Path, scale: float) -> float:
    """The seconds that the real flow takes with a ledger on disk."""
    world = World(found, found.text, scale)
    request = PlanRunRequest(
        plan=PLAN,
        run=RUN,
        path="p.md",
        base="0" * 40,
        today="2026-01-01",
        parallel=True,
        jobs=JOBS,
        max_files=FILES_OF_ONE,
    )
    with closing(Ledger.create(directory)) as ledger:
        begun = RunStarted(run=RUN, flow="plan_run", flow_version=1, subject=PLAN, request=Payload())
        ledger.append(RUN, [begun], expected=0)
        ledger.append(PLAN, [ItemOpened(item=PLAN, title="x", request="x", path="p.md")], expected=0)
        driver = Driver(ledger, RUN, dict.fromkeys(ASKED, world))
        started = time.perf_counter()
        result = asyncio.run(driver.drive(plan_run(request)))
        seconds = time.perf_counter() - started
    if not result.done:
        raise RuntimeError(result.reason)
    return seconds


def figures(directory: Path, *, quick: bool) -> Iterator[Figure]:
    """The makespan of each shape over its bound."""
    scale = QUICK if quick else 1.0
    for name in SHAPES:
        found = case(name)
        least = bound(found) * scale
        progress(f"a plan of {PHASES} phases, {name}, which takes {least:.0f} s at least")
        with tempfile.TemporaryDirectory(dir=directory) as made:
            seconds = taken(found, Path(made), scale)
        ideal = scheduled(found) * scale
        plain = seconds / (plain_bound(found) * scale)
        note = f"{seconds:.2f} s over {least:.2f} s; the schedule takes {ideal:.2f} s; {plain:.3f} plainly"
        yield at_most(f"makespan on {JOBS} jobs / bound, {name}", seconds / least, LIMIT, note)


def main() -> None:
    """Only this part, without the peers that the others are compared with."""
    parser = argparse.ArgumentParser(
        description="Measure how long a plan takes over the least that it could."
    )
    parser.add_argument("--quick", action="store_true", help="agents that take a tenth of their time")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    arguments = parser.parse_args()
    cache = HERE.parent / "build" / "bench"
    cache.mkdir(parents=True, exist_ok=True)
    found = list(figures(cache, quick=arguments.quick))
    if arguments.json:
        print(json.dumps([figure._asdict() for figure in found], indent=2))
    else:
        for figure in found:
            print(f"{figure.what:<44}{figure.measured:>7.3f}  {figure.target}  ({figure.note})")
    sys.exit(any(figure.met is False for figure in found) and not arguments.quick)


if __name__ == "__main__":
    main()
