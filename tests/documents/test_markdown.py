import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planforge.documents import markdown
from planforge.errors import InvalidDocument

DOCUMENT = """# Title

## One

first

```md
## Not a section
```

---

## Two ##

second
"""


def names(text: str) -> list[str]:
    return [section.name for section in markdown.sections(text)]


def test_a_document_has_the_sections_its_headings_start() -> None:
    assert names(DOCUMENT) == ["One", "Two"]


@pytest.mark.parametrize(
    "hidden",
    [
        "```\n## Hidden\n```",
        "~~~\n## Hidden\n~~~",
        "````md\n```\n## Hidden\n```\n## Hidden\n````",
        "~~~\n```\n## Hidden\n~~~",
        "```\n~~~\n## Hidden\n```",
        "```\n``` not a closing mark\n## Hidden\n```",
        "   ```\n## Hidden\n   ```",
        "# One level up",
        "### One level down",
        "    ## Indented code",
        "##No space",
        "> ## Quoted",
        "```never closed\n## Hidden",
    ],
)
def test_what_only_looks_like_a_section_is_none(hidden: str) -> None:
    assert names(f"## Before\n\n{hidden}\n") == ["Before"]


@pytest.mark.parametrize("between", ["```\n```", "```one line```", "``` a`b", "~~~~\n~~~\n~~~~", "`` ` ``"])
def test_a_closed_fence_hides_nothing_after_it(between: str) -> None:
    assert names(f"## Before\n\n{between}\n\n## After\n") == ["Before", "After"]


def test_a_section_is_found_in_any_case_and_its_body_is_exact() -> None:
    assert markdown.body(DOCUMENT, "two") == "\nsecond\n"


def test_a_section_that_is_not_there_has_no_body() -> None:
    assert markdown.body(DOCUMENT, "Three") is None


def test_the_first_of_two_sections_with_one_name_is_the_one() -> None:
    assert markdown.body("## A\nx\n## A\ny\n", "A") == "x\n"


def test_adding_to_a_section_goes_above_the_rule_that_closes_it() -> None:
    assert markdown.append("## A\n\nx\n\n---\n\n## B\n", "A", "y\n") == "## A\n\nx\n\ny\n\n---\n\n## B\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("## A", "## A\n\ny"),
        ("## A\n", "## A\n\ny\n"),
        ("## A\n## B\n", "## A\n\ny\n\n## B\n"),
        ("## A\n---\n## B\n", "## A\n\ny\n\n---\n## B\n"),
        ("## A\n\nsetext\n---\n", "## A\n\nsetext\n---\n\ny\n"),
        ("## A\r\n\r\nx\r\n\r\n## B\r\n", "## A\r\n\r\nx\r\n\r\ny\r\n\r\n## B\r\n"),
    ],
)
def test_adding_never_glues_two_things_together(text: str, expected: str) -> None:
    assert markdown.append(text, "A", "y") == expected


def test_added_text_takes_the_line_endings_of_the_document() -> None:
    assert markdown.append("## A\r\n", "A", "y\nz") == "## A\r\n\r\ny\r\nz\r\n"


def test_a_missing_section_is_not_invented() -> None:
    with pytest.raises(InvalidDocument, match="no `## Two` section"):
        markdown.append("## One\n", "Two", "x")


def test_fenced_blocks_give_their_contents() -> None:
    assert markdown.fenced_blocks("```json\n[1]\n```\ntext\n~~~\n```\n~~~\n```\nopen") == ("[1]\n", "```\n")


@pytest.mark.parametrize(
    ("text", "mark"), [("```\n", "```"), ("~~~~x\n```", "~~~~"), ("```\n```", ""), ("", "")]
)
def test_a_fence_left_open_is_named(text: str, mark: str) -> None:
    assert markdown.open_fence(text) == mark


def test_quoted_text_has_no_structure_whatever_it_holds() -> None:
    hostile = "## A\n```\n---\n\u2028## B\x0b## C\r## D"
    assert names(f"## Log\n\n{markdown.quoted(hostile)}\n\n## End\n") == ["Log", "End"]
    assert all(line.startswith(">") for line in markdown.quoted(hostile).splitlines())


@settings(deadline=None)
@given(st.text(alphabet="#`~ ->ab\r\n"))
def test_the_lines_of_a_document_are_the_whole_document(text: str) -> None:
    assert "".join(text[line.start : line.end] for line in markdown.lines(text)) == text


@settings(deadline=None)
@given(before=st.text(alphabet="#~ -ab\r\n"), after=st.text(alphabet="# -ab\r\n"))
def test_adding_only_adds(before: str, after: str) -> None:
    text = f"{before}\n## Log\n{after}"
    if markdown.find(text, "Log"):
        added = markdown.append(text, "Log", "entry")
        at = added.index("entry")
        assert added[:at].rstrip() == text[: len(added[:at].rstrip())]
        assert text.endswith(added[at + len("entry") :].lstrip())
        assert "entry" in (markdown.body(added, "Log") or "")
