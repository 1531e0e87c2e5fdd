from __future__ import annotations

import pytest

from planforge.agents.profiles import Profile
from planforge.agents.tiers import Choice, Overrides, cluster_of, resolve
from planforge.errors import InvalidInput
from planforge.interfaces.cli.typed import text

CLAUDE = Profile(
    command=("claude",), vendor="anthropic", tiers={"heavy": "big", "balanced": "middle", "light": "small"}
)
OTHER = Profile(command=("other",), vendor="other", tiers={"heavy": "o-big"})
OPUS, SONNET, HAIKU = (f"ANTHROPIC_DEFAULT_{name}_MODEL" for name in ("OPUS", "SONNET", "HAIKU"))
SINGLE = {OPUS: "gateway", SONNET: "gateway", HAIKU: "gateway"}
TIERED = {OPUS: "opus-x", SONNET: "sonnet-x", HAIKU: "haiku-x"}


def model(tier: str, profile: Profile = CLAUDE, environ: dict[str, str] | None = None) -> str:
    return resolve("developer", tier, profile, environ=environ).model


def test_without_any_word_from_the_environment_the_profile_has_the_models() -> None:
    assert [model(tier) for tier in ("heavy", "balanced", "light")] == ["big", "middle", "small"]
    assert cluster_of({}) == "unknown"
    assert cluster_of({OPUS: " "}) == "unknown"


def test_where_all_tiers_are_one_model_none_is_asked_for_and_it_is_announced_by_name() -> None:
    choice = resolve("auditor", "heavy", CLAUDE, environ=SINGLE)
    assert (choice.model, choice.shown) == ("", "gateway")
    assert choice.words == "gateway"


def test_where_the_environment_has_a_model_for_each_tier_that_one_is_asked_for() -> None:
    assert [model(tier, environ=TIERED) for tier in ("heavy", "balanced", "light")] == list(TIERED.values())
    choice = resolve("auditor", "heavy", CLAUDE, environ=TIERED)
    assert choice.words == "heavy → opus-x"
    assert OPUS in choice.why


def test_a_tier_that_the_environment_leaves_open_is_as_the_profile_has_it() -> None:
    assert model("heavy", environ={OPUS: "opus-x"}) == "opus-x"
    assert model("light", environ={OPUS: "opus-x"}) == "small"


def test_what_the_environment_says_of_anthropic_is_nothing_to_another_vendor() -> None:
    assert model("heavy", OTHER, TIERED) == "o-big"
    assert model("heavy", OTHER, SINGLE) == "o-big"


def test_an_agent_without_a_model_for_the_tier_takes_its_own() -> None:
    choice = resolve("collator", "light", OTHER)
    assert choice.model == ""
    assert choice.words == "light → the agent's own model"


def test_the_settings_win_over_the_environment_and_a_role_or_stage_over_all() -> None:
    tiers = Overrides(tiers={"heavy": "mine"})
    assert resolve("auditor", "heavy", CLAUDE, tiers, TIERED).model == "mine"
    assert resolve("auditor", "light", CLAUDE, tiers, TIERED).model == "haiku-x"
    both = Overrides(tiers={"heavy": "mine"}, models={"auditor": "own", "forge": "stage"})
    assert resolve("auditor", "heavy", CLAUDE, both, TIERED) == Choice(
        tier="heavy", model="own", why="`agents.models.auditor`"
    )
    assert resolve("auditor", "heavy", CLAUDE, both, TIERED, stage="forge").model == "stage"


def test_a_tier_that_nobody_knows_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InvalidInput, match="role `auditor` wants tier `huge`") as refused:
        resolve("auditor", "huge", CLAUDE)
    assert text(refused.value.hint) == "tiers are `heavy`, `balanced`, `light`"
    with pytest.raises(InvalidInput, match="did you mean `heavy`"):
        resolve("auditor", "hevy", CLAUDE)
