"""
The grammar of gates.

    artifact PATH [min=BYTES]          the file is there and at least that large
    require FIELD == VALUE             the record says so; also `!=` and `in [A, B]`
    forbid FIELD == VALUE              the record does not say so
    after STAGE = VERDICT              an earlier stage came to that verdict

Paths may hold `{engineering}`, `{sprint}`, `{task}`, `{bug}` and `{plan}`. `#` begins a comment. In
Markdown a gate is a fence labelled `gates phase=NAME`, what a stage must leave behind one labelled
`outputs phase=NAME`, which has only `artifact` and `require`. Anything else is an error that names its
line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import TypeAlias

import msgspec

from planforge.errors import InvalidInput

MAX_BYTES = 1_000_000
VERDICTS = ("approved", "revision", "n/a")
PLACES = ("engineering", "sprint", "task", "bug", "plan")


class InvalidGate(InvalidInput):
    """The definition of a gate cannot be read."""


class Op(StrEnum):
    """How a field is compared."""

    IS = "=="
    IS_NOT = "!="
    IN = "in"


class Artifact(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A file that must be there."""

    path: str
    least: int = 1
    """How many bytes it must have; an empty file is none."""

    def __str__(self) -> str:
        return f"artifact {self.path} min={self.least}"


class Predicate(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison of one field of a record."""

    field: str
    op: Op
    values: tuple[str, ...]

    def holds(self, value: str | None) -> bool:
        """Whether it holds for a value, which may be none at all."""
        found = value is not None and value in self.values
        return not found if self.op is Op.IS_NOT else found

    def __str__(self) -> str:
        values = f"[{', '.join(self.values)}]" if self.op is Op.IN else self.values[0]
        return f"{self.field} {self.op} {values}"


class Require(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Something that a record must say."""

    predicate: Predicate

    def __str__(self) -> str:
        return f"require {self.predicate}"


class Forbid(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Something that a record must not say."""

    predicate: Predicate

    def __str__(self) -> str:
        return f"forbid {self.predicate}"


class After(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A verdict that another stage must have come to."""

    stage: str
    verdict: str

    def __str__(self) -> str:
        return f"after {self.stage} = {self.verdict}"


Directive: TypeAlias = Artifact | Require | Forbid | After


class Kind(StrEnum):
    """When a block is looked at."""

    GATES = "gates"
    OUTPUTS = "outputs"


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """All directives of one stage, of one kind."""

    stage: str
    kind: Kind = Kind.GATES
    directives: tuple[Directive, ...] = ()


NAME = re.compile(r"[A-Za-z][\w-]*")
FIELD = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
VALUE = re.compile(r"[^\s,\[\]#]+(?: [^\s,\[\]#]+)*")
PLACEHOLDER = re.compile(r"\{(\w*)\}")
ARTIFACT = re.compile(r"artifact\s+(?P<path>\S+)(?:\s+min=(?P<least>\S+))?")
COMPARISON = re.compile(
    r"(?P<word>require|forbid)\s+(?P<field>\S+)\s+"
    r"(?:(?P<op>==|!=)\s*(?P<value>.+)|in\s*\[(?P<values>[^\]]*)\])"
)
AFTER = re.compile(r"after\s+(?P<stage>\S+)\s*=\s*(?P<verdict>.+)")


def parse(text: str, stage: str, kind: Kind = Kind.GATES) -> Gate:
    """Read the directives of one stage."""
    return block(stage, kind, enumerate(text.splitlines(), start=1))


def block(stage: str, kind: Kind, lines: Iterable[tuple[int, str]]) -> Gate:
    """Read numbered lines as the directives of one stage."""
    if not NAME.fullmatch(stage):
        raise InvalidGate(f"`{stage}` cannot be the name of a stage")
    directives = []
    for number, line in lines:
        if said := _without_comment(line):
            try:
                directives.append(_directive(said, kind))
            except InvalidGate as error:
                where = f"line {number} of the {kind.value} of `{stage}`"
                raise InvalidGate(f"{where}: {error.message}", error.hint) from error
    return Gate(stage=stage, kind=kind, directives=tuple(directives))


def _without_comment(line: str) -> str:
    """A `#` begins a comment at the start of a line or after a space, so that a path may hold one."""
    return re.split(r"(?:^|\s)#", line, maxsplit=1)[0].strip()


def _directive(said: str, kind: Kind) -> Directive:
    word = said.split(maxsplit=1)[0]
    if kind is Kind.OUTPUTS and word not in ("artifact", "require"):
        raise InvalidGate(f"`{word}` says nothing about outputs", "outputs have `artifact` and `require`")
    if found := ARTIFACT.fullmatch(said):
        return Artifact(path=_path(found["path"]), least=_bytes(found["least"]))
    if found := COMPARISON.fullmatch(said):
        predicate = _predicate(found["field"], found["op"] or "in", found["value"], found["values"])
        return Require(predicate=predicate) if word == "require" else Forbid(predicate=predicate)
    if found := AFTER.fullmatch(said):
        return _after(found["stage"], found["verdict"].strip())
    known = ("artifact", "require", "forbid", "after")
    if word not in known:
        raise InvalidGate(f"`{word}` is not a directive", f"known are {', '.join(known)}")
    raise InvalidGate(f"`{said}` is not how `{word}` is written", FORMS[word])


FORMS = {
    "artifact": "such as `artifact {task}/PLAN.md min=200`",
    "require": "such as `require task.status == planned` or `require task.status in [planned, draft]`",
    "forbid": "such as `forbid task.status == escalated`",
    "after": "such as `after review-plan = approved`",
}


def _path(path: str) -> str:
    for name in PLACEHOLDER.findall(path):
        if name not in PLACES:
            raise InvalidGate(f"`{{{name}}}` stands for nothing", f"known are {', '.join(PLACES)}")
    bare = PLACEHOLDER.sub("x", path)
    if "{" in bare or "}" in bare:
        raise InvalidGate(f"`{path}` has a brace that is not closed")
    if bare.startswith("/") or ".." in bare.split("/") or "\\" in bare or "\0" in bare:
        raise InvalidGate(f"`{path}` leads out of the project")
    return path


def _bytes(said: str | None) -> int:
    if said is None:
        return 1
    if not said.isascii() or not said.isdigit() or len(said) > 12:
        raise InvalidGate(f"`min={said}` is not a number of bytes")
    return max(int(said), 1)


def _predicate(field: str, op: str, value: str | None, values: str | None) -> Predicate:
    if not FIELD.fullmatch(field):
        raise InvalidGate(f"`{field}` is not a field", "a field is a dotted name, such as `task.status`")
    given = [each.strip() for each in values.split(",")] if values is not None else [(value or "").strip()]
    for each in given:
        if not VALUE.fullmatch(each):
            raise InvalidGate(f"`{each}` is not a value")
    return Predicate(field=field, op=Op(op), values=tuple(given))


def _after(stage: str, verdict: str) -> After:
    if not NAME.fullmatch(stage):
        raise InvalidGate(f"`{stage}` cannot be the name of a stage")
    if verdict not in VERDICTS:
        raise InvalidGate(f"`{verdict}` is not a verdict", f"known are {', '.join(VERDICTS)}")
    return After(stage=stage, verdict=verdict)


OPENING = re.compile(r"[ \t]{0,3}(?P<fence>`{3,}|~{3,})[ \t]*(?P<label>[^`]*?)[ \t]*")
LABEL = re.compile(r"(?P<kind>gates|outputs)[ \t]+phase=(?P<stage>\S+)")


def in_markdown(text: str) -> tuple[Gate, ...]:
    """Every gate that a document holds, in order. A stage with two of a kind is an error."""
    if len(text) > MAX_BYTES:
        raise InvalidGate(f"a document of more than {MAX_BYTES} characters is not read for gates")
    gates: dict[tuple[Kind, str], Gate] = {}
    for label, lines in _fences(text):
        found = LABEL.fullmatch(label)
        if not found:
            if _labels_a_gate(label):
                raise InvalidGate(f"`{label}` is not how a gate is labelled", "such as `gates phase=plan`")
            continue
        kind, stage = Kind(found["kind"]), found["stage"]
        if (kind, stage) in gates:
            raise InvalidGate(f"`{stage}` has {kind.value} twice")
        gates[kind, stage] = block(stage, kind, lines)
    return tuple(gates.values())


def _fences(text: str) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Every code fence with its label and its numbered lines."""
    fence, label, lines = "", "", list[tuple[int, str]]()
    for number, line in enumerate(text.splitlines(), start=1):
        found = OPENING.fullmatch(line)
        if not fence and found:
            fence, label, lines = found["fence"], found["label"], []
        elif fence and found and found["fence"].startswith(fence) and not found["label"]:
            yield label, lines
            fence = ""
        elif fence:
            lines.append((number, line))
    if fence and (_labels_a_gate(label) or any(_labels_a_gate(_label(line)) for _, line in lines)):
        raise InvalidGate(f"the fence `{label}` is never closed")


def _label(line: str) -> str:
    found = OPENING.fullmatch(line)
    return found["label"] if found else ""


def _labels_a_gate(label: str) -> bool:
    return label.split(maxsplit=1)[:1] in (["gates"], ["outputs"])
