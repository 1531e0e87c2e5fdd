"""
A plan: the Markdown document a person reads, edits and approves.

The header belongs to Planforge, and so do the request, the audit log and the
implementation notes; the rest is the drafter's. An approval is bound to
`content_hash`, which covers everything but the status and the two sections that
grow while the plan is audited and carried out.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from enum import StrEnum

import msgspec

from planforge.documents import changes as changed_files
from planforge.documents import markdown
from planforge.errors import InvalidDocument
from planforge.kernel.work import items
from planforge.kernel.work.items import Kind
from planforge.rules.findings import Finding, Severity

REQUEST, CONTEXT, AUDIT_LOG, NOTES = "Request", "Context", "Audit Log", "Implementation Notes"
OWNED = {name.lower() for name in (REQUEST, AUDIT_LOG, NOTES)}
REQUIRED = ("Objective", "Scope", "Changes", "Risks", "Testing")
ESSENTIAL = ("Objective", "Changes")

GIVEN = "Given with the request, quoted as it was"
"""How the context begins that is ours. A drafter may have a section of that name too, which is its own."""

MAX_SLUG = 50
MAX_LEAD = 96
MIN_SECTION = 10

NUMBER = re.compile(r"(?:plan-)?0*[1-9][0-9]{0,8}")
TASK = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/#-]{0,98}[A-Za-z0-9])?")
OWN_TASK = re.compile(r"(?i:ws)-0*(?P<number>[1-9][0-9]{0,8})")
TITLE = re.compile(r"# Plan:[ \t]*(?P<title>.*?)[ \t]*")
DRAFT_START = re.compile(r"^# Plan:", re.MULTILINE)
FIELD = re.compile(
    r"\*\*(?P<key>ID|Task|Created|Status|Project|Heartbeat|Parallel):\*\*[ \t]*(?P<value>.*?)[ \t]*"
)
YES_OR_NO = {"yes": True, "no": False}
TEMPLATE_TOKEN = re.compile(r"\{\{\s*(?P<name>TITLE|PLAN_ID|TASK_ID|DATE|PROJECT)\s*\}\}")
REVIEW = re.compile(r"### Review (?P<number>[0-9]{1,9})\b.*")
ITALIC = re.compile(r"\*[^*]+\*|_[^_]+_")
BACKTICKED_FILE = re.compile(r"`[^`\s]*\.[A-Za-z][A-Za-z0-9]*`")
MANIFEST_FILE = re.compile(r'"[^"\s]*\.[A-Za-z][A-Za-z0-9]*"')
EXAMPLE_PATH = re.compile(r"\bpath/to/")
BEAT = re.compile(r"(?P<number>[0-9]{1,9}(?:\.[0-9]{1,3})?)[ \t]*(?P<unit>ms|s|m|h)?")
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
SILENT = frozenset({"0", "off", "none", "disable", "disabled", "false"})
LEAST_BEAT = 1.0
"""A heartbeat is at least this many seconds long."""

PLACEHOLDERS = (
    "describe the objective here",
    "define what's in and out of scope",
    "list file-by-file changes",
    "identify risks and mitigations",
    "how will this be tested?",
)
"""What a template says where something is to be written. No plan says any of it."""

EXAMPLES = (
    "its path in backticks, then what changes in it",
    "one list item for each file",
    "`path/to/file",
    "what problem this plan solves and why",
    "in scope and explicitly what is out of scope",
    "known risks, failure modes, and mitigations",
    "how the changes will be verified",
)
"""What a template or a prompt gives as an example. A plan may well say one of these, but not two."""


class PlanStatus(StrEnum):
    """Where a plan stands."""

    DRAFT = "DRAFT"
    REVIEW = "REVIEW"
    APPROVED = "APPROVED"
    IMPLEMENTING = "IMPLEMENTING"
    AUDITING = "AUDITING"
    DONE = "DONE"
    CLOSED = "CLOSED"
    CANCELLED = "CANCELLED"


class PlanDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The header of a plan file as read."""

    id: str
    title: str
    status: PlanStatus
    task: str = ""


def looks_like_plan_id(text: str) -> bool:
    """Whether somebody means a plan by it, and does not say what they want: digits, or `plan-` and digits."""
    return re.fullmatch(r"(?:plan-)?[0-9]+", text.strip()) is not None


