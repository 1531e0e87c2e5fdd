"""
What files say is to be installed: every dependency by where it stands, with its bound and its source.

Each format is read as far as it says that, and no further. A file that cannot be read
raises `Unreadable`; what its dependencies are is then for a person to see.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from configparser import Error as ConfigError
from configparser import RawConfigParser
from typing import Any
from xml.etree import ElementTree

from planforge.rules.protection.patterns import stands_for

Entries = dict[str, str]
"""For each dependency or setting, by a name that tells it from all others, what is said of it."""


class Unreadable(Exception):
    """A manifest that cannot be understood."""


def reader(path: str) -> Callable[[str], Entries] | None:
    """What reads a file at this path, in small letters, if it says what is installed."""
    return next((read for pattern, read in READERS.items() if stands_for(f"**/{pattern}", path)), None)


def entries(read: Callable[[str], Entries], text: str) -> Entries:
    """What the file says, or `Unreadable`."""
    try:
        return read(text)
    except (
        ValueError,
        TypeError,
        AttributeError,
        RecursionError,
        ConfigError,
        ElementTree.ParseError,
    ) as error:
        raise Unreadable(str(error)) from error


# Python

REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?P<extras>\[[^\]]*\])?\s*(?P<rest>.*)", re.DOTALL
)


def _requirement(text: str) -> tuple[str, str]:
    """A requirement by its name, and what it asks for: extras, bound, source and condition."""
    found = REQUIREMENT.fullmatch(text.strip())
    if found is None:
        return text.strip(), text.strip()
    extras = "".join((found["extras"] or "").split())
    bound, condition, marker = found["rest"].partition(";")
    said = " ".join(bound.split()) if "@" in bound else "".join(bound.split())
    name = re.sub(r"[-_.]+", "-", found["name"]).lower()
    return name, f"{extras}{said}{condition}{' '.join(marker.split())}"


def _requirements(section: str, given: Iterable[object]) -> Iterator[tuple[str, str]]:
    """Several requirements may have one name, for different versions of Python."""
    found: dict[str, list[str]] = {}
    for item in given:
        name, bound = _requirement(item) if isinstance(item, str) else (f"{item}", f"{item}")
        found.setdefault(name, []).append(bound)
    for name, bounds in found.items():
        yield f"{section}: {name}", " | ".join(sorted(bounds))


def _pyproject(text: str) -> Entries:
    document = tomllib.loads(text)
    project, build, tool = (_table(document, name) for name in ("project", "build-system", "tool"))
    found = dict(_requirements("dependencies", project.get("dependencies", [])))
    for group, items in (
        *_table(project, "optional-dependencies").items(),
        *_table(document, "dependency-groups").items(),
    ):
        found |= _requirements(group, items)
    found |= _requirements("build-system", build.get("requires", []))
    found |= {
        f"build-system {key}": _said(build[key]) for key in ("build-backend", "backend-path") if key in build
    }
    for name in ("poetry", "pdm", "uv", "hatch", "pixi", "rye"):
        found |= _python_tool(name, _table(tool, name))
    return found


def _python_tool(name: str, table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for section in (
        "dependencies",
        "dev-dependencies",
        "constraint-dependencies",
        "override-dependencies",
        "pypi-dependencies",
    ):
        given = table.get(section, [])
        yield from _requirements(section, given) if isinstance(given, list) else _named(section, given)
    for group, items in _table(table, "group").items():
        yield from _named(f"group {group}", _table(items, "dependencies"))
    for environment, items in _table(table, "envs").items():
        yield from _requirements(
            f"environment {environment}", _table({"": items}, "").get("dependencies", [])
        )
    for section in (
        "sources",
        "source",
        "index",
        "index-url",
        "extra-index-url",
        "find-links",
        "build",
        "environments",
    ):
        if section in table:
            yield f"{name} {section}", _said(table[section])


def _pip(text: str) -> Entries:
    found: dict[str, list[str]] = {}
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        said = re.sub(r"(?:^|\s)#.*", "", line).strip()
        said = re.sub(r"\s--hash[= ]\S+", "", said).strip()
        if said.startswith("-"):
            found.setdefault(f"option {said}", []).append(said)
        elif said:
            name, bound = _requirement(said)
            found.setdefault(name, []).append(bound)
    return {name: " | ".join(sorted(bounds)) for name, bounds in found.items()}


def _setup_cfg(text: str) -> Entries:
    parser = RawConfigParser(strict=False)
    parser.read_string(text)
    wanted = {
        "options": ("install_requires", "setup_requires", "tests_require"),
        "options.extras_require": (),
    }
    found: Entries = {}
    for section, keys in wanted.items():
        for key, said in parser[section].items() if parser.has_section(section) else ():
            if not keys or key in keys:
                items = [item for item in re.split(r"[\n;](?![^\[]*\])", said) if item.strip()]
                found |= _requirements(key, items)
    return found


def _pipfile(text: str) -> Entries:
    document = tomllib.loads(text)
    found = {"source": _said(document["source"])} if "source" in document else {}
    for section, table in document.items():
        if isinstance(table, dict) and section not in ("requires", "scripts", "pipenv"):
            found |= _named(section, table)
    return found


# JavaScript, PHP

NPM = (
    "dependencies",
    "devDependencies",
    "optionalDependencies",
    "peerDependencies",
    "overrides",
    "resolutions",
)
NPM_KEYS = (
    "packageManager",
    "bundledDependencies",
    "bundleDependencies",
    "workspaces",
    "trustedDependencies",
)
RUN_BY_ITSELF = re.compile(
    r"(?:pre|post)?(?:install|prepare|publish|pack|version|uninstall|prepublishOnly)|dependencies"
)


def _package_json(text: str) -> Entries:
    document = _object(text)
    found = _listed(document, NPM)
    found |= _named("pnpm overrides", _table(_table(document, "pnpm"), "overrides"))
    found |= {
        f"script {name}": _said(said)
        for name, said in _table(document, "scripts").items()
        if RUN_BY_ITSELF.fullmatch(name)
    }
    return found | _listed(document, (), NPM_KEYS)


def _composer(text: str) -> Entries:
    keys = ("repositories", "scripts", "minimum-stability", "replace", "conflict")
    return _listed(_object(text), ("require", "require-dev"), keys)


# Rust, Go

CARGO = ("dependencies", "dev-dependencies", "build-dependencies")


def _cargo(text: str) -> Entries:
    document = tomllib.loads(text)
    found: Entries = {}
    tables = {"": document, "workspace ": _table(document, "workspace")}
    tables |= {f"{name} ": table for name, table in _table(document, "target").items()}
    for prefix, table in tables.items():
        for section in CARGO:
            found |= _named(f"{prefix}{section}", _table(table, section))
    found |= _listed(document, ("patch", "replace"))
    build = _table(document, "package").get("build")
    return found | ({"build script": _said(build)} if build is not None else {})


def _go(text: str) -> Entries:
    found: Entries = {}
    block = ""
    for line in text.splitlines():
        said = line.partition("//")[0].strip()
        if opened := re.fullmatch(r"(\w+)\s*\(", said):
            block = opened[1]
        elif said == ")":
            block = ""
        elif said:
            word, _, rest = (block, "", said) if block else said.partition(" ")
            name, _, bound = rest.strip().partition(" ")
            if word in ("require", "replace", "exclude", "tool"):
                found[f"{word}: {name}"] = " ".join(bound.split())
            elif word in ("toolchain", "go"):
                found[word] = name
    return found


# Java

GRADLE = re.compile(
    r"""['"](?P<name>[\w.-]+:[\w.-]+)(?::(?P<bound>[^'"]*))?['"]|"""
    r"""\bid\s*\(?\s*['"](?P<plugin>[\w.-]+)['"]\)?\s*(?:version\s*\(?\s*['"](?P<version>[^'"]+))?|"""
    r"""\burl\s*[=(]?\s*(?:uri\()?\s*['"](?P<url>[^'"]+)"""
)


def _pom(text: str) -> Entries:
    if re.search(r"<!(?:DOCTYPE|ENTITY)", text):
        raise Unreadable("it declares entities")
    root = ElementTree.fromstring(text)  # noqa: S314  (nothing in it can be expanded, see above)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    found: Entries = {}
    for element in root.iter():
        words = {child.tag: (child.text or "").strip() for child in element}
        if element.tag in ("dependency", "plugin", "parent", "extension") and "artifactId" in words:
            rest = {
                key: words[key]
                for key in sorted(words)
                if key not in ("artifactId", "groupId") and words[key]
            }
            found[f"{element.tag}: {words.get('groupId', '')}:{words['artifactId']}"] = _said(rest)
        elif element.tag in ("repository", "pluginRepository", "snapshotRepository") and "url" in words:
            found[f"repository: {words['url']}"] = words["url"]
    properties = root.find("properties")
    for child in properties if properties is not None else ():
        if "version" in child.tag.lower():
            found[f"property: {child.tag}"] = (child.text or "").strip()
    return found


def _gradle(text: str) -> Entries:
    found: Entries = {}
    for said in GRADLE.finditer(re.sub(r"//.*", "", text)):
        name = said["name"] or (f"plugin {said['plugin']}" if said["plugin"] else f"repository {said['url']}")
        found[name] = said["bound"] or said["version"] or ""
    return found


def _versions(text: str) -> Entries:
    return _listed(tomllib.loads(text), ("versions", "libraries", "plugins"))


# Ruby

GEM = re.compile(
    r"""^\s*(?P<word>gem|source|git_source|gemspec|path|git|ruby)\b\s*\(?\s*(?P<rest>.*?)\)?\s*(?:do\s*)?(?:#.*)?$"""
)


def _gemfile(text: str) -> Entries:
    found: Entries = {}
    for line in text.splitlines():
        if said := GEM.match(line):
            name, _, bound = said["rest"].partition(",")
            key = name.strip().strip("'\"")
            found[f"gem: {key}" if said["word"] == "gem" else f"{said['word']} {key}"] = " ".join(
                bound.split()
            )
    return found


# What they share


def _table(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = document.get(name, {})
    return found if isinstance(found, dict) else {}


def _listed(document: Mapping[str, Any], sections: Iterable[str], keys: Iterable[str] = ()) -> Entries:
    """All that some sections name, and what is said under some keys."""
    found = {name: said for section in sections for name, said in _named(section, _table(document, section))}
    return found | {key: _said(document[key]) for key in keys if key in document}


def _named(section: str, table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, said in table.items():
        yield f"{section}: {name}", _said(said)


def _said(value: object) -> str:
    return (
        value
        if isinstance(value, str)
        else json.dumps(value, sort_keys=True, default=str, ensure_ascii=False)
    )


def _object(text: str) -> dict[str, Any]:
    document = json.loads(text)
    if not isinstance(document, dict):
        raise Unreadable("it is no object")
    return document


READERS: dict[str, Callable[[str], Entries]] = {
    "pyproject.toml": _pyproject,
    "requirements*.txt": _pip,
    "requirements*.in": _pip,
    "*requirements.txt": _pip,
    "requirements/*.txt": _pip,
    "requirements/*.in": _pip,
    "constraints*.txt": _pip,
    "setup.cfg": _setup_cfg,
    "pipfile": _pipfile,
    "package.json": _package_json,
    "composer.json": _composer,
    "cargo.toml": _cargo,
    "go.mod": _go,
    "go.work": _go,
    "pom.xml": _pom,
    "*.gradle": _gradle,
    "*.gradle.kts": _gradle,
    "*.versions.toml": _versions,
    "gemfile": _gemfile,
    "gems.rb": _gemfile,
}
