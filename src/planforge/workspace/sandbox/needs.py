"""
What programs need to see in order to start, wherever it is installed.

Interpreters, packages and tools are installed in homes and in directories for temporary files as often as
not. What is started leads there: by links, by the first line of a script, by a shim, by the settings of a
virtual environment, by the directories on PATH. All of that is followed, and the installation at its end is
shown. A home or a directory for temporary files is never shown as a whole, whatever is installed in it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import planforge

PROGRAMS = ("bin", "sbin", "shims", "Scripts", ".bin", "condabin")
"""What directories of programs are called."""

INSTALLED = ("conda-meta", "lib", "lib64", "libexec", "node_modules", "pyvenv.cfg", "versions")
"""What lies beside `bin` where something is installed, and not where somebody keeps scripts."""

LIBRARIES = ("lib", "lib64")
SITES = ("site-packages", "dist-packages")
"""Where packages of Python are installed."""

PARTLY = (".cargo", ".local", ".bun", ".deno", ".poetry")
"""Directories of a home in which `bin` lies beside what is nobody's business."""

VERSIONS = {"versions": 1, "installs": 2}
"""Where managers of versions, which put shims on PATH, keep what the shims lead to, and how deep."""

SCRIPT = 8192
"""How many bytes of a script are read: a shim is short."""

LINKS = 40
"""How many links in a row are followed."""

NAMED = re.compile(
    r"""["']((?:~|\$HOME|\$\{HOME\})?/[^"'$`]+)["']|(?<![\w"'$}.])((?:~|\$HOME)?/[^\s"'$`;|&()]+)"""
)
"""A path in a script or in a module: between quotation marks, or a word."""


def needed(
    argv: Sequence[str],
    path: str,
    cwd: Path,
    shut: tuple[Path, ...] = (),
    changeable: tuple[Path, ...] = (),
    lately: int = 0,
) -> tuple[Path, ...]:
    """
    What must be seen of this interpreter, of the places on PATH and to start the program, as it was `lately`.

    `shut` are the places of which nothing else is seen. What lies in `changeable` may have been written by an
    agent, so it does not say what else is shown: it may lead to a Python, and to nothing else that is shut.
    """
    named = (str(cwd / word) if "/" in word else word for word in (argv[0], *filter(_is_program, argv[1:])))
    programs = tuple(found for word in named if (found := shutil.which(word, path=path)))
    return (*_everywhere(path, shut, changeable, lately), *_started(programs, path, shut, changeable, lately))


def _everywhere(
    path: str, shut: tuple[Path, ...], changeable: tuple[Path, ...], lately: int
) -> tuple[Path, ...]:
    places = dict.fromkeys(name for name in path.split(os.pathsep) if name.startswith("/"))
    search = _Search(path, shut, changeable)
    own = [name for name in places if not search.is_trusted(Path(name))]
    for name in own:
        search.look_beside(Path(name))
    return (*_on_path(tuple(name for name in places if name not in own), path, shut, lately), *search.found)


@lru_cache(maxsize=16)
def _on_path(places: tuple[str, ...], path: str, shut: tuple[Path, ...], lately: int) -> tuple[Path, ...]:
    del lately  # a new number makes us look again
    search = _Search(path, shut)
    search.find_ourselves()
    for place in places:
        search.look_in(Path(place))
    return tuple(search.found)


@lru_cache(maxsize=64)
def _started(
    programs: tuple[str, ...], path: str, shut: tuple[Path, ...], changeable: tuple[Path, ...], lately: int
) -> tuple[Path, ...]:
    del lately
    search = _Search(path, shut, changeable)
    for program in programs:
        search.follow(Path(program))
    return tuple(search.found)


def _is_program(word: str) -> bool:
    """Whether this is the whole path of a program, as after `env`: a file that can be executed."""
    with suppress(OSError, ValueError):
        return word.startswith("/") and os.access(word, os.X_OK) and Path(word).is_file()
    return False


