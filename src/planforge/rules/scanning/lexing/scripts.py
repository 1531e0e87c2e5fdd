"""How scripting languages are written: Ruby, shell, and Python where it does not parse."""

from __future__ import annotations

import re

from planforge.rules.scanning.lexing.engine import Cursor, Kind, Quote, body, code, comment, dialect, quoted
from planforge.rules.scanning.lexing.engine import whole_string as string

# Ruby

PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}
PERCENT = re.compile(r"%(?P<what>[qQwWiIrsx]?)(?P<open>[^\w\s])")
RUBY_HEREDOC = re.compile(r"<<(?P<indent>[~-]?)(?P<quote>[\"'`]?)(?P<name>[A-Za-z_]\w*)(?P=quote)")
WORD = re.compile(r"\w+[?!]?$")
BEFORE_VALUE = frozenset(
    [
        "if",
        "unless",
        "when",
        "and",
        "or",
        "not",
        "return",
        "elsif",
        "while",
        "until",
        "puts",
        "in",
        "then",
        "do",
        "case",
        "else",
        "raise",
        "yield",
        "p",
    ]
)
RUBY_QUOTES = {mark: Quote(body(rf"[^{mark}\\#]|\\.|#(?!\{{)"), mark, "#{") for mark in ('"', "`")}
RUBY_REGEX = Quote(body(r"[^/\\#\n]|\\.|#(?!\{)"), "/", "#{", kind=Kind.REGEX)
RUBY_LONG_REGEX = Quote(body(r"[^/\\#]|\\.|#(?!\{)"), "/", "#{", kind=Kind.REGEX)
LINE_ENDS = re.compile(r"[ \t]*\n")


def _value_expected(cursor: Cursor, end: int) -> bool:
    """Whether a value can begin here: not after another one, unless that is a command without brackets."""
    tail = cursor.tail
    if not tail:
        return True
    spaced = cursor.text[cursor.at - 1 : cursor.at].isspace()
    if "\n" in cursor.text[max(cursor.tail_end, cursor.at - 200) : cursor.at]:
        return True
    if word := WORD.search(tail):
        if word[0] in BEFORE_VALUE:
            return True
        return spaced and not word[0].isdigit() and not cursor.text[end : end + 1].isspace()
    return tail[-1] not in ")]}\"'`"


def _ruby_slash(cursor: Cursor, found: re.Match[str]) -> None:
    if cursor.at >= cursor.no_regex_before and _value_expected(cursor, found.end()):
        quote = RUBY_LONG_REGEX if LINE_ENDS.match(cursor.text, found.end()) else RUBY_REGEX
        inside = quote.body.match(cursor.text, found.end())
        end = inside.end() if inside else found.end()
        if cursor.text[end : end + 1] in ("/", "#"):
            cursor.string(quote, found.end())
            return
        stop = cursor.text.find("\n", found.start())
        cursor.no_regex_before = stop if stop >= 0 else len(cursor.text)
    cursor.take(Kind.CODE, found.end())


def _percent(cursor: Cursor, found: re.Match[str]) -> None:
    opening = PERCENT.match(cursor.text, found.start())
    if opening is None or opening["open"] == "=" or not _value_expected(cursor, opening.end()):
        cursor.take(Kind.CODE, found.end())
        return
    end = _bracketed(cursor.text, opening.end(), opening["open"])
    cursor.take(Kind.REGEX if opening["what"] == "r" else Kind.STRING, end)


def _bracketed(text: str, start: int, opening: str) -> int:
    """Where a literal ends that was opened by any character; brackets of the same kind nest."""
    closing = PAIRS.get(opening, opening)
    depth = 1
    marks = re.compile(rf"\\.|[{re.escape(opening + closing)}]", re.DOTALL)
    for mark in marks.finditer(text, start):
        if mark[0] == closing:
            depth -= 1
        elif mark[0] == opening:
            depth += 1
        if not depth:
            return mark.end()
    return len(text)


def _ruby_heredoc(cursor: Cursor, found: re.Match[str]) -> None:
    opening = RUBY_HEREDOC.match(cursor.text, found.start())
    marked = opening is not None and (opening["indent"] or opening["quote"] or opening["name"].isupper())
    if opening and marked and _value_expected(cursor, opening.start("name")):
        cursor.announce(opening["name"], opening.end())
    else:
        cursor.take(Kind.CODE, found.end())


def _rest(cursor: Cursor, found: re.Match[str]) -> None:
    del found
    cursor.take(Kind.STRING, len(cursor.text))


RUBY = dialect(
    {
        "block": (r"^=begin\b(?s:.)*?(?:^=end\b[^\n]*|\Z)", comment),
        "end": (r"^__END__$", _rest),
        "hash": (r"\#[^\n]*", comment),
        "global": (r"\$[\"'`/]", code),
        "letter": (r"(?<![\w)\]}])\?(?:\\.|[^\s\w]|\w(?!\w))", string),
        "double": ('"', quoted(RUBY_QUOTES['"'])),
        "single": (r"'(?>(?s:[^'\\]|\\.)*)'?", string),
        "shell": ("`", quoted(RUBY_QUOTES["`"])),
        "percent": (r"%(?=[qQwWiIrsx]?[^\w\s])", _percent),
        "heredoc": (r"<<(?=[~\-\"'`A-Z_])", _ruby_heredoc),
        "slash": ("/", _ruby_slash),
    },
    brackets="{}",
)

# Shell

SHELL_HEREDOC = re.compile(r"<<-?[ \t]*(?P<quote>[\"'\\]?)(?P<name>[A-Za-z_]\w*)(?P=quote)?")


def _shell_heredoc(cursor: Cursor, found: re.Match[str]) -> None:
    opening = SHELL_HEREDOC.match(cursor.text, found.start())
    if opening:
        cursor.announce(opening["name"], opening.end())
    else:
        cursor.take(Kind.CODE, found.end())


SHELL = dialect(
    {
        "escape": (r"\\.", code),
        "hash": (r"(?<![^\s;&|()`])\#[^\n]*", comment),
        "parameter": (r"\$\{[^{}\"'\n]*+\}", code),
        "ansi": (r"\$'(?>(?s:[^'\\]|\\.)*)'?", string),
        "single": (r"'[^']*+'?", string),
        "double": ('"', quoted(Quote(body(r'[^"\\$]|\\.|\$(?!\()'), '"', "$(", ")"))),
        "here": (r"<<<", code),
        "heredoc": (r"<<-?(?=[ \t]*[\"'\\A-Za-z_])", _shell_heredoc),
    },
    brackets="()",
)

# Python that does not parse

PYTHON = dialect(
    {
        "hash": (r"\#[^\n]*", comment),
        "long_double": (r'"""(?>(?s:[^"\\]|\\.|"(?!""))*)(?:""")?', string),
        "long_single": (r"'''(?>(?s:[^'\\]|\\.|'(?!''))*)(?:''')?", string),
        "double": (r'"(?>(?:[^"\\\n]|\\(?s:.))*)"?', string),
        "single": (r"'(?>(?:[^'\\\n]|\\(?s:.))*)'?", string),
    },
)
