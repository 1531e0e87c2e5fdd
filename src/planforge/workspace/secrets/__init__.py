"""
Secrets, found before anything is committed, logged or sent.

Three ways to find one: its text is known, because the environment of this process has
it; it looks like one to a kept library's detectors or to ours; or the file is one by
its name. Only what a change adds counts. Marks in the text, such as `pragma: allowlist
secret`, excuse nothing, for whoever adds a secret can add the mark: what is none after
all is excused in the settings, by its fingerprint.

What is found is told by place and kind. Its text stays here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from datetime import date

import msgspec

from planforge.workspace.secrets.values import Values

MOST = 50
"""More secrets of one file are not told apart; the change is refused with the first."""

LARGEST = 4 * 1024 * 1024
"""A larger file is no text that anybody wrote; only known values are looked for in it."""


class Secret(msgspec.Struct, frozen=True, kw_only=True):
    """Where a secret is, and of what kind."""

    path: str
    line: int
    """0 for the file as such."""
    kind: str
    fingerprint: str
    """Tells it from others and cannot be turned back; what an exception is made for."""

    def __str__(self) -> str:
        place = f"`{self.path}` line {self.line}" if self.line else f"`{self.path}`"
        return f"{place} ({self.kind}, fingerprint {self.fingerprint})"


class Allowed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A false alarm, or a secret that is accepted."""

    fingerprint: str
    reason: str
    until: date
    """The last day on which it is let through."""


class SecretSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What counts as a secret besides what looks like one, and what does not count."""

    variables: tuple[str, ...] = ()
    """Names of variables whose values are secrets though their names do not say so."""
    allow: tuple[Allowed, ...] = ()


def find_new(
    path: str, before: bytes | None, after: bytes | None, values: Values | None = None
) -> tuple[Secret, ...]:
    """The secrets that a file has after a change and had not before; None where it is not there."""
    if after is None:
        return ()
    known = Values.of_environment() if values is None else values
    places: dict[tuple[int, str], str] = {}
    for line, kind, text in _seen(path, before, after, known):
        places.setdefault((line, text), kind)
        if len(places) >= MOST:
            break
    return tuple(
        Secret(path=path, line=line, kind=kind, fingerprint=fingerprint(text))
        for (line, text), kind in sorted(places.items())
    )


def unexcused(found: Iterable[Secret], allow: Iterable[Allowed], today: date) -> tuple[Secret, ...]:
    """Those that no exception in the settings lets through today."""
    excused = {item.fingerprint for item in allow if item.reason.strip() and today <= item.until}
    return tuple(secret for secret in found if secret.fingerprint not in excused)


def fingerprint(text: str) -> str:
    """What a secret is known by. Slow to make on purpose: from a quick hash a password could be guessed."""
    content = text.encode("utf-8", "surrogateescape")
    return hashlib.scrypt(content, salt=b"planforge secret", n=1024, r=8, p=1, dklen=8).hex()


def _seen(path: str, before: bytes | None, after: bytes, values: Values) -> Iterator[tuple[int, str, str]]:
    had = before or b""
    for line, name, text in values.find(after, had):
        yield line, f"the value of {name}", text
    for _, name, text in values.find(path.encode("utf-8", "surrogateescape")):
        yield 0, f"the value of {name} in its name", text
    if before is None and after.strip() and (kind := by_name(path)):
        yield 0, kind, path
    if b"\0" in after[:8192] or len(after) > LARGEST:
        return
    from planforge.workspace.secrets.detectors import look

    lines = after.decode("utf-8", "surrogateescape").split("\n")
    old = frozenset(had.decode("utf-8", "surrogateescape").split("\n"))
    new = (number for number, line in enumerate(lines, 1) if line not in old)
    for candidate in look(lines, new):
        if candidate.text.encode("utf-8", "surrogateescape") not in had:
            yield candidate


NAMES = {
    "an environment file": r"\.env(?:\.(?!example|sample|template|dist|default|schema|test|ci)[\w-]+)*|"
    r"\w+\.env",
    "a private key": r"id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|.+\.(?:ppk|p12|pfx|jks|keystore|kdbx)",
    "a file of credentials": r"\.netrc|_netrc|\.pgpass|\.git-credentials|\.pypirc|\.htpasswd|\.s3cfg|\.boto|"
    r"credentials(?:\.(?:json|csv|ya?ml|toml|ini))?|client_secrets?.*\.json|service[-_]?account.*\.json|"
    r"secrets?\.(?:json|ya?ml|toml)|kubeconfig|\.dockercfg",
}
"""Files that are secrets by their names, and what each is."""

FIXTURES = re.compile(
    r"(?i)(?:^|/)(?:tests?|testing|testdata|test-data|fixtures?|examples?|samples?|mocks?|docs?)/"
)


def by_name(path: str) -> str:
    """What a file is by its name alone, if that is a secret. Those of tests go by what is in them."""
    if FIXTURES.search(path):
        return ""
    name = path.rpartition("/")[2].rstrip(" .")
    return next((kind for kind, pattern in NAMES.items() if re.fullmatch(pattern, name, re.IGNORECASE)), "")
