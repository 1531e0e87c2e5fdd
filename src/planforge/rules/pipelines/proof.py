"""
Goes through everything that could happen in a pipeline.

A state is where it stands, what each stage came to last, and whose approval is of what is there now: a
stage that writes voids every approval of what it writes. How often a stage was come back to does not
matter for what can be reached, so it is not part of the state, and the number of states stays small.
Roads are the shortest there are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import msgspec

from planforge.rules.pipelines import Pipeline, Stage

MOST_STATES = 1_000_000
"""A pipeline with more than this many states is not one that anybody understands."""


class Step(msgspec.Struct, frozen=True):
    """A stage and its verdict."""

    stage: str
    verdict: str = ""

    def __str__(self) -> str:
        return f"{self.stage} ({self.verdict})" if self.verdict else self.stage


class Bypass(msgspec.Struct, frozen=True, kw_only=True):
    """A way to landing on which something did not approve what lands."""

    missing: tuple[str, ...]
    road: tuple[Step, ...]

    def __str__(self) -> str:
        road = " → ".join(str(step) for step in self.road)
        return f"lands without the approval of {', '.join(f'`{name}`' for name in self.missing)}: {road}"


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """What going through a pipeline has shown."""

    states: int
    bypasses: tuple[Bypass, ...]
    unreachable: tuple[str, ...]
    lands: bool
    """Whether any road leads to landing, where there is a stage that lands."""
    complete: bool
    """Whether everything was gone through; a proof that is not shows nothing."""


class _State(msgspec.Struct, frozen=True):
    index: int
    verdicts: tuple[str, ...]
    """What each stage came to last, empty if nothing yet."""
    fresh: frozenset[str]
    """Whose approval is of what is there now."""


def prove(pipeline: Pipeline, most: int = MOST_STATES) -> Proof:
    """Go through all that could happen."""
    start = _State(0, ("",) * len(pipeline.stages), frozenset())
    came: dict[_State, tuple[_State, Step] | None] = {start: None}
    waiting = deque([start])
    entered: set[int] = set()
    bypasses: dict[tuple[str, ...], Bypass] = {}
    landed = False
    while waiting and len(came) <= most:
        state = waiting.popleft()
        if state.index == len(pipeline.stages) or not _is_open(pipeline, state):
            continue
        stage = pipeline.stages[state.index]
        entered.add(state.index)
        if stage.lands:
            landed = True
            missing = tuple(name for name in pipeline.requires if name not in state.fresh)
            if missing and missing not in bypasses:
                bypasses[missing] = Bypass(missing=missing, road=(*_road(came, state), Step(stage.name)))
        for step, after in _outcomes(pipeline, state):
            if after not in came:
                came[after] = (state, step)
                waiting.append(after)
    names = [stage.name for stage in pipeline.stages]
    return Proof(
        states=len(came),
        bypasses=tuple(bypasses.values()),
        unreachable=tuple(name for index, name in enumerate(names) if index not in entered),
        lands=landed,
        complete=len(came) <= most,
    )


def _is_open(pipeline: Pipeline, state: _State) -> bool:
    """Whether the gate lets it in, as far as verdicts decide; what else a gate asks may be so or not."""
    return all(
        state.verdicts[pipeline.index(after.stage)] == after.verdict
        for after in pipeline.stages[state.index].afters
    )


def _outcomes(pipeline: Pipeline, state: _State) -> Iterator[tuple[Step, _State]]:
    """Every possible verdict of a stage; where a person has to decide, the road ends."""
    index = state.index
    stage = pipeline.stages[index]
    fresh = state.fresh - _voided(pipeline, stage)
    if not stage.verdict:
        yield Step(stage.name), _State(index + 1, state.verdicts, fresh)
        return
    approved = _said(state.verdicts, index, "approved")
    yield Step(stage.name, "approved"), _State(index + 1, approved, fresh | {stage.name})
    if stage.max_iterations > 1:
        revision = _said(state.verdicts, index, "revision")
        back = _State(pipeline.back_to(index), revision, fresh - {stage.name})
        yield Step(stage.name, "revision"), back


def _voided(pipeline: Pipeline, stage: Stage) -> frozenset[str]:
    """Whose approval no longer holds once the stage has written."""
    changed = set(stage.writes)
    return frozenset(each.name for each in pipeline.stages if changed & set(each.judges))


def _said(verdicts: tuple[str, ...], index: int, verdict: str) -> tuple[str, ...]:
    return (*verdicts[:index], verdict, *verdicts[index + 1 :])


def _road(came: dict[_State, tuple[_State, Step] | None], state: _State) -> tuple[Step, ...]:
    steps: list[Step] = []
    while before := came[state]:
        state, step = before
        steps.append(step)
    return tuple(reversed(steps))
