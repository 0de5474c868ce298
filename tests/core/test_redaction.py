"""Redaction: what is masked by value, name, place and shape, what is escaped, and what stays."""

import base64
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each

from perfgate.core.redaction import (
    control_character_in,
    escaped,
    is_secret,
    mask_arguments,
    mask_environment,
    mask_plain,
    redact,
    redacted_lines,
    remember,
    visible,
)

KEY = "\n".join("MIIEpAIBAAKCAQEA" * 4 for _ in range(5))
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}\nAbCd1234==\n-----END RSA PRIVATE KEY-----"


def test_environment_keeps_its_names_and_masks_values_of_secrets() -> None:
    own = "PERFGATE_PROGRAM_LM_EVAL"
    masked = mask_environment({"HF_TOKEN": "hf_x", own: "docker run -e HF_TOKEN=hf_x lm", "A": "b"})
    assert masked == {"HF_TOKEN": "***", own: "docker run -e HF_TOKEN=*** lm", "A": "b"}


@each(
    ("given", "written"),
    [
        (["--api-key", "k1", "rest"], ["--api-key", "***", "rest"]),
        (["--api-key=k1=", "rest"], ["--api-key=***", "rest"]),
        (["--password=two words"], ["--password=***"]),
        (["--use-token", "--verbose"], ["--use-token", "--verbose"]),
        (["--api-key", "-k1"], ["--api-key", "***"]),
        (["--private_key", "k1"], ["--private_key", "***"]),
        (["-u", "me:k1"], ["-u", "me:***"]),
        (["-ume:k1"], ["-ume:***"]),
        (["--user=me:k1"], ["--user=me:***"]),
        (["PASSWORD=two words"], ["PASSWORD=***"]),
        (["environment.PASSWORD=two words"], ["environment.PASSWORD=***"]),
        (["--index-url", "https://me:k1@host/x"], ["--index-url", "https://***@host/x"]),
        (["--token", "--api-key", "k1"], ["--token", "--api-key", "***"]),
        (["HF_TOKEN=k1"], ["HF_TOKEN=***"]),
        (["--inject", "environment.HF_TOKEN=k1"], ["--inject", "environment.HF_TOKEN=***"]),
        (["--header", "Authorization: Bearer k1"], ["--header", "Authorization: ***"]),
        (["--extra", '{"api_key": "k1", "n": 2}'], ["--extra", '{"api_key": "***", "n": 2}']),
        (["--model_args=model=m,api_key=k1"], ["--model_args=model=m,api_key=***"]),
    ],
)
def test_command_lines_lose_their_secrets(given: list[str], written: list[str]) -> None:
    assert mask_arguments(given) == written


@each(
    "words",
    [
        ["--max-num-tokens", "8192", "--max-num-tokens=8192"],
        ["--tokenizer", "/models/tokenizer", "--tokenizer=/models/x"],
        ["-k", "token", "tests/test_secrets.py::test_it"],
        ["token", "next"],
        ["-u", "1000:1000", "--user=1000:1000"],
        ["http://127.0.0.1:8000/v1/models", "http://host:8000/a@b"],
    ],
)
def test_other_words_stay_as_they_are(words: list[str]) -> None:
    assert mask_arguments(words) == words


