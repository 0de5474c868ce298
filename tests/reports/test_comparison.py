"""A comparison as text, Markdown and JSON."""

import json
from pathlib import Path

import pytest
from sides_made import measurement, run, throughputs

from perfgate.judging.comparison.comparison import Comparison, ComparisonOptions, compare
from perfgate.judging.comparison.sides import read_side
from perfgate.reports.comparison import SCHEMA_VERSION, SYNTHETIC, markdown, plain, text

VALUES = {"output_throughput": 100.0, "ttft_p99_ms": 50.0}


def made(tmp_path: Path, factor: float = 1.0, **changes: object) -> Comparison:
    new = {"output_throughput": 95.0 * factor, "ttft_p99_ms": 90.0, "duration_s": 7.0}
    a = run(tmp_path / "a", [measurement({**VALUES, "e2el_mean_ms": 5.0})])
    b = run(
        tmp_path / "b",
        [measurement(new, 1, **changes), measurement(new, 2, **changes)],
    )
    return compare(read_side(a), read_side(b), ComparisonOptions())


class TestText:
    def test_says_who_is_compared_and_how_it_ended(self, tmp_path: Path) -> None:
        lines = text(made(tmp_path)).splitlines()
        assert lines[0] == (f"A (reference): {tmp_path}/a: run a of 2026-11-20, llama.cpp 1.3.0")
        assert lines[1].startswith(f"B (new): {tmp_path}/b: ")
        assert lines[3] == "REGRESSION: small-serve-c1"
        assert lines[-1] == "exit status 1: at least one regression"

    def test_has_a_row_per_metric_and_a_sentence_per_judgement(self, tmp_path: Path) -> None:
        found = made(tmp_path)
        lines = text(found).splitlines()
        head = next(line for line in lines if line.startswith("metric"))
        assert head.split() == ["metric", "A", "B", "change", "interval", "band", "verdict"]
        judged = next(line for line in lines if line.startswith("output_throughput ["))
        assert judged.split()[2:6] == ["100", "95", "-5.0", "%"]
        assert judged.endswith("REGRESSION")
        reported = next(line for line in lines if line.startswith("ttft_p99_ms ["))
        assert reported.endswith("reported, a loss")
        (judgement,) = found.probes[0].judgements
        assert f"output_throughput: {judgement.reason}" in lines
        assert (
            lines.count(
                "warning: 1 reported metric marked 'reported, a loss': of such losses nine in "
                "ten are real on average"
            )
            == 1
        )
        assert "only in A, not compared: e2el_mean_ms" in lines
        assert "only in B, not compared: duration_s" in lines
        assert "A: 1 fresh start, B: 2 fresh starts" in lines


class TestSynthetic:
    def test_is_the_first_thing_to_read(self, tmp_path: Path) -> None:
        found = made(tmp_path, 1.1, synthetic=True)
        assert text(found).startswith(f"{SYNTHETIC}\n")
        assert markdown(found).startswith(f"# perfgate compare\n\n**{SYNTHETIC}.**\n")
        assert plain(found)["synthetic"] is True
        assert plain(found)["exit_status"] == 13


def test_markdown_is_a_table_that_renders(tmp_path: Path) -> None:
    lines = markdown(made(tmp_path)).splitlines()
    place = lines.index("| metric | A | B | change | interval | band | verdict |")
    assert lines[place - 1] == ""
    assert lines[place - 2] == "## REGRESSION: `small-serve-c1`"
    bars = {line.count("|") for line in lines[place : place + 4]}
    assert bars == {8}
    assert lines[-1] == "- exit status 1: at least one regression"


def test_json_has_all_of_it(tmp_path: Path) -> None:
    found = made(tmp_path)
    values = json.loads(json.dumps(plain(found), allow_nan=False))
    assert values["schema_version"] == SCHEMA_VERSION
    assert set(values) == {
        "schema_version",
        "verdict",
        "exit_status",
        "synthetic",
        "sides",
        "probes",
        "only_in_a",
        "only_in_b",
        "warnings",
    }
    assert values["sides"]["a"]["path"] == str(tmp_path / "a")
    assert values["sides"]["b"]["kind"] == "run"
    (probe,) = values["probes"]
    assert probe["starts"] == {"a": 1, "b": 2}
    assert probe["judgements"][0]["metric"] == "output_throughput"
    assert probe["judgements"][0]["verdict"] == "REGRESSION"
    assert probe["reported"][0]["warned"] is True
    assert (probe["only_in_a"], probe["only_in_b"]) == (["e2el_mean_ms"], ["duration_s"])


@pytest.mark.parametrize("show", [text, markdown])
def test_nothing_in_common(tmp_path: Path, show) -> None:  # type: ignore[no-untyped-def]
    a = throughputs(tmp_path / "a", 100.0)
    b = throughputs(tmp_path / "b", 100.0, scenario="other")
    found = compare(read_side(a), read_side(b), ComparisonOptions())
    shown = show(found)
    assert "only in A, not compared: small-serve-c1" in shown
    assert "only in B, not compared: other-c1" in shown
    assert "exit status 12: " in shown
    assert plain(found)["verdict"] == "NOT_COMPARABLE"
