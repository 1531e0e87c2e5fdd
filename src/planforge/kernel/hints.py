"""What to do about a failed effect, as a fact: a replayed failure gives the same advice as the live one."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from planforge.actions import Action, Blank, pieced, pieces
from planforge.errors import CannotPerform, PerformerFailed
from planforge.kernel.events import EffectFailed, RecordedAction

if TYPE_CHECKING:
    from planforge.actions import Value, Verb


def failed(effect: str, error: CannotPerform) -> EffectFailed:
    """The fact that `effect` was tried and failed."""
    hint = tuple(_recorded(piece) if isinstance(piece, Action) else piece for piece in pieces(error.hint))
    return EffectFailed(effect=effect, error=type(error).__name__, message=error.message, hint=hint or None)


def failure(fact: EffectFailed) -> PerformerFailed:
    """What the flow sees of it."""
    hint = pieced(_action(piece) if isinstance(piece, RecordedAction) else piece for piece in fact.hint or ())
    return PerformerFailed(fact.error, fact.message, hint)


def _recorded(action: Action) -> RecordedAction:
    values = (*action.items, *action.options.values())
    blanks = dict.fromkeys(str(value) for value in values if isinstance(value, Blank))
    items = tuple(map(str, action.items))
    options = {name: _plain(value) for name, value in action.options.items()}
    return RecordedAction(verb=action.verb, items=items, options=options, blanks=tuple(blanks))


def _plain(value: Value) -> Value:
    return str(value) if isinstance(value, Blank) else value


def _action(fact: RecordedAction) -> Action:
    def value(found: Value) -> Value:
        return Blank(found) if isinstance(found, str) and found in fact.blanks else found

    items = [Blank(item) if item in fact.blanks else item for item in fact.items]
    options = {name: value(found) for name, found in fact.options.items()}
    return Action(cast("Verb", fact.verb), *items, **options)
