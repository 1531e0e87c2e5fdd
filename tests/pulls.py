"""A repository whose plans are done, another that it is pushed to, and a small `gh` that opens requests."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from landings import Field
from repositories import git

GH = """\
#!/usr/bin/env python3
import json, pathlib, sys

state = pathlib.Path(__file__).with_name("pulls.json")
known = json.loads(state.read_text())
known["asked"].append(sys.argv[1:])
state.write_text(json.dumps(known))
given = dict(word[2:].split("=", 1) for word in sys.argv[3:] if word.startswith("--"))
if known["login"] == "none":
    sys.exit("To get started with GitHub CLI, please run:  gh auth login")
if sys.argv[1:3] == ["pr", "list"]:
    print(json.dumps([each for each in known["pulls"] if each["head"] == given["head"]]))
elif sys.argv[1:3] == ["pr", "create"]:
    if known["login"] == "fails":
        sys.exit("pull request create failed: GraphQL: No commits between main and it")
    url = f"https://example.org/a/b/pull/{len(known['pulls']) + 1}"
    text = pathlib.Path(given["body-file"]).read_text()
    known["pulls"].append({
        "url": url, "baseRefName": given["base"], "headRefOid": known["tips"].get(given["head"], ""),
        "head": given["head"], "title": given["title"], "body": text,
    })
    state.write_text(json.dumps(known))
    print("Creating pull request", file=sys.stderr)
    print(url)
else:
    sys.exit(f"unknown: {sys.argv[1:]}")
"""


class Proposals:
    """A field of plans with an `origin`, and a directory with a `gh` to be put on PATH."""

    def __init__(self, place: Path) -> None:
        self.field = Field(place / "field")
        self.origin = place / "origin.git"
        git(place, "init", "--quiet", "--bare", "--initial-branch=main", str(self.origin))
        git(self.field.root, "remote", "add", "origin", str(self.origin))
        git(self.field.root, "push", "--quiet", "origin", "main")
        self.programs = place / "programs"
        self.programs.mkdir()
        self._state = self.programs / "pulls.json"
        self.told = {"login": "there", "asked": [], "pulls": [], "tips": {}}
        (self.programs / "gh").write_text(GH)
        (self.programs / "gh").chmod(0o755)

    @property
    def told(self) -> dict[str, Any]:
        """What the service knows."""
        found: dict[str, Any] = json.loads(self._state.read_text())
        return found

    @told.setter
    def told(self, value: dict[str, Any]) -> None:
        self._state.write_text(json.dumps(value))

    def tell(self, **members: Any) -> None:
        """Have the service know something else."""
        self.told = self.told | members

    @property
    def path(self) -> str:
        """PATH with this `gh` first."""
        return f"{self.programs}{os.pathsep}{os.environ['PATH']}"

    def there(self) -> dict[str, str]:
        """The refs of the other repository."""
        lines = git(self.origin, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        return dict(line.split(" ", 1) for line in lines)
