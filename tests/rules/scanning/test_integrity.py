"""Changes that make tests worth less are told; honest changes to tests are not held up."""

# ruff: noqa: E501 (tables of examples, one a line)

from __future__ import annotations

import datetime
import time
from collections.abc import Mapping
from textwrap import dedent

import pytest

from planforge.rules.findings import Finding, Severity
from planforge.rules.scanning.counts import Inventory
from planforge.rules.scanning.inspection import opened
from planforge.rules.scanning.integrity import compare
from planforge.rules.scanning.issues import Waiver
from planforge.rules.scanning.scanner import examine

SUITE = dedent(
    """
    import pytest

    from app.money import add, parse


    def test_addition():
        assert add(1, 2) == 3
        assert add(0, 0) == 0


    @pytest.mark.parametrize(("text", "value"), [("1", 1), ("2", 2), ("-3", -3)])
    def test_parsing(text, value):
        assert parse(text) == value


    def test_bad_text_is_refused():
        with pytest.raises(ValueError, match="not a number"):
            parse("x")


    class TestRounding:
        def test_half(self):
            assert round_(0.5) == pytest.approx(0.5, abs=0.001)

        def test_table(self):
            for given, wanted in [(1, 1), (2, 2), (3, 3)]:
                assert round_(given) == wanted
    """
)
PATH = "tests/test_money.py"
PYTEST = "[pytest]\ntestpaths = tests integration\naddopts = -q\n"


def edited(*pairs: tuple[str, str], text: str = SUITE) -> str:
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def judged(after: str | None, *, pinned: tuple[str, ...] = ()) -> tuple[Finding, ...]:
    """What is said when the suite becomes this."""
    return compare({PATH: SUITE}, {} if after is None else {PATH: after}, pinned)


def blocking(found: tuple[Finding, ...]) -> list[str]:
    return [finding.title for finding in found if finding.severity is Severity.BLOCKING]


def titles(found: tuple[Finding, ...]) -> str:
    return "\n".join(f"{finding.severity.value}: {finding.title}" for finding in found)


