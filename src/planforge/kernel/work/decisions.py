"""
What a person decides: an approval, a gate or a question, each the same record.

A decision is about a subject and its exact content, has choices with their costs, and is made once.
A yes is used once, by one run. Whatever is asked anew under the same name voids it, and the end of the
run that waits for it closes it. `asked`, `made` and `used` are the facts of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from planforge.actions import Action, Verb

if TYPE_CHECKING:
    # Looking at what waits must be quick, and needs none of the events.
    from planforge.kernel.events import DecisionAsked, DecisionMade, DecisionUsed, OfDecision
    from planforge.kernel.work.items import Rows

APPROVE, REJECT = "approve", "reject"


class Form(NamedTuple):
    """Everything that has to be known about a kind of decision."""

    show: Verb
    list: Verb
    words: dict[str, str]
    """What people call its statuses, where that is another word."""
    waits: bool = True
    """Whether a run waits for it; it is named by its number then, and otherwise by its subject."""
    answers: bool = False
    """Whether any choice lets the run go on, as an answer does, and not only a yes."""


KINDS = {
    "approval": Form("plan show", "plan list", {"decided": "approved"}, waits=False),
    "gate": Form("gate show", "gate list", {"decided": "approved"}),
    "question": Form(
        "question show", "question list", {"decided": "answered", "used": "taken"}, answers=True
    ),
}


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A decision as the ledger has it."""

    kind: str
    number: int
    subject: str
    name: str
    """The gate, or the run and its effect that asks."""
    run: str
    step: str
    attempt: int
    text: str
    reasons: str
    choices: str
    content: str
    """What it is about, by its hash: a plan, a tree, or what a question names."""
    proposed: str
    """The commit that has the tree."""
    base: str
    diff: str
    documents: str
    hash: str
    """Of all that is asked."""
    asked_at: str
    status: str
    """waiting, decided, rejected, used, superseded or closed"""
    choice: str
    actor: str
    reason: str
    decided_at: str
    used_by: str

    @property
    def label(self) -> str:
        """What people call it."""
        return label(self.kind, self.number)

    @property
    def look(self) -> Action:
        """Shows it to a person."""
        form = KINDS[self.kind]
        return Action(form.show, self.label if form.waits else self.subject)

    @property
    def word(self) -> str:
        """What people call its status."""
        return KINDS[self.kind].words.get(self.status, self.status)

    @property
    def shown(self) -> str:
        """The hash by which a person says what they looked at."""
        return self.hash if KINDS[self.kind].answers else self.content


def label(kind: str, number: int) -> str:
    """What people call a decision: `gate-007`."""
    return f"{kind}-{number:03}"


# Reading


def select(ledger: Rows, kind: str, where: str = "TRUE", *values: str | int) -> list[Decision]:
    """The decisions of a kind, oldest first."""
    return ledger.select(Decision, f"decisions WHERE kind = ? AND {where} ORDER BY number", kind, *values)


def waiting(ledger: Rows, *kinds: str) -> list[Decision]:
    """Those that wait for a person; of all kinds that a run waits for, if none is named."""
    named = kinds or [name for name, form in KINDS.items() if form.waits]
    return [each for kind in named for each in select(ledger, kind, "status = 'waiting'")]


def newest(ledger: Rows, kind: str, subject: str, name: str) -> Decision | None:
    """The one that counts, of those of a name."""
    where = "kind = ? AND name = ? AND subject = ? ORDER BY number DESC LIMIT 1"
    return next(iter(ledger.select(Decision, f"decisions WHERE {where}", kind, name, subject)), None)


def made_for(ledger: Rows, run: str, since: str) -> list[Decision]:
    """What a run can go on with: answers and yeses that nobody has used, and each no since a time."""
    where = "run = ? AND (status = 'decided' OR status = 'rejected' AND decided_at > ?) ORDER BY decided_at"
    return ledger.select(Decision, f"decisions WHERE {where}", run, since)


# What is recorded


def asked(ledger: Rows, event: DecisionAsked) -> DecisionAsked:
    """What is asked, under the next number; within the transaction that records it."""
    query = "SELECT coalesce(max(number), 0) + 1 FROM decisions WHERE kind = ?"
    ((number,),) = ledger.query(query, event.kind)
    return msgspec.structs.replace(hashed(event), number=number)


def hashed(event: DecisionAsked) -> DecisionAsked:
    """What is asked, with the hash of all of it."""
    from planforge.kernel.objects import address, encode

    what = msgspec.structs.replace(event, number=0, hash="")
    return msgspec.structs.replace(event, hash=address(encode(what)))


def made(of: Decision | DecisionAsked, choice: str, actor: str, reason: str = "") -> DecisionMade:
    """A person's choice, bound to exactly what was asked."""
    from planforge.kernel.events import DecisionMade

    return DecisionMade(**_which(of), hash=of.hash, choice=choice, actor=actor, reason=reason)


def used(of: Decision | OfDecision, run: str, continues: str = "") -> DecisionUsed:
    """The use of a yes, by a run."""
    from planforge.kernel.events import DecisionUsed

    return DecisionUsed(**_which(of), run=run, continues=continues)


def _which(of: Decision | OfDecision) -> dict[str, Any]:
    return {name: getattr(of, name) for name in ("kind", "number", "subject", "name", "content")}
