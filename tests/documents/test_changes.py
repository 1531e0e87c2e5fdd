"""Which lines of ugly Markdown name files, and which only seem to."""

from __future__ import annotations

import pytest

from planforge.documents import markdown
from planforge.documents.changes import doubtful
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


@pytest.mark.parametrize(
    "name",
    [
        *["Makefile", "GNUmakefile", "Dockerfile", "Dockerfile.dev", "LICENSE", "LICENSE-MIT", "Procfile"],
        *[
            "Gemfile",
            "Rakefile",
            "Justfile",
            "justfile",
            "CODEOWNERS",
            ".gitignore",
            ".env.example",
            "go.mod",
        ],
        *[".prettierrc", ".nvmrc", ".python-version", ".gitkeep", ".env.local", "README", "gradlew"],
        *["src/a b/c.ts", "docs/My Notes.md", "./run"],
    ],
)
def test_a_name_that_projects_give_their_files_is_one_where_a_file_is_to_be_named(name: str) -> None:
    path = name.removeprefix("./")
    for item in (f"- `{name}` — x", f"- [ ] **`{name}`**: x", f"### `{name}`", f"- `a/b.py`, `{name}` — x"):
        assert files(item)[-1:] == [path], item
    assert files("- x", f'["{name}"]') == [path]
    text = f"# Plan: x\n\n## Changes\n\n- `{name}` — written as the objective says.\n"
    assert not [each for each in structural_findings(text) if "names no file" in each.title]


@pytest.mark.parametrize("name", ["forge", "pytest", "True", "Profile", "README_PATH", ".map", "two words"])
def test_a_word_is_no_file_unless_the_repository_has_one_of_that_name(name: str) -> None:
    item, listed = (
        f"## Changes\n\n- `{name}` — x\n- `a/b.py`\n",
        f'## Change Manifest\n\n["{name}", "a/b.py"]\n',
    )
    for text in (item, listed):
        assert doubtful(text) == (name,)
        assert decompose(text)[-1].files == ("a/b.py",)
        assert set(decompose(text, present=(name,))[-1].files) == {name, "a/b.py"}


def test_a_command_at_the_start_of_an_item_is_no_file_and_a_word_later_on_is_none_even_if_there_is_one() -> (
    None
):
    for command in ("pytest tests/a.py", "make -C src/b c.py", "src/run.py tests/a.py", "bin/x --all b.py"):
        assert files(f"- `{command}` — x\n- `a/b.py`") == ["a/b.py"]
    text = "## Changes\n\n- Have `LICENSE` and `run` as before in `a/b.py`\n- Extend `Makefile`\n"
    assert doubtful(text) == ()
    assert set(decompose(text, present=("run",))[-1].files) == {"a/b.py", "Makefile"}


def test_files_without_an_extension_can_be_waited_for() -> None:
    text = "**Parallel:** yes\n\n## Changes\n\n- `a/b.py` (after `Makefile`)\n- `Makefile`\n"
    assert [phase.files for phase in decompose(text)] == [("Makefile",), ("a/b.py",), ("a/b.py", "Makefile")]
