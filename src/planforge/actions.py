"""
What can be done next, as a value.

An action is a verb, the items it is about and its options. Errors, views and documents carry actions. The
command line, the chat and every other interface decide how an action is typed or clicked there, so no
command line stands as text below `interfaces`.

    Action("plan skip", "plan-001", "phase-2", reason=TEXT)
    Advice("read it, then run {}", Action("plan approve", "plan-001"))
"""

from __future__ import annotations

from collections.abc import Callable


class Blank(str):
    """A place that a person fills in: `TEXT`, `BRANCH`, "what you want"."""

    __slots__ = ()


TEXT = Blank("TEXT")
"""A reason or a remark in the person's own words."""

Value = str | int | bool


class Action:
    """One thing that a person or a program can do next. The verb is the name of a command, such as `plan approve`."""

    __slots__ = ("items", "options", "verb")

    def __init__(self, verb: str, *items: str, **options: Value) -> None:
        self.verb = verb
        self.items = items
        self.options = options

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Action) and (self.verb, self.items) == (other.verb, other.items)
        return same and self.options == other.options

    def __hash__(self) -> int:
        return hash((self.verb, self.items, tuple(self.options.items())))

    def __repr__(self) -> str:
        options = [f"{name}={value!r}" for name, value in self.options.items()]
        return f"Action({', '.join([*map(repr, (self.verb, *self.items)), *options])})"


class Advice:
    """A sentence with an action at each `{}`."""

    __slots__ = ("actions", "text")

    def __init__(self, text: str, *actions: Action) -> None:
        assert text.count("{}") == len(actions), f"`{text}` has not one place for each action"
        self.text = text
        self.actions = actions

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Advice) and (self.text, self.actions) == (other.text, other.actions)

    def __hash__(self) -> int:
        return hash((self.text, self.actions))

    def __repr__(self) -> str:
        return f"Advice({', '.join(map(repr, (self.text, *self.actions)))})"


Hint = str | Action | Advice


def written(hint: Hint, say: Callable[[Action], str]) -> str:
    """A hint in words, with each action as `say` writes it, in backticks."""
    match hint:
        case Action():
            return f"`{say(hint)}`"
        case Advice():
            head, *rest = hint.text.split("{}")
            said = (f"`{say(action)}`{text}" for action, text in zip(hint.actions, rest, strict=True))
            return head + "".join(said)
    return hint
