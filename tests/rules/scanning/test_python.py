"""What the scanner says about Python, by examples: code that breaks a rule, and code that seems to."""

# ruff: noqa: E501 (tables of examples, one a line)

from __future__ import annotations

from textwrap import dedent

import pytest

from planforge.rules.scanning.issues import RULES
from scans import scan

TEST = "tests/test_app.py"


def rules(text: str, path: str = TEST) -> list[str]:
    """The names of the rules that a text breaks."""
    return [issue.rule for issue in scan(path, dedent(text))]


BROKEN = [
    ("soft-pass", "def test_a():\n    assert response.status_code in (200, 404)\n"),
    ("soft-pass", "def test_a(self):\n    self.assertIn(response.status, [200, 500])\n"),
    ("soft-pass", "def test_a():\n    assert r.status_code == 200 or r.status_code == 404\n"),
    ("soft-pass", "def test_a():\n    if r.status_code == 404:\n        return\n    assert r.json() == 1\n"),
    ("soft-pass", "def test_a():\n    assert f() == 1\n    warnings.warn('not yet checked')\n"),
    ("soft-pass", "def test_a():\n    x = f()\n    # will assert once the route exists\n    assert x == 1\n"),
    ("soft-pass", "def test_a():\n    f()\n    # not yet implemented\n"),
    ("soft-pass", "def test_a():\n    try:\n        run()\n    except Exception:\n        pass\n"),
    ("todo", "# TODO: do it\nx = 1\n"),
    ("todo", "x = 1  # FIXME(ada) later\n"),
    ("skip", "@pytest.mark.skip\ndef test_a():\n    assert f() == 1\n"),
    ("skip", "@unittest.skip('later')\ndef test_a():\n    assert f() == 1\n"),
    ("skip", "@pytest.mark.skipif(True, reason='later')\ndef test_a():\n    assert f() == 1\n"),
    ("skip", "def test_a():\n    pytest.skip('later')\n    assert f() == 1\n"),
    ("skip", "class A(TestCase):\n    def setUp(self):\n        self.skipTest('no')\n    def test_a(self):\n        self.assertEqual(f(), 1)\n"),
    ("skip", "pytestmark = pytest.mark.skip(reason='later')\ndef test_a():\n    assert f() == 1\n"),
    ("skip", "raise unittest.SkipTest('no')\n"),
    ("no-error", "def test_a():\n    f()  # should not raise\n"),
    ("no-error", "def test_a():\n    err = f()\n    assert err is None\n"),
    ("no-error", "def test_a(self):\n    try:\n        f()\n    except ValueError:\n        self.fail('raised')\n"),
    ("no-error", "def test_a():\n    with pytest.raises(ValueError):\n        pass\n"),
    ("abandoned", "# waiting for M-012\nx = 1\n"),
    ("abandoned", "# stub for M-001\ndef f(): ...\n"),
    ("always-true", "def test_a():\n    assert True\n"),
    ("always-true", "def test_a():\n    assert (x == 1, 'message')\n"),
    ("always-true", "def test_a():\n    assert f() == 1 or True\n"),
    ("always-true", "def test_a(self):\n    self.assertTrue(True)\n"),
    ("always-true", "def test_a(self):\n    self.assertEqual(1, 1)\n"),
    ("always-true", "def test_a():\n    assert len(x) >= 0\n"),
    ("same-sides", "def test_a():\n    x = f()\n    assert x == x\n"),
    ("same-sides", "def test_a(self):\n    self.assertEqual(user.name, user.name)\n"),
    ("empty-test", "def test_a():\n    pass\n"),
    ("empty-test", 'def test_a():\n    """Says something."""\n'),
    ("empty-test", "def test_a():\n    return\n"),
    ("no-assertion", "def test_a():\n    f()\n"),
    ("swallowed", "def test_a():\n    try:\n        assert f() == 1\n    except Exception:\n        pass\n"),
    ("swallowed", "def test_a():\n    try:\n        assert f() == 1\n    except AssertionError as e:\n        print(e)\n"),
    ("swallowed", "def test_a(self):\n    try:\n        f()\n        self.fail('no')\n    except:\n        pass\n"),
    ("unreachable", "def test_a():\n    return\n    assert f() == 1\n"),
    ("unreachable", "def test_a():\n    x = f()\n    if True:\n        return\n    assert x == 1\n"),
    ("xfail", "@pytest.mark.xfail\ndef test_a():\n    assert f() == 1\n"),
    ("xfail", "@pytest.mark.xfail(reason='slow')\ndef test_a():\n    assert f() == 1\n"),
    ("xfail", "class A(TestCase):\n    @unittest.expectedFailure\n    def test_a(self):\n        self.assertEqual(f(), 1)\n"),
    ("commented-test", "# def test_b():\n#     assert f() == 2\n\ndef test_a():\n    assert f() == 1\n"),
    ("patched-assert", "unittest.TestCase.assertEqual = lambda *a: None\n"),
    ("patched-assert", "setattr(unittest.TestCase, 'assertEqual', print)\n"),
    ("patched-assert", "class A(TestCase):\n    def assertEqual(self, a, b):\n        pass\n"),
    ("forced-outcome", "import sys\nsys.exit(0)\n"),
    ("uncovered", "def f():  # pragma: no cover\n    return 1\n"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "text"), BROKEN)
