"""
The agents of a project: those that are known, those of its settings, and which one a name means.

A person adds agents in `planforge.toml`, or says there what is different about a known one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from planforge.actions import Action, Advice
from planforge.agents.known import KNOWN
from planforge.agents.profiles import Profile
from planforge.errors import InvalidInput, NoAgent, did_you_mean


def every(own: Mapping[str, Profile]) -> dict[str, Profile]:
    """All agents by their names, the preferred ones first; `own` are those of the settings."""
    profiles = KNOWN | {name: _whole(name, profile) for name, profile in own.items()}
    for name, profile in own.items():
        if name in KNOWN and not profile.command and not profile.either:
            # What is said about `claude` holds for it however it is started.
            said = said_of(profile)
            profiles |= {one: merged(KNOWN[one], said) for one in KNOWN[name].either if one not in own}
    return profiles


def choose(wanted: str, own: Mapping[str, Profile]) -> tuple[str, Profile]:
    """
    The agent called `wanted`, or without a name the first real one that is installed.

    A name that stands for several, such as `claude`, is answered with the name of the one that is taken: its
    conversations can be taken up by no other.
    """
    profiles = every(own)
    found = _installed(wanted, profiles) if wanted else next(_offered(profiles), "")
    if found:
        return found, profiles[found]
    raise _missing(wanted, profiles) if wanted else nobody(own)


def others(vendor: str, own: Mapping[str, Profile]) -> tuple[str, ...]:
    """The installed agents that ask another vendor's models than `vendor`'s, the preferred ones first."""
    profiles = every(own)
    return tuple(name for name in _offered(profiles) if profiles[name].vendor not in ("", vendor))


def vendor_of(name: str, own: Mapping[str, Profile]) -> str:
    """Whose models an agent asks; empty if nobody says."""
    profiles = every(own)
    return profiles[name].vendor if name in profiles else ""


def names_of(name: str, own: Mapping[str, Profile]) -> tuple[str, ...]:
    """What an agent may be called in the settings: names that stand for several and for it, then its own."""
    found = (other for other, profile in every(own).items() if name in profile.either)
    return (*found, name)


def nobody(own: Mapping[str, Profile]) -> NoAgent:
    """The answer where no agent is installed: which were looked for, how to get one, how to do without."""
    profiles = every(own)
    real = [profile for profile in profiles.values() if profile.command and not profile.by_name]
    programs = ", ".join(dict.fromkeys(f"`{profile.program}`" for profile in real))
    # One for each vendor; there may be another way to have its agent.
    ways = {profile.vendor: f"`{profile.install}`" for profile in reversed(real) if profile.vendor}
    return NoAgent(
        f"no agent program on PATH; looked for {programs}",
        Advice(
            "install one, such as {}; for all of them, run {}; or see it work without any: {}",
            ", ".join(reversed(ways.values())),
            Action("agent list"),
            Action("demo"),
        ),
    )


def _offered(profiles: Mapping[str, Profile]) -> Iterator[str]:
    """Those that are installed and may be taken without being named."""
    for name, profile in profiles.items():
        if not profile.by_name and profile.installed:
            yield name


def _installed(name: str, profiles: Mapping[str, Profile]) -> str:
    """The agent that `name` stands for, if it is installed."""
    if name not in profiles:
        names = ", ".join(f"`{known}`" for known in profiles)
        raise InvalidInput(f"there is no agent `{name}`{did_you_mean(name, profiles)}", f"known are {names}")
    for candidate in profiles[name].either or (name,):
        if candidate not in profiles or profiles[candidate].either:
            raise InvalidInput(f"agent `{name}` stands for `{candidate}`, which is no agent with a command")
        if profiles[candidate].installed:
            return candidate
    return ""


def _missing(name: str, profiles: Mapping[str, Profile]) -> NoAgent:
    candidates = [profiles[candidate] for candidate in profiles[name].either or (name,)]
    programs = " or ".join(f"`{profile.missing}`" for profile in candidates)
    ways = list(dict.fromkeys(profile.install for profile in candidates if profile.install))
    hint = f"{' or '.join(f'`{way}`' for way in ways)}" if ways else f"put {programs} on PATH"
    return NoAgent(
        f"agent `{name}` needs {programs}, which is not {'installed' if candidates[0].needs else 'on PATH'}",
        Advice("{}; or see it work without any agent: {}", hint, Action("demo")),
    )


def complete(name: str, said: Mapping[str, Any]) -> Profile:
    """The profile of a table in the settings; what it leaves out is taken from the known agent."""
    known = KNOWN.get(name)
    if known is None:
        return msgspec.convert(said, Profile)
    if known.either and "command" in said:  # then it is one agent and no choice any more
        speaks = said.get("speaks", "acp")
        known = next((KNOWN[one] for one in known.either if KNOWN[one].speaks == speaks), Profile())
    return merged(known, said) if not known.either else msgspec.convert(said, Profile)


def said_of(profile: Profile) -> dict[str, Any]:
    """The fields of a profile that differ from their defaults."""
    said: dict[str, Any] = msgspec.to_builtins(profile)
    return said


def merged(known: Profile, said: Mapping[str, Any]) -> Profile:
    """A known profile with overrides: tables are merged, everything else is replaced."""
    return msgspec.convert(_merged(said_of(known), said), Profile)


def _merged(known: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    both = dict(known)
    for key, value in said.items():
        before = both.get(key)
        both[key] = _merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return both


def _whole(name: str, profile: Profile) -> Profile:
    """The profile; one without a command is completed from the known agent of its name."""
    if profile.command or profile.either:
        return profile
    if name not in KNOWN:
        raise InvalidInput(
            f"agent `{name}` has no `command`{did_you_mean(name, KNOWN)}",
            f"set it under `[agents.profiles.{name}]`, as a list",
        )
    return merged(KNOWN[name], said_of(profile))
