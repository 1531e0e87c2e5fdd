"""
Takes secrets out of what is about to be stored, and leaves `[redacted:NAME]` in their place.

Two sorts are known: values that the environment gives to variables with a telling
name, and texts that have the shape of a secret whoever made them. The rest stays as
it is, byte for byte: hashes, identifiers and paths are what a ledger is about.

Every search starts at a fixed word and goes over a character a bounded number of
times, so the time is linear in the text. A second redaction changes nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, unquote

import msgspec

SHORTEST = 8
"""A value with fewer characters is no secret worth the name, and would be found everywhere."""

TELLING = frozenset({"APIKEY", "AUTH", "AUTHTOKEN", "CREDENTIAL", "CREDENTIALS", "CREDS", "KEY", "PASS"}) | {
    *("PASSPHRASE", "PASSWD", "PASSWORD", "PAT", "PSK", "PWD", "SECRET", "SECRETS", "TOKEN"),
}
"""Words in the name of a variable that make its value a secret. Not `AUTHOR`, `KEYBOARD` or `TOKENIZERS`."""

ROOT = re.compile(
    r"/(?:app|bin|data|dev|etc|home|lib|mnt|nix|opt|private|proc|root|run|srv|sys|tmp|usr|var|Users)(?:/|$)"
)
PLACEHOLDER = re.compile(
    r"\[redacted:|\$[{(]|\$\w+$|[{<]|\*\*\*|%\(|%\w+%$|\.\.\.|(?i:pass|password|passwd|pwd?|secret|token)$"
)
"""What stands for a secret in documents and templates."""

SMALL = 4096
"""Up to so many bytes, one search for any of the words is quicker than one search for each."""

PASSES = 10
"""What one pass replaces may lay bare something else; more than a few in a row do not happen."""

Value = TypeVar("Value", bound=msgspec.Struct)


class Redactor:
    """Knows some secrets and the shapes of many, and takes them out."""

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        """`known` are secrets by name."""
        forms = _forms(known or {})
        self._known = {form: name for name, form in forms}
        names = sorted({*self._known.values(), *(shape.name for shape in SHAPES)})
        self._marks = re.compile(rf"(\[redacted:(?:{'|'.join(map(re.escape, names))})\])")
        longest_first = sorted(self._known, key=lambda form: (-len(form), form))
        self._values = re.compile("|".join(map(re.escape, longest_first))) if forms else None
        self._words = _words(self._known)
        self._any_word = re.compile(b"|".join(map(re.escape, self._words)))

    @classmethod
    def of_environment(cls, environment: Mapping[str, str] | None = None) -> Redactor:
        """One that knows the secrets in the environment, by default that of this process."""
        return cls(dict(secrets_in(os.environ if environment is None else environment)))

    def text(self, text: str) -> str:
        """The text without its secrets."""
        for _ in range(PASSES):
            if len(text) < SHORTEST or not self._may_hold(text.encode("utf-8", "surrogatepass").lower()):
                return text
            cleaned = self._pass(text)
            if cleaned == text:
                return text
            text = cleaned
        return text

    def octets(self, content: bytes) -> bytes:
        """The same for bytes; those that are no UTF-8 stay what they are."""
        if not self._may_hold(content.lower()):
            return content
        return self.text(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def json(self, body: bytes) -> bytes:
        """The same for the strings of an encoded JSON value; without a secret, the very same bytes."""
        if not self._may_hold(body.lower()):
            return body
        value = msgspec.json.decode(body)
        cleaned = self.redact_value(value)
        return body if cleaned == value else msgspec.json.encode(cleaned, order="deterministic")

    def struct(self, value: Value) -> Value:
        """The same for a structure, such as an event."""
        body = msgspec.json.encode(value)
        cleaned = self.json(body)
        return value if cleaned is body else msgspec.json.decode(cleaned, type=type(value))

    def redact_value(self, value: Any) -> Any:
        """The same for every string in a JSON-like value, names of members included."""
        match value:
            case str():
                return self.text(value)
            case bytes():
                return self.octets(value)
            case list() | tuple():
                return type(value)([self.redact_value(item) for item in value])
            case dict():
                return {self.redact_value(key): self._member(key, item) for key, item in value.items()}
        return value

    def _member(self, key: object, item: object) -> object:
        cleaned = self.redact_value(item)
        if isinstance(key, str) and isinstance(cleaned, str) and cleaned == item:
            found = NAMED.fullmatch(key)
            if found and _is_secret(cleaned, found["name"]):
                return mark("secret")
        return cleaned

    def _may_hold(self, lowered: bytes) -> bool:
        """Whether a closer look is worth its time. Most bodies hold none of the words, so this is quick."""
        if len(lowered) <= SMALL:
            return self._any_word.search(lowered) is not None
        return any(word in lowered for word in self._words)

    def _pass(self, text: str) -> str:
        # Odd parts are marks that stand there already; nothing reaches into or across them.
        parts = self._marks.split(text)
        parts[::2] = [self._clean(part) for part in parts[::2]]
        return "".join(parts)

    def _clean(self, text: str) -> str:
        if not text:
            return text
        if self._values is not None and any(form in text for form in self._known):
            text = self._values.sub(lambda found: mark(self._known[found[0]]), text)
        lowered = text.lower()
        for shape in SHAPES:
            if any(word in lowered for word in shape.words):
                text = shape.replace(text)
        return text


def mark(name: str) -> str:
    """What stands where a secret was."""
    return f"[redacted:{name}]"


def secrets_in(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The secrets that an environment holds, by the name of their variable."""
    for name, value in environment.items():
        words = set(re.split(r"[^A-Z]+", name.upper()))
        stripped = value.strip()
        if words & TELLING and _is_value(stripped, words):
            yield name, stripped
        elif (userinfo := URL.search(stripped)) and len(userinfo["secret"]) >= SHORTEST:
            yield name, userinfo["secret"]


