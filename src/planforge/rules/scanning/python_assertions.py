"""What a piece of Python asserts, and how much that says."""

from __future__ import annotations

import ast
import re

from planforge.rules.scanning.outlines import Strength

ERROR_NAME = re.compile(r"(?:^|[._])(?:err|error|exc|exception|failure)s?\d?$", re.IGNORECASE)
ASSERTING = re.compile(
    r"_*(?:assert|check|verif|expect|ensure|validat|compar|must|should|confirm|fail|raises|warns"
    r"|deprecated_call"
    r"|require|run_?(?:test|doctest|check|case|subtest|compare)|do_?(?:test|check)|testmod|testfile)"
    r"|.*_(?:assert|asserts|check|checks|equal|test|tester|raises|fails?|valid|works?|ok|roundtrip)$"
    r"|_?_?test(?:_|$)"
    r"|.*(?:Check|Equal|Raises|Test|RoundTrip)$|.*(?:roundtrip|round_trip)",
    re.IGNORECASE,
)
"""Names of functions that probably assert something although they are written elsewhere."""

OF_NAME = {
    Strength.EXACT: (
        "assertEqual assertEquals assertIs assertListEqual assertDictEqual assertTupleEqual assertSetEqual "
        "assertCountEqual assertSequenceEqual assertMultiLineEqual assertIsNone assertHTMLEqual "
        "assertJSONEqual "
        "assertXMLEqual assertQuerySetEqual assertQuerysetEqual assertRedirects assertNumQueries "
        "assert_equal "
        "assert_array_equal assert_called_once_with assert_called_with assert_has_calls assert_not_called "
        "assert_frame_equal assert_series_equal assertRaisesRegex assertRaisesMessage assertWarnsRegex"
    ),
    Strength.CLOSE: (
        "assertAlmostEqual assertAlmostEquals assertRegex assertRegexpMatches assert_allclose "
        "assert_almost_equal "
        "assert_array_almost_equal assert_approx_equal assertRaises assertWarns raises warns assertLogs "
        "assertNoLogs deprecated_call assert_raises assertWarnsMessage"
    ),
    Strength.PRESENT: "assertIsNotNone assertTrue assertFalse assert_called assert_any_call assert_awaited",
    Strength.NO_ERROR: "assertDoesNotRaise assert_does_not_raise does_not_raise not_raises",
}
STRENGTHS = {name: strength for strength, names in OF_NAME.items() for name in names.split()}
RAISING = frozenset(
    [
        "raises",
        "warns",
        "assertRaises",
        "assertRaisesRegex",
        "assertRaisesMessage",
        "assertWarns",
        "assertWarnsRegex",
    ]
)
BROAD = frozenset(("Exception", "BaseException"))
ABOUT_TYPE = frozenset(
    ["isinstance", "issubclass", "hasattr", "all", "any", "callable", "startswith", "endswith"]
)
LENGTHS = frozenset(("len", "sum", "abs"))


def dotted(node: ast.AST | None) -> str:
    """The name that an expression spells, such as `pytest.mark.skip`; parts that are no names are empty."""
    parts: list[str] = []
    while True:
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Name):
            parts.append(node.id)
            break
        else:
            parts.append("")
            break
    return ".".join(reversed(parts))


