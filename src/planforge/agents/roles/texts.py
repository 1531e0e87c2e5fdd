"""
Personas and skills as files: a head between two `---` lines, then the text.

The head has `name`, `description` and lists (`responsibilities`, `outputs`, `capabilities`): a small part of
YAML, read here because nothing else of YAML is wanted. A head that cannot be read is an error that names the
file.
"""

from __future__ import annotations

import msgspec

from planforge.errors import InvalidInput
from planforge.kernel.tokens import estimate

MARK = "---"
WORDS = frozenset({"name", "description"})
LISTS = frozenset({"responsibilities", "outputs", "capabilities"})

DESCRIPTION_TOKENS = 100
"""A description is to be read at a glance."""


class Text(msgspec.Struct, frozen=True, kw_only=True):
    """One persona or skill."""

    name: str
    description: str
    responsibilities: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    body: str
    source: str
    """Where it comes from, as people and agents are told."""
    hash: str
    """SHA-256 of the file."""

    @property
    def whole(self) -> str:
        """Everything that it says, for an agent that gets all of it."""
        lists = [
            f"{name.capitalize()}:\n" + "\n".join(f"- {each}" for each in items)
            for name in ("responsibilities", "outputs", "capabilities")
            if (items := getattr(self, name))
        ]
        return "\n\n".join([self.description, *lists, self.body])


def parse(content: bytes, source: str, digest: str) -> Text:
    """Read one file."""
    try:
        lines = content.decode().replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        raise _wrong(source, "it is not UTF-8") from error
    if lines[0].strip() != MARK or MARK not in (line.strip() for line in lines[1:]):
        raise _wrong(source, f"it has no head between two `{MARK}` lines")
    end = next(at for at, line in enumerate(lines[1:], 1) if line.strip() == MARK)
    words, lists = _head(lines[1:end], source)
    for name in sorted(WORDS - words.keys()):
        raise _wrong(source, f"its head has no `{name}`")
    if estimate(len(words["description"])) > DESCRIPTION_TOKENS:
        raise _wrong(source, f"its description is longer than about {DESCRIPTION_TOKENS} tokens")
    body = "\n".join(lines[end + 1 :]).strip()
    return msgspec.convert({**words, **lists, "body": body, "source": source, "hash": digest}, type=Text)


def _head(lines: list[str], source: str) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    words: dict[str, str] = {}
    lists: dict[str, list[str]] = {}
    current = ""
    for number, line in enumerate(lines, 2):
        said = line.strip()
        if not said or said.startswith("#"):
            continue
        if said.startswith("- ") and current:
            lists[current].append(_unquoted(said[2:]))
            continue
        key, colon, value = said.partition(":")
        key, value = key.strip(), _unquoted(value)
        if not colon or key in words or key in lists:
            raise _wrong(source, f"line {number} cannot be read")
        current = ""
        if key in WORDS and value:
            words[key] = value
        elif key in LISTS and not value:
            current = key
            lists[key] = []
        else:
            raise _wrong(source, f"line {number}: `{key}` is not known, or has not the form it must have")
    return words, {name: tuple(items) for name, items in lists.items()}


def _unquoted(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text


def _wrong(source: str, problem: str) -> InvalidInput:
    return InvalidInput(f"`{source}` is not right: {problem}")
