"""A repository of one's own to work in, with the demo's script beside it for the rehearsal agent."""

from __future__ import annotations

from pathlib import Path

from planforge.app.demo import story
from programs import planforge
from repositories import commit, repository


def workshop(place: Path) -> Path:
    """A repository with the sample's code, and the sample's script beside it."""
    root = place / "workshop"
    files = {name: text for name, text in story.FILES.items() if name != ".gitignore"}
    repository(root, files)
    (root / "planforge.toml").write_text(
        story.FILES["planforge.toml"].replace("${root}/.planforge/rehearsal", str(place / "rehearsal"))
    )
    commit(root, {}, "settings")
    (place / "rehearsal").mkdir()
    (place / "rehearsal" / "script.json").write_text(story.script(0))
    assert planforge("init", cwd=root).returncode == 0
    return root
