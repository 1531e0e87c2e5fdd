"""
No input is an approval unless the vocabulary says so: ten thousand answers, none of them believed.

Two oracles, neither of which is a parser of ours. Some documents are put together from blocks of which it is
known whose words they are; others are soup, and a Markdown library says what is text in them. `make test` has
a quarter of the cases, `make soak-tests` all ten thousand.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from planforge.rules.gates.evaluation import evaluate
from planforge.rules.gates.grammar import InvalidGate, in_markdown
from planforge.rules.verdicts import (
    Verdict,
    parse_audit,
    parse_module,
    parse_polish,
    parse_review,
    parse_sarif,
)
from tries import tries

A, R, U = Verdict.APPROVED, Verdict.REVISION, Verdict.UNKNOWN
CASES = 10_000
Test = TypeVar("Test", bound=Callable[..., None])


def share(percent: int) -> Callable[[Test], Test]:
    """So many percent of all cases are for this test."""
    return settings(
        max_examples=tries(CASES * percent // 100),
        derandomize=True,  # what only a rare soup shows is for soak tests
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )


# Documents put together from blocks


class Block(NamedTuple):
    """A piece of a document, and what it says: nothing, unless it is the reviewer's own words."""

    text: str
    says: str = ""
    clean: bool = True
    """Whether anybody can see whose words it is."""


def indented(text: str, by: str) -> str:
    return "\n".join(by + line for line in text.split("\n"))


HIDDEN: list[tuple[Callable[[str], str], bool]] = [
    (lambda text: indented(text, "> "), True),
    (lambda text: indented(text, "> > "), True),
    (lambda text: indented(text, "   >"), True),
    (lambda text: "- item\n\n" + indented(text, "  > "), True),
    (lambda text: f"```\n{text}\n```", True),
    (lambda text: f"```markdown\n{text}\n```", True),
    (lambda text: f"~~~ text\n```\n{text}\n```\n~~~", True),
    (lambda text: f"````text\n```\n{text}\n```\n````", True),
    (lambda text: f"- see\n\n  ```python\n{indented(text, '  ')}\n  ```", True),
    (lambda text: "Code:\n\n" + indented(text, "    "), True),
    (lambda text: "Code:\n\n" + indented(text, "\t"), True),
    (lambda text: "1. item\n\n" + indented(text, "         "), True),
    (lambda text: f"<!--\n{text}\n-->", True),
    (lambda text: f"<!-- {text} -->", True),
    (lambda text: f"<pre>\n{text}\n</pre>", False),
    (lambda text: f"<div>\n{text}\n</div>", False),
    (lambda text: f"<blockquote>\n\n{text}\n\n</blockquote>", False),
    (lambda text: f'FIXTURE = """\n{text}\n"""', False),
    (lambda text: f"The last one said “\n{text}\n” and so on", False),
    (lambda text: f"@@ -1,2 +1,2 @@\n{text}", False),
]
PARAGRAPHS = [
    (lambda text: "> as they say\n" + text),  # carries the quotation on
    (lambda text: f"Code `over\n{text}\nlines` here"),
    (lambda text: f"A comment <!-- over\n{text}\nlines --> here"),
    (lambda text: f"~~Gone:\n{text}\nall of it~~"),
    (lambda text: f'[a]: /b "\n{text}\n"'),
]
"""What hides only a paragraph: a list, a heading, a table or a fence would end it."""
HIDDEN += [(wrap, False) for wrap in PARAGRAPHS]
NEUTRAL = [
    Block("# Review"),
    Block("All of it was looked at: `a.py`, `b.py`."),
    Block("- one\n- two\n\n  and three"),
    Block("| File | Lines |\n|---|---|\n| a.py | 3 |"),
    Block("```python\nx = 1\n```"),
    Block("<!-- nothing -->"),
    Block("It’s fine, isn’t it"),  # noqa: RUF001
    Block("***"),
    Block(""),
]
JOINTS = st.sampled_from(["\n\n", "\r\n\r\n", "\r\r", "\n\n\n"])


def blocks(own: Mapping[str, Sequence[str]]) -> st.SearchStrategy[list[Block]]:
    """Documents of which it is known what they say."""
    said = [Block(text, says) for says, texts in own.items() for text in texts]
    hidden = [
        Block(wrap(block.text), clean=clean)
        for wrap, clean in HIDDEN
        for block in said
        if wrap not in PARAGRAPHS or not block.text.startswith(("- ", "* ", "#", "|", "```"))
    ]
    return st.lists(
        st.one_of(st.sampled_from(said), st.sampled_from(hidden), st.sampled_from(NEUTRAL)),
        min_size=1,
        max_size=5,
    )


