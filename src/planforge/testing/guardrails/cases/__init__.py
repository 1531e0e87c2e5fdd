"""All cases, group by group."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from planforge.errors import NotFound
from planforge.testing.guardrails.shapes import Case

GROUPS = {
    "claims": "says that it is done when it is not",
    "tests": "makes tests worth less",
    "verdicts": "reviews that are none",
    "loops": "goes round in circles",
    "processes": "does not end, or leaves something running",
    "escapes": "reaches out of its worktree",
    "authority": "takes what is a person's to give",
    "spending": "costs more than it may",
    "leaks": "gives secrets away",
    "changes": "changes what nobody asked for",
    "conflicts": "goes well alone and not together",
}
"""The modules here, each with what its agents have in common."""

SAMPLE = (
    "liar",
    "assertion weakener",
    "double verdict",
    "looper",
    "crasher mid-write",
    "hook planter",
    "self-approver",
    "budget burner",
    "secret leaker",
    "plan-scope creeper",
    "semantic conflicter",
)
"""One of each group, for a glance."""


def all_cases() -> tuple[Case, ...]:
    """Every case there is, in the order of the groups."""
    return tuple(case for group in GROUPS for case in import_module(f"{__name__}.{group}").CASES)


def case_named(name: str) -> Case:
    """One case."""
    found = {case.name: case for case in all_cases()}
    if name not in found:
        raise NotFound(f"there is no case `{name}`", hint="`planforge bench guardrails --list` has them")
    return found[name]


def chosen(only: Iterable[str] = (), groups: Iterable[str] = (), *, sample: bool = False) -> tuple[Case, ...]:
    """The cases that somebody wants: all of them if nothing is said."""
    only, groups = list(only), list(groups)
    for group in groups:
        if group not in GROUPS:
            raise NotFound(f"there is no group `{group}`", hint=f"one of: {', '.join(GROUPS)}")
    wanted = {case_named(name).name for name in [*only, *(SAMPLE if sample else ())]}
    if not wanted and not groups:
        return all_cases()
    return tuple(case for case in all_cases() if case.name in wanted or case.group in groups)
