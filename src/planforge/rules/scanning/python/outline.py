"""The tests of a Python file: functions and methods that pytest or unittest would run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from planforge.rules.scanning import python_assertions as assertions
from planforge.rules.scanning.languages import NAMED_TEST, Language
from planforge.rules.scanning.outlines import Assertion, Case, Helper, Outline, Strength
from planforge.rules.scanning.python.skips import Found, Function, skips
from planforge.rules.scanning.python_assertions import (
    ASSERTING,
    asserting_name,
    asserts,
    called,
    constant_truth,
    dotted,
)
from planforge.rules.scanning.source import Source, children, walk

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

QUIET_METHODS = frozenset(
    [
        "addCleanup",
        "addClassCleanup",
        "subTest",
        "skipTest",
        "setUp",
        "tearDown",
        "setUpClass",
        "tearDownClass",
        "id",
        "enterContext",
        "enterClassContext",
        "addTypeEqualityFunc",
        "doCleanups",
        "shortDescription",
        "__init__",
    ]
)
"""What `TestCase` has that asserts nothing."""

ROUNDS = 12
"""How deep helpers that call helpers are followed."""

UNWRAPPED = frozenset(
    ["enumerate", "zip", "sorted", "reversed", "list", "tuple", "set", "iter", "items", "dict"]
)


class Module:
    """What the tests of one module share."""

    def __init__(self, source: Source, tree: ast.Module) -> None:
        self.source = source
        self.tree = tree

    @cached_property
    def tests(self) -> list[Found]:
        """The tests, in order."""
        found = list(_tests(self.tree.body, ()))
        name = self.source.path.rpartition("/")[2]
        if not NAMED_TEST[Language.PYTHON].fullmatch(name):
            # Tests that others import and run, which only a class can say that it is.
            return [test for test in found if test.owners and any(map(_is_suite, test.owners))]
        if any(test.owners for test in found) and "pytest" not in self.source.text:
            found = [test for test in found if test.owners]  # unittest runs no functions
        return found

    @cached_property
    def functions(self) -> list[Function]:
        """Every function of the file, at any depth."""
        return [node for node in self.source.nodes if isinstance(node, FUNCTIONS)]

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all functions and classes of the file."""
        return frozenset(
            node.name for node in self.source.nodes if isinstance(node, (*FUNCTIONS, ast.ClassDef))
        )

    @cached_property
    def asserting(self) -> frozenset[str]:
        """The names of functions and classes of this file that assert something, or call what does."""
        calls: dict[str, set[str]] = {}
        known: set[str] = set()
        for node in self.source.nodes:
            if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                continue
            names = calls.setdefault(node.name, set())
            for part in self.source.below(node):
                if isinstance(part, ast.Call):
                    names.add(called(part))
                elif isinstance(part, ast.Raise | ast.Assert):
                    known.add(node.name)
            if any(asserting_name(name) or self.may_assert_elsewhere(name) for name in names):
                known.add(node.name)
        for _ in range(ROUNDS):
            more = {name for name, names in calls.items() if name not in known and names & known}
            if not more:
                break
            known |= more
        return frozenset(known)

    def may_assert_elsewhere(self, name: str) -> bool:
        """Whether a function that is written elsewhere has a name as if it asserted something."""
        return name not in self.names and bool(ASSERTING.match(name))

    @cached_property
    def tables(self) -> Mapping[str, ast.expr]:
        """What names at the top of the file and of its classes stand for."""
        found: dict[str, ast.expr] = {}
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef):
                found |= dict(_assignments(node.body))
        return found | dict(_assignments(self.tree.body))


def outline(source: Source, *, canonical: bool = False) -> Outline:
    """The tests of a file; `canonical` makes texts comparable across formatting, which takes longer."""
    if source.tree is None:
        return Outline()
    module = Module(source, source.tree)
    cases = tuple(_case(module, test, canonical) for test in module.tests)
    inside = {id(part) for test in module.tests for part in source.below(test.node)}
    loose = tuple(
        _assertion(source, node, 1, canonical)
        for function in module.functions
        if id(function) not in inside
        for node in walk(function.body, FUNCTIONS)
        if asserts(node)
    )
    return Outline(
        cases=cases,
        loose=loose,
        skips=tuple(skips(source, source.tree, module.tests)),
        helpers=helpers(source) if canonical else {},
    )


def helpers(source: Source) -> dict[str, Helper]:
    """The functions of a file that are no tests, with what they assert and call."""
    if source.tree is None:
        return {}
    module = Module(source, source.tree)
    tests = {id(test.node) for test in module.tests}
    found: dict[str, Helper] = {}
    for function in module.functions:
        if id(function) in tests:
            continue
        parts = list(walk(function.body, FUNCTIONS))
        asserted = sum(1 for part in parts if asserts(part))
        calls = frozenset(called(part) for part in parts if isinstance(part, ast.Call)) - {function.name, ""}
        kept = found.get(function.name)
        if kept is None or asserted > kept.assertions:
            found[function.name] = Helper(assertions=asserted, calls=calls)
    return found


