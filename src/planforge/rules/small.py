"""
What is small enough to be done without a plan: by the words that ask for it, and by what was really changed.

Words can only make suspicious, so a person may overrule them; they are English words, and in any other
language the length, the named files and the list items are what counts. What decides is the change itself.

Pure: words and counts go in, reasons come out; none is small.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import msgspec

SHOWN = 5
"""So many names are given; how many more there are is said."""

CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
ITEM = re.compile(r"^[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+\S", re.MULTILINE)
PATH = re.compile(
    r"(?<![\w/.-])(?:[\w.-]+/)+[\w-]*\.?[\w-]+(?!\w)|(?<![\w/.-])[\w-]+\.[A-Za-z][A-Za-z0-9]{0,4}(?![\w/])"
)
ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
KNOWN = (
    "c cc cfg conf cpp cs css csv dart ex exs go gradle h hpp html ini ipynb java js json jsx kt lock lua m"
    " md mjs php pl proto ps1 py pyi r rb rs rst sass scala scss sh sql svelte swift tf toml ts tsx txt vue"
    " xml yaml yml zig"
)
EXTENSIONS = frozenset(KNOWN.split())
VERBS = (
    "add allow build change clean convert create delete document drop extend fix handle implement improve"
    " introduce let make migrate move port refactor remove rename replace rewrite split support switch test"
    " translate update upgrade use write"
).replace(" ", "|")

MORE = re.compile(
    rf"(?:[.;!\n]|,? and)\s*(?:and )?(?:also|additionally|besides|furthermore|moreover|then|finally),?\s+"
    rf"(?:please\s+)?(?:{VERBS})\b",
    re.IGNORECASE,
)
ALONE = re.compile(r"\b(?:redesign|re-?architect|overhaul|restructure|moderni[sz]e)\b", re.IGNORECASE)
CHANGES = (
    r"rewrit(?:e|ing)|migrat(?:e|ing)|port(?:ing)?|convert(?:ing)?|refactor(?:ing)?|replac(?:e|ing)"
    r"|renam(?:e|ing)|translat(?:e|ing)|upgrad(?:e|ing)|reimplement(?:ing)?"
)
ALL = (
    r"everything|everywhere|all of (?:it|the)|all (?:the )?\w+s|every \w+|the (?:whole|entire) \w+"
    r"|(?:the |this )?(?:codebase|code base|application|project|system)|from scratch|throughout|across the"
)
SWEEPING = re.compile(rf"\b(?:{CHANGES})\b[^.;!?\n]{{0,60}}?\b(?:{ALL})\b", re.IGNORECASE)
MIGRATION = re.compile(r"\b(?:migrate|port)\b[^.;!?\n]{0,60}?\b(?:to|from|onto)\b", re.IGNORECASE)


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a change without a plan may be at most."""

    max_files: int = 3
    """How many files it may name, and change."""
    max_lines: int = 120
    """How many lines it may add and remove."""
    max_words: int = 150
    """How many words may ask for it."""
    max_wishes: int = 1
    """How many separate things it may ask for."""


def before(request: str, limits: Limits) -> tuple[str, ...]:
    """Why the words do not sound like a small change."""
    return tuple(_suspicions(request, limits))


def after(files: Collection[str], lines: int, limits: Limits) -> tuple[str, ...]:
    """Why a change is not small."""
    found = []
    if len(files) > limits.max_files:
        found.append(
            f"it changes {len(files)} files ({_listed(sorted(files))}); small is at most {limits.max_files}"
        )
    if lines > limits.max_lines:
        found.append(f"it changes {lines} lines; small is at most {limits.max_lines}")
    return tuple(found)


def named_files(request: str) -> tuple[str, ...]:
    """The files that a text names, each once, in order."""
    text = ADDRESS.sub(" ", request)
    names = (found[0].strip(".").removeprefix("./") for found in PATH.finditer(text))
    return tuple(dict.fromkeys(name for name in names if name.rpartition(".")[2].lower() in EXTENSIONS))


def wishes(request: str) -> int:
    """How many separate things a text asks for, as far as that can be seen from its form."""
    text = CODE.sub(" ", request)
    return max(len(ITEM.findall(text)), 1 + len(MORE.findall(text)))


def _suspicions(request: str, limits: Limits) -> Iterator[str]:
    words = len(request.split())
    if words > limits.max_words:
        yield f"it takes {words} words to ask for it; small is at most {limits.max_words}"
    files = named_files(request)
    if len(files) > limits.max_files:
        yield f"it names {len(files)} files ({_listed(files)}); small is at most {limits.max_files}"
    wished = wishes(request)
    if wished > limits.max_wishes:
        yield f"it asks for {wished} separate things; small is at most {limits.max_wishes}"
    text = CODE.sub(" ", request)
    for pattern in (ALONE, SWEEPING, MIGRATION):
        if found := pattern.search(text):
            yield f"it says “{' '.join(found[0].split())}”, which is seldom small"
            return


def _listed(names: Collection[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in list(names)[:SHOWN])
    return f"{shown} and {len(names) - SHOWN} more" if len(names) > SHOWN else shown
