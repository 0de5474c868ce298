"""Raw logs: their ends, their lines within limits, and that they are read by pieces."""

import tracemalloc

import pytest

from perfgate.core.failures import classify_logs
from perfgate.core.programs import raw_log
from perfgate.core.programs.raw_log import (
    LONGEST_LINE,
    LONGEST_SHOWN,
    end_of,
    lines,
    lines_with,
    tail,
)


@pytest.fixture
def log(tmp_path):
    return tmp_path / "server.err"


@pytest.mark.parametrize(
    ("content", "last"),
    [
        (b"", ()),
        (b"one", ("one",)),
        (b"one\ntwo\n", ("one", "two")),
        (b"one\r\ntwo\r10%\r20%\nlast", ("two", "10%", "20%", "last")),
        (b"\xff\x00\n", ("\ufffd\\x00",)),
        (b"\n".join(b"%d" % n for n in range(100_000)), ("99996", "99997", "99998", "99999")),
    ],
)
def test_the_last_lines(log, content: bytes, last: tuple[str, ...]) -> None:
    log.write_bytes(content)
    assert tail(log, 4) == last


def test_there_are_none_of_a_log_that_is_gone_or_no_file(log, tmp_path) -> None:
    assert tail(log, 4) == ()
    assert tail(tmp_path, 4) == ()
    assert [*lines(log)] == []
    assert [*lines_with(log, ["error"])] == []
    assert end_of(log, 10) == ""


def test_a_link_in_the_place_of_a_log_is_told_and_not_read(log, tmp_path) -> None:
    (tmp_path / "other").write_text("of somebody else")
    log.symlink_to(tmp_path / "other")
    (told,) = tail(log, 4)
    assert str(log) in told
    assert "of somebody else" not in told


def test_the_last_lines_are_redacted_with_what_stands_before_them(log) -> None:
    key = "\n".join("MIIEpAIBAAKCAQEA" * 4 for _ in range(25))
    log.write_text(f"-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\npassword=abc\n")
    assert tail(log, 5) == ("***", "password=***")


def test_a_line_without_end_is_cut_between_words(log) -> None:
    log.write_bytes(b"nvapi-" + b"x" * 6_000_000 + b" end")
    assert tail(log, 5) == ("… end",)
    log.write_bytes(b"x " * 3000)
    (shown,) = tail(log, 5)
    assert len(shown) <= LONGEST_SHOWN + 2


def test_where_a_line_is_cut_no_half_of_a_secret_is_shown(log) -> None:
    """What is masked before it makes the line short enough for its end to be shown."""
    masked = " ".join(["nvapi-" + "x" * 490] * 7)
    token = "hf_" + "AbCd" * 10
    for between in (" ", "','"):
        calm = "y" * (3990 - len(masked) - len(between))
        log.write_text(f"{masked} {calm}{between}{token}\n")
        (shown,) = tail(log, 5)
        assert "hf_" not in shown
        assert calm in shown


def test_lines_are_limited(log) -> None:
    log.write_bytes(b"a " * LONGEST_LINE + b"\nshort\n" + b"b" * 5_000_000 + b"\nend")
    first, short, third, end = lines(log)
    assert len(first) < LONGEST_LINE
    assert short == "short"
    assert third == ""  # one word: it may be half a secret
    assert end == "end"


def test_lines_keep_their_numbers_where_blocks_are_left_out(log) -> None:
    calm = b"all is well\r\n" * 200_000
    log.write_bytes(calm + b"an Error\n" + calm)
    found = dict(lines_with(log, ["error"]))
    assert found[200_001] == "an Error"
    assert len(found) < 200_000


def test_states_of_a_bar_share_the_number_that_editors_show(log) -> None:
    log.write_bytes(b"a\n 0%\r50%\r100%\nError one\r\nError \xff two")
    expected = [(1, "a"), (2, " 0%"), (2, "50%"), (2, "100%"), (3, "Error one"), (4, "Error � two")]
    assert [*lines_with(log, ["error"])] == expected
    with log.open("rb") as file:
        assert [*lines_with(file, ["error"])] == expected


def test_the_middle_of_a_very_long_log_is_left_out(log, monkeypatch) -> None:
    monkeypatch.setattr(raw_log, "MOST_SEARCHED", 4 * 1024 * 1024)
    calm = b"x" * 99 + b"\n"
    log.write_bytes(b"error 1\n" + calm * 60_000 + b"error 2\n" + calm * 60_000 + b"error 3\n")
    found = [(number, line) for number, line in lines_with(log, ["error"]) if "error" in line]
    assert found == [(1, "error 1"), (120_003, "error 3")]


def test_a_long_log_is_never_whole_in_memory(log) -> None:
    with log.open("wb") as file:
        for _ in range(9):
            file.write((b"[TRT-LLM] [I] " + b"all is well, " * 80 + b"\n") * 1000)
        file.write(b"CUDA out of memory. Tried to allocate 2.00 GiB password=abcdef\n")
    tracemalloc.start()
    try:
        failure, evidence, _ = classify_logs([log])
        shown = tail(log, 1)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert failure == "oom"
    assert evidence == shown == ("CUDA out of memory. Tried to allocate 2.00 GiB password=***",)
    assert most < 8 * 1024 * 1024 < log.stat().st_size
