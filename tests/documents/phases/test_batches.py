"""Who waits for whom: a chain, side by side, and an order that the plan declares."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from growth import growth
from planforge.documents.phases import decompose
from planforge.documents.plan import declared_parallel
from planforge.errors import InvalidDocument


def plan(changes: str, header: str = "") -> str:
    return f"# Plan: x\n\n**ID:** plan-001\n{header}\n\n---\n\n## Changes\n\n{changes}\n"


def cut(changes: str, *, parallel: bool | None = True, max_files: int = 5) -> dict[str, tuple[str, ...]]:
    """The files of each implementing phase, in order, with the ids that it waits for."""
    phases = decompose(plan(changes), parallel=parallel, max_files=max_files)
    assert phases[-1].depends_on == tuple(phase.id for phase in phases[:-1])
    return {" ".join(phase.files): phase.depends_on for phase in phases[:-1]}


@pytest.mark.parametrize(
    ("header", "declared", "depends_on"),
    [
        ("", None, ("phase-1",)),
        ("**Parallel:** yes", True, ()),
        ("**Parallel:** YES  ", True, ()),
        ("**Parallel:** no", False, ("phase-1",)),
        ("**Parallel:**", None, ("phase-1",)),
    ],
)
def test_the_header_declares_whether_phases_run_side_by_side(
    header: str, declared: bool | None, depends_on: tuple[str, ...]
) -> None:
    text = plan("- `a/x.go`\n- `b/y.go`", header)
    assert declared_parallel(text) is declared
    assert decompose(text)[1].depends_on == depends_on
    assert decompose(text, parallel=True)[1].depends_on == ()
    assert decompose(text, parallel=False)[1].depends_on == ("phase-1",)


def test_a_word_that_is_neither_yes_nor_no_is_told_with_its_line() -> None:
    text = plan("- `a/x.go`", "**Parallel:** maybe")
    with pytest.raises(InvalidDocument, match="line 4: `\\*\\*Parallel:\\*\\* maybe` is neither yes nor no"):
        decompose(text)
    assert decompose(text, parallel=False)


def test_only_the_header_declares_it() -> None:
    assert declared_parallel("# Plan: x\n\n---\n\n**Parallel:** yes\n") is None
    assert declared_parallel("# Plan: x\n\n```\n**Parallel:** yes\n```\n") is None


AFTER = [
    "- `b/y.go` (after `a/x.go`)",
    "- `b/y.go` — count it (after `a/x.go`).",
    "- `b/y.go`: count it (After: `a/x.go`)",
    "- `b/y.go` — count it\n  in two lines (after `a/x.go`)",
    "- `b/y.go` — count it\n  - detail\n  - after: `a/x.go`",
    "- `b/y.go`\n  - **After:** `a/x.go`",
    "### `b/y.go`\n\nText.\n\n- after: `a/x.go`",
    "### `b/y.go` (after `a/x.go`)\n\nText.",
    "**`b/y.go`** — count it (after `a/x.go`)",
    "**`b/y.go`** — count it\n- after: `a/x.go`",
]


@pytest.mark.parametrize("item", AFTER)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_declared_dependency_is_waited_for_and_is_no_file_of_the_item(item: str, newline: str) -> None:
    changes = f"- `c/z.go`\n\n{item}\n\n### Others\n\n- `a/x.go`".replace("\n", newline)
    assert cut(changes) == {"c/z.go": (), "a/x.go": (), "b/y.go": ("phase-2",)}
    assert cut(changes, parallel=False) == {"c/z.go": (), "a/x.go": ("phase-1",), "b/y.go": ("phase-2",)}


@pytest.mark.parametrize(
    "item",
    [
        "- `b/y.go` — once (after `setup()`)",
        "- `b/y.go` — then (after `a/x.go` ran) stop",
        "- `b/y.go`\n\n(after `a/x.go`)",
    ],
)
def test_what_is_not_exactly_the_form_is_prose(item: str) -> None:
    assert cut(f"- `a/x.go`\n{item}") == {"a/x.go": (), "b/y.go": ()}


def test_after_below_no_file_is_a_line_like_any_other() -> None:
    assert cut("- after: `a/x.go`\n- `b/y.go`") == {"a/x.go": (), "b/y.go": ()}


def test_several_files_may_be_waited_for_and_the_spec_keeps_the_words() -> None:
    changes = "- `a/1.go`\n- `b/1.go`\n- `c/1.go` — last (after `a/1.go` and `b/1.go`)"
    assert cut(changes) == {"a/1.go": (), "b/1.go": (), "c/1.go": ("phase-1", "phase-2")}
    assert decompose(plan(changes))[2].change_spec == "- `c/1.go` — last (after `a/1.go` and `b/1.go`)"


def test_files_of_one_phase_may_wait_for_each_other_within_it() -> None:
    assert cut("- `a/1.go` (after `a/2.go`)\n- `a/2.go`") == {"a/1.go a/2.go": ()}


def test_a_batch_that_would_be_both_before_and_after_another_is_cut() -> None:
    changes = "- `a/1.go`\n- `a/2.go` (after `b/1.go`)\n- `b/1.go` (after `a/1.go`)"
    assert cut(changes) == {"a/1.go": (), "b/1.go": ("phase-1",), "a/2.go": ("phase-2",)}


def test_the_files_of_a_manifest_keep_the_order_that_the_changes_declare() -> None:
    text = plan("- `b/y.go` (after `a/x.go`)\n- `no/z.go` (after `q/q.go`)") + (
        '\n## Change Manifest\n\n["b/y.go", "a/x.go"]\n'
    )
    assert [phase.files for phase in decompose(text)[:-1]] == [("a/x.go",), ("b/y.go",)]


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            "- `a/x.go` (after `b/no.go`)",
            "`a/x.go` is to be changed after `b/no.go`, which the plan does not change",
        ),
        ("- `a/x.go` (after `a/x.go`)", "files wait for each other: `a/x.go`"),
        (
            "- `a/x.go` (after `b/y.go`)\n- `b/y.go` (after `a/x.go`)",
            "wait for each other: `a/x.go`, `b/y.go`",
        ),
        (
            "- `q/q.go` (after `a/x.go`)\n- `a/x.go` (after `b/y.go`)\n- `b/y.go` (after `a/x.go`)",
            "files wait for each other: `a/x.go`, `b/y.go`",
        ),
    ],
)
def test_an_order_that_cannot_be_is_refused_with_the_files(changes: str, said: str, parallel: bool) -> None:
    with pytest.raises(InvalidDocument, match=said) as caught:
        decompose(plan(changes), parallel=parallel)
    assert caught.value.hint


@settings(deadline=None)
@given(
    edges=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=20),
    max_files=st.integers(1, 4),
    parallel=st.booleans(),
)
def test_every_declared_order_without_a_way_around_is_kept(
    edges: list[tuple[int, int]], max_files: int, parallel: bool
) -> None:
    names = [f"{'abc'[number % 3]}/{number}.go" for number in range(12)]
    before: dict[str, set[str]] = {name: set() for name in names}
    for edge in edges:
        if edge[0] != edge[1]:
            before[names[max(edge)]].add(names[min(edge)])
    items = [
        f"- `{name}`"
        + (f" (after {', '.join(f'`{each}`' for each in sorted(before[name]))})" if before[name] else "")
        for name in reversed(names)
    ]
    phases = decompose(plan("\n".join(items)), max_files=max_files, parallel=parallel)
    home = {path: phase for phase in phases[:-1] for path in phase.files}
    assert sorted(home) == sorted(names)
    reached: dict[str, set[str]] = {}
    for phase in phases:
        reached[phase.id] = {phase.id}.union(*(reached[name] for name in phase.depends_on))
    for name, others in before.items():
        for other in others:
            assert home[other].id in reached[home[name].id]
    if parallel:
        wanted = {home[other].id for name in names for other in before[name] if home[other] != home[name]}
        assert {name for phase in phases[:-1] for name in phase.depends_on} == wanted


def flat(count: int) -> str:
    return "".join(f"- `src/d{at}/m.py`\n" for at in range(count))


def pairs(count: int) -> str:
    return "".join(f"- `src/d{at}/index.ts`\n- `src/d{at}/index.test.ts`\n" for at in range(count // 2))


def chain(count: int) -> str:
    return "- `src/d0/m.py`\n" + "".join(
        f"- `src/d{at}/m.py` (after `src/d{at - 1}/m.py`)\n" for at in range(1, count)
    )


def lines_below(count: int) -> str:
    return "- `src/d0/m.py`\n" + "".join(
        f"- `src/d{at}/m.py`\n  - after: `src/d{at - 1}/m.py`\n" for at in range(1, count)
    )


@pytest.mark.parametrize("shape", [flat, pairs, chain, lines_below])
def test_what_it_costs_grows_with_the_files_and_not_with_their_square(shape: Callable[[int], str]) -> None:
    found = growth(decompose, lambda count: f"## Changes\n\n{shape(count)}", 250, 2000)
    assert found.is_linear, found
