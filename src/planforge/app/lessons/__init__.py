"""
What a project has learned: the lessons in its file, and which plans nobody has decided about.

Only the entry that is meant is touched, whatever people have made of the file. What an agent is told comes
from it, so it is people who write there: see `deciders`. Where a lesson names the plan that it comes from,
that is the decision about the lessons of that plan, and goes on record; see `promoting` for the others.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from planforge.actions import Action, Advice, Blank, Hint
from planforge.app.items import plans
from planforge.app.lessons import lesson_file
from planforge.documents import lessons
from planforge.errors import InvalidInput, NotFound, RefusedByGate
from planforge.kernel.events import LessonDecided
from planforge.kernel.ledger import Write
from planforge.kernel.redaction import Redactor
from planforge.rules.lessons import Lesson, Likeness, Status, alike

if TYPE_CHECKING:
    from planforge.app.project import Project

LONGEST, SENTENCES = 600, 3
"""How long a lesson may be: what is longer is read by nobody, and told to no agent."""

TITLE = 70
"""How much of a lesson becomes its title, if it has none of its own."""

ENDED = ("DONE", "CLOSED")
"""The statuses of a plan whose lessons are to be decided on."""

SUBJECT = re.compile(r"(?<![\w-])(?:plan|task)-\d{1,9}(?!\w)")
SENTENCE = re.compile(r"[.!?][\"'”)]*\s+(?=[A-Z0-9`“\"])")


class LessonRow(msgspec.Struct, frozen=True, kw_only=True):
    """A lesson for people and programs."""

    id: str
    date: str
    title: str
    tags: tuple[str, ...]
    lesson: str
    source: str
    applied: str
    status: str
    """active, superseded, stale or unknown"""
    successor: str = ""
    remark: str = ""


class LessonList(msgspec.Struct, frozen=True, kw_only=True):
    """The lessons of a project, and the plans that nobody has decided about."""

    schema_version: int = 1
    file: str
    lessons: tuple[LessonRow, ...]
    undecided: tuple[str, ...] = ()


class LessonChange(msgspec.Struct, frozen=True, kw_only=True):
    """What was done, and the lessons as they are now."""

    schema_version: int = 1
    file: str
    done: str
    """added, updated, superseded, stale or none needed"""
    lesson: LessonRow | None = None
    old: LessonRow | None = None
    """The lesson that was superseded."""
    decided: tuple[str, ...] = ()
    """The plans and tasks whose decision was recorded with it."""


class New(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wants to keep."""

    text: str
    title: str = ""
    tags: tuple[str, ...] = ()
    source: str = ""
    applied: str = ""


# Looking


def listed(project: Project, status: str = "", tag: str = "") -> LessonList:
    """The lessons, in the order of their file: all of them, or those with a status or a tag."""
    wanted = lessons.tag(tag)
    rows = [row(lesson) for lesson in lessons.parse(lesson_file.text(project))]
    kept = [each for each in rows if status in ("", each.status) and (not wanted or wanted in each.tags)]
    names = tuple(plan.plan for plan in undecided(project))
    return LessonList(file=lesson_file.path(project), lessons=tuple(kept), undecided=names)


def show(project: Project, name: str) -> LessonRow:
    """The lesson that a name, or the beginning of one, means."""
    return row(lessons.find(lesson_file.text(project), name))


def row(lesson: Lesson) -> LessonRow:
    """A lesson for people and programs."""
    said = {name: getattr(lesson, name) for name in LessonRow.__struct_fields__ if name != "status"}
    return LessonRow(**said, status=lesson.status.value if lesson.status else "unknown")


# Changing


def add(project: Project, new: New, *, actor: str, today: str, distinct: bool = False) -> LessonChange:
    """Keep a lesson that is new; refused if there is one that says nearly the same, unless it is distinct."""
    wanted = cleaned(new)

    def change(text: str) -> tuple[str, Lesson]:
        own = wanted.title if new.title else ""
        if not distinct and (near := alike(wanted.text, lessons.parse(text), title=own)):
            raise _near(near[0])
        return lessons.added(text, _lesson(wanted, today))

    found = lesson_file.change(project, change)
    decided = record_for(project, wanted.source, "add", found, actor)
    return LessonChange(file=lesson_file.path(project), done="added", lesson=row(found), decided=decided)