def _tests(body: Iterable[ast.stmt], owners: tuple[ast.ClassDef, ...]) -> Iterator[Found]:
    for node in body:
        if isinstance(node, FUNCTIONS):
            if node.name.startswith("test") and node.name != "test_main" and not _is_no_test(node):
                yield Found(node, "::".join([*(owner.name for owner in owners), node.name]), owners)
        elif isinstance(node, ast.ClassDef):
            if _may_hold_tests(node):
                yield from _tests(node.body, (*owners, node))
        elif isinstance(node, ast.If | ast.Try | ast.With):
            yield from _tests(_branches(node), owners)


def _branches(node: ast.If | ast.Try | ast.With) -> Iterator[ast.stmt]:
    yield from node.body
    if isinstance(node, ast.If | ast.Try):
        yield from node.orelse
    if isinstance(node, ast.Try):
        for handler in node.handlers:
            yield from handler.body
        yield from node.finalbody


def _is_suite(node: ast.ClassDef) -> bool:
    """Whether a class says by its name, by those of its bases or by asserting that it is one of tests."""
    names = [node.name, *(dotted(base).rpartition(".")[2] for base in node.bases)]
    if any("test" in name.lower() or name.endswith("Case") for name in names):
        return True
    return any(isinstance(part, ast.Call) and asserting_name(called(part)) for part in ast.walk(node))


def _may_hold_tests(node: ast.ClassDef) -> bool:
    name = node.name.lstrip("_")
    return (
        bool(node.bases) or name.startswith("Test") or name.endswith(("Test", "Tests", "TestCase", "Mixin"))
    )


def _is_no_test(node: Function) -> bool:
    """A fixture, a property, or something for a subclass to write."""
    names = {dotted(decorator).rpartition(".")[2] for decorator in node.decorator_list}
    return not names.isdisjoint(("fixture", "property", "staticmethod", "abstractmethod"))


