"""
JavaScript projects: the scripts of package.json, run by the tool whose lock file is there.

A runner is asked for a report that machines read where it can write one and the script is
one plain command, so that options added at its end reach the runner. Anything else is run
as it is and read by its summary.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

import msgspec

from planforge.workspace.checks import Report
from planforge.workspace.detection.places import Finds, Found, Passed, Place, found, table

LOCKS = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
}
TYPES = ("typecheck", "type-check", "check-types", "types", "tsc")
WRAPPERS = ("cross-env", "env", "npx", "nyc", "c8", "dotenv", "dotenvx")
ENV = {"CI": "true"}  # or some runners watch files and never end
PUNCTUATION = set("();<>|&")
ASSIGNED = re.compile(r"^[A-Za-z_]\w*=")
NO_TEST = re.compile(r"no test specified|no tests? yet", re.IGNORECASE)
NODE_TEST = re.compile(r"""(?:require\(|from\s+)['"](?:node:)?test['"]""")


class Runner(msgspec.Struct, frozen=True, kw_only=True):
    """How a runner is asked for a report."""

    options: tuple[str, ...] = ()
    report: Report = Report.TEXT
    file: str = ""


JEST = Runner(
    options=("--json", "--outputFile=${reports}/jest.json"), report=Report.JEST, file="${reports}/jest.json"
)
RUNNERS = {
    "jest": JEST,
    "react-scripts": JEST,
    "vitest": Runner(
        options=("--reporter=default", "--reporter=json", "--outputFile.json=${reports}/vitest.json"),
        report=Report.JEST,
        file="${reports}/vitest.json",
    ),
    "mocha": Runner(
        options=("--reporter=json", "--reporter-option=output=${reports}/mocha.json"),
        report=Report.MOCHA,
        file="${reports}/mocha.json",
    ),
    "ava": Runner(options=("--tap",), report=Report.TAP),
    "tape": Runner(report=Report.TAP),
    "eslint": Runner(
        options=("--format=json", "--output-file=${reports}/eslint.json"),
        report=Report.ESLINT,
        file="${reports}/eslint.json",
    ),
}


def look(place: Place) -> Finds:
    """How a JavaScript project is checked."""
    if not place.has("package.json"):
        return
    package = place.json("package.json")
    tool, said = _tool(place, package)
    if said:
        yield Passed(what=said)
    scripts = {name: text for name, text in table(package, "scripts").items() if isinstance(text, str)}
    if "build" in scripts:
        yield _script("build", tool, "build", scripts["build"], plain=True)
    yield from _types(place, tool, package, scripts)
    if "lint" in scripts:
        yield _script("lint", tool, "lint", scripts["lint"])
    yield from _tests(place, tool, package, scripts)


def _tool(place: Place, package: dict[str, Any]) -> tuple[str, str]:
    """The tool that runs scripts, and a note if it is ambiguous."""
    named = str(package.get("packageManager", "")).partition("@")[0]
    tools = list(dict.fromkeys(tool for name, tool in LOCKS.items() if place.has(name)))
    chosen = named if named in LOCKS.values() else tools[0] if tools else "npm"
    if len(tools) > 1:
        return chosen, f"lock files of {', '.join(tools)}: `{chosen}` is taken"
    return chosen, ""


def _types(place: Place, tool: str, package: dict[str, Any], scripts: dict[str, str]) -> Finds:
    for name in TYPES:
        if name in scripts:
            yield _script("types", tool, name, scripts[name], plain=True, required=False)
            return
    if place.has("tsconfig.json") and "typescript" in _dependencies(package):
        command = (*_execute(tool), "tsc", "--noEmit")
        yield _found("types", command, Runner(), "tsconfig.json", required=False)


def _tests(place: Place, tool: str, package: dict[str, Any], scripts: dict[str, str]) -> Finds:
    script = scripts.get("test", "").strip()
    if script and not NO_TEST.search(script):
        yield _script("tests", tool, "test", script)
        return
    if script:
        yield Passed(what="tests: script `test` of package.json, for it only says that there are none")
    installed = _dependencies(package)
    for name in ("vitest", "jest", "mocha", "ava"):
        if name in installed:
            runner = RUNNERS[name]
            words = ("vitest", "run") if name == "vitest" else (name,)
            yield _found("tests", (*_execute(tool), *words), runner, f"`{name}` in package.json")
            return
    for pattern in ("test/**/*.*js", "tests/**/*.*js", "*.test.*js"):
        for path in place.files(pattern, 50):
            name = str(path.relative_to(place.root))
            if NODE_TEST.search(place.text(name) or ""):
                yield _found("tests", ("node", "--test"), Runner(), f"`node:test` in {name}")
                return


def _dependencies(package: dict[str, Any]) -> set[str]:
    return {name for key in ("dependencies", "devDependencies") for name in table(package, key)}


def _execute(tool: str) -> tuple[str, ...]:
    """How an installed program is run, without fetching one that is not."""
    return {"npm": ("npx", "--no-install"), "bun": ("bunx", "--no-install")}.get(tool, (tool, "exec"))


def _script(
    name: str, tool: str, script: str, text: str, *, plain: bool = False, required: bool | None = None
) -> Found:
    runner = Runner() if plain else RUNNERS.get(runner_of(text), Runner())
    # npm keeps options for itself unless `--` comes first; the others pass them on.
    dashes = ("--",) if tool == "npm" and runner.options else ()
    command = (tool, "run", script) if (tool, script) != ("npm", "test") else ("npm", "test")
    why = f"script `{script}` of package.json"
    return _found(name, (*command, *dashes), runner, why, required=required)


def _found(
    name: str, command: Sequence[str], runner: Runner, why: str, *, required: bool | None = None
) -> Found:
    options = {"report": runner.report, "file": runner.file, "env": ENV, "required": required}
    return found(name, why, *command, *runner.options, **options)


def runner_of(script: str) -> str:
    """The program that a script starts, if it is one plain command that gets options added at its end."""
    lexer = shlex.shlex(script, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return ""
    if any(set(word) <= PUNCTUATION for word in words) or "--" in words:
        return ""
    rest = [word for word in words if not ASSIGNED.match(word)]
    while rest and (rest[0] in WRAPPERS or rest[0].startswith("-")):
        rest = rest[1:]
    return rest[0].rpartition("/")[2] if rest else ""
