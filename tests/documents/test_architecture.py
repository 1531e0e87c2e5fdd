from __future__ import annotations

from planforge.documents.architecture import LINES, pack

DOCUMENT = """\
# The gateway

It lets callers in
and keeps floods out.

More about it.

## Key decisions

- One bucket for each caller.

## History

It was a monolith once.

## Summary of limits

Ten a second.
"""


def test_a_document_is_its_title_its_first_paragraph_and_its_key_sections() -> None:
    text = pack({"docs/architecture.md": DOCUMENT}).text
    assert text.splitlines()[:4] == [
        "# The gateway (`docs/architecture.md`)",
        "",
        "It lets callers in",
        "and keeps floods out.",
    ]
    assert "## Key decisions\n\n- One bucket for each caller." in text
    assert "## Summary of limits\n\nTen a second." in text
    assert "More about it" not in text
    assert "monolith" not in text


def test_a_document_without_a_title_goes_by_its_name_and_a_fenced_one_is_none() -> None:
    text = pack({"docs/a/b.md": "```\n# not this\n```\n\nOnly this.\n"}).text
    assert text == "# b.md (`docs/a/b.md`)\n\nOnly this."


def test_a_pack_has_at_most_four_hundred_lines_and_names_what_it_has_not() -> None:
    long = "# Long\n\nIt is.\n\n## Key points\n\n" + "".join(f"- {number}\n" for number in range(500))
    found = pack({"a.md": DOCUMENT, "b.md": long, "c.md": DOCUMENT})
    assert len(found.text.splitlines()) <= LINES == 400
    assert found.left_out == ("b.md", "c.md")
    assert "The gateway (`a.md`)" in found.text
    assert "- 300" in found.text
    assert "c.md" not in found.text


def test_a_fence_that_is_cut_is_closed() -> None:
    text = "# T\n\nIt.\n\n## Key code\n\n```\n" + "x\n" * 20 + "```\n"
    found = pack({"a.md": text}, lines=12)
    assert found.text.splitlines()[-1] == "```"
    assert found.text.count("```") == 2


def test_nothing_is_nothing() -> None:
    assert pack({}).text == ""
