"""
From parts to a script of the rehearsal agent, and from its journal back to parts.

What an orchestrator's prompts say of role, attempt and task is its adapter's business; it hands over a
function that says which texts a prompt for a part holds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

import msgspec

from planforge_guardrails.sample import plan_text
from planforge_guardrails.shapes import Action, Case, Part, Place, Role, Task, Twin

When = Callable[[Part], list[list[str]]]
"""Which texts the prompts of an orchestrator hold for a part, for each kind of them."""
USAGE = {"input": 1000, "output": 100}
ENDINGS = frozenset({"exit", "drop", "die", "hang", "error", "http", "truncate", "leave"})
LONG_SLEEP = 5
"""An agent that sleeps so many seconds may be stopped meanwhile; nobody knows what it wrote after that."""


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """What the journal says of one prompt."""

    part: Part
    own: bool
    """Whether the part is the case's own, and not one that is played honestly."""
    answered: bool
    actions: tuple[Action, ...]
    """What the scene has the agent do, with everything filled in."""


def honest_parts(tasks: tuple[Task, ...]) -> Iterator[Part]:
    """What is done in every role that a case says nothing of."""
    for task in tasks:
        writes = tuple({"write": {"path": path, "text": text}} for path, text in task.files.items())
        yield Part(role=Role.DEVELOPER, task=task.name, do=(*writes, {"say": "It is in, with its tests."}))
        yield Part(role=Role.DRAFTER, task=task.name, do=({"say": plan_text(task)},))
        yield Part(role=Role.REVISER, task=task.name, do=({"say": plan_text(task)},))
    yield Part(role=Role.REVIEWER, do=({"say": "@APPROVE@"},))
    yield Part(role=Role.AUDITOR, do=({"say": "@APPROVE@"},))


def parts_of(case: Case, twin: Twin) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """The parts of a twin that are the case's own, and those that are played besides."""
    own = case.bad if twin is Twin.BAD else case.honest
    return own, tuple(honest_parts(case.tasks))


def write_script(case: Case, twin: Twin, place: Place, when: When, words: Mapping[str, str]) -> None:
    """Write what the agent is to play; `words` are the orchestrator's own, such as a verdict."""
    own, others = parts_of(case, twin)
    scenes, played = [], []
    for index, part in enumerate((*own, *others)):
        does = [_filled(action, words) for action in _actions(part, place)]
        for texts in [[part.hears]] if part.hears else when(part):
            scenes.append({"when": texts, "do": does})
            played.append(index)
    place.scenes.write_text(json.dumps(played))
    place.script.write_text(json.dumps({"name": f"{case.name} ({twin.value})", "scenes": scenes}, indent=1))


def heard(case: Case, twin: Twin, place: Place) -> list[Heard]:
    """Everything that the agent was asked, by its own journal."""
    own, others = parts_of(case, twin)
    known = (*own, *others)
    played = json.loads(place.scenes.read_text())
    scenes = json.loads(place.script.read_text())["scenes"]
    found: list[Heard] = []
    for line in place.journal.read_text().splitlines() if place.journal.exists() else []:
        entry = json.loads(line)
        if entry["scene"] is None:
            continue
        number = played[entry["scene"]]
        part = known[number]
        if entry["event"] == "asked":
            actions = tuple(scenes[entry["scene"]]["do"])
            found.append(Heard(part=part, own=number < len(own), answered=False, actions=actions))
        else:
            index = next(i for i, each in enumerate(found) if each.part == part and not each.answered)
            found[index] = msgspec.structs.replace(found[index], answered=True)
    return found


def tokens(parts: Iterable[Heard]) -> int:
    """What the agents say they used."""
    said = [action for each in parts if each.answered for action in each.actions]
    return sum(sum(action["usage"].values()) for action in said if "usage" in action)


def written(heard: Heard) -> dict[str, str]:
    """What an agent is known to have written into its worktree, by path."""
    found: dict[str, str] = {}
    for action in heard.actions if heard.part.role is Role.DEVELOPER else ():
        if ENDINGS & action.keys() or action.get("sleep", 0) >= LONG_SLEEP:
            break
        if "write" in action and _is_inside(action["write"]["path"]):
            found[action["write"]["path"]] = action["write"]["text"]
        if "delete" in action:
            found.pop(action["delete"], None)
        if "edit" in action or "append" in action:  # the text before it is the project's, or went on
            found.pop(action.get("edit", action.get("append"))["path"], None)
    return found


def _is_inside(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return not path.startswith("/") and ".." not in parts and parts[0] != ".git"


def _actions(part: Part, place: Place) -> Iterator[Action]:
    names = {
        "@ROOT@": str(place.root),
        "@HOME@": str(place.home),
        "@PLACE@": str(place.directory),
        "@ORIGIN@": str(place.origin),
        "@PYTHON@": sys.executable,
    }
    for action in part.do:
        yield _filled(action, names)
    if part.reports and not any("usage" in action for action in part.do):
        yield {"usage": USAGE}


def _filled(value: Any, names: Mapping[str, str]) -> Any:
    """The same with what the names stand for in it."""
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace(name, text)
        return value
    if isinstance(value, dict):
        return {key: _filled(each, names) for key, each in value.items()}
    return [_filled(each, names) for each in value] if isinstance(value, list | tuple) else value
