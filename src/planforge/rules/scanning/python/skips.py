"""What keeps a Python test from running, or from failing."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from planforge.rules.scanning.outlines import Skip
from planforge.rules.scanning.python_assertions import called, constant_truth, dotted
from planforge.rules.scanning.source import Source, names_issue

ALWAYS = frozenset(("skip", "unittest.skip", "pytest.mark.skip", "mark.skip", "testcase.skip"))
IF = frozenset(("skipIf", "skipif"))
UNLESS = frozenset(("skipUnless",))
MAY_FAIL = frozenset(("xfail", "expectedFailure"))
SET_UP = frozenset(("setUp", "setUpClass", "setUpModule", "asyncSetUp", "setup_method", "setup_class"))
Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


class Found(NamedTuple):
    """A test and where it was found."""

    node: Function
    name: str
    owners: tuple[ast.ClassDef, ...]


def skips(source: Source, tree: ast.Module, tests: Sequence[Found]) -> Iterator[Skip]:
    """Every skip and expected failure of a file."""
    seen: set[int] = set()
    for test in tests:
        for owner in (*test.owners, test.node):
            if id(owner) not in seen:
                seen.add(id(owner))
                yield from _decorated(source, owner, test.name if owner is test.node else owner.name)
                if isinstance(owner, ast.ClassDef):
                    yield from _of_class(source, owner)
        yield from in_body(source, test.node, test.name)
    yield from _marks(source, tree.body, "*")
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in SET_UP:
            yield from in_body(source, node, "*")
        elif isinstance(node, ast.Expr | ast.Raise) and is_skipping(node):
            yield _skip(source, node, "*", conditional=False)


def _of_class(source: Source, node: ast.ClassDef) -> Iterator[Skip]:
    yield from _marks(source, node.body, node.name)
    for part in node.body:
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) and part.name in SET_UP:
            yield from in_body(source, part, node.name)


def _marks(source: Source, body: Sequence[ast.stmt], what: str) -> Iterator[Skip]:
    """`pytestmark`, `__test__ = False`, and tests that are set to None."""
    for node in body:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        name = node.targets[0].id
        if name == "pytestmark":
            marks = node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value]
            for mark in marks:
                yield from _decoration(source, mark, what)
        elif isinstance(node.value, ast.Constant) and (
            (name == "__test__" and node.value.value is False)
            or (name.startswith("test") and node.value.value is None)
        ):
            # How a base class says that it is none, and how an inherited test is turned off.
            yield _skip(source, node, name if name != "__test__" else what, conditional=True)


def _decorated(source: Source, node: Definition, what: str) -> Iterator[Skip]:
    for decorator in node.decorator_list:
        yield from _decoration(source, decorator, what)


def _decoration(source: Source, node: ast.expr, what: str) -> Iterator[Skip]:
    name = dotted(node)
    last = name.rpartition(".")[2]
    if last in MAY_FAIL:
        yield _skip(source, node, what, conditional=_has_condition(node), expects_failure=True)
    elif name in ALWAYS:
        yield _skip(source, node, what, conditional=False)
    elif last in IF or last in UNLESS:
        yield _skip(source, node, what, conditional=_depends(node, last in IF))
    elif last.lower().startswith(("skip", "requires")) or "_skip" in last.lower():
        yield _skip(source, node, what, conditional=True)


def _has_condition(node: ast.expr) -> bool:
    """Whether an expected failure is expected only under some condition."""
    if not isinstance(node, ast.Call) or not node.args:
        return False
    condition = node.args[0]
    named = isinstance(condition, ast.Constant) and isinstance(condition.value, str)
    return named or constant_truth(condition) is None


def _depends(node: ast.expr, skipping: bool) -> bool:
    if not isinstance(node, ast.Call):
        return True
    conditions = [*node.args[:1], *(word.value for word in node.keywords if word.arg == "condition")]
    if not conditions:
        return False
    condition = conditions[0]
    if isinstance(condition, ast.Constant) and isinstance(condition.value, str):
        return condition.value.strip() not in (("True", "1") if skipping else ("False", "0"))
    return constant_truth(condition) is not skipping


def is_skipping(node: ast.stmt) -> bool:
    """Whether a statement skips the test that it is in."""
    if isinstance(node, ast.Raise):
        return dotted(node.exc).rpartition(".")[2] in ("SkipTest", "Skipped")
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        name = dotted(node.value.func)
        return name in ("pytest.skip", "pytest.xfail", "self.skipTest", "cls.skipTest") or name == "skip"
    return False


def in_body(source: Source, node: Function, what: str) -> Iterator[Skip]:
    """Skips inside of a function; one that is not under a condition is always taken."""
    certain = {id(part) for part in certainly(source, node.body)}
    for part in source.below(node):
        if isinstance(part, ast.Raise | ast.Expr) and is_skipping(part):
            failing = (
                isinstance(part, ast.Expr)
                and isinstance(part.value, ast.Call)
                and called(part.value) == "xfail"
            )
            yield _skip(source, part, what, conditional=id(part) not in certain, expects_failure=failing)


def certainly(source: Source, body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run whatever happens, as long as nothing before them leaves."""
    for node in body:
        yield node
        if (isinstance(node, ast.If) and constant_truth(node.test)) or isinstance(
            node, ast.With | ast.AsyncWith
        ):
            yield from certainly(source, node.body)
        if isinstance(node, ast.Return | ast.Raise):
            return
        if any(isinstance(part, ast.Return) for part in source.below(node)):
            return  # what comes after may never be reached


def _skip(
    source: Source, node: ast.expr | ast.stmt, what: str, *, conditional: bool, expects_failure: bool = False
) -> Skip:
    last = node.end_lineno or node.lineno
    return Skip(
        at=source.start(node),
        what=what,
        text=" ".join(source.segment(node).split()),
        conditional=conditional,
        issue=names_issue(source.said_at(node.lineno, last)),
        expects_failure=expects_failure,
    )
