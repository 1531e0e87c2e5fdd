"""Where Python code around the tests decides how they end: hooks, exits, replaced assertions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from planforge.rules.scanning.issues import Issue
from planforge.rules.scanning.languages import Role
from planforge.rules.scanning.python_assertions import called, dotted, is_idle
from planforge.rules.scanning.source import Source, walk

FRAMEWORK = re.compile(
    r"^(?:unittest(?:\.case)?|pytest|builtins|(?:unittest\.)?TestCase|\w*TestCase|_pytest\.\w+|django\.test)$"
)
ASSERTS = re.compile(r"^(?:assert\w*|AssertionError|failureException|raises|warns|fail|expect)$")
EXITS = frozenset(("sys.exit", "os._exit", "exit", "quit", "pytest.exit", "_exit"))
LATER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
"""What does not run when a module is loaded."""
COLLECTION = frozenset(("items", "session.items"))


def issues(source: Source, tree: ast.Module) -> Iterator[Issue]:
    """Exits, forced outcomes and replaced assertions in tests and in what they load."""
    yield from _replaced(source)
    yield from _overridden(source)
    if source.role is Role.SUPPORT:
        yield from _hooks(source)
        nodes: Iterable[ast.AST] = source.nodes
    else:
        at_import = walk((node for node in tree.body if not _is_main(node)), LATER)
        nodes = (part for part in at_import if not isinstance(part, LATER))
    for node in nodes:
        if isinstance(node, ast.Call) and _exits_well(node, in_support=source.role is Role.SUPPORT):
            yield source.issue(
                "forced-outcome", source.start(node), f"`{dotted(node.func)}` ends the test run as a success"
            )


def _exits_well(node: ast.Call, *, in_support: bool) -> bool:
    """Whether the process ends here, with the code that means success."""
    if dotted(node.func) not in EXITS:
        return False
    codes = [*node.args, *(word.value for word in node.keywords if word.arg == "returncode")]
    if not codes:
        return dotted(node.func) != "pytest.exit"
    first = codes[-1] if dotted(node.func) == "pytest.exit" else codes[0]
    fine = isinstance(first, ast.Constant) and first.value in (0, None) and first.value is not False
    return fine or (in_support and dotted(node.func) == "os._exit")


def _is_main(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in {dotted(part) for part in ast.walk(node.test)}


def _hooks(source: Source) -> Iterator[Issue]:
    for function in source.nodes:
        if not isinstance(function, ast.FunctionDef) or not function.name.startswith("pytest_"):
            continue
        for node in source.below(function):
            if isinstance(node, ast.Assign):
                yield from _set_outcome(source, function.name, node)
            elif isinstance(node, ast.Call) and dotted(node.func) in ("items.clear", "session.items.clear"):
                yield source.issue(
                    "forced-outcome", source.start(node), f"`{function.name}` throws tests away"
                )


def _set_outcome(source: Source, hook: str, node: ast.Assign) -> Iterator[Issue]:
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Attribute):
        passing = isinstance(value, ast.Constant) and value.value in ("passed", 0, None)
        if target.attr in ("outcome", "exitstatus", "excinfo") and (
            passing or dotted(value).endswith("ExitCode.OK")
        ):
            yield source.issue("forced-outcome", node, f"`{hook}` sets the outcome of tests")
    emptied = isinstance(value, ast.List) and not value.elts
    if emptied and isinstance(target, ast.Subscript) and dotted(target.value) in COLLECTION:
        yield source.issue("forced-outcome", node, f"`{hook}` throws tests away")


def _replaced(source: Source) -> Iterator[Issue]:
    for node in source.nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and ASSERTS.match(target.attr):
                    owner = dotted(target.value)
                    if FRAMEWORK.match(owner):
                        yield source.issue(
                            "patched-assert", source.start(node), f"`{owner}.{target.attr}` is replaced"
                        )
        elif isinstance(node, ast.Call) and called(node) == "setattr" and len(node.args) > 1:
            owner, name = dotted(node.args[0]), node.args[1]
            word = name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else ""
            if FRAMEWORK.match(owner) and ASSERTS.match(word):
                yield source.issue("patched-assert", node, f"`{owner}.{word}` is replaced")


def _overridden(source: Source) -> Iterator[Issue]:
    """An assertion method that does nothing, in a class that has it from the framework."""
    for owner in source.nodes:
        if not isinstance(owner, ast.ClassDef) or not any("Test" in dotted(base) for base in owner.bases):
            continue
        for node in owner.body:
            if (
                isinstance(node, ast.FunctionDef)
                and node.name.startswith("assert")
                and all(map(is_idle, node.body))
            ):
                yield source.issue("patched-assert", node, f"`{node.name}` asserts nothing")


def always_equal(source: Source) -> Iterator[Issue]:
    """Objects that say they are equal to everything, outside of tests."""
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef) and node.name == "__eq__" and len(node.body) == 1:
            only = node.body[0]
            if (
                isinstance(only, ast.Return)
                and isinstance(only.value, ast.Constant)
                and only.value.value is True
            ):
                yield source.issue("always-equal", node, "`__eq__` is always true")
