"""The page about the rehearsal agent: what it says to write makes it play a whole plan."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from calls import caller
from repositories import repository

PAGE = Path(__file__).parents[2] / "docs" / "rehearsal-agent.md"


@pytest.mark.dear
def test_the_agent_of_the_page_plays_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    section = PAGE.read_text().partition("## Use it as your agent\n")[2].partition("\n## A script\n")[0]
    settings, script = (
        re.findall(rf"^```{language}\n(.*?)^```$", section, flags=re.MULTILINE | re.DOTALL)[0]
        for language in ("toml", "json")
    )
    root = repository(tmp_path / "shop", {"README.md": "# shop\n", "planforge.toml": settings})
    (root / "rehearsal.json").write_text(script)
    call = caller(root, monkeypatch, capsys)
    for words in (("init",), ("forge", "Greet the visitors"), ("plan", "approve", "1"), ("plan", "run", "1")):
        said = call(*words)
        assert said.code == 0, said.err
    status = call("status").out
    assert re.search(r"plan-001 +DONE .*2/2 +7520 tokens, money unknown\n", status), status
