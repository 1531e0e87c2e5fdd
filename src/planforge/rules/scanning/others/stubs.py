"""Code in any language but Python that stands where something is still to be written."""

from __future__ import annotations

import re
from collections.abc import Iterator

from planforge.rules.scanning.issues import Issue
from planforge.rules.scanning.languages import Language
from planforge.rules.scanning.source import Source

ALWAYS = {
    Language.RUST: re.compile(r"\btodo!\s*[(\[{]|\bunimplemented!\s*(?:\(\s*\)|\[\s*\]|\{\s*\})"),
    Language.KOTLIN: re.compile(r"(?<![\w.])TODO\s*\("),
    Language.CSHARP: re.compile(r"\bthrow\s+new\s+(?:System\s*\.\s*)?NotImplementedException\s*\("),
}
"""What a language has for nothing else."""

RAISED = {
    Language.JAVASCRIPT: re.compile(r"\bthrow\s+(?:new\s+)?\w*Error\s*\(\s*"),
    Language.JAVA: re.compile(r"\bthrow\s+new\s+\w+(?:Exception|Error)\s*\(\s*"),
    Language.PHP: re.compile(r"\bthrow\s+new\s+\\?[\w\\]*(?:Exception|Error)\s*\(\s*"),
    Language.GO: re.compile(r"\bpanic\s*\(\s*"),
    Language.RUBY: re.compile(r"\braise\s*\(?\s*(?:NotImplementedError\s*,\s*)?(?=[\"'])"),
}
"""What raises an error, up to its message; the message tells whether it is a stub."""

SAYS_SO = re.compile(
    r"[\"'`]\W*(?:todo(?:[\"'`]|\s*[:!.(]|\s+implement\b)|unimplemented\W*[\"'`]"
    r"|not yet implemented\b|not implemented yet\b|implement me\b)",
    re.IGNORECASE,
)


def stubs(source: Source) -> Iterator[Issue]:
    """Every place that says of itself that it is to be written."""
    for found in _found(source):
        yield source.issue("stub", found.start(), f"`{found[0].strip(' ([{')}`: it is not written yet")


def _found(source: Source) -> Iterator[re.Match[str]]:
    always, raised = ALWAYS.get(source.language), RAISED.get(source.language)
    yield from always.finditer(source.code) if always else ()
    for found in raised.finditer(source.code) if raised else ():
        if SAYS_SO.match(source.text, found.end()):
            yield found
