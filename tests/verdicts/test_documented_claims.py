"""Every documented claim, played true and false: what it says of each through the verdict's road.

All numbers are made up. A claim without a case here fails a test of this file.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pytest
from documented_set import documented_suite

from perfgate.core.measurement import Measurement
from perfgate.core.metrics import is_accuracy
from perfgate.gate.verdict import Verdict
from perfgate.scenarios.claims import claims_of
from perfgate.scenarios.probe import Probe
from perfgate.verdicts.claims import claim_outcome, claim_probes
from perfgate.verdicts.outcome import Outcome

SUITE = documented_suite()
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

# Not by the claim's id alone: that is how the suite's own test of it is called.
each_claim = pytest.mark.parametrize("name", CASES, ids="claim:{}".format)
OURS = [name for name, claim in CLAIMS.items() if claim.minimum_effect or claim.margin]


def test_every_claim_has_a_case() -> None:
    assert set(CASES) == set(CLAIMS)
    for name, case in CASES.items():
        assert (case.other is None) == (CLAIMS[name].versus is None), name


@each_claim
def test_a_true_claim_passes(name: str) -> None:
    case = CASES[name]
    assert played(name, case.holds, case.other).verdict == Verdict.PASS


@each_claim
def test_a_false_claim_is_a_regression(name: str) -> None:
    case = CASES[name]
    found = played(name, case.broken, case.other)
    assert found.verdict == Verdict.REGRESSION
    (judgement,) = found.judgements
    assert judgement.reason.startswith("the claim does not hold")


@each_claim
def test_a_claim_that_is_not_proved_does_not_pass(name: str) -> None:
    """No effect where one is claimed, or just the loss that is too large: its test fails, too."""
    case = CASES[name]
    found = played(name, case.edge, case.other)
    assert found.verdict in (Verdict.INCONCLUSIVE, Verdict.REGRESSION)


@pytest.mark.parametrize("name", OURS, ids="claim:{}".format)
def test_what_is_ours_in_a_claim_is_told(name: str) -> None:
    case = CASES[name]
    (judgement,) = played(name, case.holds, case.other).judgements
    if CLAIMS[name].minimum_effect:
        assert any("minimum effect 5 %, ours" in note for note in judgement.notes)
    else:
        assert judgement.band == CLAIMS[name].margin


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


def test_the_road_asks_for_what_the_claim_names() -> None:
    claim = CLAIMS["b200-fp4-beats-fp8-at-4096"]
    (found,) = claim_probes([claim], SUITE.scenarios)
    labels: Sequence[str] = [probe.id for probe in found.probes]
    assert labels == ["b200-r1-0528-fp4-serve-c4096", "b200-r1-0528-fp8-serve-c4096"]
