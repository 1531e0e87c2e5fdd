"""
Whether fewer tests are run than before, by the settings of test runners and the commands that start them.

Settings are read for what they say about which tests there are; commands for the tools that
they start, the options that leave tests out, and the files that they name.
"""

from __future__ import annotations

import ast
import configparser
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from planforge.rules.findings import Finding, Severity
from planforge.rules.scanning import pipelines
from planforge.rules.scanning.commands import CHECK
from planforge.rules.scanning.inspection import opened
from planforge.rules.scanning.languages import Language, Role
from planforge.rules.scanning.source import Source

CHOSEN = (
    "testpaths",
    "python_files",
    "python_classes",
    "python_functions",
    "testMatch",
    "testRegex",
    "include",
)
"""Settings whose entries choose tests: fewer of them mean fewer tests."""
LEFT_OUT = (
    *("norecursedirs", "collect_ignore", "collect_ignore_glob", "deselect", "exclude", "omit", "ignore"),
    *("testPathIgnorePatterns", "modulePathIgnorePatterns", "coveragePathIgnorePatterns"),
)
"""Settings whose entries leave something out: more of them mean fewer tests."""
NOT_TESTS = frozenset(("omit", "coveragePathIgnorePatterns"))
DEFAULTS = {"python_files": "test_*.py", "python_classes": "Test", "python_functions": "test"}
WHOLE = frozenset(("tests", "test", ".", "src", "spec", "tests/", "./tests"))
NARROWING = re.compile(
    r"(?:^|(?<=\s))(?:-k|--keyword|--ignore(?:-glob)?|--deselect|--collect-only|--co|--lf|--last-failed"
    r"|-t|--testNamePattern"
    r"|--testPathPatterns?|--testPathIgnorePatterns|--grep|-g|--fgrep|--invert|-run|-skip|-short|--skip"
    r"|--exclude|--filter"
    r"|-Dtest|--tests|--passWithNoTests|--exit-zero|-DskipTests|-Dmaven\.test\.skip|--no-tests"
    r"|--allow-no-tests|--only-changed"
    r"|-o\s+addopts)(?=[\s=]|$)"
)
MARKED = re.compile(r"(?:py\.?test)\b.*?\s(?P<option>-m)\s")
NAMED_FILE = re.compile(r"(?:^|\s)(?!-)(?P<file>[\w./\-]+(?:\.(?:py|[cm]?[jt]sx?|rb|php)|::[\w:]+))(?=\s|$)")
THRESHOLD = re.compile(r"(?:fail_under|--cov-fail-under|--fail-under)\s*[=\s]\s*(?P<number>\d+(?:\.\d+)?)")
STRICT = re.compile(r"xfail_strict\s*=\s*(?:true|1)", re.IGNORECASE)
LIST = re.compile(r"\b(?P<key>[A-Za-z_]\w*)[\"']?\s*:\s*\[")
CONFIG = re.compile(
    r"(?:.*/)?(?:jest|vitest|vite|playwright|cypress|karma|ava|\.mocharc)[\w.\-]*\.(?:[cm]?[jt]s|json)$"
)
TOX_COMMAND = re.compile(r"^[ \t]*(?:commands(?:_pre|_post)?[ \t]*=)?[ \t]*-?[ \t]*", re.MULTILINE)
HOOKS = frozenset(
    ("pytest_ignore_collect", "pytest_collection_modifyitems", "pytest_collect_file", "load_tests")
)


class Choice(NamedTuple):
    """What a state of the settings says about which tests run."""

    entries: dict[str, frozenset[str]]
    options: frozenset[str]
    hooks: frozenset[str]


def findings(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Finding]:
    """Where settings and commands of the later state run fewer tests."""
    for path in sorted({*before, *after}):
        old, new = before.get(path, ""), after.get(path, "")
        if old != new:
            yield from _settings(path, old, new)
    yield from _commands(before, after)


def _settings(path: str, old: str, new: str) -> Iterator[Finding]:
    was, now = choice(path, old), choice(path, new)
    for key in sorted({*was.entries, *now.entries}):
        yield from _entries(path, key, was.entries.get(key), now.entries.get(key), fresh=not old)
    for option in sorted(now.options - was.options):
        yield _narrowed(path, f"`addopts` now has `{option}`")
    for hook in sorted(now.hooks - was.hooks):
        yield _narrowed(path, f"`{hook}` is new and may leave tests out", Severity.MEDIUM)
    yield from _thresholds(path, old, new)


