"""Claims in a run: a documented statement about one or two scenarios, judged on their measurements.

The measurements are those of the scenarios' own campaigns, or of starts in which both sides take
turns; a side that was not measured may be an accepted baseline. A claim asks for more fresh starts
only where it is not decided yet.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from perfgate.baselines import Entry
from perfgate.core.errors import InputError
from perfgate.core.measurement import Measurement
from perfgate.core.metrics import is_accuracy
from perfgate.core.rule import Rule
from perfgate.core.verdict import Verdict
from perfgate.judging.assembly.documented_values import claim_test
from perfgate.judging.assembly.judge_input import JudgeInput, judge
from perfgate.judging.assembly.measured import measured_metrics
from perfgate.judging.assembly.measured_facts import unestablished, unlike_documented
from perfgate.judging.assembly.outcome import Outcome
from perfgate.judging.assembly.stored_side import StoredSide, stored_measurements
from perfgate.judging.rules.claims import EarlierStarts
from perfgate.scenarios.claims import claims_of
from perfgate.scenarios.files import LoadedSuite
from perfgate.scenarios.probe import Probe, all_probes
from perfgate.scenarios.scenario import Claim, EngineSettings, Scenario

_NONE_STORED: Mapping[Probe, StoredSide] = MappingProxyType({})


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

    @property
    def takes_turns(self) -> bool:
        """Whether both sides take turns in starts made for the claim: where a start is cheap.

        That is without a GPU. Scores do not depend on when they are measured.
        """
        starts = [one.is_load and one.scenario.hardware.gpu == "none" for one in self.probes]
        return self.versus is not None and all(starts)

    @property
    def own_noise(self) -> bool:
        """Whether a side says that the noise which the machine shows decides."""
        return any(one.scenario.gate.noise == "measured" for one in self.probes)


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


def claims_of_suite(suite: LoadedSuite) -> tuple[ClaimProbe, ...]:
    """All claims of a suite: floors and those of its files; errors as of `claim_probes`."""
    return claim_probes(claims_of(suite.scenarios, suite.claims), suite.scenarios)


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


def claim_input(
    claim_probe: ClaimProbe, sides: Mapping[Probe, Sequence[Measurement] | Entry]
) -> JudgeInput:
    """All that the verdict of a claim rests on.

    Args:
        claim_probe: the claim.
        sides: each of its probes → its measurements, one per fresh start; at most one is an
            accepted baseline instead.

    Raises:
        InputError: a score of an unknown number of questions.
    """
    claim, scenario = claim_probe.claim, claim_probe.scenario
    given, earlier = [], None
    for probe in claim_probe.probes:
        side = sides[probe]
        if isinstance(side, Entry):
            of_claim = probe == claim_probe.probe
            earlier = EarlierStarts("new" if of_claim else "other", side.sessions(claim.metric))
            side = stored_measurements(side, claim.metric)
        given.append(side)
    test = claim_test(
        claim,
        *given,
        nodes=scenario.hardware.nodes,
        earlier=earlier,
        own_noise=claim_probe.own_noise,
    )
    return JudgeInput.of(scenario, claim_probe.label, Rule(), tests=[test])


def _tells_least(end: Outcome) -> bool:
    """Whether the side may only have been left out because the other one failed."""
    return end.error is not None and end.error.failure == "incomplete"


def claim_outcome(
    claim_probe: ClaimProbe,
    outcome: Callable[[Probe], Outcome],
    again: Callable[[Probe], bool],
    stored: Mapping[Probe, StoredSide] = _NONE_STORED,
) -> Outcome:
    """What becomes of a claim.

    Args:
        claim_probe: the claim.
        outcome: what became of a probe that this session measures.
        again: one more fresh start for a probe; False when none is left.
        stored: the side that is an accepted baseline instead, at most one.
    """
    now = [probe for probe in claim_probe.probes if probe not in stored]
    while True:
        ends = {probe: outcome(probe) for probe in now}
        if failed := [end for end in ends.values() if end.error is not None]:
            return min(failed, key=_tells_least).failing(claim_probe)
        unused = next((end for end in ends.values() if not end.measurements), None)
        if unused is not None:  # disturbed, so not used
            reason = unused.reason or f"nothing was measured of {unused.probe.id}"
            return unused.of_same_starts(claim_probe, Verdict.INCONCLUSIVE, reason=reason)
        given = {probe: one.measurements for probe, one in ends.items()}
        if claim_probe.claim.documented is not None:
            for probe, measurements in given.items():
                if why := unlike_documented(measurements):
                    synthetic = ends[probe].synthetic
                    return not_comparable(claim_probe, f"{probe.id}: {why}", synthetic=synthetic)
        entries = {probe: one.entry for probe, one in stored.items()}
        judge_input = claim_input(claim_probe, {**given, **entries})
        (judgement,) = judge(judge_input).judgements
        # The side with fewer starts tells less, so it is measured first.
        order = sorted(now, key=lambda probe: len(outcome(probe).measurements))
        if not judgement.needs_more_runs or not any(again(probe) for probe in order):
            break
    given |= {probe: one.measurements for probe, one in stored.items()}
    measured, source = next(iter(ends.values())), claim_probe.claim.source
    told = measured_metrics(given[claim_probe.probe], (judgement,))
    return measured.of_same_starts(
        claim_probe,
        judgement.verdict,
        judgements=(judgement,),
        measurements=measured.measurements,
        compared_with=f"what {source.document}, section {source.section}, says",
        reason=claim_probe.claim.title,
        notes=(
            *(one.in_words for one in stored.values()),
            *_builds(claim_probe, ends),
            *_blind(claim_probe, given),
        ),
        # The other metrics are reported of the probe itself.
        measured=tuple(one for one in told if one.metric == judgement.metric),
        judge_input=judge_input,
    )


def not_comparable(claim_probe: ClaimProbe, reason: str, *, synthetic: bool = False) -> Outcome:
    """That both sides of a claim cannot be held against each other, and why."""
    return Outcome(claim_probe, Verdict.NOT_COMPARABLE, reason=reason, synthetic=synthetic)


def _builds(claim_probe: ClaimProbe, ends: Mapping[Probe, Outcome]) -> Iterator[str]:
    """The builds of both sides where they are not one, and releases that no document measured."""
    builds = {probe: end.build for probe, end in ends.items() if end.build is not None}
    if len({one.in_words for one in builds.values()}) > 1:
        yield "; ".join(f"{probe.scenario.id}: {one.in_words}" for probe, one in builds.items())
    if claim_probe.claim.documented is None:
        return
    for probe, build in builds.items():
        document = probe.scenario.source.engine_version
        if document and build.version != document:
            yield (
                f"the document measured {probe.scenario.id} with {build.name} {document}, not "
                f"{build.version}"
            )


def _blind(claim_probe: ClaimProbe, given: Mapping[Probe, Sequence[Measurement]]) -> Iterator[str]:
    """That "no worse" would hold if a setting in which the sides differ were ignored."""
    if claim_probe.claim.expect != "not_worse" or claim_probe.versus is None:
        return
    silent: dict[str, str] = {}
    for measured in given.values():
        silent |= unestablished(measured)
    settings = [probe.scenario.engine.settings for probe in claim_probe.probes]
    differing = [name for name in silent if len({_asked(one, name) for one in settings}) > 1]
    if differing:
        yield (
            f"blind to an ignored option: the sides differ in {', '.join(differing)}, which is not "
            f"established to be in force ({silent[differing[0]]}); ignored, it would be no worse"
        )


def _asked(settings: EngineSettings, name: str) -> Any:
    """A setting, or a part of one as ``cuda_graphs.padding``; None: it is not asked for."""
    value: Any = settings
    for part in name.split("."):
        value = getattr(value, part, None)
    return value