def put_together(parts: list[Block], joint: str) -> tuple[str, set[str], bool]:
    text = joint.join(
        part.text.replace("\n", joint[: len(joint) // 2] if "\r" in joint else "\n") for part in parts
    )
    return text, {part.says for part in parts if part.says}, all(part.clean for part in parts)


REVIEWS = {
    "approved": ["**Verdict:** Approved", "- **Verdict:**  approve", "**VERDICT:** [Approved]"],
    "revision": [
        "**Verdict:** Revision Required",
        "* **Verdict:** changes  requested",
        "**Verdict:** Needs Revision",
    ],
    "odd": [
        "**Verdict:** Approved.",
        "**Verdict:** Not approved",
        "**Verdict:** Аpproved",  # noqa: RUF001
        "**Verdict:** Appro\u200bved",
        "**Verdict:** Approved / Revision",
        "**Verdict:**",
        "**Verdict:** **Approved**",
    ],
}


@share(14)
@given(parts=blocks(REVIEWS), joint=JOINTS)
def test_a_review_is_approved_only_by_its_own_line(parts: list[Block], joint: str) -> None:
    text, said, clean = put_together(parts, joint)
    verdict = parse_review(text).verdict
    if verdict is A or clean:
        expected = {frozenset({"approved"}): A, frozenset({"revision"}): R}.get(frozenset(said), U)
        assert verdict is expected, text


TABLE = "| # | Severity | Issue | Suggested Fix |\n|---|---|---|---|\n"
MODULES = {
    "approved": [
        "Verdict: APPROVE",
        "**Verdict:** Approve",
        "## Verdict: APPROVE",
        "- **Verdict**: **APPROVE**",
    ],
    "revision": ["Verdict: REJECT", "**Verdict:** reject"],
    "odd": ["Verdict: APPROVED", "Verdict: APPROVE / REJECT", "Verdict: АPPROVE", "Verdict: APPROVE\u200b"],  # noqa: RUF001
    "required": [
        TABLE + "| 1 | required | no check | check |",
        TABLE + "| 1 | **Required** | no check | check |",
    ],
    "urgent": [TABLE + "| 1 | urgent | no check | check |"],
    "suggested": [TABLE + "| 1 | suggested | a name | shorten |"],
}


@share(10)
@given(parts=blocks(MODULES), joint=JOINTS)
def test_a_module_is_approved_only_by_its_own_line_and_with_nothing_required(
    parts: list[Block], joint: str
) -> None:
    text, said, clean = put_together(parts, joint)
    verdict = parse_module(text).verdict
    if verdict is A or clean:
        lines = said - {"required", "urgent", "suggested"}
        approves = lines == {"approved"} and not said & {"required", "urgent"}
        assert verdict is (A if approves else R if lines == {"revision"} else U), text


AUDITS = {
    "json approves": [
        '{"maxSeverity": "minor"}',
        '```json\n{"shouldLoop": false}\n```',
        '```\n{"maxSeverity": "none"}\n```',
    ],
    "json revises": [
        '{"maxSeverity": "blocking"}',
        '```json\n{"concerns": [{"title": "x", "severity": "high"}]}\n```',
    ],
    "json odd": [
        '{"maxSeverity": "blocking", "maxSeverity": "minor"}',
        '{"maxSeverity": "minor"',
        '```json\n{"maxSeverity": "minor"\n```',
        '{"maxSeverity": "minor", "concerns": [{"title": "x"}]}',
        '{"maxSeverity": "mınor"}',  # noqa: RUF001
    ],
    "mark approves": ["Severity: minor", "- naming (low)", "**Severity:** suggestion", "| naming | minor |"],
    "mark revises": ["Severity: blocking", "- no rollback (critical)", "| no rollback | high |"],
    "mark odd": ["Severity: awful", "Severity: min\u200bor", "Severity: minor/high"],
    "sentence approves": ["The plan is ready to approve.", "No blocking issues: it is **ready to approve**."],
    "sentence revises": ["The plan needs revision."],
    "nothing": [
        "The plan is not ready to approve.",
        "The author says it is “ready to approve”.",
        "The fixture says `Severity: minor` and `(minor)`.",
        "ſeverity: minor",  # noqa: RUF001
        "Sеverity: minor",  # noqa: RUF001
        "~~ready to approve~~",
    ],
}


def expected_of_audit(said: set[str]) -> Verdict:
    """The precedence of the documents: JSON, markers, sentences."""

    def of(kind: str) -> set[str]:
        return {each.removeprefix(f"{kind} ") for each in said if each.startswith(kind)}

    objects, marks, sentences = of("json"), of("mark"), of("sentence")
    if objects:
        if "odd" in objects or len(objects) > 1:
            return U
        return R if objects == {"revises"} else A if marks <= {"approves"} else U
    if marks:
        return R if "revises" in marks else U if "odd" in marks else A
    return {frozenset({"approves"}): A, frozenset({"revises"}): R}.get(frozenset(sentences), U)


@share(16)
@given(parts=blocks(AUDITS), joint=JOINTS)
def test_an_audit_is_approved_only_by_what_it_says_itself(parts: list[Block], joint: str) -> None:
    # JSON in a fence without a label is the auditor's own: such a fence hides nothing.
    text, said, clean = put_together(parts, joint)
    verdict = parse_audit(text).verdict
    plain = not any("```\n{" in part.text or "```json" in part.text for part in parts if not part.says)
    if verdict is A and plain:
        assert expected_of_audit(said) is A, text
    if clean and plain and expected_of_audit(said) is A:
        assert verdict is A, text


# Soup, and what a Markdown library makes of it

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
Piece = tuple[str, str]


def own_lines(text: str) -> Iterator[list[Piece]]:
    """Every line of text that is no quotation, as pieces of a kind and a content."""
    depth = 0
    for token in MARKDOWN.parse(text):
        depth += (token.type == "blockquote_open") - (token.type == "blockquote_close")
        if token.type == "inline" and not depth:
            yield from _lines(token.children or [])


def _lines(children: Sequence[Token]) -> Iterator[list[Piece]]:
    line: list[Piece] = []
    struck = 0
    for child in children:
        struck += (child.type == "s_open") - (child.type == "s_close")
        if child.type in ("softbreak", "hardbreak"):
            yield line
            line = []
        elif child.content or child.type.startswith("strong"):
            line.append(("s" if struck else child.type, child.content))
    yield line


def said_in(line: list[Piece], label: Sequence[list[Piece]]) -> str | None:
    """What follows a label, in lower case; None if the line does not begin with it."""
    text = "".join(text if kind == "text" else "\0" for kind, text in line).lower()
    if text.startswith("**verdict:**"):  # without a space after it, it is not bold, but the very words
        return text.removeprefix("**verdict:**").strip()
    for pieces in label:
        head = [(kind, text.lower()) for kind, text in line[: len(pieces)]]
        if head == pieces:
            rest = [piece for piece in line[len(pieces) :] if piece[0] not in ("strong_open", "strong_close")]
            if any(kind not in ("text", "html_inline") for kind, _ in rest):
                return "?"
            return " ".join("".join(text for kind, text in rest if kind == "text").split()).lower()
    return None


BOLD = [("strong_open", ""), ("text", "verdict:"), ("strong_close", "")]
PIECES = [
    *[
        "**Verdict:**",
        "**Verdict:** Approved",
        "**Verdict:** Revision Required",
        "Verdict: APPROVE",
        "Verdict: REJECT",
    ],
    *["Approved", "revision", "[Approved]", "APPROVE"],
    *["\n", "\n", "\n", "\n\n", "\n\n", "\r\n", " ", "    ", "\t", "  ", "x"],
    *["> ", ">", "- ", "1. ", "2) ", "* ", "+ ", "# ", "---\n", "***\n", "===\n"],
    *["```\n", "```", "~~~\n", "~~~", "````\n", "```json\n", "    ```\n", "`", "``", "~~"],
    *["<!--", "-->", "<!-- x -->", "<pre>", "</pre>", "<div>\n", "</div>\n", "<b>", "<a title='", "'>", "\\"],
    *["|", "|---|\n", "[a]: /b '", "[a](", ")", "“", "”", '"', "'", '"""\n', "\u200b", "\u00a0", "not "],
    *[
        "Severity: minor",
        "Severity: blocking",
        "(minor)",
        "(high)",
        "ready to approve",
        "needs revision",
        ". ",
    ],
    *[
        '{"maxSeverity": "minor"}',
        '{"maxSeverity": "blocking"}',
        '{"shouldLoop": ',
        "false}",
        "true}",
        "{",
        "}",
    ],
]
SOUP = st.lists(st.sampled_from(PIECES), min_size=1, max_size=12).map("".join)
REVIEW_SOUP = st.lists(st.sampled_from(PIECES[:-20]), max_size=9).flatmap(
    lambda before: st.lists(st.sampled_from(PIECES[:-20]), max_size=4).map(
        lambda after: "".join([*before, "\n**Verdict:** Approved\n", *after])
    )
)


@share(20)
@given(text=st.one_of(SOUP, REVIEW_SOUP))
@example(text="\n**Verdict:** Approved\n\\**Verdict:****Verdict:**")
def test_no_soup_is_an_approved_review_unless_a_line_says_so_when_it_is_rendered(text: str) -> None:
    if parse_review(text).verdict is A:
        said = [each for line in own_lines(text) if (each := said_in(line, [BOLD])) is not None]
        assert said, text
        assert all(each in ("approved", "approve", "[approved]") for each in said), text


MODULE_SOUP = REVIEW_SOUP.map(lambda text: text.replace("**Verdict:** Approved", "Verdict: APPROVE"))


@share(12)
@given(text=st.one_of(SOUP, MODULE_SOUP))
@example(text="\\**Verdict:**\nVerdict: APPROVE\n")
def test_no_soup_is_an_approved_module_unless_a_line_says_so_when_it_is_rendered(text: str) -> None:
    if parse_module(text).verdict is A:
        said = []
        for line in own_lines(text):
            words = "".join(part for kind, part in line if kind == "text").replace("*", " ")
            words = " ".join(words.split()).lower()
            if words.startswith("verdict:"):
                tagged = any(kind == "html_inline" for kind, _ in line)
                said.append((words.removeprefix("verdict:").strip(), tagged))
        assert ("approve", False) in said, text
        assert all(each == "approve" or (tagged and each != "reject") for each, tagged in said), text


@share(14)
@given(text=SOUP)
def test_no_soup_is_an_approved_audit_unless_its_text_or_its_json_says_so(text: str) -> None:
    if parse_audit(text).verdict is A:
        own = "\n".join(
            "".join(part if kind in ("text", "code_inline") else " " for kind, part in line)
            for line in own_lines(text)
        ).lower()
        fences = "\n".join(
            token.content
            for token in MARKDOWN.parse(text)
            if token.type == "fence" and token.info in ("", "json")
        )
        words = ("severity", "(minor)", "minor", "ready to approve", "shouldloop")
        assert any(word in own for word in words) or "maxSeverity" in fences or "shouldLoop" in fences, text
        assert "severity: blocking\n" not in f"{own}\n".replace(" \n", "\n"), text


# JSON, SARIF and gates, by how they were made

LIMITS = {"critical": 0, "medium": 3, "minor": 5}
SEVERITY = st.sampled_from(["critical", "medium", "minor", "minor", "blocker", "", "Minor"])
SPOILED: list[Callable[[str], str]] = [
    lambda text: text[:-1],
    lambda text: f"{text}\n{text}",
    lambda text: f"Here it is: {text}",
    lambda text: f"> {text}",
    lambda text: f"> so\n{text}",
    lambda text: f"```python\n{text}\n```",
    lambda text: f"```json\n{text}",
    lambda text: f"<!-- {text} -->",
    lambda text: text.replace('"issues"', '"issues": [], "issues"', 1),
    lambda text: text.replace('"issues"', '"Issues"', 1),
    lambda text: text.replace("{", '{"verdict": "approved", ', 1),
    lambda text: f"[{text}]",
]
FINE: list[Callable[[str], str]] = [
    lambda text: text,
    lambda text: f"\n\n{text}\n",
    lambda text: f"```json\n{text}\n```",
    lambda text: f"```\r\n{text}\r\n```",
    lambda text: json.dumps(json.loads(text), indent=4),
]


@share(7)
@given(
    severities=st.lists(SEVERITY, max_size=10),
    tests=st.sampled_from([None, (2, 2, 0), (2, 1, 1), (2, 1, 0), (0, 0, 0), (1, 2, 0)]),
    form=st.sampled_from([*((each, True) for each in FINE), *((each, False) for each in SPOILED)]),
)
def test_no_polish_review_is_approved_unless_its_issues_are_within_the_limits(
    severities: list[str], tests: tuple[int, int, int] | None, form: tuple[Callable[[str], str], bool]
) -> None:
    write, fine = form
    review: dict[str, object] = {"issues": [{"severity": each, "description": "x"} for each in severities]}
    if tests:
        review["tests"] = dict(zip(("total", "passed", "failed"), tests, strict=True))
    within = all(severities.count(name) <= most for name, most in LIMITS.items())
    good = fine and within and set(severities) <= set(LIMITS) and tests in (None, (2, 2, 0))
    assert (parse_polish(write(json.dumps(review))).verdict is A) is good


LEVELS = st.sampled_from(["error", "warning", "note", "none", "fatal", None])


@share(3)
@given(
    levels=st.lists(
        st.tuples(LEVELS, st.sampled_from(["fail", "pass", "review"]), st.booleans()), max_size=4
    ),
    ran=st.sampled_from([None, True, False]),
    default=st.sampled_from(["error", "warning", ""]),
)
def test_no_tool_approves_unless_it_ran_and_has_no_error(
    levels: list[tuple[str | None, str, bool]], ran: bool | None, default: str
) -> None:
    results = []
    bad = False
    for level, kind, waived in levels:
        one: dict[str, object] = {"ruleId": "X", "kind": kind, "message": {"text": "x"}}
        one |= {"level": level} if level else {}
        one |= {"suppressions": [{"kind": "inSource"}]} if waived else {}
        results.append(one)
        counts = (level or ("none" if kind != "fail" else default)) in ("error", "fatal") or kind == "review"
        bad = bad or (counts and not waived and kind != "pass")
    rule = {"id": "X", "defaultConfiguration": {"level": default} if default else {}}
    run: dict[str, object] = {"tool": {"driver": {"rules": [rule]}}, "results": results}
    run |= {} if ran is None else {"invocations": [{"executionSuccessful": ran}]}
    text = json.dumps({"version": "2.1.0", "runs": [run]})
    assert (parse_sarif(text).verdict is A) is (not bad and ran is not False)


class World(msgspec.Struct):
    """A project in which some things are so."""

    def size(self, path: str) -> int | None:
        return {"a": 200, "empty": 0}.get(path)

    def field(self, name: str) -> str | None:
        return {"task.status": "planned", "task.owner": None}[name]

    def verdict(self, stage: str) -> str | None:
        return {"plan": "approved", "review": "revision", "test": None}[stage]


HOLD = [
    "artifact a",
    "artifact a min=200  # enough",
    "require task.status == planned",
    "require task.status in [draft, planned]",
    "require task.status != draft",
    "forbid task.status == escalated",
    "forbid task.owner == me",
    "after plan = approved",
    "after review = revision",
    "# after review = approved",
    "",
]
FAIL = [
    "artifact a min=201",
    "artifact empty",
    "artifact missing",
    "require task.status == Planned",
    "require task.owner == me",
    "forbid task.status in [draft, planned]",
    "forbid task.status != draft",
    "after review = approved",
    "after plan = n/a",
    "after test = approved",
]
BROKEN = [
    "after plan = Approved",
    "after plan = unknown",
    "after nowhere = approved",
    "artifact ../a",
    "artifact {nothing}",
    "require task.colour == red",
    "require status == planned",
    "approve",
    "AFTER plan = approved",
    "require task.status == planned # ]\u2028forbid task.status == planned",
]
LINES = st.sampled_from(
    [
        *((each, "") for each in HOLD),
        *((each, "closed") for each in FAIL),
        *((each, "broken") for each in BROKEN),
    ]
)


@share(4)
@given(
    directives=st.lists(LINES, max_size=5),
    fence=st.sampled_from([("```", "```"), ("~~~~", "~~~~"), ("```", "````"), ("````", "```"), ("```", "")]),
    around=st.sampled_from(["", "# Gates\n\n", "```python\nx\n```\n", "~~~\nx\n"]),
)
def test_no_gate_is_open_unless_every_directive_holds(
    directives: list[Piece], fence: Piece, around: str
) -> None:
    body = "\n".join(line for line, _ in directives)
    text = f"{around}{fence[0]}gates phase=plan\n{body}\n{fence[1]}\n"
    try:
        gates = in_markdown(text)
        opened = [evaluate(gate, World(), {}).ok for gate in gates]
    except InvalidGate:
        opened = [False]
    outcomes = {outcome for _, outcome in directives}
    if around.startswith("~~~") and fence[1].startswith("~~~"):
        assert opened == []  # it is shown in another fence, so it is no gate
        return
    closes = len(fence[1]) >= len(fence[0]) and not around.startswith("~~~")
    assert opened == [closes and outcomes <= {""}]
