"""The gate's own alarm: a gate with one thing wrong must be noticed.

The reference table finds nothing wrong with the gate as it is, and each mutant of the gate is found
by the check named beside it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from reference_table import check_reference_table

from perfgate.gate import baseline_level as levels
from perfgate.gate import noise, performance, scale, sweep
from perfgate.gate import sequential_test as looks
from perfgate.gate.baseline_level import BaselineLevel, Look
from perfgate.gate.controlled_test import Decision
from perfgate.gate.verdict import Judgement, Verdict

PASS, REGRESSION, INCONCLUSIVE = Verdict.PASS, Verdict.REGRESSION, Verdict.INCONCLUSIVE


def test_the_gate_as_it_is_has_nothing_wrong() -> None:
    assert check_reference_table() == []


# Each changes one thing by patching, as a slip of the pen might.

Patch = pytest.MonkeyPatch
RULE = "_decide_alone"
_judge, _look, _sign = looks.judge, BaselineLevel.look, scale._sign
_t_quantile, _pooled, _badness = noise.t_quantile, noise.pooled, scale.badness
_judge_on_scale = performance.judge_on_scale


def sign_swapped(patch: Patch) -> None:
    patch.setattr(scale, "_sign", lambda metric: -_sign(metric))


def sign_forgotten(patch: Patch) -> None:
    patch.setattr(scale, "_sign", lambda metric: -1)


def bounds_swapped(patch: Patch) -> None:
    def look(self: BaselineLevel, new: Sequence[float]) -> Look:
        swapped = replace(self.rule, alpha=self.rule.beta, beta=self.rule.alpha)
        return _look(replace(self, rule=swapped), new)

    patch.setattr(BaselineLevel, "look", look)


def _deciding(
    confirmed: Callable[[BaselineLevel, Sequence[float]], bool],
    excluded: Callable[[Look, float], bool] = lambda look, margin: look.high < margin,
) -> Callable[[BaselineLevel, Sequence[float], float, object], Decision]:
    """The sequence of looks with another idea of what excludes a loss, or confirms one."""

    def decide(
        comparison: BaselineLevel, runs: Sequence[float], margin: float, _: object
    ) -> Decision:
        for count in range(1, len(runs) + 1):
            look = comparison.look(runs[:count])
            if excluded(look, margin):
                return Decision(PASS, count, 0)
            if look.low > 0 and count >= 2 and confirmed(comparison, runs[:count]):
                return Decision(REGRESSION, count, 0)
        return Decision(INCONCLUSIVE, len(runs), 0)

    return decide


def _as_it_is(comparison: BaselineLevel, runs: Sequence[float]) -> bool:
    return comparison.look(runs[1:]).low > 0


def no_confirmation(patch: Patch) -> None:
    patch.setattr(looks, RULE, _deciding(lambda comparison, runs: True))


def confirmed_by_all_runs(patch: Patch) -> None:
    patch.setattr(looks, RULE, _deciding(lambda comparison, runs: comparison.look(runs).low > 0))


def confirmed_by_the_first(patch: Patch) -> None:
    patch.setattr(
        looks, RULE, _deciding(lambda comparison, runs: comparison.look(runs[:1]).low > 0)
    )


def margin_ignored(patch: Patch) -> None:
    patch.setattr(looks, RULE, _deciding(_as_it_is, lambda look, margin: look.high < 0))


def mean_within_the_margin_passes(patch: Patch) -> None:
    patch.setattr(looks, RULE, _deciding(_as_it_is, lambda look, margin: look.loss < margin))


def loss_asked_first(patch: Patch) -> None:
    patch.setattr(
        looks,
        RULE,
        _deciding(_as_it_is, lambda look, margin: look.high < margin and look.low <= 0),
    )


def not_winsorised(patch: Patch) -> None:
    patch.setattr(noise, "winsorise", lambda values, prior_sigma: (tuple(values), 0))


def _with_error(patch: Patch, factor: Callable[[int, int], float]) -> None:
    def wrong(known: noise.Noise, n_base: int, n_new: int, *, sessions: float = 1) -> float:
        return known.sigma * factor(n_base, n_new)

    patch.setattr(levels, "standard_error", wrong)


def root_forgotten(patch: Patch) -> None:
    _with_error(patch, lambda n_base, n_new: 1 / n_new + 1 / n_base)


def baseline_taken_as_exact(patch: Patch) -> None:
    _with_error(patch, lambda n_base, n_new: math.sqrt(1 / n_new))


def new_runs_not_averaged(patch: Patch) -> None:
    _with_error(patch, lambda n_base, n_new: math.sqrt(1 + 1 / n_base))


def infinite_dof(patch: Patch) -> None:
    patch.setattr(levels, "t_quantile", lambda share, dof: _t_quantile(share, math.inf))


def both_sided(patch: Patch) -> None:
    patch.setattr(levels, "t_quantile", lambda share, dof: _t_quantile((1 + share) / 2, dof))


def baseline_and_new_swapped(patch: Patch) -> None:
    def swapped(metric: object, baseline: object, new: object, **settings: object) -> Judgement:
        return _judge_on_scale(metric, new, baseline, **settings)  # type: ignore[arg-type]

    patch.setattr(performance, "judge_on_scale", swapped)


def first_run_used_twice(patch: Patch) -> None:
    def twice(metric: object, baseline: object, new: Sequence[float], **settings: object) -> object:
        return _judge_on_scale(metric, baseline, [new[0], *new], **settings)  # type: ignore[arg-type]

    patch.setattr(performance, "judge_on_scale", twice)


def spread_of_the_new_runs_pooled(patch: Patch) -> None:
    def look(self: BaselineLevel, new: Sequence[float]) -> Look:
        spread = _pooled(self.noise.sigma, self.noise.dof, [list(new)])
        return _look(replace(self, noise=spread), new)

    patch.setattr(BaselineLevel, "look", look)


def prior_ignored(patch: Patch) -> None:
    patch.setattr(noise, "pooled", lambda sigma, dof, groups: _pooled(1e-6, 1e-6, groups))


def spread_of_the_baseline_ignored(patch: Patch) -> None:
    patch.setattr(noise, "pooled", lambda sigma, dof, groups: _pooled(sigma, dof, [[0.0]]))


def budget_ignored(patch: Patch) -> None:
    def judge(comparison: BaselineLevel, *others: object) -> Judgement:
        larger = replace(comparison.rule, max_runs=99)
        return _judge(replace(comparison, rule=larger), *others)  # type: ignore[arg-type]

    patch.setattr(performance, "judge", judge)


def band_not_widened(patch: Patch) -> None:
    patch.setattr(performance, "forced_margin", lambda level: 0.0)


def units_not_checked(patch: Patch) -> None:
    patch.setattr(scale, "check_unit", lambda metric, baseline, new: None)


def broken_values_dropped(patch: Patch) -> None:
    def kept(metric: object, values: Sequence[float], what: str) -> tuple[float, ...]:
        return _badness(metric, [one for one in values if one > 0] or [1000.0], what)  # type: ignore[arg-type]

    patch.setattr(scale, "badness", kept)


def points_taken_as_independent(patch: Patch) -> None:
    patch.setattr(sweep, "correlation_of_points", lambda starts, levels: 0.0)


def improvement_believed_at_once(patch: Patch) -> None:
    patch.setattr(Look, "improved", lambda self, margin: self.loss <= 0)


MUTANTS: list[tuple[Callable[[Patch], None], str]] = [
    (sign_swapped, "half the speed"),
    (sign_forgotten, "twice the time"),
    (bounds_swapped, "beta is for passing"),
    (no_confirmation, "not confirmed"),
    (no_confirmation, "simulated false alarms"),
    (confirmed_by_all_runs, "not confirmed"),
    (confirmed_by_the_first, "not confirmed"),
    (margin_ignored, "unchanged"),
    (mean_within_the_margin_passes, "suspicious once"),
    (loss_asked_first, "a small loss is real"),
    (not_winsorised, "an outlying baseline"),
    (root_forgotten, "half a band lost"),
    (baseline_taken_as_exact, "a baseline of one run is uncertain"),
    (new_runs_not_averaged, "first start an accident"),
    (infinite_dof, "a little more lost"),
    (both_sided, "half a band lost"),
    (baseline_and_new_swapped, "half the speed"),
    (first_run_used_twice, "suspicious once"),
    (spread_of_the_new_runs_pooled, "first start an accident"),
    (prior_ignored, "a little more lost"),
    (spread_of_the_baseline_ignored, "a scattered baseline"),
    (budget_ignored, "never decided"),
    (band_not_widened, "a widened band"),
    (units_not_checked, "another unit"),
    (broken_values_dropped, "a broken number"),
    (points_taken_as_independent, "points of one start are one value"),
    (improvement_believed_at_once, "improved once"),
]


@pytest.mark.parametrize(
    ("mutant", "check"), [pytest.param(*one, id=f"{one[0].__name__}-{one[1]}") for one in MUTANTS]
)
def test_each_mutant_of_the_rule_is_found(
    mutant: Callable[[Patch], None], check: str, monkeypatch: Patch
) -> None:
    mutant(monkeypatch)
    assert check in check_reference_table(simulate=check == "simulated false alarms")