@each(
    ("text", "shown"),
    [
        ("ghp_" + "a1B2" * 9, "***"),
        ("(gho_" + "a1B2" * 9 + ")", "(***)"),
        ("github_pat_" + "11AB_" * 16, "***"),
        ("glpat-" + "x9_Yz" * 4, "***"),
        ("hf_" + "AbCd" * 8 + "xy", "***"),
        ("nvapi-" + "Zz-9_" * 12, "***"),
        ("AKIA" + "ABCD" * 4, "***"),
        ("ASIA" + "ABCD" * 4 + " rest", "*** rest"),
        ("xoxp-" + "1234567890-" * 3, "***"),
        ("https://hooks.slack.com/services/T00/B00/XXXX", "https://***"),
        ("https://a.webhook.office.com/webhookb2/1-2@3/IncomingWebhook/x", "https://a.***"),
        ("https://outlook.office.com/webhook/1-2@3/IncomingWebhook/x", "https://***"),
        ("https://outlook.office365.com/webhook/1-2@3/IncomingWebhook/x", "https://***"),
        ('[["x-api-key", "k1"], ["accept", "x"]]', '[["x-api-key", "***"], ["accept", "x"]]'),
        ("('X-Api-Key' ,\n 'k1')", "('X-Api-Key' ,\n '***')"),
        ("(u'x-api-key', u'k1')", "(u'x-api-key', u'***')"),
        ("('Authorization', 'Bearer k1')", "('Authorization', '***')"),
        (
            "[(b'x-api-key', b'k1'), (b'accept', b'*/*')]",
            "[(b'x-api-key', b'***'), (b'accept', b'*/*')]",
        ),
        ("DB_PW=k1 n=2", "DB_PW=*** n=2"),
        ("DBPW=k1, PW: k2", "DBPW=***, PW: ***"),
        ("sk-ant-" + "Ab1-" * 8, "***"),
        ("AIza" + "Sy_D-" * 7, "***"),
        ("eyJ" + "a" * 20 + ".eyJ" + "b" * 20 + "." + "c" * 20 + "!", "***!"),
        ("npm_" + "a1B2" * 9, "***"),
        (PEM, "***"),
        (f"before {PEM} after", "before *** after"),
        (PEM.replace("\n", "\\n"), "***"),
        (PEM.partition("\n-----END")[0] + "\nlast words", "***\nlast words"),
        (PEM.partition("KEY-----\n")[2], "***"),
        ("Bearer abc.def1234", "Bearer ***"),
        ("Basic dXNlcjpwYXNz=", "Basic ***"),
        ("https://user:PASSWORD@hub/x", "https://***@hub/x"),
        ("https://user:PASS@WORD@hub/x", "https://***@hub/x"),
        ("https://user:PA/SS@hub/x", "https://***@hub/x"),
        ("https://t0ken@hub", "https://***@hub"),
        ("redis://:PASSWORD@host:6379/0", "redis://***@host:6379/0"),
        ("https://b/c?sv=1&sig=aB%2F&se=2099", "https://b/c?sv=***&sig=***&se=***"),
        ("?X-Amz-Signature=abc&x=1", "?X-Amz-Signature=***&x=1"),
        ("?a=1&key=abc#top", "?a=1&key=***#top"),
        ("?access_token=abc&x=1", "?access_token=***&x=1"),
        ("password=abc", "password=***"),
        ("password: 'a b, c' next", "password: '***' next"),
        ('{"db_password":"a b","n":1}', '{"db_password":"***","n":1}'),
        ('{\\"api_key\\": \\"k1\\", 2}', '{\\"api_key\\": \\"***\\", 2}'),
        ("time: HF_TOKEN=k1 x=2", "time: HF_TOKEN=*** x=2"),
        ("Authorization: Digest a=1, b=2", "Authorization: ***"),
        ("Set-Cookie: a=1; b=2", "Set-Cookie: ***"),
        ("serve --api-key k1 --port 1", "serve --api-key *** --port 1"),
        ("Namespace(api_key='k1', port=1)", "Namespace(api_key='***', port=1)"),
    ],
)
def test_secrets_are_masked_wherever_they_stand(text: str, shown: str) -> None:
    assert redact(text) == shown


