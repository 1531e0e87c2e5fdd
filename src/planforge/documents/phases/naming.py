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

EXTENSION = re.compile(
    r"bash|c|cc|cfg|cjs|conf|cpp|cs|css|csv|dart|dockerignore|editorconfig|env|ex|exs|example|gitattributes|"
    r"gitignore|go|gql|gradle|graphql|h|hpp|htm|html|ini|ipynb|java|jinja|js|json|jsonc|jsonl|jsx|kt|kts|less|"
    r"lock|lua|markdown|md|mdx|mjs|mk|mod|npmrc|php|pl|prisma|properties|proto|ps1|py|pyi|rb|rs|rst|sass|scala|scss|sh|"
    r"sql|sum|svelte|svg|swift|tf|tmpl|toml|ts|tsx|txt|vue|xml|ya?ml|zig|zsh",
    re.IGNORECASE,
)
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


def file_path(token: str, *, spaced: bool = False) -> str | None:
    """
    The token as a path inside the repository, or nothing if it is not one.

    It needs a slash, or an extension we know, or every dotted identifier would be a file. A directory or a
    pattern is no file. Backslashes are read as slashes, and a line number at its end is dropped.

    A space is part of a path where only paths can stand (`spaced`). Elsewhere, where `pytest tests/a.py` is a
    command, there may be spaces in the name alone, below a directory and before an extension we know, as
    in `docs/My Notes.md`.
    """
    path = LINE_NUMBER.sub("", token.strip()).replace("\\", "/")
    if not path.isprintable() or NOT_IN_A_PATH.intersection(path) or len(path.encode()) > LONGEST_PATH:
        return None
    parts = [part for part in path.split("/") if part != "."]
    if not parts or not all(map(_is_safe, parts)):
        return None
    path = "/".join(parts)
    if path.startswith(ODD_STARTS) or path.endswith(")"):
        return None
    if " " in path and not (spaced or _is_spaced_name(path)):
        return None
    return path if len(parts) > 1 or _is_file_name(path) else None


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
    words = name.split(" ")
    return (
        bool(directory)
        and " " not in directory
        and all(words)
        and _is_file_name(name)
        and not any(_is_file_name(word) for word in words[:-1])
        and not any(word.startswith("-") for word in words)
    )


def _is_file_name(name: str) -> bool:
    _, dot, extension = name.rpartition(".")
    return bool(dot) and EXTENSION.fullmatch(extension) is not None and name.lower() not in NO_FILES
