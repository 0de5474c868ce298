"""Claims: a documented statement about one result or two, its `JudgeInput`, and what becomes of it.

The measurements are those of the scenarios' own campaigns, or of starts in which both sides take
turns; a side that was not measured may be an accepted baseline. Starts nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from perfgate.baselines import Baseline, Entry
from perfgate.baselines.baseline import common_facts
from perfgate.baselines.choice import in_order
from perfgate.core.errors import InputError
from perfgate.core.measurement import Measurement
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.verdict import Rule, Verdict, counted
from perfgate.judging.assembly import measured
from perfgate.judging.assembly.judge_input import JudgeInput, Outcome, judge
from perfgate.judging.rules.claims import ClaimTest, EarlierStarts
from perfgate.scenarios.claims import claims_of
from perfgate.scenarios.files import LoadedSuite
from perfgate.scenarios.probe import Probe, all_probes
from perfgate.scenarios.scenario import Claim, EngineSettings, Scenario

# Facts of a measurement that two sides of a claim need not share: what is measured, on which
# weights, and by which program, which is looked at by itself.
_OWN_FACTS = frozenset({"content", "model", "extra_options", "client", "evaluator"})


@dataclass(frozen=True)
class ClaimProbe:
    """A claim and the probes whose measurements decide it.

    Attributes:
        claim: the statement.
        probes: what must be measured: what it speaks of, then what that is compared with where
            that is no number.
    """

    claim: Claim
    probes: tuple[Probe, ...]

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
    def probe(self) -> Probe:
        """What it speaks of."""
        return self.probes[0]

    @property
    def is_interleaved(self) -> bool:
        """Whether both sides take turns in starts made for the claim: where a start is cheap.

        That is without a GPU. Scores do not depend on when they are measured.
        """
        starts = [probe.is_load and probe.scenario.hardware.gpu == "none" for probe in self.probes]
        return len(starts) > 1 and all(starts)

    @property
    def own_noise(self) -> bool:
        """Whether a side says that the noise which the machine shows decides."""
        return any(probe.scenario.gate.noise == "measured" for probe in self.probes)


def claim_probes(claims: Sequence[Claim], scenarios: Sequence[Scenario]) -> tuple[ClaimProbe, ...]:
    """The claims with their probes.

    Raises:
        InputError: a claim names no scenario, or one without such a probe.
    """
    by_id = {scenario.id: scenario for scenario in scenarios}
    return tuple(
        ClaimProbe(claim, tuple(_probe(claim, by_id, name) for name in claim.sides))
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


def claim_test(
    claim: Claim, new: Sequence[Measurement], versus: Sequence[Measurement] = (), **noise: Any
) -> ClaimTest:
    """A claim and the measurements of both sides, one per fresh start; none: it has one side.

    `noise` is, of a speed, what `ClaimTest` has of the noise of a start.

    Raises:
        InputError: a score of an unknown number of questions.
    """
    metric, sides = claim.metric, (new, versus)
    if is_accuracy(metric):
        answers = tuple(measured.answers_of(metric, side) for side in sides)
        scores = tuple(measured.measured_score(metric, side[0]) if side else None for side in sides)
        return ClaimTest(claim, answers=answers, scores=scores)
    values = tuple([one.metrics[metric] for one in side] for side in sides)
    return ClaimTest(claim, values, **noise)


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
            side = _measurements(side, claim.metric)
        given.append(side)
    sigma = lookup(claim.metric).family.on(scenario.hardware.nodes).sigma
    noise: dict[str, Any] = {"earlier": earlier, "own_noise": claim_probe.own_noise, "sigma": sigma}
    test = claim_test(claim, *given, **noise)
    return JudgeInput.of(scenario, claim_probe.label, Rule(), tests=[test])


def _measurements(entry: Entry, metric: str) -> list[Measurement]:
    """A baseline's fresh starts that have the metric, as measurements."""
    return [
        Measurement(run.metrics, {}, run.answers) for run in entry.runs if metric in run.metrics
    ]


