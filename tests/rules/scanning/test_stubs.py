"""Code that is there and does nothing yet, and code that only looks so."""

from __future__ import annotations

import pytest

from planforge.rules.findings import Severity
from planforge.rules.scanning.integrity import compare
from scans import scan

STUBS = {
    "raises": ("a.py", "def f():\n    raise NotImplementedError\n"),
    "raises, with a docstring": (
        "a.py",
        'def f():\n    """What it is for."""\n    raise NotImplementedError()\n',
    ),
    "says that it is not there": ("a.py", "def f():\n    raise NotImplementedError('not implemented yet')\n"),
    "async": ("a.py", "async def f():\n    raise NotImplementedError\n"),
    "within a function": (
        "a.py",
        "def f():\n    def g():\n        raise NotImplementedError\n    return g\n",
    ),
    "passes, and says so": ("a.py", "def f():\n    pass  # TODO\n"),
    "returns something, and says so": ("a.py", "def f(price):\n    # TODO: implement\n    return 0\n"),
    "method, and says so": (
        "a.py",
        "class A:\n    def f(self):\n        # FIXME\n        raise NotImplementedError\n",
    ),
    "Rust": ("src/a.rs", "fn f() { todo!() }\n"),
    "Rust without a reason": ("src/a.rs", "fn f() { unimplemented!() }\n"),
    "Kotlin": ("src/a.kt", "fun f(): Int = TODO()\n"),
    "C#": ("src/A.cs", "class A { int F() => throw new NotImplementedException(); }\n"),
    "JavaScript": ("src/a.js", 'function f() { throw new Error("Not implemented yet"); }\n'),
    "TypeScript": ("src/a.ts", "const f = () => { throw new Error(`TODO: f`); };\n"),
    "Java": (
        "src/A.java",
        'class A { int f() { throw new IllegalStateException("Not yet implemented"); } }\n',
    ),
    "Go": ("a.go", 'func f() { panic("TODO") }\n'),
    "Ruby": ("a.rb", "def f\n  raise 'TODO'\nend\n"),
    "PHP": ("a.php", "<?php function f() { throw new \\Exception('todo'); }\n"),
}

NONE = {
    "a method for others to override": (
        "a.py",
        "class A:\n    def f(self):\n        raise NotImplementedError\n",
    ),
    "one under a condition": (
        "a.py",
        "class A:\n    if X:\n        def f(self):\n            raise NotImplementedError\n",
    ),
    "nothing to be done": ("a.py", "def f():\n    pass\n"),
    "never could do more": ("a.py", "def f():\n    raise NotImplementedError('only on Linux')\n"),
    "abstract": ("a.py", "@abstractmethod\ndef f():\n    raise NotImplementedError\n"),
    "a hook": ("a.py", "@pytest.hookspec\ndef f():\n    raise NotImplementedError\n"),
    "only sometimes": ("a.py", "def f(x):\n    if x:\n        raise NotImplementedError\n    return 1\n"),
    "done, with more to do": ("a.py", "def f(x):\n    # TODO: faster\n    return x + 1\n"),
    "types alone": ("a.pyi", "def f(): ...  # TODO\n"),
    "a test": ("tests/test_a.py", "def helper():\n    raise NotImplementedError\n"),
    "in a comment": ("src/a.rs", "// todo!()\nfn f() {}\n"),
    "in a string": ("src/a.js", 'const help = "throw new Error(\\"TODO\\")";\n'),
    "with a reason": ("src/a.rs", 'fn f() { unimplemented!("not on Windows") }\n'),
    "for others to override": ("src/a.js", 'class A { f() { throw new Error("not implemented"); } }\n'),
    "another error": ("a.go", 'func f() { panic("todo list is empty") }\n'),
}


@pytest.mark.parametrize("what", STUBS)
def test_a_stub_is_one(what: str) -> None:
    assert "stub" in [issue.rule for issue in scan(*STUBS[what])]


@pytest.mark.parametrize("what", NONE)
def test_what_only_looks_like_one_is_none(what: str) -> None:
    assert "stub" not in [issue.rule for issue in scan(*NONE[what])]


def test_a_change_that_adds_one_is_refused_and_one_that_finds_it_there_is_not() -> None:
    path, stub = STUBS["raises"]
    added = compare({}, {path: stub})
    assert [(found.severity, found.title) for found in added] == [
        (Severity.BLOCKING, "stub: `f` does nothing yet")
    ]
    assert compare({path: stub}, {path: f"x = 1\n\n\n{stub}"}) == ()
