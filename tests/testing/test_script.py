"""Scripts that are refused, and where they say it is."""

from __future__ import annotations

import json
import re

import pytest

from planforge.testing.script import ScriptError, parse


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        (b'{"name": "x",\n "scenes": [}', "line 2, column 13: Expecting value"),
        (b'"\xff"', "not JSON: 'utf-8' codec"),
        (b"[" * 100_000, "not JSON: maximum recursion"),
        (b'{"name": "x", "name": "y"}', "the key `name` stands twice in one object"),
        (b"[]", "wants an object, not `[]`"),
        (b'{"scenes": []}', "has no `name`"),
        (b'{"name": "x", "scenes": {}}', "wants a list, not `{}`"),
        (b'{"name": "x", "scenes": [], "acts": []}', "has an unknown key `acts`"),
    ],
)
def test_a_script_that_is_not_one_is_refused(source: bytes, complaint: str) -> None:
    with pytest.raises(ScriptError, match=re.escape(complaint)):
        parse(source)


@pytest.mark.parametrize(
    ("scene", "complaint"),
    [
        ("silence", 'wants an object, not `"silence"`'),
        ({"do": []}, "has no `when`"),
        ({"when": []}, "has no `do`"),
        ({"when": "text", "do": []}, 'wants a list, not `"text"`'),
        ({"when": [1], "do": []}, "wants a text, not `1`"),
        ({"when": [], "do": [], "unless": []}, "has an unknown key `unless`"),
        ({"when": [], "do": [], "match": {"x": "("}}, "`match.x` is not a regular expression"),
        ({"when": [], "do": [], "match": {"x": "y"}}, "`match.x` has no group: `y`"),
        ({"when": [], "do": [], "match": {"cwd": "(y)"}}, "`match` cannot name a value `cwd`"),
        ({"when": [], "do": [], "match": {"a b": "(y)"}}, "`match` cannot name a value `a b`"),
    ],
)
def test_a_malformed_scene_is_refused_by_its_number(scene: object, complaint: str) -> None:
    source = json.dumps({"name": "x", "scenes": [{"when": [], "do": []}, scene]})
    with pytest.raises(ScriptError, match=re.escape(f"`scenes[1]`: {complaint}")):
        parse(source.encode())


