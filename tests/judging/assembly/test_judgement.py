"""A probe's verdict: the worst of its gating metrics, against what it can be compared with."""

from dataclasses import replace
from datetime import date
from typing import Any

import building
import pytest
from refusals import refused
from starts_made import FACTS, SPEED, entry_of, scored, speeds
from tables import each

from perfgate.baselines.waivers import Waiver
from perfgate.clients.client_facts import DATASET_DIFFERS
from perfgate.core.errors import RunError
from perfgate.core.measurement import Measurement
from perfgate.core.verdict import Rule, Verdict
from perfgate.judging.assembly.claims import claim_test
from perfgate.judging.assembly.judge_input import JudgeInput, ProbeJudgement, broken_answers, judge
from perfgate.judging.assembly.judgement import ProbeEvidence, Reference, ab_input, probe_input
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.probe import Probe, load_probes
from perfgate.scenarios.scenario import Claim, GatePolicy, Source, Workload

STRICT, TTFT = building.SUMS, "ttft_median_ms"
GSM8K, GPQA = "accuracy:gsm8k:exact_match:strict-match", "accuracy:gpqa_diamond:accuracy:none"
PASS, OPEN, LOST = Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.REGRESSION


def probe_of(*metrics: str, **gate: Any) -> Probe:
    """The probe that gives these metrics: a load, or an evaluation."""
    scenario = replace(building.SCENARIO, gate=replace(GatePolicy(metrics, noise="prior"), **gate))
    if metrics[0].startswith("accuracy:"):
        task = metrics[0].split(":")[1]
        return Probe(scenario, replace(building.SCENARIO.accuracy[0], task=task))
    return load_probes(scenario)[0]


def assembled(probe: Probe, reference: Reference, starts: Any, rule: Any = None) -> JudgeInput:
    evidence = ProbeEvidence(probe, reference, FACTS, dict(enumerate(starts, start=1)))
    return probe_input(evidence, rule or Rule())


def judged(*given: Any) -> ProbeJudgement:
    return judge(assembled(*given))


def waived(given: JudgeInput, broken: str = "") -> ProbeJudgement:
    """The verdict with waivers for whatever it lost."""
    today = date(2026, 11, 1)
    waivers = [
        Waiver(given.scenario, metric, given.hardware, 0.9, "known", "#1", "Ada", today, line=1)
        for metric in (SPEED, TTFT, STRICT)
    ]
    return judge(replace(given.waived_by(waivers, today), broken=broken))


PROBE = probe_of(SPEED, TTFT)
BASELINE = entry_of(*speeds(100.0, 101, 99, 100, 100, ttft_median_ms=50.0))
ELSEWHERE = replace(BASELINE, fingerprint={**FACTS, "cpu": "c"})
LOST_HALF = speeds(50, 50, ttft_median_ms=50)
DOCUMENTED = {SPEED: DocumentedValue(100.0)}
NO_BASELINE = (Verdict.NO_BASELINE, "there is no baseline for this probe yet")
OTHER_CPU = (Verdict.NOT_COMPARABLE, "cpu: measured b, baseline c")


@each(
    "reference, expected",
    [
        (Reference(None), NO_BASELINE),
        (Reference(None, {"output_throughput_per_gpu": DocumentedValue(100.0)}), NO_BASELINE),
        (Reference(ELSEWHERE), OTHER_CPU),
        # A baseline of other facts is not replaced by a document.
        (Reference(ELSEWHERE, DOCUMENTED), OTHER_CPU),
    ],
)
def test_without_a_comparable_reference_nothing_is_claimed(reference, expected) -> None:
    found = judged(PROBE, reference, speeds(10, ttft_median_ms=500))
    assert (found.verdict, found.reason) == expected
    assert (found.judgements, found.needs_more_runs) == ((), False)


def test_a_probe_without_a_gating_metric_or_a_result_without_it_is_refused() -> None:
    bare = Probe(probe_of(STRICT).scenario, PROBE.what)
    refused(judged, bare, Reference(BASELINE), LOST_HALF, match="nothing to judge")
    lacking = {"error": RunError, "match": "fresh start 1 lacks ttft_median_ms"}
    error = refused(judged, PROBE, Reference(BASELINE), speeds(100.0), **lacking)
    assert error.failure == "no_metrics"
    sides = speeds(1, 1), [*speeds(1), Measurement({})]
    why = f"start 2 of B lacks {SPEED}"
    refused(ab_input, probe_of(SPEED), *sides, {}, error=RunError, match=why)


