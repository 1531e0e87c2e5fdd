"""The actions of a script by their names, each read from JSON and checked."""

import json
import math
from collections.abc import Callable, Mapping

from planforge.testing.script import actions
from planforge.testing.script.actions import Action, Cue
from planforge.testing.script.values import (
    fields,
    listed,
    mapping,
    one_of,
    seconds,
    text,
    texts,
    whole,
)

TOOL_KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other")
TOOL_STATES = ("pending", "in_progress", "completed", "failed")
PLAN_STATES = ("pending", "in_progress", "completed")
STOP_REASONS = ("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled")
USAGE_FIELDS = {
    "input": "inputTokens",
    "output": "outputTokens",
    "thought": "thoughtTokens",
    "cached": "cachedReadTokens",
    "cached_read": "cachedReadTokens",
    "cached_write": "cachedWriteTokens",
}
Check = Callable[[object], object]
COMPANIONS: Mapping[str, tuple[str, ...]] = {"tool": ("input", "kind", "paths", "status", "output")}
"""Keys that stand beside the name of an action and belong to it."""


def cues(value: object, names: set[str], place: str, *, asked: bool = False) -> tuple[Cue, ...]:
    """A list of actions; `names` are those that `${...}` may use, `asked` is whether an `ask` came before."""
    found: list[Cue] = []
    for index, item in enumerate(listed(value)):
        here = f"{place}[{index}]"
        try:
            cue = _cue(item, names, asked=asked)
            if isinstance(cue.action, actions.Ask):
                cue = Cue(_with_lists(cue.action, mapping(item)["ask"], names, here), cue.only_if)
        except ValueError as error:
            raise _at(here, error) from error
        found.append(cue)
        asked = asked or isinstance(cue.action, actions.Ask)
    return tuple(found)


class Misplaced(ValueError):
    """Something wrong, with the place where it stands."""


def _at(place: str, error: ValueError) -> Misplaced:
    return error if isinstance(error, Misplaced) else Misplaced(f"`{place}`: {error}")


def _with_lists(ask: actions.Ask, value: object, names: set[str], place: str) -> actions.Ask:
    found = mapping(value)

    def listed_under(name: str) -> tuple[Cue, ...]:
        return cues(found.get(name, []), names, f"{place}.ask.{name}", asked=True)

    return ask.changed(allowed=listed_under("allowed"), denied=listed_under("denied"))


def _cue(value: object, names: set[str], *, asked: bool) -> Cue:
    found = mapping(value)
    companions = {key for verb in found for key in COMPANIONS.get(verb, ())}
    verbs = [key for key in found if key != "if" and key not in companions]
    if len(verbs) != 1:
        raise ValueError(f"wants one action, has {', '.join(f'`{verb}`' for verb in verbs) or 'none'}")
    [verb] = verbs
    if verb not in ACTIONS:
        raise ValueError(f"unknown action `{verb}` (known: {', '.join(ACTIONS)})")
    only_if = one_of("allowed", "denied")(found["if"]) if "if" in found else None
    if only_if and not asked:
        raise ValueError("has `if`, but no `ask` comes before it")
    try:
        given = {key: item for key, item in found.items() if key != "if"} if companions else found[verb]
        action = ACTIONS[verb](given)
        actions.filled(action, dict.fromkeys(names, ""))
    except KeyError as error:
        raise ValueError(f"`{verb}` uses `${{{error.args[0]}}}`, which `match` does not name") from error
    except ValueError as error:
        raise ValueError(f"`{verb}` {error}") from error
    return Cue(action, only_if)


def _of(make: Callable[..., Action], check: Check, *names: str) -> Callable[[object], Action]:
    """An action whose fields all stand under their names and pass the same check."""

    def read(value: object) -> Action:
        found = fields(value, *names)
        return make(*(check(found[name]) for name in names))

    return read


def _run(value: object) -> Action:
    argv = texts(value)
    if not argv:
        raise ValueError("wants at least a program")
    return actions.Run(argv)


def _tool(value: object) -> Action:
    if isinstance(value, str):
        value = {"tool": value}
    found = fields(value, "tool", optional=COMPANIONS["tool"])
    return actions.Tool(
        text(found["tool"]),
        mapping(found.get("input", {})),
        one_of(*TOOL_KINDS)(found.get("kind", "other")),
        texts(found.get("paths", [])),
        one_of(*TOOL_STATES)(found.get("status", "completed")),
        text(found.get("output", "")),
    )


def _hang(value: object) -> Action:
    if value is not True and value != "deaf":
        raise ValueError(f'wants `true` or `"deaf"`, not `{json.dumps(value)}`')
    return actions.Deaf() if value == "deaf" else actions.Sleep(math.inf)


def _ask(value: object) -> Action:
    found = fields(value, "title", optional=("kind", "paths", "allowed", "denied"))
    kind = one_of(*TOOL_KINDS)(found.get("kind", "edit"))
    return actions.Ask(text(found["title"]), kind, texts(found.get("paths", [])))


