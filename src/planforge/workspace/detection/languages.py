"""Rust, Go, Java, C with CMake, Ruby, PHP, Elixir, Deno and .NET, as far as one command does it."""

from __future__ import annotations

import re

from planforge.workspace.checks import Report
from planforge.workspace.detection.places import Finds, Passed, Place, found, table

BUILD_DIRECTORY = ".planforge-build"
JUNIT = "${reports}/junit.xml"


def look(place: Place) -> Finds:
    """How projects of these languages are checked."""
    for language in (_cargo, _go, _maven, _gradle, _cmake, _ruby, _php, _elixir, _deno, _dotnet):
        yield from language(place)


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


RAKE_TEST = re.compile(r"Rake::TestTask|Minitest::TestTask|^\s*task\s+:?test\b", re.MULTILINE)


def _ruby(place: Place) -> Finds:
    bundled = ("bundle", "exec") if place.has("Gemfile") else ()
    if place.has(".rspec") or place.files("spec/**/*_spec.rb", 1):
        yield found("tests", "specs of rspec", *bundled, "rspec")
    elif RAKE_TEST.search(place.text("Rakefile") or ""):
        yield found("tests", "task `test` of Rakefile", *bundled, "rake", "test")
    if place.has(".rubocop.yml"):
        yield found("lint", ".rubocop.yml", *bundled, "rubocop")


def _php(place: Place) -> Finds:
    if name := place.has("phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"):
        words = ("vendor/bin/phpunit", f"--log-junit={JUNIT}")
        yield found("tests", name, *words, report=Report.JUNIT, junit=JUNIT)
    elif "test" in table(place.json("composer.json"), "scripts"):
        yield found("tests", "script `test` of composer.json", "composer", "run-script", "test")


def _elixir(place: Place) -> Finds:
    if place.has("mix.exs"):
        yield found("build", "mix.exs", "mix", "compile")
        yield found("tests", "mix.exs", "mix", "test")


def _deno(place: Place) -> Finds:
    if name := place.has("deno.json", "deno.jsonc"):
        words = ("deno", "test", f"--junit-path={JUNIT}")
        yield found("tests", name, *words, report=Report.JUNIT, junit=JUNIT)
        yield found("lint", name, "deno", "lint")


def _dotnet(place: Place) -> Finds:
    projects = [*place.files("*.sln", 1), *place.files("*.slnx", 1), *place.files("*.csproj", 1)]
    if projects:
        yield found("build", projects[0].name, "dotnet", "build")
        yield found("tests", projects[0].name, "dotnet", "test")
