"""
Runs a command as on a kernel that cannot confine anything: without Landlock, without adopting orphans.

    python bare.py PROGRAM ARGUMENT…

A filter of system calls refuses both, for the program and for all that it starts. Nothing of ours is changed.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER, PR_SET_CHILD_SUBREAPER = 38, 22, 2, 36
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOWED, REFUSED = 0x7FFF0000, 0x00050000
ENOSYS, EINVAL = 38, 22
LANDLOCK = 444
PRCTL = {"x86_64": 157, "aarch64": 167}.get(platform.machine())
"""The number of `prctl`, where it is known."""


class Program(ctypes.Structure):
    """A filter, as the kernel takes it."""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def instruction(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("HBBI", code, yes, no, value)


def main() -> None:
    """Refuse what is refused, then become the program."""
    assert PRCTL is not None
    code = [
        instruction(LOAD, 0),  # the number of the call
        instruction(EQUAL, LANDLOCK, yes=3),
        instruction(EQUAL, PRCTL, no=3),
        instruction(LOAD, 16),  # its first argument
        instruction(EQUAL, PR_SET_CHILD_SUBREAPER, yes=2, no=1),
        instruction(RETURN, REFUSED | ENOSYS),
        instruction(RETURN, ALLOWED),
        instruction(RETURN, REFUSED | EINVAL),
    ]
    libc = ctypes.CDLL(None, use_errno=True)
    program = Program(len(code), b"".join(code))
    assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    assert libc.prctl(PR_SET_SECCOMP, FILTER, ctypes.byref(program)) == 0, ctypes.get_errno()
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606


if __name__ == "__main__":
    main()
