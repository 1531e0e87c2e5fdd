"""
What approvals, gates and questions share: each is found by its name, and made once.

Whoever decides has to know what there is: a decision is refused if they looked at something else, if
somebody was quicker, if it is void, or if a document that it is about was edited since it was asked.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

import msgspec

from planforge.actions import Action, Advice, see
from planforge.app.decisions import deciders
from planforge.errors import NotFound, StaleView
from planforge.kernel.work import decisions

if TYPE_CHECKING:
    # Looking at what waits must be quick, and needs none of the events.
    from planforge.app.project import Project
    from planforge.kernel.events import DecisionAsked, Judged
    from planforge.kernel.ledger import Write
    from planforge.kernel.work.decisions import Decision

MADE = ("decided", "rejected")
NAMED = {
    "name": "label",
    "status": "word",
    "plan": "subject",
    "gate": "name",
    "commit": "proposed",
    "raised_at": "asked_at",
    "answer": "choice",
    "answered_at": "decided_at",
}
"""What fields of gates and questions are called in their record, where that is another name."""
WORDS = {
    "superseded": "another has taken its place",
    "closed": "its run has ended",
    "used": "the approval was used",
}

Row = TypeVar("Row", bound=msgspec.Struct)


def find(project: Project, kind: str, name: str) -> Decision:
    """The decision that `name` means: `gate-007`, `gate-7` or `7`."""
    number = re.fullmatch(rf"(?:{kind}-)?0*(\d{{1,9}})", name.strip())
    for found in decisions.select(project.ledger, kind, "number = ?", int(number[1])) if number else ():
        return found
    raise NotFound(f"there is no {kind} `{name}`", see(decisions.KINDS[kind].list))


def shown(kind: type[Row], of: Decision, **given: object) -> Row:
    """A decision as its kind is shown: each field by its name there, but for those that are given."""
    fields = [name for name in kind.__struct_fields__ if name not in given]
    return kind(**{name: getattr(of, NAMED.get(name, name)) for name in fields}, **given)


def make(
    project: Project, found: Decision, choice: str, *, actor: str, reason: str = "", seen: str | None = None
) -> Decision:
    """Record a person's choice, once; `seen` is the hash of what they looked at."""
    from planforge.kernel.ledger import Write
    from planforge.kernel.redaction import Redactor

    said = Redactor.of_environment().text(reason.strip())

    def decide() -> list[Write]:
        now = find(project, found.kind, found.label)
        deciders.require_current(seen, current(project, now))
        if now.status in ("waiting", "decided"):
            require_unedited(project, now)
        if now.kind == "gate" and (now.choice, now.actor) == (choice, actor) and now.status in MADE:
            return []  # said twice
        if now.status != "waiting":
            raise _too_late(project, now)
        return [Write(stream(project, now), None, [decisions.made(now, choice, actor, said)])]

    project.ledger.transact(decide)
    return find(project, found.kind, found.label)


def stream(project: Project, about: Decision | DecisionAsked) -> str:
    """The stream of the plan or task that it is about, or one of its own."""
    query = "SELECT plan FROM plans WHERE plan = ? UNION SELECT task FROM tasks WHERE task = ?"
    found = project.ledger.query(query, about.subject, about.subject)
    return next((subject for (subject,) in found), decisions.label(about.kind, about.number))


def current(project: Project, about: Decision) -> deciders.Current:
    """What is asked now: this, or what has taken its place."""
    now = decisions.newest(project.ledger, about.kind, about.subject, about.name) or about
    return deciders.Current(
        what=now.label,
        status=now.word,
        hash=now.shown,
        actor=now.actor,
        answer=now.choice if decisions.KINDS[now.kind].answers else "",
        reason=now.reason,
        at=now.decided_at or now.asked_at,
        next=now.look,
    )


def _too_late(project: Project, about: Decision) -> StaleView:
    why = WORDS.get(about.status, f"it was {about.word} by {about.actor}")
    if decisions.KINDS[about.kind].answers and about.actor:
        when = about.decided_at[:16].replace("T", " ")
        why = f"{about.actor} answered `{about.choice}` on {when} UTC"
    now = current(project, about)
    hint = Advice("see {}", now.next if now.what != about.label else Action(decisions.KINDS[about.kind].list))
    return StaleView(f"`{about.label}` is not open to a decision: {why}", hint, current=now)


# Documents


def require_unedited(project: Project, about: Decision) -> None:
    """Refuse a decision about documents that are not any more what they were when it was asked."""
    if path := edited(project, documents(about)):
        raise StaleView(
            f"`{path}` was edited since `{about.label}` was raised",
            Advice(
                "it opens nothing any more; go on with what there is now: {}", Action("resume", about.run)
            ),
            current=msgspec.structs.replace(current(project, about), status="void"),
        )


def documents(about: Decision) -> tuple[Judged, ...]:
    """The documents that it is about, as they were."""
    from planforge.kernel.events import Judged

    return msgspec.json.decode(about.documents, type=tuple[Judged, ...])


def edited(project: Project, judged: tuple[Judged, ...]) -> str:
    """The first of these documents that is not what it was; empty if all of them are."""
    return next((each.path for each in judged if _object(project, each.path) != each.object), "")


def _object(project: Project, path: str) -> str | None:
    """The hash of a document as it is on disk; empty if there is none, None if it cannot be read."""
    from planforge.kernel.files import read_regular
    from planforge.kernel.objects import address

    try:
        return address(read_regular(project.root / path))
    except FileNotFoundError:
        return ""
    except (OSError, ValueError):  # or a name that no file can have
        return None
