"""
Which phase of a plan is next, which may be run by name, and what skipping to one leaves out.

Pure: statuses and dependencies go in, and the plan's name for the hint of a refusal. A phase can run when
everything that it depends on is done or was skipped. What was interrupted comes first, then what failed,
then the first that is still to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter

import msgspec

from planforge.actions import TEXT, Action, Advice, see
from planforge.errors import InvalidInput, NotFound, RefusedByGate
from planforge.kernel.dependencies import order

MET = ("done", "skipped")
"""The statuses in which nothing is left to do."""

ORDER = ("in-progress", "failed", "pending")
"""Which status is taken up first."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A phase as far as selecting one goes."""

    id: str
    status: str
    depends_on: tuple[str, ...] = ()


def check(phases: Sequence[Candidate]) -> None:
    """Refuse two phases of one name, dependencies that are not there, and phases that wait for each other."""
    known = {phase.id for phase in phases}
    if len(known) < len(phases):
        names = [phase.id for phase in phases]
        raise InvalidInput(
            f"there is more than one `{next(name for name in names if names.count(name) > 1)}`"
        )
    for phase in phases:
        if missing := [name for name in phase.depends_on if name not in known]:
            raise InvalidInput(f"`{phase.id}` depends on `{missing[0]}`, which there is not")
    ordered = order({phase.id: phase.depends_on for phase in phases})
    if left := [phase.id for phase in phases if phase.id not in ordered]:
        raise InvalidInput(f"phases wait for each other: {', '.join(left)}")


def unmet(phases: Sequence[Candidate], phase: Candidate) -> tuple[str, ...]:
    """What a phase still waits for."""
    status = {each.id: each.status for each in phases}
    return tuple(name for name in phase.depends_on if status.get(name) not in MET)


def next_phase(phases: Sequence[Candidate]) -> Candidate | None:
    """The phase to take up next; None if none can be."""
    for status in ORDER:
        for phase in phases:
            if phase.status == status and not unmet(phases, phase):
                return phase
    return None


def target(phases: Sequence[Candidate], name: str, plan: str = "PLAN") -> Candidate:
    """The phase of that name, if it can be run now."""
    phase = _open(phases, name, plan)
    if waiting := unmet(phases, phase):
        raise RefusedByGate(
            f"`{phase.id}` waits for {', '.join(f'`{each}`' for each in waiting)}",
            Advice(
                "run those first: {}, or leave them out: {}",
                Action("plan run", plan),
                Action("plan skip-to", plan, phase.id, reason=TEXT),
            ),
        )
    return phase


def _open(phases: Sequence[Candidate], name: str, plan: str) -> Candidate:
    """The phase of that name, if something is left to do in it."""
    phase = named(phases, name)
    if phase.status in MET:
        again = Advice("to redo it, remake all phases: {}", Action("plan phases", plan, regenerate=True))
        raise RefusedByGate(f"`{phase.id}` is {phase.status} already", again)
    return phase


def named(phases: Sequence[Candidate], name: str) -> Candidate:
    """The phase of that name; `3` is `phase-3`."""
    wanted = f"phase-{name.lstrip('0')}" if name.isascii() and name.isdecimal() else name
    for phase in phases:
        if phase.id == wanted:
            return phase
    known = ", ".join(f"`{phase.id}`" for phase in phases)
    raise NotFound(f"there is no phase `{name}`", f"there are {known}" if known else "")


def failed(phases: Sequence[Candidate], plan: str = "PLAN") -> Candidate:
    """The first phase that failed."""
    for phase in phases:
        if phase.status == "failed":
            return phase
    raise RefusedByGate("no phase has failed", see("plan phases", plan))


def skippable(phases: Sequence[Candidate], plan: str = "PLAN") -> Candidate:
    """The phase that is left out if none is named: the first that was interrupted or that failed."""
    for phase in phases:
        if phase.status in ("in-progress", "failed"):
            return phase
    first = next((phase.id for phase in phases if phase.status not in MET), "PHASE")
    raise RefusedByGate(
        "no phase is in progress or has failed",
        Advice("name the one to leave out: {}", Action("plan skip", plan, first, reason=TEXT)),
    )


def skipped_to(phases: Sequence[Candidate], name: str, plan: str = "PLAN") -> tuple[str, ...]:
    """What is left out on the way to a phase: all before it, and all that it depends on, that is not met."""
    phase = _open(phases, name, plan)
    before = {each.id for each in phases[: list(phases).index(phase)]}
    wanted = before | _closure(phases, phase)
    return tuple(each.id for each in phases if each.id in wanted and each.status not in MET)


def _closure(phases: Sequence[Candidate], phase: Candidate) -> set[str]:
    """Everything that a phase depends on, directly or not."""
    needs = {each.id: each.depends_on for each in phases}
    found: set[str] = set()
    left = list(phase.depends_on)
    while left:
        if (name := left.pop()) not in found:
            found.add(name)
            left += needs.get(name, ())
    return found


def kept(
    met: Mapping[str, str], after: Mapping[str, str], needs: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """
    The new phases that need not be done again, each with the old one that did it.

    Phases are known by their signatures: `met` has the old ones that are done or were skipped, `after` the
    new ones, `needs` what each of these depends on. One is kept if it says the same as an old one, and if
    everything that it depends on is kept.
    """
    free = dict(met)
    found: dict[str, str] = {}
    for name, signature in after.items():
        same = next((old for old, known in free.items() if known == signature), None)
        if same is not None and all(other in found for other in needs[name]):
            found[name] = same
            del free[same]
    return found


def most_urgent_first(phases: Sequence[Candidate]) -> tuple[str, ...]:
    """
    The phases by urgency: first those with the longest chain of phases waiting for them.

    Nobody knows what a phase will take, so each counts as one. Among equals the plan's order decides.
    """
    needs = {phase.id: phase.depends_on for phase in phases}
    heights = dict.fromkeys(needs, 1)
    for name in reversed([*TopologicalSorter(needs).static_order()]):
        for before in needs.get(name, ()):
            heights[before] = max(heights.get(before, 1), heights[name] + 1)
    return tuple(sorted(needs, key=heights.__getitem__, reverse=True))
