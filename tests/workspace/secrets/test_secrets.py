"""Secrets are found before anything is committed, and what only looks like one is left alone."""

from __future__ import annotations

import base64
import json
import random
import re
import string
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import msgspec
import pytest

from planforge.workspace import secrets
from planforge.workspace.secrets import Allowed, Secret, plausibility
from planforge.workspace.secrets.values import Values

NONE = Values({})


def drawn(length: int, letters: str = string.ascii_letters + string.digits, seed: int = 7) -> str:
    """A text from a generator, the same each time. None stands in this file as it would in a real one."""
    return "".join(random.Random(seed * 1000 + length).choices(letters, k=length))


HEX = "0123456789abcdef"
LOWER = string.ascii_lowercase + string.digits
UPPER = string.ascii_uppercase + string.digits
JWT = ".".join(
    base64.urlsafe_b64encode(part.encode()).decode().rstrip("=")
    for part in ('{"alg":"HS256","typ":"JWT"}', '{"sub":"1","name":"ada","iat":1516239022}', drawn(32))
)
KEY = "\n".join([f"-----BEGIN {'RSA'} PRIVATE KEY-----", *(drawn(64, seed=n) for n in range(4)), "-----END"])


def found(text: str, path: str = "src/app.py") -> list[Secret]:
    return list(secrets.find_new(path, None, text.encode(), NONE))


REAL = {
    "an access key of AWS": "id = '" + "AK" + "IA" + drawn(16, UPPER) + "'",
    "a secret key of AWS": f'aws_secret_access_key = "{drawn(40)}"',
    "a token of GitHub": 'x = "gh' + f'p_{drawn(36)}"',
    "a fine-grained token of GitHub": "github" + f"_pat_{drawn(22)}_{drawn(59)}",
    "a token of GitLab": "url = gl" + f"pat-{drawn(20)}",
    "a token of Slack": "xo" + f"xb-{drawn(12, string.digits)}-{drawn(12, string.digits)}-{drawn(24, LOWER)}",
    "a live key of Stripe": 'stripe.api_key = "sk_' + f'live_{drawn(24)}"',
    "a key of SendGrid": "SG" + f".{drawn(22)}.{drawn(43)}",
    "a token of npm": "//registry.npmjs.org/:_authToken=np" + f"m_{drawn(36)}",
    "a key of a model's API": "OPENAI = 's" + f"k-proj-{drawn(48)}'",
    "a key of Google": "key=AI" + f"za{drawn(35)}",
    "a web token": f"cookie = '{JWT}'",
    "a private key": KEY,
    "a private key in one line": json.dumps({"key": KEY}),
    "a password in an address": f"DATABASE_URL=postgres://app:{drawn(14)}@db.internal:5432/app",
    "a password in code": f'PASSWORD = "{drawn(16)}"',
    "a short password": 'db_password = "Tr0u8' + 'b4dor&3x"',
    "a key in YAML": f"api_key: {drawn(32, HEX)}",
    "a token in an environment file": f"SESSION_TOKEN={drawn(40)}",
    "a secret in JSON": f'{{"client_secret": "{drawn(32)}"}}',
    "a header": f"Authorization: Bearer {drawn(40)}",
    "a key of a framework": f'SECRET_KEY = "{drawn(50)}"',
    "a key of Azure": f'AccountKey="{drawn(86)}=="',
    "a key of Twilio": f"sid = 'S{'K'}{drawn(32, HEX)}'",
    "a secret on the next line": f'CLIENT_SECRET = (\n    "{drawn(44)}"\n)',
    "a secret in a long line": "x" * 9000 + f' token="{drawn(40)}"',
    "a secret behind a mark": f'TOKEN = "{drawn(40)}"  # pragma: allowlist secret',
    "a secret behind another mark": f'TOKEN = "{drawn(40)}"  # noqa  gitleaks:allow  nosec  NOSONAR',
    "a key dressed up as an example": f'API_TOKEN = "example-{drawn(48)}"',
}


@pytest.mark.parametrize("text", REAL.values(), ids=REAL)
def test_a_secret_is_found(text: str) -> None:
    assert found(f"first line\n{text}\n")


