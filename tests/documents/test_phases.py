import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planforge.documents import markdown
from planforge.documents.phases import Phase, PhaseKind, decompose, file_path, render_phases


def plan(changes: str, manifest: str | None = None) -> str:
    more = "" if manifest is None else f"## Change Manifest\n\n{manifest}\n\n"
    return f"# Plan: x\n\n## Changes\n\n{changes}\n\n{more}## Risks\n\n- `src/risk.py`\n"


def files(changes: str, manifest: str | None = None) -> list[str]:
    return list(decompose(plan(changes, manifest))[-1].files)


def batches(*paths: str, max_files: int = 5) -> list[list[str]]:
    phases = decompose(plan("\n".join(f"- `{path}`" for path in paths)), max_files=max_files)
    return [list(phase.files) for phase in phases[:-1]]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ("- `src/a.ts` — create", ["src/a.ts"]),
        ("* `src/a.ts`\n+ `src/b.ts`", ["src/a.ts", "src/b.ts"]),
        ("- [ ] `src/a.ts`", ["src/a.ts"]),
        ("### `src/a.ts`", ["src/a.ts"]),
        ("# `src/a.ts` and `src/b.ts`", ["src/a.ts", "src/b.ts"]),
        ("**`src/a.ts`** — new module", ["src/a.ts"]),
        ("***`src/a.ts`*** — new module", ["src/a.ts"]),
        ("**`src/config.ts`** — Add `LIMIT_RPM`", ["src/config.ts"]),
        ("- **`src/a.ts`:** new", ["src/a.ts"]),
        ("- `src/b.ts`\n- `src/a.ts`\n- `src/b.ts`", ["src/b.ts", "src/a.ts"]),
        ("- Backend\n  - `src/a.ts` — new", ["src/a.ts"]),
        ("- Update `src/a.ts` and `src/b.ts`", ["src/a.ts", "src/b.ts"]),
        ("- `src/a.ts` → `src/b.ts`", ["src/a.ts", "src/b.ts"]),
        ("- Wiring: change `src/a.ts`", ["src/a.ts"]),
        ("- `src/a.ts` — reuse `src/other.ts`", ["src/a.ts"]),
        ("- `src/a.ts` - reuse `src/other.ts`", ["src/a.ts"]),
        ("- `src/a.ts`: reuse `src/other.ts`", ["src/a.ts"]),
    ],
)
def test_list_heading_and_bold_lines_name_files(changes: str, expected: list[str]) -> None:
    assert files(changes) == expected


@pytest.mark.parametrize(
    "changes",
    [
        "Change `src/a.ts` in prose.",
        "- src/a.ts without backticks",
        "1. `src/a.ts`",
        "**Note** about `src/a.ts`",
        "| `src/a.ts` | table |",
        "> - `src/a.ts`",
        "```md\n- `src/a.ts`\n### `src/a.ts`\n```",
        "- item\n\n  ~~~\n  - `src/a.ts`\n  ~~~",
    ],
)
def test_all_other_lines_are_ignored(changes: str) -> None:
    assert files(changes) == []


@pytest.mark.parametrize(
    ("token", "path"),
    [
        ("src/a.ts", "src/a.ts"),
        ("./src/./a.ts", "src/a.ts"),
        ("src\\win\\a.ts", "src/win/a.ts"),
        ("src/a.ts:42", "src/a.ts"),
        ("src/a.ts#L10-L20", "src/a.ts"),
        ("bin/run", "bin/run"),
        ("app/[id]/(group)/page.tsx", "app/[id]/(group)/page.tsx"),
        ("package.json", "package.json"),
        ("README.md", "README.md"),
        (".env", ".env"),
        (".gitignore", ".gitignore"),
        (".github/workflows/ci.yml", ".github/workflows/ci.yml"),
    ],
)
def test_what_looks_like_a_file_is_one(token: str, path: str) -> None:
    assert file_path(token) == path


@pytest.mark.parametrize(
    "token",
    [
        *["WEBHOOK_LIMIT", "WebhookHandler", "webhook", "dockerfiles", "'src/a.ts'", '"a.ts"'],
        *["config.limit", "Foo.Bar", "process.env", "app.run()", "src/a()", "v1.2", "e.g.", ""],
        *[
            "src/",
            "src/*.ts",
            "src/{a,b}.ts",
            "https://example.org/a.ts",
            "npm run build/all",
            "@/a.ts",
            "a=b/c",
        ],
    ],
)
def test_what_only_resembles_a_file_is_none(token: str) -> None:
    assert file_path(token) is None


OUTSIDE = [
    *["/etc/passwd", "//server/a.ts", "~/a.ts", "~root/a.ts", "$HOME/a.ts", "C:\\a.ts", "\\\\server\\a.ts"],
    *["..", "../a.ts", "src/../../a.ts", "src/../a.ts", "..\\a.ts", "src\\..\\..\\a.ts", "src/.../a.ts"],
    *[".git/config", ".GIT/config", ".git./config", "sub/.git/hooks/x.sh", "git~1/config", ".git\\config"],
    *[
        ".planforge/ledger.db",
        "-rf/a.ts",
        "--upload-pack/a.sh",
        "src/a\x00.ts",
        "src/a\n.ts",
        ".g\u200cit/x.sh",
    ],
]