@dataclass(frozen=True)
class StoredSide:
    """An accepted baseline that stands for a side of a claim.

    Attributes:
        probe: the side.
        metric: what the claim is about.
        baseline: an accepted one that has it.
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
    def client(self) -> str:
        """The program that measured it, with its release.

        One that came with the engine stands there by its name alone: its release is the engine's.
        """
        facts = self.entry.fingerprint
        name = facts.get("client") or facts.get("evaluator") or "unknown"
        return name if " " in name else f"{name} {self.baseline.engine.version}"

    @property
    def description(self) -> str:
        """Which baseline, how old, of which commit, and why it stands there."""
        engine = self.baseline.engine
        commit = "" if engine.commit == engine.version else f", commit {engine.commit[:12]}"
        started = [run.started for run in self.entry.runs if self.metric in run.metrics]
        newest = max(started)
        days = (self.today - datetime.fromisoformat(newest).date()).days
        return (
            f"{self.probe.id} was not measured in this session ({self.why}): its newest accepted "
            f"baseline serves, {engine.name} {engine.version}{commit}, "
            f"{counted(len(started), 'fresh start')} of {newest[:10]} "
            f"({counted(days, 'day')} old), accepted by {self.baseline.accepted_by}"
        )

    def differences(self, fingerprint: Mapping[str, str]) -> tuple[str, ...]:
        """The facts of the machine in which the side measured now differs, in words.

        Args:
            fingerprint: the facts of that side's measurements.
        """
        there = self.entry.fingerprint
        return tuple(
            f"{name}: now {fingerprint.get(name, 'none')}, baseline {there.get(name, 'none')}"
            for name in common_facts(fingerprint, there)
            if name not in _OWN_FACTS and fingerprint.get(name) != there.get(name)
        )


def stored_sides(
    stored: Sequence[Baseline], probe: Probe, metric: str, *, today: date, why: str
) -> list[StoredSide]:
    """The baselines that can stand for a side, newest first: of its content, not retired.

    Args:
        stored: the baselines of its scenario.
        probe, metric, today, why: as in `StoredSide`.
    """
    content = probe.content_hash()
    return [
        StoredSide(probe, metric, one, today, why)
        for one in reversed(in_order(stored))
        if one.retired is None
        and (entry := one.entries.get(probe.label)) is not None
        and entry.fingerprint.get("content") == content
        and entry.values(metric)
    ]


def claim_outcome(
    claim_probe: ClaimProbe, ends: Mapping[Probe, Outcome], stored: Mapping[Probe, StoredSide]
) -> Outcome:
    """What becomes of a claim; its judgement says whether it needs more starts to be decided.

    Args:
        claim_probe: the claim.
        ends: what became of each probe that this session measures.
        stored: the side that is an accepted baseline instead, at most one.
    """
    claim = claim_probe.claim
    if failed := [end for end in ends.values() if end.error is not None]:
        # One may only have been left out because the other failed: that one tells least.
        failed.sort(key=lambda end: end.error is not None and end.error.failure == "incomplete")
        return failed[0].failing(claim_probe)
    unused = next((end for end in ends.values() if not end.measurements), None)
    if unused is not None:  # disturbed, so not used
        reason = unused.reason or f"nothing was measured of {unused.probe.id}"
        return unused.of_same_starts(claim_probe, Verdict.INCONCLUSIVE, reason=reason)
    for end in ends.values() if claim.documented is not None else ():
        if why := measured.prompts_differ_from_document(end.measurements):
            return Outcome(
                claim_probe,
                Verdict.NOT_COMPARABLE,
                reason=f"{end.probe.id}: {why}",
                synthetic=end.synthetic,
            )
    given = {probe: end.measurements for probe, end in ends.items()}
    entries = {probe: one.entry for probe, one in stored.items()}
    judge_input = claim_input(claim_probe, {**given, **entries})
    (judgement,) = judge(judge_input).judgements
    first, source = next(iter(ends.values())), claim.source
    of_claim = given.get(claim_probe.probe) or _measurements(
        entries[claim_probe.probe], claim.metric
    )
    # The other metrics are reported of the probe itself.
    every = measured.measured_metrics(of_claim, (judgement,))
    return first.of_same_starts(
        claim_probe,
        judgement.verdict,
        judgements=(judgement,),
        measurements=first.measurements,
        compared_with=f"what {source.document}, section {source.section}, says",
        reason=claim.title,
        notes=(
            *(one.description for one in stored.values()),
            *_builds(claim_probe, ends),
            *_blind(claim_probe, ends),
        ),
        measured=tuple(one for one in every if one.metric == claim.metric),
        judge_input=judge_input,
    )


def _builds(claim_probe: ClaimProbe, ends: Mapping[Probe, Outcome]) -> Iterator[str]:
    """The builds of both sides where they are not one, and releases that no document measured."""
    builds = {probe: end.build for probe, end in ends.items() if end.build is not None}
    if len({one.description for one in builds.values()}) > 1:
        yield "; ".join(f"{probe.scenario.id}: {one.description}" for probe, one in builds.items())
    if claim_probe.claim.documented is None:
        return
    for probe, build in builds.items():
        document = probe.scenario.source.engine_version
        if document and build.version != document:
            yield (
                f"the document measured {probe.scenario.id} with {build.name} {document}, not "
                f"{build.version}"
            )


def _blind(claim_probe: ClaimProbe, ends: Mapping[Probe, Outcome]) -> Iterator[str]:
    """That "no worse" would hold if a setting in which the sides differ were ignored."""
    if claim_probe.claim.expect != "not_worse":
        return
    silent: dict[str, str] = {}
    for end in ends.values():
        silent |= measured.unestablished(end.measurements)
    settings = [probe.scenario.engine.settings for probe in claim_probe.probes]
    differing = [
        name for name in silent if len({_asked(setting, name) for setting in settings}) > 1
    ]
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
