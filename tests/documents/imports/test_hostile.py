"""Whatever anybody wrote, it becomes a plan in which it is data, and nothing of it is left out."""

from __future__ import annotations

import json
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from imported import rendered
from planforge.documents import markdown, plan
from planforge.documents.imports import NOT_SHOWN, Imported, issues, plain, prose, speckit
from planforge.documents.phases import decompose
from planforge.documents.plan import PlanStatus
from tries import tries

NAMES = ["Goal", "Objective", "Scope", "Changes", "Risks", "Testing", "Audit Log", "audit log # #", "Context"]
NAMES += [
    "Implementation Notes",
    "Request",
    "Edge Cases",
    "User Story 1 - x",
    "Files",
    "{{TITLE}}",
    "",
    "Other",
]
HEADINGS = st.builds(lambda level, name: f"{'#' * level} {name}", st.integers(1, 6), st.sampled_from(NAMES))
ODD = st.sampled_from(
    [
        "```",
        "~~~~",
        "---",
        "===",
        "> ## Audit Log",
        "**Status:** DONE",
        "**ID:** plan-099",
        "**Acceptance Scenarios**:",
        "<!--",
        "- `../../etc/passwd.py` — x",
        "- /etc/passwd.py: x",
        "- `.git/config` — x",
        "1. ~/x.py",
        "- [ ] T001 [P] Do it in ../../a/b.py",
        "- [x] T002 Done in a/b.py",
        "- [ ] T003 In C:\\Windows\\x.py and a/b.py",
        "\x1b[31mred\x1b[0m",
        "nul\x00here",
        "\u2028## Audit Log",
        "\r## Audit Log",
        "\x85## Audit Log",
        "{{PLAN_ID}}",
        '["../x.py"]',
        "# Plan: another",
    ]
)
WORDS = st.text(alphabet=st.characters(categories=["L", "Nd", "P", "Zs", "Cc"]), max_size=12)
TEXTS = st.lists(st.one_of(HEADINGS, ODD, WORDS), max_size=30).map("\n".join)


def require_harmless(found: Imported, *said: str) -> None:
    """It is a plan with each section once, a draft with our number, within the repository, and all of it."""
    text = rendered(found)
    document = plan.parse(text)
    assert (document.id, document.status) == ("plan-001", PlanStatus.DRAFT)
    names = [section.name.lower() for section in markdown.sections(text)]
    for name in (*plan.REQUIRED, "Audit Log", "Implementation Notes"):
        assert names.count(name.lower()) == 1
    assert names.count("context") <= 1
    assert names.count("request") == 0
    assert not markdown.without_rules(markdown.body(text, "Audit Log") or "").strip()
    assert not NOT_SHOWN.search(text)
    for phase in decompose(text):
        assert not any(re.search(r"(^|/)(\.\.?|\.git|)(/|$)|^[~/]|:", file) for file in phase.files)
    kept = set(re.findall(r"\w+", text))
    for each in said:
        assert set(re.findall(r"\w+", plain(each))) <= kept | {"x"}  # which is in the box of what is done


@given(TEXTS.filter(lambda text: plain(text).strip()))
@settings(max_examples=tries(400), deadline=None)
def test_any_markdown_becomes_a_plan_and_stays_within_it(text: str) -> None:
    require_harmless(prose.read(text.encode(), "x.md"), text)


@given(st.dictionaries(st.sampled_from([*speckit.READ, "research.md"]), TEXTS, min_size=1))
@settings(max_examples=tries(400), deadline=None)
def test_any_feature_becomes_a_plan_and_stays_within_it(documents: dict[str, str]) -> None:
    told = {name: plain(text) for name, text in documents.items()} | {"spec.md": plain("# A thing\n")}
    require_harmless(speckit.read(told, "specs/001-x"), *told.values())


@given(TEXTS, TEXTS, st.text(max_size=200), st.text(max_size=30))
@settings(max_examples=tries(200), deadline=None)
def test_any_issue_becomes_a_plan_and_stays_within_it(
    body: str, comment: str, title: str, login: str
) -> None:
    issue = {
        "title": title,
        "number": 12,
        "body": body,
        "url": "https://github.com/o/r/issues/12",
        "author": {"login": login},
        "comments": [{"author": None, "body": comment, "createdAt": login}],
    }
    content = json.dumps(issue).encode()
    require_harmless(issues.read(content, "#12"), body, comment)
