"""Which lines of ugly Markdown name files, and which only seem to."""

from __future__ import annotations

import pytest

from planforge.documents import markdown
from planforge.documents.phases import decompose
from planforge.documents.plan import structural_findings


def files(changes: str, manifest: str | None = None) -> list[str]:
    more = "" if manifest is None else f"\n\n## Change Manifest\n\n{manifest}"
    return list(
        decompose(f"# Plan: x\n\n## Changes\n\n{changes}{more}\n\n## Risks\n\n- `risk.py`\n")[-1].files
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param("1. `a/x.py`\n2) `a/y.py`\n- `a/z.py`", ["a/z.py"], id="numbered lists name none"),
        pytest.param("1. first\n   - `a/x.py`", ["a/x.py"], id="a bullet below a number does"),
        pytest.param(
            "| File | Why |\n|---|---|\n| `a/x.py` | new |\n\n- `a/y.py`", ["a/y.py"], id="tables name none"
        ),
        pytest.param(
            "- [ ] `a/x.py`\n- [x] `a/y.py`\n- [X] `a/z.py`", ["a/x.py", "a/y.py", "a/z.py"], id="boxes"
        ),
        pytest.param(
            "````md\n```\n- `a/x.py`\n```\n- `a/y.py`\n````\n- `a/z.py`", ["a/z.py"], id="a fence in a fence"
        ),
        pytest.param("~~~\n```\n- `a/x.py`\n~~~\n- `a/z.py`", ["a/z.py"], id="tildes around backticks"),
        pytest.param("```\n~~~\n- `a/x.py`\n```\n- `a/z.py`", ["a/z.py"], id="backticks around tildes"),
        pytest.param(
            "- `a/x.py`\n  ```py\n  - `a/y.py`\n  ```\n- `a/z.py`", ["a/x.py", "a/z.py"], id="in an item"
        ),
        pytest.param(
            "- ```py\n  - `a/y.py`\n  ```\n- `a/z.py`", ["a/z.py"], id="a fence that begins an item"
        ),
        pytest.param(
            "1. ~~~\n   - `a/y.py`\n   ~~~\n- `a/z.py`", ["a/z.py"], id="a fence that begins a number"
        ),
        pytest.param("- ```one line``` `a/z.py`", ["a/z.py"], id="three backticks on one line are no fence"),
        pytest.param("```\n### `a/x.py`\n## Risks\n```\n- `a/z.py`", ["a/z.py"], id="headings in a fence"),
        pytest.param("- `a/z.py`\n```\n- `a/x.py`", ["a/z.py"], id="a fence that is never closed"),
        pytest.param(
            "- `src\\app\\main.py`\n- `.\\run.ps1`", ["src/app/main.py", "run.ps1"], id="Windows paths"
        ),
        pytest.param("- `docs/My Notes.md` — x", ["docs/My Notes.md"], id="spaces in a name"),
        pytest.param("-\t`a/x.py`\n\t-\t`a/y.py`", ["a/x.py", "a/y.py"], id="tabs"),
        pytest.param("<!--\n- `a/x.py`\n-->\n- `a/z.py`", ["a/z.py"], id="a comment of several lines"),
        pytest.param("<!-- - `a/x.py` -->\n- `a/z.py`", ["a/z.py"], id="a comment of one line"),
        pytest.param(
            "- `a/z.py` <!-- not `a/x.py` --> and `a/y.py`", ["a/z.py", "a/y.py"], id="a comment within"
        ),
        pytest.param(
            "- <!--\n  - `a/x.py`\n  -->\n- `a/z.py`", ["a/z.py"], id="a comment that begins an item"
        ),
        pytest.param("- `<!--` and `a/z.py` and `-->`", ["a/z.py"], id="the marks of a comment as code"),
        pytest.param("<!--\n```\n-->\n- `a/z.py`", [], id="a fence in a comment is a fence"),
        pytest.param("> - `a/x.py`\n> ### `a/y.py`\n\n- `a/z.py`", ["a/z.py"], id="quotations name none"),
        pytest.param("> ```\n> x\n\n- `a/z.py`", ["a/z.py"], id="a fence in a quotation is not ours"),
        pytest.param(
            "- `größe/übung.py`\n- `資料/計画.md`", ["größe/übung.py", "資料/計画.md"], id="any script"
        ),
        pytest.param("`a/x.py`\n--------\n\n- `a/z.py`", ["a/z.py"], id="setext headings name none"),
        pytest.param(
            "- [a/x.py](a/x.py)\n- [`a/z.py`](a/z.py)", ["a/z.py"], id="a link counts by its backticks"
        ),
        pytest.param("- ``a/z.py``", ["a/z.py"], id="two backticks"),
        pytest.param("- **`a/z.py`** and *`a/y.py`*", ["a/z.py", "a/y.py"], id="emphasis"),
        pytest.param("#### `a/z.py` ####", ["a/z.py"], id="closing marks of a heading"),
        pytest.param("    - `a/z.py`", ["a/z.py"], id="an indented item is an item, however deep"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_ugly_markdown_names_what_it_names(changes: str, expected: list[str], newline: str) -> None:
    assert files(changes.replace("\n", newline)) == expected


def test_a_byte_order_mark_hides_no_section() -> None:
    assert decompose("\ufeff## Changes\n\n- `a/x.py`\n")[-1].files == ("a/x.py",)


def test_of_two_sections_the_first_counts_and_the_audit_of_the_form_says_so() -> None:
    text = "## Changes\n\n- `a/x.py` — first\n\n## Risks\n\nx\n\n## Changes\n\n- `a/y.py` — second\n"
    assert decompose(text)[-1].files == ("a/x.py",)
    titles = [finding.title for finding in structural_findings(text)]
    assert "`## Changes` is there 2 times, and only the first counts" in titles


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        ('Files:\n\n["a/m.py"]\n\nThat is all.', ["a/m.py"]),
        ('```json\n["no"]\n```\n\n```json\n["a/m.py"]\n```', ["a/m.py"]),
        (
            '- item\n\n  ```json\n  ["docs/My Notes.md", "My Docs/b.md"]\n  ```',
            ["docs/My Notes.md", "My Docs/b.md"],
        ),
        ('{\n  "files": [\n    "a/m.py"\n  ]\n}', ["a/x.py"]),
        ('<!-- ["a/m.py"] -->', ["a/x.py"]),
    ],
)
def test_a_manifest_is_a_bare_array_wherever_it_stands_in_its_section(
    manifest: str, expected: list[str]
) -> None:
    assert files("- `a/x.py`", manifest) == expected


def test_a_fence_that_begins_an_item_holds_its_headings() -> None:
    text = "## A\n\n- ```\n  ## B\n  ```\n\n## C\n"
    assert [section.name for section in markdown.sections(text)] == ["A", "C"]


def test_a_line_of_twenty_thousand_marks_is_read_in_no_time() -> None:
    for mark in ("- ", "<!--", "`", "*", "(after `", "#", "|", "- after: `a.py`, "):
        files("- " + mark * 20_000)
