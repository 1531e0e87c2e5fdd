"""What effects say of themselves."""

from __future__ import annotations

from string import Formatter

import pytest

from planforge.kernel import effects
from planforge.kernel.effects import Effect

EFFECTS = [
    kind
    for kind in vars(effects).values()
    if isinstance(kind, type) and issubclass(kind, Effect) and kind is not Effect
]


@pytest.mark.parametrize("kind", EFFECTS)
def test_what_an_effect_is_about_is_told_by_its_fields_and_is_none_itself(
    kind: type[Effect[object]],
) -> None:
    named = {field.partition(".")[0] for _, field, _, _ in Formatter().parse(kind.ABOUT) if field}
    assert named <= set(kind.__struct_fields__)
    assert "ABOUT" not in kind.__struct_fields__


def test_what_an_effect_is_about_is_short_and_whole() -> None:
    lease = effects.Leased(holder="{run-001}", fence=1)
    assert effects.ReleaseLease(lease=lease, reason="").about == "{run-001}"
    assert effects.ReadCommit(commit="0123456789abcdef").about == "0123456789ab"
    assert effects.Rebase(commit="", onto="", step="phase-1", attempt=2).about == "phase-1-2"
    assert effects.ReadFiles(base="", paths=("a", "b")).about == "2 files"
    assert effects.Survey(base="", text="").about == ""
