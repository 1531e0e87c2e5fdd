"""How languages with braces are written: JavaScript and TypeScript, Go, Rust, Java, Kotlin, C#, PHP."""

from __future__ import annotations

import re

from planforge.rules.scanning.lexing.engine import (
    Cursor,
    Kind,
    Quote,
    body,
    code,
    comment,
    dialect,
    nested_comment,
    quoted,
    until,
    whole_string,
)

LINE = r"//[^\n]*"
DOUBLE = r'"(?>(?:[^"\\\n]|\\.)*)"?'
SINGLE = r"'(?>(?:[^'\\\n]|\\.)*)'?"


# JavaScript and TypeScript

TEMPLATE = Quote(body(r"[^`\\$]|\\.|\$(?!\{)"), "`", "${")
REGEX = re.compile(r"/(?![*/])(?>(?:[^\\/\[\n]|\\[^\n]|\[(?>(?:[^\]\\\n]|\\[^\n])*)\])+)/[A-Za-z]*+")
WORD = re.compile(r"[\w$]+$")
BEFORE_REGEX = frozenset(
    [
        "return",
        "typeof",
        "case",
        "in",
        "of",
        "delete",
        "void",
        "throw",
        "new",
        "else",
        "do",
        "yield",
        "await",
        "instanceof",
        "default",
    ]
)


def _slash(cursor: Cursor, found: re.Match[str]) -> None:
    start = found.start()
    literal = None
    if start >= cursor.no_regex_before and _value_expected(cursor):
        literal = REGEX.match(cursor.text, start)
        if literal is None:  # one try a line, or a long line of slashes would take for ever
            end = cursor.text.find("\n", start)
            cursor.no_regex_before = end if end >= 0 else len(cursor.text)
    if literal is None:
        cursor.take(Kind.CODE, found.end())
    else:
        cursor.take(Kind.REGEX, literal.end())


def _value_expected(cursor: Cursor) -> bool:
    """Whether a slash here opens a regular expression, judged by what comes before it."""
    tail = cursor.tail
    if not tail:
        return True
    if word := WORD.search(tail):
        return word[0] in BEFORE_REGEX and not tail.endswith(f".{word[0]}")
    if tail[-1] == "}":
        return "\n" in cursor.text[max(cursor.tail_end, cursor.at - 200) : cursor.at]
    return tail[-1] not in ")]\"'`"


def _hashbang(cursor: Cursor) -> None:
    if cursor.text.startswith("#!"):
        end = cursor.text.find("\n")
        cursor.take(Kind.COMMENT, end if end >= 0 else len(cursor.text))


JAVASCRIPT = dialect(
    {
        "line": (LINE, comment),
        "block": (r"/\*", until("*/")),
        "double": (DOUBLE, whole_string),
        "single": (SINGLE, whole_string),
        "template": ("`", quoted(TEMPLATE)),
        "slash": ("/", _slash),
    },
    brackets="{}",
    begin=_hashbang,
)

# Go

GO = dialect(
    {
        "line": (LINE, comment),
        "block": (r"/\*", until("*/")),
        "double": (DOUBLE, whole_string),
        "rune": (SINGLE, whole_string),
        "raw": (r"`[^`]*+`?", whole_string),
    },
)

# Rust

RAW = re.compile(r'(?:b|c)?r(#{0,255})"')


def _rust_raw(cursor: Cursor, found: re.Match[str]) -> None:
    opening = RAW.match(cursor.text, found.start())
    hashes = opening[1] if opening else ""
    end = cursor.text.find(f'"{hashes}', found.end())
    cursor.take(Kind.STRING, end + 1 + len(hashes) if end >= 0 else len(cursor.text))


RUST = dialect(
    {
        "line": (LINE, comment),
        "block": (r"/\*", nested_comment),
        "raw": (r'\b(?:b|c)?r#{0,255}"', _rust_raw),
        "double": (r'"(?>(?s:[^"\\]|\\.)*)"?', whole_string),
        "letter": (r"'(?:\\(?:u\{[^}\n]{0,8}\}|x..|.)|[^\\'\n])'", whole_string),
    },
)

# Java and Kotlin

LETTER = r"'(?:\\[^\n]|[^'\\\n])[^'\n]{0,6}'"