def task_id(text: str) -> str:
    """The task that a text names, such as `ws-017`, `ws-17` or `PROJ-12`; empty if it names none."""
    said = text.strip()
    if own := OWN_TASK.fullmatch(said):
        return f"ws-{int(own['number']):03}"
    return said if TASK.fullmatch(said) and not NUMBER.fullmatch(said) else ""


def slug(title: str) -> str:
    """A title as part of a file name."""
    plain = "".join(
        letter for letter in unicodedata.normalize("NFKD", title) if not unicodedata.combining(letter)
    )
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")[:MAX_SLUG].rstrip("-") or "plan"


def parse(text: str) -> PlanDocument:
    """Read a plan file's header."""
    header = list(_header(text))
    lines = enumerate((line.text.strip("\ufeff \t") for line in header), 1)
    number, shown = next(((number, said) for number, said in lines if said), (1, ""))
    title = TITLE.fullmatch(shown)
    if not title or not title["title"]:
        raise InvalidDocument(f"line {number}: expected `# Plan: <title>`, found `{shown[:60]}`")
    identity, status, task = (_field(text, key) for key in ("ID", "Status", "Task"))
    if identity is None:
        raise InvalidDocument(f"line {len(header) + 1}: the header ends without an `**ID:**` line")
    if status is None:
        raise InvalidDocument(f"line {len(header) + 1}: the header ends without a `**Status:**` line")
    if status.value not in PlanStatus.__members__:
        raise InvalidDocument(
            f"line {status.line}: `{status.value[:60]}` is not a status",
            hint=f"one of {', '.join(PlanStatus)}",
        )
    if not NUMBER.fullmatch(identity.value):
        raise InvalidDocument(f"line {identity.line}: `{identity.value[:60]}` is not a plan id")
    return PlanDocument(
        id=items.parse(identity.value, Kind.PLAN),
        title=title["title"],
        status=PlanStatus(status.value),
        task=task.value if task else "",
    )


class _Field(msgspec.Struct, frozen=True, kw_only=True):
    """A header field: its value, its line number, and where the value lies in the document."""

    value: str
    line: int
    start: int


def _header(text: str) -> Iterator[markdown.Line]:
    """The lines before the first rule or section."""
    for line in markdown.lines(text):
        if markdown.heading(line) is not None or (not line.fenced and markdown.is_rule(line.text)):
            return
        yield line


def _field(text: str, key: str) -> _Field | None:
    for number, line in enumerate(_header(text), 1):
        found = None if line.fenced else FIELD.fullmatch(line.text)
        if found and found["key"] == key:
            return _Field(value=found["value"], line=number, start=line.start + found.start("value"))
    return None


def declared_parallel(text: str) -> bool | None:
    """Whether the plan's header says that its phases may run side by side; None if it says nothing."""
    field = _field(text, "Parallel")
    if field is None or not field.value:
        return None
    if field.value.lower() not in YES_OR_NO:
        raise InvalidDocument(
            f"line {field.line}: `**Parallel:** {field.value[:60]}` is neither yes nor no",
            hint="write `**Parallel:** yes` or `**Parallel:** no`, or leave the line out",
        )
    return YES_OR_NO[field.value.lower()]


def drafted_body(answer: str) -> str:
    """The plan in a drafter's answer, from its `# Plan:` title on; refuses what is no plan."""
    answer = answer.removeprefix("\ufeff")
    start = DRAFT_START.search(answer.replace("\r", "\n"), 0, MAX_LEAD + len("# Plan:"))
    if not start:
        raise InvalidDocument(f"the draft does not begin with `# Plan:` in its first {MAX_LEAD} characters")
    drafted = _unwrapped(answer[start.start() :], markdown.open_fence(answer[: start.start()])).strip()
    if not drafted_title(drafted):
        raise InvalidDocument("the draft has no title after `# Plan:`")
    if token := TEMPLATE_TOKEN.search(drafted):
        raise InvalidDocument(f"the draft still holds the template token `{token[0]}`")
    if markdown.open_fence(drafted):
        raise InvalidDocument("the draft opens a code fence and never closes it")
    return drafted + "\n"