@pytest.mark.parametrize("token", OUTSIDE)
def test_a_path_out_of_the_repository_is_never_produced(token: str) -> None:
    assert file_path(token) is None
    assert files(f"- `{token}`\n- `src/a.ts`") == ["src/a.ts"]
    assert files("- `src/b.ts`", json.dumps([token, "src/a.ts"])) == ["src/a.ts"]


PARTS = st.sampled_from(["..", ".", "", "src", "a.py", ".git", ".GIT", "~", "C:", "...", "\u202e", "-x", " "])


@settings(deadline=None)
@given(
    paths=st.lists(
        st.text() | st.tuples(st.lists(PARTS), st.sampled_from("/\\")).map(lambda x: x[1].join(x[0]))
    ),
    parallel=st.booleans(),
    max_files=st.integers(1, 4),
)
def test_no_plan_yields_a_path_outside_or_a_broken_chain(
    paths: list[str], parallel: bool, max_files: int
) -> None:
    listed = "\n".join(f"- `{path}`" for path in paths)
    for text in (plan(listed), plan("- `x.py`", json.dumps(paths))):
        phases = decompose(text, max_files=max_files, parallel=parallel)
        known: set[str] = set()
        for phase in phases:
            assert set(phase.depends_on) <= known
            known.add(phase.id)
            for path in phase.files:
                parts = path.split("/")
                assert "\\" not in path
                assert not {"", ".", "..", ".git", ".planforge"} & {part.lower() for part in parts}
                assert not path.startswith(("/", "~", "-"))
        assert phases[-1].kind is PhaseKind.AUDIT
        assert all(len(phase.files) <= max_files for phase in phases[:-1])
        assert sorted(path for phase in phases[:-1] for path in phase.files) == sorted(phases[-1].files)


@pytest.mark.parametrize(
    "manifest", ['["src/m.ts", "src/m.ts", "word"]', '```json\n["src/m.ts"]\n```', '["src/m.ts", 1]\n\n---']
)
def test_a_change_manifest_comes_first(manifest: str) -> None:
    assert files("- `src/a.ts`", manifest) == ["src/m.ts"]


@pytest.mark.parametrize(
    "manifest",
    ['{"files": ["src/m.ts"]}', "[]", '["word"]', '["src/m.ts"', "- src/m.ts", "", "[" * 100_000, "[NaN]"],
    ids=lambda manifest: manifest[:20],
)
def test_a_manifest_without_a_bare_array_of_paths_is_passed_over(manifest: str) -> None:
    assert files("- `src/a.ts`", manifest) == ["src/a.ts"]


def test_the_changes_still_describe_the_files_of_a_manifest() -> None:
    phases = decompose(plan("- `src/a.ts` — count requests", '["src/a.ts", "src/b.ts"]'))
    assert (
        phases[0].change_spec
        == "- `src/a.ts` — count requests\n- `src/b.ts` — as the Objective asks; not described"
    )


@pytest.mark.parametrize(
    ("module", "test"),
    [
        ("src/x.ts", "src/x.test.ts"),
        ("src/x.js", "src/x.spec.js"),
        ("src/x.tsx", "src/x.test.tsx"),
        ("src/x.ts", "test/x.spec.ts"),
        ("src/pkg/x.py", "src/pkg/test_x.py"),
        ("src/pkg/x.py", "tests/unit/test_x.py"),
        ("src/pkg/x.py", "src/pkg/x_test.py"),
    ],
)
def test_a_module_and_its_test_stay_together_and_come_first(module: str, test: str) -> None:
    assert batches("docs/a.md", test, "src/other.go", module) == [
        [module, test],
        ["docs/a.md"],
        ["src/other.go"],
    ]


def test_a_test_goes_to_the_nearer_of_two_modules_with_one_name() -> None:
    assert batches("src/a/x.py", "src/b/x.py", "tests/b/test_x.py") == [
        ["src/b/x.py", "tests/b/test_x.py"],
        ["src/a/x.py"],
    ]


def test_a_test_alone_is_a_file_like_any_other() -> None:
    assert batches("tests/test_x.py", "tests/conftest.py") == [["tests/test_x.py", "tests/conftest.py"]]


def test_other_files_are_grouped_by_directory_and_split_at_the_limit() -> None:
    assert batches("a/1.go", "b/1.go", "a/2.go", "a/3.go", "top.md", max_files=2) == [
        ["a/1.go", "a/2.go"],
        ["a/3.go"],
        ["b/1.go"],
        ["top.md"],
    ]