def _entries(
    path: str, key: str, was: frozenset[str] | None, now: frozenset[str] | None, *, fresh: bool
) -> Iterator[Finding]:
    name = key.rpartition(".")[2]
    if name in LEFT_OUT:
        more = sorted((now or frozenset()) - (was or frozenset()))
        if more:
            mild = name in NOT_TESTS or (fresh and name in ("exclude", "norecursedirs", "ignore"))
            said = f"`{key}` now has {', '.join(f'`{entry}`' for entry in more[:5])}"
            yield _narrowed(path, said, Severity.MEDIUM if mild else Severity.BLOCKING)
    elif name in CHOSEN and now is not None:
        gone = sorted((was or frozenset()) - now)
        if was and gone:
            yield _narrowed(path, f"`{key}` no longer has {', '.join(f'`{entry}`' for entry in gone[:5])}")
        elif was is None and DEFAULTS.get(name) not in now and not now <= WHOLE:
            said = f"`{key}` is new: {', '.join(f'`{entry}`' for entry in sorted(now)[:5])}"
            yield _narrowed(path, said, Severity.MEDIUM if fresh else Severity.BLOCKING)


def _thresholds(path: str, old: str, new: str) -> Iterator[Finding]:
    was = [float(found["number"]) for found in THRESHOLD.finditer(old)]
    now = [float(found["number"]) for found in THRESHOLD.finditer(new)]
    if was and (not now or max(now) < max(was)):
        said = f"the least coverage fell from {max(was):g} to {max(now, default=0):g}"
        yield Finding(severity=Severity.MEDIUM, title=said, location=path)
    if STRICT.search(old) and not STRICT.search(new):
        title = "`xfail_strict` was turned off"
        yield Finding(severity=Severity.MEDIUM, title=title, location=path)


def _narrowed(path: str, said: str, severity: Severity = Severity.BLOCKING) -> Finding:
    return Finding(severity=severity, title=f"fewer tests are collected: {said}", location=path)


def choice(path: str, text: str) -> Choice:
    """What the settings of one file say about which tests run."""
    name = path.rpartition("/")[2]
    entries: dict[str, frozenset[str]] = {}
    hooks: frozenset[str] = frozenset()
    if name == "pyproject.toml":
        entries = _toml(text)
    elif name in ("pytest.ini", "tox.ini", "setup.cfg", ".coveragerc", ".pytest.ini"):
        entries = _ini(text)
    elif name == "package.json":
        entries = _json(text)
    elif CONFIG.fullmatch(path):
        entries = _lists(path, text)
    elif name == "conftest.py":
        entries, hooks = _conftest(text)
    options = frozenset(_options(" ".join(sorted(entries.pop("addopts", frozenset())))))
    return Choice(entries, options, hooks)


def _options(line: str) -> Iterator[str]:
    for found in NARROWING.finditer(line):
        yield found[0].strip()
    if re.search(r"(?:^|\s)-m(?:\s|=)", line):
        yield "-m"


def _words(value: object) -> frozenset[str]:
    if isinstance(value, str):
        return frozenset(value.split())
    if isinstance(value, list):
        return frozenset(str(entry) for entry in value)
    return frozenset()


def _kept(table: object, prefix: str = "") -> dict[str, frozenset[str]]:
    if not isinstance(table, dict):
        return {}
    found: dict[str, frozenset[str]] = {}
    for key, value in table.items():
        if key in (*CHOSEN, *LEFT_OUT):
            found[f"{prefix}{key}"] = _words(value)
        elif key == "addopts":
            line = value if isinstance(value, str) else " ".join(str(word) for word in value or ())
            found["addopts"] = frozenset((line,))
    return found


def _toml(text: str) -> dict[str, frozenset[str]]:
    try:
        document = msgspec.toml.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return {}
    tools = document.get("tool", {}) if isinstance(document, dict) else {}
    pytest = tools.get("pytest", {}) if isinstance(tools, dict) else {}
    coverage = tools.get("coverage", {}) if isinstance(tools, dict) else {}
    found = _kept(pytest.get("ini_options", pytest) if isinstance(pytest, dict) else {})
    for table in coverage.values() if isinstance(coverage, dict) else ():
        found |= _kept(table, "coverage.")
    return found