def statements(node: Function) -> list[ast.stmt]:
    """The body of a function without its docstring."""
    first = node.body[0]
    documented = (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
    return node.body[1:] if documented else node.body


def is_empty(body: Iterable[ast.stmt]) -> bool:
    """Whether statements do nothing at all."""
    return all(
        isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in body
    )


def _case(module: Module, test: Found, canonical: bool) -> Case:
    source, node = module.source, test.node
    made: list[Assertion] = []
    calls: dict[str, int] = {}
    for part, weight, handled in _weighted(module, node):
        if asserts(part):
            made.append(_assertion(source, part, weight, canonical, in_handler=handled))
        elif isinstance(part, ast.Call):
            calls[called(part)] = calls.get(called(part), 0) + weight
    return Case(
        name=test.name,
        at=source.start(node),
        end=_end(source, node),
        assertions=tuple(made),
        may_assert=_may_assert(module, test),
        empty=is_empty(node.body) and f"_{node.name}" not in module.names,
        rows=_rows(module, test),
        body=_text(source, node) if canonical else "",
        calls=calls,
    )


def _end(source: Source, node: Function) -> int:
    """Where a test ends, the comments after its last statement included."""
    last = node.end_lineno or node.lineno
    end = source.offset(last, node.end_col_offset or 0)
    while (comment := source.comment_lines.get(last + 1)) and comment.alone:
        if comment.start - source.starts[last] <= node.col_offset:
            break
        last += 1
        end = comment.start + len(comment.text)
    return end


def _text(source: Source, node: ast.stmt | ast.expr) -> str:
    try:
        if isinstance(node, FUNCTIONS):
            return "\n".join(ast.unparse(part) for part in statements(node))
        return ast.unparse(node)
    except RecursionError:
        return source.segment(node)


def _assertion(
    source: Source, node: ast.AST, weight: int, canonical: bool, *, in_handler: bool = False
) -> Assertion:
    assert isinstance(node, ast.stmt | ast.expr)
    about = assertions.subject(node)
    found = assertions.strength(node)
    if in_handler and not isinstance(node, ast.Assert) and called_fail(node):
        found = Strength.NO_ERROR
    text = (lambda part: _text(source, part)) if canonical else source.segment
    return Assertion(
        text=text(node) if canonical else "",
        subject=(text(about) if about is not None else called_or_nothing(node)) if canonical else "",
        strength=found,
        at=source.start(node),
        weight=weight,
        tolerance=assertions.tolerance(node) if canonical else 0.0,
    )


def called_or_nothing(node: ast.AST) -> str:
    """What assertions about errors are about: that something is raised."""
    return "raises" if isinstance(node, ast.Call) and called(node) in assertions.RAISING else ""


def called_fail(node: ast.AST) -> bool:
    """Whether this fails the test straight away."""
    if isinstance(node, ast.Raise):
        return True
    return isinstance(node, ast.Call) and called(node) in ("fail", "failTest")


def _weighted(module: Module, function: Function) -> list[tuple[ast.AST, int, bool]]:
    """Everything in a test, with how often it runs by the tables there, and whether it handles errors."""
    tables = dict(module.tables) | dict(_assignments(function.body))
    found: list[tuple[ast.AST, int, bool]] = []
    open_: list[tuple[ast.AST, int, bool]] = [(node, 1, False) for node in reversed(function.body)]
    while open_:
        node, weight, handled = open_.pop()
        found.append((node, weight, handled))
        repeated = weight
        if isinstance(node, ast.For | ast.AsyncFor):
            repeated = weight * max(_written_out(node.iter, tables), 1)
        inside = isinstance(node, ast.ExceptHandler) or (handled and not isinstance(node, ast.If))
        open_.extend((child, repeated, inside) for child in reversed(children(node)))
    return found


def _written_out(node: ast.expr, tables: Mapping[str, ast.expr]) -> int:
    """The number of rows of a table; a range is not a table."""
    return 1 if isinstance(node, ast.Call) and called(node) == "range" else length(node, tables) or 1


def _assignments(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for node in body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            yield node.target.id, node.value


def length(node: ast.expr, tables: Mapping[str, ast.expr]) -> int | None:
    """How many elements a table has that is written out; None if that cannot be told."""
    for _ in range(ROUNDS):
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            starred = any(isinstance(element, ast.Starred) for element in node.elts)
            return None if starred else len(node.elts)
        if isinstance(node, ast.Dict):
            return len(node.keys) if None not in node.keys else None
        following = _followed(node, tables)
        if following is None:
            return _range(node)
        node = following
    return None


def _followed(node: ast.expr, tables: Mapping[str, ast.expr]) -> ast.expr | None:
    if isinstance(node, ast.Name):
        return tables.get(node.id)
    if (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("self", "cls")
    ):
        return tables.get(node.attr)
    if isinstance(node, ast.Call) and called(node) in UNWRAPPED:
        if node.args:
            return node.args[0]
        return node.func.value if isinstance(node.func, ast.Attribute) else None
    return None


def _range(node: ast.expr) -> int | None:
    if not (isinstance(node, ast.Call) and called(node) == "range"):
        return None
    numbers = [argument.value if isinstance(argument, ast.Constant) else None for argument in node.args]
    if not numbers or not all(isinstance(number, int) for number in numbers):
        return None
    bounds = [number for number in numbers if isinstance(number, int)]
    return len(range(*bounds)) if len(bounds) < 3 or bounds[2] else None


def _rows(module: Module, test: Found) -> int | None:
    """How many sets of parameters a test has."""
    decorators = [decorator for node in (test.node, *test.owners) for decorator in node.decorator_list]
    total = 1
    for decorator in decorators:
        if not isinstance(decorator, ast.Call):
            continue
        name = dotted(decorator.func).rpartition(".")[2]
        table = _table_of(decorator, name)
        if name == "data":
            total *= max(len(decorator.args), 1)
        elif table is not None:
            rows = length(table, module.tables)
            if rows is None:
                return None
            total *= rows
    return total


def _table_of(decorator: ast.Call, name: str) -> ast.expr | None:
    if name == "parametrize":
        named = [word.value for word in decorator.keywords if word.arg == "argvalues"]
        return decorator.args[1] if len(decorator.args) > 1 else next(iter(named), None)
    if name in ("expand", "parameterized", "parameterized_class") and decorator.args:
        return decorator.args[0]
    return None


def _may_assert(module: Module, test: Found) -> bool:
    """Whether something else is called here that asserts, or that may assert where we cannot see it."""
    parameters = {argument.arg for argument in test.node.args.args} - {"self", "cls"}
    for node in module.source.below(test.node):
        if asserts(node):
            continue
        if isinstance(node, ast.Raise):
            return True
        if isinstance(node, ast.Call) and _call_may_assert(module, node, parameters):
            return True
    return any(ASSERTING.match(dotted(node).rpartition(".")[2]) for node in test.node.decorator_list)


def _call_may_assert(module: Module, node: ast.Call, parameters: set[str]) -> bool:
    name = called(node)
    if name in module.asserting or module.may_assert_elsewhere(name):
        return True
    if isinstance(node.func, ast.Name):
        if name in parameters:  # a fixture that is called may do anything
            return True
    elif isinstance(node.func, ast.Attribute) and name not in module.names and name not in QUIET_METHODS:
        owner = node.func.value
        if isinstance(owner, ast.Name) and owner.id in ("self", "cls"):
            return True
        if isinstance(owner, ast.Call) and called(owner) == "super":
            return True
    passed = [*node.args, *(word.value for word in node.keywords)]
    if any(isinstance(argument, ast.Name) and argument.id == "self" for argument in passed):
        return True
    if any(word.arg == "check" and constant_truth(word.value) for word in node.keywords):
        return True  # a program must end well
    return name == "simplefilter" and any(
        isinstance(argument, ast.Constant) and argument.value == "error" for argument in node.args
    )
