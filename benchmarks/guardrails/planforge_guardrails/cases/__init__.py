"""All cases, group by group."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from planforge.actions import Action, Advice
from planforge.errors import NotFound
from planforge_guardrails.shapes import Case, Workflow

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


def case_named(name: str, workflow: Workflow | None = None) -> Case:
    """One case, in one of its workflows or in the first."""
    found = {case.name: case for case in all_cases()}
    if name not in found:
        every = Action("bench guardrails", list=True)
        raise NotFound(f"there is no case `{name}`", Advice("for all of them, run {}", every))
    cells = {cell.workflow: cell for cell in found[name].cells}
    if workflow is not None and workflow not in cells:
        raise NotFound(f"`{name}` is not put to `{workflow.value}`", hint=f"one of: {', '.join(cells)}")
    return cells[workflow or found[name].workflow]


def chosen(
    only: Iterable[str] = (),
    groups: Iterable[str] = (),
    workflows: Iterable[str] = (),
    *,
    sample: bool = False,
) -> tuple[Case, ...]:
    """The cells of the matrix that somebody wants: all of them if nothing is said."""
    only, groups, workflows = list(only), list(groups), list(workflows)
    _require(groups, GROUPS, "group")
    _require(workflows, [each.value for each in Workflow], "workflow")
    wanted = {case_named(name).name for name in [*only, *(SAMPLE if sample else ())]}
    cases = [
        case for case in all_cases() if case.name in wanted or case.group in groups or not (wanted or groups)
    ]
    cells = [cell for case in cases for cell in (case.cells[:1] if sample and not only else case.cells)]
    return tuple(cell for cell in cells if not workflows or cell.workflow.value in workflows)


def _require(words: Iterable[str], known: Iterable[str], what: str) -> None:
    for word in words:
        if word not in known:
            raise NotFound(f"there is no {what} `{word}`", hint=f"one of: {', '.join(known)}")
