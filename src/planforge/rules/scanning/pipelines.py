"""
What runs the checks of a project, and where a failing check does not fail the build.

Commands are found in scripts, in recipes of make, in `package.json`, in settings of tox and in
the files of CI services. Only a command that checks something matters: `rm -f x || true` is
nobody's loss, `pytest || true` is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from planforge.rules.scanning.commands import CHECK, TOOLS
from planforge.rules.scanning.issues import Issue
from planforge.rules.scanning.languages import Language, Role
from planforge.rules.scanning.lexing import blanked, tokens
from planforge.rules.scanning.source import Source

IGNORED = re.compile(
    r"\|\|[ \t]*(?P<what>true\b|:(?=[ \t;)\n]|$)|exit[ \t]+0\b|/bin/true\b|echo\b[^|&;\n]*(?=$|[;)\n]))",
    re.MULTILINE,
)
AFTER = re.compile(r";[ \t]*(?P<what>true|:|exit[ \t]+0)[ \t]*(?:$|\))", re.MULTILINE)
EXIT = re.compile(r"^[ \t]*exit[ \t]+0[ \t]*;?[ \t]*$", re.MULTILINE)
STRICT = re.compile(r"^[ \t]*set[ \t]+(?:-\w*e\w*|-o[ \t]+errexit)|^#!.*\bsh[ \t]+-\w*e", re.MULTILINE)
STRICT_OFF = re.compile(r"^[ \t]*set[ \t]+\+e\b", re.MULTILINE)
TARGET = re.compile(r"^(?P<names>[^\s:#=]+(?:[ \t]+[^\s:#=]+)*)[ \t]*::?(?!=)")
CONTINUES = re.compile(
    r"^[ \t]*(?:-[ \t]+)?(?P<key>continue-on-error|allow_failure|ignore_failure"
    r"|continueOnError)[ \t]*:[ \t]*(?P<value>true|yes)\b"
)
TURNED_OFF = re.compile(r"^[ \t]*(?:-[ \t]+)?if[ \t]*:[ \t]*(?:false|\$\{\{[ \t]*false[ \t]*\}\})[ \t]*$")
SCRIPT_NAME = re.compile(
    r"^(?:pre|post)?(?:test|check|lint|ci|verify|e2e|typecheck|type-check|validate)(?:[:\-].*)?$"
)
TOX_IGNORED = re.compile(rf"^(?:commands\s*=)?\s*-\s*{TOOLS}", re.MULTILINE)
TOX_OUTCOME = re.compile(r"^\s*ignore_(?:outcome|errors)\s*=\s*true", re.MULTILINE | re.IGNORECASE)


def issues(source: Source) -> Iterator[Issue]:
    """Checks whose failure is ignored."""
    if source.role is not Role.PIPELINE:
        return
    if source.language is Language.SHELL:
        yield from _in_script(source, 0, source.text, whole=True)
    elif source.language is Language.MAKE:
        yield from _in_recipes(source)
    elif source.language is Language.YAML:
        yield from _in_pipeline(source)
    elif source.path.endswith("package.json"):
        yield from _in_scripts(source)
    elif source.path.rpartition("/")[2] in ("tox.ini", "setup.cfg", "pyproject.toml"):
        yield from _in_tox(source)


def checks(text: str) -> list[str]:
    """The commands of a script that check something, in order."""
    return [" ".join(found["command"].split()) for found in CHECK.finditer(_joined(text))]


@lru_cache(64)
def _joined(text: str) -> str:
    """The code of a script; lines that go on with a backslash are one line of the same length."""
    code = blanked(text, tokens(text, Language.SHELL))
    return code.replace("\\\n", "  ")


def _in_script(source: Source, start: int, script: str, *, whole: bool = False) -> Iterator[Issue]:
    """What is wrong in a script that stands at `start` of the text."""
    code = _joined(script)
    found = list(CHECK.finditer(code))
    for pattern in (IGNORED, AFTER):
        for mask in pattern.finditer(code):
            command = _last_before(found, code, mask.start())
            if command:
                message = f"a failing `{command}` is ignored by `{mask[0].strip()}`"
                yield source.issue("masked-exit", start + mask.start(), message)
    if whole and found:
        yield from _exits_well(source, code, found)


def _last_before(found: list[re.Match[str]], code: str, at: int) -> str:
    """The check on the same line, before this place, that decides the exit code there."""
    line = code.rfind("\n", 0, at) + 1
    here = [item["command"] for item in found if line <= item.start("command") < at]
    between = code[line:at].rpartition("||")[0]
    return " ".join(here[-1].split()) if here and not between.strip() else ""


def _exits_well(source: Source, code: str, found: list[re.Match[str]]) -> Iterator[Issue]:
    """A last `exit 0` after a check, in a script that goes on after failures."""
    ends = [item for item in EXIT.finditer(code) if not code[item.end() :].strip()]
    strict = STRICT.search(source.text)
    off = STRICT_OFF.search(code)
    if not ends or (strict and not off):
        return
    before = [item for item in found if item.start() < ends[-1].start()]
    lines = code.split("\n")
    unconditional = [
        item for item in before if not lines[code.count("\n", 0, item.start("command"))][:1].isspace()
    ]
    if unconditional and not re.search(r"\$\?|\bexit[ \t]+(?:[1-9]|\$)|\|\|[ \t]*exit\b", code):
        at = ends[-1].start() + len(ends[-1][0]) - len(ends[-1][0].lstrip())
        command = " ".join(unconditional[-1]["command"].split())
        yield source.issue("masked-exit", at, f"`exit 0` hides how `{command}` ended")


def recipes(text: str) -> Iterator[tuple[str, str, int]]:
    """The recipes of a make file: the target, one command, and where it stands."""
    target, at = "", 0
    for line in text.split("\n"):
        if line[:1] in ("\t", " ") and target and line.strip():
            yield target, line, at
        elif found := TARGET.match(line):
            target = found["names"]
            inline = line.partition(";")[2]
            if inline.strip():
                yield target, inline, at + len(line) - len(inline)
        elif line.strip() and not line.startswith("#"):
            target = ""
        at += len(line) + 1


def _in_recipes(source: Source) -> Iterator[Issue]:
    for _, command, at in recipes(source.text):
        stripped = command.lstrip()
        prefix = re.match(r"[@+\-]*", stripped)
        marks = prefix[0] if prefix else ""
        found = checks(stripped[len(marks) :])
        if "-" in marks and found:
            message = f"a failing `{found[0]}` is ignored by `-`"
            yield source.issue("masked-exit", at + len(command) - len(stripped), message)
        yield from _in_script(source, at, command)


def scripts(text: str) -> dict[str, str]:
    """The scripts of a `package.json`; none if it cannot be read."""
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {}
    found = document.get("scripts") if isinstance(document, dict) else None
    if not isinstance(found, dict):
        return {}
    return {name: command for name, command in found.items() if isinstance(command, str)}


def _in_scripts(source: Source) -> Iterator[Issue]:
    for name, command in scripts(source.text).items():
        if not SCRIPT_NAME.match(name):
            continue
        found = re.search(rf'"{re.escape(name)}"\s*:', source.text)
        at = found.start() if found else 0
        mask = IGNORED.search(command) or AFTER.search(command)
        if mask:
            message = f"a failing `{name}` is ignored by `{mask[0].strip()}`"
            yield source.issue("masked-exit", at, message)
        elif re.fullmatch(r"\s*(?:true|:|exit 0|echo\b[^&|;]*(?:&&\s*exit 0)?)\s*", command):
            yield source.issue("masked-exit", at, f"`{name}` checks nothing and succeeds")


def _in_tox(source: Source) -> Iterator[Issue]:
    if "tox" not in source.text:
        return
    for pattern in (TOX_IGNORED, TOX_OUTCOME):
        for found in pattern.finditer(source.text):
            at = found.start() + len(found[0]) - len(found[0].lstrip())
            yield source.issue("masked-exit", at, "tox ignores how this ends")


class Line(msgspec.Struct, frozen=True):
    """A line of a pipeline."""

    text: str
    code: str
    at: int

    @property
    def indent(self) -> int:
        """How far to the right its content begins; a dash counts as space."""
        return len(self.code) - len(self.code.lstrip(" -"))


def _lines(source: Source) -> list[Line]:
    code = source.code.split("\n")
    return [Line(*item) for item in zip(source.lines, code, source.starts, strict=False)]


def _in_pipeline(source: Source) -> Iterator[Issue]:
    lines = _lines(source)
    for index, line in enumerate(lines):
        found = CONTINUES.match(line.code) or TURNED_OFF.match(line.code)
        if found:
            command = _checked_in(lines, index)
            if command:
                said = found[0].strip(" -")
                message = f"a failing `{command}` is ignored by `{said}`"
                yield source.issue(
                    "masked-exit", line.at + len(line.code) - len(line.code.lstrip(" -")), message
                )
    for start, script in commands(source):
        yield from _in_script(source, start, script)


def _checked_in(lines: list[Line], index: int) -> str:
    """A check that the step or the job which has this key runs."""
    indent = lines[index].indent
    first = index
    while first > 0 and not (lines[first].code.lstrip().startswith("- ") and lines[first].indent == indent):
        above = lines[first - 1]
        if above.text.strip() and above.indent < indent:
            break
        first -= 1
    last = index + 1
    while last < len(lines):
        line = lines[last]
        dashed = line.code.lstrip().startswith("- ") and line.indent <= indent
        if line.text.strip() and (dashed or len(line.text) - len(line.text.lstrip()) < indent):
            break
        last += 1
    block = "\n".join(_command(line) for line in lines[first:last])
    found = checks(block)
    return found[0] if found else ""


def _command(line: Line) -> str:
    return re.sub(
        r"^[ \t]*(?:-[ \t]+)*(?:(?:run|script|command|test|bash|sh)[ \t]*:[ \t]*[|>]?[+\-]?)?", "", line.text
    ).strip("\"'")


RUN = re.compile(
    r"^(?P<indent>[ \t]*)(?P<dash>(?:-[ \t]+)*)(?:(?P<key>run|script|command|bash|sh|before_script"
    r"|after_script)[ \t]*:[ \t]*)?(?P<value>[^\n]*)$"
)


def commands(source: Source) -> Iterator[tuple[int, str]]:
    """The shell commands of a pipeline, each with where it stands."""
    for line in _lines(source):
        if not line.text.strip() or line.text.lstrip().startswith("#"):
            continue
        found = RUN.match(line.text)
        if found and found["value"]:
            yield line.at + found.start("value"), found["value"].strip("\"'|>")
