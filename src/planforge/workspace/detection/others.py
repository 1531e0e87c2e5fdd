"""Ruby, PHP, Elixir, Deno and .NET, as far as one command does it."""

from __future__ import annotations

import re

from planforge.workspace.checks import Report
from planforge.workspace.detection.places import Finds, Place, found, table

JUNIT = "${reports}/junit.xml"
RAKE_TEST = re.compile(r"Rake::TestTask|Minitest::TestTask|^\s*task\s+:?test\b", re.MULTILINE)


def look(place: Place) -> Finds:
    """How projects of these languages are checked."""
    yield from _ruby(place)
    yield from _php(place)
    yield from _elixir(place)
    yield from _deno(place)
    yield from _dotnet(place)


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
