"""Every new, loosened or moved dependency is named, in each format; what does not change them is nothing."""

from __future__ import annotations

import pytest

from planforge.rules.protection.changes import protected
from planforge.rules.protection.table import Kind


def said(path: str, before: str | None, after: str | None) -> list[str]:
    given = [{} if text is None else {path: text} for text in (before, after)]
    found = protected([path], given[0], given[1])
    return [change.why for change in found if change.kind is Kind.DEPENDENCY]


def pyproject(*requirements: str, more: str = "") -> str:
    listed = ", ".join(f"'{item}'" for item in requirements)
    return f"[project]\nname = 'a'\ndependencies = [{listed}]\n{more}"


PYTHON = [
    (pyproject("a"), pyproject("a", "b>=2"), ["`dependencies: b` is new (`>=2`)"]),
    (
        pyproject("a>=1,<2"),
        pyproject("a>=1"),
        ["`dependencies: a` is loosened: `>=1,<2` → `>=1`"],
    ),
    (pyproject("a==1.0"), pyproject("a>=1.0"), ["`dependencies: a` is loosened: `==1.0` → `>=1.0`"]),
    (pyproject("a>=1"), pyproject("a"), ["`dependencies: a` is loosened: `>=1` → ``"]),
    (pyproject("a>=1"), pyproject("a>=2"), ["`dependencies: a` is changed: `>=1` → `>=2`"]),
    (pyproject("a==1"), pyproject("a==2"), ["`dependencies: a` is changed: `==1` → `==2`"]),
    (
        pyproject("a>=1"),
        pyproject("a @ git+https://host/a"),
        ["`dependencies: a` comes from elsewhere: `>=1` → `@ git+https://host/a`"],
    ),
    (pyproject("a[x]"), pyproject("a[x,y]"), ["`dependencies: a` is changed: `[x]` → `[x,y]`"]),
    (
        pyproject("a"),
        pyproject("a", more="[dependency-groups]\ndev = ['pytest']\n"),
        ["`dev: pytest` is new"],
    ),
    (
        pyproject("a"),
        pyproject("a", more="[build-system]\nrequires = ['x']\nbackend-path = ['.']\n"),
        ["`build-system: x` is new", '`build-system backend-path` is new (`["."]`)'],
    ),
    (
        pyproject("a"),
        pyproject("a", more="[tool.uv.sources]\na = {git = 'https://host/a'}\n"),
        ['`uv sources` is new (`{"a": {"git": "https://host/a"}}`)'],
    ),
    (
        "[tool.poetry.dependencies]\na = '^1'\n",
        "[tool.poetry.dependencies]\na = '*'\n[tool.poetry.group.dev.dependencies]\nb = '1'\n",
        ["`dependencies: a` is loosened: `^1` → `*`", "`group dev: b` is new (`1`)"],
    ),
    (
        "[tool.uv]\nconstraint-dependencies = ['a<2']\n",
        "[tool.uv]\n",
        ["`constraint-dependencies: a` is not held any more (`<2`)"],
    ),
]


@pytest.mark.parametrize(("before", "after", "reasons"), PYTHON)
def test_pyproject(before: str, after: str, reasons: list[str]) -> None:
    assert said("pyproject.toml", before, after) == reasons


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (pyproject("a>=1", "B_c"), pyproject("b-C", "a >= 1")),
        (pyproject("a"), "# why\n" + pyproject("a")),
        (pyproject("a", "b"), pyproject("a")),
        (pyproject("a"), pyproject("a", more="[project.scripts]\nx = 'a:b'\n")),
        (pyproject("a; python_version<'4'".replace("'", '"')), pyproject('a ;python_version<"4"')),
    ],
)
def test_what_installs_the_same_is_nothing(before: str, after: str) -> None:
    assert said("pyproject.toml", before, after) == []


