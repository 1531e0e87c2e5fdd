"""
How each agent program is started, as data.

A profile is a name, a command that speaks the Agent Client Protocol on its
standard streams, and an environment. The well-known ones are here; others come
from `planforge.toml`.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from planforge.errors import InvalidInput, NoAgent
from planforge.kernel.tokens import THRESHOLD

REHEARSAL = "rehearsal"


class Way(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to start an agent differently: for reading, for writing, with a model, at an endpoint.

    `${home}`, `${cwd}`, `${root}`, `${model}` and `${endpoint}` may be used in every text.
    """

    args: tuple[str, ...] = ()
    """Arguments after those of the command."""
    env: dict[str, str] = {}
    files: dict[str, str] = {}
    """Files in the private home, by their path in it."""
    mode: str = ""
    """The session mode, for an agent that speaks the Agent Client Protocol."""
    option: str = ""
    """The session option that is set to `${model}`, for such an agent."""
    meta: dict[str, Any] = {}
    """What goes into `_meta` of a new session, for such an agent."""


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to start one agent."""

    command: tuple[str, ...] = ()
    """The program and its arguments; empty for a known agent that only gets another environment."""
    speaks: Literal["acp", "claude", "codex"] = "acp"
    """What it speaks on its streams: the Agent Client Protocol, or its own JSON lines."""
    vendor: str = ""
    """Whose models it asks, for a setting that wants an auditor of another vendor."""
    env: dict[str, str] = {}
    files: dict[str, str] = {}
    """Configuration files to write into its private home, by their path in it."""
    login: tuple[str, ...] = ()
    """Files beneath the person's home that hold the login; they are brought into the private home."""
    login_env: tuple[str, ...] = ()
    """Variables of which one is enough for a login."""
    login_command: str = ""
    """How a person logs in."""
    version: tuple[str, ...] = ("--version",)
    """Arguments that make the program say its version."""
    read: Way = Way()
    """How it is kept from changing anything; our sandbox and a look at the tree come on top."""
    write: Way = Way()
    model: Way = Way()
    """How a model is chosen."""
    tiers: dict[str, str] = {}
    """Which model is `heavy`, `balanced` and `light`."""
    endpoint: Way = Way()
    """How it is pointed at another server, such as the scripted one."""
    resume: Literal["none", "load", "resume"] = "none"
    """How a conversation is taken up in a new process."""
    resume_after: float = 0.0
    """How many seconds must have passed since the conversation began, or its history is lost."""
    usage: Literal["turn", "thread", "last_step", "quota", "none"] = "none"
    """What its usage figures mean: this turn, the whole conversation so far, its last step, `_meta.quota`."""
    inherit: tuple[str, ...] = ()
    """Names of variables of our own environment that the agent gets to see, such as an API key."""
    reads: tuple[str, ...] = ()
    """Paths that it needs to see besides programs and the repository; `~` and `${root}` may be used."""
    writes: tuple[str, ...] = ()
    """Paths besides its worktree that it may change, such as where it keeps its login and its sessions."""
    handoff_tokens: int = THRESHOLD
    """At how many tokens in its context the agent hands over to another; 0 if it looks after that itself."""
    install: str = ""
    """How to get the program, for the message that says it is missing."""


KNOWN: dict[str, Profile] = {
    "claude": Profile(
        command=("claude-agent-acp",),
        inherit=("ANTHROPIC_API_KEY", "CLAUDE_CONFIG_DIR"),
        writes=("~/.claude", "~/.claude.json", "${CLAUDE_CONFIG_DIR}"),
        install="npm install -g @agentclientprotocol/claude-agent-acp",
    ),
    "codex": Profile(
        command=("codex-acp",),
        inherit=("OPENAI_API_KEY", "CODEX_HOME"),
        writes=("~/.codex", "${CODEX_HOME}"),
        install="npm install -g @agentclientprotocol/codex-acp",
    ),
    "gemini": Profile(
        command=("gemini", "--acp"),
        inherit=("GEMINI_API_KEY",),
        writes=("~/.gemini",),
        install="npm install -g @google/gemini-cli",
    ),
    "opencode": Profile(
        command=("opencode", "acp"),
        writes=("~/.config/opencode", "~/.local/share/opencode", "~/.local/state/opencode"),
        install="npm install -g opencode-ai",
    ),
    REHEARSAL: Profile(command=(sys.executable, "-m", "planforge.agents.rehearsal")),
}


def choose(wanted: str, own: Mapping[str, Profile]) -> tuple[str, Profile]:
    """The profile called `wanted`, or with no name the first real agent that is installed."""
    profiles = KNOWN | {name: _completed(name, profile) for name, profile in own.items()}
    if wanted:
        if wanted not in profiles:
            raise InvalidInput(f"there is no agent `{wanted}`; known are {_names(profiles)}")
        profile = profiles[wanted]
        if shutil.which(profile.command[0]) is None:
            hint = profile.install or f"put `{profile.command[0]}` on PATH"
            raise NoAgent(f"agent `{wanted}` needs `{profile.command[0]}`, which is not on PATH", hint)
        return wanted, profile
    for name, profile in profiles.items():
        if name != REHEARSAL and shutil.which(profile.command[0]):
            return name, profile
    looked_for = ", ".join(f"`{p.command[0]}`" for name, p in profiles.items() if name != REHEARSAL)
    raise NoAgent(
        f"no agent program on PATH; looked for {looked_for}",
        f"install one, such as `{KNOWN['claude'].install}`, or see it work without one: `planforge demo`",
    )


def _completed(name: str, profile: Profile) -> Profile:
    if profile.command:
        return profile
    if name not in KNOWN:
        raise InvalidInput(f"agent `{name}` has no `command`")
    known = KNOWN[name]
    return msgspec.structs.replace(
        profile,
        command=known.command,
        inherit=profile.inherit or known.inherit,
        reads=profile.reads or known.reads,
        writes=profile.writes or known.writes,
        install=profile.install or known.install,
    )


def _names(profiles: Mapping[str, Profile]) -> str:
    return ", ".join(f"`{name}`" for name in profiles)
