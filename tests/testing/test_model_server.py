"""The scripted model over real HTTP, in every dialect, good and bad."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import threading
import time
import urllib.error
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from planforge.testing import ModelServer, ScriptError
from planforge.testing.script import grammar
from programs import environment
from testing.listeners import Listener, converse
from testing.speakers import (
    PATIENCE,
    SPEAKERS,
    Anthropic,
    Chat,
    Gemini,
    Json,
    Responses,
    Speaker,
    each,
    events,
    post,
    refusal,
)

ALL = pytest.mark.parametrize("speaker", SPEAKERS, ids=lambda speaker: speaker.dialect)
BOTH = pytest.mark.parametrize(
    ("speaker", "stream"),
    list(each()),
    ids=[f"{kind.dialect}-{'stream' if on else 'plain'}" for kind, on in each()],
)


def play(*actions: Json, when: str = "") -> Json:
    return {"name": "test", "scenes": [{"when": [when], "do": list(actions)}]}


def asked(speaker: Speaker, prompt: str = "go") -> Json:
    """A first request, not yet sent."""
    speaker.user(prompt)
    return speaker.body()


# Playing a scene


@BOTH
def test_a_scene_is_played_with_the_programs_own_tools(
    tmp_path: Path, speaker: type[Speaker], stream: bool
) -> None:
    text = 'it\'s "quoted" $HOME `x` \\n\nand é\n'
    script = play(
        {"remark": "First a file. "},
        {"write": {"path": "a/hello.txt", "text": text}},
        {"append": {"path": "a/hello.txt", "text": "more\n"}},
        {"run": ["sh", "-c", 'echo "$1" > ran.txt', "sh", "an argument"]},
        {"delete": "old.txt"},
        {"say": "Done in ${cwd}"},
        {"say": ", twice."},
        {"usage": {"input": 1000, "output": 42, "cached": 300}},
    )
    (tmp_path / "old.txt").write_text("")
    with ModelServer(script) as server:
        program = speaker(server.url, tmp_path, stream=stream)
        answer = program.ask("go")
    assert (answer.text, answer.tokens) == (f"Done in {tmp_path}, twice.", (1000, 42, 300))
    assert (tmp_path / "a/hello.txt").read_text() == text + "more\n"
    assert (tmp_path / "ran.txt").read_text() == "an argument\n"
    assert not (tmp_path / "old.txt").exists()
    assert program.remarks == ["First a file. ", "", "", ""]
    assert [request.scene for request in server.requests] == [0] * 5


@ALL
def test_usage_goes_with_the_answer_that_comes_next(tmp_path: Path, speaker: type[Speaker]) -> None:
    script = play(
        {"usage": {"input": 1, "output": 2}},
        {"run": ["true"]},
        {"usage": {"input": 10, "output": 20}},
        {"say": "x"},
        {"usage": {"input": 100, "output": 200}},
    )
    with ModelServer(script) as server:
        program = speaker(server.url, tmp_path)
        program.user("go")
        first = program.hear()
        assert first.tokens == (1, 2, 0)
        program.assistant(first)
        assert first.call is not None
        program.result(first.call, "Process exited with code 0", True)
        assert program.hear().tokens == (110, 220, 0)


@ALL
def test_a_later_prompt_chooses_another_scene_and_the_history_is_on_record(
    tmp_path: Path, speaker: type[Speaker]
) -> None:
    script = {
        "name": "test",
        "scenes": [
            {"when": ["one"], "do": [{"run": ["true"]}, {"say": "the word is plum"}]},
            {"when": ["two"], "do": [{"run": ["true"]}, {"say": "I know: ${history}"}]},
        ],
    }
    with ModelServer(script) as server:
        program = speaker(server.url, tmp_path)
        program.ask("prompt one")
        answer = program.ask("prompt two")
        requests = server.requests
    assert "prompt one" in answer.text
    assert "the word is plum" in answer.text
    assert [request.prompt for request in requests] == ["prompt one"] * 2 + ["prompt two"] * 2
    assert [request.scene for request in requests] == [0, 0, 1, 1]
    assert not any("plum" in text for text in requests[1].history)
    assert any("plum" in text for text in requests[2].history)
    last = requests[-1]
    assert (last.dialect, last.model, last.status, last.aside) == (speaker.dialect, "scripted-1", 200, False)
    assert last.cwd == str(tmp_path)
    assert program.shell in last.tools
    assert abs(last.at - time.time()) < PATIENCE


@ALL
def test_what_a_prompt_holds_can_be_used(tmp_path: Path, speaker: type[Speaker]) -> None:
    scene = {
        "when": ["greet"],
        "match": {"who": "greet (\\w+)"},
        "do": [{"say": "Hello ${who}, I am ${model}"}],
    }
    with ModelServer({"name": "test", "scenes": [scene]}) as server:
        assert speaker(server.url, tmp_path).ask("greet Ada").text == "Hello Ada, I am scripted-1"
        program = speaker(server.url, tmp_path)
        refused = refusal(program.endpoint, asked(program, "greet !"))
        assert refused.code == 400
        assert "`match.who` finds nothing" in refused.read().decode()


@ALL
def test_a_prompt_that_no_scene_fits_is_refused(tmp_path: Path, speaker: type[Speaker]) -> None:
    with ModelServer(play({"say": "x"}, when="other")) as server:
        program = speaker(server.url, tmp_path)
        refused = refusal(program.endpoint, asked(program, "go\non\n\nand on"))
        assert refused.code == 400
        assert "no scene of `test` fits the prompt `go, on`" in refused.read().decode()
        assert [(request.scene, request.status) for request in server.requests] == [(None, 400)]


@ALL
def test_a_tool_that_is_not_offered_is_asked_for_and_the_refusal_decides(
    tmp_path: Path, speaker: type[Speaker]
) -> None:
    script = play(
        {
            "ask": {
                "title": "May I?",
                "allowed": [{"write": {"path": "a.txt", "text": "x"}}, {"say": "wrote"}],
                "denied": [{"say": "was refused"}],
            }
        },
        {"say": " (allowed)", "if": "allowed"},
        {"say": " (denied)", "if": "denied"},
    )
    with ModelServer(script) as server:
        assert speaker(server.url, tmp_path, tools=False).ask("go").text == "was refused (denied)"
        assert not (tmp_path / "a.txt").exists()
        assert speaker(server.url, tmp_path).ask("go").text == "wrote (allowed)"
        assert (tmp_path / "a.txt").exists()


@ALL
def test_a_tool_can_be_asked_for_by_its_own_name(tmp_path: Path, speaker: type[Speaker]) -> None:
    with ModelServer(
        play({"tool": "Weird", "input": {"at": "${cwd}/x", "deep": [{"a": 1}]}}, {"say": "x"})
    ) as server:
        program = speaker(server.url, tmp_path)
        program.user("go")
        heard = program.hear()
    assert heard.call is not None
    assert heard.call[1:] == ("Weird", {"at": f"{tmp_path}/x", "deep": [{"a": 1}]})


def test_a_program_that_wants_files_read_before_they_are_written_gets_it_so(tmp_path: Path) -> None:
    with ModelServer(play({"write": {"path": "a.txt", "text": "x"}}, {"say": "done"})) as server:
        program = Anthropic(server.url, tmp_path)
        program.user("go")
        names = []
        for said, good in (("File has not been read yet.", False), ("1\told", True), ("written", True)):
            heard = program.hear()
            assert heard.call is not None
            names.append(heard.call[1])
            program.assistant(heard)
            program.result(heard.call, said, good)
        assert (names, program.hear().text) == (["Write", "Read", "Write"], "done")


def test_a_command_that_is_still_running_is_waited_for(tmp_path: Path) -> None:
    with ModelServer(play({"run": ["true"]}, {"say": "done"})) as server:
        program = Responses(server.url, tmp_path)
        program.user("go")
        body = program.body()
        body["tools"].append({"type": "function", "name": "write_stdin", "parameters": {}})
        program.body = lambda: {**body, "input": [*body["input"][:2], *program.turns[1:]]}  # type: ignore[method-assign]
        heard = program.hear()
        assert heard.call is not None
        program.assistant(heard)
        program.result(heard.call, "Process running with session ID 7", True)
        polling = program.hear().call
        assert polling is not None
        assert (polling[1], polling[2]["session_id"]) == ("write_stdin", 7)
        program.result(polling, "Process exited with code 0", True)
        assert program.hear().text == "done"


def test_an_answer_of_a_given_form_is_handed_in_by_the_tool_for_it(tmp_path: Path) -> None:
    with ModelServer(play({"say": '{"verdict": "pass"}'})) as server:
        program = Anthropic(server.url, tmp_path)
        body = asked(program)
        body["tools"].append({"name": "StructuredOutput", "input_schema": {}})
        body["stream"] = False
        [block] = json.loads(post(program.endpoint, body)[1])["content"]
        assert (block["name"], block["input"]) == ("StructuredOutput", {"verdict": "pass"})


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ({"type": "function", "name": "shell", "parameters": {"properties": {"command": {"type": "array"}}}},
         {"command": ["bash", "-lc", "echo 'a b'"]}),
        ({"type": "function", "name": "shell_command", "parameters": {"properties": {"command": {}}}},
         {"command": "echo 'a b'"}),
        ({"type": "local_shell"}, {"command": ["bash", "-lc", "echo 'a b'"]}),
    ],
)  # fmt: skip
def test_shells_of_every_make_are_used(tool: Json, given: Json) -> None:
    with ModelServer(play({"run": ["echo", "a b"]})) as server:
        body = {"model": "m", "input": "go", "tools": [tool]}
        [item] = json.loads(post(f"{server.url}/v1/responses", body)[1])["output"]
    if tool["type"] == "local_shell":
        assert (item["type"], item["action"]["command"]) == ("local_shell_call", given["command"])
    else:
        assert (item["name"], json.loads(item["arguments"])) == (tool["name"], given)


@ALL
def test_without_tools_there_is_only_text(tmp_path: Path, speaker: type[Speaker]) -> None:
    with ModelServer(play({"write": {"path": "a", "text": ""}}, {"say": "only words"})) as server:
        program = speaker(server.url, tmp_path, stream=False)
        body = {key: value for key, value in asked(program).items() if key != "tools"}
        assert "only words" in post(program.endpoint, body)[1].decode()


@pytest.mark.parametrize(
    ("speaker", "reason", "stop"),
    [
        (Anthropic, "max_tokens", "max_tokens"),
        (Anthropic, "refusal", "refusal"),
        (Chat, "max_tokens", "length"),
        (Chat, "refusal", "content_filter"),
        (Responses, "max_tokens", "incomplete"),
        (Gemini, "max_tokens", "MAX_TOKENS"),
        (Gemini, "refusal", "SAFETY"),
    ],
)
def test_stop_reasons_are_said_in_the_dialects_words(
    tmp_path: Path, speaker: type[Speaker], reason: str, stop: str
) -> None:
    with ModelServer(play({"say": "x"}, {"stop": reason})) as server:
        assert speaker(server.url, tmp_path).ask("go").stop == stop


@ALL
def test_thoughts_are_no_part_of_the_answer(tmp_path: Path, speaker: type[Speaker]) -> None:
    with ModelServer(play({"think": "hidden"}, {"say": "shown"})) as server:
        program = speaker(server.url, tmp_path)
        assert program.ask("go").text == "shown"
        program.turns.clear()
        body = post(program.endpoint, asked(program))[1].decode()
        assert "hidden" in body


@ALL
def test_an_empty_answer_is_empty(tmp_path: Path, speaker: type[Speaker]) -> None:
    with ModelServer(play()) as server:
        assert speaker(server.url, tmp_path).ask("go").text == ""


# By the way


def test_titles_and_suggestions_play_no_scene(tmp_path: Path) -> None:
    with ModelServer(play({"say": "played"})) as server:
        chat = {
            "model": "m",
            "messages": [
                {"role": "system", "content": "You are a title generator. You output ONLY a thread title."},
                {"role": "user", "content": "go"},
            ],
        }
        assert "played" not in post(f"{server.url}/v1/chat/completions", chat)[1].decode()
        program = Anthropic(server.url, tmp_path, stream=False)
        program.ask("go")
        body = asked(program, "[SUGGESTION MODE: Suggest what the user might type next.]")
        assert "played" not in post(program.endpoint, body)[1].decode()
        assert [(request.scene, request.aside) for request in server.requests] == [
            (None, True),
            (0, False),
            (None, True),
        ]
        assert len(server.wait(1)) == 1


@pytest.mark.parametrize(
    ("path", "key"),
    [("/v1/messages/count_tokens", "input_tokens"), ("/v1beta/models/m:countTokens", "totalTokens")],
)
def test_tokens_are_counted(path: str, key: str) -> None:
    with ModelServer(play()) as server:
        assert json.loads(post(server.url + path, {"messages": "x" * 400})[1])[key] >= 100
        assert server.requests == []


def test_models_are_listed_and_nothing_else_is_found() -> None:
    with ModelServer(play()) as server:
        for path, found in (("/v1/models", "data"), ("/v1beta/models", "models")):
            status, body = got(server.url, path)
            assert status == 200
            assert "scripted-1" in json.dumps(json.loads(body)[found])
        assert got(server.url, "/@some/package")[0] == 404
        assert refusal(f"{server.url}/telemetry", {}).code == 404
        assert got(server.url, "/", method="HEAD") == (200, b"")


def got(url: str, path: str, *, method: str = "GET") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=PATIENCE)
    connection.request(method, path)
    with connection.getresponse() as response:
        found = response.status, response.read()
    connection.close()
    return found


# Faults


@ALL
@pytest.mark.parametrize("status", [401, 403, 429, 500, 503, 529])
def test_a_refusal_has_the_dialects_form(tmp_path: Path, speaker: type[Speaker], status: int) -> None:
    with ModelServer(play({"http": {"status": status, "message": "not now"}}, {"say": "x"})) as server:
        program = speaker(server.url, tmp_path)
        refused = refusal(program.endpoint, asked(program))
        error = json.loads(refused.read())["error"]
        assert (refused.code, server.requests[0].status) == (status, status)
        assert error["message"] == "not now"
        if speaker is Anthropic:
            kinds = {
                401: "authentication_error",
                429: "rate_limit_error",
                500: "api_error",
                529: "overloaded_error",
            }
            assert error["type"] == kinds.get(status, error["type"])
        if speaker is Gemini:
            assert error["code"] == status
        assert "retry-after" not in refused.headers


def test_a_limit_says_when_it_ends_in_each_vendors_way(tmp_path: Path) -> None:
    now = time.time()
    with ModelServer(play({"http": {"status": 429, "reset": 90}})) as server:
        refused = {kind: refusal(program.endpoint, asked(program)) for kind in SPEAKERS
                   for program in [kind(server.url, tmp_path)]}  # fmt: skip
    bodies = {kind: json.loads(answer.read())["error"] for kind, answer in refused.items()}
    assert all(answer.headers["retry-after"] in ("89", "90") for answer in refused.values())
    at = datetime.strptime(
        refused[Anthropic].headers["anthropic-ratelimit-requests-reset"], "%Y-%m-%dT%H:%M:%SZ"
    ).replace(tzinfo=UTC)
    assert abs(at.timestamp() - now - 90) < PATIENCE
    assert abs(int(refused[Anthropic].headers["anthropic-ratelimit-unified-reset"]) - now - 90) < PATIENCE
    assert refused[Chat].headers["x-ratelimit-reset-requests"] in ("89s", "90s")
    assert bodies[Responses]["type"] == "usage_limit_reached"
    assert abs(bodies[Responses]["resets_at"] - now - 90) < PATIENCE
    assert bodies[Gemini]["status"] == "RESOURCE_EXHAUSTED"
    assert bodies[Gemini]["details"][0]["retryDelay"] in ("89s", "90s")


def test_a_limit_can_end_at_an_instant(tmp_path: Path) -> None:
    with ModelServer(play({"http": {"status": 429, "reset": "2100-01-01T00:00:00+00:00"}})) as server:
        program = Responses(server.url, tmp_path)
        error = json.loads(refusal(program.endpoint, asked(program)).read())["error"]
    assert error["resets_at"] == int(datetime(2100, 1, 1, tzinfo=UTC).timestamp())


@ALL
def test_the_body_of_a_refusal_can_be_given(tmp_path: Path, speaker: type[Speaker]) -> None:
    with ModelServer(play({"http": {"status": 500, "body": "<html>bad gateway"}})) as server:
        program = speaker(server.url, tmp_path)
        assert refusal(program.endpoint, asked(program)).read() == b"<html>bad gateway"


def test_a_fault_can_come_only_a_few_times_for_each_prompt(tmp_path: Path) -> None:
    with ModelServer(play({"http": {"status": 500, "times": 2}}, {"say": "at last"})) as server:
        program = Chat(server.url, tmp_path)
        body = asked(program)
        assert [refusal(program.endpoint, body).code for _ in range(2)] == [500, 500]
        assert "at last" in post(program.endpoint, body)[1].decode()
        other = Chat(server.url, tmp_path)
        assert refusal(other.endpoint, asked(other, "another")).code == 500


def test_a_fault_comes_where_it_stands_in_the_scene(tmp_path: Path) -> None:
    script = play({"write": {"path": "a.txt", "text": "x"}}, {"http": {"status": 500}}, {"say": "never"})
    with ModelServer(script) as server:
        with pytest.raises(urllib.error.HTTPError, match="500"):
            Anthropic(server.url, tmp_path).ask("go")
        assert [request.status for request in server.requests] == [200, 500]
    assert (tmp_path / "a.txt").exists()


@BOTH
def test_a_cut_answer_is_not_whole(tmp_path: Path, speaker: type[Speaker], stream: bool) -> None:
    with ModelServer(play({"say": "word " * 500}, {"truncate": True})) as server:
        program = speaker(server.url, tmp_path, stream=stream)
        with pytest.raises(http.client.IncompleteRead) as caught:
            post(program.endpoint, asked(program))
    assert len(caught.value.partial) > 0


@ALL
def test_a_dropped_connection_has_no_answer(tmp_path: Path, speaker: type[Speaker]) -> None:
    with ModelServer(play({"drop": True})) as server:
        program = speaker(server.url, tmp_path)
        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            post(program.endpoint, asked(program))
        assert server.requests[0].status == 0


@pytest.mark.parametrize(
    ("action", "body"),
    [({"garbage": "<<not a model>>"}, b"<<not a model>>"), ({"hex": "fffe00"}, b"\xff\xfe\x00")],
)
def test_garbage_comes_as_it_is(tmp_path: Path, action: Json, body: bytes) -> None:
    with ModelServer(play(action)) as server:
        program = Gemini(server.url, tmp_path)
        assert post(program.endpoint, asked(program)) == ("text/event-stream", body)


def test_a_slow_answer_comes_piece_by_piece(tmp_path: Path) -> None:
    with ModelServer(play({"slow": 0.1}, {"say": "x" * 600})) as server:
        program = Chat(server.url, tmp_path)
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=PATIENCE)
        connection.request("POST", "/v1/chat/completions", json.dumps(asked(program)))
        with connection.getresponse() as response:
            response.readline()
            first = time.monotonic()
            response.read()
        connection.close()
        assert time.monotonic() - first > 0.4


def test_a_sleep_is_waited_for_before_the_answer(tmp_path: Path) -> None:
    with ModelServer(play({"sleep": 0.5}, {"say": "x"})) as server:
        begun = time.monotonic()
        Chat(server.url, tmp_path).ask("go")
        assert time.monotonic() - begun >= 0.5


# The server


def test_a_request_must_be_a_bounded_json_object() -> None:
    with ModelServer(play()) as server:
        place = server.url.removeprefix("http://")

        def status(body: bytes, **headers: str) -> int:
            connection = http.client.HTTPConnection(place, timeout=PATIENCE)
            connection.putrequest("POST", "/v1/messages")
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders(body)
            found = connection.getresponse().status
            connection.close()
            return found

        assert status(b"[]", content_length="2") == 400
        assert status(b"{not", content_length="4") == 400
        assert status(b"[" * 100_000, content_length="100000") == 400
        assert status(b"", content_length=str(1 << 40)) == 413
        assert status(b"") == 411
        assert status(b"", content_length="-1") == 411
        assert status(b"", content_length="x") == 411
        odd = b'{"messages": [7, {"role": 1, "content": [null, {"type": "text"}]}], "tools": {}, "system": 5}'
        assert status(odd, content_length=str(len(odd))) == 200


def test_it_listens_on_loopback_only() -> None:
    with ModelServer(play()) as server:
        port = int(server.url.rpartition(":")[2])
        assert server.url == f"http://127.0.0.1:{port}"
        outside = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
        for address in outside - {"127.0.0.1", "127.0.1.1"}:
            with pytest.raises(OSError, match="refused"):
                socket.create_connection((str(address), port), timeout=5)


@pytest.mark.parametrize("action", [{"hang": True}, {"sleep": 3600}, {"slow": 3600}])
def test_it_ends_promptly_while_a_client_hangs(tmp_path: Path, action: Json) -> None:
    failures: list[type[BaseException]] = []

    def client(program: Speaker) -> None:
        try:
            program.ask("go")
        except (OSError, http.client.HTTPException) as error:
            failures.append(type(error))

    before = threading.active_count()
    with ModelServer(play(action, {"say": "x"})) as server:
        hanging = threading.Thread(target=client, args=(Chat(server.url, tmp_path),))
        hanging.start()
        server.wait()
        idle = socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])))
        begun = time.monotonic()
    assert time.monotonic() - begun < PATIENCE / 2
    hanging.join(PATIENCE)
    idle.close()
    assert len(failures) == 1
    eventually(lambda: threading.active_count() <= before)


def test_a_client_that_goes_away_leaves_no_thread(tmp_path: Path) -> None:
    with ModelServer(play({"hang": True})) as server:
        before = threading.active_count()
        program = Chat(server.url, tmp_path)
        body = json.dumps(asked(program)).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2]))) as connection:
            connection.sendall(head.encode() + body)
            server.wait()
            assert threading.active_count() > before
        eventually(lambda: threading.active_count() <= before)


def test_eight_clients_at_once_do_not_hear_each_other(tmp_path: Path) -> None:
    scene = {
        "when": ["number"],
        "match": {"n": "number (\\d+)"},
        "do": [
            {"write": {"path": "a.txt", "text": "I am ${n}"}},
            {"run": ["sh", "-c", "echo ${n} > b.txt"]},
            {"say": "number ${n} in ${cwd}"},
            {"usage": {"input": 7, "output": 8}},
        ],
    }
    with ModelServer({"name": "test", "scenes": [scene]}) as server:

        def work(number: int) -> tuple[str, str, str]:
            place = tmp_path / str(number)
            place.mkdir()
            program = SPEAKERS[number % 4](server.url, place)
            for _ in range(3):
                answer = program.ask(f"number {number}")
                assert answer.tokens == (7, 8, 0)
            return answer.text, (place / "a.txt").read_text(), (place / "b.txt").read_text()

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(work, range(8)))
        assert len(server.requests) == 8 * 3 * 3
    assert found == [(f"number {n} in {tmp_path / str(n)}", f"I am {n}", f"{n}\n") for n in range(8)]


def test_waiting_for_requests_that_do_not_come_is_given_up() -> None:
    with ModelServer(play()) as server, pytest.raises(TimeoutError, match="0 of 2 requests"):
        server.wait(2, seconds=0.1)


@pytest.mark.parametrize("form", ["structure", "text", "path", "name"])
def test_a_script_is_a_structure_a_text_or_a_file(tmp_path: Path, form: str) -> None:
    structure = play({"say": "x"})
    path = tmp_path / "script.json"
    path.write_text(json.dumps(structure))
    source: dict[str, Any] = {
        "structure": structure,
        "text": json.dumps(structure),
        "path": path,
        "name": str(path),
    }
    with ModelServer(source[form]) as server:
        assert Chat(server.url, tmp_path).ask("go").text == "x"


def test_a_bad_script_is_refused_before_anything_listens(tmp_path: Path) -> None:
    with pytest.raises(
        ScriptError, match=r"`scenes\[0\].do\[1\]`: `http` wants a whole number from 400 to 599"
    ):
        ModelServer(play({"say": "x"}, {"http": {"status": 200}}))
    with pytest.raises(ScriptError, match="cannot read the script"):
        ModelServer(tmp_path / "missing.json")


def test_it_serves_as_a_program_until_it_is_ended(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text(json.dumps(play({"say": "served"})))
    command = [sys.executable, "-m", "planforge.testing.model_server"]
    with subprocess.Popen(
        [*command, str(path)], stdout=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert Chat(url, tmp_path).ask("go").text == "served"
        process.terminate()
        assert process.wait(PATIENCE) == 0
    path.write_text("{}")
    bad = subprocess.run(
        [*command, str(path)], capture_output=True, text=True, check=False, env=environment()
    )
    assert (bad.returncode, bad.stderr) == (2, f"model server: bad script `{path}`: has no `name`\n")


def test_a_stream_has_only_whole_events_however_long_the_text(tmp_path: Path) -> None:
    with ModelServer(play({"flood": 100_000})) as server:
        for kind in SPEAKERS:
            assert kind(server.url, tmp_path).ask("go").text == "x" * 100_000
        program = Anthropic(server.url, tmp_path)
        assert len(events(post(program.endpoint, asked(program))[1])) > 100


def test_the_guide_says_what_every_action_means_to_a_model() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
    assert [name for name in grammar.ACTIONS if f"`{name}`" not in guide] == []


@ALL
def test_the_same_script_does_the_same_whoever_plays_it(
    tmp_path: Path, script: Callable[..., Path], room: Path, speaker: type[Speaker]
) -> None:
    path = script(
        {
            "when": ["file"],
            "match": {"name": "file (\\w+)"},
            "do": [
                {"think": "hm"},
                {"usage": {"input": 10, "output": 2}},
                {"write": {"path": "deep/${name}", "text": "one\n"}},
                {"append": {"path": "deep/${name}", "text": "two\n"}},
                {"run": ["sh", "-c", "wc -l < deep/${name} > lines"]},
                {"say": "Two lines "},
                {"ask": {"title": "?", "allowed": [{"delete": "gone"}, {"say": "and one gone."}]}},
                {"usage": {"input": 30, "output": 4, "cached": 5}},
            ],
        }
    )

    def left(place: Path) -> dict[str, str]:
        files = [file for file in place.rglob("*") if file.is_file()]
        return {str(file.relative_to(place)): file.read_text() for file in files}

    (room / "gone").write_text("")
    listener = Listener()
    rehearsed = converse(path, room, listener, "file alpha")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "gone").write_text("")
    with ModelServer(path) as server:
        answer = speaker(server.url, elsewhere).ask("file alpha")
    assert left(elsewhere) == left(room) == {"deep/alpha": "one\ntwo\n", "lines": "2\n"}
    assert answer.text == listener.said == "Two lines and one gone."
    assert rehearsed.usage is not None
    usage = rehearsed.usage
    assert answer.tokens == (usage.input_tokens, usage.output_tokens, usage.cached_read_tokens) == (40, 6, 5)


def eventually(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
