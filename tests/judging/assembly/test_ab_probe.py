"""An A/B of a probe: every gating metric, speeds and scores, judged B against A."""

from dataclasses import replace

import building
import pytest
from starts_made import SPEED, scored, speeds
from tables import each

from perfgate.core.errors import RunError
from perfgate.core.measurement import Measurement
from perfgate.core.verdict import Verdict
from perfgate.judging.assembly.judge_input import ProbeJudgement, judge
from perfgate.judging.assembly.judgement import ab_input
from perfgate.scenarios.probe import Probe, all_probes
from perfgate.scenarios.scenario import GatePolicy

SCENARIO = replace(building.SCENARIO, gate=GatePolicy((SPEED,), bands={SPEED: 0.02}))
LOAD = next(probe for probe in all_probes(SCENARIO) if probe.is_load)
TASK = next(one for one in all_probes(building.SCENARIO) if not (one.is_load or one.is_smoke))
SCORE = TASK.gating_metrics()[0]


def judge_ab(probe: Probe, a: list[Measurement], b: list[Measurement]) -> ProbeJudgement:
    return judge(ab_input(probe, a, b, {}))


@each("b, verdict", [(100.0, "PASS"), (92.0, "REGRESSION"), (109.0, "IMPROVEMENT")])
def test_speeds_and_what_does_not_gate(b: float, verdict: str) -> None:
    a, new = (speeds(*[speed] * 3, ttft_mean_ms=x) for speed, x in ((100.0, 10.0), (b, 20.0)))
    judged = judge_ab(LOAD, a, new)
    assert judged.verdict == verdict
    assert [one.against for one in judged.judgements] == ["ab"]
    (ttft,) = judged.observed
    assert (ttft.metric, ttft.change) == ("ttft_mean_ms", pytest.approx(1.0))


def test_a_result_without_a_gating_metric_names_its_build() -> None:
    with pytest.raises(RunError, match=f"start 2 of B lacks {SPEED}"):
        judge_ab(LOAD, speeds(1, 1), [*speeds(1), Measurement({})])


@each("answers", [True, False])
def test_scores(answers: bool) -> None:
    before, after = (scored(SCORE, right, 1000, answers=answers) for right in (900, 700))
    same = judge_ab(TASK, [before], [before])
    assert same.verdict in (Verdict.PASS, Verdict.INCONCLUSIVE)
    lost = judge_ab(TASK, [before] * 3, [after] * 3)
    assert lost.verdict == Verdict.REGRESSION
    assert lost.judgements[0].against == "ab"
    assert lost.judgements[0].reason.startswith("B is 20.0 points lower than A: ")
