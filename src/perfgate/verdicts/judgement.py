"""Judgement: a probe's measurements against what it is compared with, metric by metric.

Pure. Where there is a measured baseline it decides, and what is documented becomes a note; beside
it stands the anchor, so that a loss in many small steps shows. Both are judged under the scenario's
policy; measured and documented are never mixed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from perfgate.baselines import Entry
from perfgate.baselines.calibrated_noise import SigmaOf
from perfgate.core.errors import InputError, RunError
from perfgate.core.measurement import Measurement
from perfgate.core.metrics import ACCURACY, is_accuracy, lookup
from perfgate.gate.accuracy import judge_paired
from perfgate.gate.anchor import anchor_band
from perfgate.gate.multiplicity import holm
from perfgate.gate.performance import Change, Rule, describe_change, judge_performance
from perfgate.gate.scores import Score, judge_unpaired
from perfgate.gate.verdict import Judgement, Verdict, verdict_of
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import Scenario
from perfgate.verdicts.documented_values import (
    faults_of,
    judge_documented_value,
    measured_score,
    with_gap,
)


@dataclass(frozen=True)
class Reference:
    """What one probe is compared with.

    Attributes:
        entry: a baseline's part for it; None: there is none.
        documented: what is documented for it: metric → value. It is judged where there is no entry,
            metrics without a documented value staying unjudged; beside an entry it is only told.
        anchor: the last release's part for it, where that is another one than `entry`.
        noise: metric → noise of one fresh start, where it was measured beforehand.
    """

    entry: Entry | None = None
    documented: Mapping[str, DocumentedValue] = field(default_factory=dict)
    anchor: Entry | None = None
    noise: Mapping[str, SigmaOf] = field(default_factory=dict)


@dataclass(frozen=True)
class ProbeJudgement:
    """The verdict of one probe, and whether another fresh start may change it.

    Attributes:
        verdict: the worst of the judgements'.
        judgements: one per gating metric, those against the anchor after those against the
            baseline.
        reason: why there is no verdict from numbers, where there is none.
        needs_more_runs: whether another fresh start may change it.
        observed: how the metrics moved that are reported and do not gate.
        notes: what else a person should know.
    """

    verdict: Verdict
    judgements: tuple[Judgement, ...] = ()
    reason: str = ""
    needs_more_runs: bool = False
    observed: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()


def judge(
    probe: Probe,
    reference: Reference,
    measurements: Sequence[Measurement],
    fingerprint: Mapping[str, str],
    rule: Rule,
) -> ProbeJudgement:
    """Judge every gating metric of `probe` and take the worst verdict.

    Args:
        probe: what was measured.
        reference: what it is compared with.
        measurements: one per fresh start, in order; none that was disturbed.
        fingerprint: the facts of the measurements that must equal the baseline's.
        rule: error rates and the most fresh starts.

    Raises:
        InputError: a baseline and no gating metric, or values that cannot be judged.
        RunError: a measurement lacks a gating metric (class ``no_metrics``).
    """
    documented, entry = reference.documented, reference.entry
    metrics = probe.gating_metrics()
    _require(metrics, measurements)
    if entry is None:
        if not documented.keys() & set(metrics):
            return ProbeJudgement(
                Verdict.NO_BASELINE, reason="there is no baseline for this probe yet"
            )
        return _against_documents(probe, documented, measurements, rule)
    different = entry.differences(fingerprint)
    if different:
        return ProbeJudgement(Verdict.NOT_COMPARABLE, reason="; ".join(different))
    if not metrics:
        raise InputError(
            "nothing to judge",
            field="gate.metrics",
            found=f"no metric that {probe.id} gives",
            hint="name one of its metrics in the scenario's gate, or drop the probe",
        )
    judgements = judge_metrics(metrics, probe.scenario, reference, measurements, rule)
    against_anchor, notes = _against_anchor(probe, reference, measurements, fingerprint, rule)
    judged = together((*judgements, *against_anchor))
    if probe.is_load:
        observed, untold = _observed(probe.scenario, metrics, reference, measurements, rule)
        return replace(judged, observed=observed, notes=(*notes, *untold))
    return replace(judged, notes=notes)


def judge_metrics(
    metrics: Sequence[str],
    scenario: Scenario,
    reference: Reference,
    measurements: Sequence[Measurement],
    rule: Rule,
) -> tuple[Judgement, ...]:
    """Judge metrics against `reference.entry`, each with the scenario's band or else its own.

    Performance metrics share the rule's alpha (`sharing_alpha`).
    """
    if reference.entry is None:
        raise ValueError("no entry to judge against")
    entry, policy = reference.entry, scenario.gate
    measured = {metric: entry.values(metric) for metric in metrics}

    def performance(metric: str, alpha: float) -> Judgement:
        known = reference.noise.get(metric)
        prior_dof = known.dof if known else rule.prior_dof
        return judge_performance(
            metric,
            measured[metric],
            [measurement.metrics[metric] for measurement in measurements],
            band=band_of(metric, scenario),
            sigma=known.sigma if known else sigma_of(metric, scenario),
            rule=replace(rule, alpha=alpha, prior_dof=prior_dof),
            measured_noise=policy.noise == "measured",
        )

    speeds = [one for one in metrics if not is_accuracy(one) and measured[one]]
    found = sharing_alpha(speeds, performance, scenario, rule)
    for metric in metrics:
        if is_accuracy(metric):
            found[metric] = _judge_accuracy(metric, entry, measurements, band_of(metric, scenario))
        elif metric not in found:
            why = f"the baseline has no {metric}"
            found[metric] = _unjudged(metric, measurements, band_of(metric, scenario), why)
    return tuple(with_gap(found[metric], reference.documented.get(metric)) for metric in metrics)


def sharing_alpha(
    metrics: Sequence[str],
    judge_one: Callable[[str, float], Judgement],
    scenario: Scenario,
    rule: Rule,
) -> dict[str, Judgement]:
    """Judge performance metrics together: metric → judgement, in the order given.

    They share the rule's alpha (Holm 1979): one regression is claimed wrongly, of all of them, no
    more often than of a single one. A machine that measures its own noise has its own alpha, made
    for several metrics.

    Args:
        metrics: canonical names.
        judge_one: judges a metric at an error rate.
        scenario: whose gate it is.
        rule: error rates.
    """
    if scenario.gate.noise == "measured":
        return {metric: judge_one(metric, rule.alpha) for metric in metrics}
    return holm(metrics, judge_one, rule.alpha)


def _require(metrics: Sequence[str], measurements: Sequence[Measurement]) -> None:
    for start, measurement in enumerate(measurements, start=1):
        missing = [one for one in metrics if one not in measurement.metrics]
        if missing:
            raise RunError(
                "no_metrics",
                f"the result of fresh start {start} lacks {', '.join(missing)}, which gates",
            )


def together(
    judgements: tuple[Judgement, ...], unjudged: tuple[Judgement, ...] = ()
) -> ProbeJudgement:
    """The worst of `judgements`; what is unjudged is listed after them."""
    verdict = verdict_of(judgements)
    # A proved regression needs no further starts, whatever the other metrics say.
    more = verdict != Verdict.REGRESSION and any(
        judgement.needs_more_runs for judgement in judgements
    )
    return ProbeJudgement(verdict, (*judgements, *unjudged), needs_more_runs=more)


def with_waivers(
    judged: ProbeJudgement, waive: Callable[[tuple[Judgement, ...]], tuple[Judgement, ...]]
) -> ProbeJudgement:
    """`judged` with the regressions let through that `waive` marks so."""
    judgements = waive(judged.judgements)
    if judgements == judged.judgements:
        return judged
    counting = tuple(one for one in judgements if not _is_only_listed(one))
    listed = tuple(one for one in judgements if _is_only_listed(one))
    decided = together(counting, listed)
    return replace(decided, reason=judged.reason, observed=judged.observed, notes=judged.notes)


def _is_only_listed(judgement: Judgement) -> bool:
    """Whether it is a metric that no document tells of, beside one that a document does."""
    return judgement.verdict == Verdict.NO_BASELINE and judgement.against == "documented"


def _against_anchor(
    probe: Probe,
    reference: Reference,
    measurements: Sequence[Measurement],
    fingerprint: Mapping[str, str],
    rule: Rule,
) -> tuple[tuple[Judgement, ...], tuple[str, ...]]:
    """What the anchor says, with its wider bands; an anchor that cannot be compared is told."""
    anchor = reference.anchor
    if anchor is None:
        return (), ()
    if different := anchor.differences(fingerprint):
        return (), (f"not compared with the anchor: {'; '.join(different)}",)
    metrics = [one for one in probe.gating_metrics() if anchor.values(one)]
    scenario = probe.scenario
    bands = {
        metric: anchor_band(metric, band)
        for metric in metrics
        if (band := band_of(metric, scenario)) is not None
    }
    wider = replace(scenario, gate=replace(scenario.gate, bands={**scenario.gate.bands, **bands}))
    found = judge_metrics(
        metrics, wider, Reference(anchor, noise=reference.noise), measurements, rule
    )
    return tuple(_of_anchor(one) for one in found), ()


def _of_anchor(judgement: Judgement) -> Judgement:
    return replace(
        judgement, against="anchor", reason=f"since the last release: {judgement.reason}"
    )


def _observed(
    scenario: Scenario,
    gating: Sequence[str],
    reference: Reference,
    measurements: Sequence[Measurement],
    rule: Rule,
) -> tuple[tuple[Change, ...], tuple[str, ...]]:
    """How every other metric moved that both sides have on every start, and what cannot be told.

    With the noise that the gate itself would believe in, so that nodes or a noisy machine raise no
    more suspicion than they should. A value that the gate would refuse spoils no verdict.
    """
    shared = set.intersection(*(set(one.metrics) for one in measurements))
    found, notes = [], []
    for metric in sorted(shared - set(gating)):
        before = reference.entry.values(metric) if reference.entry else []
        if is_accuracy(metric) or not before:
            continue
        now = [one.metrics[metric] for one in measurements]
        known = reference.noise.get(metric)
        try:
            found.append(
                describe_change(
                    metric,
                    before,
                    now,
                    sigma=known.sigma if known else sigma_of(metric, scenario),
                    rule=replace(rule, prior_dof=known.dof) if known else rule,
                    measured_noise=scenario.gate.noise == "measured",
                )
            )
        except InputError as error:
            notes.append(f"{metric} is not compared: {error.problem}")
    return tuple(found), tuple(notes)


def _against_documents(
    probe: Probe,
    documented: Mapping[str, DocumentedValue],
    measurements: Sequence[Measurement],
    rule: Rule,
) -> ProbeJudgement:
    scenario = probe.scenario
    judged, unjudged = [], []
    for metric in probe.gating_metrics():
        value = documented.get(metric)
        if value is None:
            why = "not judged: nothing is documented for it, and there is no baseline yet"
            band = band_of(metric, scenario)
            told = _unjudged(metric, measurements, band, why)
            unjudged.append(replace(told, against="documented"))
        else:
            judged.append(
                judge_documented_value(
                    metric,
                    value,
                    measurements,
                    band_of(metric, scenario),
                    rule,
                    sigma=sigma_of(metric, scenario),
                )
            )
    return together(tuple(judged), tuple(unjudged))


def _unjudged(
    metric: str, measurements: Sequence[Measurement], band: float | None, why: str
) -> Judgement:
    return Judgement(
        metric=metric,
        verdict=Verdict.NO_BASELINE,
        baseline=None,
        measured=measurements[-1].metrics.get(metric),
        change=None,
        interval=None,
        band=band,
        runs_used=0,
        needs_more_runs=False,
        reason=why,
    )


def band_of(metric: str, scenario: Scenario) -> float | None:
    """The loss that counts: the scenario's band, else the metric's own; None: report only."""
    own = lookup(metric).family.on(scenario.hardware.nodes).band
    return scenario.gate.bands.get(metric, own)


def sigma_of(metric: str, scenario: Scenario) -> float | None:
    """The prior noise of one fresh start; None: a machine that measures its own noise has none."""
    if scenario.gate.noise == "measured":
        return None
    return lookup(metric).family.on(scenario.hardware.nodes).sigma


def _judge_accuracy(
    metric: str, entry: Entry, measurements: Sequence[Measurement], band: float | None
) -> Judgement:
    margin = band or ACCURACY.band or 0.0
    reference = entry.runs[0]
    before = reference.answers.get(metric, {})
    now = [measurement.answers.get(metric, {}) for measurement in measurements]
    if before and all(now):
        judgement = judge_paired(metric, before, now, margin=margin)
    elif metric not in reference.metrics:
        return _unjudged(metric, measurements, band, f"the baseline has no {metric}")
    else:  # equal fingerprints asked equally many questions
        score = measured_score(metric, measurements[0])
        known = Score(reference.metrics[metric], score.questions)
        judgement = judge_unpaired(metric, known, score, margin=margin)
    faults = faults_of(metric, reference.metrics, measurements[-1])
    return replace(judgement, notes=(*judgement.notes, *faults))
