"""Ruby, PHP, Elixir, Deno and .NET, as far as one command does it."""

from __future__ import annotations

import re

from planforge.workspace.checks import Check, Report
from planforge.workspace.detection.places import Finds, Found, Place, table

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
        yield Found(name="tests", check=Check(command=(*bundled, "rspec")), why="specs of rspec")
    elif RAKE_TEST.search(place.text("Rakefile") or ""):
        yield Found(
            name="tests", check=Check(command=(*bundled, "rake", "test")), why="task `test` of Rakefile"
        )
    if place.has(".rubocop.yml"):
        yield Found(name="lint", check=Check(command=(*bundled, "rubocop")), why=".rubocop.yml")


def _php(place: Place) -> Finds:
    if name := place.has("phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"):
        command = ("vendor/bin/phpunit", f"--log-junit={JUNIT}")
        yield Found(name="tests", check=Check(command=command, report=Report.JUNIT, junit=JUNIT), why=name)
    elif "test" in table(place.json("composer.json"), "scripts"):
        check = Check(command=("composer", "run-script", "test"))
        yield Found(name="tests", check=check, why="script `test` of composer.json")


def _elixir(place: Place) -> Finds:
    if place.has("mix.exs"):
        yield Found(name="build", check=Check(command=("mix", "compile")), why="mix.exs")
        yield Found(name="tests", check=Check(command=("mix", "test")), why="mix.exs")


def _deno(place: Place) -> Finds:
    if name := place.has("deno.json", "deno.jsonc"):
        command = ("deno", "test", f"--junit-path={JUNIT}")
        yield Found(name="tests", check=Check(command=command, report=Report.JUNIT, junit=JUNIT), why=name)
        yield Found(name="lint", check=Check(command=("deno", "lint")), why=name)


def _dotnet(place: Place) -> Finds:
    found = [*place.files("*.sln", 1), *place.files("*.slnx", 1), *place.files("*.csproj", 1)]
    if found:
        yield Found(name="build", check=Check(command=("dotnet", "build")), why=found[0].name)
        yield Found(name="tests", check=Check(command=("dotnet", "test")), why=found[0].name)
