"""
What programs need of a home that is otherwise hidden.

Interpreters and tools are installed in homes as often as not, and what they are started with leads
there by links, by a first line `#!`, or by way of a shim. What they need to start is shown, and caches of
downloads that work without being written to. Keys, tokens, settings and histories are not: the tables
name what is shown, and a directory that holds both (`~/.cargo`, `~/.m2`) is shown in part.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import planforge

TOOLS = (
    *(
        ".asdf",
        ".bun/bin",
        ".cargo/bin",
        ".deno/bin",
        ".dotnet",
        ".elan",
        ".fnm",
        ".ghcup",
        ".goenv",
        ".jenv",
    ),
    *(".linuxbrew", ".local/bin", ".local/lib", ".local/pipx", ".local/share/fnm", ".local/share/mise"),
    *(
        ".local/share/pipx",
        ".local/share/pnpm",
        ".local/share/uv",
        ".nix-profile",
        ".nodenv",
        ".nvm",
        ".opam",
    ),
    *(".poetry/bin", ".poetry/lib", ".pyenv", ".rbenv", ".rustup", ".rvm", ".sdkman", ".volta", "anaconda3"),
    *("miniconda3", "miniforge3", "go/bin"),
)
CACHES = (
    *(".cache/Cypress", ".cache/coursier", ".cache/electron", ".cache/ms-playwright", ".cache/node/corepack"),
    *(".cache/pip", ".cache/puppeteer", ".cargo/git", ".cargo/registry", ".ivy2/cache", ".m2/repository"),
    *(".m2/wrapper", ".nuget/packages", ".pub-cache/hosted", "go/pkg/mod"),
)
"""Those that tools can use without writing to them. npm, uv, go build and Gradle cannot: they start anew."""

SECRETS = (
    *(".aws", ".azure", ".bash_history", ".cargo/credentials", ".cargo/credentials.toml", ".config/gcloud"),
    *(
        ".config/gh",
        ".config/git/credentials",
        ".config/glab-cli",
        ".config/hub",
        ".config/op",
        ".config/pip",
    ),
    *(
        ".docker/config.json",
        ".git-credentials",
        ".gnupg",
        ".gradle/gradle.properties",
        ".kube",
        ".local/share",
    ),
    *(".m2/settings-security.xml", ".m2/settings.xml", ".mozilla", ".netrc", ".node_repl_history", ".npmrc"),
    *(".password-store", ".pgpass", ".pypirc", ".python_history", ".ssh", ".terraform.d", ".thunderbird"),
    *(
        ".vault-token",
        ".wget-hsts",
        ".yarnrc.yml",
        ".zsh_history",
        ".config/google-chrome",
        ".config/chromium",
    ),
)
"""What is hidden even if somebody shows the home that it lies in, unless they name it."""

MACHINE_SECRETS = (
    "etc/shadow",
    "etc/shadow-",
    "etc/gshadow",
    "etc/gshadow-",
    "etc/sudoers",
    "etc/krb5.keytab",
)
HOST_KEYS = "etc/ssh/ssh_host_*_key"

INSTALLED = ("conda-meta", "lib", "lib64", "libexec", "node_modules", "pyvenv.cfg", "versions")
"""What lies beside `bin` where something is installed, and not where somebody keeps scripts."""

PARTLY = (".cargo", ".local", ".bun", ".deno", ".poetry")
"""Directories of a home in which `bin` lies beside what is nobody's business."""

SHEBANG = 1024


EVERYBODY = (Path("/home"), Path("/root"))


def own(given: str | None = None) -> tuple[Path, ...]:
    """Where the person lives: as the program is told, as we are, and as the machine knows."""
    named = [given, os.environ.get("HOME"), _of_account()]
    found = dict.fromkeys(Path(name) for name in named if name and name.startswith("/"))
    return tuple(path for path in found if path != Path("/"))


def _of_account() -> str | None:
    import pwd

    with suppress(KeyError):
        return pwd.getpwuid(os.getuid()).pw_dir
    return None


def secrets(homes: Sequence[Path]) -> Iterator[Path]:
    """What of some homes is nobody's business."""
    yield from (home / name for home in homes for name in SECRETS)


def machine_secrets() -> Iterator[Path]:
    """What of the machine is nobody's business."""
    yield from (path for name in MACHINE_SECRETS if os.access(path := Path("/", name), os.R_OK))
    yield from (path for path in Path("/").glob(HOST_KEYS) if os.access(path, os.R_OK))


def tools() -> list[Path]:
    """Where the tools of the person's home would be."""
    person = Path.home()
    return [person / name for name in TOOLS]


def shown(homes: Sequence[Path]) -> Iterator[Path]:
    """The tools and caches of some homes."""
    yield from (home / name for home in homes for name in (*TOOLS, *CACHES))


def needed(argv: Sequence[str], path: str, cwd: Path, lately: int = 0) -> tuple[Path, ...]:
    """What must be seen of the places on PATH and to start the program, as it was `lately`."""
    program = shutil.which(argv[0], path=path)
    return _needed(str((cwd / program).absolute()) if program else "", path, lately)


@lru_cache(maxsize=64)
def _needed(program: str, path: str, lately: int) -> tuple[Path, ...]:
    del lately  # a new number makes us look again
    found: dict[Path, None] = dict.fromkeys([Path(planforge.__file__).parent])
    for name in path.split(os.pathsep):
        place = Path(name)
        if place.is_absolute():
            found |= dict.fromkeys([place, *_installation(place)])
    if program:
        found |= dict.fromkeys(_followed(Path(program), path, set()))
    return tuple(found)


def _followed(program: Path, path: str, been: set[Path]) -> Iterator[Path]:
    """The program, all that it is a link to, and whatever interprets it."""
    while program not in been:
        been.add(program)
        yield program
        yield from _installation(program.parent.resolve())
        yield from _package(program)
        try:
            program = program.parent.resolve() / program.readlink()
        except OSError:  # it is no link
            break
    for interpreter in _interpreters(program, path):
        yield from _followed(interpreter, path, been)


def _interpreters(program: Path, path: str) -> Iterator[Path]:
    """Whatever the first line of a script names."""
    first = b""
    with suppress(OSError), program.open("rb") as file:
        first = file.readline(SHEBANG)
    words = os.fsdecode(first[2:]).split() if first.startswith(b"#!") else []
    for word in words[:1] if words and Path(words[0]).name != "env" else words[:3]:
        if found := shutil.which(word, path=path):
            yield Path(found)


def _installation(place: Path) -> Iterator[Path]:
    """Where everything is that came with a directory of programs."""
    root = place.parent
    if place.name not in ("bin", "sbin", "shims", "Scripts", ".bin") or root.name in PARTLY:
        return
    if root in (*own(), *EVERYBODY, Path("/")):
        return
    if place.name == "shims" or any(os.access(root / name, os.F_OK) for name in INSTALLED):
        yield root


def _package(program: Path) -> Iterator[Path]:
    """The packages of node that a script lies among."""
    parts = program.parts
    if "node_modules" in parts:
        yield Path(*parts[: parts.index("node_modules") + 1])
