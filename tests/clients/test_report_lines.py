"""Lines of printed reports: what launchers, loggers and terminals add is taken away."""

import pytest
from tables import each

from perfgate.clients.report_lines import lines_of, number, positive
from perfgate.core.errors import RunError

PRINTED = "Total Latency (ms):                               912656.9938"


def text(raw: str) -> str:
    (line,) = lines_of(raw)
    return line.text


@each(
    "prefix",
    [
        "    ",
        "[08/05/2025-10:11:12] [TRT-LLM] [I] ",
        "[TRT-LLM] [RANK 0] [I] ",
        "[TensorRT-LLM][INFO] ",
        "[1,0]<stdout>:",
        "0: ",
        "12: [TRT-LLM] [I] ",
        "2025-08-05T10:11:12.123456Z ",
        "2025/08/05 10:11:12 ",
        "\x1b[32m",
        "\x1b[1;38;5;196m[TRT-LLM] [E] \x1b[0m",
    ],
)
@each("end", ["", "   ", "\t", "\r", "\x1b[0m"])
def test_what_surrounds_a_line_is_taken_away(prefix: str, end: str) -> None:
    assert text(prefix + PRINTED + end) == PRINTED


def test_a_progress_bar_counts_as_its_last_state() -> None:
    assert text("  0%| | 0/4\r 50%| | 2/4\r100%| | 4/4") == "100%| | 4/4"


def test_lines_keep_the_numbers_that_editors_show() -> None:
    lines = lines_of("one\r\ntwo\x0bstill two\n\nfour\n")
    assert [line.number for line in lines if line.text] == [1, 2, 4]
    assert lines[3].text == "four"


def test_evidence_is_the_line_as_it_stands_without_colours() -> None:
    (line,) = lines_of("\x1b[31m[TRT-LLM] [E] out of luck\x1b[0m  ")
    assert line.evidence == "[TRT-LLM] [E] out of luck"


def test_a_label_ends_at_its_first_colon() -> None:
    (line,) = lines_of("Dataset Path:         C:/data.txt ")
    assert line.labelled() == ("Dataset Path", "C:/data.txt")
    (row,) = lines_of("[TTFT] P50    : 52269.7072")
    assert row.labelled() == ("[TTFT] P50", "52269.7072")
    assert lines_of("no label here")[0].labelled() is None


@each(
    ("value", "expected"),
    [
        ("43146.2042", 43146.2042),
        (" 43146.2042  ", 43146.2042),
        ("43,146.2042", 43146.2042),
        ("1,234,567", 1234567.0),
        ("2.3129E+15", 2.3129e15),
        ("1e-05", 1e-5),
        ("90.00%", 90.0),
        ("-3", -3.0),
        (".5", 0.5),
    ],
)
def test_numbers_as_reports_write_them(value: str, expected: float) -> None:
    assert number(value) == expected


@each(
    "value", ["", "N/A", "None", "<value>", "[result]", "1,23", "1_000", "12 ms", "0x10", "1.2.3"]
)
def test_what_is_no_number_is_none(value: str) -> None:
    assert number(value) is None


@each("value", ["0", "0.0000", "-1.5", "nan", "inf", "N/A", "", None, True, 0.0])
def test_a_metric_is_above_zero_and_finite(value: object) -> None:
    with pytest.raises(RunError) as caught:
        positive(value, "Total Latency (ms): it")
    assert caught.value.failure == "no_metrics"
    assert caught.value.evidence == ("Total Latency (ms): it",)