OTHERS = [
    ("requirements.txt", "a==1\n", "a==1  # why\nb\n", ["`b` is new"]),
    ("requirements-dev.txt", "", "b==2 \\\n  --hash=sha256:00\n", ["`b` is new (`==2`)"]),
    ("requirements/base.txt", None, "b~=2\n", ["`b` is new (`~=2`)"]),
    ("requirements.txt", "a==1", "a>1", ["`a` is loosened: `==1` → `>1`"]),
    (
        "requirements.txt",
        "a\n",
        "a\n--extra-index-url https://host\n",
        ["`option --extra-index-url https://host` is new (`--extra-index-url https://host`)"],
    ),
    ("constraints.txt", "a<2\nb<3\n", "b<3\n", ["`a` is not held any more (`<2`)"]),
    ("setup.cfg", "[options]\n", "[options]\ninstall_requires =\n    a>=1\n    b\n", None),
    ("Pipfile", "[packages]\na = '*'\n", "[packages]\na = '*'\nb = '*'\n", ["`packages: b` is new (`*`)"]),
    (
        "package.json",
        '{"dependencies": {"a": "1.2.3"}}',
        '{"dependencies": {"a": "^1.2.3"}, "devDependencies": {"b": "latest"}}',
        [
            "`dependencies: a` is loosened: `1.2.3` → `^1.2.3`",
            "`devDependencies: b` is new (`latest`)",
        ],
    ),
    (
        "web/package.json",
        '{"dependencies": {"a": "^1"}}',
        '{"dependencies": {"a": "github:someone/a"}}',
        ["`dependencies: a` comes from elsewhere: `^1` → `github:someone/a`"],
    ),
    (
        "package.json",
        '{"scripts": {"start": "x"}, "overrides": {"a": "2"}}',
        '{"scripts": {"start": "y", "postinstall": "node evil.js"}}',
        [
            "`script postinstall` is new (`node evil.js`)",
            "`overrides: a` is not held any more (`2`)",
        ],
    ),
    (
        "Cargo.toml",
        '[dependencies]\na = "1"\n',
        '[dependencies]\na = {version = "1", git = "https://host/a"}\n[build-dependencies]\ncc = "1"\n',
        None,
    ),
    ("Cargo.toml", '[package]\nname = "a"\n', '[package]\nname = "a"\nbuild = "build.rs"\n', None),
    (
        "go.mod",
        "module m\n\ngo 1.22\n\nrequire a/b v1.0.0\n",
        "module m\n\ngo 1.22\n\nrequire (\n\ta/b v1.1.0\n\tc/d v0.1.0 // indirect\n)\nreplace a/b => ../b\n",
        [
            "`require: a/b` is changed: `v1.0.0` → `v1.1.0`",
            "`require: c/d` is new (`v0.1.0`)",
            "`replace: a/b` is new (`=> ../b`)",
        ],
    ),
    (
        "pom.xml",
        "<project><dependencies/></project>",
        "<project xmlns='http://maven.apache.org/POM/4.0.0'><dependencies><dependency><groupId>g</groupId>"
        "<artifactId>a</artifactId><version>1</version></dependency></dependencies></project>",
        ['`dependency: g:a` is new (`{"version": "1"}`)'],
    ),
    ("build.gradle.kts", "", 'implementation("g:a:1.0")\n', ["`g:a` is new (`1.0`)"]),
    ("gradle/libs.versions.toml", "[versions]\na = '1'\n", "[versions]\na = '2'\n", None),
    (
        "Gemfile",
        "source 'https://rubygems.org'\ngem 'a', '~> 1'\n",
        "source 'https://elsewhere'\ngem 'a', '~> 1'\ngem 'b', git: 'https://host/b'\n",
        ["`source https://elsewhere` is new", "`gem: b` is new (`git: 'https://host/b'`)"],
    ),
    (
        "composer.json",
        '{"require": {"a/b": "^1"}}',
        '{"require": {"a/b": "^1", "c/d": "*"}}',
        ["`require: c/d` is new (`*`)"],
    ),
]


@pytest.mark.parametrize(("path", "before", "after", "reasons"), OTHERS)
def test_other_manifests(path: str, before: str | None, after: str, reasons: list[str] | None) -> None:
    found = said(path, before, after)
    assert found == reasons if reasons is not None else found
    assert said(path, after, after) == []


def test_a_dependency_that_goes_needs_nobody() -> None:
    assert said("package.json", '{"dependencies": {"a": "1"}}', "{}") == []
    assert said("requirements.txt", "a==1\n", None) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pyproject.toml", "[project\n"),
        ("pyproject.toml", "project = 1\n[tool]\nx = 1\n[dependency-groups]\na = 1\n"),
        ("package.json", "{"),
        ("package.json", "[" * 100_000),
        ("composer.json", "[]"),
        ("pom.xml", "<project>"),
        ("pom.xml", '<!DOCTYPE x [<!ENTITY a "b">]><project>&a;</project>'),
        ("setup.cfg", "no section\n"),
    ],
)
def test_what_cannot_be_read_is_for_a_person_to_see(path: str, text: str) -> None:
    (reason,) = said(path, None, text)
    assert reason.startswith("what it installs cannot be read (")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("package.json", '{"dependencies": 7, "scripts": [], "pnpm": null}'),
        ("pyproject.toml", "[project]\ndependencies = [1]\n[tool.hatch.envs]\nx = 1\n"),
        ("requirements.txt", "\\\n\\\n  ; ; @ [\n-\n"),
        ("go.mod", "require (\n"),
        ("Gemfile", "gem\ngem ''\n"),
        ("Cargo.toml", "dependencies = 1\n"),
        ("build.gradle", "''''\"\"\"implementation 'a:b'"),
    ],
)
def test_odd_ones_do_not_stop_it(path: str, text: str) -> None:
    said(path, text, text + "\n")


def test_a_manifest_that_could_not_be_read_before_has_all_its_dependencies_named() -> None:
    assert said("package.json", "{", '{"dependencies": {"a": "1"}}') == ["`dependencies: a` is new (`1`)"]
