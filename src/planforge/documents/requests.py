"""
Whether words say what somebody wants.

A request is put to an agent, which costs money. Names of items, and words that only point at something, say
nothing to one: it does not know what came before. What is left without such words is what a request says.
"""

from __future__ import annotations

import re
from typing import NamedTuple

KINDS = "plan|ws|task|run|phase|step|lesson|gate|question"
NAME = re.compile(
    rf"(?:(?P<kind>{KINDS})s?[\s_#.-]*|(?P<fix>fix)[_-]?|p|n[or]\.?\s*|number\s+|#\s*)?"
    r"(?P<number>[0-9]{1,9})(?:\.md)?",
    re.IGNORECASE,
)
BETWEEN = re.compile(r"[\s,;/+&]+(?:(?:and|or|of|in|to)\s+)?", re.IGNORECASE)
PLAN_FILE = re.compile(r"(?:\S*/)?plan-(?P<number>[0-9]{1,9})(?:-[^/\s]*)?\.md", re.IGNORECASE)

WORD = re.compile(r"[^\W_]+(?:['\u2019_-][^\W_]+)*")
ORDINAL = re.compile(r"[0-9]+(?:st|nd|rd|th)?")
POINTING = """
a an the this that these those it its i me my we us our ours you your he she they them their one
ones another some any all both each every everything anything something nothing none other others
same such thing things stuff rest whole here there above below first second third last next latest
newest previous prior current former new old what which who whose where when how whatever that's
it's let's lets let of to in on at by for with from about as is are was were be been am do does did
done doing can could will would shall should may might must have has had not no yes yep yeah ok okay
sure fine right please thanks thank hi hello hey and or but if then than so too also just only now
again once still already go going ahead continue proceed keep carry start begin try retry redo
finish end want wanted need like discussed said mentioned talked agreed meant fix forge make
implement run plan plans draft drafts task tasks issue bug request item items phase phases step
steps runs lesson lessons gate gates question questions number nr ws md idea
"""
EMPTY = frozenset(POINTING.split())
"""Words that point at something, join others, or tell Planforge to go on: none says what is wanted."""
CALLED = """
agent approve audit backtest bench budget cancel chat check-proof cleanup context demo doctor
evidence graph handoff help init land lease link list log pipeline policy prove rebuild recover replay
resume review role scan schema score show states status stop verdict verify why worktree
"""
COMMANDS = frozenset(CALLED.split())
"""Commands of Planforge that could be words of a request, and are none alone: `the audit`, `resume`."""
DOING = ("fix", "implement", "make")


class Item(NamedTuple):
    """What somebody names: its kind, such as `run`, and its name, such as `run-003`."""

    kind: str
    name: str


def item(text: str) -> Item | None:
    """The first item that a text names, if it is nothing but names: `run-3`, `plan 1`, `#1`, `1, 2`."""
    said = text.strip()
    if file := PLAN_FILE.fullmatch(said):
        return Item("plan", f"plan-{file['number']}")
    first, at = None, 0
    while found := NAME.match(said, at):
        kind = (found["kind"] or found["fix"] or "plan").lower()
        first, at = first or Item(kind, f"{kind}-{found['number']}"), found.end()
        if at == len(said):
            return first
        between = BETWEEN.match(said, at)
        if not between:
            return None
        at = between.end()
    return None


def means_nothing(text: str) -> bool:
    """Whether a text does not say what is wanted, such as "this", "what we discussed" or "resume"."""
    words = WORD.findall(text.casefold())
    left = [word for word in words if word not in EMPTY and not ORDINAL.fullmatch(word) and not item(word)]
    alone = len(left) == 1 and left[0] in COMMANDS and words[0] not in DOING
    return alone or not left
