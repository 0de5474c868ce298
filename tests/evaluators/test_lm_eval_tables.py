"""lm_eval's scores without its samples: printed tables and lone results files."""

from pathlib import Path
from typing import Any

import pytest

from perfgate.clients.report_lines import lines_of
from perfgate.core.errors import RunError
from perfgate.evaluators.lm_eval_results import (
    is_results,
    is_table,
    parse_results,
    parse_tables,
)

FP8 = """\
|Tasks|Version|     Filter     |n-shot|  Metric   |   |Value |   |Stderr|
|-----|------:|----------------|-----:|-----------|---|-----:|---|-----:|
|gsm8k|      3|flexible-extract|     5|exact_match|↑  |0.9538|±  |0.0058|
|     |       |strict-match    |     5|exact_match|↑  |0.9500|±  |0.0060|
"""
RECORDED = Path(__file__).parents[1] / "data" / "lm_eval"


def refused(text: str) -> RunError:
    with pytest.raises(RunError) as caught:
        parse_tables(lines_of(text))
    return caught.value


def test_the_table_of_the_quick_start_recipe() -> None:
    found = parse_tables(lines_of("2025-08-05:10:11:12 INFO saving\n" + FP8 + "\n"))
    assert found.metrics == {
        "accuracy:gsm8k:exact_match:flexible-extract": 0.9538,
        "accuracy:gsm8k:exact_match:strict-match": 0.95,
    }
    assert found.facts["stderr:gsm8k:exact_match:flexible-extract"] == 0.0058
    assert found.facts["fewshot"] == 5


def test_groups_and_indented_tasks() -> None:
    text = FP8.replace("|gsm8k|", "| - gsm8k_cot|") + FP8.replace("Tasks", "Groups")
    assert set(parse_tables(lines_of(text)).metrics) == {
        f"accuracy:{task}:exact_match:{name}"
        for task in ("gsm8k", "gsm8k_cot")
        for name in ("flexible-extract", "strict-match")
    }


@pytest.mark.parametrize("value", ["nan", "0.0000", "95.38", "N/A", ""])
def test_a_score_that_is_no_fraction(value: str) -> None:
    error = refused(FP8.replace("0.9538", value))
    assert error.failure == "no_metrics"
    assert "gsm8k" in error.evidence[0]


def test_a_table_of_percentages_is_refused_as_such() -> None:
    """trtllm-eval prints such ones; a score of 0.9 among them must not be read as 90 %."""
    text = FP8.replace("0.9538", "95.3753").replace("0.0058", "0.5785")
    error = refused(text)
    assert error.failure == "no_metrics"
    assert "a score is 95.3753: a percentage" in error.message
    assert "trtllm-eval" in error.hint
    assert refused(FP8.replace("0.9500", "95.00")).message.startswith("a score is 95: a percentage")


def test_tables_without_rows() -> None:
    assert refused(FP8[:-20]).failure == "truncated_output"
    head = "".join(FP8.splitlines(keepends=True)[:2])
    assert is_table(lines_of(head))
    assert refused(head).failure == "no_metrics"
    assert not is_table(lines_of("|Name|Value|\n|---|---|\n|a|1|\n"))


class TestResults:
    def results(self, **changes: Any) -> dict[str, Any]:
        scores = {
            "alias": "gsm8k",
            "exact_match,strict-match": 0.95,
            "exact_match_stderr,strict-match": 0.006,
        }
        return {
            "results": {"gsm8k": {**scores, **changes}},
            "n-shot": {"gsm8k": 5},
            "n-samples": {"gsm8k": {"original": 1319, "effective": 1319}},
            "lm_eval_version": "0.4.9",
        }

    def test_scores_and_errors(self) -> None:
        assert is_results(self.results())
        found = parse_results(self.results())
        assert found.metrics == {"accuracy:gsm8k:exact_match:strict-match": 0.95}
        assert found.facts["stderr:gsm8k:exact_match:strict-match"] == 0.006
        assert found.facts["questions:gsm8k"] == 1319

    @pytest.mark.parametrize("value", [0, 1.5, "N/A", None])
    def test_a_score_that_is_no_fraction(self, value: object) -> None:
        with pytest.raises(RunError) as caught:
            parse_results(self.results(**{"exact_match,strict-match": value}))
        assert caught.value.failure == "no_metrics"
        with pytest.raises(RunError, match="no scores"):
            parse_results({"results": {}, "configs": {}})