@pytest.mark.parametrize("text", REAL.values(), ids=REAL)
def test_nothing_that_is_kept_of_it_has_its_text(text: str) -> None:
    every = found(text)
    told = msgspec.json.encode(every).decode() + "".join(map(str, every))
    parts = [
        part for part in re.findall(r"[A-Za-z0-9&]{10,}", text) if part not in ("allowlist", "Authorization")
    ]
    assert parts
    assert not [part for part in parts if part in told]


HARMLESS = {
    "AWS' own example": "AWS_ACCESS_KEY_ID = 'AK" + "IAIOSFODNN7EXAMPLE'",
    "AWS' other example": "aws_secret_access_key = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY'",
    "a placeholder": 'password = "changeme"',
    "a template": "password: ${DB_PASSWORD}",
    "another template": 'token = "{{ secrets.TOKEN }}"',
    "a row of x": f'api_key = "{"x" * 32}"',
    "a row of zeros": f'TOKEN = "{"0" * 40}"',
    "an alphabet": 'SECRET_KEY = "abcdefghijklmnopqrstuvwxyz0123456789"',
    "a word": 'login(username="super", password="secret")',
    "a test's password": 'client.login(password="password123")',
    "a variable": 'password = os.environ["PASSWORD"]',
    "a call": "token = secrets.token_hex(32)",
    "a name of a setting": 'AUTH_TOKEN = "auth.token.name"',
    "a hash of a file": f"sha256:{drawn(64, HEX)}",
    "a commit": f"uses: actions/checkout@{drawn(40, HEX)}",
    "a digest in a test": f'assert digest == "{drawn(64, HEX)}"',
    "the integrity of a package": f'"integrity": "sha512-{drawn(86)}=="',
    "an identifier": 'id = "550e8400-e29b-41d4-a716-446655440000"',
    "a path": 'key_file = "/etc/ssl/private/server.key"',
    "an address without a password": "see https://example.com/token/reset",
    "an address in a test": '"http://user:pass@example.com:8080/",',
    "a local database": "postgres://postgres:postgres1@localhost/test",
    "prose about keys": "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
    "a password's hash": f'"password": "pbkdf2_sha256$10000${drawn(12)}${drawn(43)}="',
    "a starter's key": f"SECRET_KEY = 'django-insecure-{drawn(50)}'",
    "a public key": f"ssh-ed25519 {drawn(68)} ada@host",
    "a certificate": f"-----BEGIN CERTIFICATE-----\n{drawn(64)}\n-----END CERTIFICATE-----",
    "a key of a mapping": 'cache_key = "user_profile_v2_by_id"',
    "nothing at all": "",
}


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_what_only_looks_like_one_is_left_alone(text: str) -> None:
    assert found(f"first line\n{text}\n") == []


# Only what is new counts


def test_what_the_file_had_before_is_not_found_again() -> None:
    before = f'import x\nTOKEN = "{drawn(40)}"\n'
    after = before.replace("import x", "import y") + "z = 1\n"
    assert secrets.find_new("a.py", before.encode(), after.encode(), NONE) == ()


def test_a_line_that_is_written_anew_around_an_old_secret_is_not_found() -> None:
    before, after = f'TOKEN = "{drawn(40)}"\n', f'TOKEN: str = "{drawn(40)}"  # moved\n'
    assert secrets.find_new("a.py", before.encode(), after.encode(), NONE) == ()


def test_another_secret_in_place_of_an_old_one_is_found_though_its_mark_is_old() -> None:
    before = f'TOKEN = "{drawn(40)}"  # pragma: allowlist secret\n'
    after = before.replace(drawn(40), drawn(40, seed=8))
    (secret,) = secrets.find_new("a.py", before.encode(), after.encode(), NONE)
    assert secret.line == 1


def test_a_new_body_in_an_old_private_key_is_found() -> None:
    after = KEY.replace(drawn(64, seed=0), drawn(64, seed=99))
    assert secrets.find_new("k.pem", KEY.encode(), after.encode(), NONE)
    assert secrets.find_new("k.pem", KEY.encode(), KEY.encode() + b"\n# end\n", NONE) == ()


def test_a_file_that_goes_has_no_secrets() -> None:
    assert secrets.find_new("a.py", f'TOKEN = "{drawn(40)}"'.encode(), None, NONE) == ()


# Known values


