"""What is a file of the repository, whatever the text: by the rules of the kernel and of both systems."""

from __future__ import annotations

import json
from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planforge.documents.phases import PhaseKind, decompose, file_path
from planforge.errors import InvalidDocument
from planforge.kernel import paths

OUTSIDE = [
    *[
        "/etc/passwd",
        "//server/share/a.ts",
        "\\\\server\\share\\a.ts",
        "\\\\?\\C:\\a.ts",
        "C:\\a.ts",
        "C:a.ts",
    ],
    *["c:/a.ts", "..", "../a.ts", "a/../b.ts", "a\\..\\..\\b.ts", "a/.. /b.ts", "a/..\\b.ts", ".../a.ts"],
    *[
        ".git/config",
        ".GIT/config",
        ".git./config",
        ".git /config",
        "git~1/x.sh",
        "GIT~1/x.sh",
        "a/.git/x.sh",
    ],
    *[
        ".planforge/ledger.db",
        ".PlanForge/x.md",
        "a/.planforge/x.md",
        "PLANFO~1/x.md",
        ".\uff47\uff49\uff54/config",
    ],
    *["src/a\0.ts", "src/a\n.ts", "src/a\r.ts", "src/a\x1b.ts", "src/a\u202e.ts", "~/a.ts"],
    *[
        "nul.txt",
        "NUL.txt",
        "src/con.ts",
        "src/aux/a.ts",
        "src/Com1.c",
        "lpt9/a.ts",
        "src/nul .txt",
        "com¹/a.ts",
    ],
    *["src/a.", "src/a.ts.", "src./a.ts", "src /a.ts", "src/ a.ts", "a:b/c.ts", "a.ts::$DATA", "src//a.ts"],
    *[
        "$HOME/a.ts",
        "%APPDATA%/a.ts",
        "-rf/a.ts",
        "src/",
        "src/*.ts",
        "\uff0e\uff0e/a.ts",
        "a\uff0fb/../c.ts",
        "x" * 256 + ".ts",
    ],
]


@pytest.mark.parametrize("token", OUTSIDE, ids=ascii)
def test_what_could_lead_out_is_no_file_wherever_it_stands(token: str) -> None:
    assert file_path(token) is None
    assert file_path(token, spaced=True) is None
    manifest = f"## Change Manifest\n\n{json.dumps([token, 'src/a.ts'])}\n"
    for text in (f"## Changes\n\n- `{token}`\n- `src/a.ts`\n", manifest):
        assert decompose(text)[-1].files == ("src/a.ts",)


def test_half_of_a_pair_is_no_text_and_so_no_name() -> None:
    assert file_path("src/\ud800.ts") is None
    assert decompose("## Changes\n\n- `src/\ud800.ts`\n- `src/a.ts`\n")[-1].files == ("src/a.ts",)


@pytest.mark.parametrize(
    ("token", "plain", "in_a_manifest"),
    [
        ("docs/My Notes.md", "docs/My Notes.md", "docs/My Notes.md"),
        ("docs\\My Notes.md", "docs/My Notes.md", "docs/My Notes.md"),
        ("My Docs/notes.md", None, "My Docs/notes.md"),
        ("My Notes.md", None, "My Notes.md"),
        ("pytest tests/test_a.py", None, "pytest tests/test_a.py"),
        ("src/a.py src/b.py", None, "src/a.py src/b.py"),
        ("src/a.py b.py", None, "src/a.py b.py"),
        ("bin/run --all x.py", None, "bin/run --all x.py"),
        ("docs/two  spaces.md", None, "docs/two  spaces.md"),
        ("docs/a b", None, "docs/a b"),
        ("two words", None, None),
        ("src/größe/übung.py", "src/größe/übung.py", "src/größe/übung.py"),
        ("資料/計画.md", "資料/計画.md", "資料/計画.md"),
        ("src/app/main.py:12:3", "src/app/main.py", "src/app/main.py"),
        ("src\\app\\main.py", "src/app/main.py", "src/app/main.py"),
        (".\\src\\main.py", "src/main.py", "src/main.py"),
    ],
)
def test_spaces_are_part_of_a_name_where_no_command_can_be_meant(
    token: str, plain: str | None, in_a_manifest: str | None
) -> None:
    assert file_path(token) == plain
    assert file_path(token, spaced=True) == in_a_manifest


