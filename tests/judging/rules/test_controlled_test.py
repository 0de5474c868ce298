"""The rule with controls: against an oracle, by hand, and what must hold whatever the numbers."""

from collections.abc import Sequence

import controlled_oracle as oracle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import sized
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.metrics import lookup
from perfgate.core.rule import ControlRule, Rule
from perfgate.core.verdict import Verdict
from perfgate.judging.rules.controlled_test import Decision, decide
from perfgate.judging.rules.controls import Controls
from perfgate.judging.rules.performance import baseline_level, judge_performance
from perfgate.judging.rules.probe import PerformanceTest, ProbeTests, judge_probe

TPOT, SIGMA = "tpot_median_ms", 0.005
DELTA = 4.04 * SIGMA
PASS, REGRESSION, INCONCLUSIVE = Verdict.PASS, Verdict.REGRESSION, Verdict.INCONCLUSIVE
CODES = {(PASS, ""): 1, (REGRESSION, ""): 2, (PASS, "HOST_SHIFT"): 3}

# Ten equal values of ten sessions: s = 0.005 √(10/19) = 0.0036274, nu = 19, SEh(1) = 0.0038045.
FLAT = [10.0] * 10


def noise(random: np.random.Generator, counts: Sequence[int], trials: int) -> np.ndarray:
    """Starts of so many sessions, some of them slow or fast by far, in units of sigma."""
    which = np.repeat(np.arange(len(counts)), counts)
    starts = 0.63 * random.standard_normal((trials, 3, len(which)))
    sessions = 0.41 * random.standard_normal((trials, 3, len(counts)))
    for values, share in ((starts, 0.05), (sessions, 0.04)):
        hit = random.random(values.shape) < share
        values += (
            hit
            * random.choice([-1, 1, 1], values.shape)
            * (4 + random.exponential(2, values.shape))
        )
    return starts + sessions[..., which]


@pytest.mark.nightly
@pytest.mark.parametrize("counts", [[1], [1] * 3, [3], [5] * 2, [1] * 10])
def test_every_verdict_and_number_of_starts_is_the_oracle_s(counts: list[int]) -> None:
    # Probes of three metrics: unchanged, slower, on slower machines.
    trials, random = sized(1000, 3500), np.random.default_rng([15, *counts])
    base = SIGMA * noise(random, counts, trials)
    starts = noise(random, [7], trials) + random.choice([0, 0, 5, 14], (trials, 1, 1))
    new, controls = starts[..., :4], starts[..., 4:]
    new = new + 4.04 * random.choice([0, 0, 1, 1.5, 3.5], (trials, 3, 1))
    new, controls = SIGMA * new, SIGMA * controls
    known = oracle.history(base, SIGMA, len(counts))
    expected, used_new, used_controls = oracle.codes(known, new, controls, DELTA)
    metric, wrong = lookup(TPOT), []
    for probe in range(trials):
        decisions = []
        for one in range(3):
            level, _ = baseline_level(
                metric, base[probe, one].tolist(), SIGMA, Rule(), sessions=len(counts)
            )
            seen = new[probe, one].tolist(), controls[probe, one].tolist()
            decisions.append(
                _while_any_is_open(level, *seen, used_new[probe], used_controls[probe])
            )
        found = [CODES.get((one.verdict, one.mark), 0) for one in decisions]
        starts_used = max(one.new for one in decisions), max(one.controls for one in decisions)
        if found != expected[probe].tolist() or starts_used != (
            used_new[probe],
            used_controls[probe],
        ):
            wrong.append((probe, decisions, expected[probe]))
    assert wrong == []


def _while_any_is_open(
    level: object, new: list[float], controls: list[float], most: int, most_controls: int
) -> Decision:
    """The decision on the starts that the probe makes: it ends at the first loss of any metric."""
    return decide(level, new[:most], controls[:most_controls], DELTA, ControlRule())  # type: ignore[arg-type]


@each(
    ("new", "controls", "verdict", "mark", "used"),
    [
        pytest.param([10.0], [], PASS, "", (1, 0), id="as it was"),
        pytest.param([10.3], [], INCONCLUSIVE, "need new", (1, 0), id="suspicious"),
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

    def test_a_policy_that_is_none_is_refused(self) -> None:
        with pytest.raises(InputError, match="not a policy for controls"):
            Controls(policy="sometimes")  # type: ignore[arg-type]


class TestProbe:
    def test_says_of_which_builds_controls_are_wanted(self) -> None:
        def test_against(values: list[float], controls: list[float] | None) -> PerformanceTest:
            return PerformanceTest(TPOT, None, values, [10.3, 10.3], controls=controls)

        judged = judge_probe(
            ProbeTests([test_against(FLAT, [])], [test_against([9.5] * 10, [])]), Rule()
        )
        assert judged.needs_more_runs
        assert judged.controls_wanted == {"baseline", "anchor"}
        decided = judge_probe(ProbeTests([test_against(FLAT, [10.3, 10.3])]), Rule())
        assert (decided.verdict, decided.controls_wanted) == (PASS, frozenset())

    def test_a_proved_loss_of_one_metric_ends_it(self) -> None:
        lost = PerformanceTest(TPOT, None, FLAT, [10.3] * 3, controls=[10.0] * 2)
        open_one = PerformanceTest(
            "itl_mean_ms", None, FLAT, [10.3, 10.1, 10.1], controls=[10.0, 10.3]
        )
        judged = judge_probe(ProbeTests([lost, open_one]), Rule())
        assert (judged.verdict, judged.needs_more_runs) == (REGRESSION, False)


losses = st.lists(st.floats(-0.05, 0.2), min_size=4, max_size=4)


@settings(deadline=None)
@given(losses, st.lists(st.floats(-0.05, 0.2), min_size=3, max_size=3), st.integers(0, 3))
def test_a_worse_start_never_betters_the_verdict(
    new: list[float], controls: list[float], which: int
) -> None:
    rank = {REGRESSION: 0, INCONCLUSIVE: 1, PASS: 2}
    level, _ = baseline_level(lookup(TPOT), [0.0, 0.004, -0.003], SIGMA, Rule(), sessions=3)
    worse = [x + 0.02 * (index == which) for index, x in enumerate(new)]
    before = decide(level, new, controls, DELTA, ControlRule())
    after = decide(level, worse, controls, DELTA, ControlRule())
    assert rank[after.verdict] <= rank[before.verdict]


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
