"""Logs of any size: lines without what launchers, loggers and terminals add, around a report."""

import os
import tracemalloc
from io import BytesIO
from pathlib import Path

import pytest
from bench_reports import Run, as_text
from printed_lines import lines_of
from refusals import refused
from tables import each

from perfgate.clients.logs import (
    BLOCK,
    MOST_BLOCKS,
    left,
    logged,
    report_lines,
)
from perfgate.clients.report_tables import number, positive
from perfgate.clients.trtllm_bench_report import WORDS, parse_printed
from perfgate.core.errors import RunError
from perfgate.core.files.untrusted_files import UntrustedFile
from perfgate.core.programs.raw_log import LONGEST_LINE

PRINTED = "Total Latency (ms):                               912656.9938"
NOISE = b"INFO: a request was answered, and nothing is wrong\n"


def noise(size: int) -> bytes:
    return NOISE * (size // len(NOISE))


def text(raw: str) -> str:
    (line,) = lines_of(raw)
    return line.text


@each(
    "prefix",
    [
        *("    ", "[08/05/2025-10:11:12] [TRT-LLM] [I] ", "[TRT-LLM] [RANK 0] [I] "),
        *("[TensorRT-LLM][INFO] ", "[1,0]<stdout>:", "0: ", "12: [TRT-LLM] [I] "),
        *("2025-08-05T10:11:12.123456Z ", "2025/08/05 10:11:12 ", "\x1b[32m"),
        "\x1b[1;38;5;196m[TRT-LLM] [E] \x1b[0m",
    ],
)
@each("end", ["", "   ", "\t", "\r", "\x1b[0m"])
def test_what_surrounds_a_line_is_taken_away(prefix: str, end: str) -> None:
    assert text(prefix + PRINTED + end) == PRINTED


def test_a_line_is_as_people_see_it() -> None:
    """A bar in its last state, with the number that editors show, and its label to the colon."""
    assert text("  0%| | 0/4\r 50%| | 2/4\r100%| | 4/4") == "100%| | 4/4"
    lines = lines_of("one\r\ntwo\x0bstill two\n\nfour\n")
    assert [line.number for line in lines if line.text] == [1, 2, 4]
    assert lines[3].text == "four"
    (line,) = lines_of("\x1b[31m[TRT-LLM] [E] out of luck\x1b[0m  ")
    assert line.evidence == "[TRT-LLM] [E] out of luck"
    labelled = {
        "Dataset Path:         C:/data.txt ": ("Dataset Path", "C:/data.txt"),
        "[TTFT] P50    : 52269.7072": ("[TTFT] P50", "52269.7072"),
        "no label here": None,
    }
    assert {raw: lines_of(raw)[0].labelled() for raw in labelled} == labelled


@each(
    ("value", "expected"),
    [
        *((" 43146.2042  ", 43146.2042), ("43,146.2042", 43146.2042), ("1,234,567", 1234567.0)),
        *(("2.3129E+15", 2.3129e15), ("1e-05", 1e-5), ("90.00%", 90.0), ("-3", -3.0), (".5", 0.5)),
        *((one, None) for one in ("", "N/A", "None", "<value>", "[result]", "1,23", "1_000")),
        *((one, None) for one in ("12 ms", "0x10", "1.2.3")),
    ],
)
def test_numbers_as_reports_write_them(value: str, expected: float | None) -> None:
    assert number(value) == expected


@each("value", ["0", "0.0000", "-1.5", "nan", "inf", "N/A", "", None, True, 0.0])
def test_a_metric_is_above_zero_and_finite(value: object) -> None:
    error = refused(positive, value, "Total Latency (ms): it", error=RunError)
    assert (error.failure, error.evidence) == ("no_metrics", ("Total Latency (ms): it",))


@pytest.mark.parametrize("cut", range(0, 4000, 800))
def test_a_report_is_found_across_blocks_with_its_line_numbers(cut: int) -> None:
    printed = as_text(Run())
    before = noise(3 * BLOCK - cut)
    lines = report_lines(BytesIO(before + printed.encode() + noise(3 * BLOCK)), WORDS)
    assert parse_printed(lines) == parse_printed(lines_of(printed))
    begin, wanted = next((x.number, x.text) for x in lines_of(printed) if x.text)
    first = next(line for line in lines if line.text == wanted)
    assert first.number == before.count(b"\n") + begin


def test_two_reports_far_apart_are_two() -> None:
    printed = as_text(Run()).encode()
    lines = report_lines(BytesIO(printed + noise(5 * BLOCK) + printed), WORDS)
    refused(parse_printed, lines, error=RunError, match="2 reports in one file")


def test_the_last_line_is_there_whatever_it_says() -> None:
    lines = report_lines(BytesIO(noise(4 * BLOCK) + b"the end"), WORDS)
    assert lines[-1].text == "the end"
    assert lines[-1].number == 4 * BLOCK // len(NOISE) + 1
    assert len(lines) < 2 * BLOCK // len(NOISE)


@pytest.mark.parametrize("content", [b"\0" * 40 * BLOCK, b"x" * 40 * BLOCK, b"1/2\r" * 10 * BLOCK])
def test_a_line_without_end_is_not_held(content: bytes) -> None:
    log = BytesIO(content + b"\r100%")  # a bar's last state counts
    tracemalloc.start()
    (line,) = report_lines(log, WORDS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (line.number, line.text) == (1, "100%")
    assert len(line.raw) <= LONGEST_LINE
    assert peak < 16 * BLOCK


def test_words_all_over_a_large_log_are_refused() -> None:
    log = (b"= PERFORMANCE OVERVIEW\n" + b"x" * BLOCK + b"\n") * (MOST_BLOCKS + 2)
    with pytest.raises(RunError, match="words of reports stand in more than 32 MiB"):
        report_lines(BytesIO(log), WORDS)


@pytest.mark.timeout(30)  # each would take minutes if it were tried from every place
@pytest.mark.parametrize(
    "line",
    [" " * 60_000 + "x" + " " * 5000, "0: " * 20_000, "x" + " " * 60_000 + "y", "1" * 60_000 + "x"],
)
def test_no_line_takes_long(line: str) -> None:
    (found,) = lines_of(line)
    found.labelled()
    number(found.text)


@pytest.mark.timeout(30)
def test_what_a_program_left_is_a_regular_file_within_a_limit(tmp_path: Path) -> None:
    with (tmp_path / "report.json").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(RunError, match="too large to be read"):
        left(tmp_path / "report.json")
    (tmp_path / "secret").write_text("root:x:0:0")
    (tmp_path / "link.json").symlink_to("secret")
    os.mkfifo(tmp_path / "fifo.json")
    for name in ("link.json", "fifo.json"):
        with pytest.raises(UntrustedFile):
            left(tmp_path / name)
    (tmp_path / "benchmark.out").symlink_to("secret")
    with pytest.raises(UntrustedFile):
        list(logged(tmp_path, "benchmark", WORDS))


def test_the_folder_of_a_run_may_be_reached_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "results").symlink_to("real")
    (tmp_path / "real" / "benchmark.out").write_text("hello\n")
    ((line,),) = logged(tmp_path / "results", "benchmark", WORDS)
    assert line.text == "hello"
