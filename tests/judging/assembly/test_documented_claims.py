"""Every documented claim, played true and false: what it says of each through the verdict's road.

All numbers are made up. A claim without a case here fails a test of this file.
"""

from collections.abc import Iterator
from typing import NamedTuple

from documented_set import documented_suite
from tables import each

from perfgate.core.measurement import Measurement
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.verdict import Verdict
from perfgate.judging.assembly.claim_outcome import claim_outcome
from perfgate.judging.assembly.claims import claim_probes
from perfgate.judging.assembly.outcome import Outcome
from perfgate.scenarios.claims import claims_of
from perfgate.scenarios.documented import documented_values
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import Claim

SUITE = documented_suite()
SCENARIOS = {scenario.id: scenario for scenario in SUITE.scenarios}
CLAIMS = {claim.id: claim for claim in claims_of(SUITE.scenarios, SUITE.claims)}
QUESTIONS = 1319  # of GSM8K


class Case(NamedTuple):
    """Values of the scenario that a claim speaks of; `other`: of what it is compared with.

    Attributes:
        holds: with which it is true.
        broken: with which it is false.
        edge: with which it is just not true, or not to be told: it must not pass.
        other: the other scenario's; None: the claim is about a number.
    """

    holds: float
    broken: float
    edge: float
    other: float | None = None


FASTER = Case(holds=1100, broken=900, edge=1000, other=1000)
LOWER_TIME = Case(holds=9, broken=11, edge=10, other=10)
# A gain that is real and at least half of the minimum holds.
BY_FIVE_PERCENT = Case(holds=1150, broken=1020, edge=1024, other=1000)
NOT_SLOWER = Case(holds=1000, broken=940, edge=980, other=1000)
BETTER_SCORE = Case(holds=0.95, broken=0.90, edge=0.93, other=0.93)
WITHIN_A_POINT = Case(holds=0.95, broken=0.90, edge=0.94, other=0.95)
WITHIN_TWO_POINTS = Case(holds=0.945, broken=0.90, edge=0.93, other=0.95)

CASES = {
    "b200-r1-fp4-min-latency-output-throughput-per-user-floor": Case(275, 240, 250),
    "b200-r1-0528-fp4-fp8kv-max-throughput-output-throughput-floor": Case(43146, 29000, 30000),
    "b200-r1-fp4-fp16kv-max-throughput-output-throughput-floor": Case(36384, 29000, 30000),
    "b200-fp8-kv-raises-throughput": BY_FIVE_PERCENT,
    "b200-fp4-beats-fp8-at-32": FASTER,
    "b200-fp4-beats-fp8-at-4096": FASTER,
    "b200-chunked-context-lowers-tpot": LOWER_TIME,
    "b200-smaller-chunk-lowers-tpot": LOWER_TIME,
    "b200-smaller-chunk-costs-throughput": NOT_SLOWER,
    "h200-chunked-context-lowers-tpot": LOWER_TIME,
    "h200-smaller-chunk-lowers-tpot": LOWER_TIME,
    "h200-smaller-chunk-costs-throughput": NOT_SLOWER,
    "b200-fp8-kv-keeps-gsm8k-strict": WITHIN_TWO_POINTS,
    "b200-fp8-kv-keeps-gsm8k-flexible": WITHIN_TWO_POINTS,
    "b200-graph-padding-raises-throughput": BY_FIVE_PERCENT,
    "b200-graphs-up-to-the-largest-batch-cost-nothing": NOT_SLOWER,
    "b200-bos-costs-gsm8k-strict": BETTER_SCORE,
    "b200-bos-costs-gsm8k-flexible": BETTER_SCORE,
    "deepgemm-raises-throughput": BY_FIVE_PERCENT,
    "deepgemm-raises-throughput-on-two-nodes": BY_FIVE_PERCENT,
    "nvcc-raises-deepgemms-throughput": FASTER,
    "h200-fp8-kv-raises-throughput": FASTER,
    "fp8-kv-keeps-gsm8k-strict": WITHIN_A_POINT,
    "fp8-kv-keeps-gsm8k-flexible": WITHIN_A_POINT,
    "fp8-kv-checkpoint-keeps-gsm8k-strict": WITHIN_A_POINT,
    "fp8-kv-checkpoint-keeps-gsm8k-flexible": WITHIN_A_POINT,
}

LAB = {
    f"h200-lab-{name}"
    for name in (
        "sglang-beats-vllm",
        "vllm-beats-tensorrt-llm",
        "sglang-beats-tensorrt-llm",
        "parallelism-raises-throughput",
        "torch-compile-raises-no-throughput",
        "mtp-raises-no-throughput",
        *(
            f"mtp-has-the-lowest-tpot-beside-{other}"
            for other in ("vllm", "tensorrt-llm", "sglang", "dp", "compile")
        ),
        *(
            f"optimized-{load}-{what}"
            for load, tpot in (
                ("sharegpt", "costs"),
                ("short", "costs"),
                ("medium", "lowers"),
                ("long", "lowers"),
                ("very-long", "lowers"),
            )
            for what in ("total-throughput", f"{tpot}-tpot")
        ),
    )
}


