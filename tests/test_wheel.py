"""The wheel as a person installs it: with the packages that it requires, and nothing of a developer's."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import venv
import zipfile
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


def built(project: Path, place: Path) -> Path:
    """The wheel of a project."""
    argv = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
    subprocess.run(argv, cwd=project, check=True, capture_output=True)
    (wheel,) = place.glob("*.whl")
    return wheel


def copy_requirements(site: Path) -> None:
    """Copy what the wheel requires."""
    for needed in required("planforge", {}).values():
        for file in needed.files or ():
            if ".." not in file.parts:
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(str(file.locate()), site / file)


def installed(place: Path) -> Path:
    """The programs of an environment with the wheel, and with copies of what it requires."""
    wheel = built(ROOT, place / "dist")
    home = place / "an environment"
    venv.create(home, symlinks=True, with_pip=True)
    (site,) = home.glob("lib/python*/site-packages")
    copy_requirements(site)
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


def test_the_wheel_is_without_the_guardrail_benchmark_and_says_how_to_install_it(tmp_path: Path) -> None:
    site = tmp_path / "site"
    copy_requirements(site)

    def bench(*words: str) -> subprocess.CompletedProcess[str]:
        # Without the packages of this environment, in which the benchmark is installed.
        argv = [sys.executable, "-S", "-m", "planforge", "bench", *words]
        env = environment() | {"PYTHONPATH": str(site)}
        return subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    with zipfile.ZipFile(built(ROOT, tmp_path / "planforge")) as wheel:
        assert not [name for name in wheel.namelist() if "guardrail" in name]
        wheel.extractall(site)
    assert "guardrails  Not installed" in bench("--help").stdout
    for words in (["--sample"], ["--help"], ["--only", "liar"]):
        refused = bench("guardrails", *words)
        assert (refused.returncode, refused.stdout) == (3, "")
        assert refused.stderr == (
            "error: the benchmark `guardrails` is not installed; "
            "`pip install ./benchmarks/guardrails` in a clone of Planforge installs it\n"
        )
    with zipfile.ZipFile(built(ROOT / "benchmarks" / "guardrails", tmp_path / "guardrails")) as wheel:
        wheel.extractall(site)
    listed = bench("guardrails", "--list")
    assert listed.returncode == 0, listed.stderr
    assert "breaks `total` and says that all tests pass" in listed.stdout
