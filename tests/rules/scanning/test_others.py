"""What the scanner says about languages other than Python, by examples."""

# ruff: noqa: E501 (tables of examples, one a line)

from __future__ import annotations

from functools import partial

import pytest

from growth import growth, repeated
from planforge.rules.scanning.inspection import opened
from planforge.rules.scanning.scanner import examine
from scans import scan

PATHS = {
    "js": "web/app.test.ts",
    "go": "app/app_test.go",
    "rust": "tests/app.rs",
    "java": "src/test/java/AppTest.java",
    "kotlin": "src/test/kotlin/AppTest.kt",
    "csharp": "App.Tests/AppTests.cs",
    "ruby": "spec/app_spec.rb",
    "php": "tests/AppTest.php",
    "bats": "tests/app.bats",
}


def found(language: str, text: str) -> list[str]:
    """The names of the rules that a test file breaks."""
    return [issue.rule for issue in scan(PATHS[language], text)]


def js(body: str) -> str:
    return f"it('works', async () => {{\n  {body}\n}});\n"


def go(body: str) -> str:
    return f"func TestWorks(t *testing.T) {{\n\t{body}\n}}\n"


def rust(body: str, above: str = "#[test]") -> str:
    return f"{above}\nfn works() {{\n    {body}\n}}\n"


def java(body: str, above: str = "@Test") -> str:
    return f"class AppTest {{\n  {above}\n  public void works() throws Exception {{\n    {body}\n  }}\n}}\n"


def kotlin(body: str, above: str = "@Test") -> str:
    return f"class AppTest {{\n  {above}\n  fun `does it`() {{\n    {body}\n  }}\n}}\n"


def csharp(body: str, above: str = "[Fact]") -> str:
    return f"class AppTests {{\n  {above}\n  public async Task Works() {{\n    {body}\n  }}\n}}\n"


def ruby(body: str) -> str:
    return f"describe App do\n  it 'works' do\n    {body}\n  end\nend\n"


def php(body: str) -> str:
    return f"<?php\nclass AppTest extends TestCase {{\n  public function testWorks(): void {{\n    {body}\n  }}\n}}\n"


def bats(body: str) -> str:
    return f'@test "works" {{\n  {body}\n}}\n'


