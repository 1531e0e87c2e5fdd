"""
Which words of a plan are files of the repository.

The words come from a document that an agent wrote or that was imported, so whatever
could leave the repository on any system is no file: `..`, absolute paths, drives and
shares, homes and variables, git's and our own directory however they are spelled, names
that Windows keeps for devices or takes for other ones.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

EXTENSION = re.compile(
    r"bash|bat|bazel|bzl|c|cc|cfg|cmake|cjs|conf|cpp|cs|csproj|css|csv|dart|dockerignore|editorconfig|env|ex|exs|example|gemspec|gitattributes|"
    r"gitignore|go|gql|gradle|graphql|h|hpp|htm|html|ini|ipynb|java|jinja|js|json|jsonc|jsonl|jsx|kt|kts|less|"
    r"lock|lua|markdown|md|mdx|mjs|mk|mod|nix|npmrc|php|pl|prisma|properties|proto|ps1|py|pyi|rb|rs|rst|sass|scala|scss|sh|"
    r"sql|sum|svelte|svg|swift|tf|tmpl|toml|ts|tsx|txt|vue|xml|ya?ml|zig|zsh",
    re.IGNORECASE,
)
PROJECT_FILE = re.compile(
    r"(?:GNU)?[Mm]akefile(?:\.\w+)?|(?:[Dd]ocker|[Cc]ontainer)file(?:\.[\w-]+)?|[Jj]ustfile|"
    r"(?:App|Berks|Brew|Caddy|Cap|Cart|Danger|Earth|Fast|Gem|Guard|Jenkins|Pip|Pod|Proc|Puppet|Rake|Snake|Task|Thor|"
    r"Tilt|Vagrant)file|SConstruct|SConscript|CODEOWNERS|go\.work"
)
"""Names that are a project's files wherever they stand."""
FIRST_FILE = re.compile(
    r"LICEN[CS]E(?:-[\w.-]+)?|COPYING|NOTICE|AUTHORS|CONTRIBUTORS|MAINTAINERS|README|CHANGELOG|CONTRIBUTING|"
    r"gradlew|mvnw|\.env\.[\w.-]+|"
    r"\.[a-z][a-z0-9-]+(?:rc|ignore|keep|modules|attributes|-versions?|config)|"
    r"\.(?:flake8|mailmap|clang-format|clang-tidy|htaccess|nojekyll|justfile)"
)
"""Names that are files where a file is to be named, and a constant or a method elsewhere."""
NO_FILES = frozenset({"process.env", "import.meta.env", "node.js", "next.js", "vue.js"})
LINE_NUMBER = re.compile(r"(?::\d+(?:[-:]\d+)?|#L\d+(?:-L?\d+)?)$")
NOT_IN_A_PATH = frozenset("\"'`*?<>|{};=,:&%!^")
ODD_STARTS = ("~", "$", "-", "@/")  # a home, a variable, an option, an import alias
FORBIDDEN = frozenset({"", ".git", "git~1", ".planforge", "planfo~1"})
DEVICES = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$"]
    + [f"{name}{number}" for name in ("com", "lpt") for number in range(10)]
)
LONGEST_NAME, LONGEST_PATH = 255, 4000
"""How many bytes file systems take."""


def file_path(
    token: str, *, spaced: bool = False, first: bool = False, present: Collection[str] = ()
) -> str | None:
    """
    The token as a path inside the repository, or nothing if it is not one.

    It needs a slash, or an extension we know, or a name that projects give their files (`Makefile`). Without
    that rule, every dotted identifier would be a file. A directory or a pattern is no file. Backslashes are
    read as slashes, and a line number at its end is dropped.

    Where a file is to be named, more counts. In a manifest (`spaced`) there may be spaces anywhere, at the
    start of an item (`first`) in directories, and in both `LICENSE`, `./run` and all that is `present` in the
    repository are files. Elsewhere, where `pytest tests/a.py` is a command, there may be spaces in the name
    alone, below a directory and before an extension we know, as in `docs/My Notes.md`.
    """
    path = inside(token)
    if path is None:
        return None
    naming = spaced or first
    if naming and path in present:
        return path
    if " " in path and not (spaced or _is_spaced_name(path) or (first and _is_in_spaced_directory(path))):
        return None
    if "/" in path or _is_file_name(path):
        return path
    dotted = token.strip().replace("\\", "/").startswith("./")
    return path if naming and " " not in path and (dotted or FIRST_FILE.fullmatch(path)) else None


def inside(token: str) -> str | None:
    """The token as a path that cannot leave the repository, whether or not it looks like a file."""
    path = LINE_NUMBER.sub("", token.strip()).replace("\\", "/")
    if not path.isprintable() or NOT_IN_A_PATH.intersection(path) or len(path.encode()) > LONGEST_PATH:
        return None
    parts = [part for part in path.split("/") if part != "."]
    if not parts or not all(map(_is_safe, parts)):
        return None
    path = "/".join(parts)
    return None if path.startswith(ODD_STARTS) or path.endswith(")") else path


def _is_safe(part: str) -> bool:
    """Whether a part of a path is an ordinary name on every system; an absolute path has an empty part."""
    # Windows drops dots and spaces at the end, and some file systems know no case and no widths of letters.
    if part != part.strip(" ") or part.endswith(".") or len(part.encode()) > LONGEST_NAME:
        return False
    plain = unicodedata.normalize("NFKC", part).casefold()
    if "/" in plain or "\\" in plain or ":" in plain:  # which some letters turn into
        return False
    return plain.rstrip(". ") not in FORBIDDEN and plain.partition(".")[0].rstrip(" ") not in DEVICES


def _is_spaced_name(path: str) -> bool:
    directory, _, name = path.rpartition("/")
    return bool(directory) and " " not in directory and _are_words_of_one_file(name)


def _is_in_spaced_directory(path: str) -> bool:
    """As `src/a b/c.ts`: what a command begins with, such as `pytest tests/a.py`, has no slash."""
    return "/" in path.partition(" ")[0] and _are_words_of_one_file(path)


def _are_words_of_one_file(path: str) -> bool:
    words = path.split(" ")
    return (
        all(words)
        and _is_file_name(path.rpartition("/")[2])
        and not any(_is_file_name(word) for word in words[:-1])
        and not any(word.startswith("-") for word in words)
    )


def _is_file_name(name: str) -> bool:
    if PROJECT_FILE.fullmatch(name):
        return True
    _, dot, extension = name.rpartition(".")
    return bool(dot) and EXTENSION.fullmatch(extension) is not None and name.lower() not in NO_FILES
