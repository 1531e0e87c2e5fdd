"""
The file of lessons: Markdown that people read and edit as they like.

An entry is a heading with a date, and fields below it:

    ### 2026-03-01 — Checks run from the root

    - Tags: checks, sandbox
    - Lesson: A check runs in a fresh checkout, from its root. Name files from there.
    - Source: plan-017/phase-2
    - Applied: docs/testing.md
    - Status: active

Headings of other levels, fields in bold, values over several lines and fields that are missing are understood
as well. Whatever is not understood is left alone: a change touches the value of a field, or adds lines, at
exact offsets, and not a byte besides. An entry is known by its title, as `checks-run-from-the-root`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

import msgspec

from planforge.actions import see
from planforge.documents import markdown
from planforge.documents.markdown import Line
from planforge.errors import InvalidDocument, NotFound
from planforge.rules.lessons import Lesson, Status

INTRODUCTION = """\
# Lessons

What this project has learned, for people and agents. Edit it as you like. An entry is a heading with a date
and a title; below it are its tags, the lesson in one to three sentences, where it comes from, where it was
applied, and its status (active, superseded or stale). See `planforge lesson --help`.
"""

FIELDS = ("Tags", "Lesson", "Source", "Applied", "Status")

MOST_OF_AN_ID = 60
UNTITLED = "lesson"

ENTRY = re.compile(
    r" {0,3}(?P<marks>#{2,4})[ \t]+(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[ \t]*(?:—|–|--|-|:)[ \t]*|[ \t]+)(?P<title>\S.*?)[ \t]*(?:[ \t]#+[ \t]*)?"  # noqa: RUF001
)
HEADING = re.compile(r" {0,3}(?P<marks>#{1,6})(?:[ \t].*)?")
FIELD = re.compile(
    rf"[ \t]*(?:[-*+][ \t]+)?\*{{0,2}}(?P<name>{'|'.join(FIELDS)})\*{{0,2}}:(?:\*\*)?(?P<value>.*)",
    re.IGNORECASE,
)
BULLET = re.compile(r" {0,3}[-*+](?:[ \t].*)?")
STATUS = re.compile(
    r"(?P<word>\w+)(?:[ \t(]+by[ \t:]+`?(?P<successor>[\w-]*\w)`?\)?)?(?:[ \t]*[:;,—–-])?(?P<remark>.*)",  # noqa: RUF001
    re.IGNORECASE,
)


class _Value(msgspec.Struct, frozen=True, kw_only=True):
    """The value of a field: what it says, and where it lies in the document."""

    text: str
    start: int
    end: int


class _Entry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry: the lesson, and where its parts lie."""

    lesson: Lesson
    head: int
    """Where the text of its heading ends."""
    values: dict[str, _Value]


# Reading


def parse(text: str) -> tuple[Lesson, ...]:
    """The lessons of a document, in its order."""
    return tuple(entry.lesson for entry in _entries(text))


def _entries(text: str) -> list[_Entry]:
    lines = list(_lines(text))
    taken: set[str] = set()
    found = []
    for at, line in enumerate(lines):
        head = None if line.fenced else ENTRY.fullmatch(line.text)
        if head:
            entry = _entry(head, line, _body(lines[at + 1 :], len(head["marks"])), taken)
            taken.add(entry.lesson.id)
            found.append(entry)
    return found


def _body(lines: Sequence[Line], deep: int) -> list[Line]:
    """The lines of an entry below its heading."""
    return list(takewhile(lambda line: not _ends(line, deep), lines))


def _lines(text: str) -> Iterator[Line]:
    """The lines of a document; those of code and of comments count as fenced."""
    comment = False
    for line in markdown.lines(text):
        begins = not line.fenced and line.text.lstrip().startswith("<!--")
        hidden = comment or begins
        if hidden:
            comment = "-->" not in line.text
        yield msgspec.structs.replace(line, fenced=line.fenced or hidden)


def _ends(line: Line, deep: int) -> bool:
    """Whether a line is the heading of another entry, or of a part above this one."""
    head = None if line.fenced else HEADING.fullmatch(line.text)
    if head is None:
        return False
    return len(head["marks"]) <= deep or ENTRY.fullmatch(line.text) is not None


def _entry(head: re.Match[str], line: Line, body: Sequence[Line], taken: set[str]) -> _Entry:
    values = _values(body)
    said = {name: value.text for name, value in values.items()}
    title = head["title"]
    status, successor, remark = _status(said.get("status", ""))
    lesson = Lesson(
        id=_free(slug(title), taken),
        date=head["date"],
        title=title,
        tags=tags_of(said.get("tags", "")),
        lesson=said.get("lesson") or _prose(body),
        source=said.get("source", ""),
        applied=said.get("applied", ""),
        status=status,
        successor=successor,
        remark=remark,
    )
    return _Entry(lesson=lesson, head=line.start + len(line.text), values=values)


def _values(body: Sequence[Line]) -> dict[str, _Value]:
    """The fields of an entry; of two with the same name the first counts."""
    found: dict[str, _Value] = {}
    for at, line in enumerate(body):
        field = None if line.fenced else FIELD.fullmatch(line.text)
        if field and field["name"].lower() not in found:
            more = list(takewhile(_goes_on, body[at + 1 :]))
            start, last = line.start + field.start("value"), (more or [line])[-1]
            text = " ".join(" ".join([field["value"], *(each.text for each in more)]).split())
            end = last.start + len(last.text.rstrip())
            found[field["name"].lower()] = _Value(text=text, start=start, end=max(start, end))
    return found