BROKEN = [
    ("soft-pass", "js", js("expect(res.status).to.be.oneOf([200, 404]);")),
    ("soft-pass", "js", js("expect([200, 404]).toContain(res.status);")),
    ("soft-pass", "js", js("if (res.status === 404) { return; }\n  expect(res.body).toBe(1);")),
    ("soft-pass", "js", js("console.warn('not yet wired');\n  expect(a).toBe(1);")),
    ("soft-pass", "js", js("expect(a).toBe(1);\n  // tracked as follow-up")),
    ("soft-pass", "js", js("try { run(); } catch (e) {}")),
    ("soft-pass", "ruby", ruby("begin\n      run\n    rescue StandardError\n    end")),
    ("soft-pass", "php", php("try { run(); } catch (\\Exception $e) { }")),
    ("soft-pass", "csharp", csharp("try { Run(); } catch { }")),
    ("soft-pass", "java", java("try { run(); } catch (Throwable t) { }")),
    ("todo", "js", "// TODO: later\n"),
    ("todo", "go", "/* FIXME: later */\n"),
    ("todo", "ruby", "# HACK: later\n"),
    ("skip", "js", "it.skip('works', () => { expect(a).toBe(1); });\n"),
    ("skip", "js", "xdescribe('all', () => { it('works', () => { expect(a).toBe(1); }); });\n"),
    ("skip", "js", "it.todo('works');\n"),
    ("skip", "js", js("pending('later');\n  expect(a).toBe(1);")),
    ("skip", "js", js("this.skip();\n  expect(a).toBe(1);")),
    ("skip", "go", go('t.Skip("later")\n\tif a != 1 { t.Fatal("no") }')),
    ("skip", "rust", rust("assert_eq!(a, 1);", "#[test]\n#[ignore]")),
    ("skip", "java", java("assertEquals(1, a);", '@Disabled("later")\n  @Test')),
    ("skip", "kotlin", kotlin("assertEquals(1, a)", "@Test\n  @Ignore")),
    ("skip", "csharp", csharp("Assert.Equal(1, a);", '[Fact(Skip = "later")]')),
    ("skip", "ruby", ruby("skip 'later'\n    expect(a).to eq(1)")),
    ("skip", "ruby", "xit 'works' do\n  expect(a).to eq(1)\nend\n"),
    ("skip", "php", php("$this->markTestSkipped('later');\n    $this->assertSame(1, $a);")),
    ("skip", "bats", bats("skip 'later'\n  [ 1 -eq 2 ]")),
    ("no-error", "js", js("expect(() => run()).not.toThrow();")),
    ("no-error", "js", js("expect(err).toBeNull();")),
    ("no-error", "go", go("err := run()\n\tassert.NoError(t, err)")),
    ("no-error", "go", go("err := run()\n\tif err != nil {\n\t\tt.Fatal(err)\n\t}")),
    ("no-error", "java", java("assertDoesNotThrow(() -> run());")),
    ("no-error", "ruby", ruby("expect { run }.not_to raise_error")),
    ("no-error", "php", php("$this->expectNotToPerformAssertions();\n    run();")),
    ("abandoned", "go", "// pending M-004 implementation\n"),
    ("abandoned", "java", "/* blocked on M-123 */\n"),
    ("always-true", "js", js("expect(true).toBe(true);")),
    ("always-true", "js", js("assert.ok(true);")),
    ("always-true", "js", js("expect(1).toEqual(1);")),
    ("always-true", "go", go("assert.True(t, true)")),
    ("always-true", "rust", rust("assert!(true);")),
    ("always-true", "java", java("assertTrue(true);")),
    ("always-true", "kotlin", kotlin("assertTrue(true)")),
    ("always-true", "csharp", csharp("Assert.True(true);")),
    ("always-true", "ruby", ruby("expect(true).to be true")),
    ("always-true", "php", php("$this->assertTrue(true);")),
    ("same-sides", "js", js("expect(user).toBe(user);")),
    ("same-sides", "go", go("assert.Equal(t, got, got)")),
    ("same-sides", "rust", rust("assert_eq!(a, a);")),
    ("same-sides", "java", java("assertEquals(a, a);")),
    ("same-sides", "php", php("$this->assertSame($a, $a);")),
    ("empty-test", "js", "it('works', () => {});\n"),
    ("empty-test", "go", go("")),
    ("empty-test", "rust", rust("")),
    ("empty-test", "java", java("// later")),
    ("empty-test", "csharp", csharp("")),
    ("empty-test", "ruby", ruby("")),
    ("empty-test", "php", php("")),
    ("no-assertion", "js", js("run();")),
    ("no-assertion", "go", go("run()")),
    ("no-assertion", "rust", rust("run();")),
    ("no-assertion", "java", java("run();")),
    ("no-assertion", "csharp", csharp("Run();")),
    ("no-assertion", "ruby", ruby("run")),
    ("no-assertion", "php", php("run();")),
    ("swallowed", "js", js("try { expect(a).toBe(1); } catch (e) { console.log(e); }")),
    ("swallowed", "csharp", csharp("try { Assert.Equal(1, a); } catch (Exception e) { }")),
    ("swallowed", "php", php("try { $this->assertSame(1, $a); } catch (\\Throwable $e) { }")),
    ("swallowed", "java", java("try { assertEquals(1, a); } catch (Throwable t) { }")),
    ("unreachable", "js", js("run();\n  return;\n  expect(a).toBe(1);")),
    ("unreachable", "go", go('return\n\tt.Fatal("no")')),
    ("unreachable", "java", java("run();\n    return;\n    assertEquals(1, a);")),
    ("only", "js", "it.only('works', () => { expect(a).toBe(1); });\n"),
    ("only", "js", "fdescribe('all', () => {});\n"),
    ("only", "ruby", "fit 'works' do\n  expect(a).to eq(1)\nend\n"),
    ("only", "go", 'var _ = FDescribe("all", func() {})\n'),
    ("commented-test", "js", "// it('works', () => {\n//   expect(a).toBe(1);\n// });\n"),
    ("commented-test", "go", "// func TestWorks(t *testing.T) {\n// }\n"),
    ("commented-test", "java", "/*\n  @Test\n  void works() {}\n*/\n"),
    ("commented-test", "ruby", "# it 'works' do\n# end\n"),
    ("commented-test", "rust", "// #[test]\n// fn works() {}\n"),
    ("commented-test", "csharp", "// [Fact]\n// void Works() {}\n"),
    ("commented-test", "php", "<?php\n// public function testWorks() {\n// }\n"),
    ("patched-assert", "js", "global.expect = () => ({ toBe() {} });\n"),
    ("uncovered", "js", "/* istanbul ignore next */\nfunction f() {}\n"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "language", "text"), BROKEN)
