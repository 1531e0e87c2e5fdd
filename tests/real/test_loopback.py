"""Where these tests run, nothing but loopback can be reached; otherwise they would show nothing."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

import pytest


def test_there_is_no_interface_but_loopback() -> None:
    lines = Path("/proc/self/net/dev").read_text().splitlines()[2:]
    assert [line.partition(":")[0].strip() for line in lines] == ["lo"]


def test_an_address_outside_cannot_be_reached() -> None:
    with socket.socket() as outside, pytest.raises(OSError, match="unreachable") as caught:
        outside.connect(("192.0.2.1", 443))  # kept for documentation: nobody has it
    assert caught.value.errno == errno.ENETUNREACH


def test_loopback_can_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        pass
