"""Where a test replaces the very thing that it is there to test."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from planforge.rules.findings import Finding, Severity
from planforge.rules.scanning.languages import Language
from planforge.rules.scanning.python.outline import Module
from planforge.rules.scanning.python_assertions import called, dotted
from planforge.rules.scanning.source import Source
from planforge.rules.scanning.suites import Suite

MOCKED = re.compile(r"\b(?:jest|vi)\.(?:mock|doMock)\s*\(")
STEM = re.compile(r"^(?:test_)?(?P<stem>.+?)(?:_test|_spec|[.\-](?:test|spec|cy|e2e))?\.\w+$")


def findings(old: Suite, new: Suite) -> Iterator[Finding]:
    """Replacements that were not there before."""
    known = {(name, target) for source in old.sources.values() for name, target, _ in replaced(source)}
    for path, source in new.sources.items():
        if not new.has_tests(path):
            continue
        for name, target, line in replaced(source):
            if (name, target) not in known:
                yield Finding(
                    severity=Severity.MEDIUM,
                    title=f"`{name}` replaces `{target}`, which it is there to test",
                    location=f"{path}:{line}",
                )


def replaced(source: Source) -> Iterator[tuple[str, str, int]]:
    """The tests that replace what they test: the test, what it replaces, and where."""
    found = STEM.match(source.path.rpartition("/")[2])
    stem = found["stem"] if found else ""
    if not stem or stem in ("conftest", "tests", "test", "index"):
        return
    if source.tree is not None:
        yield from _in_python(source, source.tree, stem)
    elif source.language is Language.JAVASCRIPT:
        for item in MOCKED.finditer(source.code):
            target = next(source.strings(item.end(), item.end() + 1), "")[1:-1]
            name = target.rpartition("/")[2]
            if target.startswith((".", "@/", "~/")) and re.sub(r"\.[cm]?[jt]sx?$", "", name) == stem:
                yield source.path.rpartition("/")[2], target, source.line(item.start())


def _in_python(source: Source, tree: ast.Module, stem: str) -> Iterator[tuple[str, str, int]]:
    for test in Module(source, tree).tests:
        nodes = source.below(test.node)
        used = {
            called(node)
            for node in nodes
            if isinstance(node, ast.Call)
            and not dotted(node.func).startswith(("mock", "mocker", "patch", "monkeypatch"))
        }
        for node in nodes:
            if isinstance(node, ast.Call):
                target = _target(node)
                module, _, name = target.rpartition(".")
                if name in used and module.rpartition(".")[2] == stem:
                    yield test.name, target, node.lineno


def _target(node: ast.Call) -> str:
    """What a call replaces, as `module.name`; empty if it replaces nothing."""
    function = dotted(node.func)
    texts = [part.value if isinstance(part, ast.Constant) else None for part in node.args[:2]]
    if function.endswith(("patch", "monkeypatch.setattr")) and texts and isinstance(texts[0], str):
        return texts[0]
    if (
        function.endswith(("patch.object", "monkeypatch.setattr"))
        and len(texts) > 1
        and isinstance(texts[1], str)
    ):
        return f"{dotted(node.args[0])}.{texts[1]}"
    return ""