def _ini(text: str) -> dict[str, frozenset[str]]:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except configparser.Error:
        return {}
    found: dict[str, frozenset[str]] = {}
    for section in parser.sections():
        if section in ("pytest", "tool:pytest"):
            found |= _kept(dict(parser.items(section)))
        elif section.startswith(("coverage", "run", "report")):
            found |= _kept(dict(parser.items(section)), "coverage.")
    return found


def _json(text: str) -> dict[str, frozenset[str]]:
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {}
    found: dict[str, frozenset[str]] = {}
    for key in ("jest", "vitest", "ava", "mocha"):
        found |= _kept(document.get(key) if isinstance(document, dict) else None, f"{key}.")
    return found


def _lists(path: str, text: str) -> dict[str, frozenset[str]]:
    """Lists of strings in a settings file that is a program, or JSON."""
    source = opened(path, text) or Source(path, text, Language.JAVASCRIPT, Role.SOURCE)
    found: dict[str, frozenset[str]] = {}
    for item in LIST.finditer(source.code):
        key = item["key"]
        if key in (*CHOSEN, *LEFT_OUT):
            end = source.pairs.get(item.end() - 1, item.end())
            found[key] = frozenset(word.strip("\"'`") for word in source.strings(item.end(), end))
    return found


def _conftest(text: str) -> tuple[dict[str, frozenset[str]], frozenset[str]]:
    source = opened("conftest.py", text)
    tree = source.tree if source else None
    if source is None or tree is None:
        return {}, frozenset()
    found: dict[str, frozenset[str]] = {}
    for node in source.nodes:
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AugAssign)
            else []
        )
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if names and names[0] in LEFT_OUT and isinstance(node, ast.Assign | ast.AugAssign):
            words = (part.value for part in ast.walk(node.value) if isinstance(part, ast.Constant))
            found[names[0]] = found.get(names[0], frozenset()) | {str(word) for word in words}
    hooks = frozenset(
        node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in HOOKS
    )
    return found, hooks


class Started(NamedTuple):
    """A check that a file starts: the tool, and the whole command."""

    path: str
    tool: str
    line: str


def _commands(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Finding]:
    changed = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    was = [item for path in changed for item in started(path, before.get(path, ""))]
    now = [item for path in changed for item in started(path, after.get(path, ""))]
    known = {(item.tool, option) for item in was for option in _narrowings(item.line)}
    for item in now:
        for option in _narrowings(item.line):
            if (item.tool, option) not in known and any(other.tool == item.tool for other in was):
                yield _narrowed(item.path, f"`{item.tool}` is now called with `{option}`")
    yield from _lost(was, now)


def _narrowings(line: str) -> Iterator[str]:
    yield from (found[0].strip() for found in NARROWING.finditer(line))
    if found := MARKED.search(line):
        yield found["option"]
    arguments = line.partition(" ")[2]
    yield from (found["file"] for found in NAMED_FILE.finditer(arguments))


def _lost(was: list[Started], now: list[Started]) -> Iterator[Finding]:
    """Tools that are no longer started."""
    left = {item.tool for item in now}
    fresh = left - {item.tool for item in was}
    for tool in sorted({item.tool for item in was} - left):
        path = next(item.path for item in was if item.tool == tool)
        severity = Severity.MEDIUM if fresh else Severity.BLOCKING
        said = f", but {', '.join(f'`{name}`' for name in sorted(fresh))}" if fresh else ""
        yield Finding(severity=severity, title=f"`{tool}` is no longer run{said}", location=path)


def started(path: str, text: str) -> Iterator[Started]:
    """The checks that a file starts."""
    source = opened(path, text) if text else None
    if source is None:
        return
    for script in _scripts(source):
        code = script.replace("\\\n", "  ")
        for found in CHECK.finditer(code):
            rest = re.split(r"[;&|\n]", code[found.start("command") :], maxsplit=1)[0]
            yield Started(path, " ".join(found["command"].split()), " ".join(rest.split()))


def _scripts(source: Source) -> Iterable[str]:
    name = source.path.rpartition("/")[2]
    if name == "package.json":
        return pipelines.scripts(source.text).values()
    if source.language is Language.YAML:
        return [script for _, script in pipelines.commands(source)] if source.role is Role.PIPELINE else []
    if source.language is Language.MAKE:
        return [re.sub(r"^[@+\-\s]*", "", command) for _, command, _ in pipelines.recipes(source.text)]
    if name == "tox.ini":
        return [TOX_COMMAND.sub("", source.text)]
    if source.language is Language.SHELL and source.role is Role.PIPELINE:
        return [source.text]
    return []