def test_broken_output_is_named_beside_the_lost_points() -> None:
    flexible = STRICT.replace("strict-match", "flexible-extract")
    right = replace(scored(STRICT, 200, 200), metrics={STRICT: 1.0, flexible: 1.0})
    wrong = replace(scored(STRICT, 20, 200), metrics={STRICT: 0.1, flexible: 0.1})
    reference = Reference(entry_of(right))
    once = judged(probe_of(STRICT), reference, [wrong])
    assert (once.verdict, once.needs_more_runs, bool(once.controls_wanted)) == (OPEN, True, False)
    given = assembled(probe_of(STRICT), reference, [wrong] * 2)
    lost, passed = judge(given), waived(given)
    assert (lost.verdict, passed.verdict) == (LOST, PASS)
    assert passed.changed == lost.changed != ()
    for one in (once, lost):
        assert broken_answers({"sums": one}) == "BROKEN_OUTPUT in sums"
        assert "BROKEN_OUTPUT" in one.judgements[0].notes
    assert broken_answers({"sums": passed}) == ""


def test_scores_without_answers_are_compared_as_scores() -> None:
    gpqa, asked = probe_of(GPQA), {"questions": 198}
    same, worse = ([Measurement({GPQA: x, "duration_s": 9.0}, asked)] for x in (0.7, 0.4))
    reference = Reference(entry_of(Measurement({GPQA: 0.70, "duration_s": 8.0})))
    found = judged(gpqa, reference, same)
    assert (found.verdict, found.observed) == (PASS, ())  # how long it took says nothing
    assert "margin raised" in found.judgements[0].notes[0]  # to what 198 questions can show
    once = judged(gpqa, reference, worse)
    assert (once.verdict, once.needs_more_runs) == (OPEN, True)
    assert judged(gpqa, reference, worse * 2).verdict == LOST
    bare = Reference(entry_of(Measurement({})))
    assert judged(gpqa, bare, same).verdict == Verdict.NO_BASELINE


def test_every_evaluation_of_the_baseline_counts() -> None:
    """Ten questions that the first one missed by chance are no gain of the new build."""
    runs = [scored(STRICT, right, 200) for right in (180, 190, 185)]
    for before in (runs, [replace(runs[1], answers={}), *runs]):
        reference = Reference(entry_of(*before))
        (found,) = judged(probe_of(STRICT), reference, [scored(STRICT, 185, 200)]).judgements
        assert found.baseline == pytest.approx(555 / 600)
        assert found.change == pytest.approx(0.0)
        assert "1 evaluation against 3 of the baseline" in found.reason


def test_references_that_took_turns_are_judged_in_turns_beside_earlier_sessions() -> None:
    """Of the first metric with their values; what earlier sessions showed is grouped by session."""
    a, b = (entry_of(*speeds(99.0, 101.0), run=name) for name in "ab")
    earlier = replace(a, runs=(*a.runs, *b.runs))
    reference = replace(Reference(BASELINE, is_interleaved=True), earlier=earlier)
    given = assembled(PROBE, reference, speeds(99.0, 101.0, 100.0, ttft_median_ms=50.0))
    speed, ttft = (one["earlier"] for one in given.as_record()["tests"])
    assert (speed, ttft) == ([[99.0, 101.0], [99.0, 101.0]], [])
    assert all(one.is_interleaved for one in judge(given).judgements)


def test_an_anchor_of_other_facts_is_told_and_decides_nothing() -> None:
    anchor = entry_of(*speeds(*[104.0] * 5, ttft_median_ms=50.0), cpu="old")
    found = judged(PROBE, Reference(BASELINE, anchor=anchor), speeds(99.5, ttft_median_ms=50))
    assert found.verdict == PASS
    assert found.notes == ("not compared with the anchor: cpu: measured b, baseline old",)


def test_a_waived_regression_passes_and_the_rest_still_counts() -> None:
    given = assembled(PROBE, Reference(BASELINE, notes=("noted",)), LOST_HALF)
    lost, passed = judge(given), waived(given)
    assert (lost.verdict, passed.verdict) == (LOST, PASS)
    assert (lost.needs_more_runs, passed.notes) == (False, ("noted",))
    assert judge(given.waived_by([], date(2026, 11, 1))) == lost
    without_ttft = assembled(PROBE, Reference(entry_of(*speeds(*[100.0] * 5))), LOST_HALF)
    assert waived(without_ttft).verdict == Verdict.NO_BASELINE
    below = assembled(PROBE, Reference(None, DOCUMENTED), LOST_HALF)
    assert (judge(below).verdict, waived(below).verdict) == (LOST, PASS)
    # No waiver lets the speed of broken answers count.
    voided = waived(given, "BROKEN_OUTPUT in sums")
    assert (voided.verdict, voided.reason[:13]) == (OPEN, "BROKEN_OUTPUT")
    assert judge(replace(given, broken="BROKEN_OUTPUT in sums")).verdict == LOST


