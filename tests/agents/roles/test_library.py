from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from planforge.agents import forms
from planforge.agents.roles import HERE, Library
from planforge.errors import InvalidInput
from planforge.kernel.effects import Access
from planforge.kernel.tokens import estimate

PERSONA = """\
---
name: poet
description: Write what rhymes.
responsibilities:
  - Rhyme
outputs:
  - A verse
---
Be brief.
"""
ROLE = '[poet]\npersona = "poet"\nskills = ["rhyming"]\naccess = "read"\ntier = "light"\n'
SKILL = "---\nname: rhyming\ndescription: Find rhymes.\ncapabilities:\n  - Rhyme on anything\n---\nTry.\n"


def library(**files: str) -> Library:
    named = {
        name.replace("__", "/").replace("_md", ".md").replace("_toml", ".toml"): text
        for name, text in files.items()
    }
    return Library(lambda path: named[path].encode() if path in named else None, "planforge/roles")


def test_every_role_that_comes_along_is_whole() -> None:
    found = Library()
    found.require(found.roles)
    assert {"drafter", "auditor", "reviser", "planner", "developer", "tester", "reviewer", "fixer"} < set(
        found.roles
    )
    assert {"integration-tester", "acceptance-tester", "bootstrap", "collator", "approver"} < set(found.roles)


def test_no_text_comes_along_that_no_role_wants() -> None:
    found = Library()
    wanted = {f"personas/{role.persona}.md" for role in found.roles.values()}
    wanted |= {f"skills/{skill}/SKILL.md" for role in found.roles.values() for skill in role.skills}
    there = {str(path.relative_to(HERE)) for path in HERE.rglob("*.md")}
    assert there == wanted


@pytest.mark.parametrize("name", sorted(Library().roles))
def test_a_role_is_told_in_short_and_says_what_it_may_do(name: str) -> None:
    found = Library()
    short, whole = found.block(name), found.block(name, "inline")
    assert estimate(len(short.text)) < 400
    assert len(short.text) < len(whole.text)
    assert short.sources == whole.sources
    role = found.role(name)
    assert all(each in short.text for each in found.persona(role).responsibilities)
    assert all(each in short.text for skill in found.skills(role) for each in skill.capabilities)
    assert found.persona(role).body not in short.text
    assert found.persona(role).body in whole.text
    assert role.output in ("", *forms.FORMS)


def test_who_judges_only_reads() -> None:
    found = Library().roles
    judges = [role for role in found.values() if role.output == "audit"]
    assert {role.access for role in judges} == {Access.READ}
    assert len(judges) > 3


def test_the_hash_of_each_text_is_on_record() -> None:
    sources = Library().block("auditor").sources
    for source in sources:
        content = (HERE / source.path.removeprefix("planforge:")).read_bytes()
        assert source.hash == hashlib.sha256(content).hexdigest()
    assert len(sources) == 3


def test_a_project_adds_a_role_with_its_own_persona_and_skill() -> None:
    found = library(roles_toml=ROLE, personas__poet_md=PERSONA, skills__rhyming__SKILL_md=SKILL)
    block = found.block("poet")
    assert "You are the poet. Write what rhymes." in block.text
    assert "- Rhyme on anything" in block.text
    assert "`planforge/roles/personas/poet.md`" in block.text
    assert [source.path for source in block.sources] == [
        "planforge/roles/personas/poet.md",
        "planforge/roles/skills/rhyming/SKILL.md",
    ]
    assert "auditor" in found.roles


def test_a_project_says_only_what_is_different_about_a_role() -> None:
    found = library(roles_toml='[auditor]\ntier = "balanced"\n').role("auditor")
    assert (found.tier, found.output, found.persona) == ("balanced", "audit", "auditor")
    assert found.source == "planforge/roles/roles.toml"


def test_a_project_puts_its_own_persona_in_the_place_of_ours() -> None:
    found = library(personas__auditor_md=PERSONA.replace("name: poet", "name: auditor"))
    assert "Write what rhymes." in found.block("auditor").text


@pytest.mark.parametrize(
    ("files", "missing"),
    [
        ({"roles_toml": ROLE}, "planforge/roles/personas/poet.md"),
        ({"roles_toml": ROLE, "personas__poet_md": PERSONA}, "planforge/roles/skills/rhyming/SKILL.md"),
    ],
)
def test_a_missing_text_fails_with_its_path_and_who_wants_it(files: dict[str, str], missing: str) -> None:
    with pytest.raises(InvalidInput, match=f"role `poet` wants `{missing}`, which is not there"):
        library(**files).require(["poet"])


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("[auditor\n", "line 1, column 9"),
        ("auditor = 3\n", "`auditor` is no table of a role"),
        ('[auditor]\ntier = "huge"\n', "wants tier `huge`"),
        ('[auditor]\noutput = "poem"\n', "wants an answer of form `poem`"),
        ("[auditor]\nskils = []\n", "did you mean `auditor.skills`?"),
        ('[auditor]\npersona = "../../etc/passwd"\n', "which is no name"),
        ('[auditor]\nskills = ["a/b"]\n', "which is no name"),
        ('[new]\npersona = "poet"\n', "`new.access` is missing"),
        ('[auditor]\naccess = "all"\n', "`auditor.access` must be one of"),
        ('["Not a name"]\ntier = "light"\n', "is no table of a role"),
    ],
)
def test_a_table_that_is_not_right_says_where(table: str, problem: str) -> None:
    with pytest.raises(InvalidInput, match=r"planforge/roles/roles\.toml") as error:
        library(roles_toml=table)
    assert problem in error.value.message


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no head", "has no head"),
        ("---\nname: x\n", "has no head"),
        ("---\nname: x\n---\n", "has no `description`"),
        ("---\ndescription: x\n---\n", "has no `name`"),
        ("---\nname: x\ndescription: y\ncolour: red\n---\n", "line 4: `colour`"),
        ("---\nname: x\nname: y\n---\n", "line 3"),
        ("---\nname: x\ndescription: y\nresponsibilities: one\n---\n", "line 4"),
        (f"---\nname: x\ndescription: {'y' * 500}\n---\n", "longer than about 100 tokens"),
        ("---\nname: x\ndescription: y\n---\n", "its name is `x`"),
        ("---\nname: auditor\ndescription: y\n---\n", "names no responsibilities"),
    ],
)
def test_a_text_that_is_not_right_says_which_and_where(text: str, problem: str) -> None:
    with pytest.raises(InvalidInput, match=r"planforge/roles/personas/auditor\.md") as error:
        library(personas__auditor_md=text).require(["auditor"])
    assert problem in error.value.message


def test_a_text_of_another_machine_can_be_read() -> None:
    text = PERSONA.replace("poet", "auditor").replace("Write what rhymes.", '"Write: what rhymes."')
    text = text.replace("\n", "\r\n")
    found = library(personas__auditor_md=text)
    assert found.persona(found.role("auditor")).description == "Write: what rhymes."


def test_the_texts_are_part_of_the_package() -> None:
    assert Path(HERE / "roles.toml").is_file()
    assert len(list(HERE.glob("personas/*.md"))) >= 10
