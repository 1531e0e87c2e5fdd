"""
All refs of a repository with the objects they point at, to be compared before and after an attempt.

Most repositories keep them in plain files, which are read here in a fraction of the time that a process
takes to start. Whatever is not as plain as that is left to git: another store than files, refs of a worktree
alone, a link, a name or a content that is out of the ordinary, a ref that leads to one that there is not.
So the answer is git's own either way.
"""

from __future__ import annotations

import os
import re

from planforge.workspace.git import Git

STORE, FORMAT = "extensions.refstorage", "extensions.objectformat"
ELSEWHERE = b"/reftable"
"""The other store that git has, by the name of its directory."""

PACK = b"/packed-refs"
FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

COMPONENT = re.compile(rb"(?!\.)(?!.*\.\.)(?!.*\.lock\Z)[0-9A-Za-z._+=,%#!-]*[0-9A-Za-z_+=,%#!-]")
"""A part of a name about which nobody can be of two minds."""
LOOSE = re.compile(rb"([0-9a-f]{40,64})\n|ref: (refs/[!-~]+)\n")
PACKED = re.compile(rb"([0-9a-f]{40,64}) (refs/[!-~]+)\n(?:\^[0-9a-f]{40,64}\n)?|#[^\n]*\n")
LENGTHS = {"sha1": 40, "sha256": 64}
"""How many digits the name of an object has, by the format of the repository."""

LARGEST = 4096
"""How large a file may be that holds one ref."""
DEEPEST = 4
"""How often one ref may lead to another."""
LEADS = b"ref: "


class _Odd(Exception):
    """Something that only git can tell."""


def every(git: Git) -> dict[str, str]:
    """All refs: to which object each leads, and by which other ref."""
    try:
        return _read(git)
    except (_Odd, OSError):
        return _asked(git)


def _asked(git: Git) -> dict[str, str]:
    """What git says they are."""
    output = git.run("for-each-ref", "--format=%(refname) %(objectname) %(symref)").stdout
    lines = output.decode("utf-8", "surrogateescape").splitlines()
    return {name: meaning for name, _, meaning in (line.partition(" ") for line in lines)}


def _read(git: Git) -> dict[str, str]:
    """What the files say they are."""
    kept = dict(git.settings().kept)  # which says, as git would, if this is not the repository it was
    top = os.fsencode(git.git_dir)
    if git.own != git.git_dir or STORE in kept or os.path.lexists(top + ELSEWHERE):
        raise _Odd
    loose = _loose(top)
    found = _packed(top) | loose  # in this order: what was packed since the files were read is in the pack
    digits = LENGTHS.get(kept.get(FORMAT, "sha1").lower())
    if any(len(said) != digits or not said.strip(b"0") for said in found.values() if said[:5] != LEADS):
        raise _Odd
    return {name.decode(): b" ".join(_meaning(name, found)).decode() for name in sorted(found)}


def _loose(top: bytes) -> dict[bytes, bytes]:
    """What is in a file of its own, by name."""
    found = {}
    waiting = [b"refs"]
    while waiting:
        directory = waiting.pop()
        with os.scandir(top + b"/" + directory) as listing:
            for entry in listing:
                if not COMPONENT.fullmatch(entry.name):
                    raise _Odd
                name = directory + b"/" + entry.name
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(name)
                elif entry.is_file(follow_symlinks=False):
                    found[name] = _content(entry.path)
                else:
                    raise _Odd
    return found


def _content(path: bytes) -> bytes:
    """The object in a file, or `ref: ` and a name."""
    handle = os.open(path, FLAGS)
    try:
        said = os.read(handle, LARGEST)
    finally:
        os.close(handle)
    if not LOOSE.fullmatch(said):
        raise _Odd
    return said[:-1]


def _packed(top: bytes) -> dict[bytes, bytes]:
    """What is in the one file that holds many."""
    try:
        handle = os.open(top + PACK, FLAGS)
    except FileNotFoundError:
        return {}
    with os.fdopen(handle, "rb") as file:
        text = file.read()
    found, read = {}, 0
    for match in PACKED.finditer(text):
        if match.start() != read:
            raise _Odd
        read = match.end()
        if match[2]:
            if not all(map(COMPONENT.fullmatch, match[2].split(b"/"))):
                raise _Odd
            found[match[2]] = match[1]
    if read != len(text):
        raise _Odd
    return found


def _meaning(name: bytes, found: dict[bytes, bytes]) -> tuple[bytes, bytes]:
    """The object that a ref leads to, and the last ref on the way if there is any."""
    said, last = found[name], b""
    for _ in range(DEEPEST):
        if not said.startswith(LEADS):
            return said, last
        last = said.removeprefix(LEADS)
        if last not in found:
            raise _Odd
        said = found[last]
    raise _Odd
