"""Claims in a run: a documented statement about one or two scenarios, judged on their measurements.

The measurements are those of the scenarios' own campaigns; a claim asks for more fresh starts only
where it is not decided yet.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from perfgate.core.errors import InputError
from perfgate.core.measurement import Measurement
from perfgate.core.metrics import is_accuracy
from perfgate.gate.verdict import Judgement
from perfgate.scenarios.probe import Probe, all_probes
from perfgate.scenarios.scenario import Claim, Scenario
from perfgate.verdicts.documented_values import judge_measured_claim
from perfgate.verdicts.measured import MeasuredMetric, measured_metrics
from perfgate.verdicts.outcome import Outcome


@dataclass(frozen=True)
class ClaimProbe:
    """A claim and the probes whose measurements decide it.

    Attributes:
        claim: the statement.
        probe: what it speaks of.
        versus: what that is compared with; None: a number.
    """

    claim: Claim
    probe: Probe
    versus: Probe | None = None

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def scenario(self) -> Scenario:
        """The scenario that the claim speaks of."""
        return self.probe.scenario

    @property
    def id(self) -> str:
        return self.claim.id

    @property
    def label(self) -> str:
        return self.claim.id

    @property
    def probes(self) -> tuple[Probe, ...]:
        """What must be measured."""
        return (self.probe,) if self.versus is None else (self.probe, self.versus)


def claim_probes(claims: Sequence[Claim], scenarios: Sequence[Scenario]) -> tuple[ClaimProbe, ...]:
    """The claims with their probes.

    Raises:
        InputError: a claim names no scenario, or one without such a probe.
    """
    by_id = {scenario.id: scenario for scenario in scenarios}
    return tuple(
        ClaimProbe(
            claim,
            _probe(claim, by_id, claim.scenario),
            None if claim.versus is None else _probe(claim, by_id, claim.versus),
        )
        for claim in claims
    )


def _probe(claim: Claim, scenarios: dict[str, Scenario], name: str) -> Probe:
    scenario = scenarios.get(name)
    for probe in all_probes(scenario) if scenario else ():
        if is_accuracy(claim.metric):
            if not probe.is_load and claim.metric.split(":")[1] == probe.label:
                return probe
        elif probe.is_load and claim.concurrency in (None, getattr(probe.what, "concurrency", 0)):
            return probe
    raise InputError(
        "claim about what no scenario measures",
        field=f"claim {claim.id}",
        found=f"{claim.metric} of {name}",
        expected="a metric that this scenario gives",
    )


def claim_outcome(
    claim_probe: ClaimProbe,
    outcome: Callable[[Probe], Outcome],
    again: Callable[[Probe], bool],
) -> Outcome:
    """What becomes of a claim.

    Args:
        claim_probe: the claim.
        outcome: what became of a probe.
        again: one more fresh start for a probe; False when none is left.
    """
    while True:
        ends = [outcome(probe) for probe in claim_probe.probes]
        failed = next((end for end in ends if end.error is not None), None)
        if failed is not None:
            return failed.failing(claim_probe)
        new, *others = (end.measurements for end in ends)
        judgement = judge_measured_claim(
            claim_probe.claim,
            new,
            others[0] if others else (),
            nodes=claim_probe.scenario.hardware.nodes,
        )
        # The side with fewer starts tells less, so it is measured first.
        order = sorted(claim_probe.probes, key=lambda probe: len(outcome(probe).measurements))
        if not judgement.needs_more_runs or not any(again(probe) for probe in order):
            break
    source = claim_probe.claim.source
    return Outcome(
        claim_probe,
        judgement.verdict,
        (judgement,),
        ends[0].measurements,
        compared_with=f"what {source.document}, section {source.section}, says",
        reason=claim_probe.claim.title,
        folder=ends[0].folder,
        injected=ends[0].injected,
        synthetic=ends[0].synthetic,
        measured=_measured(judgement, new),
        build=ends[0].build,
    )


def _measured(judgement: Judgement, new: Sequence[Measurement]) -> tuple[MeasuredMetric, ...]:
    """The metric that the claim is about; the others are told of the probe itself."""
    found = measured_metrics(new, (judgement,))
    return tuple(one for one in found if one.metric == judgement.metric)
