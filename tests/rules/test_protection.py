"""Which changes need a person: by the name of a file, whatever it is dressed up as, and by what is in it."""

from __future__ import annotations

import time

import pytest

from planforge.errors import InvalidInput
from planforge.rules.protection import ProtectedChange, Protection
from planforge.rules.protection.changes import USUAL, ci_files, protected
from planforge.rules.protection.names import CYRILLIC, CYRILLIC_AS, GREEK, GREEK_AS, OTHER, OTHER_AS
from planforge.rules.protection.table import DEFAULTS, WORDS, Kind


def kinds(*files: str, settings: Protection = USUAL) -> list[str]:
    return [change.kind.value for change in protected(files, {}, {}, settings)]


def whys(path: str, before: str | None, after: str | None) -> list[str]:
    given = [{} if text is None else {path: text} for text in (before, after)]
    return [change.why for change in protected([path], given[0], given[1])]


NEEDS_A_PERSON = {
    Kind.CI: (
        ".github/workflows/ci.yml .github/actions/setup/action.yml .github/dependabot.yml .gitlab-ci.yml "
        ".gitlab/ci/build.yml Jenkinsfile deploy/Jenkinsfile .circleci/config.yml azure-pipelines.yml "
        "azure-pipelines-release.yaml .buildkite/pipeline.yml .travis.yml .ci/run ci/test.sh tools/action.yml"
    ),
    Kind.LOCK_FILE: (
        "uv.lock poetry.lock web/package-lock.json yarn.lock pnpm-lock.yaml Cargo.lock go.sum Gemfile.lock "
        "composer.lock requirements.lock requirements-dev.lock bun.lockb"
    ),
    Kind.AGENT: (
        "AGENTS.md src/AGENTS.md CLAUDE.md "
        "GEMINI.md .claude/settings.json .codex/config.toml .gemini/settings.json "
        ".cursor/rules/a.mdc .cursorrules .mcp.json .aider.conf.yml .github/copilot-instructions.md "
        "skills/review/SKILL.md packages/a/.claude/commands/x.md"
    ),
    Kind.PLANFORGE: "planforge.toml .planforge/ledger.db planforge/roles/personas/a.md .worktreeinclude",
    Kind.GIT: ".gitattributes docs/.gitattributes .gitmodules sub/.git/config .git/hooks/x .lfsconfig",
    Kind.HOOK: (
        ".husky/pre-commit .pre-commit-config.yaml lefthook.yml .githooks/post-merge .envrc sitecustomize.py "
        "src/evil.pth .vscode/tasks.json .devcontainer/devcontainer.json"
    ),
    Kind.CHECK: (
        "pytest.ini tox.ini noxfile.py .coveragerc jest.config.js web/vitest.config.ts mypy.ini "
        ".eslintrc.json"
    ),
    Kind.DEPENDENCY: ".npmrc setup.py .cargo/config.toml mvnw gradlew app/app.csproj mix.exs pip.conf",
    Kind.MIGRATION: (
        "shop/migrations/0001_initial.py alembic/versions/1a2b_add.py db/migrate/20240101_x.rb db/schema.rb "
        "prisma/migrations/20240101_x/migration.sql src/main/resources/db/migration/V1__init.sql "
        "migrations/20240101_users.js database/migrations/2024_01_01_users.php migrations/0001_x.up.sql"
    ),
    Kind.LICENCE: "LICENSE LICENSE.txt COPYING NOTICE.md LICENSES/MIT.txt vendored/LICENSE",
    Kind.OWNER: "CODEOWNERS .github/CODEOWNERS docs/CODEOWNERS OWNERS",
}

NEEDS_NOBODY = (
    "src/app.py README.md docs/licensing.md "
    "tests/test_ci.py src/license/views.py src/workspace/git.py .gitignore "
    "src/agents/claude.py docs/about-agents.md dist.py "
    ".github/ISSUE_TEMPLATE/bug.yml src/locks.py lib/hooks/use-state.ts "
    "django/db/migrations/writer.py docs/migrations/v2.md src/environment.py app/models.py packages/a/ci.py "
    "app/migrations/__init__.py .gitkeep src/setup.py Dockerfile Makefile src/owners.py"
)


@pytest.mark.parametrize(
    ("path", "kind"), [(path, kind) for kind, paths in NEEDS_A_PERSON.items() for path in paths.split()]
)
def test_a_protected_path_is_known_for_what_it_is(path: str, kind: Kind) -> None:
    assert kinds(path)[0] == kind.value


@pytest.mark.parametrize("path", NEEDS_NOBODY.split())
def test_an_ordinary_file_needs_nobody(path: str) -> None:
    assert kinds(path) == []


