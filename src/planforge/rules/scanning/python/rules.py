"""Where Python code breaks a rule that its syntax tree can tell."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence

from planforge.rules.scanning.issues import Issue
from planforge.rules.scanning.languages import Role
from planforge.rules.scanning.python import stubs, suites
from planforge.rules.scanning.python.outline import Module, is_empty, statements
from planforge.rules.scanning.python.skips import Found
from planforge.rules.scanning.python_assertions import (
    ASSERTING,
    asserts,
    called,
    constant_truth,
    dotted,
    is_idle,
)
from planforge.rules.scanning.source import Source, children, names_issue

STATUS = re.compile(r"(?:^|[._])(?:status|status_?code)$", re.IGNORECASE)
LATER = re.compile(r"\s*(?:not yet|will assert|todo\b|tbd\b|skip(?:ping|ped)?\b)", re.IGNORECASE)
PRINTED_LATER = re.compile(r"\s*(?:not yet|will assert|todo\b|tbd\b)", re.IGNORECASE)
CATCHES_ALL = frozenset(("Exception", "BaseException", "AssertionError"))
SAYING = frozenset(["print", "warn", "warning", "info", "debug", "error", "exception", "log", "print_exc"])
ABOUT_EQUALITY = re.compile(
    r"eq\b|eq_|_eq|equal|cmp|compar|hash|ident|order|same|nan|reflex|sort|rich|copy|contain|itself|_is_"
    r"|_lt|_le|_gt|operator|contains",
    re.IGNORECASE,
)
EQUALITIES = frozenset(
    [
        "assertEqual",
        "assertEquals",
        "assertIs",
        "assertListEqual",
        "assertDictEqual",
        "assertTupleEqual",
        "assertSetEqual",
        "assertCountEqual",
        "assertSequenceEqual",
        "assertMultiLineEqual",
        "assert_equal",
    ]
)
SIMPLE = (ast.Name, ast.Attribute, ast.Constant, ast.Load)


def issues(source: Source) -> Iterator[Issue]:
    """What the syntax tree of a test or of code that tests load shows."""
    tree = source.tree
    if tree is None:
        return
    if source.role is Role.SOURCE:
        yield from suites.always_equal(source)
        yield from stubs.stubs(source)
        return
    if source.role in (Role.TEST, Role.SUPPORT):
        module = Module(source, tree)
        yield from suites.issues(source, tree)
        for test in module.tests:
            yield from _caught(module, test)
            for check in CHECKS:
                yield from check(source, test)


def _cannot_fail(source: Source, test: Found) -> Iterator[Issue]:
    for node in source.below(test.node):
        if isinstance(node, ast.Assert):
            condition = node.test
            if isinstance(condition, ast.Tuple) and condition.elts:
                yield source.issue("always-true", node, "a tuple is always true")
            elif constant_truth(condition) or isinstance(condition, ast.Lambda):
                yield source.issue("always-true", node, "the condition is always true")
            elif isinstance(condition, ast.Compare) and len(condition.ops) == 1:
                yield from _comparison(source, test, node, condition)
        elif isinstance(node, ast.Call):
            yield from _asserting_call(source, test, node)


def _comparison(source: Source, test: Found, node: ast.Assert, condition: ast.Compare) -> Iterator[Issue]:
    operator, left, right = condition.ops[0], condition.left, condition.comparators[0]
    if isinstance(operator, ast.GtE) and _is_length(left) and _is_zero(right):
        yield source.issue("always-true", node, "a length is never below zero")
    elif isinstance(operator, ast.Eq | ast.Is | ast.GtE | ast.LtE):
        yield from _sides(source, test, node, left, right)


def _asserting_call(source: Source, test: Found, node: ast.Call) -> Iterator[Issue]:
    name, arguments = called(node), node.args
    if not isinstance(node.func, ast.Attribute) or not arguments:
        return
    wanted = {"assertTrue": True, "assert_": True, "assertFalse": False}.get(name)
    if wanted is not None and constant_truth(arguments[0]) is wanted:
        yield source.issue("always-true", node, f"`{name}` of a constant cannot fail")
    elif name == "assertIsNone" and isinstance(arguments[0], ast.Constant) and arguments[0].value is None:
        yield source.issue("always-true", node, "`assertIsNone` of None cannot fail")
    elif wanted is True and isinstance(arguments[0], ast.Compare) and len(arguments[0].ops) == 1:
        if isinstance(arguments[0].ops[0], ast.Eq | ast.Is):
            yield from _sides(source, test, node, arguments[0].left, arguments[0].comparators[0])
    elif name in ("assertGreaterEqual",) and len(arguments) > 1:
        if _is_length(arguments[0]) and _is_zero(arguments[1]):
            yield source.issue("always-true", node, "a length is never below zero")
    elif name in EQUALITIES and len(arguments) > 1:
        yield from _sides(source, test, node, arguments[0], arguments[1])


def _is_length(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func) == "len"


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0 and not isinstance(node.value, bool)


def _sides(
    source: Source, test: Found, node: ast.expr | ast.stmt, left: ast.expr, right: ast.expr
) -> Iterator[Issue]:
    if source.segment(left) != source.segment(right):
        return
    if not all(isinstance(part, SIMPLE) for part in ast.walk(left)):
        return  # two calls may well give two results
    if isinstance(left, ast.Attribute) and _of_identity(node):
        return  # whether a property gives the same object twice is a fair question
    if isinstance(left, ast.Constant):
        yield source.issue("always-true", node, "a constant is compared with itself")
    elif not _about_equality(source, test, node, left):
        message = f"`{source.segment(left)[:60]}` is compared with itself"
        yield source.issue("same-sides", node, message)


def _about_equality(source: Source, test: Found, node: ast.expr | ast.stmt, side: ast.expr) -> bool:
    """Whether a test that compares something with itself is about what being equal means."""
    said = "\n".join(
        comment.text for line in (node.lineno - 1, node.lineno) if (comment := source.comment_lines.get(line))
    )
    if ABOUT_EQUALITY.search(test.name) or ABOUT_EQUALITY.search(said):
        return True
    return _tests_equality(source, test) or _compared_elsewhere(source, test, source.segment(side))


def _compared_elsewhere(source: Source, test: Found, text: str) -> bool:
    """Whether something is also compared with something else."""
    for node in source.below(test.node):
        if isinstance(node, ast.Call) and called(node) in EQUALITIES and len(node.args) > 1:
            sides = [source.segment(argument) for argument in node.args[:2]]
            if text in sides and len(set(sides)) > 1:
                return True
    return False


def _of_identity(node: ast.expr | ast.stmt) -> bool:
    if isinstance(node, ast.Call):
        return called(node) == "assertIs"
    return any(isinstance(part, ast.Is) for part in ast.walk(node))


def _tests_equality(source: Source, test: Found) -> bool:
    """Whether a test also compares for being different, so that equality is what it is about."""
    return any(
        isinstance(node, ast.NotEq)
        or (isinstance(node, ast.Call) and called(node) in ("assertNotEqual", "assertIsNot", "hash"))
        or (isinstance(node, ast.Attribute) and node.attr in ("__eq__", "__hash__", "__ne__"))
        for node in source.below(test.node)
    )


def _catches_all(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(dotted(kind).rpartition(".")[2] in CATCHES_ALL for kind in kinds)


def _does_nothing(node: ast.stmt) -> bool:
    """Whether a statement of a handler only says something, or not even that."""
    if is_idle(node) or isinstance(node, ast.Continue):
        return True
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and called(node.value) in SAYING


def _caught(module: Module, test: Found) -> Iterator[Issue]:
    source = module.source
    for node in source.below(test.node):
        if not isinstance(node, ast.Try | ast.TryStar):
            continue
        handler = next((part for part in node.handlers if _catches_all(part)), None)
        if handler is None or not all(map(_does_nothing, handler.body)):
            continue
        tried = [part for statement in node.body for part in source.below(statement)]
        if any(asserts(part) for part in tried):
            message = "a failing assertion above is caught here and ignored"
            yield source.issue("swallowed", handler, message)
        elif _outcome_ignored(module, test, node) and not any(isinstance(part, ast.Raise) for part in tried):
            yield source.issue("soft-pass", handler, "every error is caught and ignored")


def _outcome_ignored(module: Module, test: Found, node: ast.Try | ast.TryStar) -> bool:
    """Whether nothing is asserted about what was tried, neither beside it nor after it."""
    if node.orelse or node.finalbody or not _is_direct(test, node):
        return False
    source, after = module.source, module.source.start(node)
    return not any(
        isinstance(part, ast.expr | ast.stmt) and source.start(part) > after and _may_assert(module, part)
        for part in source.below(test.node)
    )


def _may_assert(module: Module, node: ast.AST) -> bool:
    if asserts(node) or not isinstance(node, ast.Call):
        return asserts(node)
    return called(node) in module.asserting or bool(ASSERTING.match(called(node)))


def _is_direct(test: Found, node: ast.AST) -> bool:
    """Whether it is in the test itself and not in a function that the test only defines."""
    open_: list[ast.AST] = list(test.node.body)
    while open_:
        part = open_.pop()
        if part is node:
            return True
        if isinstance(part, ast.Try):  # what cleans up is not the test
            open_.extend([*part.body, *part.orelse])
        elif not isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            open_.extend(children(part))
    return False


def _left_early(source: Source, test: Found) -> Iterator[Issue]:
    for node in source.below(test.node):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                yield from _after_leaving(source, body)


def _after_leaving(source: Source, body: Sequence[ast.stmt]) -> Iterator[Issue]:
    for index, node in enumerate(body[:-1]):
        leaving = isinstance(node, ast.Return | ast.Continue | ast.Break) or (
            isinstance(node, ast.If)
            and constant_truth(node.test) is True
            and any(isinstance(part, ast.Return) for part in node.body)
        )
        if leaving:
            rest = (part for after in body[index + 1 :] for part in source.below(after))
            if any(asserts(part) for part in rest):
                yield source.issue(
                    "unreachable", source.start(node), "the assertions below are never reached"
                )
            return


def _soft_status(source: Source, test: Found) -> Iterator[Issue]:
    for node in source.below(test.node):
        if isinstance(node, ast.Assert) and _accepts_several(node.test):
            yield source.issue("soft-pass", node, "more than one status is right")
        elif isinstance(node, ast.Call) and called(node) in ("assertIn", "assertTrue") and node.args:
            several = len(node.args) > 1 and _is_status(node.args[0]) and _is_choice(node.args[1])
            if several or _accepts_several(node.args[0]):
                yield source.issue("soft-pass", node, "more than one status is right")
        elif isinstance(node, ast.If) and _missing(node.test) and _leaves(node.body):
            yield source.issue("soft-pass", node, "the test passes when the route is missing")


def _accepts_several(node: ast.expr) -> bool:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.In):
        return _is_status(node.left) and _is_choice(node.comparators[0])
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        return len(node.values) > 1 and all(
            isinstance(value, ast.Compare) and isinstance(value.ops[0], ast.Eq) and _is_status(value.left)
            for value in node.values
        )
    return False


def _is_status(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute | ast.Name) and bool(STATUS.search(dotted(node)))


def _is_choice(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Tuple | ast.List | ast.Set)
        and len(node.elts) > 1
        and all(isinstance(element, ast.Constant) and isinstance(element.value, int) for element in node.elts)
    )


def _missing(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Compare)
        and isinstance(node.ops[0], ast.Eq)
        and _is_status(node.left)
        and isinstance(node.comparators[0], ast.Constant)
        and node.comparators[0].value in (404, 405, 501)
    )


def _leaves(body: Sequence[ast.stmt]) -> bool:
    return any(
        isinstance(node, ast.Return)
        or (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and called(node.value).startswith("skip")
        )
        for node in body
    )


def _said_later(source: Source, test: Found) -> Iterator[Issue]:
    for node in source.below(test.node):
        if isinstance(node, ast.Call) and called(node) in ("warn", "warning", "print") and node.args:
            first = node.args[0]
            words = LATER if called(node) != "print" else PRINTED_LATER
            if isinstance(first, ast.Constant) and isinstance(first.value, str) and words.match(first.value):
                yield source.issue("soft-pass", node, "the test says that it will assert later")


def _raises_nothing(source: Source, test: Found) -> Iterator[Issue]:
    for node in source.below(test.node):
        if isinstance(node, ast.With | ast.AsyncWith) and is_empty(node.body):
            names = {
                called(item.context_expr) for item in node.items if isinstance(item.context_expr, ast.Call)
            }
            if names & {"raises", "assertRaises", "assertRaisesRegex"}:
                yield source.issue("no-error", node, "nothing is run that could raise")


def _expected_failure(source: Source, test: Found) -> Iterator[Issue]:
    for decorator in test.node.decorator_list:
        name = dotted(decorator).rpartition(".")[2]
        if name == "expectedFailure":
            if not _explained(source, test, decorator):
                message = "an expected failure without a reason"
                yield source.issue("xfail", decorator, message)
        elif name == "xfail":
            words = {word.arg for word in decorator.keywords} if isinstance(decorator, ast.Call) else set()
            missing = [word for word in ("reason", "strict") if word not in words]
            if missing:
                message = f"`xfail` without {' and '.join(f'`{word}`' for word in missing)}"
                yield source.issue("xfail", decorator, message)


def _explained(source: Source, test: Found, decorator: ast.expr) -> bool:
    """Whether a docstring or a comment at the head of a test says why it fails."""
    body = test.node.body
    if ast.get_docstring(test.node, clean=False) is not None:
        return True
    first, last = decorator.lineno, body[0].lineno
    comments = any(line in source.comment_lines for line in range(first - 1, last + 1))
    return comments or names_issue(source.said_at(first, last))


def _only_leaves(source: Source, test: Found) -> Iterator[Issue]:
    """A test whose first statement is `return`: all of it is switched off."""
    body = statements(test.node)
    if body and isinstance(body[0], ast.Return) and body[0].value is None and len(body) == 1:
        yield source.issue("empty-test", test.node, f"`{test.node.name}` does nothing")


Check = Callable[[Source, Found], Iterator[Issue]]

CHECKS: tuple[Check, ...] = (
    _cannot_fail,
    _left_early,
    _soft_status,
    _said_later,
    _raises_nothing,
    _expected_failure,
    _only_leaves,
)
