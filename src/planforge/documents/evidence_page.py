"""
What is known of a plan and what shows it, as one page: of its steps, audits, approvals, and how to check it.

Much of the text is an agent's, and the page may be posted somewhere under a person's name. So every text is
put down as text: it makes no heading, no link and no picture, mentions nobody and closes no issue.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

import msgspec

from planforge.kernel.events import RecordedFinding
from planforge.kernel.evidence import Counts, Evidence
from planforge.kernel.scores import StepScore
from planforge.kernel.wording import counted

LONGEST = 60_000
"""So many characters a page may have at most; GitHub takes 65,536."""
TEXT = 4_000
"""So many of one text are shown."""
SHOWN = 50
"""So many findings of one audit are shown."""

SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~$!])")
MENTION = re.compile(r"(?<=[@#])(?=\w)|(?<=\b[Gg][Hh])(?=-\d)|(?<=:)(?=//)|(?<=\b[Ww][Ww][Ww])(?=\.)")
BLOCK = re.compile(r"^(\s*)(#+|[-+=]+|\d+(?=[.)]))", re.MULTILINE)
NOTHING = "&#8203;"
"""A space of no width, in the places where a service would see a mention or an address."""


class StepEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """One step, the commit it landed as, and the evidence for it."""

    step: str
    title: str
    kind: str
    status: str
    attempts: int = 0
    commit: str = ""
    tree: str = ""
    agent: str = ""
    evidence: Evidence | None = None
    """The check of exactly the tree that landed."""
    score: StepScore | None = None
    reason: str = ""
    """Why it was left out, or failed."""


class AuditEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The newest audit of the plan, or of the finished work."""

    of: str
    """The step; empty is the plan itself."""
    round: int
    by: str
    verdict: str
    findings: tuple[RecordedFinding, ...]
    """What remains."""


class Yes(msgspec.Struct, frozen=True, kw_only=True):
    """A person's yes to exact content."""

    actor: str
    what: str
    """`plan`, or the gate of a protected change."""
    content: str
    at: str
    reason: str = ""


class EvidencePage(msgspec.Struct, frozen=True, kw_only=True):
    """Everything on one page."""

    schema_version: int = 1
    plan: str
    title: str
    status: str
    objective: str
    stale: bool = False
    """The plan was edited after it was carried out."""
    reason: str = ""
    """How it ended."""
    branch: str = ""
    base: str = ""
    commit: str = ""
    runs: tuple[str, ...] = ()
    steps: tuple[StepEvidence, ...] = ()
    audits: tuple[AuditEvidence, ...] = ()
    approvals: tuple[Yes, ...] = ()
    landed: tuple[str, ...] = ()
    """The branches that it has landed on."""
    pull_requests: tuple[str, ...] = ()


def plain(text: str) -> str:
    """A text as Markdown that shows it and does nothing else."""
    printable = "".join(letter for letter in text if letter.isprintable() or letter == "\n")
    escaped = SPECIAL.sub(r"\\\1", printable.replace("&", "&amp;"))
    escaped = BLOCK.sub(lambda found: f"{found[1]}{_escaped(found[2])}", escaped)
    return MENTION.sub(NOTHING, escaped)


def _escaped(opening: str) -> str:
    return f"{opening}\\" if opening.isdigit() else f"\\{opening}"


