"""How many lines the tests went through: the JSON of coverage.py and of istanbul, Cobertura XML, LCOV."""

from __future__ import annotations

from pathlib import Path

import msgspec

from planforge.kernel.evidence import Coverage
from planforge.workspace.reports.tally import content_of, decoded, parse_xml


def read_coverage(path: Path) -> Coverage | None:
    """The lines covered and the lines there are, by whichever of the known formats the file has."""
    content = content_of(path)
    if content is None:
        return None
    opening = content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    reader = {b"{": _json, b"<": _cobertura}.get(opening, _lcov)
    found = reader(content)
    sensible = found is not None and 0 <= found.covered <= found.total
    return found if sensible else None


class _Totals(msgspec.Struct):
    covered: int = msgspec.field(name="covered_lines")
    total: int = msgspec.field(name="num_statements")


class _Python(msgspec.Struct):
    totals: _Totals


class _Lines(msgspec.Struct):
    lines: Coverage


class _Istanbul(msgspec.Struct):
    total: _Lines


def _json(content: bytes) -> Coverage | None:
    if (python := decoded(content, _Python)) is not None:
        return Coverage(covered=python.totals.covered, total=python.totals.total)
    if (istanbul := decoded(content, _Istanbul)) is not None:
        return istanbul.total.lines
    return None


class _Cobertura:
    """Counts lines while the file goes by; the totals at its top are taken where they are there."""

    def __init__(self) -> None:
        self._file = ""
        self._methods = 0
        self._lines: dict[tuple[str, str], bool] = {}
        self.stated: Coverage | None = None
        self.known = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "coverage":
            self.known = True
            covered, total = (attributes.get(name, "") for name in ("lines-covered", "lines-valid"))
            if _is_number(covered) and _is_number(total):
                self.stated = Coverage(covered=int(covered), total=int(total))
        elif tag == "class":
            self._file = attributes.get("filename", "")
        elif tag == "methods":
            self._methods += 1
        elif tag == "line" and not self._methods:  # those of methods are there a second time
            key = (self._file, attributes.get("number", ""))
            hit = attributes.get("hits", "0") not in ("", "0")
            self._lines[key] = self._lines.get(key, False) or hit

    def end(self, tag: str) -> None:
        self._methods -= tag == "methods"

    def found(self) -> Coverage | None:
        counted = Coverage(covered=sum(self._lines.values()), total=len(self._lines))
        return self.stated or (counted if self.known and counted.total else None)


def _cobertura(content: bytes) -> Coverage | None:
    reading = _Cobertura()
    return reading.found() if parse_xml(content, reading.start, reading.end) else None


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) < 10


def _lcov(content: bytes) -> Coverage | None:
    """Records of files; the same file may be there more than once, and a line counts once."""
    lines: dict[tuple[str, str], bool] = {}
    stated: dict[str, tuple[int, int]] = {}
    file, found = "", [0, 0]
    for line in content.decode("utf-8", "replace").splitlines():
        key, _, value = line.partition(":")
        if key == "SF":
            file, found = value, [0, 0]
        elif key == "DA" and "," in value:
            number, hits = value.split(",")[:2]
            lines[file, number] = lines.get((file, number), False) or hits.strip() not in ("", "0")
        elif key in ("LF", "LH") and _is_number(value.strip()):
            found[key == "LF"] = int(value)
        elif line == "end_of_record":
            stated[file] = (found[0], found[1])
    if lines:
        return Coverage(covered=sum(lines.values()), total=len(lines))
    total = sum(count for _, count in stated.values())
    return Coverage(covered=sum(hit for hit, _ in stated.values()), total=total) if total else None