ATTACKS = {
    "deletes all tests": (None, "the number of tests fell from 7 to 0"),
    "deletes one test": (
        edited(("def test_addition():\n    assert add(1, 2) == 3\n    assert add(0, 0) == 0\n", "")),
        "the number of tests fell from 7 to 6",
    ),
    "deletes an assertion": (
        edited(("    assert add(0, 0) == 0\n", "")),
        "the number of assertions fell from 10 to 9",
    ),
    "shrinks the parameters": (
        edited((', ("-3", -3)', "")),
        "the number of tests fell from 7 to 6",
    ),
    "shrinks a table in a loop": (
        edited((", (3, 3)]", "]")),
        "the number of assertions fell from 10 to 9",
    ),
    "skips a test": (
        edited(("def test_addition", "@pytest.mark.skip\ndef test_addition")),
        "`test_addition` is skipped now, and no issue is named",
    ),
    "skips a test under a condition": (
        edited(("def test_addition", "@pytest.mark.skipif(not ready(), reason='x')\ndef test_addition")),
        "`test_addition` is skipped now, and no issue is named",
    ),
    "skips inside of a test": (
        edited(("    assert add(1, 2)", "    pytest.skip('flaky')\n    assert add(1, 2)")),
        "`test_addition` is skipped now, and no issue is named",
    ),
    "skips a class": (
        edited(("class TestRounding", "@pytest.mark.skip(reason='x')\nclass TestRounding")),
        "`TestRounding` is skipped now, and no issue is named",
    ),
    "skips the file": (
        edited(("import pytest\n", "import pytest\n\npytestmark = pytest.mark.skip(reason='x')\n")),
        "a whole file is skipped now, and no issue is named",
    ),
    "turns the class off": (
        edited(("class TestRounding:\n", "class TestRounding:\n    __test__ = False\n\n")),
        "`TestRounding` is skipped now, and no issue is named",
    ),
    "lets a test fail": (
        edited(("def test_addition", "@pytest.mark.xfail\ndef test_addition")),
        "`test_addition` may fail now, and no issue is named",
    ),
    "weakens an assertion to nothing": (
        edited(("assert add(1, 2) == 3", "assert add(1, 2) is not None")),
        "an assertion was loosened: it asserted the value, now that there is something",
    ),
    "makes an assertion always true": (
        edited(("assert add(1, 2) == 3", "assert add(1, 2) == 3 or True")),
        "always-true: the condition is always true",
    ),
    "catches the failure": (
        edited(("    assert add(1, 2) == 3\n", "    try:\n        assert add(1, 2) == 3\n    except Exception:\n        pass\n")),
        "swallowed: a failing assertion above is caught here and ignored",
    ),
    "returns first": (
        edited(("    assert add(1, 2)", "    return\n    assert add(1, 2)")),
        "unreachable: the assertions below are never reached",
    ),
    "empties a test": (
        edited(("    assert add(1, 2) == 3\n    assert add(0, 0) == 0\n", "    pass\n")),
        "empty-test: `test_addition` is empty",
    ),
    "renames the test away from the runner": (
        edited(("def test_half", "def check_half")),
        "the number of tests fell from 7 to 6",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("after", "title"), ATTACKS.values(), ids=ATTACKS)
def test_an_attack_on_a_test_file_blocks(after: str | None, title: str) -> None:
    assert title in blocking(judged(after))


LOOSENED = {
    "equal to in": (("assert add(1, 2) == 3", "assert add(1, 2) in (3, 4)"), "an assertion was loosened"),
    "equal to greater": (("assert add(1, 2) == 3", "assert add(1, 2) > 0"), "an assertion was loosened"),
    "equal to nearly": (("assert add(1, 2) == 3", "assert add(1, 2) == pytest.approx(3)"), "an assertion was loosened"),
    "equal to a type": (("assert add(1, 2) == 3", "assert isinstance(add(1, 2), int)"), "an assertion was loosened"),
    "more tolerance": (("abs=0.001", "abs=0.5"), "an assertion allows more than before"),
    "no match": ((', match="not a number"', ""), "an assertion was loosened"),
    "any error": (('ValueError, match="not a number"', "Exception"), "an assertion was loosened"),
}  # fmt: skip


@pytest.mark.parametrize(("edit", "title"), LOOSENED.values(), ids=LOOSENED)
def test_a_loosened_assertion_is_a_finding_that_shows_both_sides(edit: tuple[str, str], title: str) -> None:
    found = [finding for finding in judged(edited(edit)) if finding.title.startswith(title)]
    assert [finding.severity for finding in found] == [Severity.MEDIUM]
    assert found[0].detail.startswith("before: ")
    assert "\nafter: " in found[0].detail
    assert found[0].location.startswith(f"{PATH}::")


def test_another_expected_value_is_told_but_holds_nothing_up() -> None:
    (found,) = judged(edited(("assert add(1, 2) == 3", "assert add(1, 2) == 4")))
    assert (found.severity, found.title) == (Severity.MINOR, "what a test expects was changed")


def test_an_assertion_deleted_while_others_are_added_is_still_told() -> None:
    more = "\ndef test_more():\n    assert add(2, 2) == 4\n    assert add(3, 3) == 6\n"
    found = judged(edited(("    assert add(0, 0) == 0\n", "")) + more)
    assert blocking(found) == []
    assert "medium: an assertion was deleted from a test that is kept" in titles(found)


def test_a_skip_with_an_issue_is_told_but_does_not_block() -> None:
    found = judged(edited(("def test_addition", "@pytest.mark.skip(reason='see #12')\ndef test_addition")))
    assert blocking(found) == []
    assert "medium: `test_addition` is skipped now" in titles(found)


PARTS = SUITE.split("\n\n\n")
HEAD = PARTS[0] + "\n\n\n"

TWINS: dict[str, Mapping[str, str]] = {
    "moves the tests": {"tests/unit/test_amounts.py": SUITE},
    "renames a test": {PATH: edited(("test_addition", "test_amounts_are_added"))},
    "renames a class": {PATH: edited(("TestRounding", "TestRoundingOfHalves"))},
    "adds tests": {PATH: SUITE + "\n\ndef test_more():\n    assert add(2, 2) == 4\n"},
    "adds parameters": {PATH: edited(('("-3", -3)', '("-3", -3), ("4", 4)'))},
    "reformats": {
        PATH: edited(
            ("    assert add(1, 2) == 3\n", "    assert (\n        add(1, 2)\n        == 3\n    )\n"),
            ('match="not a number"', "match='not a number'"),
            ('[("1", 1), ("2", 2), ("-3", -3)]', "[\n    ('1', 1),\n    ('2', 2),\n    ('-3', -3),\n]"),
        )
    },
    "splits the file": {
        "tests/test_adding.py": "\n\n\n".join([HEAD.strip(), PARTS[1], PARTS[2]]),
        "tests/test_rounding.py": "\n\n\n".join([HEAD.strip(), *PARTS[3:]]),
    },
    "turns tests into one with parameters": {
        PATH: edited(
            (
                "def test_addition():\n    assert add(1, 2) == 3\n    assert add(0, 0) == 0\n",
                '@pytest.mark.parametrize(("a", "b", "c"), [(1, 2, 3), (0, 0, 0)])\n'
                "def test_addition(a, b, c):\n    assert add(a, b) == c\n",
            )
        )
    },
    "makes a helper of assertions": {
        PATH: edited(
            (
                "def test_addition():\n    assert add(1, 2) == 3\n    assert add(0, 0) == 0\n",
                "def adds(a, b, c):\n    assert add(a, b) == c\n\n\n"
                "def test_addition():\n    adds(1, 2, 3)\n    adds(0, 0, 0)\n",
            )
        )
    },
    "puts the helper into another file": {
        PATH: edited(
            (
                "def test_addition():\n    assert add(1, 2) == 3\n    assert add(0, 0) == 0\n",
                "def test_addition():\n    adds(1, 2, 3)\n    adds(0, 0, 0)\n",
            )
        ),
        "tests/helpers.py": "def adds(a, b, c):\n    assert add(a, b) == c\n",
    },
    "tightens an assertion": {PATH: edited(("pytest.approx(0.5, abs=0.001)", "0.5"))},
    "adds a test for one platform": {
        PATH: SUITE + "\n\n@pytest.mark.skipif(os.name == 'nt', reason='posix')\ndef test_p():\n    assert f() == 1\n"
    },
    "comments and blank lines": {PATH: edited(("def test_addition():", "# sums\n\ndef test_addition():  # two"))},
}  # fmt: skip


@pytest.mark.parametrize("after", TWINS.values(), ids=TWINS)
def test_an_honest_change_to_tests_does_not_block(after: Mapping[str, str]) -> None:
    found = compare({PATH: SUITE}, after)
    assert blocking(found) == [], titles(found)


def test_a_moved_or_renamed_test_is_the_same_test() -> None:
    for name in ("moves the tests", "renames a test", "renames a class", "splits the file", "reformats"):
        assert compare({PATH: SUITE}, TWINS[name]) == (), name


def test_a_test_that_is_loosened_while_it_moves_is_found_by_its_name() -> None:
    before = {"tests/test_a.py": "class TestA:\n    def test_sum(self):\n        assert add(1, 2) == 3\n"}
    loosened = "    def test_sum(self):\n        assert add(1, 2) is not None\n"
    for after in (
        {"tests/test_b.py": f"class TestA:\n{loosened}"},
        {"tests/test_a.py": f"class TestB:\n{loosened}"},
        {"tests/test_b.py": f"class TestB:\n{loosened}"},
    ):
        assert any(
            title.startswith("an assertion was loosened") for title in blocking(compare(before, after))
        )


def test_a_waiver_lets_new_issues_and_skips_pass_and_nothing_else() -> None:
    attack = edited(
        ("def test_addition", "@pytest.mark.skip\ndef test_addition"),
        ("assert parse(text) == value", "assert parse(text) == value or True"),
        (", (3, 3)]", "]"),
    )
    day = datetime.date(2030, 1, 1)
    waivers = [
        Waiver(rule=rule, path="tests/**", reason="x", expires=day) for rule in ("skip", "always-true")
    ]
    found = compare({PATH: SUITE}, {PATH: attack}, waivers=waivers)
    assert [title.split(" fell")[0] for title in blocking(found)] == [
        "the number of assertions",
        "an assertion was loosened: it asserted the value, now something that cannot fail",
    ]


def test_hundreds_of_renamed_tests_are_the_same_tests() -> None:
    tests = "\n\n".join(
        f"def test_{number}():\n    assert f({number}) == {number}\n" for number in range(500)
    )
    assert compare({PATH: tests}, {PATH: tests.replace("def test_", "def test_of_")}) == ()


def test_a_skip_that_moves_with_its_test_is_not_new() -> None:
    before = edited(("def test_addition", "@pytest.mark.skip\ndef test_addition"))
    after = before.replace("test_addition", "test_sums")
    assert blocking(compare({PATH: before}, {"tests/test_other.py": after})) == []


def test_an_old_empty_test_under_a_new_name_is_not_new() -> None:
    before = "def test_a():\n    pass\n\n\ndef test_b():\n    assert f() == 1\n"
    assert blocking(compare({PATH: before}, {PATH: before.replace("test_a", "test_c")})) == []


PINNED = "tests/acceptance/test_order.py"


def test_a_pinned_test_may_not_be_touched() -> None:
    pinned = ("tests/acceptance/**",)
    texts = {PINNED: SUITE}
    assert blocking(compare(texts, {PINNED: SUITE + "\n# a comment\n"}, pinned)) == [
        "a pinned test was changed"
    ]
    assert "a pinned test was deleted" in blocking(compare(texts, {}, pinned))
    moved = compare(texts, {"tests/test_order.py": SUITE}, pinned)
    assert blocking(moved) == ["a pinned test was deleted"]
    assert compare(texts, texts, pinned) == ()


def test_a_file_among_pinned_tests_may_be_new_unless_tests_load_it() -> None:
    pinned = ("tests/acceptance",)
    added = compare({}, {"tests/acceptance/test_more.py": SUITE}, pinned)
    assert [finding.severity for finding in added] == [Severity.MEDIUM]
    loaded = compare({}, {"tests/acceptance/conftest.py": "x = 1\n"}, pinned)
    assert blocking(loaded) == ["a file was added to the pinned tests"]


NARROWED = [
    ("pytest.ini", PYTEST, PYTEST.replace(" integration", "")),
    ("pytest.ini", PYTEST, PYTEST.replace("-q", "-q -k 'not slow'")),
    ("pytest.ini", PYTEST, PYTEST.replace("-q", "-q --ignore=tests/slow")),
    ("pytest.ini", PYTEST, PYTEST + "norecursedirs = slow\n"),
    ("pytest.ini", PYTEST, PYTEST + "python_files = check_*.py\n"),
    ("pyproject.toml", "[tool.pytest.ini_options]\n", "[tool.pytest.ini_options]\naddopts = ['--deselect=a']\n"),
    ("pyproject.toml", "[tool.pytest.ini_options]\n", "[tool.pytest.ini_options]\ntestpaths = ['tests/unit']\n"),
    ("setup.cfg", "[tool:pytest]\naddopts = -q\n", "[tool:pytest]\naddopts = -q -m fast\n"),
    ("tests/conftest.py", "", "collect_ignore = ['test_slow.py']\n"),
    ("package.json", '{"jest": {}}', '{"jest": {"testPathIgnorePatterns": ["slow"]}}'),
    ("jest.config.js", "module.exports = { testMatch: ['**/*.test.js', '**/*.spec.js'] }", "module.exports = { testMatch: ['**/*.spec.js'] }"),
    ("vitest.config.ts", "export default {}", "export default { test: { exclude: ['slow/**'] } }"),
    ("package.json", '{"scripts": {"test": "jest"}}', '{"scripts": {"test": "jest -t fast"}}'),
    ("package.json", '{"scripts": {"test": "jest"}}', '{"scripts": {"test": "echo fine"}}'),
    ("package.json", '{"scripts": {"test": "jest"}}', '{"scripts": {"test": "jest || true"}}'),
    ("Makefile", "test:\n\tpytest\n", "test:\n\tpytest tests/test_easy.py\n"),
    ("Makefile", "test:\n\tpytest\n\tmypy src\n", "test:\n\tpytest\n"),
    ("Makefile", "test:\n\tpytest\n", "test:\n\t@echo fine\n"),
    ("Makefile", "test:\n\tgo test ./...\n", "test:\n\tgo test -short ./...\n"),
    ("tox.ini", "[testenv]\ncommands = pytest\n", "[testenv]\ncommands = pytest --deselect a\n"),
    (".github/workflows/ci.yml", "jobs:\n  a:\n    steps:\n      - run: npm test\n", "jobs:\n  a:\n    steps:\n      - run: npm run build\n"),
    ("run_tests.sh", "set -e\npytest\n", "set -e\npytest\nexit 0\n# x\npytest || true\n"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "before", "after"), NARROWED)
def test_running_fewer_tests_blocks(path: str, before: str, after: str) -> None:
    assert blocking(compare({path: before}, {path: after}))


WIDER = [
    ("pytest.ini", PYTEST, PYTEST.replace("-q", "-q -ra --strict-markers")),
    ("pytest.ini", PYTEST, PYTEST.replace("integration", "integration acceptance")),
    ("pyproject.toml", "", '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n'),
    ("pyproject.toml", "[project]\nname = 'a'\n", "[project]\nname = 'a'\n[tool.pytest.ini_options]\ntestpaths = ['tests']\n"),
    ("pyproject.toml", "[broken", "[also broken"),
    ("setup.cfg", "[a]\nb = %(c)s\n", "[a]\nb = %(d)s\n"),
    ("package.json", '{"scripts": {"test": "jest -t fast"}}', '{"scripts": {"test": "jest"}}'),
    ("package.json", '{"scripts": {"test": "mocha"}}', '{"scripts": {"test": "vitest run"}}'),
    ("Makefile", "test:\n\tpytest\n", "test:\n\tpytest -q\n\nlint:\n\truff check .\n"),
    ("Makefile", "test:\n\tpytest\n", "test:\n\tpython3 -m pytest\n"),
    (".github/workflows/ci.yml", "jobs:\n  a:\n    steps:\n      - run: pytest\n", "jobs:\n  a:\n    steps:\n      - run: make x\n      - run: pytest\n"),
    ("jest.config.js", "module.exports = { verbose: true }", "module.exports = { verbose: false }"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "before", "after"), WIDER)
def test_running_other_or_more_tests_does_not_block(path: str, before: str, after: str) -> None:
    found = compare({path: before} if before else {}, {path: after})
    assert blocking(found) == [], titles(found)


MILD = [
    ({"tests/__snapshots__/a.snap": "1"}, {"tests/__snapshots__/a.snap": "2"}, "a recorded expectation was changed, and no test with it"),
    ({"tests/golden/a.txt": "1"}, {}, "a recorded expectation was deleted, and no test with it"),
    ({"tests/test_a.py": "@pytest.mark.timeout(5)\ndef test_a():\n    assert f() == 1\n"},
     {"tests/test_a.py": "@pytest.mark.timeout(600)\ndef test_a():\n    assert f() == 1\n"}, "a time limit was raised from 5 to 600"),
    ({"pyproject.toml": "[tool.coverage.report]\nfail_under = 90\n"}, {"pyproject.toml": "[tool.coverage.report]\nfail_under = 50\n"},
     "the least coverage fell from 90 to 50"),
    ({"pytest.ini": "[pytest]\nxfail_strict = true\n"}, {"pytest.ini": "[pytest]\n"}, "`xfail_strict` was turned off"),
    ({"src/a.py": "def f():\n    return 1\n"}, {"src/a.py": "def f():  # pragma: no cover\n    return 1\n"},
     "uncovered: taken out of the measurement of coverage"),
    ({"tests/conftest.py": "x = 1\n"}, {"tests/conftest.py": "def pytest_ignore_collect():\n    return slow()\n"},
     "fewer tests are collected: `pytest_ignore_collect` is new and may leave tests out"),
    ({"tests/test_money.py": "from app.money import add\n\ndef test_a():\n    assert add(1, 2) == 3\n"},
     {"tests/test_money.py": "from app.money import add\n\ndef test_a(mocker):\n    mocker.patch('app.money.add', return_value=3)\n    assert add(1, 2) == 3\n"},
     "`test_a` replaces `app.money.add`, which it is there to test"),
    ({"web/cart.test.ts": "it('a', () => { expect(total()).toBe(1); });\n"},
     {"web/cart.test.ts": "jest.mock('./cart');\nit('a', () => { expect(total()).toBe(1); });\n"},
     "`cart.test.ts` replaces `./cart`, which it is there to test"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "title"), MILD, ids=[title for _, _, title in MILD])
def test_what_may_be_honest_is_a_finding_that_does_not_block(
    before: Mapping[str, str], after: Mapping[str, str], title: str
) -> None:
    found = compare(before, after)
    assert ("medium", title) in [(finding.severity.value, finding.title) for finding in found]
    assert blocking(found) == []


OTHERS = [
    ("web/a.test.js", "it('a', () => { expect(f()).toBe(1); });\n", "it('a', () => { expect(f()).toBeDefined(); });\n"),
    ("web/a.test.js", "it('a', () => { expect(f()).toBe(1); });\n", "it.skip('a', () => { expect(f()).toBe(1); });\n"),
    ("web/a.test.js", "it('a', () => { expect(f()).toBe(1); });\n", "it.only('a', () => { expect(f()).toBe(1); });\n"),
    ("web/a.test.js", "it.each([[1], [2]])('a', (x) => { expect(f(x)).toBe(1); });\n", "it.each([[1]])('a', (x) => { expect(f(x)).toBe(1); });\n"),
    ("a_test.go", 'func TestA(t *testing.T) {\n\tif f() != 1 {\n\t\tt.Error("no")\n\t}\n}\n', "func TestA(t *testing.T) {\n\tf()\n}\n"),
    ("a_test.go", "func TestA(t *testing.T) {\n\tassert.Equal(t, 1, f())\n}\n", "func TestA(t *testing.T) {\n\tassert.NotNil(t, f())\n}\n"),
    ("tests/a.rs", "#[test]\nfn a() {\n    assert_eq!(f(), 1);\n}\n", "#[test]\n#[ignore]\nfn a() {\n    assert_eq!(f(), 1);\n}\n"),
    ("spec/a_spec.rb", "it 'a' do\n  expect(f).to eq(1)\nend\n", "it 'a' do\n  skip\n  expect(f).to eq(1)\nend\n"),
    ("tests/ATest.php", "<?php\nfunction testA() {\n  $this->assertSame(1, f());\n}\n", "<?php\nfunction testA() {\n  $this->assertTrue(true);\n}\n"),
    ("ATest.java", "@Test\nvoid a() { assertEquals(1, f()); }\n", "@Test @Disabled\nvoid a() { assertEquals(1, f()); }\n"),
    ("A.Tests/ATests.cs", "[Fact]\nvoid A() { Assert.Equal(1, F()); }\n", "[Fact]\nvoid A() { Assert.NotNull(F()); }\n"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "before", "after"), OTHERS)
def test_attacks_block_in_other_languages_as_well(path: str, before: str, after: str) -> None:
    assert blocking(compare({path: before}, {path: after}))


REFORMATTED = [
    ("web/a.test.js", "it('a', () => { expect(f( 1,2 )).toBe(1) })\n", 'it("a", () => {\n  expect(\n    f(1, 2),\n  ).toBe(1);\n});\n'),
    ("a_test.go", "func TestA(t *testing.T) {\n  assert.Equal(t, 1, f())\n}\n", "func TestA(t *testing.T) {\n\tassert.Equal(\n\t\tt, 1,\n\t\tf(),\n\t)\n}\n"),
    ("tests/a.rs", "#[test]\nfn a() { assert_eq!(f(), 1); }\n", "#[test]\nfn a() {\n    assert_eq!(\n        f(),\n        1,\n    );\n}\n"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "before", "after"), REFORMATTED)
def test_formatting_changes_nothing_in_other_languages(path: str, before: str, after: str) -> None:
    assert compare({path: before}, {path: after}) == ()


def test_the_counts_of_files_can_be_shown() -> None:
    source, fewer = opened(PATH, SUITE), opened(PATH, edited((', ("-3", -3)', "")))
    assert source is not None
    assert fewer is not None
    assert examine(source, strict_xfail=False).counts == Inventory(tests=7, assertions=10, skips=0)
    assert examine(fewer, strict_xfail=False).counts.tests == 6


def test_helpers_that_all_call_each_other_are_counted_in_bearable_time() -> None:
    names = [f"h{number}" for number in range(30)]
    body = "".join(f"    {name}()\n" for name in names)
    text = "".join(f"def {name}():\n    assert x\n{body}\n\n" for name in names) + f"def test_a():\n{body}"
    start = time.process_time()
    compare({PATH: text}, {PATH: text + "    assert y == 1\n"})
    assert time.process_time() - start < 20


def test_findings_come_worst_first_and_the_same_every_time() -> None:
    after = edited(("assert add(1, 2) == 3", "assert add(1, 2) == 4"), (', ("-3", -3)', ""))
    found = judged(after)
    assert [finding.severity.rank for finding in found] == sorted(
        (finding.severity.rank for finding in found), reverse=True
    )
    assert found == judged(after)
