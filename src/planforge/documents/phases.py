"""
An approved plan cut into the phases that carry it out.

`decompose` finds the files a plan means to change and deals them out: one
implementing phase a batch, one audit at the end. The paths come from a document
that an agent wrote, so one that could leave the repository is never produced.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

import msgspec

from planforge.documents import markdown
from planforge.documents.plan import PlanId
from planforge.rules.states.tables import PHASE

SHOWN_HASH = 16


class PhaseKind(StrEnum):
    """What a phase does, and so which tools it gets."""

    IMPLEMENT = "implement"
    READ = "read"
    AUDIT = "audit"


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """One phase of a plan."""

    id: str
    title: str
    kind: PhaseKind
    files: tuple[str, ...]
    depends_on: tuple[str, ...]
    change_spec: str


class _Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A passage of the Changes section and the files it is about."""

    files: tuple[str, ...]
    text: str


def decompose(plan_text: str, *, max_files: int = 5, parallel: bool = False) -> tuple[Phase, ...]:
    """The phases of a plan: a chain, or side by side, and always an audit that waits for all of them."""
    if max_files < 1:
        raise ValueError(f"a phase needs room for at least one file, not {max_files}")
    changes = markdown.body(plan_text, "Changes") or ""
    entries = tuple(_entries(changes))
    files = _manifest(plan_text) or tuple(dict.fromkeys(path for entry in entries for path in entry.files))
    if not files:
        return _without_files(changes)
    phases: list[Phase] = []
    for batch in _batches(files, max_files):
        previous = (phases[-1].id,) if phases and not parallel else ()
        phases.append(_implement(f"phase-{len(phases) + 1}", batch, previous, entries))
    return (*phases, _audit(f"phase-{len(phases) + 1}", files, tuple(phase.id for phase in phases)))


def _without_files(changes: str) -> tuple[Phase, ...]:
    """For a plan that names no file: read first, then do what the plan says."""
    spec = markdown.without_rules(changes)
    read = Phase(
        id="phase-1", title="Read and analyse", kind=PhaseKind.READ, files=(), depends_on=(), change_spec=spec
    )
    implement = Phase(
        id="phase-2",
        title="Implement the plan",
        kind=PhaseKind.IMPLEMENT,
        files=(),
        depends_on=("phase-1",),
        change_spec=spec,
    )
    return read, implement, _audit("phase-3", (), ("phase-2",))


def _implement(
    phase: str, batch: tuple[str, ...], depends_on: tuple[str, ...], entries: Sequence[_Entry]
) -> Phase:
    more = f" and {len(batch) - 2} more" if len(batch) > 2 else ""
    return Phase(
        id=phase,
        title=f"Implement {', '.join(batch[:2])}{more}",
        kind=PhaseKind.IMPLEMENT,
        files=batch,
        depends_on=depends_on,
        change_spec=_change_spec(batch, entries),
    )


def _audit(phase: str, files: tuple[str, ...], depends_on: tuple[str, ...]) -> Phase:
    return Phase(
        id=phase,
        title="Post-implementation audit",
        kind=PhaseKind.AUDIT,
        files=files,
        depends_on=depends_on,
        change_spec="",
    )


def _change_spec(batch: tuple[str, ...], entries: Sequence[_Entry]) -> str:
    """What the plan says about each file of a batch, every passage once."""
    passages = (
        next(
            (entry.text for entry in entries if path in entry.files),
            f"- `{path}` — as the Objective asks; not described",
        )
        for path in batch
    )
    return "\n".join(dict.fromkeys(passages))


ITEM = re.compile(r"(?P<indent>[ \t]*)[-*+][ \t]+(?P<said>.*)")
HEADING = re.compile(r" {0,3}(?P<level>#{1,6})[ \t]+(?P<said>.*)")
BOLD = re.compile(r"(?P<indent>[ \t]*)(?P<said>\*{2,3}`[^`]+`.*)")
CODE_OR_BREAK = re.compile(r"`(?P<code>[^`]+)`|(?P<break>[—–]|[ \t]--?[ \t]|:(?=[\s*]|$))")  # noqa: RUF001


class _Start(msgspec.Struct, frozen=True, kw_only=True):
    """A line that can be about files: its kind decides where its passage ends."""

    depth: int
    heading: bool
    bold: bool
    said: str


