"""Redaction: what is masked by value, name, place and shape, what is escaped, and what stays."""

import base64
import os
import re

from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each, tables_of

from perfgate.core import redaction
from perfgate.core.redaction import escaped, mask_arguments, redact, redacted_lines, visible

ROWS = tables_of("redaction")
KEY = "\n".join("MIIEpAIBAAKCAQEA" * 4 for _ in range(5))
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}\nAbCd1234==\n-----END RSA PRIVATE KEY-----"


def test_environment_keeps_its_names_and_masks_values_of_secrets() -> None:
    own = "PERFGATE_PROGRAM_LM_EVAL"
    given = {"HF_TOKEN": "hf_x", own: "docker run -e HF_TOKEN=hf_x lm", "A": "b"}
    masked = {"HF_TOKEN": "***", own: "docker run -e HF_TOKEN=*** lm", "A": "b"}
    assert redaction.mask_environment(given) == masked


@each(("given", "written"), [*ROWS["arguments"], *zip(*[ROWS["other_arguments"]] * 2, strict=True)])
def test_command_lines_lose_their_secrets(given: list[str], written: list[str]) -> None:
    assert mask_arguments(given) == written


PEM_ROWS = [
    (PEM, "***"),
    (f"before {PEM} after", "before *** after"),
    (PEM.replace("\n", "\\n"), "***"),
    (PEM.partition("\n-----END")[0] + "\nlast words", "***\nlast words"),
    (PEM.partition("KEY-----\n")[2], "***"),
]


@each(("text", "shown"), [*ROWS["secrets"], *PEM_ROWS, *((one, one) for one in ROWS["no_secrets"])])
def test_secrets_are_masked_wherever_they_stand_and_nothing_else(text: str, shown: str) -> None:
    whole = re.sub(r"\{(\w[^{}]*)\*(\d+)\}", lambda found: found[1] * int(found[2]), text)
    assert redact(whole) == (whole if text == shown else shown)


def test_a_known_value_is_masked_however_it_is_written(monkeypatch) -> None:
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


def test_what_is_known_follows_the_environment(monkeypatch) -> None:
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
    arguments = ["x", "--api-key", "opaque-two", "--secret=opaque-three"]
    redaction.remember({"MY_TOKEN": "opaque-one"}, arguments)
    assert redact("opaque-one opaque-two opaque-three") == "*** *** ***"


def test_a_key_over_several_lines_is_one_masked_line() -> None:
    assert redacted_lines(["before", *PEM.splitlines(), "after"]) == ("before", "***", "after")
    assert redacted_lines([]) == ()


def test_plain_values_are_masked_by_their_fields() -> None:
    environment = {"HF_TOKEN": "k1", "N": "https://a:b@c"}
    masked = {"HF_TOKEN": "***", "N": "https://***@c"}
    plain = {"environment": environment, "max_num_tokens": 5, "l": ["x"]}
    assert redaction.mask_plain(plain) == {**plain, "environment": masked}


@each(("text", "shown"), [*ROWS["terminal"], ("\ud800", "\\ud800")])
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


@each("name", (ROWS["secret_names"] + ROWS["other_names"]).split())
def test_a_secret_is_known_by_its_name_and_what_sounds_like_one_is_none(name: str) -> None:
    assert redaction.is_secret(name) == (name in ROWS["secret_names"].split())


@each("text", ["", "two words", "Zoë’s “№1”", "日本", "العربية", "a\xa0b", "👩‍🚀"])
def test_what_people_write_has_none(text: str) -> None:
    assert redaction.control_character_in(text) is None
    assert escaped(text) == text


SEEN = ("\n", "\x1b", "\x7f", "\x85", "\u2028", "\u202e", "\ud800")


@each(("text", "found"), [(f"a{one}b", ascii(one)[1:-1]) for one in SEEN])
def test_the_first_is_told_as_an_escape(text: str, found: str) -> None:
    assert redaction.control_character_in(text) == found
    assert found in escaped(text)
    assert text not in escaped(text)