@each("b, verdict", [(100.0, "PASS"), (92.0, "REGRESSION"), (109.0, "IMPROVEMENT")])
def test_an_ab_judges_speeds_and_tells_what_does_not_gate(b, verdict) -> None:
    a, new = (speeds(*[speed] * 3, ttft_mean_ms=x) for speed, x in ((100.0, 10.0), (b, 20.0)))
    found = judge(ab_input(probe_of(SPEED, bands={SPEED: 0.02}), a, new, {}))
    assert found.verdict == verdict
    assert [one.against for one in found.judgements] == ["ab"]
    (ttft,) = found.observed
    assert (ttft.metric, ttft.change) == ("ttft_mean_ms", pytest.approx(1.0))


@each("answers", [True, False])
def test_an_ab_judges_scores(answers) -> None:
    before, after = (scored(STRICT, right, 1000, answers=answers) for right in (900, 700))
    same = judge(ab_input(probe_of(STRICT), [before], [before], {}))
    lost = judge(ab_input(probe_of(STRICT), [before] * 3, [after] * 3, {}))
    assert same.verdict in (PASS, OPEN)
    assert (lost.verdict, lost.judgements[0].against) == (LOST, "ab")
    assert lost.judgements[0].reason.startswith("B is 20.0 points lower than A: ")


# What a document reports. ------------------------------------------------------------------------
VALUE = DocumentedValue(100.0)
# the DeepSeek-R1 quick start recipe documents 0.9500 ± 0.0060 for FP8, strict-match
SCORE = DocumentedValue(0.95, stderr=0.006)
GOOD = scored(GSM8K, 1253, 1319)


@each(
    "value, starts, rule, band, used, more",
    [
        (VALUE, speeds(90), Rule(), 0.1, 1, True),
        (replace(VALUE, tolerance=0.25), speeds(90), Rule(), 0.25, 1, False),
        (VALUE, speeds(90, 90, 90, 50), Rule(), 0.1, 3, False),
        (VALUE, speeds(90), Rule(max_runs=1), 0.1, 1, False),
    ],
)
def test_three_starts_at_most(value, starts, rule, band, used, more) -> None:
    probe = probe_of(SPEED, bands={SPEED: 0.02})
    (found,) = judged(probe, Reference(None, {SPEED: value}), starts, rule).judgements
    assert (found.runs_used, found.needs_more_runs) == (used, more)
    assert found.band == pytest.approx(band)


def of_gsm8k(documented: DocumentedValue, *starts: Measurement) -> Any:
    probe = probe_of(GSM8K, bands={GSM8K: 0.03})
    return judged(probe, Reference(None, {GSM8K: documented}), [*starts]).judgements[0]


def test_an_accuracy_is_compared_with_the_documented_score_and_its_error() -> None:
    assert (of_gsm8k(SCORE, GOOD).verdict, of_gsm8k(SCORE, GOOD).band) == (PASS, 0.03)
    bad = of_gsm8k(SCORE, *[scored(GSM8K, 1150, 1319)] * 2)
    assert bad.verdict == LOST
    assert bad.reason.startswith("worse than the documented score: -7.8 points")
    raised = of_gsm8k(replace(SCORE, tolerance=0.01), GOOD)
    assert (raised.verdict, raised.band) == (PASS, pytest.approx(0.0297, abs=1e-4))
    assert "margin raised from 1.0 to 3.0 points" in raised.notes[0]
    # The number of questions comes from the answers or the facts.
    bare = scored(GSM8K, 1253, 1319, answers=False)
    assert of_gsm8k(SCORE, bare) == of_gsm8k(SCORE, replace(GOOD, facts={}))
    for facts in ({}, {"questions": "198"}, {"questions": True}):
        refused(of_gsm8k, SCORE, Measurement({GSM8K: 0.7}, facts), match="number of questions")