def _entries(changes: str) -> Iterator[_Entry]:
    """Each list item, heading and bold line that names files, with the lines that belong to it."""
    shown = list(markdown.lines(changes))
    starts = [None if line.fenced else _start(line.text) for line in shown]
    for at, start in enumerate(starts):
        files = tuple(dict.fromkeys(_files_of(start.said))) if start else ()
        if start and files:
            end = next(
                (after for after in range(at + 1, len(shown)) if _ends(start, starts[after])), len(shown)
            )
            yield _Entry(
                files=files, text=markdown.without_rules("\n".join(line.text for line in shown[at:end]))
            )


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


def _ends(passage: _Start, line: _Start | None) -> bool:
    """A heading holds what is under it, a bold line its list, an item what is indented below it."""
    if line is None:
        return False
    if passage.heading:
        return line.heading and line.depth <= passage.depth
    if line.heading:
        return True
    if passage.bold:
        return line.bold and line.depth <= passage.depth
    return line.depth <= passage.depth


def _files_of(said: str) -> Iterator[str]:
    """The files a line is about.

    Every backticked path on the line counts, with one exception. In "`a.py` — reuse
    `b.py`" the prose after the dash mentions a file that is not to be changed, and a
    file in the list is a file the phase may change. So if paths stand before the first
    dash or colon, only those count; if none does, all of the line's paths count.
    """
    before: list[str] = []
    after: list[str] = []
    broken = False
    for found in CODE_OR_BREAK.finditer(said):
        if found["break"]:
            broken = True
        elif path := file_path(found["code"]):
            (after if broken else before).append(path)
    yield from before or after


def _manifest(plan_text: str) -> tuple[str, ...]:
    """The files of the `## Change Manifest`, if it holds a bare JSON array of paths."""
    section = markdown.body(plan_text, "Change Manifest") or ""
    for candidate in (*markdown.fenced_blocks(section), markdown.without_rules(section)):
        try:
            given = msgspec.json.decode(candidate.encode("utf-8", "replace"), type=list[object])
        except (msgspec.DecodeError, RecursionError):
            continue
        paths = (file_path(each) for each in given if isinstance(each, str))
        return tuple(dict.fromkeys(path for path in paths if path))
    return ()


EXTENSION = re.compile(
    r"bash|c|cc|cfg|cjs|conf|cpp|cs|css|csv|dart|dockerignore|editorconfig|env|ex|exs|example|gitattributes|"
    r"gitignore|go|gql|gradle|graphql|h|hpp|htm|html|ini|ipynb|java|jinja|js|json|jsonc|jsonl|jsx|kt|kts|less|"
    r"lock|lua|md|mdx|mjs|mk|mod|npmrc|php|pl|prisma|properties|proto|ps1|py|pyi|rb|rs|rst|sass|scala|scss|sh|"
    r"sql|sum|svelte|svg|swift|tf|tmpl|toml|ts|tsx|txt|vue|xml|ya?ml|zig|zsh",
    re.IGNORECASE,
)
NO_FILES = frozenset({"process.env", "import.meta.env", "node.js", "next.js", "vue.js"})
LINE_NUMBER = re.compile(r"(?::\d+(?:[-:]\d+)?|#L\d+(?:-L?\d+)?)$")
NOT_IN_A_PATH = frozenset("\"'`*?<>|{};=,:&%!^ ")
ODD_STARTS = ("~", "$", "-", "@/")  # a home, a variable, an option, an import alias
FORBIDDEN_PARTS = frozenset({"", ".git", "git~1", ".planforge"})


def file_path(token: str) -> str | None:
    """The token as a path inside the repository, or nothing if it is not one.

    A directory or a pattern is no file; a name without a slash needs an extension
    we know, or every dotted identifier would be a file.
    """
    path = LINE_NUMBER.sub("", token.strip()).replace("\\", "/")
    if not path.isprintable() or NOT_IN_A_PATH.intersection(path):
        return None
    parts = [part for part in path.split("/") if part != "."]
    # An absolute path has an empty part. Windows drops trailing dots, so `.git.` is `.git` there.
    if any(part.rstrip(".").lower() in FORBIDDEN_PARTS for part in parts):
        return None
    path = "/".join(parts)
    if path.startswith(ODD_STARTS) or path.endswith(")"):
        return None
    return path if len(parts) > 1 or _is_file_name(path) else None


