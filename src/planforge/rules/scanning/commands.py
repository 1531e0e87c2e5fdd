"""Commands that check something, as they stand in scripts."""

from __future__ import annotations

import re


def _any(*patterns: str) -> str:
    """One of these; a blank stands for any space."""
    return "(?:" + "|".join(pattern.replace(" ", r"[ \t]+") for pattern in patterns) + ")"


PYTHON = _any(
    r"py\.?test",
    r"python[\d.]* -m (?:pytest|unittest|nose2?|tox|nox|mypy|ruff|flake8|pylint)",
    r"unittest|tox|nox|nose2|nosetests|mypy|ruff|flake8|pylint|pyright",
    r"hatch (?:run )?test",
    r"(?:uv|poetry|pdm|pipenv|rye) run (?:\S*test\S*|mypy|ruff)",
    r"coverage run",
)
JAVASCRIPT = _any(
    r"(?:npm|pnpm|yarn|bun) (?:run |-r |-s )*"
    r"(?:test|t|lint|check|typecheck|type-check|e2e|verify|ci:test)\b[\w:\-]*",
    r"(?:(?:npx|bunx|pnpm exec|yarn) )?"
    r"(?:jest|vitest|mocha|ava|tap|karma|cypress|playwright test|eslint|tsc|tslint|jasmine)",
    r"node --test",
    r"deno (?:test|lint|check)",
)
OTHERS = _any(
    r"go (?:test|vet)",
    r"golangci-lint|staticcheck",
    r"cargo (?:\+\S+ )?(?:test|nextest|clippy|check)",
    r"(?:mvnw?|gradlew?)\b[^|;&\n]{0,200}?\b(?:test|check|verify|build)",
    r"(?:bazel|dotnet|swift|xcodebuild|mix|stack|cabal|flutter) test",
    r"(?:bundle exec )?(?:rspec|rake (?:test|spec)|rubocop|rails test|minitest)",
    r"phpunit|pest|phpstan|psalm|ctest|bats|shellcheck",
    r"composer (?:run )?test",
    r"(?:g?make|just) (?:-\S+ )*(?:test|check|lint|ci|verify)[\w\-]*",
    r"(?:bash |sh )[\w./\-]*(?:test|check|verify|lint)[\w.\-]*",
    r"(?:run[_\-]?)?(?:tests?|checks?)\.sh",
)
TOOLS = f"(?:{PYTHON}|{JAVASCRIPT}|{OTHERS})"

START = (
    r"(?:^|[;&|({!]|(?<!\S)(?:then|do|else|time|env|exec|sudo|nice|command)(?!\S))[ \t@\-+]*"
    r"(?:\w+=\S*[ \t]+)*(?:[\w.\-$]*/[\w.\-/]*)?"
)
CHECK = re.compile(rf"{START}(?P<command>{TOOLS})(?![\w.\-/])", re.MULTILINE)
"""A check where a command can begin."""
