"""Claim outcome: what becomes of a claim in a run, from the outcomes of its sides.

The measurements are those of the scenarios' own campaigns, or of starts in which both sides take
turns; a side that was not measured may be an accepted baseline. A claim asks for more fresh starts
only where it is not decided yet.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from types import MappingProxyType
from typing import Any

from perfgate.baselines import Baseline, BaselineRun, Entry
from perfgate.baselines.baseline import common_facts
from perfgate.baselines.choice import in_order
from perfgate.core.measurement import Measurement
from perfgate.core.verdict import Verdict, counted
from perfgate.judging.assembly.claims import ClaimProbe, claim_input, stored_measurements
from perfgate.judging.assembly.judge_input import judge
from perfgate.judging.assembly.measured import measured_metrics, unestablished, unlike_documented
from perfgate.judging.assembly.outcome import Outcome
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import EngineSettings

# Facts of a measurement that two sides of a claim need not share: what is measured, on which
# weights, and by which program, which is looked at by itself.
_OWN_FACTS = frozenset({"content", "model", "extra_options", "client", "evaluator"})


@dataclass(frozen=True)
class StoredSide:
    """An accepted baseline that stands for a side of a claim.

    Attributes:
        probe: the side.
        metric: what the claim is about.
        baseline: its newest accepted one.
        today: the day of this session.
        why: why the side was not measured.
    """

    probe: Probe
    metric: str
    baseline: Baseline
    today: date
    why: str

    @property
    def entry(self) -> Entry:
        """The side's part of the baseline."""
        return self.baseline.entries[self.probe.label]

    @property
    def runs(self) -> Sequence[BaselineRun]:
        """Its fresh starts that have the metric."""
        return [run for run in self.entry.runs if self.metric in run.metrics]

    @property
    def measurements(self) -> Sequence[Measurement]:
        """One per fresh start."""
        return stored_measurements(self.entry, self.metric)

    @property
    def in_words(self) -> str:
        """Which baseline, how old, of which commit, and why it stands there."""
        engine = self.baseline.engine
        commit = "" if engine.commit == engine.version else f", commit {engine.commit[:12]}"
        newest = max(run.started for run in self.runs)
        days = (self.today - datetime.fromisoformat(newest).date()).days
        return (
            f"{self.probe.id} was not measured in this session ({self.why}): its newest accepted "
            f"baseline serves, {engine.name} {engine.version}{commit}, "
            f"{counted(len(self.runs), 'fresh start')} of {newest[:10]} "
            f"({counted(days, 'day')} old), accepted by {self.baseline.accepted_by}"
        )

    def differences(self, fingerprint: Mapping[str, str]) -> tuple[str, ...]:
        """The facts of the machine in which the side measured now differs, in words.

        Args:
            fingerprint: the facts of that side's measurements.
        """
        here, there = (
            {name: value for name, value in facts.items() if name not in _OWN_FACTS}
            for facts in (fingerprint, self.entry.fingerprint)
        )
        return tuple(
            f"{name}: now {here.get(name, 'none')}, baseline {there.get(name, 'none')}"
            for name in common_facts(here, there)
            if here.get(name) != there.get(name)
        )


def client_of(entry: Entry, version: str) -> str:
    """The program that measured an entry, with its release.

    One that came with the engine stands there by its name alone: its release is the engine's.
    """
    told = entry.fingerprint.get("client") or entry.fingerprint.get("evaluator") or "unknown"
    return told if " " in told else f"{told} {version}"


def newest_first(stored: Sequence[Baseline], probe: Probe, metric: str) -> list[Baseline]:
    """The baselines that can stand for a probe, newest first: of its content, not retired."""
    content = probe.content_hash()
    return [
        one
        for one in reversed(in_order(stored))
        if one.retired is None
        and (entry := one.entries.get(probe.label)) is not None
        and entry.fingerprint.get("content") == content
        and entry.values(metric)
    ]


def by_client(stored: Collection[Baseline], probe: Probe, client: str) -> Baseline | None:
    """The first of the baselines that a program of the same release measured; None: there is none.

    Args:
        stored: of `newest_first`.
        probe: the side.
        client: the program of the other side, with its release.
    """
    return next(
        (
            one
            for one in stored
            if client_of(one.entries[probe.label], one.engine.version) == client
        ),
        None,
    )


_NONE_STORED: Mapping[Probe, StoredSide] = MappingProxyType({})


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