def test_a_rule_is_found_where_it_is_broken(rule: str, language: str, text: str) -> None:
    assert rule in found(language, text)


FINE = [
    ("soft-pass", "js", js("expect(res.status).toBe(200);")),
    ("soft-pass", "js", js("try { run(); } catch (e) {}\n  expect(a).toBe(1);")),
    ("soft-pass", "js", js("const s = 'try {} catch (e) {}';\n  expect(s).toBe(1);")),
    ("soft-pass", "java", java("try { run(); fail(); } catch (IOException expected) { }")),
    ("swallowed", "java", java("try { run(); fail(); } catch (Exception expected) { }")),
    ("swallowed", "js", js("try { expect(a).toBe(1); } catch (e) { cleanUp(); throw e; }")),
    ("todo", "js", "const s = 'TODO: later'; // see issue 12\n"),
    ("todo", "js", "// TODO: later, see https://example.org/issues/12\n"),
    ("todo", "js", "const t = `// TODO: later`;\n"),
    ("todo", "go", 'var s = "// TODO: later"\n'),
    ("skip", "js", "it.skip('works', () => { expect(a).toBe(1); }); // #12\n"),
    ("skip", "js", "const s = \"it.skip('works')\";\n"),
    ("skip", "go", go('if testing.Short() {\n\t\tt.Skip("slow")\n\t}\n\tif a != 1 { t.Fatal("no") }')),
    ("skip", "rust", rust("assert_eq!(a, 1);", '#[test]\n#[ignore = "see #12"]')),
    ("skip", "java", java("assertEquals(1, a);", '@Disabled("ABC-12")\n  @Test')),
    ("skip", "ruby", ruby("skip 'on windows' if windows?\n    expect(a).to eq(1)")),
    ("skip", "php", php("if (!$x) {\n      $this->markTestSkipped('later');\n    }\n    $this->assertSame(1, $a);")),
    ("no-error", "js", js("expect(() => run()).not.toThrow();\n  expect(a).toBe(1);")),
    ("no-error", "go", go("err := run()\n\trequire.NoError(t, err)\n\tassert.Equal(t, 1, got)")),
    ("no-error", "go", go('if err != nil {\n\t\tt.Fatal(err)\n\t}\n\tif got != 1 {\n\t\tt.Error("no")\n\t}')),
    ("always-true", "js", js("expect(a).toBe(true);")),
    ("always-true", "java", java("assertTrue(isTrue);")),
    ("same-sides", "js", js("expect(f()).toBe(f());")),
    ("same-sides", "rust", rust("assert_eq!(a, b);")),
    ("no-assertion", "js", "function check(x) { expect(x).toBe(1); }\n" + js("check(run());")),
    ("no-assertion", "js", js("await screen.findByText('hello');")),
    ("no-assertion", "go", go("helper(t, 1)")),
    ("no-assertion", "rust", rust("run();", "#[test]\n#[should_panic]")),
    ("no-assertion", "rust", rust("run().unwrap();")),
    ("no-assertion", "java", java("run();", "@Test(expected = IOException.class)")),
    ("empty-test", "js", js("expect(a).toBe(1);")),
    ("unreachable", "js", js("if (a) {\n    return;\n  }\n  expect(a).toBe(1);")),
    ("only", "js", js("model.fit('x');\n  expect(only).toBe(1);")),
    ("only", "js", "// it.only('works')\nconst s = 'it.only(';\n"),
    ("commented-test", "js", "/** it('works', () => {}) shows how */\n"),
    ("commented-test", "rust", "/// ```\n/// #[test]\n/// ```\n"),
    ("patched-assert", "js", js("if (global.expect === 1) { }\n  expect(a).toBe(1);")),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "language", "text"), FINE)