class _Search:
    """What was found so far, and where it is looked for."""

    def __init__(self, path: str, shut: Sequence[Path], changeable: Sequence[Path] | None = None) -> None:
        self.found: dict[Path, None] = {}
        self._path = path
        self._shut = tuple(f"{place}/" for place in shut)
        self._of_program = changeable is not None
        self._changeable = tuple(f"{os.path.realpath(place)}/" for place in changeable or ())
        self._been: set[tuple[Path, bool]] = set()
        self._scanned: set[str] = set()
        self._on_path: set[Path] = set()
        self._real = lru_cache(maxsize=None)(os.path.realpath)
        self._partly = {os.path.realpath(f"{place}/{name}") for place in shut for name in PARTLY}

    def _add(self, *paths: Path) -> None:
        self.found.update(dict.fromkeys(paths))

    def _is_shut(self, place: str) -> bool:
        """Whether nothing is seen at `place` unless we show it."""
        return f"{place}/".startswith(self._shut)

    def _is_wide(self, place: str) -> bool:
        """Whether a place that is shut lies here or below."""
        inside = f"{place}/".replace("//", "/")
        return any(each.startswith(inside) for each in self._shut)

    def _is_partly(self, root: Path) -> bool:
        """Whether of this only programs are anybody's business, by whichever name it is reached."""
        real = self._real(str(root))
        names = {os.path.basename(path) for path in (os.path.normpath(root), real)}  # noqa: PTH119
        return not names.isdisjoint(PARTLY) or real in self._partly

    def is_trusted(self, place: Path) -> bool:
        return not f"{self._real(str(place))}/".startswith(self._changeable)

    def find_ourselves(self) -> None:
        """What this interpreter was started from and has loaded, and what else it can import."""
        package = Path(planforge.__file__).parent
        self._add(package)
        for program in filter(None, (sys.executable, getattr(sys, "_base_executable", ""))):
            self.follow(Path(program))
        for prefix in {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}:
            self._installation(Path(prefix), surely=True)
        # The directory that we were started in is among them by chance, unless we are there.
        chance = {*_started_in()} - {str(package.parent)}
        paths = (Path(entry) for entry in sys.path if entry not in chance)
        libraries = (path for path in _loaded() if self._is_shut(str(path)))
        self._add(*(path for path in paths if path.is_absolute()), *libraries)

    def look_in(self, place: Path) -> None:
        """A directory of programs, and where those lead that are links, or scripts that came with nothing."""
        if not self._is_partly(place):
            self._add(place)
        real = self._real(str(place))
        self._on_path |= {place.parent, Path(real).parent}
        installed = self.look_beside(place)
        loose = self._is_shut(real) and not self._is_wide(real) and not installed
        if real in self._scanned:  # `/bin` is often `/usr/bin`
            return
        self._scanned.add(real)
        with suppress(OSError), os.scandir(real) as entries:
            for entry in entries:
                away = self._leads_to(entry.path) if entry.is_symlink() else ""
                if not (away or (loose and not entry.is_symlink())) or not _is_program(entry.path):
                    continue
                if away.endswith("/shims"):  # all in there are alike
                    self.look_beside(Path(away))
                else:
                    self.follow(Path(place, entry.name))

    def _leads_to(self, link: str) -> str:
        """The directory in which nothing is seen that a link leads to, or a link behind it; empty if none."""
        for _ in range(LINKS):
            try:
                target = os.readlink(link)  # noqa: PTH115  (there are thousands on some PATH)
            except OSError:
                return ""
            around, slash, name = target.rpartition("/")
            if not slash:  # to its own directory, where it is looked at in its turn
                return ""
            around = self._real(around or "/" if target[0] == "/" else f"{link.rpartition('/')[0]}/{around}")
            if self._is_shut(around):
                return "" if around == link.rpartition("/")[0] else around
            link = f"{around}/{name}"
        return ""

    def follow(self, program: Path, *, trusted: bool = True) -> None:
        """The program, all that it is a link to, what it was installed with, and what interprets it."""
        while True:
            inside = not self.is_trusted(program.parent)
            trusted = trusted and not inside
            if (program, trusted) in self._been or not (trusted or inside or self._may_be_shown(program)):
                return
            self._been.add((program, trusted))
            if not inside:  # it is seen, and to say so of a link would be to say it of what that leads to
                self._add(program)
            self.look_beside(program.parent, trusted=trusted)
            self._packages(program)
            try:
                program = Path(self._real(str(program.parent)), program.readlink())
            except OSError:  # it is no link
                break
        for interpreter, known in self._interpreters(program, trusted=trusted):
            self.follow(interpreter, trusted=known)

    def _may_be_shown(self, program: Path) -> bool:
        """Whether a program that something untrusted leads to is Python's, or can be seen anyhow."""
        place = self._real(str(program.parent))
        return not self._is_shut(place) or any(_pythons(Path(place).parent))

    def _interpreters(self, program: Path, *, trusted: bool) -> Iterator[tuple[Path, bool]]:
        """What the first line of a script names, and what a shim turns into; and whether that is trusted."""
        first, text = _script(program)
        words = first.split()
        for word in words[:1] if words and Path(words[0]).name != "env" else words[:3]:
            if found := shutil.which(word, path=self._path):
                yield Path(found), trusted or "/" not in word
        for line in text.splitlines() if trusted else ():
            if "exec" in line:
                yield from ((path, True) for path in _named(line) if _is_program(str(path)))

    def look_beside(self, place: Path, *, trusted: bool = True) -> bool:
        """What was installed together with a directory of programs; whether anything was."""
        found = [self._beside(each, trusted) for each in dict.fromkeys((place, Path(self._real(str(place)))))]
        return any(found)

    def _beside(self, place: Path, trusted: bool) -> bool:
        if place.name != "shims":
            return place.name in PROGRAMS and self._installation(place.parent, trusted=trusted)
        for version in _versions(place.parent) if trusted and (place.parent, True) not in self._been else ():
            if self._of_program or version.is_symlink():
                self._installation(Path(self._real(str(version))))
        return self._installation(place.parent, surely=True, trusted=trusted)

    def _installation(self, root: Path, *, surely: bool = False, trusted: bool = True) -> bool:
        trusted = trusted and self.is_trusted(root) and (surely or not self._is_project(root))
        if (root, trusted) in self._been:
            return root in self.found
        self._been.add((root, trusted))
        if not trusted or self._is_wide(self._real(str(root))) or self._is_partly(root):
            self._add(root / "pyvenv.cfg", *_pythons(root), *_pythons(root, "libpython"))
        elif surely or any(os.access(root / name, os.F_OK) for name in INSTALLED):
            self._add(root)
        else:
            return False
        virtual = self._base_of(root, trusted=trusted)
        if trusted and (virtual or self._of_program):
            self._editable(root)
        return root in self.found

    def _is_project(self, root: Path) -> bool:
        """Whether this is what a person works on, to which something on PATH leads that may never be used."""
        by_chance = not self._of_program and root not in self._on_path
        return by_chance and os.access(root / ".git", os.F_OK)

    def _base_of(self, root: Path, *, trusted: bool) -> bool:
        """The interpreter that a virtual environment was made of; whether this is one."""
        told = _text(root / "pyvenv.cfg")
        for line in told.splitlines():
            key, _, value = (part.strip() for part in line.partition("="))
            if key == "home" and (python := shutil.which("python3", path=value)):
                self.follow(Path(python), trusted=trusted)
        return bool(told)

    def _editable(self, root: Path) -> None:
        """Where packages lie that were installed without being copied."""
        for site in (library / name for library in _pythons(root) for name in SITES):
            for name in _listed(site):
                if name.endswith(".pth"):
                    lines = (line.strip() for line in _text(site / name).splitlines())
                    told = (site / line for line in lines if line and not line.startswith(("#", "import")))
                    self._add(*(path for path in told if path.is_dir()))
                elif "editable" in name and name.endswith(".py"):
                    self._add(*(path for path in _named(_text(site / name)) if path.exists()))

    def _packages(self, program: Path) -> None:
        """The packages of node that a script lies among."""
        parts = program.parts
        if "node_modules" in parts:
            self._add(Path(*parts[: parts.index("node_modules") + 1]))


