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

from functools import reduce
from operator import or_
from types import GenericAlias
from typing import Any

import msgspec

from planforge.rules.commands import shapes
from planforge.rules.commands.grammar import STATUSES, parse
from planforge.rules.commands.shapes import Command
from planforge.rules.verdicts.blocks import Kind, read

LABEL = "planforge-actions"
MOST = 5
"""How many actions one answer may ask for."""
LARGEST = 20_000


Field = tuple[str, type[str]] | tuple[str, type[str], str]
"""A name, its type, and a default if it may be left out."""

PLAN: tuple[Field, ...] = (("planId", str),)
DESCRIBED: tuple[Field, ...] = (("description", str), ("context", str, ""))
FIELDS: dict[type[Command], tuple[Field, ...]] = {
    shapes.ForgeCreate: DESCRIBED,
    shapes.ForgeResume: PLAN,
    shapes.ForgeStatus: (),
    shapes.ForgeCancel: (),
    shapes.PlanList: (("status", str, ""),),
    shapes.PlanShow: PLAN,
    shapes.PlanApprove: PLAN,
    shapes.PlanClose: PLAN,
    shapes.PlanCreate: DESCRIBED,
    shapes.PlanRun: PLAN,
}
"""The commands that an agent may ask for, each with its fields."""


def _name(kind: type[Command]) -> str:
    """What an action is called: `planShow` for `plan show`."""
    first, _, second = str(kind.__struct_config__.tag).partition(" ")
    return first + second.capitalize()


FORMS = tuple(
    f"{_name(kind)}{{{', '.join(field[0] + '?' * (len(field) - 2) for field in fields)}}}"
    for kind, fields in FIELDS.items()
)
"""The actions with their fields, as agents are told them."""

_KINDS = {
    msgspec.defstruct(_name(kind), fields, tag=True, tag_field="action", forbid_unknown_fields=True): kind
    for kind, fields in FIELDS.items()
}
_ACTIONS: Any = GenericAlias(tuple, (reduce(or_, _KINDS), ...))


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
        actions: tuple[msgspec.Struct, ...] = msgspec.json.decode(body, type=_ACTIONS)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        return f"the block `{LABEL}` cannot be read: {error}"
    if len(actions) > MOST:
        return f"it asks for {len(actions)} actions; at most {MOST} are done"
    commands: list[Command] = []
    for action in actions:
        found = _meant(_KINDS[type(action)], msgspec.structs.asdict(action))
        if isinstance(found, str):
            return found
        commands.append(found)
    return tuple(commands)


def _meant(kind: type[Command], given: dict[str, str]) -> Command | str:
    """The command that a person would type for it."""
    said = {name: text.strip() for name, text in given.items()}
    if "description" in said:
        return kind(**said) if said["description"] else f"`{_name(kind)}` says nothing"
    if "status" in said:
        if said["status"] and said["status"].upper() not in STATUSES:
            return f"`{_name(kind)}`: `{given['status']}` is no status of a plan"
        return shapes.PlanList(status=said["status"].upper())
    if "planId" not in said:
        return kind()
    looked_up = parse(f"!plan show {said['planId']}")
    if not isinstance(looked_up, shapes.PlanShow):
        return f"`{_name(kind)}`: `{given['planId']}` is not the id of a plan or a task"
    return kind(plan=looked_up.plan)