def template_echo(drafted: str) -> str:
    """Why a draft is the template given back and no plan; empty if it is one."""
    if token := TEMPLATE_TOKEN.search(drafted):
        return f"the draft still holds the template token `{token[0]}`"
    for line in _header(drafted):
        found = FIELD.fullmatch(line.text)
        if found and found["value"].strip("`_* ").lower() == "(system)":
            return f"the draft still holds the template value `{found[0].strip()}`"
    said = " ".join(drafted.lower().replace("\u2019", "'").split())
    for phrase in PLACEHOLDERS:
        if phrase in said:
            return f"the draft still holds the placeholder “{phrase}”"
    examples = [phrase for phrase in EXAMPLES if phrase in said]
    if len(examples) >= 2:
        return f"the draft still holds examples of the template: “{examples[0]}” and “{examples[1]}”"
    return ""


def _unwrapped(drafted: str, wrapper: str) -> str:
    """The draft without the code fence that some agents put around the whole answer."""
    if not wrapper:
        return drafted
    closing = [line for line in markdown.raw_lines(drafted) if re.fullmatch(rf"{wrapper}+[ \t]*", line.text)]
    if not closing:
        raise InvalidDocument("the draft opens a code fence and never closes it")
    return drafted[: closing[-1].start]


def drafted_title(drafted: str) -> str:
    """The title a draft gives itself."""
    first = next((line.text for line in markdown.raw_lines(drafted)), "")
    found = TITLE.fullmatch(first)
    return found["title"] if found else ""


def render_new(
    *,
    plan: str,
    title: str,
    created: str,
    project: str,
    request: str,
    body: str,
    task: str = "",
    context: str = "",
    source: str = "",
) -> str:
    """A whole plan file from a draft, with what was given along with the request."""
    status = PlanStatus.DRAFT
    fields = {"ID": plan, "Task": task, "Created": created, "Status": status, "Project": project}
    header = [f"**{key}:** {_one_line(value)}" for key, value in fields.items() if value]
    asked = [f"## {REQUEST}\n\n{markdown.quoted(request)}"] if request.strip() else []
    parts = [
        f"# Plan: {_one_line(title)}",
        "\n".join(header),
        "---",
        *asked,
        _content(drafted_body(body), "\n", with_context=not context.strip()),
        *context_section(context, source),
        "---",
        f"## {AUDIT_LOG}",
        "---",
        f"## {NOTES}",
    ]
    return "\n\n".join(parts) + "\n"


def _one_line(value: str) -> str:
    return " ".join(value.split())


def context_section(context: str, source: str = "") -> list[str]:
    """The section that holds what was given with a request: quoted, so that it stays what was given."""
    if not context.strip():
        return []
    where = f", from {_one_line(source)}" if source.strip() else ""
    return [f"## {CONTEXT}\n\n{GIVEN}{where}:\n\n{markdown.quoted(context)}"]


def with_request(text: str, request: str) -> str:
    """The plan with what was asked for, before its first section."""
    newline, found = markdown.newline_of(text), markdown.sections(text)
    at = found[0].start if found else len(text)
    asked = markdown.in_newlines(f"## {REQUEST}\n\n{markdown.quoted(request)}", newline)
    return (newline * 2).join([text[:at].rstrip(), asked, text[at:]])


def with_context(text: str, context: str, source: str = "") -> str:
    """The plan with what was given with its request, before its audit log."""
    newline, log = markdown.newline_of(text), markdown.find(text, AUDIT_LOG)
    before = [each for each in markdown.sections(text) if not log or each.end <= log.start]
    end = log.start if log else len(text)
    at = markdown.content_end(text, before[-1]) if before else end
    rest = text[at:].lstrip("\r\n")
    added = [markdown.in_newlines(each, newline) for each in context_section(context, source)]
    return (newline * 2).join([text[:at].rstrip(), *added, rest]).rstrip("\r\n") + newline


def _content(drafted: str, newline: str, *, with_context: bool = True) -> str:
    """What a draft says, without the title, header lines and sections that are ours to write."""
    ours = OWNED if with_context else OWNED | {CONTEXT.lower()}
    found = markdown.sections(drafted)
    opening = drafted[: found[0].start] if found else drafted
    kept = [
        line.text
        for line in list(markdown.lines(opening))[1:]
        if line.fenced or not (FIELD.fullmatch(line.text) or markdown.is_rule(line.text))
    ]
    parts = ["\n".join(kept).strip()]
    parts += [
        drafted[each.start : markdown.content_end(drafted, each)]
        for each in found
        if each.name.lower() not in ours
    ]
    return markdown.in_newlines("\n\n".join(filter(None, parts)), newline)


