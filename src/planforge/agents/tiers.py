"""
Which model a role gets: tiers are `heavy`, `balanced` and `light`, and each agent says what they are for it.

Pure: the profile, what the settings say and the environment go in, a `Choice` comes out. The first of these
decides:

1. a model named for the stage or for the role in the settings (`[agents.models]`), or for the role whose
   conversation it goes on with;
2. a model named for the agent's tier in the settings (`[agents.tiers.NAME]`);
3. for agents that ask Anthropic's models, the cluster that the environment describes: where
   `ANTHROPIC_DEFAULT_OPUS_MODEL`, `…_SONNET_MODEL` and `…_HAIKU_MODEL` are all the same, there is one model,
   and none is asked for; where they differ, the one of the tier is;
4. the model that the agent's profile has for the tier;
5. none: the agent takes its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from planforge.agents.profiles import Profile
from planforge.errors import InvalidInput, did_you_mean

HEAVY = "heavy"
BALANCED = "balanced"
LIGHT = "light"
TIERS = (HEAVY, BALANCED, LIGHT)

ANTHROPIC = "anthropic"
VARIABLES = {
    HEAVY: "ANTHROPIC_DEFAULT_OPUS_MODEL",
    BALANCED: "ANTHROPIC_DEFAULT_SONNET_MODEL",
    LIGHT: "ANTHROPIC_DEFAULT_HAIKU_MODEL",
}
"""Where the environment says which model each tier is; in front of a single model all are set to the same."""

Cluster = Literal["single", "tiered", "unknown"]


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """What the settings say about models."""

    tiers: Mapping[str, str] = {}
    """The models of one agent by tier: `settings.agents.tiers.get(name, {})`."""
    models: Mapping[str, str] = {}
    """A model by role or by stage, whatever the tier: `settings.agents.models`."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The model that is asked for, and why."""

    tier: str
    model: str
    """Empty: none is asked for, the agent takes its own."""
    why: str
    shown: str = ""
    """The model by name where it is known though none is asked for."""

    @property
    def words(self) -> str:
        """The choice as it is announced: `heavy → opus`, or the model alone where all tiers are the same."""
        if self.model:
            return f"{self.tier} → {self.model}"
        return self.shown or f"{self.tier} → the agent's own model"


def resolve(
    role: str,
    tier: str,
    profile: Profile,
    overrides: Overrides | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    stage: str = "",
    like: str = "",
) -> Choice:
    """The model for `role` at `tier` with the agent of `profile`; one named for the role `like` holds too."""
    require(tier, f"role `{role}`")
    given, found = overrides or Overrides(), environ or {}
    for name in filter(None, (stage, role, like)):
        if model := given.models.get(name):
            return Choice(tier=tier, model=model, why=f"`agents.models.{name}`")
    if model := given.tiers.get(tier):
        return Choice(tier=tier, model=model, why=f"the settings' {tier} model of the agent")
    if profile.vendor == ANTHROPIC and (choice := _of_environment(tier, profile, found)):
        return choice
    if model := profile.tiers.get(tier):
        return Choice(tier=tier, model=model, why=f"the profile's {tier} model")
    return Choice(tier=tier, model="", why=f"the agent has no {tier} model")


def _of_environment(tier: str, profile: Profile, environ: Mapping[str, str]) -> Choice | None:
    cluster = cluster_of(environ)
    if cluster == "unknown":
        return None
    if cluster == "single":
        model = environ[VARIABLES[HEAVY]].strip()
        return Choice(
            tier=tier, model="", shown=model, why="the environment has the same model for all tiers"
        )
    variable = VARIABLES[tier]
    # What a variable leaves open, the profile has to say.
    model = environ.get(variable, "").strip() or profile.tiers.get(tier, "")
    return Choice(tier=tier, model=model, why=f"`{variable}`") if model else None


def cluster_of(environ: Mapping[str, str]) -> Cluster:
    """What the environment says of Anthropic's models: one for all, one for each tier, or nothing."""
    models = [environ.get(variable, "").strip() for variable in VARIABLES.values()]
    if not any(models):
        return "unknown"
    return "single" if len(set(models)) == 1 else "tiered"


def require(tier: str, who: str) -> str:
    """The tier, if there is one of that name."""
    if tier not in TIERS:
        names = ", ".join(f"`{name}`" for name in TIERS)
        raise InvalidInput(f"{who} wants tier `{tier}`{did_you_mean(tier, TIERS)}", f"tiers are {names}")
    return tier
