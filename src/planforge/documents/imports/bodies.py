"""
The body of a plan, put together from what others wrote.

Whatever stands in a section stays in it: a heading that would begin another one becomes a lower one, a code
fence that is never closed is closed, a template's token is none any more. Sections of which nothing is known
are there too, with a placeholder, so that somebody fills them in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from planforge.documents import markdown
from planforge.documents.file_names import file_path
from planforge.documents.plan import REQUIRED, TEMPLATE_TOKEN

TO_BE_WRITTEN = {
    "Objective": "_To be written: what problem this solves, and why._",
    "Scope": "_To be written: what is part of it, and what is expressly not._",
    "Changes": "_To be written: one item for each file, its path in backticks._",
    "Risks": "_To be written: what may go wrong, and what is done about it._",
    "Testing": "_To be written: what to run, and what to look for._",
}

ITEM = re.compile(r"(?P<lead>[ \t]*)(?P<mark>[-*+]|\d{1,9}[.)])[ \t]+(?P<box>\[[ xX]\][ \t]+)?(?P<said>.*)")
HEADING = re.compile(r"(?P<mark> {0,3}#{1,6}[ \t]+)(?P<said>.*)")
FIRST_WORD = re.compile(r"(?P<word>[^\s`*:,()]+)(?P<rest>(?:[\s:,(].*)?)")
CODE = re.compile(r"`(?P<code>[^`]+)`")
AROUND = "()<>,;:!?\"'*"


def assembled(title: str, sections: Mapping[str, Sequence[str]], also: Sequence[str] = ()) -> str:
    """A body with these parts under each of the required sections, and whole sections after them."""
    parts = [f"# Plan: {without_tokens(title)}"]
    for name in REQUIRED:
        said = [within(part) for part in sections.get(name, ()) if part.strip()]
        parts.append(f"## {name}\n\n" + ("\n\n".join(said) or TO_BE_WRITTEN[name]))
    return "\n\n".join([*parts, *also]) + "\n"


def within(text: str) -> str:
    """A text that cannot leave the section that it is put into."""
    lines = [
        line.text if markdown.heading(line) is None else line.text.replace("##", "###", 1)
        for line in markdown.lines(without_tokens(text).strip("\n"))
    ]
    if fence := markdown.open_fence("\n".join(lines)):
        lines.append(fence)
    return "\n".join(lines)


def without_tokens(text: str) -> str:
    """The text with the tokens of a template taken apart."""
    return TEMPLATE_TOKEN.sub(lambda found: found[0].replace("{{", "{ {"), text)


def changes(text: str) -> str:
    """A text about files in the form in which they are found: as items, each path in backticks."""
    lines = [line.text if line.fenced else _change(line.text) for line in markdown.lines(text)]
    return "\n".join(lines)


def _change(line: str) -> str:
    if found := ITEM.fullmatch(line):
        said = _marked(found["said"])
        ordered = found["mark"][:-1].isdecimal()
        if not ordered or not any(file_path(code) for code in CODE.findall(said)):
            return f"{found['lead']}{found['mark']} {found['box'] or ''}{said}"
        return f"{found['lead']}- {found['mark']} {found['box'] or ''}{said}"
    if found := HEADING.fullmatch(line):
        return found["mark"] + _marked(found["said"])
    return line


def _marked(said: str) -> str:
    """The same with its first word in backticks if that is a file."""
    found = FIRST_WORD.fullmatch(said)
    return f"`{found['word']}`{found['rest']}" if found and is_file(found["word"]) else said


def is_file(word: str) -> bool:
    """Whether a bare word can only be a file in the repository: with a name that has an extension we know."""
    name = word.replace("\\", "/").rpartition("/")[2]
    return "://" not in word and file_path(word) is not None and file_path(name) is not None


def files_in(said: str) -> tuple[str, ...]:
    """The files that a sentence names, in backticks or not, each once."""
    bare = (word.strip(AROUND).rstrip(".,;:") for word in CODE.sub(" ", said).split())
    words = [*CODE.findall(said), *filter(is_file, bare)]
    return tuple(dict.fromkeys(path for path in map(file_path, words) if path))
