"""
Any Markdown: a plan of ours from elsewhere, or a document whose sections are known by their usual names.

A plan is taken with its body; what Planforge itself writes in plans, such as their header and audit log, is
of the plan it was and is quoted. Of any other document, sections that are called what such sections are
usually called become those of the plan, and all the rest is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from planforge.documents import markdown
from planforge.documents.imports import Imported, decoded, one_line
from planforge.documents.imports.blocks import HEADING, without_front_matter
from planforge.documents.imports.bodies import assembled, changes, within, without_tokens
from planforge.documents.plan import CONTEXT, FIELD, OWNED, REQUIRED
from planforge.errors import InvalidInput

USUAL = {
    "Objective": """
        objective, objectives, goal, goals, overview, summary, background, motivation, purpose, introduction,
        abstract, description, why, problem, problem statement, problem description, the problem, tl;dr,
        executive summary, user story, user stories, feature""",
    "Scope": """
        scope, requirements, constraints, assumptions, non-goals, nongoals, non goals, goals and non-goals,
        out of scope, in scope, not in scope, functional requirements, non-functional requirements""",
    "Changes": """
        changes, proposed changes, proposed change, files, file changes, files to change, files to modify,
        files to create, files changed, affected files, implementation, implementation plan, tasks, task list,
        implementation steps, implementation details, steps, proposal, solution, proposed solution, approach,
        design, technical design, detailed design, work items, todo, to do""",
    "Risks": """
        risks, risk, risks and mitigations, risks & mitigations, questions, open questions, drawbacks,
        unresolved questions, concerns, unknowns, trade-offs, tradeoffs, alternatives, edge cases,
        alternatives considered, known issues, failure modes, rollback plan""",
    "Testing": """
        testing, tests, test plan, testing plan, test strategy, testing strategy, test cases, verification,
        verification plan, validation, validation plan, acceptance, acceptance criteria, acceptance tests,
        how to test, success criteria, definition of done, qa""",
}
"""What sections are usually called, by what they are called here."""

TITLED = re.compile(
    r"(?i:plan|implementation plan|feature specification|feature|tasks|rfc|proposal|design|spec)[ \t]*:[ \t]*"
)
NUMBERING = re.compile(r"^(?:\d+(?:\.\d+)*[.)]?|[IVX]+\.)[ \t]+")
TRIMMED = re.compile(r"[^\w;)]+$|^[^\w]+")
ASIDE = re.compile(r"[ \t]*[*_(\[]+[^*_()\[\]]*[*_)\]]+[ \t]*$")


NAMES = {" ".join(usual.split()): name for name, said in USUAL.items() for usual in said.split(",")}


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A section of a document; its level may be any."""

    name: str
    text: str


def read(content: bytes, source: str) -> Imported:
    """Any Markdown as a plan."""
    text = decoded(content, source)
    if not text.strip():
        raise InvalidInput(f"`{source}` is empty", "there is nothing in it to plan")
    front, rest = without_front_matter(text)
    opening, parts = _parts(rest)
    title, opening = _titled(opening, source)
    if is_plan(parts):
        body, left = _plan(title, opening, parts)
    else:
        body, left = _document(title, opening, parts)
    context = "\n\n".join(filter(None, [front, *left]))
    return Imported(title=title, text=text, source=source, body=body, context=context)


def is_plan(parts: list[Part]) -> bool:
    """Whether a document has the sections of a plan."""
    return {name.lower() for name in REQUIRED} <= {part.name.lower() for part in parts}


def _parts(text: str) -> tuple[str, list[Part]]:
    """What comes before the first section, and the sections, at the highest level that has any."""
    heads: list[tuple[markdown.Line, int, str]] = []
    for line in markdown.lines(text):
        found = None if line.fenced else HEADING.fullmatch(line.text)
        if found:
            heads.append((line, len(found["level"]), (found["name"] or "").strip()))
    levels = [level for _, level, _ in heads]
    titled = levels[:1] == [1] and levels.count(1) == 1
    level = min(levels[1:] if titled else levels, default=0)
    if level == 1 and 2 in levels:
        level = 2  # a second title in a document that has sections is one of them
    starts = [head for at, head in enumerate(heads) if head[1] <= level and not (at == 0 and head[1] == 1)]
    ends = [*(line.start for line, _, _ in starts[1:]), len(text)][: len(starts)]
    parts = [
        Part(name=name, text=text[line.end : end].strip("\n"))
        for (line, _, name), end in zip(starts, ends, strict=True)
    ]
    return text[: starts[0][0].start if starts else len(text)], parts


def _titled(opening: str, source: str) -> tuple[str, str]:
    """The title of a document, and what else stands before its first section."""
    for line in markdown.lines(opening):
        found = None if line.fenced else HEADING.fullmatch(line.text)
        if found and (name := TITLED.sub("", found["name"] or "", count=1).strip()):
            title = one_line(name)
            whole = "" if title == " ".join(name.split()) else f"{name}\n"  # it was too long for one
            return title, (opening[: line.start] + whole + opening[line.end :]).strip("\n")
    first = next((line.strip() for line in opening.splitlines() if line.strip(" \t-=*_>`~#")), "")
    return one_line(first) or one_line(source) or "Imported", opening.strip("\n")


def _plan(title: str, opening: str, parts: list[Part]) -> tuple[str, list[str]]:
    """A plan's own sections as they are; what Planforge wrote in it is of another plan, and quoted."""
    sections: dict[str, list[str]] = {}
    also, left = [], [opening] if opening.strip(" \t\n-") else []
    required = {name.lower(): name for name in REQUIRED}
    for part in parts:
        shown = without_tokens(" ".join(part.name.split())).rstrip("# ")
        name = shown.lower()
        if name in required:
            sections.setdefault(required[name], []).append(part.text)
        elif name in OWNED or name == CONTEXT.lower():
            left += [_whole(part)] if markdown.without_rules(part.text).strip() else []
        else:
            also.append(f"## {shown or 'More'}\n\n{within(part.text)}".rstrip())
    return assembled(title, sections, also), left


def _document(title: str, opening: str, parts: list[Part]) -> tuple[str, list[str]]:
    sections: dict[str, list[str]] = {}
    left: list[str] = []
    for part in parts:
        name = usual(part.name)
        text = markdown.without_rules(part.text) if name else ""
        if not name or not text.strip():
            left.append(_whole(part))
            continue
        said = changes(text) if name == "Changes" else text
        own = part.name.lower() == name.lower()
        sections.setdefault(name, []).append(said if own else f"### {part.name}\n\n{said}")
    if opening.strip():
        if "Objective" in sections or any(FIELD.fullmatch(line) for line in opening.splitlines()):
            left.insert(0, opening)
        else:
            sections["Objective"] = [opening]
    return assembled(title, sections), left


def _whole(part: Part) -> str:
    return f"## {part.name}\n\n{part.text}".rstrip()


def usual(name: str) -> str:
    """What a section of that name is called here; empty if it is called nothing."""
    said = NUMBERING.sub("", " ".join(name.split()))
    for plainer in _plainer(said):
        if found := NAMES.get(plainer):
            return found
    return ""


def _plainer(name: str) -> Iterator[str]:
    """A name without what people add to one: numbers, marks, asides."""
    plain = TRIMMED.sub("", name.lower())
    yield plain
    yield TRIMMED.sub("", ASIDE.sub("", name.lower()))
    yield plain.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").replace("_", " ")