@each(
    "metric, before, now, documented, note",
    [
        (SPEED, 100.0, speeds(100), {SPEED: 98.0}, ["documented: 98 tokens/s, now +2.0 %"]),
        (SPEED, 100.0, speeds(100), {"ttft_mean_ms": 1.0}, []),
        (GSM8K, 0.9, [scored(GSM8K, 950, 1000, answers=False)], {GSM8K: 0.9538},
         ["documented: 0.9538, now -0.4 points"]),
    ],
)  # fmt: skip
def test_the_gap_to_a_document_beside_a_baseline(metric, before, now, documented, note) -> None:
    values = {name: DocumentedValue(value) for name, value in documented.items()}
    reference = Reference(entry_of(*[Measurement({metric: before})] * 5), values)
    (found,) = judged(probe_of(metric, bands={metric: 0.05}), reference, now).judgements
    assert [one for one in found.notes if "documented" in one] == note


def test_a_claim_about_accuracy() -> None:
    claim = Claim("keeps", "It answers as well", Source("guide.md", "x"), GSM8K, "on", "not_worse",
                  versus="off", margin=0.01)  # fmt: skip
    bare = scored(GSM8K, 1250, 1319, answers=False)
    number = replace(claim, versus=None, value=0.99)
    assert claim_test(claim, [GOOD], [GOOD]).judge().verdict == PASS
    assert claim_test(claim, [bare], [bare]).judge().verdict == OPEN
    assert claim_test(number, [bare]).judge().verdict == LOST


# Other prompts than the reference's: both numbers, and no verdict from them. ----------------------
LAB = 219_171  # input tokens of 1000 ShareGPT conversations
SECONDS, OUTPUT = 76.59, 200_752
LOAD = Workload("vllm-bench", client_version="0.11.0", dataset="sharegpt", isl=None, osl=None,
                concurrency=(1000,), requests=1000, capped=False, seed=20)  # fmt: skip


def load_of(**changes: Any) -> Probe:
    load = replace(LOAD, **changes)
    gate = GatePolicy((SPEED,))
    return load_probes(replace(building.SCENARIO, workload=load, accuracy=(), gate=gate))[0]


SHAREGPT, GENERATED = load_of(), load_of(dataset="synthetic", isl=219, osl=200)


def of_tokens(tokens: int | None) -> Reference:
    """A baseline, of which only rates are kept: those of so many input tokens."""
    rates = {"total_token_throughput": (OUTPUT + (tokens or 0)) / SECONDS, "duration_s": SECONDS}
    one = Measurement({SPEED: OUTPUT / SECONDS, **(rates if tokens else {})})
    documented = {SPEED: DocumentedValue(OUTPUT / SECONDS)}
    return Reference(entry_of(*[one] * 5), documented)


@each("differs", [True, False])
def test_other_prompts_are_not_comparable_with_the_document(differs) -> None:
    """However fast or slow it was: a regression and an improvement would both be of the prompts."""
    told = f"198004 input tokens, {LAB} documented: another dataset file"
    facts = {"input_tokens": LAB, **({DATASET_DIFFERS: told} if differs else {})}
    for speed in (100.0, 2621.0, 9000.0) if differs else (2621.0,):
        starts = [Measurement({SPEED: 2621.0}), Measurement({SPEED: speed}, facts)]
        found = judged(SHAREGPT, replace(of_tokens(LAB), entry=None), starts)
        assert found.verdict == (Verdict.NOT_COMPARABLE if differs else PASS)
        assert found.reason.startswith(f"the dataset: {told}") == differs
    beside = judged(SHAREGPT, of_tokens(LAB), [Measurement({SPEED: 2621.0}, facts)] * 2)
    note = "not compared with the document, which measured other prompts"
    assert (beside.verdict, beside.notes) == (PASS, (note,) if differs else ())
    notes = [text for one in beside.judgements for text in one.notes if "documented: " in text]
    assert len(notes) == (not differs)


@each(
    "of, before, tokens, reason",
    [
        (SHAREGPT, LAB, 198_004, "measured 198004, baseline 219171"),
        (SHAREGPT, LAB, LAB, ""),
        # Rates that give no sum, a client that does not count, prompts that are generated.
        (SHAREGPT, None, 1, ""),
        (SHAREGPT, LAB, None, ""),
        (GENERATED, LAB, 1, ""),
    ],
)
def test_another_file_than_the_baselines_is_not_comparable(of, before, tokens, reason) -> None:
    """A baseline keeps no counts: the sum of its prompts follows from its rates."""
    start = Measurement({SPEED: 2600.0}, {"input_tokens": tokens})
    found = judged(of, replace(of_tokens(before), documented={}), [start, start])
    assert (found.verdict == Verdict.NOT_COMPARABLE) == bool(reason)
    assert reason in found.reason
