"""
SARIF 2.1.0, the format in which tools tell code hosts and editors what they found.

The objects of the format, as far as Planforge writes and reads them: what a scan writes, what a review can be
written as, and what a tool that reviews hands in. Each has a default for all that may be missing. `read`
takes a document or says what is wrong with it; an object that says a thing twice says nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from urllib.parse import quote, unquote

import msgspec

from planforge.rules.findings import Severity

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
VERSION = "2.1.0"
BASE = "%SRCROOT%"
LEVELS = {
    Severity.BLOCKING: "error",
    Severity.MEDIUM: "warning",
    Severity.MINOR: "note",
    Severity.SUGGESTION: "note",
}
MAX_BYTES = 20_000_000
"""More than this is not read."""


class InvalidSarif(ValueError):
    """What was handed in is not SARIF, or not one that can be read."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An object of the format."""


class Text(_Part, frozen=True, kw_only=True):
    """Words, or the name under which a rule has them."""

    text: str = ""
    markdown: str = ""
    id: str = ""


class Configuration(_Part, frozen=True, kw_only=True):
    """How bad breaking a rule is, unless a result says otherwise. One that does not say warns."""

    level: str = ""


class Tags(_Part, frozen=True, kw_only=True):
    """What else a rule is known as."""

    tags: tuple[str, ...] = ()


class Descriptor(_Part, frozen=True, kw_only=True):
    """A rule."""

    id: str = ""
    short_description: Text | None = None
    help: Text | None = None
    default_configuration: Configuration | None = None
    message_strings: dict[str, Text] = {}
    properties: Tags | None = None


class Driver(_Part, frozen=True, kw_only=True):
    """The program, or a part of it that brings rules."""

    name: str = ""
    version: str = ""
    rules: tuple[Descriptor, ...] = ()


class Tool(_Part, frozen=True, kw_only=True):
    """What made the results."""

    driver: Driver = Driver()
    extensions: tuple[Driver, ...] = ()


class Artifact(_Part, frozen=True, kw_only=True):
    """A file."""

    uri: str = ""
    uri_base_id: str = ""


class Region(_Part, frozen=True, kw_only=True):
    """A place in a file."""

    start_line: int = 0
    start_column: int = 0
    end_line: int = 0
    snippet: Text | None = None


class Physical(_Part, frozen=True, kw_only=True):
    """A file and a place in it."""

    artifact_location: Artifact = Artifact()
    region: Region | None = None


class Logical(_Part, frozen=True, kw_only=True):
    """A place that is not in a file, or not at a line."""

    name: str = ""
    fully_qualified_name: str = ""


class Location(_Part, frozen=True, kw_only=True):
    """Where something is."""

    physical_location: Physical | None = None
    logical_locations: tuple[Logical, ...] = ()


class Suppression(_Part, frozen=True, kw_only=True):
    """That a result is waived, and why."""

    kind: str = ""
    justification: str = ""
    status: str = "accepted"


class Override(_Part, frozen=True, kw_only=True):
    """A rule that was set to another level for one run."""

    descriptor: Descriptor = Descriptor()
    configuration: Configuration = Configuration()


class Notification(_Part, frozen=True, kw_only=True):
    """What a tool has to say about itself."""

    level: str = ""
    message: Text = Text()


class Invocation(_Part, frozen=True, kw_only=True):
    """How a tool was run. The format wants it to say whether that went well."""

    execution_successful: bool | None = None
    exit_signal_name: str = ""
    process_start_failure_message: str = ""
    tool_execution_notifications: tuple[Notification, ...] = ()
    tool_configuration_notifications: tuple[Notification, ...] = ()
    rule_configuration_overrides: tuple[Override, ...] = ()


class Fix(_Part, frozen=True, kw_only=True):
    """What a tool would change."""

    description: Text = Text()


class Ours(_Part, frozen=True, kw_only=True):
    """What the format has no place for."""

    severity: str = ""
    evidence: str = ""
    recommendation: str = ""


class Properties(_Part, frozen=True, kw_only=True):
    """What a tool adds to a result."""

    planforge: Ours | None = None


class Result(_Part, frozen=True, kw_only=True):
    """One thing that was found."""

    rule_id: str = ""
    rule_index: int = -1
    rule: Descriptor = Descriptor()
    kind: str = "fail"
    level: str = ""
    message: Text = Text()
    locations: tuple[Location, ...] = ()
    partial_fingerprints: dict[str, str] = {}
    baseline_state: str = ""
    suppressions: tuple[Suppression, ...] = ()
    fixes: tuple[Fix, ...] = ()
    properties: Properties = Properties()

    @property
    def is_open(self) -> bool:
        """Whether it is something to be dealt with: not passed, not gone, and not waived without dissent."""
        waived = bool(self.suppressions) and all(each.status == "accepted" for each in self.suppressions)
        return self.kind in ("fail", "open", "review") and self.baseline_state != "absent" and not waived


