"""Logs of any size: the lines around a report are found, the rest is not held."""

import os
import tracemalloc
from io import BytesIO
from pathlib import Path

import pytest
from bench_reports import Run, as_text

from perfgate.clients import trtllm_bench_text
from perfgate.clients.logs import left, logged
from perfgate.clients.report_lines import lines_of, number
from perfgate.clients.report_log import BLOCK, MOST_BLOCKS, report_lines, telling_lines
from perfgate.core.errors import RunError
from perfgate.core.raw_log import LONGEST_LINE
from perfgate.core.untrusted_files import UntrustedFile

WORDS = trtllm_bench_text.WORDS
NOISE = b"INFO: a request was answered, and nothing is wrong\n"


def noise(size: int) -> bytes:
    return NOISE * (size // len(NOISE))


@pytest.mark.parametrize("cut", range(0, 4000, 800))
def test_a_report_is_found_across_blocks_with_its_line_numbers(cut: int) -> None:
    printed = as_text(Run())
    before = noise(3 * BLOCK - cut)
    lines = report_lines(BytesIO(before + printed.encode() + noise(3 * BLOCK)), WORDS)
    found = trtllm_bench_text.parse(lines)
    assert found == trtllm_bench_text.parse(lines_of(printed))
    begin, wanted = next((x.number, x.text) for x in lines_of(printed) if x.text)
    first = next(line for line in lines if line.text == wanted)
    assert first.number == before.count(b"\n") + begin


def test_two_reports_far_apart_are_two() -> None:
    printed = as_text(Run()).encode()
    log = printed + noise(5 * BLOCK) + printed
    with pytest.raises(RunError, match="2 reports in one file"):
        trtllm_bench_text.parse(report_lines(BytesIO(log), WORDS))


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


def test_telling_lines_come_with_the_numbers_that_editors_show() -> None:
    log = b"a\nError one\r\n" + noise(2 * BLOCK) + b"ERROR \xff two"
    found = list(telling_lines(BytesIO(log), ["error"]))
    assert found == [(2, "Error one\r"), (3 + 2 * BLOCK // len(NOISE), "ERROR � two")]


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
