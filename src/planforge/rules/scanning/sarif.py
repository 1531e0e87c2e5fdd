"""Issues as SARIF 2.1.0, the format that code hosts and editors read."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from urllib.parse import quote

import msgspec

from planforge.rules.findings import Severity
from planforge.rules.scanning.issues import RULES, Issue, Rule

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {
    Severity.BLOCKING: "error",
    Severity.MEDIUM: "warning",
    Severity.MINOR: "note",
    Severity.SUGGESTION: "note",
}
BASE = "%SRCROOT%"


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An object of the format."""


class Text(_Part, frozen=True, kw_only=True):
    """Words."""

    text: str


class Configuration(_Part, frozen=True, kw_only=True):
    """How bad breaking a rule is, unless a result says otherwise."""

    level: str


class Tags(_Part, frozen=True, kw_only=True):
    """What else a rule is known as."""

    tags: tuple[str, ...] = ()


class Descriptor(_Part, frozen=True, kw_only=True):
    """A rule."""

    id: str
    short_description: Text
    help: Text
    default_configuration: Configuration
    properties: Tags


class Driver(_Part, frozen=True, kw_only=True):
    """The program."""

    name: str
    version: str
    rules: tuple[Descriptor, ...]


class Tool(_Part, frozen=True, kw_only=True):
    """What made the results."""

    driver: Driver


class Artifact(_Part, frozen=True, kw_only=True):
    """A file."""

    uri: str
    uri_base_id: str = ""


class Region(_Part, frozen=True, kw_only=True):
    """A place in a file."""

    start_line: int
    start_column: int
    snippet: Text


class Physical(_Part, frozen=True, kw_only=True):
    """A file and a place in it."""

    artifact_location: Artifact
    region: Region


class Location(_Part, frozen=True, kw_only=True):
    """Where something is."""

    physical_location: Physical


class Suppression(_Part, frozen=True, kw_only=True):
    """That a result is waived, and why."""

    kind: str
    justification: str


class Result(_Part, frozen=True, kw_only=True):
    """One issue."""

    rule_id: str
    rule_index: int
    level: str
    message: Text
    locations: tuple[Location, ...]
    partial_fingerprints: dict[str, str]
    suppressions: tuple[Suppression, ...] = ()


class Run(_Part, frozen=True, kw_only=True):
    """One scan."""

    tool: Tool
    results: tuple[Result, ...]
    column_kind: str = msgspec.field(name="columnKind")


class Log(msgspec.Struct, frozen=True, kw_only=True):
    """The document."""

    schema: str = msgspec.field(name="$schema")
    version: str
    runs: tuple[Run, ...]


def log(issues: Sequence[Issue], version: str) -> Log:
    """A document with all issues; those that are waived are in it, as suppressed."""
    names = list(RULES)
    driver = Driver(name="planforge", version=version, rules=tuple(map(_rule, RULES.values())))
    results = tuple(_result(issue, names.index(issue.rule)) for issue in issues)
    run = Run(tool=Tool(driver=driver), results=results, column_kind="unicodeCodePoints")
    return Log(schema=SCHEMA, version="2.1.0", runs=(run,))


def _rule(rule: Rule) -> Descriptor:
    return Descriptor(
        id=rule.name,
        short_description=Text(text=rule.summary),
        help=Text(text=f"{rule.summary} Instead: {rule.instead}."),
        default_configuration=Configuration(level=LEVELS[rule.severity]),
        properties=Tags(tags=("tests", rule.criterion) if rule.criterion else ("tests",)),
    )


def _result(issue: Issue, index: int) -> Result:
    mark = hashlib.sha256("\0".join((issue.rule, issue.path, issue.snippet)).encode()).hexdigest()
    absolute = issue.path.startswith("/")
    artifact = Artifact(
        uri=("file://" if absolute else "") + quote(issue.path), uri_base_id="" if absolute else BASE
    )
    region = Region(start_line=issue.line, start_column=issue.column, snippet=Text(text=issue.snippet))
    return Result(
        rule_id=issue.rule,
        rule_index=index,
        level=LEVELS[issue.severity],
        message=Text(text=issue.message),
        locations=(Location(physical_location=Physical(artifact_location=artifact, region=region)),),
        partial_fingerprints={"planforge/v1": mark},
        suppressions=(Suppression(kind="external", justification=issue.waived),) if issue.waived else (),
    )
