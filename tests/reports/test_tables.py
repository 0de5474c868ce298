"""Tables in narrow terminals: every word of every cell is there, and no line is too long."""

import pytest

from perfgate.reports.tables import terminal_width, text_table

COLUMNS = ("metric", "baseline", "change", "note")
ROWS = [
    ("output_throughput", "58.85", "-62.8 %", "the runs after the first confirm it"),
    ("server_cpu_s_per_1k_tokens", "16.94", "+265.4 %", ""),
]
WIDE = """\
metric                      baseline    change  note
output_throughput              58.85   -62.8 %  the runs after the first confirm it
server_cpu_s_per_1k_tokens     16.94  +265.4 %"""
WRAPPED = """\
metric                      baseline    change  note
output_throughput              58.85   -62.8 %  the runs after the
                                                first confirm it
server_cpu_s_per_1k_tokens     16.94  +265.4 %"""
BLOCKS = """\
output_throughput
  baseline: 58.85
  change: -62.8 %
  note: the runs after the first confirm
    it

server_cpu_s_per_1k_tokens
  baseline: 16.94
  change: +265.4 %"""


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)


def table(width: int | None = None) -> str:
    return text_table(COLUMNS, ROWS, right=(1, 2), width=width)


@pytest.mark.parametrize(
    ("width", "text"), [(None, WIDE), (200, WIDE), (83, WIDE), (70, WRAPPED), (40, BLOCKS)]
)
def test_as_wide_as_the_terminal(width: int | None, text: str) -> None:
    assert table(width) == text
    assert width is None or max(map(len, text.splitlines())) <= width


def test_the_environment_says_how_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert terminal_width() == 40
    assert table() == BLOCKS
    for nothing in ("", "0", "wide", "-3"):
        monkeypatch.setenv("COLUMNS", nothing)
        assert terminal_width() is None
        assert table() == WIDE


def test_what_a_worker_is_told_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    assert table() == WIDE


def test_lines_tabs_and_wide_characters_in_cells_are_set_and_not_cut() -> None:
    found = text_table(("a", "b"), [("\tone\ntwo", "1\n"), ("漢", "22 ")], right=(1,), ruled=True)
    assert found.splitlines() == [
        "a               b",
        "─────────────────",
        "        one     1",
        "two",
        "漢             22",
    ]
