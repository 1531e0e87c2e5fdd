"""
The files a plan means to change, what it says about each, and which of them are to wait for others.

Three kinds of lines of `## Changes` name files: list items (`-`, `*`, `+`, with a box or
without), headings (`#`) and lines that begin with a path in bold. Numbered items, tables,
quotations, setext headings, prose, code fences and HTML comments name none. A
`## Change Manifest` with a JSON array of paths comes before all of them.

Nothing here looks at the repository: what is `present` in it of the `doubtful` names is handed in.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from planforge.documents import markdown
from planforge.documents.file_names import file_path, inside
from planforge.errors import InvalidDocument

ITEM = re.compile(r"(?P<indent>[ \t]*)[-*+][ \t]+(?P<said>.*)")
HEADING = re.compile(r" {0,3}(?P<level>#{1,6})[ \t]+(?P<said>.*)")
BOLD = re.compile(r"(?P<indent>[ \t]*)(?P<said>\*{2,3}`[^`]+`.*)")
COMMENT_OPENS = re.compile(r"[ \t]*(?:[-*+][ \t]+)?<!--(?P<said>.*)")
SPAN = r"(?<!`)(?P<ticks>`+)(?!`)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)"
CODE = re.compile(SPAN)
CODE_OR_BREAK = re.compile(
    rf"<!--(?:(?!<!--|-->).)*-->|{SPAN}|(?P<break>[—–]|[ \t]--?[ \t]|:(?=[\s*]|$))"  # noqa: RUF001
)
NAMED = r"(?P<named>`[^`]+`(?:(?:,|[ \t]+and)[ \t]*`[^`]+`)*)"
BEFORE_THE_FIRST = re.compile(r"[ \t]*(?:\[[ xX]\][ \t]+)?[*_]{0,3}")
BETWEEN = re.compile(r"[*_]{0,3}(?:,|[ \t]*&|,?[ \t]+and(?=[ \t]))[ \t]*[*_]{0,3}")
NOTHING = re.compile(r"(?!)")
AFTER_AT_THE_END = re.compile(rf"\(after:?[ \t]+{NAMED}\)[.;]?[ \t]*$", re.IGNORECASE)
AFTER_LINE = re.compile(rf"[*_]*after(?::[*_]*|[*_]*:)[ \t]*{NAMED}[.;]?[ \t]*", re.IGNORECASE)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A passage of the Changes section, the files it is about, and those that must be changed before."""

    files: tuple[str, ...]
    text: str
    after: tuple[str, ...] = ()


class _Start(msgspec.Struct, frozen=True, kw_only=True):
    """A line that can be about files: its kind decides where its passage ends."""

    depth: int
    heading: bool
    bold: bool
    said: str


class _Passage(msgspec.Struct, frozen=True, kw_only=True):
    """A line that names files, and where what belongs to it ends."""

    at: int
    end: int
    files: tuple[str, ...]


def entries(changes: str, present: Collection[str] = ()) -> tuple[Entry, ...]:
    """Each list item, heading and bold line that names files, with the lines that belong to it."""
    shown = [line.text for line in markdown.lines(changes)]
    plain = _plain(changes)
    starts = _starts(shown, plain)
    waits = _waits(starts, present)
    passages, owners = _passages(starts, present, waits.keys())
    if orphans := [at for at in waits if at not in owners]:
        # "after:" below no file says nothing of an order: a line like any other
        passages, owners = _passages(starts, present, waits.keys() - set(orphans))
    below: dict[int, list[str]] = {}
    for at, owner in owners.items():
        below.setdefault(owner, []).extend(waits[at])
    return tuple(
        Entry(
            files=passage.files,
            text=markdown.without_rules("\n".join(shown[passage.at : passage.end])),
            after=(
                *_after_at_the_end(shown, starts, plain, passage, present),
                *below.get(passage.at, ()),
            ),
        )
        for passage in passages
    )


def doubtful(plan_text: str) -> tuple[str, ...]:
    """The names that stand where a file is to be named and are files only if the repository has them."""
    plan_text = plan_text.removeprefix("\ufeff")
    section = markdown.body(plan_text, "Changes") or ""
    starts = _starts([line.text for line in markdown.lines(section)], _plain(section))
    named = [code for start in starts if start for code, first in _codes(start.said) if code and first]
    unclear = [each for listed in _arrays(plan_text) for each in listed if not file_path(each, spaced=True)]
    unclear += [each for each in named if not file_path(each, first=True)]
    return tuple(dict.fromkeys(path for path in map(inside, unclear) if path))


def _plain(changes: str) -> list[bool]:
    """For each line whether it is neither in a code fence nor in an HTML comment that begins a line."""
    plain, commented = [], False
    for line in markdown.lines(changes):
        opens = None if commented or line.fenced else COMMENT_OPENS.fullmatch(line.text)
        plain.append(not (commented or line.fenced or (opens and "-->" not in opens["said"])))
        if opens:
            commented = "-->" not in opens["said"]
        elif commented:
            commented = "-->" not in line.text
    return plain


def _starts(shown: Sequence[str], plain: Sequence[bool]) -> list[_Start | None]:
    return [_start(text) if is_plain else None for text, is_plain in zip(shown, plain, strict=True)]


def _start(line: str) -> _Start | None:
    if found := HEADING.fullmatch(line):
        return _Start(depth=len(found["level"]), heading=True, bold=False, said=found["said"])
    if found := BOLD.fullmatch(line):
        return _Start(depth=_width(found["indent"]), heading=False, bold=True, said=found["said"])
    if found := ITEM.fullmatch(line):
        return _Start(depth=_width(found["indent"]), heading=False, bold=False, said=found["said"])
    return None