def test_a_phase_needs_room_for_a_file() -> None:
    with pytest.raises(ValueError, match="at least one file"):
        decompose(plan("- `a/1.go`"), max_files=0)


def dependencies(phases: tuple[Phase, ...]) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(phase.id, phase.kind.value, phase.depends_on) for phase in phases]


THREE = plan("- `a/1.go`\n- `b/1.go`\n- `c/1.go`")


def test_implementing_phases_form_a_chain_and_the_audit_waits_for_all() -> None:
    assert dependencies(decompose(THREE)) == [
        ("phase-1", "implement", ()),
        ("phase-2", "implement", ("phase-1",)),
        ("phase-3", "implement", ("phase-2",)),
        ("phase-4", "audit", ("phase-1", "phase-2", "phase-3")),
    ]


def test_parallel_phases_wait_for_nothing_but_the_audit_still_does() -> None:
    assert dependencies(decompose(THREE, parallel=True)) == [
        ("phase-1", "implement", ()),
        ("phase-2", "implement", ()),
        ("phase-3", "implement", ()),
        ("phase-4", "audit", ("phase-1", "phase-2", "phase-3")),
    ]


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("text", [plan("Make it faster."), "# Plan: x\n", ""])
def test_a_plan_without_files_is_read_implemented_and_audited(text: str, parallel: bool) -> None:
    assert dependencies(decompose(text, parallel=parallel)) == [
        ("phase-1", "read", ()),
        ("phase-2", "implement", ("phase-1",)),
        ("phase-3", "audit", ("phase-2",)),
    ]


def test_without_files_the_whole_section_is_the_spec() -> None:
    assert decompose(plan("Make it faster.\n\n---"))[1].change_spec == "Make it faster."


@pytest.mark.parametrize(
    ("changes", "spec"),
    [
        ("- `a/x.go` — one\n  - detail\n\n  more\n- `b/y.go`", "- `a/x.go` — one\n  - detail\n\n  more"),
        ("- `a/x.go`\n  ```\n- not an item\n  ```\n- `b/y.go`", "- `a/x.go`\n  ```\n- not an item\n  ```"),
        ("- `a/x.go`\n\n### Next\n\ntext", "- `a/x.go`"),
        ("  - `a/x.go`\n- Next", "  - `a/x.go`"),
        (
            "### `a/x.go`\n\ntext\n\n- item\n#### more\n### `b/y.go`",
            "### `a/x.go`\n\ntext\n\n- item\n#### more",
        ),
        ("**`a/x.go`** — one\n- detail\n\n**`b/y.go`** — two", "**`a/x.go`** — one\n- detail"),
    ],
)
def test_a_file_gets_the_passage_that_describes_it(changes: str, spec: str) -> None:
    assert decompose(plan(changes))[0].change_spec == spec


def test_a_passage_about_two_files_is_given_once() -> None:
    assert decompose(plan("- `a/x.go`, `a/y.go` — both"))[0].change_spec == "- `a/x.go`, `a/y.go` — both"


def test_a_title_names_two_files_and_counts_the_rest() -> None:
    assert decompose(plan("- `a/1.go` `a/2.go` `a/3.go`"))[0].title == "Implement a/1.go, a/2.go and 1 more"


def rendered(text: str, **statuses: str) -> str:
    path = "docs/plans/plan-017-x.md"
    by_id = {name.replace("_", "-"): status for name, status in statuses.items()}
    return render_phases("plan-017", path, "0123456789abcdef" * 4, "2026-02-12", decompose(text), by_id)


def test_the_phases_file_has_the_documented_form() -> None:
    assert rendered(plan("- `src/a.ts` — count"), phase_1="done") == (
        "# Phases: plan-017 — docs/plans/plan-017-x.md\n"
        "Created: 2026-02-12\n"
        "Updated: 2026-02-12\n"
        "Plan hash: 0123456789abcdef\n"
        "\n"
        "## phase-1: Implement src/a.ts\n"
        "**Kind:** implement\n"
        "**Status:** done\n"
        "**Context:** `src/a.ts`\n"
        "**Depends on:** (none)\n"
        "\n"
        "Implement changes for: `src/a.ts`\n"
        "\n"
        "**Change spec:**\n"
        "- `src/a.ts` — count\n"
        "\n"
        "---\n"
        "\n"
        "## phase-2: Post-implementation audit\n"
        "**Kind:** audit\n"
        "**Status:** pending\n"
        "**Context:** `src/a.ts`\n"
        "**Depends on:** phase-1\n"
        "\n"
        "Audit all changes against the plan.\n"
        "\n"
        "---\n"
    )


def test_a_spec_that_leaves_a_fence_open_does_not_swallow_the_next_phase() -> None:
    text = rendered("# Plan: x\n\n## Changes\n\n- `src/a.ts`\n\n```\nopen")
    assert [section.name for section in markdown.sections(text)] == [
        "phase-1: Implement src/a.ts",
        "phase-2: Post-implementation audit",
    ]