KNOWN = Values.of_environment(
    ("PLAIN_NAME",),
    {
        "DEPLOY_TOKEN": "correct/horse+battery staple",
        "PLAIN_NAME": "nobody would know",
        "EDITOR": "a-very-long-name-of-an-editor",
        "KEYBOARD": "dvorak-programmer",
        "SHORT_TOKEN": "abc",
        "SIGNING_KEY": f"{drawn(30)}\n{drawn(30, seed=9)}\n",
    },
)
VALUE = "correct/horse+battery staple"
WAYS: dict[str, Callable[[str], bytes]] = {
    "as it is": str.encode,
    "in JSON": lambda value: json.dumps({"a": value}).encode(),
    "in an address": lambda value: b"https://h/?t=correct%2Fhorse%2Bbattery%20staple",
    "in hexadecimal": lambda value: value.encode().hex().encode(),
    "in base 64": lambda value: base64.b64encode(value.encode()),
    "in base 64 after one": lambda value: base64.b64encode(b"a" + value.encode() + b"zz"),
    "in base 64 after two": lambda value: base64.b64encode(b"ab" + value.encode() + b"z"),
    "in base 64 for addresses": lambda value: base64.urlsafe_b64encode(b"??>" + value.encode()),
    "in UTF-16": lambda value: value.encode("utf-16"),
    "in a binary file": lambda value: b"\x00\x01\x02" + value.encode() + b"\xff\xfe",
    "in the middle of a line": lambda value: b"x" * 100_000 + value.encode() + b"y" * 100_000,
}


@pytest.mark.parametrize("write", WAYS.values(), ids=WAYS)
def test_a_value_of_the_environment_is_found_in_whatever_way_it_is_written(
    write: Callable[[str], bytes],
) -> None:
    (secret, *_) = secrets.find_new("data.bin", None, b"first\n" + write(VALUE) + b"\nlast\n", KNOWN)
    assert (secret.line, secret.kind) == (2, "the value of DEPLOY_TOKEN")
    assert secret.fingerprint == secrets.fingerprint(VALUE)


def test_a_variable_that_the_settings_name_is_one_whatever_it_is_called() -> None:
    assert secrets.find_new("a.txt", None, b"nobody would know", KNOWN)


def test_a_line_of_a_value_of_several_lines_is_enough() -> None:
    assert secrets.find_new("a.txt", None, drawn(30, seed=9).encode(), KNOWN)


@pytest.mark.parametrize("harmless", ["a-very-long-name-of-an-editor", "dvorak-programmer", "abc", "staple"])
def test_other_values_of_the_environment_are_not(harmless: str) -> None:
    assert secrets.find_new("a.txt", None, harmless.encode(), KNOWN) == ()


def test_a_value_in_the_name_of_a_file_is_found() -> None:
    (secret,) = secrets.find_new("backup/correct/horse+battery staple.txt", None, b"nothing\n", KNOWN)
    assert secret.line == 0


def test_a_known_value_is_one_even_if_it_says_that_it_is_an_example() -> None:
    values = Values.of_environment(environment={"API_KEY": "example-placeholder-changeme"})
    assert secrets.find_new("a.txt", None, b"key: example-placeholder-changeme", values)


def test_the_environment_of_this_process_is_what_counts_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANFORGE_CANARY_TOKEN", "canary-in-a-coal-mine-1")
    assert secrets.find_new("a.txt", None, b"canary-in-a-coal-mine-1")


# Names


@pytest.mark.parametrize(
    "path",
    [
        *(".env", "deploy/.env.production", "prod.env", "id_rsa", ".ssh/id_ed25519", "certs/server.p12"),
        *("credentials.json", "config/service-account-prod.json", ".ENV", ".env ", ".netrc", "kubeconfig"),
    ],
)
def test_a_file_that_is_a_secret_by_its_name_is_found(path: str) -> None:
    (secret,) = secrets.find_new(path, None, b"anything\n", NONE)
    assert secret.line == 0


@pytest.mark.parametrize(
    "path",
    [
        *(".env.example", ".env.template", "id_rsa.pub", "src/env.py", "tests/fixtures/credentials.json"),
        *("docs/credentials.md", "server.pem", "src/secrets.py", ".env.test", "environment.py"),
    ],
)
def test_one_that_has_a_name_like_it_is_not(path: str) -> None:
    assert secrets.find_new(path, None, b"anything\n", NONE) == ()


