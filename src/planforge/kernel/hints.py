"""
What to do next, as a fact or a part of a document.

A failed effect is recorded with its hint, so a replayed failure gives the same advice as the live one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from planforge.actions import Action, Blank, pieced, pieces
from planforge.errors import CannotPerform, PerformerFailed
from planforge.kernel.events import EffectFailed, RecordedAction

if TYPE_CHECKING:
    from planforge.actions import Value, Verb


def failed(effect: str, error: CannotPerform) -> EffectFailed:
    """The fact that `effect` was tried and failed."""
    hint = tuple(recorded(piece) if isinstance(piece, Action) else piece for piece in pieces(error.hint))
    return EffectFailed(effect=effect, error=type(error).__name__, message=error.message, hint=hint or None)


def failure(fact: EffectFailed) -> PerformerFailed:
    """What the flow sees of it."""
    hint = pieced(
        action_of(piece) if isinstance(piece, RecordedAction) else piece for piece in fact.hint or ()
    )
    return PerformerFailed(fact.error, fact.message, hint)


def recorded(action: Action) -> RecordedAction:
    """An action as a fact, or as a part of a document."""
    values = (*action.items, *action.options.values())
    blanks = dict.fromkeys(str(value) for value in values if isinstance(value, Blank))
    items = tuple(map(str, action.items))
    options = {
        name: str(value) if isinstance(value, Blank) else value for name, value in action.options.items()
    }
    return RecordedAction(verb=action.verb, items=items, options=options, blanks=tuple(blanks))


def action_of(fact: RecordedAction) -> Action:
    """The action that was recorded."""

    def value(found: Value) -> Value:
        return Blank(found) if isinstance(found, str) and found in fact.blanks else found

    items = [Blank(item) if item in fact.blanks else item for item in fact.items]
    options = {name: value(found) for name, found in fact.options.items()}
    return Action(cast("Verb", fact.verb), *items, **options)
