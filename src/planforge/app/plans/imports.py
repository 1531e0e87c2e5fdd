"""
Brings in what others wrote about work to be done, as a plan or as what a plan is forged from.

What a source is shows in itself: an address or `#12` is an issue, a directory a feature of spec-kit, anything
else Markdown. Only regular files are read, links in a directory are not followed, and no source may be larger
than `LIMIT`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from planforge.app.plans import github
from planforge.documents.imports import LIMIT, Imported, decoded, issues, one_line, prose, speckit
from planforge.errors import InvalidInput, NotFound
from planforge.kernel.files import read_regular

if TYPE_CHECKING:
    from planforge.app.project import Project

STDIN = "-"
MOST_FILES = 200
"""How many files a feature may have."""
FEATURE = re.compile(r"\d{1,8}-.+")

Read = Callable[[int], bytes]
"""Reads so much of standard input."""


def found(project: Project, source: str, stdin: Read) -> Imported:
    """What `source` means: an issue, a directory of spec-kit, a Markdown file, or `-`."""
    if source == STDIN:
        return prose.read(stdin(LIMIT + 1), "standard input")
    path = Path(source)
    if not os.path.lexists(path):
        if (named := issues.reference(source)) is not None:
            return _asked(project, named)
        raise NotFound(
            f"there is no `{source}`",
            "name a directory like `specs/001-name`, a Markdown file, an issue like `owner/repo#12`, or `-`",
        )
    shown = _shown(project, path)
    if path.is_dir():
        return speckit.read(dict(_documents(path, shown)), shown)
    content = _content(path)
    if path.suffix.lower() == ".json":
        return issues.read(content, shown)
    if path.name in speckit.READ and FEATURE.fullmatch(path.absolute().parent.name):
        return speckit.read({path.name: decoded(content, shown)}, shown)
    return prose.read(content, shown)


def given(project: Project, file: str, stdin: Read) -> Imported:
    """What somebody gives along with a request: the text of a file, or of standard input for `-`."""
    shown = "standard input" if file == STDIN else _shown(project, Path(file))
    text = decoded(stdin(LIMIT + 1) if file == STDIN else _content(Path(file)), shown)
    if not text.strip():
        raise InvalidInput(f"`{shown}` is empty", "leave `--context` out, or give it something")
    first = next(line for line in text.splitlines() if line.strip())
    return Imported(title=one_line(first), text=text, source=shown, context=text)


def issue(project: Project, ref: str) -> Imported:
    """The issue on GitHub that `owner/repo#12`, `#12` or an address means, asked for through `gh`."""
    named = issues.reference(ref)
    if named is None:
        raise InvalidInput(
            f"`{ref}` names no issue", "write it like `owner/repo#12`, `#12`, or as its address"
        )
    return _asked(project, named)


def _asked(project: Project, named: issues.Reference) -> Imported:
    words = ["issue", "view", named.number, "--json", issues.FIELDS]
    if not named.repository:  # then `gh` asks the repository where it is from
        return issues.read(github.ask(words, cwd=project.root, limit=LIMIT), f"#{named.number}")
    words += ["--repo", named.repository]
    return issues.read(github.ask(words, cwd=Path("/"), limit=LIMIT), str(named))


def _shown(project: Project, path: Path) -> str:
    """A path as people know it: from the root of the project if it is in there."""
    whole = path.absolute()
    inside = whole.is_relative_to(project.root)
    return one_line(
        os.fsencode(whole.relative_to(project.root) if inside else path).decode("utf-8", "replace")
    )


def _content(path: Path, limit: int = LIMIT) -> bytes:
    """What a regular file holds, up to a little more than may be."""
    try:
        return read_regular(path, limit + 1)
    except FileNotFoundError as error:
        raise NotFound(f"there is no `{path}`") from error
    except OSError as error:
        raise InvalidInput(f"`{path}` cannot be read: {error.strerror}", "name a file, or use `-`") from error


def _documents(directory: Path, shown: str) -> Iterator[tuple[str, str]]:
    """The documents of a feature by name; what is no text is named, and stays where it is."""
    left = LIMIT
    for number, path in enumerate(_files(directory)):
        content = _content(path, left)
        left -= len(content)
        if left < 0 or number >= MOST_FILES:
            raise InvalidInput(
                f"`{shown}` has more than {LIMIT} bytes or {MOST_FILES} files", "import its `spec.md` alone"
            )
        name = path.relative_to(directory).as_posix()
        try:
            yield name, decoded(content, name)
        except InvalidInput:
            yield (
                one_line(name.encode("utf-8", "replace").decode()),
                f"(a file of {len(content)} bytes that is no text)",
            )


def _files(directory: Path) -> Iterator[Path]:
    for place, directories, names in os.walk(directory):
        directories[:] = sorted(name for name in directories if not name.startswith("."))
        for name in sorted(names):
            path = Path(place, name)
            if not path.is_symlink() and path.is_file() and not name.startswith("."):
                yield path