def _goes_on(line: Line) -> bool:
    """Whether a line belongs to the value that stands above it."""
    text = line.text
    if line.fenced or not text.strip() or markdown.is_rule(text):
        return False
    return not any(form.fullmatch(text) for form in (FIELD, BULLET, HEADING))


def _prose(body: Sequence[Line]) -> str:
    """The first paragraph of an entry that does not say which of its words are the lesson."""
    said = [line for line in body if not (line.fenced or FIELD.fullmatch(line.text))]
    first = next((at for at, line in enumerate(said) if line.text.strip()), len(said))
    paragraph = takewhile(lambda line: line.text.strip(), said[first:])
    return " ".join(" ".join(line.text for line in paragraph).split())


def _status(said: str) -> tuple[Status | None, str, str]:
    """The status, its successor and the remark; the status is `None` if the word is unknown."""
    plain = said.strip("*`_ ")
    found = STATUS.fullmatch(plain)
    if not plain:
        return Status.ACTIVE, "", ""
    if not found or found["word"].casefold() not in tuple(Status):
        return None, "", plain
    return Status(found["word"].casefold()), found["successor"] or "", found["remark"].strip()


def tags_of(said: str) -> tuple[str, ...]:
    """The tags of a list with commas, each once, in one spelling."""
    return tuple(dict.fromkeys(filter(None, map(tag, said.split(",")))))


def tag(said: str) -> str:
    """A tag in the one spelling that it has."""
    return re.sub(r"\s+", "-", one_line(said).replace(",", " ").casefold().strip("`\"'# []"))


def slug(title: str) -> str:
    """What an entry of this title is called: its words, without what stands between them."""
    plain = unicodedata.normalize("NFKC", title).casefold().replace("'", "")
    return re.sub(r"[\W_]+", "-", plain).strip("-")[:MOST_OF_AN_ID].rstrip("-") or UNTITLED


def _free(name: str, taken: set[str]) -> str:
    """The name, with a number if an entry above has it already."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}-{number}"
    return found


def one_line(text: str) -> str:
    """A text on one line, without what a terminal would obey."""
    spaced = " ".join(text.split())
    shown = "".join(letter for letter in spaced if unicodedata.category(letter) not in ("Cc", "Cs"))
    return " ".join(shown.split())


# Writing


def render(lesson: Lesson) -> str:
    """An entry as it is written."""
    fields = {
        "Tags": ", ".join(lesson.tags),
        "Lesson": lesson.lesson,
        "Source": lesson.source,
        "Applied": lesson.applied,
        "Status": status_line(lesson),
    }
    lines = [f"- {name}: {one_line(value)}".rstrip() for name, value in fields.items()]
    return "\n".join([f"### {lesson.date} — {title_line(lesson.title)}", "", *lines])


def title_line(text: str) -> str:
    """A title as a heading can hold it."""
    return one_line(text).rstrip("# \t").lstrip("—–:- \t") or UNTITLED  # noqa: RUF001


def status_line(lesson: Lesson) -> str:
    """The status of a lesson in words."""
    if lesson.status is None:
        return lesson.remark
    by = f" by {lesson.successor}" if lesson.successor else ""
    return f"{lesson.status.value}{by}" + (f": {lesson.remark}" if lesson.remark else "")


def added(text: str, lesson: Lesson) -> tuple[str, Lesson]:
    """The document with one more lesson at its end, and the lesson as it is called there."""
    newline = markdown.newline_of(text)
    before = text if text.strip("\ufeff \t\r\n") else text + INTRODUCTION
    gap = "" if not before or before.endswith(newline * 2) else newline
    gap += "" if not before or before.endswith(("\n", "\r")) else newline
    after = before + gap + markdown.in_newlines(render(lesson), newline) + newline
    found, known = parse(after), parse(text)
    if len(found) != len(known) + 1 or found[:-1] != known:
        raise InvalidDocument(
            "the file of lessons ends inside a code fence or a comment, where a lesson would not be seen",
            "close it at the end of the file, then try again",
        )
    return after, found[-1]


def changed(text: str, name: str, fields: Mapping[str, str]) -> str:
    """The document with other values in some fields of one entry."""
    for field, value in fields.items():
        text = _with_value(text, _find(text, name), field, one_line(value))
    return text


def _find(text: str, name: str) -> _Entry:
    for entry in _entries(text):
        if entry.lesson.id == name:
            return entry
    raise NotFound(f"there is no lesson `{name}`", see("lesson list"))


def _with_value(text: str, entry: _Entry, field: str, value: str) -> str:
    if at := entry.values.get(field.lower()):
        return text[: at.start] + (f" {value}" if value else "") + text[at.end :]
    line = f"- {field}: {value}".rstrip()
    if entry.values:
        last = max(each.end for each in entry.values.values())
        return text[:last] + markdown.newline_of(text) + line + text[last:]
    return markdown.inserted(text, entry.head, line)


def find(text: str, name: str) -> Lesson:
    """The lesson that a name, or the beginning of only one, means."""
    known = parse(text)
    wanted = slug(name) if name.strip() else ""
    exact = [lesson for lesson in known if lesson.id == wanted]
    found = exact or [lesson for lesson in known if wanted and lesson.id.startswith(wanted)]
    if len(found) > 1:
        names = ", ".join(f"`{lesson.id}`" for lesson in found[:5])
        raise InvalidDocument(f"`{name}` may be {len(found)} lessons", f"say which one: {names}")
    if not found:
        raise NotFound(f"there is no lesson `{name}`", see("lesson list"))
    return found[0]


# In plans


def planned(plan: str) -> str:
    """What a plan says is to become of the lessons: its section `## Lessons`, in short."""
    said = markdown.without_rules(markdown.body(plan, "Lessons") or "")
    return one_line(said)[:300]