def _usage(value: object) -> Action:
    found = fields(value, "input", "output", optional=tuple(USAGE_FIELDS))
    if "cached" in found and "cached_read" in found:
        raise ValueError("has both `cached` and `cached_read`, which are the same")
    return actions.Usage(tuple((USAGE_FIELDS[key], whole(tokens)) for key, tokens in found.items()))


def _context(value: object) -> Action:
    if not isinstance(value, dict):
        return actions.Context(whole(value))
    found = fields(value, "used", optional=("size", "cost", "currency"))
    cost = found.get("cost")
    if cost is not None and (isinstance(cost, bool) or not isinstance(cost, int | float) or cost < 0):
        raise ValueError(f"wants a number for `cost`, not `{json.dumps(cost)}`")
    return actions.Context(
        whole(found["used"]),
        whole(found.get("size", 0)),
        None if cost is None else float(cost),
        text(found.get("currency", "USD")),
    )


def _plan(value: object) -> Action:
    state = one_of(*PLAN_STATES)
    entries = []
    for entry in listed(value):
        found = {"step": entry} if isinstance(entry, str) else fields(entry, "step", optional=("status",))
        entries.append((text(found["step"]), state(found.get("status", "pending"))))
    return actions.Plan(tuple(entries))


def _error(value: object) -> Action:
    found = fields(value, "code", "message", optional=("data", "times"))
    code, times = whole(found["code"], -math.inf), whole(found.get("times", 0))
    return actions.Error(code, text(found["message"]), found.get("data"), times)


def _http(value: object) -> Action:
    found = fields(value, "status", optional=("message", "reset", "body", "times"))
    body = found.get("body")
    return actions.Http(
        whole(found["status"], 400, 599),
        text(found.get("message", "")),
        None if found.get("reset") is None else _reset(found["reset"]),
        body if body is None or isinstance(body, str) else json.dumps(body),
        whole(found.get("times", 0)),
    )


def _reset(value: object) -> float:
    """As `actions.Http` has it."""
    if not isinstance(value, str):
        return seconds(value)
    from datetime import datetime

    try:
        instant = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError(f"wants seconds or an instant for `reset`, not `{value}`") from None
    if instant.tzinfo is None:
        raise ValueError(f"wants an instant with its time zone for `reset`, not `{value}`")
    return -instant.timestamp()


def _die(value: object) -> Action:
    import signal

    name = text(value)
    if f"SIG{name}" not in signal.Signals.__members__:
        raise ValueError(f"wants the name of a signal, such as KILL, not `{name}`")
    return actions.Die(signal.Signals[f"SIG{name}"].value)


def _hex(value: object) -> Action:
    try:
        return actions.Bytes(bytes.fromhex(text(value)))
    except ValueError:
        raise ValueError(f"wants hexadecimal digits, two for each byte, not `{json.dumps(value)}`") from None


def _named(make: Callable[[], Action]) -> Callable[[object], Action]:
    def read(value: object) -> Action:
        if value is not True:
            raise ValueError(f"wants `true`, not `{json.dumps(value)}`")
        return make()

    return read


ACTIONS: Mapping[str, Callable[[object], Action]] = {
    "say": lambda value: actions.Say("agent_message_chunk", text(value)),
    "think": lambda value: actions.Say("agent_thought_chunk", text(value)),
    "remark": lambda value: actions.Remark(text(value)),
    "write": _of(lambda path, said: actions.Write(path, said, append=False), text, "path", "text"),
    "append": _of(lambda path, said: actions.Write(path, said, append=True), text, "path", "text"),
    "edit": _of(actions.Edit, text, "path", "old", "new"),
    "read": lambda value: actions.Read(text(value)),
    "delete": lambda value: actions.Delete(text(value)),
    "run": _run,
    "tool": _tool,
    "sleep": lambda value: actions.Sleep(seconds(value)),
    "ask": _ask,
    "usage": _usage,
    "quota": _of(actions.Quota, whole, "input", "output"),
    "context": _context,
    "plan": _plan,
    "mode": lambda value: actions.Mode(text(value)),
    "stop": lambda value: actions.Stop(one_of(*STOP_REASONS)(value)),
    "error": _error,
    "http": _http,
    "slow": lambda value: actions.Slow(seconds(value)),
    "truncate": _named(actions.Truncate),
    "drop": _named(actions.Drop),
    "exit": lambda value: actions.Exit(whole(value, 0, 255)),
    "leave": lambda value: actions.Leave(whole(value, 0, 255)),
    "twice": _named(actions.Twice),
    "die": _die,
    "hang": _hang,
    "garbage": lambda value: actions.Raw(1, text(value)),
    "hex": _hex,
    "stderr": lambda value: actions.Raw(2, text(value)),
    "flood": lambda value: actions.Flood(math.inf if value == "endless" else whole(value)),
    "line": lambda value: actions.Line(whole(value, 1)),
    "detach": lambda value: actions.Detach(seconds(value)),
}
