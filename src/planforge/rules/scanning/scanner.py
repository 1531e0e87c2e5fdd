"""All rules, put to one file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from planforge.rules.scanning import cases, comments, pipelines
from planforge.rules.scanning.counts import Inventory, counted
from planforge.rules.scanning.inspection import outline
from planforge.rules.scanning.issues import Issue
from planforge.rules.scanning.languages import Language, Role
from planforge.rules.scanning.others import rules as others
from planforge.rules.scanning.outlines import Outline
from planforge.rules.scanning.python import rules as python
from planforge.rules.scanning.source import Source

TOLD_BY_TREE = re.compile(r"__eq__|NotImplementedError|#[^\n]*(?:TODO|FIXME|implement)", re.IGNORECASE)
"""Without any of these, there is nothing in code outside of tests that only its syntax tree would tell."""

NOT_STRICT = "`xfail` without `strict`"


class Examined(NamedTuple):
    """All that one look at a file tells."""

    issues: tuple[Issue, ...]
    counts: Inventory


def examine(source: Source, *, strict_xfail: bool) -> Examined:
    """
    Where a file breaks a rule, from top to bottom, and how many tests it has.

    `strict_xfail` says that the settings of pytest make every expected failure strict.
    """
    found = outline(source)
    places = {(issue.line, issue.column, issue.rule): issue for issue in _issues(source, found)}
    issues = tuple(
        places[place]
        for place in sorted(places)
        if not (strict_xfail and places[place].message == NOT_STRICT)
    )
    return Examined(issues, counted(found))


def _issues(source: Source, found: Outline) -> Iterator[Issue]:
    yield from comments.issues(source, found)
    yield from pipelines.issues(source)
    yield from cases.issues(source, found)
    if source.language is Language.PYTHON and source.role is Role.SOURCE:
        if TOLD_BY_TREE.search(source.text):
            yield from python.issues(source)
    elif source.tree is not None:
        yield from python.issues(source)
    else:
        yield from others.issues(source, found)