@pytest.mark.parametrize(
    ("action", "complaint"),
    [
        ("say", 'wants an object, not `"say"`'),
        ({}, "wants one action, has none"),
        ({"say": "a", "think": "b"}, "wants one action, has `say`, `think`"),
        ({"sing": "la"}, "unknown action `sing`"),
        ({"say": 1}, "`say` wants a text, not `1`"),
        ({"say": "${who}"}, "`say` uses `${who}`, which `match` does not name"),
        ({"run": ["echo", "${who}"]}, "`run` uses `${who}`, which `match` does not name"),
        ({"say": "x", "if": "allowed"}, "has `if`, but no `ask` comes before it"),
        ({"say": "x", "if": "maybe"}, 'wants one of allowed, denied, not `"maybe"`'),
        ({"write": {"path": "x"}}, "`write` has no `text`"),
        ({"append": {"path": "x", "text": "", "mode": 1}}, "`append` has an unknown key `mode`"),
        ({"delete": None}, "`delete` wants a text, not `null`"),
        ({"run": "ls"}, '`run` wants a list, not `"ls"`'),
        ({"run": []}, "`run` wants at least a program"),
        ({"sleep": -1}, "`sleep` wants seconds, not `-1`"),
        ({"sleep": True}, "`sleep` wants seconds, not `true`"),
        ({"sleep": float("nan")}, "`sleep` wants seconds, not `NaN`"),
        ({"detach": 10**400}, "`detach` wants seconds, not `1000"),
        ({"ask": {"kind": "edit"}}, "`ask` has no `title`"),
        ({"ask": {"title": "?", "kind": "odd"}}, "`ask` wants one of read, edit, "),
        ({"exit": 256}, "`exit` wants a whole number from 0 to 255, not `256`"),
        ({"exit": True}, "`exit` wants a whole number, not `true`"),
        ({"die": "SIGKILL"}, "`die` wants the name of a signal, such as KILL, not `SIGKILL`"),
        ({"hang": False}, '`hang` wants `true` or `"deaf"`, not `false`'),
        ({"garbage": 0}, "`garbage` wants a text, not `0`"),
        ({"stderr": 0}, "`stderr` wants a text, not `0`"),
        ({"flood": 1.5}, "`flood` wants a whole number, not `1.5`"),
        ({"error": {"code": "x", "message": "y"}}, '`error` wants a whole number, not `"x"`'),
        ({"stop": "bored"}, "`stop` wants one of end_turn, "),
        ({"usage": {"input": 1}}, "`usage` has no `output`"),
        ({"usage": {"input": -1, "output": 1}}, "`usage` wants a whole number from 0 to inf, not `-1`"),
        (
            {"usage": {"input": 1, "output": 1, "cached": 1, "cached_read": 1}},
            "`usage` has both `cached` and",
        ),
        ({"quota": {"input": 1}}, "`quota` has no `output`"),
        ({"context": {"size": 1}}, "`context` has no `used`"),
        ({"context": {"used": 1, "cost": "x"}}, '`context` wants a number for `cost`, not `"x"`'),
        ({"plan": [{"status": "pending"}]}, "`plan` has no `step`"),
        ({"plan": [{"step": "a", "status": "odd"}]}, "`plan` wants one of pending, in_progress, completed"),
        ({"edit": {"path": "a", "old": "b"}}, "`edit` has no `new`"),
        ({"read": 1}, "`read` wants a text, not `1`"),
        ({"tool": 1}, "`tool` wants a text, not `1`"),
        ({"tool": "Bash", "input": []}, "`tool` wants an object, not `[]`"),
        ({"tool": "Bash", "input": {"a": ["${who}"]}}, "`tool` uses `${who}`, which `match` does not name"),
        ({"tool": "Bash", "say": "x"}, "wants one action, has `tool`, `say`"),
        ({"say": "x", "input": {}}, "wants one action, has `say`, `input`"),
        ({"tool": "Bash", "status": "odd"}, "`tool` wants one of pending, in_progress, completed, failed"),
        ({"http": {"status": 399}}, "`http` wants a whole number from 400 to 599, not `399`"),
        ({"http": {"status": 429, "reset": "soon"}}, "`http` wants seconds or an instant for `reset`"),
        (
            {"http": {"status": 429, "reset": "2030-01-01T00:00:00"}},
            "`http` wants an instant with its time zone",
        ),
        ({"http": {"status": 429, "reset": -1}}, "`http` wants seconds, not `-1`"),
        ({"http": {"status": 429, "times": -1}}, "`http` wants a whole number from 0 to inf"),
        ({"slow": "very"}, '`slow` wants seconds, not `"very"`'),
        ({"truncate": False}, "`truncate` wants `true`, not `false`"),
        ({"drop": 1}, "`drop` wants `true`, not `1`"),
        ({"twice": "x"}, '`twice` wants `true`, not `"x"`'),
        ({"leave": 300}, "`leave` wants a whole number from 0 to 255, not `300`"),
        ({"hex": "xyz"}, '`hex` wants hexadecimal digits, two for each byte, not `"xyz"`'),
        ({"line": 0}, "`line` wants a whole number from 1 to inf, not `0`"),
        ({"flood": "some"}, '`flood` wants a whole number, not `"some"`'),
        ({"ask": {"title": "?", "paths": "a"}}, '`ask` wants a list, not `"a"`'),
    ],
)
def test_a_malformed_action_is_refused_by_its_number(action: object, complaint: str) -> None:
    scenes = [{"when": [], "do": []}, {"when": [], "do": [{"say": "fine"}, action]}]
    source = json.dumps({"name": "x", "scenes": scenes})
    with pytest.raises(ScriptError, match=re.escape(f"`scenes[1].do[1]`: {complaint}")):
        parse(source.encode())


@pytest.mark.parametrize(
    ("lists", "complaint"),
    [
        ({"allowed": [{"say": "x"}, {"sing": 1}]}, "`scenes[0].do[0].ask.allowed[1]`: unknown action `sing`"),
        ({"denied": [{"say": "${who}"}]}, "`scenes[0].do[0].ask.denied[0]`: `say` uses `${who}`"),
        ({"denied": 1}, "`scenes[0].do[0]`: wants a list, not `1`"),
        (
            {"allowed": [{"ask": {"title": "?", "denied": [{"sing": 1}]}}]},
            "`scenes[0].do[0].ask.allowed[0].ask.denied[0]`: unknown action `sing`",
        ),
    ],
)
def test_a_slip_in_a_list_within_a_list_is_found(lists: dict[str, object], complaint: str) -> None:
    scene = {"when": [], "do": [{"ask": {"title": "?", **lists}}]}
    with pytest.raises(ScriptError, match=re.escape(complaint)):
        parse(json.dumps({"name": "x", "scenes": [scene]}).encode())


def test_a_slip_in_what_is_done_when_cancelled_is_found() -> None:
    scene = {"when": [], "do": [], "cancelled": [{"say": 1}]}
    with pytest.raises(ScriptError, match=re.escape("`scenes[0].cancelled[0]`: `say` wants a text")):
        parse(json.dumps({"name": "x", "scenes": [scene]}).encode())


@pytest.mark.parametrize(
    ("agent", "complaint"),
    [
        ([], "wants an object, not `[]`"),
        ({"moods": []}, "has an unknown key `moods`"),
        ({"modes": "plan"}, 'wants a list, not `"plan"`'),
        ({"load": 1}, "wants `true` or `false`, not `1`"),
        ({"modes": ["a"], "read_only": ["b"]}, "`read_only` names `b`, which is not one of `modes`"),
        ({"login": True}, "has `login`, but no way to do so in `auth`"),
    ],
)
def test_bad_manners_are_refused(agent: object, complaint: str) -> None:
    with pytest.raises(ScriptError, match=re.escape(f"`agent`: {complaint}")):
        parse(json.dumps({"name": "x", "scenes": [], "agent": agent}).encode())