def _is_value(value: str, words: set[str]) -> bool:
    """Whether what a variable with a telling name holds is a secret, not a path, an address or a word."""
    if len(value) < SHORTEST or _is_elsewhere(value):
        return False
    if re.fullmatch(r"[\d.,:+-]+", value):
        return bool(words & {"PASS", "PASSPHRASE", "PASSWD", "PASSWORD", "SECRET"})
    return len(value) >= 2 * SHORTEST or not re.fullmatch(r"[A-Z]?(?:[a-z_ -]+|[A-Z_ -]+)", value)


def _is_elsewhere(value: str) -> bool:
    """Whether it says where a secret is, and is none: a placeholder, an address, a path."""
    if PLACEHOLDER.match(value) or "://" in value or value.startswith(("~/", "./", "../")):
        return True
    # What is encoded in base 64 begins with a slash now and then.
    return value.startswith("/") and (bool(ROOT.match(value)) or not _is_random(value))


def _forms(known: Mapping[str, str]) -> list[tuple[str, str]]:
    """Each secret as it is, as it stands in JSON, and as it stands in an address."""
    found: dict[str, str] = {}
    for name, value in sorted(known.items()):
        clean = re.sub(r"[^A-Za-z0-9_.-]", "_", name)
        for form in (value, *_encoded(value)):
            if len(form) >= SHORTEST:
                found.setdefault(form, clean)
    return [(name, form) for form, name in found.items()]


def _encoded(value: str) -> tuple[str, ...]:
    try:
        return msgspec.json.encode(value).decode()[1:-1], quote(value, safe=""), unquote(value)
    except UnicodeEncodeError:  # the environment may hold bytes that are no text
        return ()


def _words(forms: Iterable[str]) -> tuple[bytes, ...]:
    """What to look for first, in text and in JSON alike: the letters of shapes are the same in both."""
    texts = [text for form in forms for text in (form, *_encoded(form)[:1])]
    words = dict.fromkeys([*(word for shape in SHAPES for word in shape.words), *texts])
    return tuple(word.encode("utf-8", "surrogatepass").lower() for word in words)


# Shapes


class Shape(NamedTuple):
    """One way in which secrets look."""

    name: str
    words: tuple[str, ...]
    """In small letters; a text without any of them has no such secret."""
    replace: Callable[[str], str]


NOT_BEFORE = "[A-Za-z0-9_-]"
BEFORE_ALL_THE_SAME = (r"\\[nrt]", r"%[0-9A-Fa-f]{2}", r"\x1b\[\dm", r"\x1b\[\d\dm", r"\x1b\[\d;\d\dm")
"""A token does not begin in the middle of a word, but it may after a written-out line end, or a colour."""


def _token(name: str, words: tuple[str, ...], prefix: str, rest: str, *, check: bool = False) -> Shape:
    """A token that stands for itself. With `check` it must also look random."""
    # The prefix comes first and what is before it is looked at afterwards, so that the search is for a word.
    places = "|".join(f"(?<={before}{prefix})" for before in BEFORE_ALL_THE_SAME)
    compiled = re.compile(f"{prefix}(?:(?<!{NOT_BEFORE}{prefix})|{places}){rest}")

    def replace(text: str) -> str:
        return compiled.sub(
            lambda found: found[0] if check and not _is_random(found[0]) else mark(name), text
        )

    return Shape(name, words, replace)


def _without(found: re.Match[str], group: str, name: str) -> str:
    """What was found, with a mark in place of one group."""
    start, end = (place - found.start() for place in found.span(group))
    return found[0][:start] + mark(name) + found[0][end:]


def _part(name: str, words: tuple[str, ...], pattern: re.Pattern[str], *, check: bool = False) -> Shape:
    """A secret that its surroundings give away, in the group `secret`; the surroundings stay."""

    def one(found: re.Match[str]) -> str:
        secret = found["secret"]
        if PLACEHOLDER.match(secret) or (check and not _is_random(secret)):
            return found[0]
        return _without(found, "secret", name)

    return Shape(name, words, lambda text: pattern.sub(one, text))


BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
BODY = re.compile(r"(?>(?:[^A-Za-z0-9-]{0,8}(?:[nr][^A-Za-z0-9-]{0,8})?[A-Za-z0-9+/=]{40,}+)+)")
LETTERS = re.compile(r"[A-Za-z0-9+/=]{40}")


