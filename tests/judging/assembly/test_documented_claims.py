"""Every shipped claim on made-up values: verdict, starts, interval and words are as recorded,
whether it is true, false, at its edge, or not to be told. A documented size is the document's.

To record them, after `RULE_VERSION` in perfgate/core/verdict.py was raised:
python tests/judging/assembly/test_documented_claims.py
"""

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from documented_set import documented_suite
from starts_made import scored
from tables import each

from perfgate.core.measurement import Measurement
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.verdict import RULE_VERSION, Judgement
from perfgate.judging.assembly.claims import claim_test
from perfgate.judging.rules.claims import EarlierStarts
from perfgate.scenarios.claims import claims_of
from perfgate.scenarios.documented import documented_values
from perfgate.scenarios.files import load_suite
from perfgate.scenarios.scenario import Claim

SHIPPED, SUITE = load_suite(Path(__file__).parents[3] / "scenarios"), documented_suite()
SCENARIOS = {scenario.id: scenario for scenario in SUITE.scenarios}
ALL, CLAIMS = (
    {one.id: one for one in claims_of(suite.scenarios, suite.claims)} for suite in (SHIPPED, SUITE)
)
QUESTIONS = 1319  # of GSM8K


def documented(claim: Claim, scenario: str) -> float:
    """What the document reports of a side."""
    found = documented_values(SCENARIOS[scenario])
    assert found is not None
    return found.values[claim.metric].value


@each("name", [name for name, one in CLAIMS.items() if one.documented is not None])
def test_a_documented_size_is_the_ratio_of_the_documents_results(name: str) -> None:
    claim = CLAIMS[name]
    ratio = documented(claim, claim.scenario) / documented(claim, claim.versus or "")
    assert claim.documented == round(ratio - 1, 3)


RECORDED = Path(__file__).with_name(f"recorded_claims_{RULE_VERSION}.json")
# Fresh starts in prior sigmas; the last of either side is far off.
NEW = (0.3, -1.1, 0.8, -0.2, 1.4, -6.0)
OTHER = (-0.7, 0.5, 1.2, -0.9, 0.1, 5.0)
# Name → true loss in prior sigmas, None: what the claim says; noise as a multiple of the prior's.
SETS = {"better": (-8.0, 1.0), "equal": (0.0, 1.0), "worse": (6.0, 1.0), "noisy": (-6.0, 8.0)}
SETS |= {"edge": (None, 1.0), "few": (-8.0, 1.0)}


def judged(claim: Claim) -> Iterator[tuple[str, Judgement]]:
    """Case → judgement."""
    if is_accuracy(claim.metric):
        for drop in (-0.04, 0.0, 0.01, 0.05):
            new = [share_of(claim.metric, (claim.value or 0.9) - drop)]
            other = [share_of(claim.metric, 0.9)] if claim.value is None else []
            yield f"drop {drop}", claim_test(claim, new, other).judge()
        return
    for name, (loss, noise) in SETS.items():
        sigma = noise * (lookup(claim.metric).family.sigma or 0.02)
        moved = said(claim) if loss is None else loss * sigma / noise
        count = 2 if name == "few" else 6
        new = [measured(claim, moved + sigma * x) for x in NEW[:count]]
        if claim.value is not None:
            yield name, claim_test(claim, new).judge()
            continue
        other = [measured(claim, sigma * x) for x in OTHER[:count]]
        yield name, claim_test(claim, new, other).judge()
        earlier = EarlierStarts("other", 3)
        yield f"{name}, a baseline", claim_test(claim, new, other, earlier=earlier).judge()
        yield f"{name}, own noise", claim_test(claim, new, other, own_noise=True).judge()


def said(claim: Claim) -> float:
    """The loss that the claim gives: the documented one, its margin, or its minimum effect."""
    if claim.documented is None:
        return claim.margin - claim.minimum_effect
    x = math.log1p(claim.documented)
    return -x if lookup(claim.metric).direction == "higher" else x


def measured(claim: Claim, loss: float) -> Measurement:
    x = -loss if lookup(claim.metric).direction == "higher" else loss
    return Measurement({claim.metric: (claim.value or 100.0) * math.exp(x)})


def share_of(metric: str, share: float) -> Measurement:
    made = scored(metric, round(QUESTIONS * share), QUESTIONS)
    return Measurement({metric: share}, made.facts, made.answers)


def plain(one: Judgement) -> list[object]:
    words = " | ".join((one.reason, *one.notes))
    interval = [round(x, 9) for x in one.interval or ()]
    return [one.verdict.value, one.runs_used, one.needs_more_runs, *interval, words]


@each("name", ALL, ids="claim:{}".format)
def test_a_shipped_claim_is_judged_as_recorded(name: str) -> None:
    recorded = json.loads(RECORDED.read_text())[name]
    found = {case: plain(one) for case, one in judged(ALL[name])}
    assert found.keys() == recorded.keys()
    for case, values in found.items():
        assert values[:3] + values[5:] == recorded[case][:3] + recorded[case][5:], case
        assert values[3:5] == pytest.approx(recorded[case][3:5], abs=2e-9)


def test_nothing_else_is_recorded() -> None:
    recorded = json.loads(RECORDED.read_text())
    assert recorded.keys() == ALL.keys()
    verdicts = {one[0] for cases in recorded.values() for one in cases.values()}
    assert {"PASS", "REGRESSION", "INCONCLUSIVE"} <= verdicts


if __name__ == "__main__":
    lines = (
        f" {json.dumps(name)}: "
        + json.dumps({case: plain(one) for case, one in judged(claim)}, ensure_ascii=False)
        for name, claim in ALL.items()
    )
    sys.exit(RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n") < 1)