PARTS = st.sampled_from(
    [
        "..",
        ".",
        "",
        "src",
        "a.py",
        ".git",
        ".GIT",
        "git~1",
        "~",
        "C:",
        "...",
        "\u202e",
        "-x",
        " ",
        "a ",
        "nul",
        ".planforge",
        "aux.c",
        "b.",
        "\uff0e\uff0e",
        "\uff0f",
        "\0",
        "My Notes.md",
        "é.ts",
        "\ud800",
        "$x",
        "COM¹",
        "[id]",
    ]
)
TOKENS = st.text() | st.tuples(st.lists(PARTS, max_size=5), st.sampled_from("/\\")).map(
    lambda drawn: drawn[1].join(drawn[0])
)
CHANGES = st.sampled_from(
    [
        "- `{}`",
        "* `{}` — x",
        "### `{}`",
        "**`{}`** x",
        "- x (after `{}`)",
        "  - after: `{}`",
        "`{}`",
        "> `{}`",
        "- ```",
        "```",
        "~~~",
        "````",
        "<!--",
        "-->",
        "<!-- `{}` -->",
        "1. `{}`",
        "| `{}` |",
        "## Changes",
        "- [x](`{}`)",
        "{}",
    ]
)


def inside(path: str) -> bool:
    """By the rules of the kernel, of POSIX and of Windows."""
    parts = path.split("/")
    return (
        paths.exact(path) == path
        and not PurePosixPath(path).is_absolute()
        and not PureWindowsPath(path).is_absolute()
        and not PureWindowsPath(path).drive
        and PureWindowsPath(path).parts == PurePosixPath(path).parts == tuple(parts)
        and not {"", ".", "..", ".git", ".planforge"} & {part.lower().rstrip(". ") for part in parts}
        and "\0" not in path
    )


@settings(deadline=None)
@given(token=TOKENS)
def test_every_file_is_inside_by_the_rules_of_the_kernel_and_of_both_systems(token: str) -> None:
    for spaced in (False, True):
        path = file_path(token, spaced=spaced)
        assert path is None or inside(path)
        assert path is None or file_path(path, spaced=True) == path


@settings(deadline=None)
@given(
    lines=st.lists(st.tuples(CHANGES, TOKENS), max_size=12),
    listed=st.lists(TOKENS, max_size=4),
    newline=st.sampled_from(["\n", "\r\n", "\r"]),
    parallel=st.sampled_from([None, False, True]),
    max_files=st.integers(1, 4),
)
def test_no_text_whatever_yields_a_path_outside_or_phases_that_cannot_be(
    lines: list[tuple[str, str]], listed: list[str], newline: str, parallel: bool | None, max_files: int
) -> None:
    changes = "## Changes\n\n" + "\n".join(form.replace("{}", token) for form, token in lines)
    for text in (changes, f"{changes}\n\n## Change Manifest\n\n{json.dumps(listed)}\n"):
        whole = text.replace("\n", newline)
        try:
            phases = decompose(whole, max_files=max_files, parallel=parallel)
        except InvalidDocument as error:
            if "after" in error.message or "wait for each other" in error.message:
                continue  # an order that cannot be
            raise
        assert phases == decompose("\ufeff" + whole, max_files=max_files, parallel=parallel)
        known: set[str] = set()
        for phase in phases:
            assert set(phase.depends_on) <= known
            known.add(phase.id)
            assert all(map(inside, phase.files))
        assert phases[-1].kind is PhaseKind.AUDIT
        assert all(len(phase.files) <= max_files for phase in phases[:-1])
        assert sorted(path for phase in phases[:-1] for path in phase.files) == sorted(phases[-1].files)