def test_a_rule_is_not_found_where_it_only_looks_broken(rule: str, language: str, text: str) -> None:
    assert rule not in found(language, text)


COUNTS = [
    ("js", js("expect(a).toBe(1);\n  expect(b).toEqual([1]);"), (1, 2, 0)),
    ("js", "it.each([[1, 2], [3, 4], [5, 6]])('adds %i', (a, b) => { expect(a).toBe(b); });\n", (3, 3, 0)),
    ("js", "describe('x', () => { it('a', () => { expect(1).toBe(a); }); it('b', f); });\n", (2, 1, 0)),
    ("go", go('tests := []struct{ a, b int }{\n\t\t{1, 2},\n\t\t{3, 4},\n\t}\n\tfor _, c := range tests {\n\t\tif c.a != c.b { t.Error("no") }\n\t}'), (2, 2, 0)),
    ("rust", rust("assert_eq!(a, 1);", "#[rstest]\n#[case(1)]\n#[case(2)]"), (2, 2, 0)),
    ("java", java("assertEquals(1, a);", "@ParameterizedTest\n  @ValueSource(ints = {1, 2, 3})"), (3, 3, 0)),
    ("csharp", csharp("Assert.Equal(1, a);", "[Theory]\n  [InlineData(1)]\n  [InlineData(2)]"), (2, 2, 0)),
    ("kotlin", kotlin("assertEquals(1, a)"), (1, 1, 0)),
    ("ruby", ruby("expect(a).to eq(1)\n    assert_equal 1, b"), (1, 2, 0)),
    ("php", php("$this->assertSame(1, $a);"), (1, 1, 0)),
    ("bats", bats("skip 'x'\n  run f"), (1, 1, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("language", "text", "expected"), COUNTS)
def test_tests_assertions_and_skips_are_counted(
    language: str, text: str, expected: tuple[int, int, int]
) -> None:
    source = opened(PATHS[language], text)
    assert source is not None
    counted = examine(source, strict_xfail=False).counts
    assert (counted.tests, counted.assertions, counted.skips) == expected


HOSTILE = [
    "it 'a' do\n",
    "it('a', () => { expect(\n",
    "def test_a\n  assert (a\n",
    "expect(a)\n",
    "# TODO\n",
    "try { } catch (e) {}\n",
]


@pytest.mark.parametrize("path", [*PATHS.values(), "run_tests.sh", ".github/workflows/ci.yml", "Makefile"])
def test_a_text_that_nobody_would_write_is_scanned_in_bearable_time(path: str) -> None:
    for piece in HOSTILE:
        found = growth(partial(scan, path), partial(repeated, piece), 2_000, 20_000)
        assert found.is_linear, (piece, found)


def test_what_jest_loads_may_not_end_the_run() -> None:
    text = "afterAll(() => { process.exit(0); });\n"
    assert [issue.rule for issue in scan("jest.setup.js", text)] == ["forced-outcome"]
    assert scan("jest.setup.js", "afterAll(() => { process.exit(1); });\n") == ()
