"""The rule with controls: by hand, and what must hold whatever the numbers."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_values import judge_performance, judge_probe
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.rule import ControlRule, Rule
from perfgate.core.verdict import Verdict
from perfgate.judging.rules.performance import PerformanceTest

TPOT = "tpot_median_ms"
PASS, REGRESSION, INCONCLUSIVE = Verdict.PASS, Verdict.REGRESSION, Verdict.INCONCLUSIVE

# Ten equal values of ten sessions: s = 0.005 √(10/19) = 0.0036274, nu = 19, SEh(1) = 0.0038045.
FLAT = [10.0] * 10


@each(
    ("new", "controls", "verdict", "mark", "used"),
    [
        pytest.param([10.3, 10.0], [], PASS, "", (2, 0), id="an accident of the first start"),
        pytest.param([10.3, 10.3], [], INCONCLUSIVE, "need control", (2, 0), id="asks for control"),
        pytest.param([10.3] * 2, [10.0] * 2, INCONCLUSIVE, "need new", (2, 2), id="a third start"),
        pytest.param([10.3] * 3, [10.0] * 2, REGRESSION, "", (3, 2), id="proved"),
        pytest.param([10.8] * 2, [10.0], REGRESSION, "", (2, 1), id="three bands: one control"),
        pytest.param([10.3] * 2, [10.3] * 2, PASS, "HOST_SHIFT", (2, 2), id="the machine is slow"),
        pytest.param([10.6] * 3, [10.3] * 2, REGRESSION, "", (3, 2), id="both are slow"),
        pytest.param(
            [12.0] * 4, [12.0] * 3, INCONCLUSIVE, "MACHINE", (4, 3), id="a machine that is broken"
        ),
        pytest.param(
            [10.3] * 3, [10.0, 10.31], INCONCLUSIVE, "need new", (3, 2), id="an odd control"
        ),
    ],
)
def test_by_hand(
    new: list[float], controls: list[float], verdict: Verdict, mark: str, used: tuple[int, int]
) -> None:
    judged = judge_performance(TPOT, FLAT, new, controls=controls)
    assert (judged.verdict, judged.runs_used, judged.controls_used) == (verdict, *used)
    need = "control" if judged.needs_control else "new" if judged.needs_more_runs else ""
    assert (f"need {need}" if need else judged.mark) == mark


class TestWithoutControl:
    def test_two_starts_are_a_regression_that_says_what_is_not_excluded(self) -> None:
        judged = judge_performance(TPOT, FLAT, [10.3, 10.3], why_no_control="no image is known")
        assert (judged.verdict, judged.mark) == (REGRESSION, "NO_CONTROL")
        assert judged.notes[-1] == ("no control: the machine is not excluded (no image is known)")

    def test_none_never_asks_for_one(self) -> None:
        judged = judge_performance(TPOT, FLAT, [10.3, 10.3], controls=[10.3] * 3, policy="none")
        assert (judged.verdict, judged.controls_used, judged.mark) == (REGRESSION, 0, "NO_CONTROL")

    def test_required_is_at_most_inconclusive(self) -> None:
        judged = judge_performance(TPOT, FLAT, [10.3, 10.3], policy="required")
        assert (judged.verdict, judged.needs_more_runs) == (INCONCLUSIVE, False)
        assert "gate.control requires a control" in judged.reason

    def test_required_with_controls_is_as_auto(self) -> None:
        auto, required = (
            judge_performance(TPOT, FLAT, [10.3] * 3, controls=[10.0] * 2, policy=policy)
            for policy in ("auto", "required")
        )
        assert auto == required
        assert auto.verdict == REGRESSION


class TestProbe:
    def test_says_of_which_builds_controls_are_wanted(self) -> None:
        def test_against(values: list[float], controls: list[float] | None) -> PerformanceTest:
            return PerformanceTest(TPOT, None, values, [10.3, 10.3], controls=controls)

        judged = judge_probe([test_against(FLAT, [])], Rule(), [test_against([9.5] * 10, [])])
        assert judged.needs_more_runs
        assert judged.controls_wanted == {"baseline", "anchor"}
        decided = judge_probe([test_against(FLAT, [10.3, 10.3])], Rule())
        assert (decided.verdict, decided.controls_wanted) == (PASS, frozenset())

    def test_a_proved_loss_of_one_metric_ends_it(self) -> None:
        lost = PerformanceTest(TPOT, None, FLAT, [10.3] * 3, controls=[10.0] * 2)
        open_one = PerformanceTest(
            "itl_mean_ms", None, FLAT, [10.3, 10.1, 10.1], controls=[10.0, 10.3]
        )
        judged = judge_probe([lost, open_one], Rule())
        assert (judged.verdict, judged.needs_more_runs) == (REGRESSION, False)


losses = st.lists(st.floats(-0.05, 0.2), min_size=4, max_size=4)


@settings(deadline=None)
@given(losses, st.lists(st.floats(-0.05, 0.2), min_size=3, max_size=3), st.integers(0, 3))
def test_a_worse_start_never_betters_the_verdict(
    new: list[float], controls: list[float], which: int
) -> None:
    rank = {REGRESSION: 0, INCONCLUSIVE: 1, PASS: 2, Verdict.IMPROVEMENT: 3}

    def ranked(losses: list[float]) -> int:
        values, beside = ([math.exp(x) for x in side] for side in (losses, controls))
        judged = judge_performance(TPOT, [1.0, 1.004, 0.997], values, controls=beside)
        return rank[judged.verdict]

    assert ranked([x + 0.02 * (index == which) for index, x in enumerate(new)]) <= ranked(new)


class TestRule:
    def test_with_two_new_starts_only_a_loss_of_three_bands_is_proved(self) -> None:
        found = {
            value: judge_performance(
                TPOT, FLAT, [value] * 2, controls=[10.0] * 3, rule=Rule(max_runs=2)
            ).verdict
            for value in (10.3, 10.5, 10.7)
        }
        assert found == {10.3: INCONCLUSIVE, 10.5: INCONCLUSIVE, 10.7: REGRESSION}

    @each(
        "wrong",
        [{"alpha": 0.0}, {"beta": 0.5}, {"later_beta": -1}, {"half": 0}, {"needed": 1},
         {"far": float("nan")}, {"looks": ()}, {"looks": ((0, 1),)}],
    )  # fmt: skip
    def test_constants_out_of_range_are_refused(self, wrong: dict[str, float]) -> None:
        with pytest.raises(InputError, match="rule for controls cannot be used"):
            ControlRule(**wrong)  # type: ignore[arg-type]
