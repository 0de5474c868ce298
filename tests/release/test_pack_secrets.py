"""A secret in a file that is to be packed is found, and its line; nothing else is one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each

from perfgate.core.redaction import mask_arguments, mask_environment, redact
from perfgate.release.pack_secrets import Suspects, suspects

TOKEN = "hf_" + "QwErTy12" * 4 + "Ab"
BEGIN = "-----BEGIN PRIVATE KEY-----"  # pragma: allowlist secret
KEY = f"{BEGIN}\n{'Kx9w' * 15}Q=\n-----END PRIVATE KEY-----"
SECRETS = [
    f"ready, {TOKEN}.",
    "get https://me:pass-word@hub.example/x",  # pragma: allowlist secret
    "Authorization: Bearer abc123def456",
    f'{{"api_key": "{TOKEN}"}}',
    KEY,
]
LINE = b"2026-11-23 step: 17 tokens/s, eos_token_id=2\n"


@each("secret", SECRETS, ids=range(len(SECRETS)))
def test_a_secret_is_found_in_its_line(secret: str) -> None:
    for before in (0, 7):
        content = LINE * before + secret.encode() + b"\n" + LINE * 3
        assert suspects([content]).secret == before + 1
    assert suspects([LINE * 10]) == Suspects()


def test_the_end_of_a_key_is_known_in_the_next_part() -> None:
    line = b" " * 1023 + b"\n"
    lines = KEY.splitlines()[1:]
    content = line * 1024 + lines[0].encode() + b"\n"
    assert suspects([content, lines[1].encode() + b"\n"]).secret == 1025


@given(st.integers(1, 200), st.integers(0, 300))
def test_blocks_of_any_size_say_the_same(size: int, before: int) -> None:
    content = b"a b\n" * before + f"x {TOKEN}\n".encode() + b"c\n" * 5
    assert suspects(in_blocks(content, size)).secret == before + 1


def in_blocks(content: bytes, size: int) -> list[bytes]:
    return [content[at : at + size] for at in range(0, len(content), size)]


def test_a_secret_in_a_later_part_or_a_line_without_an_end_is_found() -> None:
    before = 2**20 // len(LINE) + 100
    content = LINE * before + f"{TOKEN}\n".encode()
    assert suspects(in_blocks(content, 70_001)).secret == before + 1
    assert suspects([b"x" * 1_100_000, f" {TOKEN}".encode()]).secret == 1


@each(
    "text",
    [
        b"",
        b'export HF_TOKEN="${HF_TOKEN:?its value is not written down, set it yourself}"\n',
        b"api_key=*** and HF_TOKEN=None\n",
        b"\xff\xfe\x00 binary \x80\n",
        b"max_num_tokens=8192 eos_token='</s>'\n",
        b'{"time_to_second_token": {\n "unit": "ms"}, "x_api_key": [\n]}\n',
        b"Prefill batch, #new-token: 8192, #cached-token: 1048576, token usage: 0.01\n",
        b"{'admin_api_key': None, 'watermark_key': '<redacted>', 'hf_token': ''}\n",
        b'{"retries of api_key": 3, "arguments": ["--api-key", "***"], "HF_TOKEN": "***"}\n',
    ],
)
def test_of_what_is_no_secret_nothing_is_told(text: bytes) -> None:
    assert suspects([text]) == Suspects()


@each(
    "text",
    [
        "PASSWORD={abcdef}",
        "HF_TOKEN=12345-abcdef",
        "api_key=1234567",
        'password: "12345"',
        "--api-key 1a2b3c4d",
        "GITHUB_TOKEN='***abc'",
        "Authorization: 123 abcdefgh",
        "set-cookie: null-abc",
        "think_end_token='</think>'",
        "the password: everybody knows it",
    ],
)
def test_what_only_has_the_name_of_one_is_told_and_no_secret(text: str) -> None:
    assert suspects([b"\n" + text.encode()]) == Suspects(None, 2)


@each(
    "text",
    [
        f"ready, {TOKEN}.",
        "HF_TOKEN=abcdefgh api_key: 'a b' --password 'x y'",  # pragma: allowlist secret
        "Cookie: lang=en; session=abcdefgh",
        "Authorization: Bearer abc123def456",
        "get https://me:pass-word@hub.example/x?sig=abcdef",  # pragma: allowlist secret
        '{"user": "me", "password": "pw with blanks 7", "n": 1}',  # pragma: allowlist secret
        "args: ['--api-key', 'abcdefgh', '--port', '1']",
    ],
)
def test_what_was_redacted_is_none(text: str) -> None:
    plain = {"text": redact(text), "arguments": mask_arguments(["--api-key", "x", "-u", "a:bcd"])}
    plain["environment"] = mask_environment({"HF_TOKEN": "x", "HF_ENDPOINT": "http://a:b@c/d"})
    for written in (json.dumps(plain), json.dumps(plain, indent=1), redact(text), str(plain)):
        assert suspects([written.encode()]) == Suspects(), written


def test_what_this_process_knows_for_a_secret_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert suspects([b"said swordfish-7 to it\n"]) == Suspects()
    monkeypatch.setenv("HUB_PASSWORD", "swordfish-7")
    assert suspects([b"said swordfish-7 to it\n"]).secret == 1
    monkeypatch.setenv("HUB_PASSWORD", "20261123")
    assert suspects([b"of 20261124\nof 20261123\n"]).secret == 2
