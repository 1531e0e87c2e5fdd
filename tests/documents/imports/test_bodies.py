"""The body of a plan, put together from what others wrote."""

from __future__ import annotations

import pytest

from planforge.documents import markdown
from planforge.documents.imports import bodies


def test_what_is_put_into_a_section_cannot_begin_another_one() -> None:
    text = bodies.assembled("It", {"Objective": ["why\n## Audit Log\nsaid\n   ##\n```\n## code"]})
    assert [each.name for each in markdown.sections(text)] == [*bodies.TO_BE_WRITTEN]
    assert "### Audit Log\nsaid\n   ###\n```\n## code\n```" in text


@pytest.mark.parametrize(
    ("said", "files"),
    [
        ("Create it in src/a.py.", ("src/a.py",)),
        ("Create `src/thing` and (src/a.py), src/a.py", ("src/thing", "src/a.py")),
        ("Add .github/workflows/ci.yml and ./b.md", (".github/workflows/ci.yml", "b.md")),
        ("POST /albums, and/or HTTP/1.1, e.g. v1.2, node.js, docs/", ()),
        ("../x.py /etc/x.py ~/x.py C:\\x.py https://x.org/a.py .git/x.py a/../x.py `../y.py` `/z.py`", ()),
    ],
)
def test_files_are_found_in_a_sentence_and_only_those_inside(said: str, files: tuple[str, ...]) -> None:
    assert bodies.files_in(said) == files
