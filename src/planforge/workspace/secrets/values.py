"""
Secrets whose text is known: what the environment gives to variables with a telling name.

They are looked for byte by byte, in binary files too, as they are and in the ways in
which they are commonly written: in JSON, in an address, in hexadecimal, in base 64
at any place of a longer text, in UTF-16.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote

import msgspec

from planforge.kernel.redaction import SHORTEST, secrets_in

ENOUGH = 12
"""An encoded secret with fewer characters would be found by chance."""

LINE = 20
"""A line of a secret of several lines is one by itself from this length on."""


class Values:
    """Texts that must not be found, each with the name of its variable."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self._forms: dict[bytes, tuple[str, str]] = {}
        for name, value in sorted(known.items()):
            for form in _forms(value):
                self._forms.setdefault(form, (name, value))

    @classmethod
    def of_environment(
        cls, variables: Iterable[str] = (), environment: Mapping[str, str] | None = None
    ) -> Values:
        """Those of the environment, by default that of this process, and what `variables` hold there."""
        found = os.environ if environment is None else environment
        named = {name: found[name] for name in variables if len(found.get(name, "")) >= SHORTEST}
        return cls(dict(secrets_in(found)) | named)

    def find(self, content: bytes, before: bytes = b"") -> Iterator[tuple[int, str, str]]:
        """Where one stands that did not stand in `before`: the line, the variable's name, the value."""
        for form, (name, value) in self._forms.items():
            at = content.find(form)
            if at >= 0 and form not in before:
                yield content.count(b"\n", 0, at) + 1, name, value


def _forms(value: str) -> Iterator[bytes]:
    plain = value.encode("utf-8", "surrogateescape")
    yield plain
    lines = value.splitlines()
    if len(lines) > 1:
        yield from (
            line.strip().encode("utf-8", "surrogateescape") for line in lines if len(line.strip()) >= LINE
        )
    yield from (plain.hex().encode(), plain.hex().upper().encode())
    for offset in range(3):
        encoded = _in_base_64(plain, offset)
        if len(encoded) >= ENOUGH:
            yield from (encoded, encoded.replace(b"+", b"-").replace(b"/", b"_"))
    try:
        yield from (msgspec.json.encode(value)[1:-1], quote(value, safe="").encode())
        yield from (value.encode("utf-16-le"), value.encode("utf-16-be"))
    except UnicodeEncodeError:  # the environment may hold bytes that are no text
        return


def _in_base_64(plain: bytes, offset: int) -> bytes:
    """What is the same in base 64 whatever stands around, if `offset` characters of a group stand before."""
    encoded = b64encode(bytes(offset) + plain)
    return encoded[(0, 2, 3)[offset] : (offset + len(plain)) // 3 * 4]
