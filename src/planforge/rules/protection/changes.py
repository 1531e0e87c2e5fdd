"""Every reason why a change needs a person: what its paths are, and what its texts say."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache

import msgspec

from planforge.rules.protection import ProtectedChange, Protection
from planforge.rules.protection.checks import altered, sets_checks
from planforge.rules.protection.dependencies import compared, is_manifest
from planforge.rules.protection.migrations import is_migration
from planforge.rules.protection.names import alike, same
from planforge.rules.protection.patterns import Patterns
from planforge.rules.protection.table import DEFAULTS, NOT_MEANT, WORDS, Kind

SHOWN = 12
"""So many reasons are given for one file; how many more there are is said."""

USUAL = Protection()
"""What is protected where a project says nothing."""

NAMES_CI = re.compile(r"(?i)(?:.*/)?(?:[\w.-]*dockerfile[\w.-]*|containerfile[\w.-]*)")


def protected(
    files: Iterable[str],
    before: Mapping[str, str],
    after: Mapping[str, str],
    settings: Protection = USUAL,
    *,
    unread: Collection[str] = (),
) -> tuple[ProtectedChange, ...]:
    """
    Every reason why a change of `files` needs a person, in the order of the files.

    `before` and `after` have the texts of the changed files; one that is not there has none, and one that is
    there but was not read, because it is too large or no text, is named in `unread`. `before` may also have
    CI files that the change leaves alone: what they name is then known to be run by them.
    """
    rules = _rules(settings)
    run = {path: before[path] for path in ci_files(before, settings)}
    found = []
    for path in dict.fromkeys(files):
        texts = _Texts(old=before.get(path), new=after.get(path), unread=path in unread)
        reasons = [] if rules.leaves_out(path) else list(_reasons(path, texts, run, rules))
        kept = [item for item in reasons if item.kind.value not in rules.without]
        found += kept[:SHOWN]
        if len(kept) > SHOWN:
            more = f"and {len(kept) - SHOWN} more of the kind"
            found.append(ProtectedChange(path=path, kind=kept[SHOWN].kind, why=more))
    return tuple(found)


def ci_files(paths: Iterable[str], settings: Protection = USUAL) -> tuple[str, ...]:
    """Those of the paths that are CI files."""
    rules = _rules(settings)
    return tuple(path for path in paths if rules.kind_of(path)[0] is Kind.CI)


class _Texts(msgspec.Struct, frozen=True, kw_only=True):
    old: str | None
    new: str | None
    unread: bool

    @property
    def verb(self) -> str:
        if self.unread or (self.old is None) is (self.new is None):
            return "is changed"
        return "is added" if self.old is None else "is deleted"


class _Rules:
    def __init__(self, settings: Protection) -> None:
        replaced = settings.replace is not None
        own = (*settings.add, *(settings.replace or ()))
        tables = {} if replaced else DEFAULTS
        self.looks_inside = not replaced
        self.without = frozenset(settings.remove) & {kind.value for kind in Kind}
        self._removed = Patterns(name for name in settings.remove if name not in self.without)
        self._not_meant = Patterns(() if replaced else NOT_MEANT)
        self._own = Patterns(own)
        self._kinds = {kind: Patterns(patterns) for kind, patterns in tables.items()}

    def leaves_out(self, path: str) -> bool:
        return self._removed.match(path) and not self._own.match(path)

    def kind_of(self, path: str) -> tuple[Kind | None, bool]:
        """What the path is by its name, and whether it only looks so."""
        seen = alike(path)
        looked_at = ((path, False), (seen, True)) if seen != same(path) else ((path, False),)
        for name, looks in looked_at:
            if self._own.match(name) or self._own.below(name):
                return Kind.OWN, looks
            if not self._not_meant.match(name):
                for kind, patterns in self._kinds.items():
                    if patterns.match(name) or patterns.below(name):
                        return kind, looks
        return None, False


@lru_cache(16)
def _rules(settings: Protection) -> _Rules:
    return _Rules(settings)


def _reasons(path: str, texts: _Texts, run: Mapping[str, str], rules: _Rules) -> Iterator[ProtectedChange]:
    kind, looks = rules.kind_of(path)
    if kind is not None:
        like = ", under a name that only looks like it" if looks else ""
        yield ProtectedChange(path=path, kind=kind, why=f"{WORDS[kind]} {texts.verb}{like}")
    if not rules.looks_inside:
        return
    yield from _inside(path, texts)
    if kind is not Kind.CI and (runner := _run_by(path, run)):
        yield ProtectedChange(path=path, kind=Kind.CI, why=f"`{runner}` uses it")


def _inside(path: str, texts: _Texts) -> Iterator[ProtectedChange]:
    """Reasons in the content of a file, independent of its name."""
    seen = alike(path)
    if texts.unread:
        for kind, told in ((Kind.DEPENDENCY, is_manifest(seen)), (Kind.CHECK, sets_checks(seen))):
            if told:
                yield ProtectedChange(path=path, kind=kind, why=f"{WORDS[kind]} could not be looked into")
    else:
        for clause in compared(seen, texts.old, texts.new):
            yield ProtectedChange(path=path, kind=Kind.DEPENDENCY, why=clause)
        for clause in altered(seen, texts.old, texts.new):
            yield ProtectedChange(path=path, kind=Kind.CHECK, why=f"how the project is checked: {clause}")
    if is_migration(seen, texts.old, texts.new):
        how = "a new migration" if texts.verb == "is added" else f"an existing migration {texts.verb}"
        yield ProtectedChange(path=path, kind=Kind.MIGRATION, why=how)


def _run_by(path: str, run: Mapping[str, str]) -> str:
    """The CI file that names this one: by its whole path, or an image by its name."""
    if "/" not in path and not NAMES_CI.fullmatch(path):
        return ""
    named = re.compile(rf"(?<![\w./-])(?:\./)?{re.escape(path)}(?![\w/-]|\.\w)")
    return next((name for name, text in sorted(run.items()) if named.search(text)), "")