def _is_file_name(name: str) -> bool:
    _, dot, extension = name.rpartition(".")
    return bool(dot) and EXTENSION.fullmatch(extension) is not None and name.lower() not in NO_FILES


TEST_NAMES = (
    (re.compile(r"(?P<stem>.+)\.(?:test|spec)\.[cm]?[jt]sx?"), "js"),
    (re.compile(r"test_(?P<stem>.+)\.py"), "py"),
    (re.compile(r"(?P<stem>.+)_test\.py"), "py"),
)
MODULE_NAMES = (
    (re.compile(r"(?P<stem>.+)\.[cm]?[jt]sx?"), "js"),
    (re.compile(r"(?P<stem>.+)\.py"), "py"),
)


def _batches(files: tuple[str, ...], max_files: int) -> Iterator[tuple[str, ...]]:
    """Modules with their tests first, then the rest a directory at a time."""
    families = _families(files)
    paired = {path for family in families for path in family}
    directories: dict[str, list[str]] = {}
    for path in files:
        if path not in paired:
            directories.setdefault(path.rpartition("/")[0], []).append(path)
    for group in (*families, *directories.values()):
        for at in range(0, len(group), max_files):
            yield tuple(group[at : at + max_files])


def _families(files: tuple[str, ...]) -> list[list[str]]:
    """Each module that has tests in the list, with them."""
    families: dict[str, list[str]] = {}
    modules = [path for path in files if not _stem(path, TEST_NAMES)]
    for path in files:
        tested = _stem(path, TEST_NAMES)
        homes = [module for module in modules if tested and _stem(module, MODULE_NAMES) == tested]
        if homes:
            home = max(homes, key=lambda module: _shared_parts(module, path))
            families.setdefault(home, [home]).append(path)
    return [families[module] for module in modules if module in families]


def _stem(path: str, names: Iterable[tuple[re.Pattern[str], str]]) -> tuple[str, str] | None:
    name = path.rpartition("/")[2]
    return next(
        ((found["stem"], kind) for pattern, kind in names if (found := pattern.fullmatch(name))), None
    )


def _shared_parts(module: str, test: str) -> int:
    """How near two files lie: how many directories their paths have in common."""
    return len(set(module.split("/")[:-1]) & set(test.split("/")[:-1]))


DESCRIPTIONS = {
    PhaseKind.READ: "Read what the plan is about and report what has to change.",
    PhaseKind.AUDIT: "Audit all changes against the plan.",
}


def render_phases(
    plan_id: PlanId,
    plan_path: str,
    plan_hash: str,
    created: str,
    phases: Sequence[Phase],
    statuses: Mapping[str, str],
    *,
    updated: str | None = None,
) -> str:
    """The phases file people read, with statuses that there are; nothing is ever read back from it."""
    header = [
        f"# Phases: {plan_id} — {plan_path}",
        f"Created: {created}",
        f"Updated: {updated or created}",
        f"Plan hash: {plan_hash[:SHOWN_HASH]}",
    ]
    shown = [_render_phase(phase, PHASE.check(statuses.get(phase.id, PHASE.initial))) for phase in phases]
    return "\n".join(["\n".join(header), "", *shown])


def _render_phase(phase: Phase, status: str) -> str:
    files = ", ".join(f"`{path}`" for path in phase.files)
    implementing = f"Implement changes for: {files}" if files else "Implement the plan."
    lines = [
        f"## {phase.id}: {phase.title}",
        f"**Kind:** {phase.kind}",
        f"**Status:** {status}",
        f"**Context:** {files or '(none)'}",
        f"**Depends on:** {', '.join(phase.depends_on) or '(none)'}",
        "",
        DESCRIPTIONS.get(phase.kind, implementing),
        "",
    ]
    if phase.change_spec:
        closing = markdown.open_fence(phase.change_spec)
        lines += ["**Change spec:**", phase.change_spec, *([closing] if closing else []), ""]
    return "\n".join([*lines, "---", ""])
