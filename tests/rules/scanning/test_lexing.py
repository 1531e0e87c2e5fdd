"""Texts are taken apart exactly, whatever they are, in time that grows with their length."""

# ruff: noqa: E501 (tables of examples, one a line)

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import planforge
from growth import growth, repeated
from planforge.rules.scanning.languages import Language
from planforge.rules.scanning.lexing import Kind, blanked, tokens
from tries import tries

LANGUAGES = list(Language)

PIECES = st.sampled_from(
    [
        *"\"'`/\\*#$%{}()[]<>=?:;|-+~!&@, \n\t\r",
        *('"""', "'''", "/*", "*/", "//", "#{", "${", "$(", "<<", "<<~", "<<<", "=begin\n", "=end\n", "?>"),
        *(
            "<?php ",
            "r#",
            '"#',
            "EOF",
            "\nEOF\n",
            "|\n",
            ">\n",
            "  ",
            "a",
            "x1",
            "return",
            "__END__\n",
            "'''",
        ),
        *("\ud7ff", "\u00e9", "\u2028", "\x00", "%w[", "%q(", '$@"', '@"', '$"', "b'", "\\\n", "{{", "}}"),
    ]
)
TEXTS = st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=80).map("".join))


@pytest.mark.parametrize("language", LANGUAGES)
@settings(max_examples=tries(600), deadline=None)
@given(text=TEXTS)
@example(text="")
@example(text="\\")
@example(text='"\\')
@example(text="`${`${`${")
def test_the_parts_of_any_text_are_the_text(language: Language, text: str) -> None:
    parts = tokens(text, language)
    assert "".join(text[part.start : part.end] for part in parts) == text
    assert all(part.start < part.end for part in parts)
    code = blanked(text, parts)
    assert len(code) == len(text)
    assert [at for at, letter in enumerate(code) if letter == "\n"] == [
        at for at, letter in enumerate(text) if letter == "\n"
    ]


HOSTILE = [
    "/[(", "`${", '"', "'", "<<A ", "<<~A\n", "/*", "%w[", "${", "$$$", "- 'a", '- "\\"', ": |\n", "r#", "#{", '"""',
    "?", "\\", "(", "<?php ", "?>", "<<<A\n", " ", "\n", "a", "- ", "$@\"{", "=begin\n", "'''", "x = /", "$(", '"$(',
]  # fmt: skip


@pytest.mark.dear(but="python")
@pytest.mark.parametrize("language", LANGUAGES)
def test_twenty_times_the_text_takes_no_more_than_a_few_times_twenty_times_as_long(
    language: Language,
) -> None:
    """A square would take four hundred times as long."""
    for piece in HOSTILE:
        found = growth(partial(tokens, language=language), partial(repeated, piece), 2_000, 40_000)
        assert found.is_linear, (piece, found)


def shown(text: str, language: Language) -> list[tuple[str, str]]:
    """The parts that are not code."""
    return [
        (part.kind.value, text[part.start : part.end])
        for part in tokens(text, language)
        if part.kind is not Kind.CODE
    ]


JS, GO, RUST, JAVA = Language.JAVASCRIPT, Language.GO, Language.RUST, Language.JAVA
KOTLIN, CSHARP, RUBY, PHP = Language.KOTLIN, Language.CSHARP, Language.RUBY, Language.PHP
SHELL, YAML, PYTHON = Language.SHELL, Language.YAML, Language.PYTHON

