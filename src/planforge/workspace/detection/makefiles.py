"""
Targets of a Makefile and recipes of a justfile.

Both are parsed as far as a name needs it: rules, not recipe lines; not variables, not
pattern rules, not what stands in a `define`. What other files they include is not looked
at, and that is said. A target that make would take for a file that exists is not taken,
for nothing would be run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from planforge.workspace.detection import python
from planforge.workspace.detection.places import Finds, Passed, Place, found

MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
JUSTFILES = ("justfile", "Justfile", ".justfile")

TARGETS = {
    "build": ("build",),
    "types": ("typecheck", "type-check", "types", "mypy"),
    "lint": ("lint",),
    "tests": ("test", "tests", "check"),
}

ASSIGNMENT = re.compile(r"^(?:(?:export|override|private|undefine)\s+)*[^\s:#=+?!]+\s*(?:\?|\+|!|::?:?)?=")
LOCAL = re.compile(r"^\s*(?:(?:export|override|private)\s+)*[\w.-]+\s*(?:\?|\+|!|::?:?)?=")
INCLUDE = re.compile(r"^(?:-|s)?include\s+(.+)$")
CONDITION = ("ifeq", "ifneq", "ifdef", "ifndef", "else", "endif", "export", "unexport", "vpath", "override")


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """One target of a Makefile, or one recipe of a justfile."""

    name: str
    does: bool
    """Whether it has a recipe or needs other targets."""
    needs: tuple[str, ...] = ()
    """Prerequisites, or parameters without which a recipe cannot be called."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What a file of rules holds."""

    targets: dict[str, Target]
    phony: frozenset[str] = frozenset()
    included: tuple[str, ...] = ()


def look(place: Place) -> Finds:
    """What `make` and `just` can be asked for."""
    if file := place.has(*MAKEFILES):
        yield from _offered(place, "make", file, read_makefile(place.text(file) or ""))
    if file := place.has(*JUSTFILES):
        yield from _offered(place, "just", file, read_justfile(place.text(file) or ""))


def _offered(place: Place, tool: str, file: str, rules: Rules) -> Finds:
    if rules.included:
        names = ", ".join(f"`{name}`" for name in rules.included)
        yield Passed(what=f"{file} includes {names}, which is not looked at")
    env, visible = _surroundings(place)
    for name, candidates in TARGETS.items():
        for target in (rules.targets[word] for word in candidates if word in rules.targets):
            if problem := _problem(place, tool, target, rules):
                yield Passed(what=f"{name}: `{tool} {target.name}`, for {problem}")
                continue
            # What `make build` means in a project of scripts is mostly a package, which no test needs.
            required = False if name == "types" or (name == "build" and python.is_project(place)) else None
            why = f"target `{target.name}` in {file}"
            yield found(name, why, tool, target.name, env=dict(env), required=required, visible=visible)
            break


def _surroundings(place: Place) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """What the commands in a recipe need: the project's virtual environment, and Go told to count."""
    env: dict[str, str] = {}
    visible: tuple[str, ...] = ()
    if python.is_project(place) and (venv := python.virtual_environment(place)):
        env = {"VIRTUAL_ENV": venv.path, "PATH": f"{venv.path}/bin:${{PATH}}"}
        visible = venv.visible
    if place.has("go.mod"):
        env["GOFLAGS"] = "-v"  # without it `go test` does not say how many tests there are
    return env, visible


def _problem(place: Place, tool: str, target: Target, rules: Rules) -> str:
    if tool == "just":
        return f"it needs {', '.join(target.needs)}" if target.needs else ""
    if not target.does:
        return "it has no recipe"
    stands = (place.root / target.name).exists()
    if stands and target.name not in rules.phony and not target.needs:
        return f"`{target.name}` is there as a file and not `.PHONY`, so that make does nothing"
    return ""


def read_makefile(text: str) -> Rules:
    """The targets of a Makefile."""
    targets: dict[str, Target] = {}
    phony: set[str] = set()
    included: list[str] = []
    current: list[str] = []
    for line in _logical_lines(text):
        if line.startswith("\t"):
            for name in current:
                targets[name] = msgspec.structs.replace(targets[name], does=True)
            continue
        stripped = line.split("#", 1)[0].strip()
        if not stripped:
            continue
        if found := INCLUDE.match(stripped):
            included += found[1].split()
        elif rule := _rule(stripped):
            names, needs, recipe = rule
            current = [] if ".PHONY" in names else [name for name in names if not name.startswith(".")]
            phony |= set(needs) if ".PHONY" in names else set()
            for name in current:
                before = targets.get(name, Target(name=name, does=False))
                does = before.does or recipe or bool(needs)
                targets[name] = Target(name=name, does=does, needs=(*before.needs, *needs))
        else:
            current = []
    return Rules(targets=targets, phony=frozenset(phony), included=tuple(included))


def _logical_lines(text: str) -> Iterator[str]:
    """Lines with what a backslash continues, without `define` blocks."""
    inside = 0
    for line in re.sub(r"\\\r?\n[ \t]*", " ", text).splitlines():
        word = line.split(maxsplit=1)[0] if line.strip() and not line.startswith("\t") else ""
        if word == "define":
            inside += 1
        elif word == "endef":
            inside -= inside > 0
        elif not inside:
            yield line


def _rule(line: str) -> tuple[list[str], list[str], bool] | None:
    """The targets and prerequisites of a rule, and whether a recipe stands on the same line."""
    if ASSIGNMENT.match(line) or line.split(maxsplit=1)[0] in CONDITION:
        return None
    left, colon, right = line.partition(":")
    right = right.removeprefix(":")
    names = left.removesuffix("&").split()
    if not colon or not names or LOCAL.match(right):  # the last: a variable for one target alone
        return None
    plain = [name for name in names if "%" not in name and "$" not in name]
    needs, semicolon, _ = right.partition(";")
    return (plain, needs.replace("|", " ").split(), bool(semicolon)) if plain else ([], [], False)


RECIPE = re.compile(r"^@?([A-Za-z_][\w-]*)((?:\s+[^:]*?)?)\s*:(?!=)")
ALIAS = re.compile(r"^alias\s+([\w-]+)\s*:=\s*([\w-]+)")
IMPORT = re.compile(r"^(?:import|mod)\??\s+(.+)$")
WORDS = ("alias", "export", "import", "mod", "set", "unexport")


def read_justfile(text: str) -> Rules:
    """The recipes of a justfile, with the parameters that have no default."""
    targets: dict[str, Target] = {}
    aliases: dict[str, str] = {}
    included: list[str] = []
    for line in re.sub(r"\\\r?\n[ \t]*", " ", text).splitlines():
        if not line or line[0] in " \t#[":
            continue
        if found := ALIAS.match(line):
            aliases[found[1]] = found[2]
        elif found := IMPORT.match(line):
            included.append(found[1].strip("'\""))
        elif (found := RECIPE.match(line)) and found[1] not in WORDS:
            wanted = [word.lstrip("$") for word in found[2].split() if "=" not in word]
            needs = tuple(word for word in wanted if not word.startswith("*"))
            targets[found[1]] = Target(name=found[1], does=True, needs=needs)
    targets |= {
        name: msgspec.structs.replace(targets[meant], name=name)
        for name, meant in aliases.items()
        if meant in targets
    }
    return Rules(targets=targets, included=tuple(included))