class Run(_Part, frozen=True, kw_only=True):
    """What one tool did at one time."""

    tool: Tool = Tool()
    invocations: tuple[Invocation, ...] = ()
    results: tuple[Result, ...] | None = None
    """None if it did not look; empty if it looked and found nothing."""
    column_kind: str = ""
    external_property_file_references: dict[str, object] = {}

    @property
    def fault(self) -> str:
        """Why the results are incomplete; empty if nothing says so."""
        if self.results is None:
            return "the tool did not look"
        if "results" in self.external_property_file_references:
            return "the results are in another file"
        return next(filter(None, map(_fault, self.invocations)), "")


def _fault(call: Invocation) -> str:
    if not call.execution_successful or call.exit_signal_name or call.process_start_failure_message:
        return "the tool does not say that it ran to its end"
    notes = (*call.tool_execution_notifications, *call.tool_configuration_notifications)
    trouble = next((note for note in notes if note.level == "error"), None)
    return f"the tool had trouble: {trouble.message.text[:200]}" if trouble else ""


class Log(msgspec.Struct, frozen=True, kw_only=True):
    """The document."""

    schema: str = msgspec.field(name="$schema", default="")
    version: str
    runs: tuple[Run, ...]


def of_planforge(
    version: str,
    rules: Iterable[Descriptor],
    results: Iterable[Result],
    invocations: tuple[Invocation, ...] = (),
) -> Log:
    """A document with what Planforge found."""
    driver = Driver(name="planforge", version=version, rules=tuple(rules))
    run = Run(
        tool=Tool(driver=driver),
        invocations=invocations,
        results=tuple(results),
        column_kind="unicodeCodePoints",
    )
    return Log(schema=SCHEMA, version=VERSION, runs=(run,))


def read(content: str | bytes) -> Log:
    """Read a document, or say what is wrong with it."""
    if len(content) > MAX_BYTES:
        raise InvalidSarif(f"it is larger than {MAX_BYTES // 1_000_000} MB")
    try:
        text = content if isinstance(content, str) else content.decode("utf-8-sig")
        value = json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_once)
        found = msgspec.convert(value, Log)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        raise InvalidSarif(str(error)[:200] or "it is nested too deeply") from error
    if not found.version.startswith("2.1."):
        raise InvalidSarif(f"its version is `{found.version[:20]}`, not {VERSION}")
    return found


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object that says a thing twice says nothing; what is null is not there."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key is given twice")
    return {key: value for key, value in pairs if value is not None}


PLACE = re.compile(
    r"(?P<path>[^\s:#]+)(?::(?P<line>[1-9]\d{0,8})(?:-(?P<end>\d{1,9})|:(?P<column>[1-9]\d{0,8}))?)?"
)


def artifact(path: str) -> Artifact:
    """A file of the project, or one that is elsewhere."""
    absolute = path.startswith("/")
    return Artifact(uri=("file://" if absolute else "") + quote(path), uri_base_id="" if absolute else BASE)


def placed(location: str, *, is_file: bool) -> tuple[Location, ...]:
    """Where a finding is: in a file, if it names one, else wherever it says."""
    if not location:
        return ()
    found = PLACE.fullmatch(location) if is_file else None
    if found is None:
        return (Location(logical_locations=(Logical(fully_qualified_name=location),)),)
    line, column, end = (int(found[name] or 0) for name in ("line", "column", "end"))
    region = Region(start_line=line, start_column=column, end_line=end) if line else None
    return (Location(physical_location=Physical(artifact_location=artifact(found["path"]), region=region)),)


def place(locations: tuple[Location, ...]) -> str:
    """The first place that is named, as people write it: a file, with its line if that is known."""
    for each in locations:
        physical = each.physical_location
        if physical and physical.artifact_location.uri:
            path = unquote(physical.artifact_location.uri.removeprefix("file://"))
            return path + _line(physical.region or Region())
        for logical in each.logical_locations:
            if name := logical.fully_qualified_name or logical.name:
                return name
    return ""


def _line(region: Region) -> str:
    if region.start_line < 1:
        return ""
    if region.start_column > 0:
        return f":{region.start_line}:{region.start_column}"
    return f":{region.start_line}" + (f"-{region.end_line}" if region.end_line > region.start_line else "")