@pytest.mark.parametrize(
    "path",
    [
        ".GitHub/Workflows/CI.yml",
        "agents.MD",
        "AGENTS.md.",
        "AGENTS.md ",
        ".github /workflows/ci.yml",
        ".github./workflows/ci.yml",
        "\N{CYRILLIC CAPITAL LETTER A}GENTS.md",
        "AGENTS\N{ZERO WIDTH SPACE}.md",
        "CL\N{GREEK CAPITAL LETTER ALPHA}UDE.md",
        "\N{FULLWIDTH LATIN CAPITAL LETTER A}GENTS.md",
        ".g\N{CYRILLIC SMALL LETTER BYELORUSSIAN-UKRAINIAN I}thub/workflows/ci.yml",
        ".github\N{DIVISION SLASH}workflows\N{DIVISION SLASH}ci.yml",
        ".github\\workflows\\ci.yml",
        "\N{RIGHT-TO-LEFT OVERRIDE}AGENTS.md",
        " AGENTS.md",
        "poetry\N{ONE DOT LEADER}lock",
        "p\N{CYRILLIC SMALL LETTER A}ckage-lock.json",
    ],
)
def test_a_name_that_is_another_one_to_a_file_system_or_to_a_reader_is_noticed(path: str) -> None:
    assert kinds(path)


def test_a_name_that_only_looks_like_a_protected_one_is_said_to() -> None:
    (change,) = protected(
        ["\N{CYRILLIC CAPITAL LETTER A}GENTS.md"], {}, {"\N{CYRILLIC CAPITAL LETTER A}GENTS.md": ""}
    )
    assert change.why == "a file that tells agents what to do is added, under a name that only looks like it"


def test_look_alikes_stand_opposite_to_what_they_look_like() -> None:
    assert [len(CYRILLIC), len(GREEK), len(OTHER)] == [len(CYRILLIC_AS), len(GREEK_AS), len(OTHER_AS)]


@pytest.mark.parametrize("path", [".github", ".github/workflows", ".circleci", ".husky", ".claude", ".git"])
def test_a_file_or_a_link_in_place_of_a_protected_directory_is_noticed(path: str) -> None:
    assert kinds(path)


def test_it_is_said_whether_a_file_is_added_changed_or_deleted() -> None:
    assert whys(".travis.yml", None, "x") == ["a CI file is added"]
    assert whys(".travis.yml", "x", "y") == ["a CI file is changed"]
    assert whys(".travis.yml", "x", None) == ["a CI file is deleted"]
    assert whys("yarn.lock", None, None) == ["a lock file is changed"]  # too large to be read, say


def test_every_kind_has_words_and_every_default_is_a_pattern() -> None:
    assert set(WORDS) == set(Kind)
    assert set(DEFAULTS) | {Kind.MIGRATION, Kind.FORMER_TESTS, Kind.OWN} == set(Kind)
    assert kinds("src/app.py") == []  # all of them can be read


def test_a_change_says_which_path_and_why() -> None:
    change = ProtectedChange(path="a", kind=Kind.CI, why="b")
    assert str(change) == "`a`: b"


# What a file says, not only its name


def test_a_migration_is_told_by_what_is_in_it_where_its_name_does_not_tell() -> None:
    django = "class Migration(migrations.Migration):\n    pass\n"
    assert whys("shop/migrations/squashed.py", None, django) == ["a new migration"]
    assert whys("db/revisions/x.py", None, "revision = 'a'\ndown_revision = 'b'\n") == ["a new migration"]
    assert whys("shop/migrations/helpers.py", None, "def helper(): ...\n") == []


def test_an_existing_migration_that_is_changed_or_deleted_is_told_apart_from_a_new_one() -> None:
    path = "shop/migrations/0001_initial.py"
    assert whys(path, None, "x") == ["a new migration"]
    assert whys(path, "x", "y") == ["an existing migration is changed"]
    assert whys(path, "x", None) == ["an existing migration is deleted"]


def test_what_a_ci_file_names_is_run_by_it() -> None:
    before = {
        ".github/workflows/ci.yml": "run: |\n  docker build -f images/Dockerfile .\n  ./scripts/check.sh\n"
    }
    found = protected(["images/Dockerfile", "scripts/check.sh", "scripts/other.sh"], before, {})
    assert [(change.path, change.why) for change in found] == [
        ("images/Dockerfile", "`.github/workflows/ci.yml` uses it"),
        ("scripts/check.sh", "`.github/workflows/ci.yml` uses it"),
    ]


def test_a_dockerfile_that_ci_does_not_name_needs_nobody() -> None:
    assert protected(["Dockerfile", "images/Dockerfile"], {".gitlab-ci.yml": "script: make\n"}, {}) == ()


@pytest.mark.parametrize("mention", ["my-scripts/check.sh", "scripts/check.sh.bak", "scripts/check.shell"])
def test_a_longer_path_does_not_name_a_shorter_one(mention: str) -> None:
    assert protected(["scripts/check.sh"], {".gitlab-ci.yml": f"script: {mention}\n"}, {}) == ()


PYPROJECT = '[project]\nname = "a"\n\n[tool.black]\nline-length = 100\n'


