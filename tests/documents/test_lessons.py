"""The file of lessons: read whatever people made of it, changed nowhere but where it was meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planforge.documents import lessons
from planforge.errors import InvalidDocument, NotFound
from planforge.interfaces.cli.typed import text
from planforge.rules.lessons import Lesson, Status

FILE = """\
# What we know

Some words of ours.

### 2026-01-02 — Checks run from the root

- Tags: checks, sandbox
- Lesson: A check runs in a fresh checkout.
  Name files from its root.
- Source: plan-017/phase-2
- Applied:
- Owner: Ada
- Status: active

Why this is so takes a paragraph.

```
### 2026-01-02 — In a fence
- Status: active
```

## 2026-02-03: Old ways ##

**Tags:** `one`, #two
**Lesson**: What was true once.
**Status:** Superseded by `checks-run-from-the-root`

<!--
### 2026-09-09 — An example
- Lesson: hidden
-->

#### 2026-03-04 - Said in prose

Only prose, over
two lines.

More of it.
### 2026-03-05 Checks run from the root
- Status: draft
"""


def test_what_people_write_is_understood() -> None:
    first, second, third, fourth = lessons.parse(FILE)
    assert first == Lesson(
        id="checks-run-from-the-root",
        date="2026-01-02",
        title="Checks run from the root",
        tags=("checks", "sandbox"),
        lesson="A check runs in a fresh checkout. Name files from its root.",
        source="plan-017/phase-2",
    )
    assert (second.title, second.tags, second.lesson) == ("Old ways", ("one", "two"), "What was true once.")
    assert (second.status, second.successor) == (Status.SUPERSEDED, "checks-run-from-the-root")
    assert (third.lesson, third.status) == ("Only prose, over two lines.", Status.ACTIVE)
    assert (fourth.id, fourth.status, fourth.remark) == ("checks-run-from-the-root-2", None, "draft")


@pytest.mark.parametrize(
    ("said", "status", "successor", "remark"),
    [
        ("", Status.ACTIVE, "", ""),
        ("Active", Status.ACTIVE, "", ""),
        ("`active`", Status.ACTIVE, "", ""),
        ("stale: nobody uses it", Status.STALE, "", "nobody uses it"),
        ("stale — nobody uses it", Status.STALE, "", "nobody uses it"),
        ("superseded (by other-one)", Status.SUPERSEDED, "other-one", ""),
        ("superseded by other-one: it is newer", Status.SUPERSEDED, "other-one", "it is newer"),
        ("superseded", Status.SUPERSEDED, "", ""),
        ("inactive", None, "", "inactive"),
        ("not active", None, "", "not active"),
        ("???", None, "", "???"),
    ],
)
def test_a_status_that_nobody_knows_is_never_active(
    said: str, status: Status | None, successor: str, remark: str
) -> None:
    (found,) = lessons.parse(f"### 2026-01-01 — A\n\n- Lesson: b\n- Status: {said}\n")
    assert (found.status, found.successor, found.remark) == (status, successor, remark)


def test_an_entry_ends_where_another_one_begins_however_deep_that_is() -> None:
    first, second = lessons.parse("## 2026-01-01 — A\n\n### 2026-01-02 — B\n- Lesson: b\n- Status: stale\n")
    assert (first.lesson, first.status) == ("", Status.ACTIVE)
    assert (second.lesson, second.status) == ("b", Status.STALE)


def test_a_change_touches_the_value_and_nothing_else() -> None:
    changed = lessons.changed(FILE, "checks-run-from-the-root", {"Applied": "plan-020", "Lesson": "Another."})
    assert changed == FILE.replace("- Applied:\n", "- Applied: plan-020\n").replace(
        " A check runs in a fresh checkout.\n  Name files from its root.", " Another."
    )


def test_a_field_that_is_missing_is_put_where_the_others_are() -> None:
    changed = lessons.changed(FILE, "old-ways", {"Source": "plan-001"})
    assert "`checks-run-from-the-root`\n- Source: plan-001\n\n<!--" in changed
    assert changed.replace("- Source: plan-001\n", "") == FILE
    changed = lessons.changed(FILE, "said-in-prose", {"Status": "stale: gone"})
    assert "#### 2026-03-04 - Said in prose\n\n- Status: stale: gone\n\nOnly prose, over\n" in changed
    again = {lesson.id: lesson for lesson in lessons.parse(changed)}["said-in-prose"]
    assert (again.status, again.remark, again.lesson) == (Status.STALE, "gone", "Only prose, over two lines.")


def test_prose_right_below_a_heading_does_not_become_a_value() -> None:
    changed = lessons.changed("### 2026-01-01 — A\nprose\n", "a", {"Status": "stale"})
    assert changed == "### 2026-01-01 — A\n\n- Status: stale\n\nprose\n"


def test_a_first_lesson_makes_a_file_that_explains_itself() -> None:
    text, found = lessons.added("", Lesson(id="", date="2026-01-02", title="One", lesson="It is one."))
    assert text.startswith("# Lessons\n\nWhat this project has learned")
    assert text.endswith(
        "### 2026-01-02 — One\n\n- Tags:\n- Lesson: It is one.\n- Source:\n- Applied:\n- Status: active\n"
    )
    assert lessons.parse(text) == (found,)
    assert found.id == "one"


@pytest.mark.parametrize("ending", ["", "\n", "\n\n", "\r\n"])
def test_one_more_goes_to_the_end_in_the_line_endings_of_the_file(ending: str) -> None:
    newline = "\r\n" if ending == "\r\n" else "\n"
    before = f"# Ours{newline}{newline}Text.{ending}"
    text, _ = lessons.added(before, Lesson(id="", date="2026-01-02", title="One", lesson="It is."))
    assert text.startswith(before)
    assert text[len(f"# Ours{newline}{newline}Text.") :].startswith(f"{newline}{newline}### 2026")
    assert ("\r\n" in text) is (newline == "\r\n")
    assert "\n" not in text.replace(newline, "")


@pytest.mark.parametrize("ending", ["```\ncode\n", "<!-- a comment\n"])
def test_a_lesson_is_not_put_where_nobody_would_see_it(ending: str) -> None:
    with pytest.raises(InvalidDocument, match="inside a code fence or a comment"):
        lessons.added(FILE + ending, Lesson(id="", date="2026-01-02", title="One", lesson="It is."))


def test_a_lesson_is_found_by_the_beginning_of_its_name_if_that_is_one() -> None:
    assert lessons.find(FILE, "Old ways").id == "old-ways"
    assert lessons.find(FILE, "said").id == "said-in-prose"
    assert lessons.find(FILE, "checks-run-from-the-root").date == "2026-01-02"
    with pytest.raises(InvalidDocument) as error:
        lessons.find(FILE, "checks")
    assert text(error.value.hint) == "say which one: `checks-run-from-the-root`, `checks-run-from-the-root-2`"
    for name in ("nothing", "", "  "):
        with pytest.raises(NotFound):
            lessons.find(FILE, name)


def test_what_a_plan_says_about_lessons() -> None:
    plan = "# Plan: x\n\n## Lessons\n\nDecision: none needed,\nit is small.\n\n---\n\n## Audit Log\n"
    assert lessons.planned(plan) == "Decision: none needed, it is small."
    assert lessons.planned("# Plan: x\n") == ""


# Anything at all

texts = st.text(max_size=60)
lines = texts.map(lessons.one_line)
new = st.builds(
    Lesson,
    id=st.just(""),
    date=st.dates().map(str),
    title=texts.map(lessons.title_line),
    tags=st.lists(texts.map(lessons.tag).filter(bool), max_size=3, unique=True).map(tuple),
    lesson=lines.filter(bool),
    source=lines,
    applied=lines,
)
HEADINGS = ("### 2026-01-01 — A", "## 2026-01-01: B ##", "# C", "#### D")
VALUES = ("- Tags: a, b", "**Status:** stale", "* lesson: x", "- Lesson:", "Applied: z", "more", "  indented")
OTHERS = ("", "```", "~~~", "<!--", "-->", "---", "- Other: y", "\ufeff")
pieces = st.lists(st.sampled_from((*HEADINGS, *VALUES, *OTHERS)), max_size=14)
documents = st.tuples(pieces, st.sampled_from(["\n", "\r\n", "\r"]), st.booleans()).map(
    lambda found: found[1].join(found[0]) + (found[1] if found[2] else "")
)


@given(text=documents | texts, lesson=new)
def test_what_is_added_is_read_again_and_the_rest_stays_byte_for_byte(text: str, lesson: Lesson) -> None:
    try:
        after, found = lessons.added(text, lesson)
    except InvalidDocument:
        return
    assert after.startswith(text)
    assert lessons.parse(after) == (*lessons.parse(text), found)
    names = {"id": found.id}
    assert found == Lesson(**{field: getattr(lesson, field) for field in Lesson.__struct_fields__} | names)


@given(text=documents, value=lines, field=st.sampled_from(lessons.FIELDS), data=st.data())
def test_a_changed_value_is_read_again_and_other_entries_are_as_they_were(
    text: str, value: str, field: str, data: st.DataObject
) -> None:
    known = lessons.parse(text)
    if not known:
        return
    chosen = data.draw(st.sampled_from(known))
    after = lessons.changed(text, chosen.id, {field: value})
    found = lessons.parse(after)
    assert [lesson for lesson in found if lesson.id != chosen.id] == [
        lesson for lesson in known if lesson.id != chosen.id
    ]
    (again,) = [lesson for lesson in found if lesson.id == chosen.id]
    if field in ("Lesson", "Source", "Applied") and value:
        assert getattr(again, field.lower()) == value
    removed = _removed(text, after)
    if field in ("Lesson", "Source", "Applied"):
        assert " ".join(removed.split()) in getattr(chosen, field.lower())


def _removed(before: str, after: str) -> str:
    """What is between the beginning and the end that two texts share."""
    most = min(len(before), len(after))
    start = next((at for at in range(most) if before[at] != after[at]), most)
    end = next((at for at in range(most - start) if before[-1 - at] != after[-1 - at]), most - start)
    return before[start : len(before) - end]
