"""
Documents as people wrote them, collected where they are: whatever is installed brings some.

Each is cut as it is, as the Changes of a plan, and with the line endings of Windows and of old Macs.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from planforge.documents.phases import decompose, file_path, read_phases, render_phases
from planforge.documents.plan import structural_findings
from planforge.kernel import paths

ENOUGH, OTHERS, OF_ONE_KIND = 200, 231, 150
"""Besides the others all of our own: however many those are, they take nobody's place."""
LARGEST = 60_000
ENDINGS = (".md", ".markdown", ".rst", ".md.gz", ".markdown.gz", ".rst.gz")
STEMS = ("readme", "news", "changelog", "changes", "history", "contributing", "todo")
OURS = Path(__file__).parents[3]


def is_document(name: str) -> bool:
    name = name.lower()
    return name.endswith(ENDINGS) or name == "metadata" or (name.endswith(".txt") and name.startswith(STEMS))


def beneath(place: Path) -> Iterator[Path]:
    """The documents of a directory, in one order; directories that are linked, as some installers do, too."""
    seen: set[str] = set()
    for directory, inner, names in os.walk(place, followlinks=True):
        real = os.path.realpath(directory)
        inner[:] = [] if real in seen else sorted(name for name in inner if name != "__pycache__")
        seen.add(real)
        yield from (Path(directory, name) for name in sorted(names) if is_document(name))


def places() -> Iterator[tuple[str, Path]]:
    """Where documents lie on any machine that can run the tests."""
    yield "ours", OURS / "docs"
    yield "ours", OURS / "src"
    for entry in dict.fromkeys(sys.path):
        if entry.endswith(("site-packages", "dist-packages")):
            yield "Python packages", Path(entry)
    if npm := shutil.which("npm"):
        yield "npm", Path(npm).resolve().parents[1]
    yield "node", Path("/usr/share/nodejs")
    yield "/usr/share/doc", Path("/usr/share/doc")


def text_of(path: Path) -> str:
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    text = content.decode("utf-8", "replace")
    # What a package says of itself is below the fields that a machine reads.
    return text.partition("\n\n")[2] if path.name == "METADATA" else text


def documents() -> tuple[dict[str, str], Counter[str]]:
    """Real documents, no two the same, and how many of them each kind of place had."""
    found: dict[str, str] = {}
    counts: Counter[str] = Counter()
    known: set[bytes] = set()
    for kind, place in places():
        for path in beneath(place):
            if not path.is_file() or path.stat().st_size > LARGEST:
                continue
            text = text_of(path)
            mark = hashlib.sha256(text.encode()).digest()
            if 200 < len(text) < LARGEST and mark not in known and counts[kind] < OF_ONE_KIND:
                known.add(mark)
                found[str(path)] = text
                counts[kind] += 1
    return dict(list(found.items())[: OTHERS + counts["ours"]]), counts


def hold(whole: str, path: str) -> int:
    """What holds of every document; how many files it names."""
    phases = decompose(whole)
    assert phases == decompose(whole), path
    for name in (name for phase in phases for name in phase.files):
        assert paths.exact(name) == name, (path, name)
        assert file_path(name, spaced=True) == name, (path, name)
        assert os.path.normpath(name) == name, (path, name)
        assert not {".git", ".planforge", ".."} & set(name.lower().split("/")), (path, name)
    rendered = render_phases("plan-001", "x.md", "0" * 64, "2026-01-01", phases, {})
    assert read_phases(rendered) == tuple((phase.id, "pending") for phase in phases), path
    return len(phases[-1].files)


@pytest.mark.dear
def test_two_hundred_real_documents_are_cut_twice_alike_and_every_path_is_inside() -> None:
    found, counts = documents()
    where = ", ".join(f"{count} of {kind}" for kind, count in counts.items())
    assert len(found) >= ENOUGH, f"only {len(found)} documents were found, {ENOUGH} are needed: {where}"
    named = 0
    for path, text in found.items():
        hold(text, path)
        as_changes = f"## Changes\n\n{text}"
        named += hold(as_changes, path)
        structural_findings(as_changes)
        hold("\ufeff" + as_changes.replace("\n", "\r\n"), path)
        hold(as_changes.replace("\r", "").replace("\n", "\r"), path)
    assert named > 20, f"hardly any of {len(found)} documents names a file: what was read? {where}"
