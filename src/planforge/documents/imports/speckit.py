"""
The documents that spec-kit makes of a feature: `spec.md`, `plan.md`, `tasks.md` and whatever is beside them.

Every block of the three goes to the section of the plan that it is about, known by the innermost heading that
says so: stories to the objective, requirements to the scope, tasks to the changes, edge cases to the risks,
scenarios to the tests. What says nothing of the kind, and every other document, is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from planforge.documents import markdown
from planforge.documents.imports import Imported, one_line
from planforge.documents.imports.blocks import HEADING, Block, blocks, without_front_matter
from planforge.documents.imports.bodies import ITEM, assembled, files_in
from planforge.errors import InvalidInput

SPEC, PLAN, TASKS = "spec.md", "plan.md", "tasks.md"
READ = (SPEC, PLAN, TASKS)

TITLE = re.compile(r"(?i:feature specification|implementation plan|tasks|feature|spec)[ \t]*:[ \t]*")
DIRECTORY = re.compile(r"(?:\d{1,8}-)?(?P<name>.+)")
TASK = re.compile(
    r"(?P<lead>[ \t]*)[-*+][ \t]+\[(?P<done>[ xX])\][ \t]+(?:\*\*)?(?P<id>T\d{1,6}[a-z]?|TXXX)?(?:\*\*)?"
    r"(?P<tags>(?:[ \t]*\[[A-Za-z0-9 ,_-]{1,20}\])*)[ \t]*(?P<said>.*)"
)

OUTER = re.compile(r"(?:user scenarios & testing|requirements|success criteria|input)(?:$|[ \t]*[*_(])")
"""Headings of the template itself, which need not be said again beneath the section that they lead to."""

RULES = (
    ("Risks", re.compile(r"edge cases?|risks?|open questions?|complexity")),
    (
        "Testing",
        re.compile(r"acceptance|independent test|success criteria|measurable outcomes?|^test|quickstart"),
    ),
    (
        "Scope",
        re.compile(
            r"requirements?|key entit|assumptions?|out of scope|in scope|^scope|constraints?|dependencies"
        ),
    ),
    (
        "Objective",
        re.compile(r"user stor|user scenario|primary user|summary|^input|overview|why this priority"),
    ),
)
"""Which section a heading speaks of; the first that fits."""


def is_spec(names: set[str]) -> bool:
    """Whether a directory with these files is a feature of spec-kit."""
    return bool(names & set(READ))


def read(documents: Mapping[str, str], source: str) -> Imported:
    """The documents of one feature, by name, as a plan."""
    if not is_spec(set(documents)):
        raise InvalidInput(f"`{source}` has no `spec.md`, `plan.md` or `tasks.md`")
    title = _title(documents, source)
    sections: dict[str, list[str]] = {}
    left: list[str] = []
    for name in READ:
        if name not in documents:
            continue
        front, text = without_front_matter(documents[name])
        own, text = _titled(text)
        rest = [said for said in (front, own) if said and said != title]
        found = _tasks(text, sections) if name == TASKS else _routed(text, sections)
        rest += [said for said in found if said.strip()]
        left += [f"{name}:", *rest] if rest else []
    for name, text in documents.items():
        if name not in READ and text.strip():
            left += [f"{name}:", text.strip("\n")]
    everything = "\n\n".join(f"{name}:\n\n{text.strip()}" for name, text in documents.items() if text.strip())
    return Imported(
        title=title,
        text=everything + "\n",
        source=source,
        kind="spec-kit",
        body=assembled(title, sections),
        context="\n\n".join(left),
    )


def _title(documents: Mapping[str, str], source: str) -> str:
    for name in filter(documents.__contains__, READ):
        own, _ = _titled(without_front_matter(documents[name])[1])
        if title := one_line(own):
            return title
    found = DIRECTORY.fullmatch(source.rstrip("/").rpartition("/")[2])
    return one_line(found["name"].replace("-", " ").capitalize() if found else "") or "A feature"


def _titled(text: str) -> tuple[str, str]:
    """The title that a document begins with, without what kind of document it is, and the rest."""
    for line in markdown.lines(text):
        found = HEADING.fullmatch(line.text)
        if found and found["level"] == "#" and not line.fenced:
            return TITLE.sub("", found["name"] or "", count=1).strip(), text[: line.start] + text[line.end :]
        if line.text.strip():
            break
    return "", text


def _routed(text: str, sections: dict[str, list[str]]) -> Iterator[str]:
    """Puts the blocks where they belong; what belongs nowhere is returned, with its headings."""
    shown: dict[str, tuple[str, ...]] = {}
    for block in blocks(text, labels=True):
        name = section_of(block.trail) if block.text.strip() else ""
        trail = block.trail
        if name and OUTER.match(trail[0].lower()):
            trail = trail[1:]
        said = _under(trail, shown.get(name, ()), block.text)
        shown[name] = trail
        if name:
            sections.setdefault(name, []).append(said)
        else:
            yield said


def _under(trail: tuple[str, ...], before: tuple[str, ...], text: str) -> str:
    """The text under those of its headings that were not just said."""
    same = 0
    while same < min(len(trail), len(before)) and trail[same] == before[same]:
        same += 1
    heads = [f"### {name}" if at == 0 else f"**{name}**:" for at, name in enumerate(trail)][same:]
    on_one_line = text and "\n" not in text and not ITEM.fullmatch(text)
    if on_one_line and heads and heads[-1].endswith(":"):
        return "\n\n".join([*heads[:-1], f"{heads[-1]} {text}"])
    return "\n\n".join([*heads, text] if text else heads)


def section_of(trail: tuple[str, ...]) -> str:
    """The section that a block is for, by the innermost of its headings that says so; empty is none."""
    for name in reversed(trail):
        for section, rule in RULES:
            if rule.search(name.lower()):
                return section
    return ""


def _tasks(text: str, sections: dict[str, list[str]]) -> Iterator[str]:
    """The tasks become changes, under the headings of their phases; the rest of each block is returned."""
    shown: tuple[str, ...] = ()
    for block in blocks(text):
        tasks, rest = _split(block)
        if tasks:
            sections.setdefault("Changes", []).append(_under(block.trail, shown, "\n".join(tasks)))
            shown = block.trail
        if rest.strip() or not tasks:
            yield _under(block.trail, (), rest)


def _split(block: Block) -> tuple[list[str], str]:
    """The tasks of a block, each with the lines that belong to it, and its other lines."""
    tasks: list[str] = []
    rest: list[str] = []
    within = False
    for line in markdown.lines(block.text):
        found = None if line.fenced else TASK.fullmatch(line.text)
        if found and (found["id"] or found["said"].strip()):
            tasks.append(task(found))
            within = True
        elif within and line.text.startswith((" ", "\t")) and not line.fenced:
            tasks.append(line.text)
        else:
            within = False
            rest.append(line.text)
    return tasks, "\n".join(rest)


def task(found: re.Match[str]) -> str:
    """A task as an item of the changes: its files first, unless it is done already."""
    label = " ".join(filter(None, [found["id"], *found["tags"].split()]))
    said = found["said"].strip()
    if found["done"] != " ":
        said = said.replace("`", "")  # what is done names no file that is to be changed
        return f"{found['lead']}- done already, {label}: {said}"
    files = ", ".join(f"`{path}`" for path in files_in(said))
    if files:
        return f"{found['lead']}- {files} — {label}: {said}"
    return f"{found['lead']}- {label}: {said}" if label else f"{found['lead']}- {said}"