def with_body(text: str, drafted: str) -> str:
    """The plan with a revised body; header, request, what was given with it, audit log and notes stay."""
    newline = markdown.newline_of(text)
    given = [each for each in _owned(text, CONTEXT) if is_given(each)]
    header = list(_header(text))
    parts = [
        text[: header[-1].end if header else 0].rstrip(),
        "---",
        *_owned(text, REQUEST),
        _content(drafted_body(drafted), newline, with_context=not given),
        *given,
        "---",
        *(_owned(text, AUDIT_LOG) or [f"## {AUDIT_LOG}"]),
        "---",
        *(_owned(text, NOTES) or [f"## {NOTES}"]),
    ]
    return (newline * 2).join(parts) + newline


def given(text: str) -> str:
    """What was given with the request, as the plan quotes it."""
    return "\n\n".join(each for each in _owned(text, CONTEXT) if is_given(each))


def is_given(section: str) -> bool:
    """Whether a section of context is one that we wrote."""
    first = [line.text for line in markdown.raw_lines(section) if line.text.strip()][1:2]
    return any(line.startswith(GIVEN) for line in first)


def _owned(text: str, name: str) -> list[str]:
    """Our sections of that name as they stand; a person may have made a second one."""
    return [
        text[each.start : markdown.content_end(text, each)]
        for each in markdown.sections(text)
        if each.name.lower() == name.lower()
    ]


def with_status(text: str, status: PlanStatus) -> str:
    """The plan with another status and nothing else changed."""
    field = _field(text, "Status")
    if field is None:
        raise InvalidDocument("the plan's header has no `**Status:**` line")
    before = text[: field.start]
    space = "" if before.endswith((" ", "\t")) else " "
    return before + space + status + text[field.start + len(field.value) :]


def with_audit_round(text: str, number: int, date: str, notes: str, closing: str = "") -> str:
    """
    The plan with one more entry in its audit log. The notes are quoted, so they stay notes; what it closes
    with is ours and stands for itself.
    """
    entry = [f"### Review {number} — {date}", "**Status:** COMPLETE", markdown.quoted(notes), closing]
    return markdown.append(text, AUDIT_LOG, "\n\n".join(filter(None, entry)))


def next_round(text: str) -> int:
    """The number of the next entry in the audit log."""
    log = markdown.body(text, AUDIT_LOG) or ""
    found = (REVIEW.fullmatch(line.text) for line in markdown.lines(log) if not line.fenced)
    return max((int(each["number"]) for each in found if each), default=0) + 1


def content_hash(text: str) -> str:
    """What an approval is bound to: changed by every edit but status, audit log and notes."""
    return hashlib.sha256(approvable(text).encode("utf-8", "surrogatepass")).hexdigest()


def approvable(text: str) -> str:
    """The part of a plan that an approval covers, and that agents get to see."""
    text = markdown.in_newlines(text, "\n")
    status = _field(text, "Status")
    if status and status.value in PlanStatus.__members__:
        text = text[: status.start].rstrip(" \t") + text[status.start + len(status.value) :].lstrip(" \t")
    # Only the first section of each name is ours; a second one is somebody's edit.
    for name in (AUDIT_LOG, NOTES):
        if section := markdown.find(text, name):
            heading = text[section.start : section.body_start].rstrip("\n")
            text = text[: section.start] + heading + "\n" + text[section.end :]
    return text


def heartbeat(text: str) -> float | None:
    """
    After how many seconds of silence the plan wants a sign of life, 0 for never, None if it does not say.

    `**Heartbeat:**` is a number of milliseconds, or one with its unit, such as `45s`, `2m` or `1h`.
    """
    field = _field(text, "Heartbeat")
    if field is None or not field.value:
        return None
    value = field.value.strip("` ").lower()
    if value in SILENT:
        return 0.0
    found = BEAT.fullmatch(value)
    if not found:
        raise InvalidDocument(
            f"line {field.line}: `{field.value[:60]}` is no heartbeat",
            hint="write it like `45s`, `2m`, `1h`, `45000` (milliseconds) or `off`",
        )
    seconds = float(found["number"]) * UNITS[found["unit"] or "ms"]
    return max(seconds, LEAST_BEAT) if seconds else 0.0


