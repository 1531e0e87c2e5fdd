"""
Scripts: reading them, refusing bad ones, choosing a scene.

The whole script is checked before the first prompt, so a slip in the last scene
is reported at once and not in the middle of a run. A scene is chosen by the
prompt alone and nothing is remembered, so the same prompt gets the same answer
in every process. Places are named as in the file: `scenes[0].do[2]`.

The rehearsal agent plays a script itself; the model server has a real program
play it.
"""

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from planforge.testing.script.actions import Cue
from planforge.testing.script.grammar import cues
from planforge.testing.script.values import ScriptError, fields, listed, mapping, text, texts

__all__ = ["GIVEN", "Manners", "Scene", "Script", "ScriptError", "load", "parse"]

GIVEN = ("cwd", "mode", "model", "history")
"""The names that `${...}` knows in every scene."""


class Scene(NamedTuple):
    """What to do for the prompts that hold every text in `when`."""

    when: tuple[str, ...]
    captures: Mapping[str, re.Pattern[str]]
    cues: tuple[Cue, ...]
    when_cancelled: tuple[Cue, ...] = ()
    """What is still done when the prompt is cancelled, before it is answered."""

    def fits(self, prompt: str) -> bool:
        """Whether this scene answers `prompt`."""
        return all(wanted in prompt for wanted in self.when)


class Manners(NamedTuple):
    """What the rehearsal agent says of itself; a model server has no use for it."""

    modes: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    """Modes in which its tools change nothing."""
    models: tuple[str, ...] = ()
    auth: tuple[str, ...] = ()
    login: bool = False
    """Whether a session needs `authenticate` first."""
    load: bool = False
    resume: bool = False


class Script(NamedTuple):
    """A named list of scenes."""

    name: str
    scenes: tuple[Scene, ...]
    manners: Manners = Manners()

    def choose(self, prompt: str) -> int | None:
        """The index of the first scene that fits, if any does."""
        return next((index for index, scene in enumerate(self.scenes) if scene.fits(prompt)), None)

    def begin(self, number: int | None, prompt: str, given: dict[str, str]) -> tuple[Scene, dict[str, str]]:
        """The chosen scene, and what `${...}` stands for in it; `ScriptError` if it cannot be played."""
        if number is None:
            # The first paragraph of a prompt has role, step and attempt.
            head = ", ".join(prompt.strip().partition("\n\n")[0].splitlines())[:200]
            raise ScriptError(f"no scene of `{self.name}` fits the prompt `{head}`")
        scene = self.scenes[number]
        for name, pattern in scene.captures.items():
            hit = pattern.search(prompt)
            if hit is None or hit.group(1) is None:
                problem = f"`match.{name}` finds nothing in the prompt: `{pattern.pattern}`"
                raise ScriptError(f"`scenes[{number}]`: {problem}")
            given = {**given, name: hit.group(1)}
        return scene, given


def load(path: str) -> Script:
    """Read and check the script at `path`."""
    from pathlib import Path

    try:
        return parse(Path(path).read_bytes())
    except OSError as error:
        raise ScriptError(f"cannot read the script `{path}`: {error.strerror}") from error
    except ScriptError as error:
        raise ScriptError(f"bad script `{path}`: {error}") from error


def parse(source: bytes) -> Script:
    """Check a script and return it, or raise `ScriptError` for the first thing that is wrong."""
    try:
        document: object = json.loads(source, object_pairs_hook=_without_duplicates)
    except json.JSONDecodeError as error:
        raise ScriptError(f"line {error.lineno}, column {error.colno}: {error.msg}") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise ScriptError(f"not JSON: {error}") from error
    try:
        script = fields(document, "name", "scenes", optional=("agent",))
        name, scenes = text(script["name"]), listed(script["scenes"])
    except ValueError as error:
        raise ScriptError(str(error)) from error
    try:
        manners = _manners(script.get("agent", {}))
    except ValueError as error:
        raise ScriptError(f"`agent`: {error}") from error
    found = tuple(_scene(scene, f"scenes[{index}]") for index, scene in enumerate(scenes))
    return Script(name, found, manners)


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ScriptError(f"the key `{key}` stands twice in one object")
        found[key] = value
    return found


def _manners(value: object) -> Manners:
    found = fields(value, optional=Manners._fields)
    manners = Manners(
        modes=texts(found.get("modes", [])),
        read_only=texts(found.get("read_only", [])),
        models=texts(found.get("models", [])),
        auth=texts(found.get("auth", [])),
        login=_flag(found.get("login", False)),
        load=_flag(found.get("load", False)),
        resume=_flag(found.get("resume", False)),
    )
    for mode in manners.read_only:
        if mode not in manners.modes:
            raise ValueError(f"`read_only` names `{mode}`, which is not one of `modes`")
    if manners.login and not manners.auth:
        raise ValueError("has `login`, but no way to do so in `auth`")
    return manners


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"wants `true` or `false`, not `{json.dumps(value)}`")
    return value


def _scene(value: object, place: str) -> Scene:
    try:
        scene = fields(value, "when", "do", optional=("match", "cancelled"))
        when = texts(scene["when"])
        match = mapping(scene.get("match", {}))
        captures = {name: _pattern(name, pattern) for name, pattern in match.items()}
        do = listed(scene["do"])
    except ValueError as error:
        raise ScriptError(f"`{place}`: {error}") from error
    try:
        names = {*GIVEN, *captures}
        played = cues(do, names, f"{place}.do")
        return Scene(when, captures, played, cues(scene.get("cancelled", []), names, f"{place}.cancelled"))
    except ValueError as error:
        raise ScriptError(str(error)) from error


def _pattern(name: str, value: object) -> re.Pattern[str]:
    if not re.fullmatch(r"\w+", name) or name == "cwd":
        raise ValueError(f"`match` cannot name a value `{name}`")
    try:
        pattern = re.compile(text(value))
    except re.error as error:
        raise ValueError(f"`match.{name}` is not a regular expression: {error}") from error
    if not pattern.groups:
        raise ValueError(f"`match.{name}` has no group: `{pattern.pattern}`")
    return pattern
