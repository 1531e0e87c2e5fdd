"""What `planforge.toml` says about protected changes and secrets: read, or refused in one line."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from planforge.app.settings import read
from planforge.errors import InvalidInput
from planforge.rules.protection.changes import protected
from planforge.workspace.secrets import Allowed

WHOLE = """\
[protect]
add = ["infra/**"]
remove = ["licence", "docs/**"]

[protect.size]
lines = 300
refuse = 0

[protect.secrets]
variables = ["LICENCE_SERVER"]

[[protect.secrets.allow]]
fingerprint = "0011223344556677"
reason = "a public test key"
until = 2027-01-31
"""


def test_the_section_is_read(tmp_path: Path) -> None:
    (tmp_path / "planforge.toml").write_text(WHOLE)
    found = read(tmp_path).protect
    assert (found.add, found.remove, found.replace) == (("infra/**",), ("licence", "docs/**"), None)
    assert (found.size.lines, found.size.factor, found.size.refuse) == (300, 8.0, 0)
    assert found.secrets.variables == ("LICENCE_SERVER",)
    assert found.secrets.allow == (
        Allowed(fingerprint="0011223344556677", reason="a public test key", until=date(2027, 1, 31)),
    )


def test_the_rules_take_the_section_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "planforge.toml").write_text(WHOLE)
    changes = protected(["infra/main.tf", "LICENSE", "AGENTS.md"], {}, {}, read(tmp_path).protect)
    assert [change.path for change in changes] == ["infra/main.tf", "AGENTS.md"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[protect]\nadd = ["/etc"]', "`protect.add`: '/etc' is an absolute path"),
        ('[protect]\nremove = ["../x"]', "`protect.remove`: '../x' leads out of the repository"),
        ('[protect]\nreplace = [""]', "`protect.replace`: '' is empty"),
        ('[protect]\nad = ["x"]', "there is no setting `protect.ad`; did you mean `protect.add`?"),
        ("[protect.size]\nlines = 0", "`protect.size.lines` must be at least 1"),
        ("[protect.size]\nfactor = 0.5", "`protect.size.factor` must be at least 1"),
        ("[protect.size]\nrefuse = -1", "`protect.size.refuse` must be at least 0"),
        (
            "[protect.secrets]\nallowed = []",
            "there is no setting `protect.secrets.allowed`; did you mean `protect.secrets.allow`?",
        ),
        (
            '[[protect.secrets.allow]]\nfingerprint = "a"\nreason = "b"',
            "`protect.secrets.allow[0].until` is missing",
        ),
        (
            '[[protect.secrets.allow]]\nfingerprint = "a"\nreason = " "\nuntil = 2027-01-31',
            "`protect.secrets.allow` needs a fingerprint and a reason",
        ),
        (
            '[[protect.secrets.allow]]\nfingerprint = "a"\nreason = "b"\nuntil = "soon"',
            "`protect.secrets.allow[0].until` must be a date",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "planforge.toml").write_text(text)
    with pytest.raises(InvalidInput, match=r"`planforge\.toml`: ") as refusal:
        read(tmp_path)
    assert problem in refusal.value.message