def _private_keys(text: str) -> str:
    """Blocks up to their end; without one, as far as it looks like a key. Prose about keys stays."""
    parts, done = [], 0
    begins = [found.span() for found in BEGIN.finditer(text)]
    for index, (start, body) in enumerate(begins):
        limit = begins[index + 1][0] if index + 1 < len(begins) else len(text)
        end = END.search(text, body, limit)
        if end and LETTERS.search(text, body, end.start()):
            stop = end.end()
        elif not end and (lines := BODY.match(text, body, limit)):
            stop = lines.end()
        else:
            continue
        parts += [text[done:start], mark("private-key")]
        done = stop
    return "".join([*parts, text[done:]])


URL = re.compile(r"""://[^\s/:@?#"'<>`]{0,256}:(?P<secret>[^\s/?#"'<>`]{1,512})@""")
URL_TOKEN = re.compile(r"""://(?P<secret>[^\s/:@?#"'<>`]{20,512})@""")
HEADER = re.compile(
    r"""(?i:authorization)["']?\s{0,8}[:=]\s{0,8}["']?(?i:bearer|basic|token|digest|apikey)\s{1,8}"""
    r"""(?P<secret>[A-Za-z0-9._~+/=:-]{8,}+)"""
)
BEARER = re.compile(r"\b(?i:bearer)\s{1,8}(?P<secret>[A-Za-z0-9._~+/=-]{20,}+)")
KEY = r"(?:api|access|private|secret|signing|encryption|auth)[_-]?key"
WORD = rf"password|passwd|passphrase|secret|token|credentials?|authorization|{KEY}"
ASSIGNED = re.compile(
    rf"""(?i:(?P<name>{WORD}))[_-]?\d{{0,2}}["'`]?\s{{0,8}}(?::=|=>|[:=])\s{{0,8}}"""
    r"""(?:"(?P<double>[^"\s\\]{8,512}+)"|'(?P<single>[^'\s\\]{8,512}+)'|"""
    r"""(?P<bare>[^\s"'`\\,;()<>\[\]{}]{8,512}+)(?![(\[]))"""
)
NAMED = re.compile(rf"(?i:[A-Za-z0-9_.-]{{0,64}}?(?P<name>{WORD})[_-]?\d{{0,2}})")


def _assigned(text: str) -> str:
    def one(found: re.Match[str]) -> str:
        group = next(group for group in ("double", "single", "bare") if found[group] is not None)
        if not _is_secret(found[group], found["name"]):
            return found[0]
        return _without(found, group, "secret")

    return ASSIGNED.sub(one, text)


def _is_secret(value: str, name: str) -> bool:
    """Whether a value that is assigned to a telling name is one, and not a path, code or a placeholder."""
    if _is_elsewhere(value):
        return False
    if re.fullmatch(r"[A-Za-z_]\w*(?:\.\w+)+", value) or not SHORTEST <= len(value) <= 512:
        return False  # `settings.auth.token2` is where a secret comes from, not one
    if name.lower().startswith("pass"):
        return bool(re.search(r"\d|[^\w\s.:/-]", value)) and bool(re.search(r"[A-Za-z]", value))
    return _is_random(value)


def _is_random(value: str) -> bool:
    """Whether a text looks drawn and not written: `a3f9c2d1`, not `phase-1-of-the-plan-2` or `sha256`."""
    if len(set(value)) < SHORTEST:
        return False
    for stretch in re.findall(r"[A-Za-z0-9]{8,}", value):
        turns = len(re.findall(r"(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])", stretch))
        if turns >= 3 or (turns and len(stretch) >= 2 * SHORTEST):
            return True
    kinds = sum(bool(re.search(kind, value)) for kind in ("[a-z]", "[A-Z]", r"\d"))
    return kinds == 3 and len(set(value)) >= 15 and not re.search(r"[a-z]{6}", value)


SHAPES = (
    Shape("private-key", ("private key",), _private_keys),
    _token("api-key", ("sk-",), "sk-", r"[A-Za-z0-9_-]{20,}+", check=True),
    _token("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), "gh[pousr]_", r"[A-Za-z0-9]{30,}+"),
    _token("github-token", ("github_pat_",), "github_pat_", r"[A-Za-z0-9_]{22,}+"),
    _token("gitlab-token", ("glpat-",), "glpat-", r"[A-Za-z0-9_-]{20,}+"),
    _token("aws-key", ("akia", "asia"), "A(?:KI|SI)A", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _token("slack-token", ("xox",), "xox[a-z]-", r"[A-Za-z0-9-]{10,}+", check=True),
    _token("slack-token", ("xapp-",), "xapp-", r"[A-Za-z0-9-]{10,}+", check=True),
    _token("google-key", ("aiza",), "AIza", r"[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _token("jwt", ("eyj",), "eyJ", r"[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+"),
    _part("authorization", ("authorization",), HEADER),
    _part("authorization", ("bearer",), BEARER, check=True),
    _part("password", ("://",), URL),
    _part("password", ("://",), URL_TOKEN, check=True),
    Shape("secret", ("pass", "secret", "token", "credential", "authorization", "key"), _assigned),
)
