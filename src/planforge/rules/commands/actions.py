"""
What an agent's answer asks for: one fence labelled `planforge-actions`, with a list of actions.

    ```planforge-actions
    [{"action": "planShow", "planId": "plan-017"}, {"action": "forgeCreate", "description": "..."}]
    ```

The set is closed, a field that an action does not have is refused, and all of it is refused if any of it
is: half of what an agent meant is not what it meant. Each becomes the command that a person would type. What
is quoted, indented as code, commented out or inside another fence is somebody else's words, by the same rules
as for verdicts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from planforge.rules.commands import shapes
from planforge.rules.commands.grammar import STATUSES, parse
from planforge.rules.commands.shapes import Command
from planforge.rules.verdicts.blocks import Kind, read

LABEL = "planforge-actions"
MOST = 5
"""How many actions one answer may ask for."""
LARGEST = 20_000


class _Action(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="action", rename="camel"
):
    """Something an agent may ask for."""


class _ForgeCreate(_Action, frozen=True, kw_only=True, tag="forgeCreate"):
    description: str
    context: str = ""


class _ForgeResume(_Action, frozen=True, kw_only=True, tag="forgeResume"):
    plan_id: str


class _ForgeStatus(_Action, frozen=True, kw_only=True, tag="forgeStatus"):
    pass


class _ForgeCancel(_Action, frozen=True, kw_only=True, tag="forgeCancel"):
    pass


class _PlanList(_Action, frozen=True, kw_only=True, tag="planList"):
    status: str = ""


class _PlanShow(_Action, frozen=True, kw_only=True, tag="planShow"):
    plan_id: str


class _PlanApprove(_Action, frozen=True, kw_only=True, tag="planApprove"):
    plan_id: str


class _PlanClose(_Action, frozen=True, kw_only=True, tag="planClose"):
    plan_id: str


class _PlanCreate(_Action, frozen=True, kw_only=True, tag="planCreate"):
    description: str
    context: str = ""


class _PlanRun(_Action, frozen=True, kw_only=True, tag="planRun"):
    plan_id: str


_AnyAction: TypeAlias = (
    _ForgeCreate
    | _ForgeResume
    | _ForgeStatus
    | _ForgeCancel
    | _PlanList
    | _PlanShow
    | _PlanApprove
    | _PlanClose
    | _PlanCreate
    | _PlanRun
)

FORMS = (
    "forgeCreate{description, context?}",
    "forgeResume{planId}",
    "forgeStatus{}",
    "forgeCancel{}",
    "planList{status?}",
    "planShow{planId}",
    "planApprove{planId}",
    "planClose{planId}",
    "planCreate{description, context?}",
    "planRun{planId}",
)
"""The actions with their fields, as agents are told them."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer says, and what it asks for."""

    text: str
    """The answer without the block."""
    commands: tuple[Command, ...] = ()


class Malformed(msgspec.Struct, frozen=True, kw_only=True):
    """An answer whose block cannot be read; nothing of it is done."""

    text: str
    problem: str


def asked(answer: str) -> Asked | Malformed:
    """The actions that an answer asks for, as commands; none, if it has no block of its own."""
    normal = answer.replace("\r\n", "\n").replace("\r", "\n")
    lines, _ = read(normal)
    blocks = {line.block for line in lines if line.kind is Kind.CODE and line.info == LABEL}
    ours = [line for line in lines if line.kind is Kind.CODE and line.block in blocks]
    rest = (
        raw
        for raw, line in zip(normal.split("\n"), lines, strict=True)
        if not (line.kind is Kind.CODE and line.block in blocks)
    )
    text = "\n".join(rest).strip()
    if not blocks:
        return Asked(text=text)
    if len(blocks) > 1:
        return Malformed(text=text, problem=f"there are {len(blocks)} blocks `{LABEL}`; at most one is read")
    if ours[-1].info == LABEL:
        return Malformed(text=text, problem=f"the block `{LABEL}` is never closed")
    found = _read("\n".join(line.text for line in ours if line.info == LABEL))
    if isinstance(found, str):
        return Malformed(text=text, problem=found)
    return Asked(text=text, commands=found)


def _read(body: str) -> tuple[Command, ...] | str:
    """The commands, or why it cannot be read."""
    if len(body) > LARGEST:
        return f"the block `{LABEL}` has {len(body)} characters; at most {LARGEST} are read"
    try:
        actions = msgspec.json.decode(body, type=tuple[_AnyAction, ...])
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        return f"the block `{LABEL}` cannot be read: {error}"
    if len(actions) > MOST:
        return f"it asks for {len(actions)} actions; at most {MOST} are done"
    commands: list[Command] = []
    for action in actions:
        found = _meant(action)
        if isinstance(found, str):
            return found
        commands.append(found)
    return tuple(commands)


def _meant(action: _AnyAction) -> Command | str:
    """The command that a person would type for it."""
    match action:
        case _ForgeCreate(description=description, context=context):
            found = shapes.ForgeCreate(description=description.strip(), context=context.strip())
            return found if found.description else "`forgeCreate` says nothing"
        case _PlanCreate(description=description, context=context):
            created = shapes.PlanCreate(description=description.strip(), context=context.strip())
            return created if created.description else "`planCreate` says nothing"
        case _ForgeStatus():
            return shapes.ForgeStatus()
        case _ForgeCancel():
            return shapes.ForgeCancel()
        case _PlanList(status=status):
            if status and status.upper() not in STATUSES:
                return f"`planList`: `{status}` is no status of a plan"
            return shapes.PlanList(status=status.upper())
    return _of_one_plan(action)


def _of_one_plan(action: _ForgeResume | _PlanShow | _PlanApprove | _PlanClose | _PlanRun) -> Command | str:
    kinds: dict[type[_Action], Callable[..., Command]] = {
        _ForgeResume: shapes.ForgeResume,
        _PlanShow: shapes.PlanShow,
        _PlanApprove: shapes.PlanApprove,
        _PlanClose: shapes.PlanClose,
        _PlanRun: shapes.PlanRun,
    }
    looked_up = parse(f"!plan show {action.plan_id.strip()}")
    if not isinstance(looked_up, shapes.PlanShow):
        return f"`{action.__struct_config__.tag}`: `{action.plan_id}` is not the id of a plan or a task"
    return kinds[type(action)](plan=looked_up.plan)