def called(node: ast.Call) -> str:
    """The last part of the name of what is called."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def is_idle(node: ast.stmt) -> bool:
    """Whether a statement does nothing but give back a constant, or not even that."""
    match node:
        case ast.Pass() | ast.Expr(value=ast.Constant()) | ast.Return(value=None | ast.Constant()):
            return True
    return False


def asserts(node: ast.AST) -> bool:
    """Whether this node, by itself, is an assertion."""
    if isinstance(node, ast.Assert):
        return True
    if isinstance(node, ast.Raise):
        return node.exc is not None and dotted(node.exc).rpartition(".")[2] in (
            "AssertionError",
            "failureException",
        )
    return isinstance(node, ast.Call) and asserting_name(called(node))


ASSERTING_NAME = re.compile(r"_*(?:assert|fail(?!fast|ures|ed_))|.*Assert(?!ion|ing)|.*_assert_")


def asserting_name(name: str) -> bool:
    """Whether a function of this name is known to assert."""
    return bool(ASSERTING_NAME.match(name)) or name in STRENGTHS


def resolve_aliases(tree: ast.Module) -> None:
    """Make `eq(a, b)` the call that it is, where the file says `eq = self.assertEqual`."""
    aliases: dict[str, ast.Attribute] = {}
    calls: list[ast.Call] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            calls.append(node)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            aliases.update(_aliases(node.targets[0], node.value))
    for call in calls if aliases else ():
        if isinstance(call.func, ast.Name) and call.func.id in aliases:
            call.func = ast.copy_location(aliases[call.func.id], call.func)


def _aliases(target: ast.expr, value: ast.expr) -> dict[str, ast.Attribute]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = list(zip(target.elts, value.elts, strict=True))
    else:
        pairs = [(target, value)]
    return {
        name.id: meant
        for name, meant in pairs
        if isinstance(name, ast.Name) and isinstance(meant, ast.Attribute) and asserting_name(meant.attr)
    }


def constant_truth(node: ast.expr) -> bool | None:
    """Whether an expression is surely true or surely false; None if it depends."""
    if isinstance(node, ast.Constant):
        return bool(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = constant_truth(node.operand)
        return None if inner is None else not inner
    if isinstance(node, ast.BoolOp):
        values = [constant_truth(value) for value in node.values]
        deciding = isinstance(node.op, ast.Or)
        return deciding if deciding in values else None
    if isinstance(node, ast.Lambda):
        return True
    return None


def strength(node: ast.AST) -> Strength:
    """How much an assertion says."""
    if isinstance(node, ast.Assert):
        return of_condition(node.test)
    if isinstance(node, ast.Call):
        return _of_call(node)
    return Strength.PARTIAL


def _of_call(node: ast.Call) -> Strength:
    name = called(node)
    if name in ("assertTrue", "assertFalse", "assert_", "ok_") and node.args:
        return of_condition(node.args[0])
    if name == "assertIsNone" and node.args and ERROR_NAME.search(dotted(node.args[0])):
        return Strength.NO_ERROR
    if name in RAISING:
        return _of_raises(node, name)
    if name in ("fail", "failIf"):
        return Strength.PARTIAL
    return STRENGTHS.get(name, Strength.PARTIAL)


def _of_raises(node: ast.Call, name: str) -> Strength:
    kinds = node.args[0].elts if node.args and isinstance(node.args[0], ast.Tuple) else node.args[:1]
    if any(dotted(kind).rpartition(".")[2] in BROAD for kind in kinds):
        return Strength.PARTIAL
    matched = any(word.arg in ("match", "check") for word in node.keywords)
    return (
        Strength.EXACT
        if matched or name not in ("raises", "warns", "assertRaises", "assertWarns")
        else Strength.CLOSE
    )


def of_condition(node: ast.expr) -> Strength:
    """How much is said by asserting that a condition holds."""
    if constant_truth(node):
        return Strength.NOTHING
    if isinstance(node, ast.BoolOp):
        values = [of_condition(value) for value in node.values]
        return max(values) if isinstance(node.op, ast.And) else min(*values, Strength.PARTIAL)
    if isinstance(node, ast.Compare):
        return _of_comparison(node)
    if isinstance(node, ast.UnaryOp):
        inner = of_condition(node.operand)
        return inner if inner is Strength.PARTIAL else Strength.PRESENT
    if isinstance(node, ast.Call) and called(node) in ABOUT_TYPE:
        return Strength.PARTIAL
    return Strength.PRESENT


def _of_comparison(node: ast.Compare) -> Strength:
    operator, right = node.ops[-1], node.comparators[-1]
    nothing = isinstance(right, ast.Constant) and right.value is None
    if isinstance(operator, ast.IsNot | ast.NotEq) and nothing:
        return Strength.PRESENT
    if isinstance(operator, ast.Is | ast.Eq) and nothing and ERROR_NAME.search(dotted(node.left)):
        return Strength.NO_ERROR
    if not isinstance(operator, ast.Eq | ast.Is):
        return Strength.PARTIAL
    nearly = any(isinstance(side, ast.Call) and called(side) == "approx" for side in (node.left, right))
    return Strength.CLOSE if nearly else Strength.EXACT


def subject(node: ast.AST) -> ast.expr | None:
    """What an assertion is about: the left side, or the first argument."""
    if isinstance(node, ast.Assert):
        return _subject_of_condition(node.test)
    if isinstance(node, ast.Call):
        if called(node) in ("assertTrue", "assertFalse") and node.args:
            return _subject_of_condition(node.args[0])
        if called(node) in RAISING:
            return None
        return node.args[0] if node.args else node.func
    return None


def _subject_of_condition(node: ast.expr) -> ast.expr:
    """The value that a condition is about, under what only looks at a part of it."""
    while True:
        if isinstance(node, ast.Compare):
            node = node.left
        elif isinstance(node, ast.UnaryOp):
            node = node.operand
        elif isinstance(node, ast.BoolOp):
            node = node.values[0]
        elif isinstance(node, ast.Call) and called(node) in (
            ABOUT_TYPE | LENGTHS | {"approx", "bool", "round"}
        ):
            inner = node.args[0] if node.args else None
            if isinstance(node.func, ast.Attribute):
                inner = node.func.value
            if inner is None or isinstance(inner, ast.Starred):
                return node
            node = inner
        else:
            return node


def tolerance(node: ast.AST) -> float:
    """How far off a value may be, or how many kinds of errors are right, as far as an assertion says so."""
    found = 0.0
    if (
        isinstance(node, ast.Call)
        and called(node) in RAISING
        and node.args
        and isinstance(node.args[0], ast.Tuple)
    ):
        found = float(len(node.args[0].elts) - 1)
    for part in ast.walk(node):
        if not isinstance(part, ast.Call):
            continue
        for word in part.keywords:
            number = word.value.value if isinstance(word.value, ast.Constant) else None
            if not isinstance(number, int | float) or isinstance(number, bool):
                continue
            if word.arg in ("rel", "abs", "delta", "rtol", "atol", "rel_tol", "abs_tol", "tol"):
                found = max(found, float(number))
            elif word.arg in ("places", "decimal", "significant"):
                found = max(found, 10.0 ** -min(max(number, -300), 300))
    return found