def documented(claim: Claim, scenario: str) -> float:
    """What the document reports of a side: the claims are ratios of its results."""
    found = documented_values(SCENARIOS[scenario])
    assert found is not None
    return found.values[claim.metric].value


def of_the_document(claim: Claim) -> Case:
    """The document's own two results hold; beyond the limit, and just at it, they do not."""
    ours, other = documented(claim, claim.scenario), documented(claim, claim.versus or "")
    higher = lookup(claim.metric).direction == "higher"
    if claim.expect == "not_better":
        limit = other * (1 + claim.margin if higher else 1 - claim.margin)
        return Case(ours, limit * (1.05 if higher else 0.95), limit, other)
    limit = ours * (1 - claim.tolerance if higher else 1 + claim.tolerance)
    if claim.expect == "better":  # a tolerance that is larger than the size leaves the direction
        limit = max(limit, other) if higher else min(limit, other)
    return Case(ours, limit * (0.95 if higher else 1.05), limit, other)


CASES |= {name: of_the_document(CLAIMS[name]) for name in sorted(LAB)}

OURS = [name for name, claim in CLAIMS.items() if claim.minimum_effect or claim.margin]


def test_every_claim_has_a_case() -> None:
    assert set(CASES) == set(CLAIMS)
    for name, case in CASES.items():
        assert (case.other is None) == (CLAIMS[name].versus is None), name


@each("name", CASES)
def test_a_claim_passes_where_it_is_true_and_there_alone(name: str) -> None:
    """The edge is no effect where one is claimed, or just the loss that is too large."""
    case = CASES[name]
    assert played(name, case.holds, case.other).verdict == Verdict.PASS
    lost = played(name, case.broken, case.other)
    assert lost.verdict == Verdict.REGRESSION
    assert lost.judgements[0].reason.startswith("the claim does not hold")
    edge = played(name, case.edge, case.other)
    assert edge.verdict in (Verdict.INCONCLUSIVE, Verdict.REGRESSION)


@each("name", OURS, ids="claim:{}".format)
def test_what_is_ours_in_a_claim_is_told(name: str) -> None:
    case = CASES[name]
    (judgement,) = played(name, case.holds, case.other).judgements
    if CLAIMS[name].minimum_effect:
        assert any("minimum effect 5 %, ours" in note for note in judgement.notes)
    else:
        assert judgement.band == CLAIMS[name].margin


@each("name", sorted(LAB), ids="claim:{}".format)
def test_a_documented_size_is_the_ratio_of_the_documents_results(name: str) -> None:
    claim = CLAIMS[name]
    ratio = documented(claim, claim.scenario) / documented(claim, claim.versus or "")
    assert claim.documented == round(ratio - 1, 3)


@each("name", sorted(LAB), ids="claim:{}".format)
def test_far_better_than_documented_is_no_failure(name: str) -> None:
    claim, case = CLAIMS[name], CASES[name]
    assert case.other is not None
    higher = lookup(claim.metric).direction == "higher"
    value = case.holds * (1.5 if higher else 0.5)
    if claim.expect == "not_better":
        value = case.holds / 2
    assert played(name, value, case.other).verdict == Verdict.PASS


def played(name: str, value: float, other: float | None) -> Outcome:
    """What becomes of the claim if five starts of either side give these values, but for noise."""
    (claim_probe,) = claim_probes([CLAIMS[name]], SUITE.scenarios)
    metric, values = CLAIMS[name].metric, {CLAIMS[name].scenario: value}
    if CLAIMS[name].versus is not None and other is not None:
        values[CLAIMS[name].versus or ""] = other
    ready = {
        probe: list(measurements(metric, values[probe.scenario.id])) for probe in claim_probe.probes
    }
    starts = dict.fromkeys(ready, 1)

    def outcome(probe: Probe) -> Outcome:
        return Outcome(probe, Verdict.NO_BASELINE, measurements=ready[probe][: starts[probe]])

    def again(probe: Probe) -> bool:
        starts[probe] += 1
        return starts[probe] <= len(ready[probe])

    return claim_outcome(claim_probe, outcome, again)


def measurements(metric: str, value: float) -> Iterator[Measurement]:
    """Five starts: speeds with a little noise around the value, scores as so many right answers."""
    for noise in (0.001, -0.002, 0.0, 0.002, -0.001):
        if is_accuracy(metric):
            right = round(value * QUESTIONS)
            answers = {f"q{number}": number < right for number in range(QUESTIONS)}
            yield Measurement({metric: right / QUESTIONS}, {}, {metric: answers})
        else:
            yield Measurement({metric: value * (1 + noise)})