CASES = [
    (JS, "a = '//' // b", [("string", "'//'"), ("comment", "// b")]),
    (JS, "a = `x ${f(`y ${z} /*`)} \\` //` /* c */", [
        ("string", "`x ${"), ("string", "`y ${"), ("string", "} /*`"), ("string", "} \\` //`"),
        ("comment", "/* c */"),
    ]),
    (JS, "x = a / b / c; y = /[/'\"]\\//g.test(s)", [("regex", "/[/'\"]\\//g")]),
    (JS, "return /'/.test(x)", [("regex", "/'/")]),
    (JS, "if (x) { } \n/it('a')/.exec(y)", [("regex", "/it('a')/")]),
    (JS, "a = {b: 1} / 2 / 1", []),
    (JS, "'unclosed\nb()", [("string", "'unclosed")]),
    (JS, "#!/usr/bin/env node\nx", [("comment", "#!/usr/bin/env node")]),
    (JS, "`${ {a: 1}['b'] }`", [("string", "`${"), ("string", "'b'"), ("string", "}`")]),
    (JS, "function f() { return `${a}` } // c", [("string", "`${"), ("string", "}`"), ("comment", "// c")]),
    (GO, "a := `raw // \" '` // c", [("string", "`raw // \" '`"), ("comment", "// c")]),
    (GO, "r := '\"'; s := \"x\"", [("string", "'\"'"), ("string", '"x"')]),
    (RUST, "let a: &'static str = r#\"a \"quote\" //\"#; // c", [
        ("string", "r#\"a \"quote\" //\"#"), ("comment", "// c"),
    ]),
    (RUST, "/* a /* b */ c */ fn f<'a>(x: &'a str) { '\\'' }", [
        ("comment", "/* a /* b */ c */"), ("string", "'\\''"),
    ]),
    (RUST, 'let s = "two\nlines"; let b = br"x";', [("string", '"two\nlines"'), ("string", 'br"x"')]),
    (JAVA, 'String s = """\n  "a" // x\n  """; char c = \'"\'; // d', [
        ("string", '"""\n  "a" // x\n  """'), ("string", "'\"'"), ("comment", "// d"),
    ]),
    (KOTLIN, 'val s = "a ${map["k"]} b" /* x /* y */ z */', [
        ("string", '"a ${'), ("string", '"k"'), ("string", '} b"'), ("comment", "/* x /* y */ z */"),
    ]),
    (KOTLIN, 'val s = """raw "x" ${y} """', [("string", '"""raw "x" ${'), ("string", '} """')]),
    (CSHARP, 'var s = $"a {d["k"]:N2} {{b}}"; // c', [
        ("string", '$"a {'), ("string", '"k"'), ("string", '} {{b}}"'), ("comment", "// c"),
    ]),
    (CSHARP, 'var p = @"c:\\" + @"a ""b"" "; var r = """x "y" """;', [
        ("string", '@"c:\\"'), ("string", '@"a ""b"" "'), ("string", '"""x "y" """'),
    ]),
    (CSHARP, "#region Don't\nvar x = 1; // y", [("comment", "// y")]),
    (RUBY, 'x = "a #{h["k"]} b" # c', [
        ("string", '"a #{'), ("string", '"k"'), ("string", '} b"'), ("comment", "# c"),
    ]),
    (RUBY, "a = <<~SQL + <<-'X'\n  select '\n  SQL\n  it 'x'\n  X\nb # c\n", [
        ("string", "  select '\n  SQL"), ("string", "\n  it 'x'\n  X"), ("comment", "# c"),
    ]),
    (RUBY, "a = %w[x y] + %q(it's (nested)) ; b = c / d / e", [
        ("string", "%w[x y]"), ("string", "%q(it's (nested))"),
    ]),
    (RUBY, "assert_match /'#/, x", [("regex", "/'#/")]),
    (RUBY, "=begin\nit 'x'\n=end\nx", [("comment", "=begin\nit 'x'\n=end")]),
    (RUBY, "x = y ? 'a' : \"b\"; z = ?a", [("string", "'a'"), ("string", '"b"'), ("string", "?a")]),
    (RUBY, "x\n__END__\nit 'y'\n", [("string", "__END__\nit 'y'\n")]),
    (RUBY, "list << VALUE\nclass << self\nend", []),
    (PHP, "<p>it's</p><?php $a = 'x'; // c ?><b>it's</b>", [
        ("string", "<p>it's</p>"), ("string", "'x'"), ("comment", "// c "), ("string", "<b>it's</b>"),
    ]),
    (PHP, "<?php\n$a = <<<SQL\n select '\n SQL;\n#[Test]\n# c", [
        ("string", "<<<SQL\n select '\n SQL"), ("comment", "# c"),
    ]),
    (PHP, '<?php $a = "x {$b["k"]} y";', [("string", '"x {'), ("string", '"k"'), ("string", '} y"')]),
    (SHELL, "echo 'a # b' \"c $(d \"e\") f\" # g\n", [
        ("string", "'a # b'"), ("string", '"c $('), ("string", '"e"'), ("string", ') f"'), ("comment", "# g"),
    ]),
    (SHELL, "cat <<EOF\n|| true '\nEOF\nx=${#a} # c\n", [("string", "|| true '\nEOF"), ("comment", "# c")]),
    (SHELL, "a=$((1<<2)); b=c#d; f <<< 'x'", [("string", "'x'")]),
    (YAML, "name: it's fine # c\nrun: |\n  a 'b\n  # no comment\nx: 'y' # d\n", [
        ("comment", "# c"), ("string", "  a 'b\n  # no comment\n"), ("string", "'y'"), ("comment", "# d"),
    ]),
    (YAML, "- run: >-\n    a\n  env: \"b # c\"\n", [("string", "    a\n"), ("string", '"b # c"')]),
    (YAML, "- |\n  text\n- b # c\n", [("string", "  text\n"), ("comment", "# c")]),
    (PYTHON, "x = f'#' + \"\"\"a\n# b\"\"\" # c", [("string", "'#'"), ("string", '"""a\n# b"""'), ("comment", "# c")]),
]  # fmt: skip


@pytest.mark.parametrize(("language", "text", "expected"), CASES)
def test_code_strings_comments_and_regular_expressions_are_told_apart(
    language: Language, text: str, expected: list[tuple[str, str]]
) -> None:
    assert shown(text, language) == expected


def test_what_only_announces_a_heredoc_does_not_hide_the_rest() -> None:
    text = "x = 1 <<NOWHERE\nfoo # seen\n"
    assert ("comment", "# seen") in shown(text, RUBY)


def test_a_stray_quote_in_yaml_ends_with_its_line() -> None:
    assert shown("- 'tis\n- b # c\n", YAML) == [("string", "'tis"), ("comment", "# c")]


def test_blanked_code_keeps_its_places() -> None:
    text = "f('it(', /x/) // it(\ng()"
    code = blanked(text, tokens(text, JS))
    assert code == 'f("   ", " ") ' + " " * 6 + "\ng()"


def test_no_group_is_repeated_in_a_way_that_earlier_pythons_get_wrong() -> None:
    """Python 3.11.2, that of Debian 12, matches `(?:…)*+` wrongly; `(?>(?:…)*)` says the same."""
    root = Path(planforge.__file__).parent
    found = [str(path) for path in root.rglob("*.py") if re.search(r"\)[*+]\+", path.read_text())]
    assert found == []
