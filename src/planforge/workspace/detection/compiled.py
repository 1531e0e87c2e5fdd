"""Rust, Go, the Java virtual machine, and C and C++ with CMake."""

from __future__ import annotations

import re

from planforge.workspace.checks import Report
from planforge.workspace.detection.places import Finds, Passed, Place, found, table

BUILD_DIRECTORY = ".planforge-build"


def look(place: Place) -> Finds:
    """How projects of these languages are checked."""
    yield from _cargo(place)
    yield from _go(place)
    yield from _maven(place)
    yield from _gradle(place)
    yield from _cmake(place)


def _cargo(place: Place) -> Finds:
    if not place.has("Cargo.toml"):
        return
    locked = ("--locked",) if place.has("Cargo.lock") else ()
    yield found("build", "Cargo.toml", "cargo", "build", "--workspace", "--all-targets", *locked)
    # Without the last one Cargo stops at the first file with a failing test, and counts no more.
    yield found("tests", "Cargo.toml", "cargo", "test", "--workspace", *locked, "--no-fail-fast")
    document = place.toml("Cargo.toml")
    wanted = [*table(document, "lints"), *table(document, "workspace", "lints")]
    if place.has("clippy.toml", ".clippy.toml") or "clippy" in wanted:
        yield found("lint", "settings of clippy", "cargo", "clippy", "--workspace", "--all-targets", *locked)


def _go(place: Place) -> Finds:
    if not place.has("go.mod"):
        return
    yield found("build", "go.mod", "go", "build", "./...")
    yield found("tests", "go.mod", "go", "test", "-json", "./...", report=Report.GO)
    if name := place.has(".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json"):
        yield found("lint", name, "golangci-lint", "run")
    yield found("lint", "go.mod", "go", "vet", "./...")


def _maven(place: Place) -> Finds:
    if not place.has("pom.xml"):
        return
    tool = "./mvnw" if place.has("mvnw") else "mvn"
    reports = "**/target/surefire-reports/TEST-*.xml"
    yield found("build", "pom.xml", tool, "--batch-mode", "--quiet", "-DskipTests", "test-compile")
    yield found("tests", "pom.xml", tool, "--batch-mode", "test", report=Report.JUNIT, junit=reports)


def _gradle(place: Place) -> Finds:
    name = place.has("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts")
    if not name:
        return
    tool = "./gradlew" if place.has("gradlew") else "gradle"
    reports = "**/build/test-results/**/TEST-*.xml"
    yield found("build", name, tool, "--console=plain", "testClasses")
    yield found(
        "tests", name, tool, "--console=plain", "test", "--continue", report=Report.JUNIT, junit=reports
    )


CMAKE_COMMENT = re.compile(r"#\[(=*)\[.*?\]\1\]|#[^\n]*", re.DOTALL)
CMAKE_TESTS = re.compile(r"^\s*(?:enable_testing\s*\(|include\s*\(\s*CTest\b)", re.MULTILINE | re.IGNORECASE)


def _cmake(place: Place) -> Finds:
    if not place.has("CMakeLists.txt"):
        return
    # One command that configures and builds, so that there is one thing to run and to record.
    words = ("ctest", "--build-and-test", ".", BUILD_DIRECTORY, "--build-generator", "Unix Makefiles")
    yield found("build", "CMakeLists.txt", *words)
    if not CMAKE_TESTS.search(CMAKE_COMMENT.sub("", place.text("CMakeLists.txt") or "")):
        yield Passed(what="tests: `ctest`, for CMakeLists.txt at the top does not enable testing")
        return
    junit = "${reports}/ctest.xml"
    words = ("ctest", "--test-dir", BUILD_DIRECTORY, "--output-on-failure", "--output-junit", junit)
    yield found("tests", "CMakeLists.txt", *words, report=Report.JUNIT, junit=junit)
