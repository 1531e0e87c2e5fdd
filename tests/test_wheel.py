"""The wheel as a person installs it: with the packages that it requires, and nothing of a developer's."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest

from programs import environment

ROOT = Path(__file__).parents[1]


def required(name: str, found: dict[str, Distribution]) -> dict[str, Distribution]:
    """The distributions that one needs, and those that these need, without any extra."""
    for line in distribution(name).requires or ():
        needed = re.split(r"[\s\[<>=!~;]", line, maxsplit=1)[0]
        if "extra ==" not in line and "sys_platform" not in line and needed not in found:
            found[needed] = distribution(needed)
            required(needed, found)
    return found


def installed(place: Path) -> Path:
    """The programs of an environment with the wheel, and with copies of what it requires."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place / "dist")],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = (place / "dist").glob("*.whl")
    home = place / "an environment"
    venv.create(home, symlinks=True, with_pip=True)
    (site,) = home.glob("lib/python*/site-packages")
    for needed in required("planforge", {}).values():
        for file in needed.files or ():
            if ".." not in file.parts:
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(str(file.locate()), site / file)
    pip = [str(home / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--no-index", "--no-deps", str(wheel)], check=True, capture_output=True)
    return home / "bin"


@pytest.mark.dear
def test_an_installed_wheel_plays_the_demo_without_any_tool_of_a_developer_s(tmp_path: Path) -> None:
    programs = installed(tmp_path)
    links = tmp_path / "links"
    links.mkdir()
    for name in ("env", "git", "sh"):
        (links / name).symlink_to(str(shutil.which(name)))
    env = environment() | {"PATH": str(links)}
    for tool in ("pytest", "hatchling"):
        argv = [str(programs / "python"), "-c", f"import {tool}"]
        assert subprocess.run(argv, env=env, capture_output=True, check=False).returncode == 1
    played = subprocess.run(
        [programs / "planforge", "demo", "story", "--pace", "0"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert played.returncode == 0, played.stderr
    assert "every step is done" in played.stdout
    assert f"'{programs}/planforge' land" in played.stdout