def structural_faults(text: str) -> tuple[Finding, ...]:
    """Those of the findings for which a plan does not go on: in its form, also `medium` ones count."""
    return tuple(
        finding
        for finding in structural_findings(text)
        if finding.severity in (Severity.BLOCKING, Severity.MEDIUM)
    )


def header_faults(text: str, plan: str) -> tuple[str, ...]:
    """Why a file cannot be known as the file of this plan; nothing if it can."""
    try:
        found = parse(text).id
    except InvalidDocument as error:
        return (error.message,)
    return () if found == plan else (f"its header says that it is `{found}`",)


def unwritten(text: str) -> tuple[str, ...]:
    """Sections without which there is nothing to carry out, and into which nobody has written."""
    found = {name: body for name in ESSENTIAL if (body := markdown.body(text, name)) is not None}
    said = {name: markdown.without_rules(body).strip() for name, body in found.items()}
    empty = [name for name, body in said.items() if body[:1] in ("", "(") or ITALIC.fullmatch(body)]
    return tuple(name for name in empty if name != "Changes" or not _names_a_file(text))


def resuming_faults(text: str) -> tuple[str, ...]:
    """Why the audit of a plan cannot go on with the file as it is, each in words; nothing if it can."""
    try:
        parse(text)
    except InvalidDocument as error:
        return (error.message,)
    faults = [finding.title for finding in structural_faults(text)]
    if markdown.find(text, AUDIT_LOG) is None:
        faults.append(f"the section `## {AUDIT_LOG}` is missing")
    return tuple(faults)


def structural_findings(text: str) -> tuple[Finding, ...]:
    """What is wrong with a plan's form, found without any agent."""
    findings = [finding for name in REQUIRED for finding in _section_findings(text, name)]
    changes = markdown.without_rules(markdown.body(text, "Changes") or "").strip()
    if EXAMPLE_PATH.search(changes):
        findings.append(_medium("Changes", "holds `path/to/` example paths instead of real ones"))
    if not is_placeholder(changes) and not _names_a_file(text):
        findings.append(_medium("Changes", "names no file: write each path in backticks"))
    findings += _repeated(text)
    status = _field(text, "Status")
    if status and status.value == PlanStatus.CLOSED:
        findings.append(
            Finding(severity=Severity.MINOR, title="the plan is closed", location=f"line {status.line}")
        )
    return tuple(findings)


def _section_findings(text: str, name: str) -> Iterator[Finding]:
    body = markdown.body(text, name)
    if body is None:
        yield Finding(
            severity=Severity.BLOCKING, title=f"the section `## {name}` is missing", location=f"## {name}"
        )
    elif is_placeholder(markdown.without_rules(body).strip()):
        yield _medium(name, "is empty or only a placeholder")


def _repeated(text: str) -> Iterator[Finding]:
    """Sections that are read and that are there more than once."""
    names = [section.name.lower() for section in markdown.sections(text)]
    for name in (*REQUIRED, "Change Manifest"):
        if (times := names.count(name.lower())) > 1:
            title = f"`## {name}` is there {times} times, and only the first counts"
            yield Finding(severity=Severity.MINOR, title=title, location=f"## {name}")


def _medium(name: str, problem: str) -> Finding:
    return Finding(severity=Severity.MEDIUM, title=f"`## {name}` {problem}", location=f"## {name}")


def is_placeholder(said: str) -> bool:
    """Whether a section says nothing of its own."""
    said = said.strip()
    return len(said) < MIN_SECTION or said.startswith("(") or ITALIC.fullmatch(said) is not None


def _names_a_file(text: str) -> bool:
    changes = markdown.body(text, "Changes") or ""
    manifest = markdown.body(text, "Change Manifest") or ""
    shown = (line.text for line in markdown.lines(changes) if not line.fenced)
    if any(BACKTICKED_FILE.search(line) for line in shown) or MANIFEST_FILE.search(manifest):
        return True
    return bool(changed_files.manifest(text) or changed_files.entries(changes))