def _listed(place: Path) -> list[str]:
    """The names in a directory; none if it cannot be read."""
    with suppress(OSError):
        return os.listdir(place)  # noqa: PTH208  (there may be hundreds)
    return []


def _pythons(root: Path, begins: str = "python3") -> Iterator[Path]:
    """What belongs to Python among the libraries of an installation."""
    for place in (root / name for name in LIBRARIES):
        yield from (place / name for name in _listed(place) if name.startswith(begins))


def _versions(manager: Path) -> Iterator[Path]:
    """What a manager of versions has installed."""
    for name, depth in VERSIONS.items():
        found = [manager / name]
        for _ in range(depth):
            found = [place / each for place in found for each in _listed(place)]
        yield from found


def _script(program: Path) -> tuple[str, str]:
    """The first line of a script without its `#!`, and the rest if it is short; empty if it is none."""
    read = b""
    with suppress(OSError), program.open("rb") as file:
        read = file.read(SCRIPT) if file.read(2) == b"#!" else b""
    first, _, rest = os.fsdecode(read).partition("\n")
    return first, rest if len(read) < SCRIPT else ""


def _text(file: Path) -> str:
    with suppress(OSError):
        return file.read_text(errors="replace")
    return ""


def _named(text: str) -> Iterator[Path]:
    """The paths that a text names."""
    home = os.environ.get("HOME", "")
    for quoted, word in NAMED.findall(text):
        path = Path(re.sub(r"^(~|\$HOME|\$\{HOME\})", lambda _: home, quoted or word))
        if path.is_absolute():
            yield path


def _started_in() -> Iterator[str]:
    """Where this process was started and where its script lies, by all names."""
    yield os.environ.get("PWD", "")
    with suppress(OSError):  # it may be gone
        yield str(Path.cwd())
        yield str(Path(sys.argv[0]).absolute().parent)


def _loaded() -> Iterator[Path]:
    """The libraries that this process has loaded."""
    with suppress(OSError):
        lines = Path("/proc/self/maps").read_text(errors="replace").splitlines()
        files = {line.split(maxsplit=5)[-1] for line in lines if ".so" in line}
        yield from (Path(file) for file in sorted(files) if file.startswith("/"))
