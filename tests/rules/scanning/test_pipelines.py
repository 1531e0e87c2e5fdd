"""Scripts, make files, packages and CI files in which a failing check does not fail the build."""

from __future__ import annotations

import pytest

from scans import scan

WORKFLOW = ".github/workflows/ci.yml"

STEP = """\
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - name: tests
        run: {command}
        {more}
      - name: upload
        uses: actions/upload-artifact@v4
        continue-on-error: true
"""

BROKEN = [
    ("run_tests.sh", "pytest -q || true\n"),
    ("run_tests.sh", "npm test || exit 0\n"),
    ("run_tests.sh", "cd web && npm test || echo failed\n"),
    ("ci/check.sh", "FOO=1 python3 -m pytest \\\n  -q \\\n  || :\n"),
    ("run_tests.sh", "go test ./...; true\n"),
    ("run_tests.sh", "#!/bin/sh\npytest\nexit 0\n"),
    ("run_tests.sh", "set -e\nset +e\npytest\nexit 0\n"),
    ("scripts/test", "#!/bin/bash\ncargo test || true\n"),
    ("Makefile", "test:\n\tpytest || true\n"),
    ("Makefile", "test:\n\t-pytest -q\n"),
    ("Makefile", "check: lint\n\t@go vet ./... || true\n"),
    ("package.json", '{"scripts": {"test": "jest || true"}}'),
    ("package.json", '{"scripts": {"test": "exit 0"}}'),
    ("package.json", '{"scripts": {"lint": "eslint .; exit 0"}}'),
    ("tox.ini", "[tox]\n[testenv]\ncommands =\n    - pytest\n"),
    ("tox.ini", "[tox]\n[testenv]\nignore_outcome = true\ncommands = pytest\n"),
    (WORKFLOW, STEP.format(command="pytest", more="continue-on-error: true")),
    (WORKFLOW, STEP.format(command="pytest || true", more="shell: bash")),
    (WORKFLOW, STEP.format(command="|\n          make build\n          make test || true", more="")),
    (WORKFLOW, STEP.format(command="pytest", more="if: false")),
    (WORKFLOW, "jobs:\n  test:\n    continue-on-error: true\n    steps:\n      - run: npm test\n"),
    (".gitlab-ci.yml", "test:\n  script:\n    - pytest\n  allow_failure: true\n"),
    (".gitlab-ci.yml", "test:\n  script:\n    - pytest || true\n"),
]


@pytest.mark.parametrize(("path", "text"), BROKEN)
def test_a_check_whose_failure_is_ignored_is_found(path: str, text: str) -> None:
    assert [issue.rule for issue in scan(path, text)] == ["masked-exit"]


FINE = [
    ("run_tests.sh", "rm -f report.xml || true\npytest\n"),
    ("run_tests.sh", "#!/bin/sh\nset -eu\npytest\nexit 0\n"),
    ("run_tests.sh", "echo 'pytest || true'\n# pytest || true\npytest\n"),
    ("run_tests.sh", "cat <<EOF\npytest || true\nEOF\n"),
    ("run_tests.sh", "pytest || exit 1\nexit 0\n"),
    ("run_tests.sh", "pytest; code=$?\nif [ $code -ne 0 ]; then exit $code; fi\nexit 0\n"),
    ("deploy.sh", "pytest || true\n"),
    ("Makefile", "test:\n\tpytest\n\nclean:\n\t-rm -rf build\n\trm x || true\n"),
    ("package.json", '{"scripts": {"test": "jest", "clean": "rm -rf dist || true"}}'),
    ("package.json", '{"scripts": {"test": "echo no tests && exit 1"}}'),
    ("package.json", "not json"),
    ("tox.ini", "[testenv]\ncommands =\n    pytest\n    - rm x\n"),
    (WORKFLOW, STEP.format(command="pytest", more="shell: bash")),
    (WORKFLOW, STEP.format(command="rm x || true", more="continue-on-error: true")),
    (WORKFLOW, STEP.format(command="pytest", more="continue-on-error: ${{ matrix.experimental }}")),
    (WORKFLOW, STEP.format(command="pytest", more="# continue-on-error: true")),
    ("config/app.yml", "run: pytest || true\n"),
]


@pytest.mark.parametrize(("path", "text"), FINE)
def test_a_check_that_fails_the_build_is_left_alone(path: str, text: str) -> None:
    assert [issue.rule for issue in scan(path, text) if issue.rule == "masked-exit"] == []


def test_the_message_names_the_command_and_what_hides_it() -> None:
    (issue,) = scan("run_tests.sh", "set -e\nmake lint\npytest -q || true\n")
    assert (issue.line, issue.column) == (3, 11)
    assert issue.message == "a failing `pytest` is ignored by `|| true`"


def test_a_cleanup_after_the_check_is_not_blamed_on_it() -> None:
    (issue,) = scan(WORKFLOW, STEP.format(command="pytest", more="continue-on-error: true"))
    assert issue.line == 8
