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

from planforge.kernel.work.lifecycle.tables import PLAN
from planforge.rules.commands.grammar import parse
from planforge.rules.commands.shapes import Command
from planforge.rules.verdicts.blocks import Kind, read

LABEL = "planforge-actions"
MOST = 5
"""How many actions one answer may ask for."""
LARGEST = 20_000


Field = tuple[str, type[str]] | tuple[str, type[str], str]
"""A name, its type, and a default if it may be left out."""

OF_A_PLAN: tuple[Field, ...] = (("planId", str),)
DESCRIBED: tuple[Field, ...] = (("description", str), ("context", str, ""))
FIELDS: dict[str, tuple[Field, ...]] = {
    "forge create": DESCRIBED,
    "forge resume": OF_A_PLAN,
    "forge status": (),
    "forge cancel": (),
    "plan list": (("status", str, ""),),
    "plan show": OF_A_PLAN,
    "plan approve": OF_A_PLAN,
    "plan close": OF_A_PLAN,
    "plan create": DESCRIBED,
    "plan run": OF_A_PLAN,
}
"""The commands that an agent may ask for, each with its fields."""


def _name(command: str) -> str:
    """What an action is called: `planShow` for `plan show`."""
    first, _, second = command.partition(" ")
    return first + second.capitalize()


FORMS = tuple(
    f"{_name(command)}{{{', '.join(field[0] + '?' * (len(field) - 2) for field in fields)}}}"
    for command, fields in FIELDS.items()
)
"""The actions with their fields, as agents are told them."""

_KINDS = {
    msgspec.defstruct(
        _name(command), fields, tag=True, tag_field="action", forbid_unknown_fields=True
    ): command
    for command, fields in FIELDS.items()
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


def _meant(name: str, given: dict[str, str]) -> Command | str:
    """The command that a person would type for it."""
    said = {field: text.strip() for field, text in given.items()}
    if "description" in said:
        if not said["description"]:
            return f"`{_name(name)}` says nothing"
        return Command(name=name, description=said["description"], context=said["context"])
    if "status" in said:
        if said["status"] and said["status"].upper() not in PLAN.states:
            return f"`{_name(name)}`: `{given['status']}` is no status of a plan"
        return Command(name=name, status=said["status"].upper())
    if "planId" not in said:
        return Command(name=name)
    looked_up = parse(f"!plan show {said['planId']}")
    if not isinstance(looked_up, Command):
        return f"`{_name(name)}`: `{given['planId']}` is not the id of a plan or a task"
    return Command(name=name, plan=looked_up.plan)
