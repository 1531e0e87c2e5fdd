"""Small projects of several languages, detected and checked with the real tools, where they are installed."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from pathlib import Path

import pytest

from planforge.kernel.evidence import Counts, Evidence, Outcome
from planforge.kernel.objects import Objects
from planforge.workspace.checks import execution
from planforge.workspace.detection import detect
from repositories import write


def needs(*tools: str) -> pytest.MarkDecorator:
    missing = [tool for tool in tools if shutil.which(tool) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not installed")


@pytest.fixture(autouse=True)
def _no_active_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)


def checked(root: Path, files: dict[str, str]) -> Evidence:
    write(root, files)
    named = detect(root).checks
    objects = Objects(root.parent / "objects")
    extra = {name: os.environ[name] for name in ("CARGO_HOME", "RUSTUP_HOME") if name in os.environ}
    return asyncio.run(execution.run_all(named, root, "c" * 40, "t" * 40, objects, extra=extra))


def counts(total: int, passed: int, failed: int, skipped: int) -> Counts:
    return Counts(total=total, passed=passed, failed=failed, skipped=skipped)


@needs("ctest", "cmake", "make", "cc")
def test_cmake(tmp_path: Path) -> None:
    listed = "\n".join(f"add_test(NAME {name} COMMAND a {code})" for name, code in (("good", 0), ("bad", 1)))
    files = {
        "CMakeLists.txt": f"cmake_minimum_required(VERSION 3.16)\nproject(x C)\nenable_testing()\n"
        f"add_executable(a a.c)\ntarget_compile_options(a PRIVATE -Wall)\n{listed}\n"
        "add_test(NAME off COMMAND a 77)\nset_tests_properties(off PROPERTIES SKIP_RETURN_CODE 77)\n",
        "a.c": "#include <stdlib.h>\nint main(int c, char **v) { int unused; return atoi(v[1]); }\n",
    }
    evidence = checked(tmp_path / "c", files)
    assert (evidence.counts, evidence.failing) == (counts(3, 1, 1, 1), ("bad",))
    assert (evidence.outcome, evidence.compile_ok, evidence.parts[0].warnings) == (Outcome.FAIL, True, 1)
    broken = checked(tmp_path / "c", {"a.c": "int main( {\n"})
    assert (broken.outcome, broken.compile_ok) == (Outcome.FAIL, False)
    assert broken.parts[1].reason == "not run because build failed"


@needs("cargo", "cc")
def test_cargo(tmp_path: Path) -> None:
    files = {
        "Cargo.toml": '[package]\nname = "lab"\nversion = "0.1.0"\nedition = "2021"\n',
        "src/lib.rs": "pub fn one() -> i32 { 1 }\n#[cfg(test)]\nmod tests {\n    #[test] fn good() {}\n"
        "    #[test] fn bad() { assert_eq!(super::one(), 2) }\n    #[test] #[ignore] fn later() {}\n}\n",
        "tests/it.rs": "#[test] fn it() {}\n",
    }
    evidence = checked(tmp_path / "rs", files)
    assert (evidence.counts, evidence.failing) == (counts(4, 2, 1, 1), ("tests::bad",))
    assert (evidence.outcome, evidence.compile_ok, evidence.parts[0].warnings) == (Outcome.FAIL, True, 0)


@needs("node", "npm")
def test_nodes_own_runner_by_npm(tmp_path: Path) -> None:
    files = {
        "package.json": '{"name": "lab", "version": "1.0.0", "scripts": {"test": "node --test"}}',
        "a.test.js": "const {test, describe, it} = require('node:test');\n"
        "test('good', () => {});\ntest('off', {skip: true}, () => {});\n"
        "describe('suite', () => { it('bad', () => { throw new Error('x') }) });\n",
    }
    evidence = checked(tmp_path / "js", files)
    assert (evidence.counts, evidence.failing) == (counts(3, 1, 1, 1), ("bad",))


@needs("npm")
def test_a_runner_that_was_not_installed_cannot_tell(tmp_path: Path) -> None:
    package = '{"name": "lab", "version": "1.0.0", "scripts": {"test": "no-such-runner"}}'
    evidence = checked(tmp_path / "js", {"package.json": package})
    assert (evidence.outcome, evidence.reason) == (Outcome.CANNOT_TELL, "`no-such-runner` was not found")


@pytest.mark.dear
@needs("make")
def test_two_sessions_of_pytest_by_make(tmp_path: Path) -> None:
    one = f"{sys.executable} -m pytest -p no:cacheprovider"
    files = {
        "Makefile": f".PHONY: test\ntest:\n\t{one} a\n\t{one} b\n",
        "a/test_a.py": "def test_a(): pass\n",
        "b/test_b.py": "def test_b(): pass\ndef test_c(): assert 0\n",
    }
    evidence = checked(tmp_path / "py", files)
    assert (evidence.counts, evidence.failing) == (counts(3, 2, 1, 0), ("b/test_b.py::test_c",))
