"""Redaction: secrets go, everything else stays byte for byte, and it takes no longer than reading."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from growth import growth, repeated
from planforge.kernel.events import RunParked
from planforge.kernel.redaction import Redactor, secrets_in
from programs import planforge
from workshops import workshop

ROOT = Path(__file__).parents[2]

# Put together here, so that this file itself holds nothing that looks like a secret.
HUNTER = "hunter22"
MIXED = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0"
PEM = "\n".join(["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"] * 3)
KEY_BLOCK = "-----BEGIN {0}PRIVATE KEY-----\n" + PEM + "\n-----END {0}PRIVATE KEY-----"
JWT = ".".join("eyJ" + part for part in ("hbGciOiJIUzI1NiJ9", "zdWIiOiIxMjM0NTY3ODkwIn0")) + "." + MIXED

TOKENS = {
    "sk-" + MIXED: "api-key",
    "sk-ant-api03-" + MIXED + "-AA": "api-key",
    "sk-proj-" + MIXED: "api-key",
    "ghp_" + MIXED[:36]: "github-token",
    "gho_" + MIXED[:36]: "github-token",
    "github_pat_11ABCDEFG_" + MIXED: "github-token",
    "glpat-" + MIXED[:20]: "gitlab-token",
    "AKIA" + "IOSFODNN7EXAMPLE": "aws-key",
    "AKIA" + "ABCDEFGHIJKLMNOP": "aws-key",
    "ASIA" + "IOSFODNN7EXAMPLE": "aws-key",
    "xoxb-" + "123456789012-" + MIXED: "slack-token",
    "xapp-" + "1-A0123-" + MIXED: "slack-token",
    "AIza" + MIXED[:35]: "google-key",
    JWT: "jwt",
    KEY_BLOCK.format(""): "private-key",
    KEY_BLOCK.format("RSA "): "private-key",
    KEY_BLOCK.format("OPENSSH "): "private-key",
}

PARTS = {
    "Authorization: Bearer ~": ("opaque-token-1", "authorization"),
    "authorization: basic ~": ("dXNlcjpodW50ZXIy", "authorization"),
    '{"Authorization": "token ~"}': (MIXED, "authorization"),
    "sent with Bearer ~ by curl": (MIXED, "authorization"),
    "https:" + "//me:~@example.com/x": ("hunter2", "password"),
    "postgres:" + "//:~@db:5432/app": ("p@ss:w0rd", "password"),
    "redis://~@host/0": (MIXED, "password"),
    'password = "~"': ("hunter22!", "secret"),
    "DB_PASSWORD=~": ("tr0ub4dor&3", "secret"),
    "password: ~\n": ("P@ssword-x", "secret"),
    "--token=~ --verbose": (MIXED[:16], "secret"),
    "'api_key': '~',": (MIXED, "secret"),
    "AWS_SECRET_ACCESS_KEY=~": ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "secret"),
    "client-secret => ~": (hashlib.sha256(b"x").hexdigest(), "secret"),
    "x-api-key: ~": (MIXED, "secret"),
    "accessToken := `x`, refreshToken := '~'": (MIXED, "secret"),
}

redactor = Redactor()


# What goes


@pytest.mark.parametrize(("secret", "name"), TOKENS.items(), ids=range(len(TOKENS)))
@pytest.mark.parametrize(
    "around",
    ["~", "it is ~.", 'x="~"', "a\n~\nb", "(~)", "\\n~\\n", "\x1b[32m~\x1b[0m", "key%3D~&b=c", "é~é"],
)
def test_a_token_is_known_by_its_shape_wherever_it_stands(secret: str, name: str, around: str) -> None:
    assert redactor.text(around.replace("~", secret)) == around.replace("~", f"[redacted:{name}]")


@pytest.mark.parametrize(("around", "secret", "name"), [(key, *value) for key, value in PARTS.items()])
def test_a_secret_is_known_by_what_is_around_it_and_that_stays(around: str, secret: str, name: str) -> None:
    assert redactor.text(around.replace("~", secret)) == around.replace("~", f"[redacted:{name}]")


def test_a_key_that_was_cut_off_goes_as_far_as_it_goes() -> None:
    begun, _, _ = KEY_BLOCK.format("EC ").partition("\n-----END")
    for text in (begun, begun.replace("\n", "\\n"), begun.replace("\n", "\n+ ")):
        assert redactor.text(f"{text}\nand so on") == "[redacted:private-key]\nand so on"


def test_each_of_several_secrets_goes() -> None:
    text = " ".join(TOKENS)
    assert redactor.text(text) == " ".join(f"[redacted:{name}]" for name in TOKENS.values())


def test_bytes_that_are_no_text_stay_around_a_secret() -> None:
    token = "ghp_" + MIXED[:36]
    assert (
        redactor.octets(b"\xff\xfe " + token.encode() + b" \x80\x00")
        == b"\xff\xfe [redacted:github-token] \x80\x00"
    )
    assert redactor.octets(b"\xff\x00\xfe://") == b"\xff\x00\xfe://"


def test_strings_anywhere_in_a_value_are_redacted_and_names_of_members_too() -> None:
    token = "ghp_" + MIXED[:36]
    value: Any = {"a": [token, 1, None, True, 2.5], token: {"b": (token, token.encode())}, "c": "plain"}
    mark = "[redacted:github-token]"
    assert redactor.redact_value(value) == {
        "a": [mark, 1, None, True, 2.5],
        mark: {"b": (mark, mark.encode())},
        "c": "plain",
    }


def test_a_member_is_known_by_its_name() -> None:
    value = {"api_key": MIXED, "user": {"password": HUNTER}, "token": "none", "tokens": 12, "key": MIXED}
    cleaned = {**value, "api_key": "[redacted:secret]", "user": {"password": "[redacted:secret]"}}
    assert redactor.redact_value(value) == cleaned


def test_a_key_block_inside_encoded_json_goes_whole_and_the_rest_is_encoded_as_before() -> None:
    body = msgspec.json.encode({"n": 1, "text": KEY_BLOCK.format("") + ' "ü"'})
    assert redactor.json(body) == '{"n":1,"text":"[redacted:private-key] \\"ü\\""}'.encode()
    plain = b'{"tokens": 1,   "text":"password"}'
    assert redactor.json(plain) is plain


def test_a_structure_stays_a_structure() -> None:
    parked = RunParked(run="run-001", reason="say ghp_" + MIXED[:36])
    assert redactor.struct(parked) == RunParked(run="run-001", reason="say [redacted:github-token]")
    calm = RunParked(run="run-001", reason="approve?")
    assert redactor.struct(calm) is calm


# What the environment knows

ENVIRONMENT = {
    "GITHUB_TOKEN": "plainlooking-value",
    "DB_PASSWORD": 'qu"ote\\d\nvalue',
    "MY_SECRET": "correct horse battery",
    "SERVICE_API_KEY": "zzzz-9999-zzzz",
    "Pin_Password": "12345678",
    "DATABASE_URL": "postgres:" + "//app:longenough@db/app",
    "RAW_AUTH": "\udcff\udcfe-not-utf-8",
}


@pytest.mark.parametrize(
    ("name", "value"),
    [*ENVIRONMENT.items(), ("DATABASE_URL", "longenough"), ("DB_PASSWORD", 'qu\\"ote\\\\d\\nvalue')],
)
@pytest.mark.parametrize("around", ["~", "x~x", '"~"'])
def test_a_value_of_a_variable_with_a_telling_name_goes(name: str, value: str, around: str) -> None:
    secret = "longenough" if name == "DATABASE_URL" else value
    cleaned = Redactor.of_environment(ENVIRONMENT).text(around.replace("~", value))
    assert secret not in cleaned
    assert f"[redacted:{name}]" in cleaned


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_TOKEN", "short"),
        ("GITHUB_TOKEN", ""),
        ("USE_TOKEN", "required"),
        ("AUTH_MODE", "Disabled"),
        ("AUTH_MODE", "keep-alive"),
        ("SSH_AUTH_SOCK", "/tmp/ssh-a1b2c3d4e5f6g7h8/agent.42"),
        ("KEY_FILE", "~/keys/a1b2c3d4"),
        ("AUTH_URL", "https://login.example.com/a1b2c3d4"),
        ("MAX_TOKEN", "1000000000"),
        ("GIT_AUTHOR_NAME", "Somebody 1234567"),
        ("KEYBOARD_LAYOUT", "de-latin1-nodeadkeys"),
        ("TOKENIZERS_PARALLELISM", "a1b2c3d4e5f6"),
        ("HOME", "/home/somebody"),
        ("API_KEY", "${OTHER_API_KEY}"),
        ("API_KEY", "[redacted:API_KEY]"),
    ],
)
def test_other_values_are_no_secrets(name: str, value: str) -> None:
    assert dict(secrets_in({name: value})) == {}


def test_of_two_secrets_the_longer_one_is_taken_out_whole() -> None:
    known = Redactor({"A": "abcdefgh1", "B": "abcdefgh12345"})
    assert known.text("abcdefgh12345 abcdefgh1") == "[redacted:B] [redacted:A]"


def test_a_secret_in_json_or_in_an_address_goes_too() -> None:
    known = Redactor({"A": "käse & bröt/1"})
    assert known.text("x=k%C3%A4se%20%26%20br%C3%B6t%2F1") == "x=[redacted:A]"
    assert known.json(msgspec.json.encode(["käse & bröt/1"])) == b'["[redacted:A]"]'


def test_a_mark_cannot_be_used_to_hide_a_secret() -> None:
    token = "ghp_" + MIXED[:36]
    assert token not in redactor.text(f"[redacted:{token}]")


def test_a_mark_of_another_process_stays() -> None:
    for text in ("password = '[redacted:DB_PASSWORD]'", "https://u:[redacted:DB_PASSWORD]@h/"):
        assert redactor.text(text) == text


# What stays

ORDINARY = [
    hashlib.sha1(b"x", usedforsecurity=False).hexdigest(),
    hashlib.sha256(b"x").hexdigest(),
    str(uuid.uuid5(uuid.NAMESPACE_DNS, "x")),
    base64.b64encode(b"an ordinary text, as tests have it").decode(),
    f"commit {hashlib.sha1(b'y', usedforsecurity=False).hexdigest()}\nAuthor: A <a@b.c>",
    "index 3b18e51..a1b2c3d 100644",
    "/tmp/pytest-of-root/pytest-0/test_a1b2c3d4/.planforge/objects/ab/cdef0123456789",
    "C:\\Users\\me\\token\\a1b2c3d4",
    "risk-assessment-0123456789abcdef and task-0123456789abcdef0123",
    "sk-folding-cube-and-other-spinners",
    "tokens: 123456789, token count: 42, 5 tokens = 3 words",
    "password: str | None = None",
    "password = getpass.getpass2(prompt)",
    "token = settings.auth.token2",
    "token: ${{ secrets.GITHUB_TOKEN }}, api_key = $API_KEY, secret: <your-secret-123>",
    'secret = "phase-1-of-the-plan-2"',
    "https://example.com:8080/a@b and git@github.com:a/b.git and ssh://git@host:22/a",
    "postgres://user:password@localhost/db, https://user:${PASSWORD}@host, https://a:***@b",
    "Authorization: Bearer $TOKEN, Authorization: Bearer <token>",
    "the bearer of this letter, Bearer tokens",
    'if "-----BEGIN RSA PRIVATE KEY-----" in text or "-----END RSA PRIVATE KEY-----" in text:',
    "AKIA is a prefix, xoxb- too, eyJ as well, ghp_ and AIza",
    "ASIAPACIFIC and MAKIAVELLI",
    "sha512-" + base64.b64encode(hashlib.sha512(b"x").digest()).decode(),
    "keys: a1b2c3d4e5f6, monkey=a1b2c3d4e5f6g7",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_output_stays(text: str) -> None:
    assert redactor.text(text) == text
    assert redactor.octets(text.encode()) == text.encode()
    assert redactor.redact_value({"a": [text]}) == {"a": [text]}


@pytest.mark.dear
def test_the_files_of_this_repository_stay() -> None:
    files = [path for top in ("src", "tests", "docs") for path in sorted((ROOT / top).rglob("*.*"))]
    contents = {path: path.read_bytes() for path in files if path.suffix in (".py", ".md", ".json", ".toml")}
    # Tests of redaction may have a secret to redact.
    ordinary = {
        path: content
        for path, content in contents.items()
        if b"redact" not in content or "tests" not in path.relative_to(ROOT).parts
    }
    assert len(ordinary) > 100
    assert [path for path, content in ordinary.items() if redactor.octets(content) != content] == []


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="there is no history here")
def test_a_git_log_stays() -> None:
    argv = ["git", "-c", "safe.directory=*", "-C", str(ROOT), "log", "-n", "200", "--stat", "--format=raw"]
    log = subprocess.run(argv, capture_output=True, check=True, timeout=60).stdout
    assert len(log) > 1000
    assert redactor.octets(log) == log


# Any text

snippets = st.sampled_from(
    [*TOKENS, *(key.replace("~", value[0]) for key, value in PARTS.items()), *ORDINARY]
)
loose = st.sampled_from(
    [
        *("://", "a:b@", "password", "token=", '"', "'", ": ", "sk-", MIXED, "eyJ", ".", "[redacted:", "]"),
        *("-----BEGIN PRIVATE KEY-----", "[redacted:secret]", "Bearer ", "\\n", "ghp_", "AKIA", "\n", " "),
        "known-secret-1",
    ]
)
texts = st.lists(snippets | loose | st.text(max_size=8), max_size=12).map("".join)
some_known = Redactor({"A": "known-secret-1", "redacted": "secret]known", "B": "a:b@sk-eyJ"})


@given(text=texts)
def test_redacting_again_changes_nothing(text: str) -> None:
    for one in (redactor, some_known):
        once = one.text(text)
        assert one.text(once) == once


def test_what_a_mark_lays_bare_goes_at_once() -> None:
    assert redactor.text(f"token={MIXED}==sk-{MIXED}") == "token=[redacted:secret][redacted:api-key]"


@given(before=texts, after=texts)
def test_a_known_secret_survives_nowhere(before: str, after: str) -> None:
    assert "known-secret-1" not in some_known.text(f"{before}known-secret-1{after}")


@given(text=texts)
def test_text_bytes_and_json_are_redacted_alike(text: str) -> None:
    cleaned = some_known.text(text)
    assert some_known.octets(text.encode()) == cleaned.encode()
    assert msgspec.json.decode(some_known.json(msgspec.json.encode([text]))) == [cleaned]


@given(content=st.binary(max_size=300))
def test_any_bytes_without_a_secret_stay(content: bytes) -> None:
    assert Redactor().octets(content) == content


MEGABYTE = 1_000_000
LONG = {
    "words": "lorem ipsum dolor ",
    "hex": "0123456789abcdef",
    "one letter": "a",
    "blanks": "password" + " " * 1000,
    "assignments": "token=x",
    "open quotes": 'token="',
    "headers": "authorization: bearer ",
    "half tokens": "eyJ-",
    "two thirds of tokens": "eyJabcdefgh.eyJabcdefgh.",
    "prefixes": "sk-ghp_xoxb-AIzaAKIAgithub_pat_",
    "addresses": "://a:b",
    "signs": "://" + "@:" * 500,
    "begins": "-----BEGIN PRIVATE KEY-----",
    "half keys": "-----BEGIN PRIVATE KEY-----\n" + "A" * 64 + "\n",
    "marks": "[redacted:secret]",
    "half marks": "[redacted:",
    "secrets": "ghp_" + MIXED[:36] + " ",
}


@pytest.mark.parametrize("unit", LONG.values(), ids=LONG)
def test_a_megabyte_of_anything_takes_no_more_than_its_share_of_time(unit: str) -> None:
    found = growth(some_known.text, partial(repeated, unit), MEGABYTE // 8, MEGABYTE)
    assert found.is_linear, found


@pytest.mark.parametrize(
    "start", ["://", "Bearer ", "sk-", "eyJ", "password=", "-----BEGIN PRIVATE KEY-----"]
)
def test_one_endless_word_takes_no_more_than_its_share_of_time(start: str) -> None:
    found = growth(some_known.text, lambda size: start + "a:" * (size // 2), MEGABYTE // 8, MEGABYTE)
    assert found.is_linear, found


# A whole run


@pytest.mark.dear
def test_what_agents_say_and_checks_print_in_a_whole_run_leaves_no_secret_in_the_ledger(
    tmp_path: Path,
) -> None:
    known, shaped = "open-sesame-4711", "ghp_" + MIXED[:36]
    both = f"{known} {shaped}"
    # In pieces, for a file with a secret would not even be committed.
    pieces = [both[at : at + 3] for at in range(0, len(both), 3)]
    root = workshop(tmp_path)
    script = (tmp_path / "rehearsal" / "script.json").read_text()
    for old, new in {
        "Readers of a text want": f"Readers of {both} want",
        "`minutes` is in": f"{both}: `minutes` is in",
        "Done: `most_common`": f"Done with {both}: `most_common`",
        "import unittest\\n": f"import unittest\\nprint(''.join({pieces}))\\n",
    }.items():
        assert old in script
        script = script.replace(old, new)
    (tmp_path / "rehearsal" / "script.json").write_text(script)
    for arguments in (("forge", "Count words"), ("plan", "approve", "1"), ("plan", "run", "1")):
        process = planforge(*arguments, cwd=root, extra={"DOOR_TOKEN": known})
        assert process.returncode == 0, process.stderr
    stored = [path for path in (root / ".planforge").rglob("*") if path.is_file()]
    assert len(stored) > 20
    content = b"".join(path.read_bytes() for path in stored)
    assert known.encode() not in content
    assert shaped.encode() not in content
    assert content.count(b"[redacted:DOOR_TOKEN]") > 3
    assert content.count(b"[redacted:github-token]") > 3
