"""An A/B of a probe: every gating metric, speeds and scores, judged B against A."""

from dataclasses import replace

import building
import pytest

from perfgate.core.errors import RunError
from perfgate.core.measurement import Measurement
from perfgate.core.verdict import Verdict
from perfgate.judging.assembly.ab import ab_input
from perfgate.judging.assembly.judge_input import judge
from perfgate.judging.rules.probe import ProbeJudgement
from perfgate.scenarios.probe import Probe, all_probes
from perfgate.scenarios.scenario import GatePolicy

SPEED = "output_throughput"


def judge_ab_probe(probe: Probe, a: list[Measurement], b: list[Measurement]) -> ProbeJudgement:
    return judge(ab_input(probe, a, b, {}))


def load() -> Probe:
    scenario = replace(building.SCENARIO, gate=GatePolicy((SPEED,), bands={SPEED: 0.02}))
    return next(probe for probe in all_probes(scenario) if probe.is_load)


def speeds(*values: float, **others: float) -> list[Measurement]:
    return [Measurement({SPEED: value, **others}) for value in values]


@pytest.mark.parametrize(
    ("b", "verdict"), [(100.0, Verdict.PASS), (92.0, Verdict.REGRESSION), (109.0, "IMPROVEMENT")]
)
def test_speeds(b: float, verdict: str) -> None:
    judged = judge_ab_probe(load(), speeds(*[100.0] * 3), speeds(*[b] * 3))
    assert judged.verdict == verdict
    assert [one.against for one in judged.judgements] == ["ab"]


def test_what_does_not_gate_is_told() -> None:
    a, b = (speeds(*[100.0] * 3, ttft_mean_ms=x) for x in (10.0, 20.0))
    judged = judge_ab_probe(load(), a, b)
    assert judged.verdict == Verdict.PASS
    (ttft,) = judged.observed
    assert (ttft.metric, ttft.change) == ("ttft_mean_ms", pytest.approx(1.0))


def test_a_result_without_a_gating_metric_names_its_build() -> None:
    with pytest.raises(RunError, match=f"start 2 of B lacks {SPEED}"):
        judge_ab_probe(load(), speeds(1, 1), [*speeds(1), Measurement({})])


def scored(metric: str, right: int, *, answers: bool = True) -> list[Measurement]:
    given = {metric: {f"q{n}": n < right for n in range(1000)}} if answers else {}
    return [Measurement({metric: right / 1000}, {"questions": 1000}, given)]


def score() -> tuple[Probe, str]:
    task = next(
        one for one in all_probes(building.SCENARIO) if not one.is_load and not one.is_smoke
    )
    return task, task.gating_metrics()[0]


@pytest.mark.parametrize("answers", [True, False])
def test_scores(answers: bool) -> None:
    probe, metric = score()
    same = judge_ab_probe(
        probe, scored(metric, 900, answers=answers), scored(metric, 900, answers=answers)
    )
    assert same.verdict in (Verdict.PASS, Verdict.INCONCLUSIVE)
    lost = judge_ab_probe(
        probe,
        scored(metric, 900, answers=answers) * 3,
        scored(metric, 700, answers=answers) * 3,
    )
    assert lost.verdict == Verdict.REGRESSION
    assert lost.judgements[0].against == "ab"
    assert lost.judgements[0].reason.startswith("B is 20.0 points lower than A: ")