def _width(indent: str) -> int:
    return len(indent.expandtabs(4))


def _passages(
    starts: Sequence[_Start | None], present: Collection[str], waits: Collection[int]
) -> tuple[list[_Passage], dict[int, int]]:
    """The passages that name files, and for each line that waits where the innermost one around it begins."""
    begun: dict[int, tuple[str, ...]] = {}
    ends: dict[int, int] = {}
    owners: dict[int, int] = {}
    around: dict[int, _Start] = {}
    for at, start in enumerate(starts):
        if start is None:
            continue
        ends |= {before: at for before, passage in around.items() if _ends(passage, start)}
        around = {before: passage for before, passage in around.items() if before not in ends}
        if at in waits:
            if around:
                owners[at] = next(reversed(around))
        elif files := tuple(dict.fromkeys(_files_of(start.said, present))):
            begun[at] = files
            around[at] = start
    passages = [_Passage(at=at, end=ends.get(at, len(starts)), files=files) for at, files in begun.items()]
    return passages, owners


def _ends(passage: _Start, line: _Start) -> bool:
    """A heading holds what is under it, a bold line its list, an item what is indented below it."""
    if passage.heading:
        return line.heading and line.depth <= passage.depth
    if line.heading:
        return True
    if passage.bold:
        return line.bold and line.depth <= passage.depth
    return line.depth <= passage.depth


def _files_of(said: str, present: Collection[str]) -> Iterator[str]:
    """The files a line is about.

    Every backticked path on the line counts, with one exception. In "`a.py` — reuse
    `b.py`" the prose after the dash mentions a file that is not to be changed, and a
    file in the list is a file the phase may change. So if paths stand before the first
    dash or colon, only those count; if none does, all of the line's paths count.
    """
    if clause := _after(said, present):
        said = said[: clause.start()]
    before: list[str] = []
    after: list[str] = []
    broken = False
    for code, first in _codes(said):
        if code is None:
            broken = True
        elif path := file_path(code, first=first, present=present):
            (after if broken else before).append(path)
    yield from before or after


def _codes(said: str) -> Iterator[tuple[str | None, bool]]:
    """What a line has in backticks, each with whether the line begins with it; None for a dash or a colon."""
    read, between = 0, BEFORE_THE_FIRST
    for found in CODE_OR_BREAK.finditer(said):
        first = bool(between.fullmatch(said, read, found.start()))
        if found["code"]:
            yield found["code"], first
            between = BETWEEN
        elif found["break"]:
            yield None, False
            first = False
        if not first:  # then no later one is, either
            between = NOTHING
        read = found.end()


def _waits(starts: Sequence[_Start | None], present: Collection[str]) -> dict[int, tuple[str, ...]]:
    """The items that say `after: …` and nothing else, by their lines, with the files that they name."""
    waits = {}
    for at, start in enumerate(starts):
        if start and not start.heading and not start.bold and (found := AFTER_LINE.fullmatch(start.said)):
            waits[at] = _paths(found["named"], present)
    return {at: paths for at, paths in waits.items() if paths}


def _after_at_the_end(
    shown: Sequence[str],
    starts: Sequence[_Start | None],
    plain: Sequence[bool],
    passage: _Passage,
    present: Collection[str],
) -> tuple[str, ...]:
    """What `(after …)` names at the end of a passage's own first paragraph."""
    last = passage.at
    start = starts[last]
    while (
        not (start and start.heading)
        and last + 1 < passage.end
        and starts[last + 1] is None
        and plain[last + 1]
        and shown[last + 1].strip()
    ):
        last += 1
    clause = _after(shown[last], present)
    return _paths(clause["named"], present) if clause else ()


def _after(said: str, present: Collection[str]) -> re.Match[str] | None:
    """The `(after …)` at the end of a line, if it names files; anything else is prose."""
    found = AFTER_AT_THE_END.search(said)
    return found if found and _paths(found["named"], present) else None


def _paths(named: str, present: Collection[str]) -> tuple[str, ...]:
    found = (file_path(each["code"], first=True, present=present) for each in CODE.finditer(named))
    return tuple(path for path in found if path)


def manifest(plan_text: str, present: Collection[str] = ()) -> tuple[str, ...]:
    """The files of the `## Change Manifest`, if it holds a bare JSON array of paths."""
    for listed in _arrays(plan_text):
        paths = (file_path(each, spaced=True, present=present) for each in listed)
        if found := tuple(dict.fromkeys(path for path in paths if path)):
            return found
    return ()


def _arrays(plan_text: str) -> Iterator[list[str]]:
    """The texts in each JSON array of the `## Change Manifest`."""
    section = markdown.body(plan_text, "Change Manifest") or ""
    whole = markdown.without_rules(section)
    for candidate in (*markdown.fenced_blocks(section), whole, *re.split(r"\n[ \t]*\n", whole)):
        try:
            given = msgspec.json.decode(candidate.encode("utf-8", "replace"), type=list[object])
        except (msgspec.DecodeError, RecursionError):
            continue
        yield [each for each in given if isinstance(each, str)]


def declared(found: Sequence[Entry], files: Sequence[str]) -> Mapping[str, frozenset[str]]:
    """Which files are to wait for which, as the plan declares it; refuses what is not among its files."""
    known = set(files)
    waits: dict[str, frozenset[str]] = {}
    for entry in found:
        for path in (path for path in entry.files if path in known):
            if missing := [other for other in entry.after if other not in known]:
                raise InvalidDocument(
                    f"`{path}` is to be changed after `{missing[0]}`, which the plan does not change",
                    hint="name a file of `## Changes`, or take the dependency out",
                )
            if entry.after:
                waits[path] = waits.get(path, frozenset()) | frozenset(entry.after)
    return waits
