"""Every documented claim, played true and false: what it says of each through the verdict's road.

All numbers are made up.
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from documented_set import documented_suite
from tables import each

from perfgate.core.measurement import Measurement
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.verdict import Verdict
from perfgate.judging.assembly.claims import claim_outcome, claim_probes
from perfgate.judging.assembly.outcome import Outcome
from perfgate.scenarios.claims import claims_of
from perfgate.scenarios.documented import documented_values
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import Claim

SUITE = documented_suite()
SCENARIOS = {scenario.id: scenario for scenario in SUITE.scenarios}
CLAIMS = {claim.id: claim for claim in claims_of(SUITE.scenarios, SUITE.claims)}
SIZED = sorted(name for name, claim in CLAIMS.items() if claim.documented is not None)
OURS = [name for name, claim in CLAIMS.items() if claim.minimum_effect or claim.margin]
QUESTIONS = 1319  # of GSM8K


class Case(NamedTuple):
    """Values of the scenario that a claim speaks of; `other`: of what it is compared with.

    Attributes:
        holds: with which it is true.
        broken: with which it is false.
        edge: with which it is just not true, or not to be told: it must not pass.
    """

    holds: float
    broken: float
    edge: float
    other: float


@cache
def case_of(name: str) -> Case:
    claim = CLAIMS[name]
    sign = 1 if lookup(claim.metric).direction == "higher" else -1
    if claim.documented is not None:
        return _of_the_document(claim, sign)
    score = is_accuracy(claim.metric)
    other = claim.value or (0.93 if score else 1000)

    def better_by(share: float) -> float:
        return other + share if score else other * (1 + sign * share)

    if claim.expect == "not_worse":
        return Case(other, better_by(-claim.margin - 0.04), better_by(-claim.margin), other)
    if least := claim.minimum_effect:  # a gain that is real and at least half of it holds
        return Case(better_by(3 * least), better_by(0.4 * least), better_by(0.48 * least), other)
    return Case(better_by(0.02 if score else 0.1), better_by(-0.04), other, other)


def _of_the_document(claim: Claim, sign: int) -> Case:
    """The document's own two results hold; beyond the limit, and just at it, they do not."""
    ours, other = documented(claim, claim.scenario), documented(claim, claim.versus or "")
    if claim.expect == "not_better":
        limit = other * (1 + sign * claim.margin)
        return Case(ours, limit * (1 + sign * 0.05), limit, other)
    limit = ours * (1 - sign * claim.tolerance)
    if claim.expect == "better":  # a tolerance that is larger than the size leaves the direction
        limit = sign * max(sign * limit, sign * other)
    return Case(ours, limit * (1 - sign * 0.05), limit, other)


def documented(claim: Claim, scenario: str) -> float:
    """What the document reports of a side: the claims are ratios of its results."""
    found = documented_values(SCENARIOS[scenario])
    assert found is not None
    return found.values[claim.metric].value


@each("name", CLAIMS)
def test_a_claim_passes_where_it_is_true_and_there_alone(name: str) -> None:
    """The edge is no effect where one is claimed, or just the loss that is too large."""
    case = case_of(name)
    assert played(name, case.holds).verdict == Verdict.PASS
    lost = played(name, case.broken)
    assert lost.verdict == Verdict.REGRESSION
    assert lost.judgements[0].reason.startswith("the claim does not hold")
    assert played(name, case.edge).verdict in (Verdict.INCONCLUSIVE, Verdict.REGRESSION)


@each("name", OURS, ids="claim:{}".format)
def test_what_is_ours_in_a_claim_is_told(name: str) -> None:
    (judgement,) = played(name, case_of(name).holds).judgements
    if CLAIMS[name].minimum_effect:
        assert any("minimum effect 5 %, ours" in note for note in judgement.notes)
    else:
        assert judgement.band == CLAIMS[name].margin


@each("name", SIZED, ids="claim:{}".format)
def test_a_documented_size_is_the_ratio_of_results_and_far_better_is_no_failure(name: str) -> None:
    claim, holds = CLAIMS[name], case_of(name).holds
    ratio = documented(claim, claim.scenario) / documented(claim, claim.versus or "")
    assert claim.documented == round(ratio - 1, 3)
    better = 1.5 if lookup(claim.metric).direction == "higher" else 0.5
    value = holds / 2 if claim.expect == "not_better" else holds * better
    assert played(name, value).verdict == Verdict.PASS


def played(name: str, value: float) -> Outcome:
    """What becomes of the claim if five starts of either side give these values, but for noise."""
    (claim_probe,) = claim_probes([CLAIMS[name]], SUITE.scenarios)
    values = (value, case_of(name).other)
    ready = {
        probe: list(measurements(CLAIMS[name].metric, of_side))
        for probe, of_side in zip(claim_probe.probes, values, strict=False)
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
