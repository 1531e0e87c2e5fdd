"""
What can be seen of a change without running it: its tests, its size, the paths that need a person.

The rules are pure (`rules/scanning`, `rules/protection`). Here the texts are read for them, and how
large the steps were that have landed before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import msgspec

from planforge.app.project import Project
from planforge.app.settings import LessonSettings, Settings
from planforge.kernel import effects
from planforge.kernel.events import RecordedFinding, StepCompleted
from planforge.rules.findings import Finding, Severity
from planforge.rules.protection import Protection
from planforge.rules.protection.bounds import size_finding
from planforge.rules.protection.changes import ci_files, protected
from planforge.rules.scanning import former, integrity
from planforge.rules.scanning.issues import live
from planforge.workspace.git import changes, patches, repository
from planforge.workspace.git.changes import Changed
from planforge.workspace.git.objects import PLAIN

REMEMBERED = 50
"""Against how many of the newest landed steps the size of a change is held."""

LANDED = """\
SELECT body FROM steps JOIN events ON seq = completed WHERE landed IS NOT NULL
ORDER BY completed DESC LIMIT ?"""


def inspect(project: Project, effect: effects.Inspect) -> effects.Inspection:
    """Look at a commit."""
    changed = changes.changed(project.git, effect.parent, effect.commit)
    before = {item.path: text for item in changed if (text := _text(item, item.before)) is not None}
    after = {item.path: text for item in changed if (text := _text(item, item.after)) is not None}
    settings = project.settings
    waivers = live(settings.scan.waivers, datetime.now(UTC).date())
    found = [*_unread(changed), *integrity.compare(before, after, settings.scan.pinned, waivers=waivers)]
    lines, landed = _lines(project, effect), _landed(project)
    size = size_finding(lines, effect.files, landed, settings.protect.size)
    found += [size] if size else []
    found += _unconverted(project, effect)
    needs = protected(
        [item.path for item in changed],
        _ci_files(project, effect.parent) | before,
        after,
        _protection(settings),
        unread={item.path for item in changed if item.unread or item.binary},
    )
    return effects.Inspection(
        findings=_recorded(found),
        protected=tuple(map(str, needs)),
        former=former.former(before, after) if settings.protect.holds_to_former_tests else (),
    )


def _protection(settings: Settings) -> Protection:
    """What is protected, with the file of lessons wherever it is: agents are told what it says."""
    own, file = settings.protect, settings.lessons.file
    if own.replace is not None or file == LessonSettings().file:
        return own
    return msgspec.structs.replace(own, add=(*own.add, file))


def _lines(project: Project, effect: effects.Inspect) -> dict[str, int]:
    """How many lines were added to or removed from each file."""
    words = ("diff-tree", "-r", "-z", "--numstat", *PLAIN, effect.parent, effect.commit)
    return dict(patches.counted(record) for record in project.git.run(*words).stdout.split(b"\0") if record)


def _text(item: Changed, side: bytes | None) -> str | None:
    return None if side is None or item.binary else side.decode("utf-8", "replace")


def _unread(changed: Iterable[Changed]) -> Iterable[Finding]:
    for item in changed:
        if item.unread:
            title = f"nobody looked into it: {item.unread}"
            yield Finding(severity=Severity.MINOR, title=title, location=item.path)


def _unconverted(project: Project, effect: effects.Inspect) -> Iterator[Finding]:
    """Files that a filter of git's should have converted, which we never run: in git-crypt's, plain text."""
    for item in repository.unconverted(project.git, effect.parent, effect.commit):
        title = f"git's filter `{item.filter}` did not convert it, as Planforge runs none"
        yield Finding(severity=Severity.BLOCKING, title=title, location=item.path)


def _ci_files(project: Project, commit: str) -> dict[str, str]:
    """The texts of the CI files that were there, which say what else they run."""
    listed = project.git.run("ls-tree", "-r", "-z", "--name-only", commit).stdout.split(b"\0")
    names = [path.decode("utf-8", "backslashreplace") for path in listed if path]
    found = {}
    for name in ci_files(names, project.settings.protect):
        process = project.git.run("cat-file", "blob", f"{commit}:{name}", accept=(0, 1, 128))
        if not process.returncode:
            found[name] = process.stdout[: changes.TEXT_LIMIT].decode("utf-8", "replace")
    return found


def _landed(project: Project) -> list[int]:
    """How many lines the newest landed steps changed."""
    found = []
    for (body,) in project.ledger.query(LANDED, REMEMBERED):
        score = msgspec.json.decode(body, type=StepCompleted).score
        if score is not None and score.measures.diff_size is not None:
            found.append(score.measures.diff_size)
    return found


def _recorded(findings: Iterable[Finding]) -> tuple[RecordedFinding, ...]:
    return tuple(
        RecordedFinding(severity=item.severity.value, title=item.title, location=item.location)
        for item in findings
    )