@each(
    "text",
    [
        'INFO: 127.0.0.1:52341 - "POST /v1/completions HTTP/1.1" 200 OK',
        "max_num_tokens: 8192, max_tokens=16, tokenizer='gpt2', eos_token_id=2",
        "Mean time_per_output_token: 12.5 ms; se=0.05, key=value",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "sha256:" + "0123456789abcdef" * 4,
        "h200-r1-fp8-max-throughput-c3072 risk-free task-oriented-something-long",
        "Bearer authentication, basic understanding of tokens",
        "/models/deepseek-ai/DeepSeek-R1-0528-FP4 at http://localhost:8000/v1",
        "argument --api-key: expected one argument",
        "Namespace(api_key=None, use_auth=True, proxy_auth=None)",
        ': "${HF_TOKEN:?a secret, set it yourself}"',
        "a path/to@version and user@host",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


def test_a_known_value_is_masked_however_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    value = 'a/b "c" d'
    monkeypatch.setenv("GPG_PASSPHRASE", value)
    in_base64 = base64.b64encode(value.encode()).decode()
    assert redact(f"x{value}y") == "x***y"
    assert redact("a%2Fb%20%22c%22%20d") == "***"
    assert redact('a/b \\"c\\" d') == "***"
    assert redact(in_base64) == "***"
    monkeypatch.setenv("SSH_KEY", "first line\nsecond line\n")
    assert redact("a second line b") == "a *** b"
    monkeypatch.setenv("https_proxy", "http://me:proxy-pass@host:1")
    assert redact("login me proxy-pass") == "login me ***"
    monkeypatch.setenv("HF_TOKEN", "test")  # so short that it would mask words
    assert redact("a test of it") == "a test of it"


def test_what_is_known_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("opaque-one", "opaque-two"):
        monkeypatch.setenv("MY_TOKEN", value)
        assert redact(f"a {value} b") == "a *** b"
    assert redact("a opaque-one b") == "a opaque-one b"
    monkeypatch.delenv("MY_TOKEN")
    assert redact("a opaque-two b") == "a opaque-two b"
    monkeypatch.setattr(os, "environ", {"MY_TOKEN": "opaque-three"})
    assert redact("a opaque-three b") == "a *** b"


def test_what_a_program_was_given_is_known_from_then_on() -> None:
    assert redact("opaque-one opaque-two opaque-three") == "opaque-one opaque-two opaque-three"
    remember({"MY_TOKEN": "opaque-one"}, ["x", "--api-key", "opaque-two", "--secret=opaque-three"])
    assert redact("opaque-one opaque-two opaque-three") == "*** *** ***"


def test_a_key_over_several_lines_is_one_masked_line() -> None:
    assert redacted_lines(["before", *PEM.splitlines(), "after"]) == ("before", "***", "after")
    assert redacted_lines([]) == ()


def test_plain_values_are_masked_by_their_fields() -> None:
    environment = {"HF_TOKEN": "k1", "N": "https://a:b@c"}
    masked = {"HF_TOKEN": "***", "N": "https://***@c"}
    plain = {"environment": environment, "max_num_tokens": 5, "l": ["x"]}
    assert mask_plain(plain) == {**plain, "environment": masked}


@each(
    ("text", "shown"),
    [
        ("a\x1b]0;owned\x07b", "a\\x1b]0;owned\\x07b"),
        ("\x00\x08\x7f\x9b31m", "\\x00\\x08\\x7f\\x9b31m"),
        ("\u202egnp.exe\u2066", "\\u202egnp.exe\\u2066"),
        ("zero\u200bwidth\ufeff\U000e0041", "zero\\u200bwidth\\ufeff\\U000e0041"),
        ("\ud800", "\\ud800"),
        ("a\tb\nc – ü 漢 [red]", "a\tb\nc – ü 漢 [red]"),
    ],
)
def test_nothing_that_a_terminal_obeys_is_left(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_colours_are_left_out_and_hide_no_secret() -> None:
    assert redact("\x1b[31mghp_\x1b[0m" + "a1B2" * 9) == "***"


@settings(max_examples=30)
@given(st.text())
def test_what_is_redacted_stays_as_it_is(text: str) -> None:
    once = redact(text)
    assert visible(once) == once
    assert not any(ord(one) < 32 and one not in "\t\n" for one in once)


SECRETS = """
    HF_TOKEN GITHUB_TOKEN --token --api-key OPENAI_API_KEY apikey PGPASSWORD
    AWS_SECRET_ACCESS_KEY Authorization GOOGLE_APPLICATION_CREDENTIALS GITHUB_PAT
    AZURE_DEVOPS_EXT_PAT INPUT_TOKEN CI_JOB_JWT CI_JOB_JWT_V2 SESSION_COOKIE Set-Cookie
    session_key --private_key privateKey SSH_PRIVATE_KEY GPG_PASSPHRASE SIGNING_KEY clientSecret
    x-api-key Proxy-Authorization AWS_ACCESS_KEY_ID WANDB_KEY MYSQL_PWD DB_PASS SSHPASS
    DB_PW DBPW MYSQLPW PW
    NPM_CONFIG__AUTH REGISTRY_AUTH SLACK_WEBHOOK_URL hfToken API_TOKENS
"""
OTHERS = """
    max_num_tokens --max-num-tokens --tokenizer TOKENIZERS_PARALLELISM tokenized_requests --key
    PERFGATE_PROGRAM_LM_EVAL HF_HOME PATH PWD OLDPWD HF_TOKEN_PATH SSH_AUTH_SOCK GIT_ASKPASS
    GIT_AUTHOR_NAME time_per_output_token first_token_ms eos_token_id kv_cache_key --sort-key
    public_key second_pass pass@1 CUDA_VISIBLE_DEVICES NCCL_IB_PKEY patience
"""


@each("name", [*SECRETS.split(), *OTHERS.split()])
def test_a_secret_is_known_by_its_name_and_what_sounds_like_one_is_none(name: str) -> None:
    assert is_secret(name) == (name in SECRETS.split())


@each("text", ["", "two words", "Zoë’s “№1”", "日本", "العربية", "a\xa0b", "👩‍🚀"])
def test_what_people_write_has_none(text: str) -> None:
    assert control_character_in(text) is None
    assert escaped(text) == text


@each(
    ("text", "found"),
    [
        ("a\nb", r"\n"),
        ("\x1b[2J", r"\x1b"),
        ("\x7f", r"\x7f"),
        ("\x85", r"\x85"),
        ("\u2028", r"\u2028"),
        ("\u202e", r"\u202e"),
        ("\ud800", r"\ud800"),
    ],
)
def test_the_first_is_told_as_an_escape(text: str, found: str) -> None:
    assert control_character_in(text) == found
    assert found in escaped(text)
    assert text not in escaped(text)