def update(project: Project, name: str, new: New, *, actor: str) -> LessonChange:
    """Say a lesson anew, with more tags and one more source; without a text it says what it said."""
    wanted = cleaned(new) if new.text else _without_text(new)

    def change(text: str) -> tuple[str, Lesson]:
        found = _changeable(text, name)
        return _changed(text, found, _merged(found, wanted))

    found = lesson_file.change(project, change)
    decided = record_for(project, wanted.source, "update", found, actor)
    return LessonChange(file=lesson_file.path(project), done="updated", lesson=row(found), decided=decided)


def _without_text(new: New) -> New:
    return msgspec.structs.replace(cleaned(msgspec.structs.replace(new, text="as it is")), text="")


def _merged(found: Lesson, wanted: New) -> dict[str, str]:
    """The fields that are different when more is known: another text, more tags, one more source."""
    both = {
        "Lesson": (found.lesson, wanted.text or found.lesson),
        "Tags": (", ".join(found.tags), ", ".join(dict.fromkeys((*found.tags, *wanted.tags)))),
        "Source": (found.source, _with(found.source, wanted.source)),
        "Applied": (found.applied, _with(found.applied, wanted.applied)),
        "Status": (found.status, Status.ACTIVE.value),
    }
    return {name: after for name, (before, after) in both.items() if after != before}


def _with(said: str, more: str) -> str:
    known = [part.strip() for part in said.split(",") if part.strip()]
    return ", ".join(known if not more or more in known else [*known, more])


def supersede(project: Project, name: str, by: str, *, today: str) -> LessonChange:
    """Put a lesson in the place of another: one that there is, or a new one with this text."""

    def change(text: str) -> tuple[str, tuple[Lesson, Lesson]]:
        old = _changeable(text, name)
        text, new = _successor(text, old, by, today)
        superseded = msgspec.structs.replace(old, status=Status.SUPERSEDED, successor=new.id, remark="")
        text, old = _changed(text, old, {"Status": lessons.status_line(superseded)})
        return text, (old, lessons.find(text, new.id))

    old, new = map(row, lesson_file.change(project, change))
    return LessonChange(file=lesson_file.path(project), done="superseded", lesson=new, old=old)


def _successor(text: str, old: Lesson, by: str, today: str) -> tuple[str, Lesson]:
    """The lesson that is meant, in the text; a new one is added to it, with the tags of the old."""
    if found := _meant(text, by):
        if found.id == old.id:
            raise InvalidInput(f"`{old.id}` cannot take its own place", "name another one, or say a new one")
        if not found.is_active:
            raise InvalidInput(f"`{found.id}` is {row(found).status}, so it can take no other's place")
        return text, found
    wanted = cleaned(New(text=by, tags=old.tags))
    others = [lesson for lesson in lessons.parse(text) if lesson.id != old.id]
    for near in alike(wanted.text, others):
        raise InvalidInput(
            f"`{near.lesson.id}` says nearly the same ({near.percent}%)",
            Action("lesson supersede", old.id, by=near.lesson.id),
        )
    return lessons.added(text, _lesson(wanted, today))


def _meant(text: str, by: str) -> Lesson | None:
    """The lesson that a word names; several words that name none are a lesson themselves."""
    try:
        return lessons.find(text, by)
    except NotFound:
        if len(by.split()) == 1:
            raise
        return None


def mark_stale(project: Project, name: str, reason: str) -> LessonChange:
    """Say that a lesson does not hold any more, and why."""
    why = clean(reason)
    if not why:
        raise InvalidInput("a lesson is not stale for no reason", "say why: `--reason TEXT`")

    def change(text: str) -> tuple[str, Lesson]:
        found = _changeable(text, name)
        stale = msgspec.structs.replace(found, status=Status.STALE, successor="", remark=why)
        return _changed(text, found, {"Status": lessons.status_line(stale)})

    found = lesson_file.change(project, change)
    return LessonChange(file=lesson_file.path(project), done="stale", lesson=row(found))


def _changeable(text: str, name: str) -> Lesson:
    """The lesson that a name means; refused if another one has taken its place."""
    found = lessons.find(text, name)
    if found.status is Status.SUPERSEDED:
        by = f" by `{found.successor}`" if found.successor else ""
        raise RefusedByGate(
            f"`{found.id}` was superseded{by}",
            Advice("change that one: {}", Action("lesson show", found.successor))
            if found.successor
            else None,
        )
    return found


