"""Which agent plays a role, and with which model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from planforge.app.agents import roles
from planforge.app.agents.audience import Audience
from planforge.app.agents.casting import Cast, Casting
from planforge.app.project import Project
from planforge.errors import InvalidInput, NoAgent
from planforge.kernel.effects import Access, RunAgent
from repositories import repository, write

AGENTS = """
[agents.profiles.ours]
command = ["ours"]
vendor = "a"
tiers = { heavy = "ours-large", balanced = "ours-middle" }
[agents.profiles.same]
command = ["same"]
vendor = "a"
[agents.profiles.theirs]
command = ["theirs"]
vendor = "b"
"""


class Listening(Audience):
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def told(self, what: str) -> None:
        self.lines.append(what)


def casting(
    place: Path,
    settings: str = "",
    audience: Audience | None = None,
    cast: Cast | None = None,
    *,
    profile: str = "",
) -> Casting:
    root = repository(place / "repository")
    agents = AGENTS.replace('command = ["ours"]\n', f'command = ["ours"]\n{profile}')
    (root / "planforge.toml").write_text(f'[agents]\ndefault = "ours"\n{settings}{agents}')
    return Casting(Project.create(root), audience or Audience(), cast)


def asked(role: str, tier: str = "") -> RunAgent:
    return RunAgent(role=role, access=Access.READ, worktree="w", base="b", prompt="p", tier=tier)


def test_a_role_has_its_own_agent_or_the_one_of_all_others(
    tmp_path: Path, programs: Callable[..., None]
) -> None:
    programs("ours", "theirs")
    found = casting(tmp_path, 'roles.auditor = "theirs"\n')
    assert (found.agent_of("auditor"), found.agent_of("drafter")) == ("theirs", "ours")


def test_an_agent_that_is_not_installed_is_named(tmp_path: Path, programs: Callable[..., None]) -> None:
    programs("theirs")
    with pytest.raises(NoAgent, match="agent `ours` needs `ours`"):
        casting(tmp_path).agent_of("drafter")


CROSS = "cross_vendor_auditor = true\n"


def test_whoever_judges_is_of_another_vendor_if_the_settings_say_so(
    tmp_path: Path, programs: Callable[..., None]
) -> None:
    programs("ours", "same", "theirs")
    found = casting(tmp_path, CROSS)
    assert {role: found.agent_of(role) for role in ("auditor", "reviewer", "drafter", "developer")} == {
        "auditor": "theirs",
        "reviewer": "theirs",
        "drafter": "ours",
        "developer": "ours",
    }


def test_whoever_judges_somebody_elses_work_already_stays(
    tmp_path: Path, programs: Callable[..., None]
) -> None:
    programs("ours", "same", "theirs")
    found = casting(tmp_path, CROSS + 'roles.developer = "theirs"\n')
    assert (found.agent_of("auditor"), found.agent_of("reviewer")) == ("theirs", "ours")


def test_a_named_auditor_is_not_overruled(tmp_path: Path, programs: Callable[..., None]) -> None:
    programs("ours", "same", "theirs")
    assert casting(tmp_path, CROSS + 'roles.auditor = "same"\n').agent_of("auditor") == "same"


def test_if_there_is_no_other_vendor_it_is_said_once_and_the_work_goes_on(
    tmp_path: Path, programs: Callable[..., None]
) -> None:
    programs("ours", "same")
    audience = Listening()
    found = casting(tmp_path, CROSS, audience)
    assert [found.agent_of("auditor"), found.agent_of("auditor")] == ["ours", "ours"]
    (line,) = audience.lines
    assert "no agent of another vendor" in line


def test_the_tier_of_the_role_decides_the_model_unless_the_question_has_another(
    tmp_path: Path, programs: Callable[..., None]
) -> None:
    programs("ours")
    found = casting(tmp_path)
    roles = tmp_path / "repository" / "planforge" / "roles"
    roles.mkdir(parents=True)
    (roles / "roles.toml").write_text('auditor.tier = "heavy"\nreviser.tier = "balanced"\n')
    assert found.chosen("ours", asked("auditor"))[2:4] == ("heavy", "ours-large")
    assert found.chosen("ours", asked("reviser"))[2:4] == ("balanced", "ours-middle")
    assert found.chosen("ours", asked("reviser", "heavy"))[2:4] == ("heavy", "ours-large")
    assert found.chosen("ours", asked("auditor", "light"))[2:4] == ("light", "")


@pytest.mark.parametrize(
    ("settings", "reviser"),
    [
        ("", ("ours", "ours-large")),
        ('models.drafter = "special"\n', ("ours", "special")),
        ('models.drafter = "special"\nmodels.reviser = "own"\n', ("ours", "own")),
        ('roles.drafter = "theirs"\n', ("theirs", "")),
        ('roles.drafter = "theirs"\nmodels.drafter = "special"\n', ("theirs", "special")),
        ('roles.reviser = "theirs"\nmodels.drafter = "special"\n', ("theirs", "")),
        ('roles.reviser = "theirs"\nmodels.reviser = "own"\n', ("theirs", "own")),
    ],
)
def test_what_is_set_for_the_drafter_holds_for_the_reviser_unless_it_is_set_itself(
    tmp_path: Path, programs: Callable[..., None], settings: str, reviser: tuple[str, str]
) -> None:
    programs("ours", "theirs")
    found = casting(tmp_path, settings)
    asked_of = found.chosen(found.agent_of("reviser"), asked("reviser"))
    assert (asked_of.name, asked_of.model) == reviser
    assert (found.of("reviser").name, found.of("reviser").model) == reviser


def test_the_tier_of_the_drafter_is_that_of_the_reviser(
    tmp_path: Path, programs: Callable[..., None]
) -> None:
    programs("ours")
    found = casting(tmp_path)
    write(tmp_path / "repository", {"planforge/roles/roles.toml": 'drafter.tier = "balanced"\n'})
    assert found.of("reviser")[2:4] == ("balanced", "ours-middle")
    write(tmp_path / "repository", {"planforge/roles/roles.toml": 'auditor.continues = "reviser"\n'})
    with pytest.raises(InvalidInput, match="role `auditor` cannot go on with `reviser`"):
        found.of("auditor")


@pytest.mark.parametrize(
    ("settings", "resume", "goes_on"),
    [
        ("", "load", True),
        ("", "none", False),
        ('models.reviser = "own"\n', "load", False),
        ('roles.reviser = "theirs"\n', "load", False),
    ],
)
def test_a_reviser_goes_on_where_agent_and_model_are_the_same_and_can_resume(
    tmp_path: Path, programs: Callable[..., None], settings: str, resume: str, goes_on: bool
) -> None:
    programs("ours", "theirs")
    found = casting(tmp_path, settings, profile=f'resume = "{resume}"\n')
    assert found.goes_on("reviser") is goes_on
    assert not found.goes_on("auditor")


def test_models_of_a_tier_hold_by_the_name_that_a_person_types(
    tmp_path: Path, programs: Callable[..., None]
) -> None:
    programs("ours", "claude")
    found = casting(tmp_path, 'roles.auditor = "claude"\ntiers.claude.heavy = "special"\n')
    assert found.of("auditor")[:1] + found.of("auditor")[2:4] == ("claude-cli", "heavy", "special")
    assert found.chosen(found.agent_of("auditor"), asked("auditor")).model == "special"


@pytest.mark.parametrize(
    ("settings", "because"),
    [
        ("", "`agents.default`"),
        (CROSS, "`agents.cross_vendor_auditor`: of another vendor than `ours`, the drafter"),
        (CROSS + 'roles.auditor = "same"\n', "`agents.roles.auditor`"),
    ],
)
def test_roles_are_listed_with_whom_a_run_would_ask(
    tmp_path: Path, programs: Callable[..., None], settings: str, because: str
) -> None:
    programs("ours", "same", "theirs")
    found = casting(tmp_path, settings + 'models.drafter = "special"\n')
    root = tmp_path / "repository"
    for row in roles.listed(root):
        chosen = found.chosen(found.agent_of(row.role), asked(row.role))
        assert (row.agent, row.model, row.tier) == (chosen.name, chosen.model, chosen.tier)
        assert roles.show(root, row.role).row == row
    rows = {row.role: row for row in roles.listed(root)}
    assert rows["auditor"].because == because
    assert rows["reviser"].because == "as the drafter, whose conversation it goes on with"


def test_in_a_demo_one_agent_plays_all_and_a_script_has_no_models(
    tmp_path: Path, programs: Callable[..., None]
) -> None:
    programs("ours", "theirs")
    cast = Cast(agent="theirs", endpoint="http://127.0.0.1:1")
    found = casting(tmp_path, CROSS, cast=cast)
    assert (found.agent_of("auditor"), found.agent_of("drafter")) == ("theirs", "theirs")
    assert found.chosen("ours", asked("auditor")).model == ""
    assert found.endpoint == "http://127.0.0.1:1"