def test_a_rule_is_found_where_it_is_broken(rule: str, text: str) -> None:
    assert rule in rules(text)
    for issue in scan(TEST, text):
        assert issue.severity is not None
        assert text.split("\n")[issue.line - 1].strip().startswith(issue.snippet[:20])


FINE = [
    ("soft-pass", "def test_a():\n    assert response.status_code == 200\n"),
    ("soft-pass", "def test_a():\n    assert name in ('a', 'b')\n"),
    ("soft-pass", "def test_a():\n    # multidimensional slices are not implemented\n    assert f() == 1\n"),
    ("soft-pass", "def test_a():\n    try:\n        run()\n    except Exception:\n        pass\n    assert state() == 1\n"),
    ("soft-pass", "def test_a():\n    try:\n        run()\n    except Exception:\n        pass\n    else:\n        raise AssertionError\n"),
    ("soft-pass", "def test_a():\n    try:\n        assert f() == 1\n    finally:\n        try:\n            close()\n        except Exception:\n            pass\n"),
    ("soft-pass", "def test_a():\n    text = 'not yet implemented'\n    assert f(text) == 1\n"),
    ("todo", "# TODO(#12): do it\nx = 1\n"),
    ("todo", "# TODO: do it, see\n# https://example.org/12\nx = 1\n"),
    ("todo", "x = 'TODO: do it'\n"),
    ("todo", '"""TODO: a docstring is no comment."""\n'),
    ("todo", "# reads the TODO list of the user\nx = 1\n"),
    ("todo", "# XXX-12 is the name of a format\nx = 1\n"),
    ("skip", "@pytest.mark.skip(reason='see #12')\ndef test_a():\n    assert f() == 1\n"),
    ("skip", "# bpo-12345: broken\n@unittest.skip('broken')\ndef test_a():\n    assert f() == 1\n"),
    ("skip", "@unittest.skipIf(sys.platform == 'win32', 'posix only')\ndef test_a():\n    assert f() == 1\n"),
    ("skip", "def test_a():\n    if not installed():\n        pytest.skip('not installed')\n    assert f() == 1\n"),
    ("skip", "def test_a():\n    assert skip('unittest.skip') == 1\n"),
    ("no-error", "def test_a():\n    f()  # should not raise\n    assert g() == 1\n"),
    ("no-error", "def test_a():\n    err, value = f()\n    assert err is None\n    assert value == 3\n"),
    ("no-error", "def test_a():\n    with pytest.raises(ValueError):\n        f()\n"),
    ("always-true", "def test_a():\n    assert 0xff == 255\n"),
    ("always-true", "def test_a():\n    assert True is f()\n"),
    ("same-sides", "def test_a():\n    assert f() == f()\n"),
    ("same-sides", "def test_equality():\n    x = f()\n    assert x == x\n"),
    ("same-sides", "def test_a():\n    x, y = f(), g()\n    assert x == x\n    assert x != y\n"),
    ("empty-test", "class A(Base):\n    @abc.abstractmethod\n    def test_a(self):\n        pass\n"),
    ("no-assertion", "def test_a():\n    check(f())\n"),
    ("no-assertion", "def helper(x):\n    assert x == 1\n\ndef test_a():\n    helper(f())\n"),
    ("no-assertion", "def one(x):\n    two(x)\n\ndef two(x):\n    assert x\n\ndef test_a():\n    one(f())\n"),
    ("no-assertion", "class A(TestCase):\n    def test_a(self):\n        eq = self.assertEqual\n        eq(f(), 1)\n"),
    ("no-assertion", "class A(Base):\n    def test_a(self):\n        self.compares(f())\n"),
    ("no-assertion", "def test_a(mocked):\n    f()\n    mocked.assert_called_once_with(1)\n"),
    ("no-assertion", "def test_a():\n    with pytest.raises(ValueError):\n        f()\n"),
    ("no-assertion", "def test_a(verify):\n    verify(f())\n"),
    ("swallowed", "def test_a():\n    try:\n        f()\n        assert False\n    except ValueError:\n        pass\n"),
    ("swallowed", "def test_a():\n    try:\n        assert f() == 1\n    except Exception:\n        dump()\n        raise\n"),
    ("unreachable", "def test_a():\n    if windows:\n        return\n    assert f() == 1\n"),
    ("unreachable", "def test_a():\n    def inner():\n        return 1\n    assert inner() == 1\n"),
    ("xfail", "@pytest.mark.xfail(reason='slow', strict=True)\ndef test_a():\n    assert f() == 1\n"),
    ("commented-test", "# see def test_b below\ndef test_b():\n    assert f() == 1\n"),
    ("commented-test", "# rename to\n# def test_c():\ndef test_b():\n    assert f() == 1\n"),
    ("no-assertion", "def checked():\n    return check_warnings(A)\n\ndef test_a():\n    with checked():\n        f()\n"),
    ("no-error", "def test_a(self):\n    try:\n        f()\n    except ValueError:\n        if count() != 1:\n            self.fail('lost')\n"),
    ("patched-assert", "class A:\n    def assertEqual(self, a, b):\n        pass\n"),
    ("patched-assert", "mock.assert_called = 1\n"),
    ("forced-outcome", "if __name__ == '__main__':\n    sys.exit(0)\n"),
    ("forced-outcome", "def test_a():\n    if os.fork() == 0:\n        os._exit(0)\n    assert f() == 1\n"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "text"), FINE)