def _changed(text: str, found: Lesson, fields: dict[str, str]) -> tuple[str, Lesson]:
    """The text with other fields of a lesson, and that lesson as it is then."""
    after = lessons.changed(text, found.id, fields)
    return after, lessons.find(after, found.id)


def _near(found: Likeness) -> InvalidInput:
    lesson = found.lesson
    known = f"`{lesson.id}`" + ("" if lesson.is_active else f", which is {row(lesson).status},")
    how = "says nearly the opposite" if found.contrary else f"says nearly the same ({found.percent}%)"
    meant = lesson.successor or lesson.id
    hint: Hint = f"`--update {meant}` to reword that one; `--distinct` if this one is another"
    if found.contrary and lesson.is_active:
        supersede = Action("lesson supersede", lesson.id, by=Blank("LESSON"))
        hint = Advice("{}; {} if that one is wrong", hint, supersede)
    return InvalidInput(f"{known} {how}: {lesson.lesson}", hint)


def _lesson(wanted: New, today: str) -> Lesson:
    return Lesson(
        id="",
        date=today,
        title=wanted.title,
        tags=wanted.tags,
        lesson=wanted.text,
        source=wanted.source,
        applied=wanted.applied,
    )


def clean(text: str) -> str:
    """What somebody said on one line, without secrets."""
    return lessons.one_line(Redactor.of_environment().text(text.encode("utf-8", "replace").decode()))


def cleaned(new: New) -> New:
    """What somebody wants to keep as the file can hold it; refused if it is no lesson."""
    text = clean(new.text)
    _require_short(text)
    return New(
        text=text,
        title=lessons.title_line(clean(new.title) or _title(text)),
        tags=tuple(dict.fromkeys(filter(None, (lessons.tag(clean(tag)) for tag in new.tags)))),
        source=_source(clean(new.source)),
        applied=clean(new.applied),
    )


def _require_short(text: str) -> None:
    if not re.search(r"\w", text):
        raise InvalidInput("a lesson of no words is none", "say what was learned, in one to three sentences")
    sentences = len(SENTENCE.split(text))
    if len(text) > LONGEST or sentences > SENTENCES:
        raise InvalidInput(
            f"a lesson has one to {SENTENCES} sentences and at most {LONGEST} characters; this one has "
            f"{sentences} and {len(text)}",
            "say what to do next time; the rest is in the plan that `--source` names",
        )


def _title(text: str) -> str:
    """The beginning of a lesson, as its title."""
    first = SENTENCE.split(text)[0].rstrip(".!? ")
    return first if len(first) <= TITLE else first[:TITLE].rpartition(" ")[0] or first[:TITLE]


def _source(said: str) -> str:
    return f"plan-{int(said):03}" if re.fullmatch(r"\d{1,9}", said) else said


# What was decided about a plan


def undecided(project: Project) -> tuple[plans.PlanRow, ...]:
    """The plans that are done or closed and whose lessons nobody has decided about, oldest first."""
    decided = "SELECT 1 FROM events WHERE stream = plan AND kind = 'LessonDecided'"
    where = f"plans WHERE status IN (?, ?) AND NOT EXISTS ({decided}) ORDER BY length(plan), plan"
    return tuple(project.ledger.select(plans.PlanRow, where, *ENDED))


def record_for(
    project: Project, source: str, decision: Literal["update", "add"], lesson: Lesson, actor: str
) -> tuple[str, ...]:
    """Record a decision for every plan and task of this project that a source names; which they are."""
    named = dict.fromkeys(SUBJECT.findall(source))
    known = tuple(subject for subject in named if project.ledger.version(subject))
    for subject in known:
        record(project, subject, decision, lesson.id, actor, lesson.title)
    return known


def record(
    project: Project,
    subject: str,
    decision: Literal["update", "add", "none"],
    lesson: str,
    actor: str,
    reason: str,
) -> None:
    """Record what a person has decided about the lessons of a plan or a task."""
    decided = LessonDecided(plan=subject, decision=decision, lesson=lesson, actor=actor, reason=reason)
    project.ledger.append_all([Write(subject, None, [decided])])