def test_such_a_file_that_was_there_before_goes_by_what_is_added() -> None:
    assert secrets.find_new(".env", b"DEBUG=1\n", b"DEBUG=0\n", NONE) == ()
    assert secrets.find_new(".env", b"DEBUG=1\n", f"API_TOKEN={drawn(40)}\n".encode(), NONE)


def test_a_certificate_goes_by_what_is_in_it() -> None:
    assert secrets.find_new("server.pem", None, KEY.encode(), NONE)


# Exceptions


def test_an_exception_is_for_one_text_has_a_reason_and_ends() -> None:
    every = found(f'TOKEN = "{drawn(40)}"\nOTHER_TOKEN = "{drawn(40, seed=8)}"\n')
    allowed = Allowed(fingerprint=every[0].fingerprint, reason="public test key", until=date(2026, 6, 30))
    assert secrets.unexcused(every, [allowed], date(2026, 6, 30)) == (every[1],)
    assert secrets.unexcused(every, [allowed], date(2026, 7, 1)) == tuple(every)
    unreasoned = msgspec.structs.replace(allowed, reason=" ")
    assert secrets.unexcused(every, [unreasoned], date(2026, 6, 30)) == tuple(every)


def test_a_fingerprint_is_the_same_for_the_same_text_anywhere() -> None:
    one, other = found(f'TOKEN = "{drawn(40)}"'), found(f'\n\napi_token: "{drawn(40)}"', "b.yml")
    assert [item.fingerprint for item in one] == [item.fingerprint for item in other]


def test_a_secret_is_told_by_place_and_kind() -> None:
    (secret,) = found(f'\nTOKEN = "{drawn(40)}"\n')
    assert str(secret).startswith("`src/app.py` line 2 (")


# Bad input


@pytest.mark.parametrize(
    "content",
    [
        *(
            b"\xff\xfe\xfa token",
            b"\n" * 10_000,
            b"'" * 20_000,
            b"token=" * 5_000,
            b"password" * 20_000 + b'="',
        ),
        *(b"[redacted:x] token = [redacted:y]", "key \u202e".encode(), b"-----BEGIN PRIVATE KEY-----" * 500),
        *(b"a" * 60_000 + b"@" + b"://" * 9_000, b'"' + b"A1b2" * 10_000 + b'"', b"key: " + b"=" * 30_000),
    ],
    ids=range(11),
)
def test_odd_content_is_looked_at_in_bounded_time(content: bytes) -> None:
    start = time.process_time()
    secrets.find_new("odd.txt", None, content, NONE)
    assert time.process_time() - start < 60


def test_so_many_secrets_in_one_file_are_not_all_told() -> None:
    text = "".join(f'TOKEN_{n} = "{drawn(40, seed=n)}"\n' for n in range(300))
    assert len(found(text)) == secrets.MOST


def test_a_large_change_is_looked_at_quickly() -> None:
    """Five thousand lines take a third of a second on a quiet machine; what is bounded here is a mistake."""
    line = '    result = self.client.post(reverse("admin:login"), {"username": name, "key": value})\n'
    found("x")  # loads the library
    start = time.process_time()
    assert found(line * 2 + "".join(line.replace("value", f"value_{n}") for n in range(5_000))) == []
    assert time.process_time() - start < 60


def test_the_library_is_loaded_only_when_lines_are_looked_at(tmp_path: Path) -> None:
    code = (
        "import sys; from planforge.workspace import secrets; assert 'detect_secrets' not in sys.modules;"
        "secrets.find_new('a', None, b'x'); assert 'detect_secrets' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=120)


def test_nothing_is_sent_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library can ask a service whether a key works. We never let it."""
    import socket

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert all(found(text) for text in REAL.values())


@pytest.mark.parametrize("text", ["a3f9c2d1e8b7", "Xk29fLq8Zt41", drawn(24), drawn(32, HEX)])
def test_what_a_generator_makes_looks_drawn(text: str) -> None:
    assert plausibility.is_drawn(text)


@pytest.mark.parametrize(
    "text", ["phase-1-of-the-plan", "FORBIDDEN_VALUE2", "short1", "a b c d e f g 1", "sha256"]
)
def test_what_a_person_makes_does_not(text: str) -> None:
    assert not plausibility.is_drawn(text)
