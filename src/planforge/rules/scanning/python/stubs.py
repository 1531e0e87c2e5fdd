"""
Functions of Python that are there and do nothing yet.

A function of a module that only raises `NotImplementedError`, without saying why it never could do more, is
one. A method that does may be meant for others to override, and what only passes may be all there is to do;
those count only where a comment inside says that something is missing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from planforge.rules.scanning.issues import Issue
from planforge.rules.scanning.python_assertions import dotted, is_idle
from planforge.rules.scanning.source import Source, walk

MISSING = re.compile(r"#\W*(?:(?i:todo|fixme)\b(?!\()|(?i:not (?:yet )?implemented)\b)")
SAYS_SO = re.compile(
    r"\W*(?:todo(?:$|\s*[:!.(]|\s+implement\b)|implement me\b|(?:\S+ )?(?:is )?not (?:yet )?implemented)",
    re.IGNORECASE,
)
OVERRIDDEN = re.compile(r"abstract|overload|hook|singledispatch", re.IGNORECASE)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def stubs(source: Source) -> Iterator[Issue]:
    """Every function that is only there to be written later."""
    if source.path.endswith(".pyi"):
        return
    classes = [node for node in source.nodes if isinstance(node, ast.ClassDef)]
    methods = {id(part) for node in classes for part in walk(node.body, (*FUNCTIONS, ast.ClassDef))}
    for node in source.nodes:
        if not isinstance(node, FUNCTIONS):
            continue
        if any(OVERRIDDEN.search(dotted(decorator)) for decorator in node.decorator_list):
            continue
        body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
        raises = len(body) == 1 and _is_not_implemented(body[0])
        if (raises and id(node) not in methods) or (all(map(_does_nothing, body)) and _admits(source, node)):
            yield source.issue("stub", node, f"`{node.name}` does nothing yet")


def _is_not_implemented(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Raise) or node.exc is None:
        return False
    match node.exc:
        case ast.Name(id="NotImplementedError"):
            return True
        case ast.Call(func=ast.Name(id="NotImplementedError"), args=[]):
            return True
        case ast.Call(func=ast.Name(id="NotImplementedError"), args=[ast.Constant(value=str(words)), *_]):
            return bool(SAYS_SO.match(words))
    return False


def _does_nothing(node: ast.stmt) -> bool:
    """Whether a statement is one that stands in the place of others."""
    return is_idle(node) or _is_not_implemented(node)


def _admits(source: Source, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a comment within a function says that it is not done."""
    head = max([node.lineno, *(part.lineno for part in ast.walk(node.args) if isinstance(part, ast.arg))])
    last = node.end_lineno or node.lineno
    return any(
        MISSING.match(comment.text)
        for line in range(head, last + 1)
        if (comment := source.comment_lines.get(line))
    )
