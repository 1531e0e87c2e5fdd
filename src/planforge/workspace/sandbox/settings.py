"""What a project says about confinement, under `[sandbox]` in `planforge.toml`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Unpack

import msgspec

from planforge.workspace.sandbox import levels
from planforge.workspace.sandbox.policy import (
    MANY_PROCESSES,
    Beside,
    Level,
    Policy,
    reading,
    verifying,
    writing,
)

MEBIBYTE = 1024**2


class Sandboxing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How agents and checks are confined. Paths may begin with `~`, or are relative to the repository."""

    level: Literal["auto", "bubblewrap", "landlock", "processes", "none"] = "auto"
    """How firmly; `auto` takes the firmest that works here."""
    unconfined: bool = False
    """Whether agents and checks may run at level `none`."""
    visible: tuple[str, ...] = ()
    """What they may read besides, although it lies in a home."""
    writable: tuple[str, ...] = ()
    """What those who implement and check may change besides."""
    hidden: tuple[str, ...] = ()
    """What they may not even read, such as a `.env` in your checkout."""
    network: bool = False
    """Whether checks may use the network; agents always may."""
    memory_mb: int = 0
    """What a program and all it started may use together; 0 for three quarters of what the machine has."""
    processes: int = MANY_PROCESSES
    """How many processes it may have at once."""

    def chosen(self) -> Level:
        """The level that is asked for, which works."""
        return levels.chosen(self.level, unconfined=self.unconfined)

    def reading(
        self, worktree: Path, root: Path, *, own: Sequence[Path] = (), **beside: Unpack[Beside]
    ) -> Policy:
        """For whoever plans or reviews in `worktree` of the repository at `root`."""
        return self._applied(reading(worktree, repository=root, own=own, **beside), root)

    def writing(
        self, worktree: Path, root: Path, *, own: Sequence[Path] = (), **beside: Unpack[Beside]
    ) -> Policy:
        """For whoever implements there."""
        more = places(self.writable, root)
        return self._applied(writing(worktree, repository=root, own=own, writable=more, **beside), root)

    def verifying(self, checkout: Path, root: Path, **beside: Unpack[Beside]) -> Policy:
        """For a check in `checkout` of the repository at `root`."""
        more = places(self.writable, root)
        policy = verifying(checkout, repository=root, writable=more, network=self.network, **beside)
        return self._applied(policy, root)

    def _applied(self, policy: Policy, root: Path) -> Policy:
        return msgspec.structs.replace(
            policy,
            visible=(*policy.visible, *places(self.visible, root)),
            hidden=(*policy.hidden, *places(self.hidden, root)),
            memory_bytes=self.memory_mb * MEBIBYTE if self.memory_mb else most_memory(),
            processes=self.processes,
        )


def places(named: Sequence[str], root: Path) -> tuple[Path, ...]:
    """Paths of the settings as paths of this machine."""
    return tuple(root / Path(name).expanduser() for name in named)


def most_memory() -> int | None:
    """Three quarters of the memory that this machine has, if it says."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4
    except (OSError, ValueError):
        return None