def test_a_rule_is_not_found_where_it_only_looks_broken(rule: str, text: str) -> None:
    assert rule not in rules(text)


SUPPORT = [
    ("forced-outcome", "def pytest_sessionfinish(session, exitstatus):\n    session.exitstatus = 0\n"),
    ("forced-outcome", "def pytest_sessionfinish(session):\n    os._exit(0)\n"),
    ("forced-outcome", "def pytest_collection_modifyitems(items):\n    items[:] = []\n"),
    ("forced-outcome", "def pytest_collection_modifyitems(items):\n    items.clear()\n"),
    ("forced-outcome", "def pytest_runtest_makereport(item, call):\n    report = yield\n    report.outcome = 'passed'\n"),
    ("patched-assert", "import builtins\nbuiltins.AssertionError = Exception\n"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "text"), SUPPORT)
def test_what_tests_load_may_not_decide_how_they_end(rule: str, text: str) -> None:
    assert rule in rules(text, "tests/conftest.py")


def test_an_object_that_equals_everything_is_found_outside_of_tests() -> None:
    text = "class A:\n    def __eq__(self, other):\n        return True\n"
    assert rules(text, "src/app.py") == ["always-equal"]
    assert rules(text, "tests/test_app.py") == []


def test_a_blocked_module_in_a_message_is_found_in_code_but_not_in_tests() -> None:
    text = "raise NotImplementedError('BLOCKED on M-007')\n"
    assert rules(text, "src/app.py") == ["abandoned"]
    assert rules(text, "tests/test_app.py") == []


def test_a_model_with_a_method_named_like_a_test_is_no_test() -> None:
    model = "class Article(Model):\n    def test_name(self):\n        return 1\n"
    suite = "class Shared(TestCase):\n    def test_name(self):\n        f()\n"
    assert rules(model, "tests/app/models.py") == []
    assert rules(suite, "tests/app/shared.py") == ["no-assertion"]


def test_rules_about_tests_leave_other_code_alone() -> None:
    text = "def test_connection():\n    assert True\n\n@skip\ndef f():\n    pass\n"
    assert rules(text, "src/app.py") == []


def test_a_file_that_does_not_parse_is_still_read() -> None:
    text = """\
    # TODO: mend it
    def test_a(:
        assert f() == 1

    @unittest.skip("later")
    def test_b():
        assert "unclosed
    """
    assert rules(text) == ["todo", "skip"]


def test_settings_can_make_every_expected_failure_strict() -> None:
    text = "@pytest.mark.xfail(reason='slow')\ndef test_a():\n    assert f() == 1\n"
    assert [issue.rule for issue in scan(TEST, text, strict_xfail=True)] == []
    assert [issue.rule for issue in scan(TEST, text)] == ["xfail"]


@pytest.mark.parametrize(
    "path", ["tests/fixtures/test_a.py", "docs/guide.md", "tests/data.json", "a/testdata/b.py"]
)
def test_documents_data_and_fixtures_are_not_code(path: str) -> None:
    assert scan(path, "# TODO: no\ndef test_a():\n    assert True\n") == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\x00",
        "def test_a():\n    assert (" + "(" * 5000,
        "x = " + "[" * 3000,
        "\r\r\n# TODO: a\r",
        "é = 1 # TODO: é",
    ],
)
def test_odd_texts_do_not_stop_a_scan(text: str) -> None:
    assert all(issue.rule in RULES for issue in scan(TEST, text))


def test_lines_and_columns_are_those_of_the_text() -> None:
    (issue,) = scan(TEST, "x = 'é'; y = 1  # TODO: ü\r\n")
    assert (issue.line, issue.column, issue.snippet) == (1, 19, "x = 'é'; y = 1  # TODO: ü")
