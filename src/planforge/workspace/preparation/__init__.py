"""How a worktree is prepared, as settings say it; what does that (`setup`) takes a while to load."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from planforge.workspace.files.beneath import parts_of
from planforge.workspace.preparation import ports

NEVER = frozenset((b".git", b".planforge"))
"""What is never brought into a worktree."""


class Preparation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a worktree gets before an agent starts in it, and what is watched while it works."""

    include_files: int = 1000
    """How many files `.worktreeinclude` may name."""
    include_megabytes: int = 100
    """How much they may hold together."""
    caches: tuple[str, ...] = ()
    """Ignored directories of your checkout that each worktree gets a copy of, such as `node_modules`."""
    cache_megabytes: int = 4096
    """How much may be written for that where the file system cannot share blocks between copies."""
    shared: dict[str, str] = {}
    """Variables that name a download cache for `setup`, such as `UV_CACHE_DIR = "uv"`; agents get none."""
    setup: tuple[str, ...] = ()
    """A command that installs what the project needs, run in the worktree; nothing does without."""
    setup_seconds: float = 900.0
    """How long it may take."""
    inherit: tuple[str, ...] = ()
    """Names of variables of your environment that `setup` and `smoke` get to see, such as a token."""
    smoke: tuple[str, ...] = ()
    """A command that must end with 0 before an agent starts; nothing does without."""
    smoke_seconds: float = 300.0
    """How long it may take."""
    ports: int = 10
    """How many ports each worktree has to itself, in `PORT` and `PLANFORGE_PORT_BASE`; 0 to 19."""
    own_changes: Literal["refuse", "allow"] = "refuse"
    """What becomes of an attempt if your checkout changed meanwhile and no sandbox kept the agent from it."""

    def __post_init__(self) -> None:
        if not 0 <= self.ports <= ports.MOST:
            raise ValueError(f"`ports` must be 0 to {ports.MOST}, not {self.ports}")
        for name in ("include_files", "include_megabytes", "cache_megabytes"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"`{name}` must be at least 0")
        for name in ("setup_seconds", "smoke_seconds"):
            if not getattr(self, name) > 0:
                raise ValueError(f"`{name}` must be more than 0")
        for path in self.caches:
            if not _plain(path):
                raise ValueError(f"`caches` has `{path}`, which is no directory inside the repository")
        for variable, name in self.shared.items():
            if not re.fullmatch(r"[A-Za-z_]\w*", variable) or not re.fullmatch(r"[\w-][\w.-]*", name):
                raise ValueError(
                    f'`shared` has `{variable} = "{name}"`, which is no variable and name of a directory'
                )


def _plain(path: str) -> bool:
    try:
        parts = parts_of(path)
    except OSError:
        return False
    return bool(parts) and not set(parts) & NEVER
