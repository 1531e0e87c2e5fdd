"""The tool behind `make tour`: a project that cannot be had, or is another one, is never left out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "take_tour.py"


def fetched(cache: Path, index: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return subprocess.run(
        [sys.executable, str(TOOL), "--only-fetch"],
        env=kept | {"PLANFORGE_TOUR_CACHE": str(cache), "PIP_INDEX_URL": index},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


class Quiet(SimpleHTTPRequestHandler):
    """Says nothing of what it was asked for."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing."""


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """A package index whose files are those of a directory."""
    place = tmp_path / "index" / "inflection"
    place.mkdir(parents=True)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path / "index")) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_an_index_that_cannot_be_reached_is_a_failure(tmp_path: Path) -> None:
    told = fetched(tmp_path / "cache", "http://127.0.0.1:9/simple")
    assert told.returncode == 1
    assert "inflection-0.5.1.tar.gz cannot be had from http://127.0.0.1:9/simple" in told.stderr


def test_an_index_without_the_version_is_a_failure(tmp_path: Path, index: str) -> None:
    told = fetched(tmp_path / "cache", index)
    assert told.returncode == 1
    assert "has no inflection-0.5.1.tar.gz" in told.stderr


@pytest.mark.dear
def test_other_content_than_the_hash_names_is_a_failure_each_time(tmp_path: Path, index: str) -> None:
    place = tmp_path / "index" / "inflection"
    (place / "inflection-0.5.1.tar.gz").write_bytes(b"something else")
    (place / "index.html").write_text('<a href="../inflection/inflection-0.5.1.tar.gz#sha256=00">it</a>')
    for _ in range(2):
        told = fetched(tmp_path / "cache", index)
        assert told.returncode == 1
        assert "is not what it was" in told.stderr
