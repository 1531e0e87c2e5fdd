"""
What is shown of a home that is otherwise hidden, besides what programs `needs`.

Tools are shown, and caches of downloads that work without being written to. Keys, tokens, settings and
histories are not: the tables name what is shown, and a directory that holds both (`~/.cargo`, `~/.m2`) is
shown in part.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

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

EVERYBODY = (Path("/home"), Path("/root"))

PRIVATE = ("", ".config", ".local", ".local/share", ".cache")
"""Directories of a home of which nothing is shown for being a repository, but its history."""


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


def is_private(repository: Path) -> bool:
    """Whether a repository is a home, or a part of one where programs keep what is the person's own."""
    places = (*EVERYBODY, *(person / name for person in (*own(), *EVERYBODY) for name in PRIVATE))
    return repository.resolve() in {place.resolve() for place in places}


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