def code(text: str) -> str:
    """A text as inline code; backticks in it are safe."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    if not line:
        return ""
    fence = "`" * (max((len(run) for run in re.findall(r"`+", line)), default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def markdown(page: EvidencePage) -> str:
    """The page for people."""
    sections = {
        "Objective": _objective(page),
        "Phases": _steps(page),
        "Evidence": _checks(page),
        "Audits": _audits(page),
        "Approvals": _approvals(page),
        "How to verify": _verification(page),
    }
    bodies = {title: "\n".join(lines) for title, lines in sections.items()}
    text = "\n\n".join(f"## {title}\n\n{body}" for title, body in bodies.items() if body) + "\n"
    if len(text) <= LONGEST:
        return text
    rest = f"\n\n… and more: `planforge plan evidence {page.plan}` has all of it.\n"
    return text[: LONGEST - len(rest)].rpartition("\n")[0] + rest


def _objective(page: EvidencePage) -> Iterator[str]:
    yield from (f"> {line}".rstrip() for line in plain(_cut(page.objective.strip(), TEXT)).splitlines())
    if page.stale:
        yield ""
        yield "The plan was edited after it was carried out; this is its last text on record."
    yield ""
    where = f", {code(page.branch)} at {code(page.commit[:12])}" if page.branch else ""
    yield f"{code(page.plan)} is {page.status}{where}{f': {_line(page.reason)}' if page.reason else ''}."


def _steps(page: EvidencePage) -> Iterator[str]:
    if not page.steps:
        return
    yield "| phase | | commit | evidence | score |"
    yield "|---|---|---|---|---|"
    for step in page.steps:
        tests = _line(step.evidence.reason) if step.evidence else _line(step.reason)
        cells = [
            code(step.step),
            _line(step.title),
            code(step.commit[:12]) or step.status,
            tests,
            _score(step),
        ]
        yield f"| {' | '.join(cells)} |"


def _score(step: StepEvidence) -> str:
    if step.score is None:
        return ""
    return "unknown" if step.score.value is None else str(step.score.value)


def _checks(page: EvidencePage) -> Iterator[str]:
    measured = [(step, step.evidence) for step in page.steps if step.evidence]
    if not measured:
        return
    yield "Measured by Planforge in a fresh checkout of each tree; no agent's word counts."
    yield ""
    for step, evidence in measured:
        reused = ", measured before on the same tree" if evidence.reused else ""
        confined = f", {_line(evidence.sandbox)}" if evidence.sandbox else ""
        yield f"- {code(step.step)}: tree {code(evidence.tree)}{confined}{reused}"
        if evidence.parts:
            for part in evidence.parts:
                said = f"{_line(part.name)}: {part.outcome.value}{_counted(part.counts)}"
                yield f"  - {said}{_command(part.command)}"
        else:
            yield f"  - {evidence.outcome.value}{_counted(evidence.counts)}{_command(evidence.command)}"


def _counted(counts: Counts | None) -> str:
    if counts is None:
        return ""
    tests = counted(counts.total, "test")
    return f", {tests}: {counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped"


def _command(words: Sequence[str]) -> str:
    return f", {code(shlex.join(words))}" if words else ""


def _audits(page: EvidencePage) -> Iterator[str]:
    for audit in page.audits:
        what = f"{code(audit.of)}, the finished work" if audit.of else f"the plan, round {audit.round}"
        number = len(audit.findings)
        left = "1 finding remains" if number == 1 else f"{number or 'no'} findings remain"
        yield f"- {what}, by {_line(audit.by)}: {_line(audit.verdict)}; {left}"
        for finding in audit.findings[:SHOWN]:
            place = f" ({code(finding.location)})" if finding.location else ""
            yield f"  - {_line(finding.severity)}: {_line(finding.title)}{place}"
        if len(audit.findings) > SHOWN:
            yield f"  - and {len(audit.findings) - SHOWN} more"


def _approvals(page: EvidencePage) -> Iterator[str]:
    for yes in page.approvals:
        why = f": {_line(yes.reason)}" if yes.reason else ""
        # The name alone: an address is not everybody's.
        yield f"- {_line(yes.actor.partition('<')[0])}, {code(yes.what)}, content {code(yes.content)}{why}"


def _verification(page: EvidencePage) -> Iterator[str]:
    if not page.runs:
        return
    run = page.runs[-1]
    yield "Whoever has the repository with its ledger:"
    yield ""
    yield "```console"
    yield f"$ planforge replay {run}"
    yield f"$ planforge prove {run} --output {page.plan}.proof"
    yield "```"
    yield ""
    yield "Whoever has the proof, without the repository; `--rerun` runs the recorded checks again:"
    yield ""
    yield "```console"
    yield f"$ planforge check-proof {page.plan}.proof"
    yield "```"


def _line(text: str) -> str:
    return plain(" ".join(_cut(text, 500).split()))


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