@pytest.mark.parametrize(
    ("path", "before", "after", "why"),
    [
        (
            "pyproject.toml",
            PYPROJECT,
            PYPROJECT + '[tool.pytest.ini_options]\naddopts = "--deselect tests/test_a.py"\n',
            "`[tool.pytest]` is new",
        ),
        (
            "pyproject.toml",
            "[tool.coverage.report]\nfail_under = 90\n",
            "[tool.coverage.report]\nfail_under = 0\n",
            "`[tool.coverage]` is changed",
        ),
        ("setup.cfg", "[tool:pytest]\naddopts = -q\n", "[metadata]\nname = a\n", "`[tool:pytest]` is gone"),
        (
            "package.json",
            '{"scripts": {"test": "jest", "start": "node ."}}',
            '{"scripts": {"test": "exit 0", "start": "node app"}}',
            "script `test` is changed",
        ),
        ("Makefile", "test: build\n\tpytest\n", "test: build\n\ttrue\n", "target `test` is changed"),
        ("Makefile", "test: build\n\tpytest\n", "test:\n\tpytest\n", "target `test` is changed"),
        ("justfile", "check:\n    cargo test\n", "check:\n    @true\n", "target `check` is changed"),
    ],
)
def test_a_change_of_how_the_project_is_checked_is_told(path: str, before: str, after: str, why: str) -> None:
    assert whys(path, before, after) == [f"how the project is checked: {why}"]


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("pyproject.toml", PYPROJECT, PYPROJECT.replace("100", "110")),
        ("pyproject.toml", PYPROJECT, "# a comment\n" + PYPROJECT.replace('"a"', '"b"')),
        ("package.json", '{"version": "1.0.0"}', '{"version": "1.1.0", "scripts": {"start": "node ."}}'),
        ("Makefile", "test:\n\tpytest\n\nrun:\n\tx\n", "# new\ntest:\n\tpytest\n\nrun:\n\ty\n"),
        ("Makefile", "A := 1\ntest:\n\tpytest\n", "A := 2\nB ::= 1\ntest:\n\tpytest\n"),
    ],
)
def test_the_rest_of_such_a_file_is_free(path: str, before: str, after: str) -> None:
    assert whys(path, before, after) == []


@pytest.mark.parametrize("path", ["package.json", "pyproject.toml", "Makefile", "requirements/base.txt"])
def test_a_manifest_that_was_not_read_is_for_a_person_to_see(path: str) -> None:
    """It has grown too large to be read: to look at what was there before would be to see it deleted."""
    found = protected([path], {path: "{}"}, {}, unread=[path])
    assert found
    assert all(change.why.endswith("could not be looked into") for change in found)
    assert protected(["image.png"], {}, {}, unread=["image.png"]) == ()


def test_a_protected_file_that_was_not_read_is_changed_not_deleted() -> None:
    (change,) = protected([".travis.yml"], {".travis.yml": "x"}, {}, unread=[".travis.yml"])
    assert change.why == "a CI file is changed"


def test_ci_files_are_told_from_others() -> None:
    assert ci_files(["src/app.py", ".travis.yml", ".GitHub/workflows/a.yml"]) == (
        ".travis.yml",
        ".GitHub/workflows/a.yml",
    )


# Settings


def test_a_project_may_protect_more() -> None:
    settings = Protection(add=("infra/**", "src/billing"))
    assert kinds("infra/a/b.tf", "SRC/Billing/tax.py", "src/app.py", settings=settings) == ["protected"] * 2


def test_a_project_may_protect_less_by_path_and_by_kind() -> None:
    settings = Protection(remove=("licence", "docs/**/AGENTS.md", "ci/**"))
    assert kinds("LICENSE", "docs/a/AGENTS.md", "ci/x.sh", settings=settings) == []
    assert kinds("AGENTS.md", ".github/workflows/ci.yml", settings=settings) == ["agent-settings", "ci"]


def test_what_is_both_added_and_removed_is_protected() -> None:
    settings = Protection(add=("docs/plans",), remove=("docs/**",))
    assert kinds("docs/plans/a.md", settings=settings) == ["protected"]


def test_a_project_may_say_all_by_itself() -> None:
    settings = Protection(replace=("infra/**",))
    assert kinds("infra/a.tf", ".github/workflows/ci.yml", "AGENTS.md", settings=settings) == ["protected"]
    assert protected(["package.json"], {}, {"package.json": '{"dependencies": {"a": "1"}}'}, settings) == ()


@pytest.mark.parametrize("pattern", ["/etc/passwd", "../x", ""])
def test_a_pattern_that_makes_no_sense_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput):
        kinds("a", settings=Protection(add=(pattern,)))


# Bad input


@pytest.mark.parametrize(
    "path", ["a\\b.py", "x\nAGENTS.md", "\udcff.py", "a//b", "..", "", "." * 500, "a/" * 500]
)
def test_odd_names_do_not_stop_it(path: str) -> None:
    protected([path], {}, {})


def test_a_thousand_files_are_looked_at_quickly() -> None:
    files = [f"src/package_{number}/module_{number}.py" for number in range(1000)]
    start = time.process_time()
    assert protected(files, {}, {}) == ()
    assert time.process_time() - start < 60


def test_many_reasons_of_one_file_are_cut_short_and_counted() -> None:
    text = "\n".join(f"package-{number}==1" for number in range(40))
    reasons = whys("requirements.txt", None, text)
    assert len(reasons) == 13
    assert reasons[-1] == "and 28 more of the kind"
