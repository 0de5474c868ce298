"""The rules of today, each on values small enough to check by hand."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from tables import each

from benchmarks.detection import apache_otava
from benchmarks.detection.rules import (
    RULES,
    asv_compare,
    fixed_5_percent,
    mann_whitney,
    pytest_benchmark,
    steady_10_percent,
    tensorrt_llm,
    welch,
)

LOW = [100.0, 101.0, 102.0, 103.0, 104.0, 105.0, 106.0]


def says(rule, base: list[float], new: list[float], higher: bool = True) -> bool:
    (alarm,) = rule(np.array([base]), np.array([new]), higher)
    return bool(alarm)


@each(
    "rule, base, new, higher, alarm",
    [
        (fixed_5_percent, [100.0], [95.1], True, False),
        (fixed_5_percent, [100.0], [94.9], True, True),
        (fixed_5_percent, [100.0], [105.1], False, True),
        (fixed_5_percent, [90.0, 110.0], [94.9], True, True),
        # Times, not throughputs: 1 / 95.1 is 5.15 % more than 1 / 100.
        (pytest_benchmark, [100.0], [95.1], True, True),
        (pytest_benchmark, [100.0], [95.3], True, False),
        (pytest_benchmark, [100.0], [105.1], False, True),
        # P95 of the trailing means of 100, 100, 100, 94: nearly 100.
        (tensorrt_llm(0.05), [100.0] * 3, [94.0], True, True),
        (tensorrt_llm(0.10), [100.0] * 3, [94.0], True, False),
        (tensorrt_llm(0.05), [100.0] * 3, [106.0], False, True),
        # The best of the history counts: means 100, 105, 107 …, not the last value.
        (tensorrt_llm(0.05), [100.0, 110.0, 110.0, 110.0, 100.0], [100.0], True, True),
        # t = 3 / sqrt(2/3) = 3.67 with 4 degrees of freedom; 2.13 is needed.
        (welch, [99.0, 100.0, 101.0], [96.0, 97.0, 98.0], True, True),
        (welch, [99.0, 100.0, 101.0], [98.0, 99.0, 100.0], True, False),
        (welch, [100.0] * 3, [100.0] * 3, True, False),
        (welch, [100.0] * 3, [99.0] * 3, True, True),
        (steady_10_percent, [99.0, 100.0, 101.0], [89.0, 90.0, 90.5], True, True),
        (steady_10_percent, [99.0, 100.0, 101.0], [90.0, 91.0, 92.0], True, False),
        (steady_10_percent, [90.0, 100.0, 110.0], [79.0, 80.0, 81.0], True, False),
        (steady_10_percent, [99.0, 100.0, 101.0], [110.0, 111.0, 112.0], False, True),
        # 2 / 3432 with seven a side, 2 / 924 with six: too few.
        (mann_whitney, LOW, [90.0 + n for n in range(7)], True, True),
        (mann_whitney, LOW[:6], [90.0 + n for n in range(6)], True, False),
        (asv_compare, LOW, [90.0 + n for n in range(7)], True, True),
        (asv_compare, LOW, [93.0 + n for n in range(7)], True, False),
        (asv_compare, LOW, [113.0 + n for n in range(7)], False, True),
        (asv_compare, LOW, [110.0 + n for n in range(7)], False, False),
    ],
)
def test_a_rule_by_hand(rule, base, new, higher, alarm) -> None:
    assert says(rule, base, new, higher) is alarm


def test_welch_needs_two_values_a_side() -> None:
    with pytest.raises(ValueError, match="two values"):
        says(welch, [100.0], [99.0, 98.0])


@each("rule", RULES, ids=lambda rule: rule.name)
def test_no_rule_alarms_on_equal_builds_and_every_rule_on_half_the_speed(rule) -> None:
    steps = np.arange(max(rule.base, rule.new)) % 3 / 10
    base, new = 100 + steps[None, : rule.base], 100 + steps[None, : rule.new]
    for higher in (True, False):
        assert not rule.alarm(base, new, higher)[0]
        worse = new / 2 if higher else new * 2
        assert rule.alarm(base, worse, higher)[0]


def test_a_rule_judges_each_trial_for_itself() -> None:
    base, new = np.full((3, 1), 100.0), np.array([[99.0], [90.0], [101.0]])
    assert fixed_5_percent(base, new, True).tolist() == [False, True, False]


def test_otava_runs_in_an_environment_of_its_own(tmp_path: Path, monkeypatch) -> None:
    package = tmp_path / "otava"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "analysis.py").write_text(
        "from types import SimpleNamespace as Of\n"
        "def compute_change_points(values):\n"
        "    stats = Of(forward_rel_change=lambda: values[-1] / values[0] - 1)\n"
        "    return [Of(index=len(values) - 1, stats=stats)], None\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = apache_otava.change_points(Path(sys.executable), [[1.0, 2.0], [4.0, 4.0, 1.0]])
    assert found == [[(1, 1.0)], [(2, -0.75)]]
    assert json.dumps(found)