JAVA = dialect(
    {
        "line": (LINE, comment),
        "block": (r"/\*", until("*/")),
        "text": (r'"""(?>(?s:[^"\\]|\\.|"(?!""))*)(?:""")?', whole_string),
        "double": (DOUBLE, whole_string),
        "letter": (LETTER, whole_string),
    },
)

KOTLIN = dialect(
    {
        "line": (LINE, comment),
        "block": (r"/\*", nested_comment),
        "text": ('"""', quoted(Quote(body(r'[^"$]|\$(?!\{)|"(?!"")'), '"""', "${"))),
        "double": ('"', quoted(Quote(body(r'[^"\\$\n]|\\.|\$(?!\{)'), '"', "${"))),
        "letter": (LETTER, whole_string),
    },
    brackets="{}",
)

# C#

RAW_QUOTES = re.compile(r'\${0,8}@?"(?P<marks>"{2,}+)')


def _csharp_raw(cursor: Cursor, found: re.Match[str]) -> None:
    opening = RAW_QUOTES.match(cursor.text, found.start())
    marks = '"' + (opening["marks"] if opening else '""')
    end = cursor.text.find(marks, found.end())
    if end < 0:
        cursor.take(Kind.STRING, len(cursor.text))
        return
    end += len(marks)
    while cursor.text.startswith('"', end):
        end += 1
    cursor.take(Kind.STRING, end)


CSHARP = dialect(
    {
        "line": (LINE, comment),
        "block": (r"/\*", until("*/")),
        "words": (r"^[ \t]*#[ \t]*(?:region|endregion|error|warning|pragma)\b[^\n]*", code),
        "raw": (r'\${0,8}@?"{3,}+', _csharp_raw),
        "hole_verbatim": (r'(?:\$@|@\$)"', quoted(Quote(body(r'[^"{]|""|\{\{'), '"', "{"))),
        "verbatim": (r'@"(?>(?:[^"]|"")*)"?', whole_string),
        "hole": (r'\$"', quoted(Quote(body(r'[^"\\{\n]|\\.|\{\{'), '"', "{"))),
        "double": (DOUBLE, whole_string),
        "letter": (r"'(?:\\[^\n][^'\n]{0,8}|[^'\\\n])'", whole_string),
    },
    brackets="{}",
)

# PHP

OPENING = re.compile(r"<\?(?:php\b|=)?", re.IGNORECASE)
HEREDOC = re.compile(r"<<<[ \t]*([\"']?)([A-Za-z_]\w*)\1[ \t]*\r?\n")


def _html(cursor: Cursor) -> None:
    """Text up to the next `<?` is no code."""
    found = OPENING.search(cursor.text, cursor.at)
    cursor.take(Kind.STRING, found.start() if found else len(cursor.text))
    if found:
        cursor.take(Kind.CODE, found.end())


def _out_of_php(cursor: Cursor, found: re.Match[str]) -> None:
    cursor.take(Kind.CODE, found.end())
    _html(cursor)


def _php_heredoc(cursor: Cursor, found: re.Match[str]) -> None:
    opening = HEREDOC.match(cursor.text, found.start())
    if opening is None:
        cursor.take(Kind.CODE, found.end())
        return
    ending = re.compile(rf"^[ \t]*{opening[2]}\b", re.MULTILINE).search(cursor.text, opening.end())
    if ending is None and cursor.false_heredocs < 8:
        cursor.false_heredocs += 1
        cursor.take(Kind.CODE, found.end())
    else:
        cursor.take(Kind.STRING, ending.end() if ending else len(cursor.text))


PHP = dialect(
    {
        "line": (r"//(?>(?:[^\n?]|\?(?!>))*)", comment),
        "block": (r"/\*", until("*/")),
        "hash": (r"\#(?!\[)(?>(?:[^\n?]|\?(?!>))*)", comment),
        "out": (r"\?>", _out_of_php),
        "heredoc": (r"<<<(?=[ \t]*[\"'A-Za-z_])", _php_heredoc),
        "double": ('"', quoted(Quote(body(r'[^"\\{]|\\.|\{(?!\$)'), '"', "{"))),
        "single": (r"'(?>(?s:[^'\\]|\\.)*)'?", whole_string),
        "shell": (r"`(?>(?s:[^`\\]|\\.)*)`?", whole_string),
    },
    brackets="{}",
    begin=_html,
)
