"""Why a further start is made, in one sentence."""

from dataclasses import replace

from building import SCENARIO, SUMS, judgement

from perfgate.campaign.probe_state import ProbeState
from perfgate.campaign.starter import why_another
from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.assembly.judge_input import ProbeJudgement
from perfgate.scenarios.probe import Probe, load_probes

C1, C4 = load_probes(SCENARIO)


def undecided(probe: Probe, *judgements: Judgement) -> tuple[Probe, ProbeState]:
    judged = ProbeJudgement(Verdict.INCONCLUSIVE, judgements, needs_more_runs=True)
    return probe, ProbeState(judged=judged)


OPEN = judgement(
    verdict=Verdict.INCONCLUSIVE,
    change=-0.012,
    interval=(-0.04, 0.015),
    band=0.05,
    runs_used=1,
    needs_more_runs=True,
)


def test_the_numbers_of_what_is_undecided() -> None:
    assert why_another([undecided(C4, OPEN)], None) == (
        "c4: output_throughput undecided after 1 start (-1.2 %, interval -4.0…+1.5 %, band 5 %)"
    )


def test_an_accuracy_is_in_points() -> None:
    one = replace(OPEN, metric=SUMS, band=0.025, runs_used=2)
    assert why_another([undecided(C4, one)], None) == (
        f"c4: {SUMS} undecided after 2 starts (-1.2 points, interval -4.0…+1.5 points, "
        "band 2.5 points)"
    )


def test_of_several_the_one_nearest_to_a_loss_is_named() -> None:
    worse = judgement(metric="tpot_mean_ms", change=0.04, band=0.04, needs_more_runs=True)
    decided = judgement(change=-0.5)
    told = why_another([undecided(C1, OPEN), undecided(C4, worse, decided)], None)
    assert told.startswith("c4: tpot_mean_ms undecided after 2 starts")
    assert told.endswith(", and 1 more")


def test_a_control_is_told_with_its_build_and_what_it_is_for() -> None:
    anchor = judgement(change=-0.5, against="anchor", needs_more_runs=True)
    both = [undecided(C4, OPEN, anchor)]
    assert why_another(both, "baseline").startswith(
        "control, the baseline's build: c4: output_throughput undecided after 1 start"
    )
    assert why_another(both, "anchor").startswith(
        "control, the anchor's build: c4: output_throughput undecided after 2 starts (-50.0 %"
    )


def test_numbers_that_are_not_there_are_left_out() -> None:
    bare = judgement(change=None, interval=None, needs_more_runs=True, runs_used=1)
    told = why_another([undecided(C4, bare)], None)
    assert told == "c4: output_throughput undecided after 1 start"


def test_where_no_probe_is_open_it_is_for_a_claim_or_a_curve() -> None:
    told = why_another([(C4, ProbeState()), undecided(C1, judgement())], None)
    assert told == "for a claim or a curve that is undecided"
