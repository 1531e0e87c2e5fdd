"""Plans to test with: steps in a line, and any plan without a cycle."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import strategies as st

from kernel.histories import Clock
from planforge.kernel import graph
from planforge.kernel.events import (
    ArtifactKind,
    ArtifactRecorded,
    AttemptRejected,
    PlannedRisk,
    PlannedStep,
    StepCompleted,
)
from planforge.kernel.graph.steps import current
from planforge.kernel.ledger import Ledger
from planforge.kernel.scores import StepScore

NAMES = ("a", "b", "c", "d", "e", "f", "g")
GATES = ("legal", "safety")


def step(
    name: str,
    *needed: str,
    gates: Sequence[str] = (),
    weight: int = 1,
    files: Sequence[str] = (),
    title: str = "",
    kind: str = "implement",
) -> PlannedStep:
    return PlannedStep(
        step=name,
        title=title or name.upper(),
        kind=kind,
        files=tuple(files),
        depends_on=needed,
        gates=tuple(gates),
        weight=weight,
    )


def risk(name: str, *blocks: str) -> PlannedRisk:
    return PlannedRisk(risk=name, description=f"{name} may happen", severity="medium", blocks=blocks)


def complete(ledger: Ledger, step: str, score: StepScore | None = None, holder: str = "") -> None:
    """The attempt under way did it."""
    found = graph.require_attempt(ledger, step, max(graph.find(ledger, step).attempts, 1), holder)
    event = StepCompleted(plan=found.plan, step=found.step, attempts=found.attempts, score=score)
    ledger.append(found.plan, [event], expected=None)


def reject(ledger: Ledger, step: str, reason: str, holder: str = "") -> None:
    """The attempt under way is not taken."""
    found = graph.require_attempt(ledger, step, max(graph.find(ledger, step).attempts, 1), holder)
    event = AttemptRejected(plan=found.plan, step=found.step, attempt=found.attempts, reason=reason)
    ledger.append(found.plan, [event], expected=None)


def record(ledger: Ledger, step: str, kind: ArtifactKind, name: str, content: str) -> None:
    """Something that the step touched or left."""
    found = current(ledger, step)
    event = ArtifactRecorded(
        plan=found.plan, step=found.step, attempt=found.attempts, kind=kind, name=name, hash=content
    )
    ledger.append(found.plan, [event], expected=None)


@st.composite
def planned(draw: st.DrawFn, least: int = 0) -> tuple[PlannedStep, ...]:
    """Steps of which none waits for itself, in any order."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=least, max_size=len(NAMES)))
    steps = []
    for place, name in enumerate(names):
        needed = draw(st.lists(st.sampled_from(names[:place]), unique=True)) if place else []
        gates = draw(st.sampled_from([(), (), (), GATES[:1], GATES]))
        steps.append(step(name, *needed, gates=gates, weight=draw(st.integers(1, 4))))
    return tuple(draw(st.permutations(steps)))


@st.composite
def risky(draw: st.DrawFn, steps: Sequence[PlannedStep]) -> tuple[PlannedRisk, ...]:
    """Risks that block some of the steps."""
    if not steps:
        return ()
    names = [item.step for item in steps]
    count = draw(st.integers(0, 2))
    blocks = st.lists(st.sampled_from(names), unique=True)
    return tuple(risk(f"risk-{number}", *draw(blocks)) for number in range(count))


def layered(count: int, width: int, needed: int, seed: int = 1) -> list[PlannedStep]:
    """A large plan: layers of `width` steps, each depending on some of the layer before."""
    chance = random.Random(seed)
    found: list[PlannedStep] = []
    for number in range(count):
        layer = number // width
        before = range((layer - 1) * width, layer * width) if layer else ()
        chosen = chance.sample(before, min(needed, len(before)))
        found.append(step(f"s{number}", *(f"s{other}" for other in sorted(chosen))))
    return found


def needs(steps: Sequence[PlannedStep]) -> Mapping[str, tuple[str, ...]]:
    return {item.step: item.depends_on for item in steps}


@contextmanager
def fresh() -> Iterator[Ledger]:
    """A ledger of its own, for one example of many."""
    with TemporaryDirectory() as place:
        ledger = Ledger.create(Path(place), Clock())
        yield ledger
        ledger.close()
