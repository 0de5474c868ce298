"""Measured: what the fresh starts of a probe show, judged or not. Pure.

One value of each metric over all starts, scores with the number of their questions, the build that
gave them, settings that were not in force, and prompts that differ from those of a reference.

An option that a program accepts may be without effect. What the running server said of itself is
among a measurement's facts (`perfgate.engines.effective_settings`); where it says nothing, what the
scenario says of its own command line holds. The tokens of all prompts together tell one dataset
from another: another file, one that is cut off, another seed or another tokenizer has another sum.
"""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, geometric_mean, median

from perfgate.baselines import Entry
from perfgate.clients.client_facts import DATASET_DIFFERS
from perfgate.core.errors import InputError
from perfgate.core.measurement import Json, MeasuredBuild, MeasuredMetric, Measurement
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.verdict import Judgement
from perfgate.engines.base import EngineBuild
from perfgate.judging.rules.accuracy import Answers, Score, counted_score, score_of
from perfgate.scenarios.scenario import Scenario

_LIMITED = "limited: "
# A sum that follows from rates: 6.40 s as printed are known to 0.08 %.
_TOLERANCE = 0.002


def measured_metrics(
    measurements: Sequence[Measurement],
    judgements: Sequence[Judgement] = (),
    gating: Sequence[str] = (),
) -> tuple[MeasuredMetric, ...]:
    """Every metric that was measured; those that are judged first, then those that would be.

    Args:
        measurements: one per fresh start, in order.
        judgements: what the gate says of some of the metrics; the first of each metric counts.
        gating: the metrics that the gate judges where there is something to compare with.
    """
    judged = {one.metric: one for one in reversed(judgements)}
    first = [*(one.metric for one in judgements), *gating]
    names = dict.fromkeys(
        [*first, *(name for measurement in measurements for name in measurement.metrics)]
    )
    found = []
    for name in names:
        values = tuple(one.metrics[name] for one in measurements if name in one.metrics)
        judgement = judged.get(name)
        if judgement is not None and judgement.runs_used:
            values = values[: judgement.runs_used]
        if values:
            found.append(
                MeasuredMetric(name, lookup(name).unit, central_value(name, values), values)
            )
    return tuple(found)


def central_value(metric: str, values: Sequence[float]) -> float:
    """The value that stands for several fresh starts, as in `MeasuredMetric`."""
    if is_accuracy(metric) or min(values) <= 0:
        return fmean(values)
    return geometric_mean(values)


def answers_of(metric: str, measurements: Sequence[Measurement]) -> list[Answers]:
    """Those of each evaluation; empty where an evaluator kept none."""
    return [measurement.answers.get(metric, {}) for measurement in measurements]


def measured_score(metric: str, measurement: Measurement) -> Score:
    """The score of one evaluation with the number of its questions.

    They are counted from the answers, or where an evaluator keeps none, taken from the fact
    ``questions``.

    Raises:
        InputError: neither is known.
    """
    answers = measurement.answers.get(metric)
    if answers:
        return score_of(answers)
    questions, score = measurement.facts.get("questions"), measurement.metrics.get(metric)
    if type(questions) is not int or score is None:
        raise InputError(
            f"the number of questions behind {metric} is unknown",
            found=f"score {score}, questions {questions}",
            expected="answers, or the fact `questions` beside the score",
        )
    return counted_score(round(score * questions), questions)


def gap(metric: str, documented: float, now: float) -> float:
    """How far a value is from the documented one, as a fraction; of an accuracy the difference."""
    return now - documented if is_accuracy(metric) else now / documented - 1


def image_facts(facts: Mapping[str, Json]) -> dict[str, Json]:
    """What the launcher tells of the image that it started; empty: nothing."""
    details = (facts.get(launcher) for launcher in ("docker", "slurm"))
    return next((one for one in details if isinstance(one, dict) and one.get("image")), {})


def measured_build(build: EngineBuild, measurements: Sequence[Measurement]) -> MeasuredBuild:
    """The build, with the image that its newest measurement tells of."""
    images = [found for measurement in measurements if (found := image_facts(measurement.facts))]
    image = images[-1] if images else {}
    digests = image.get("digests")
    digest = digests[0] if isinstance(digests, list) and digests else image.get("id")
    return MeasuredBuild(
        build.name, build.version, build.commit, str(image.get("image") or ""), str(digest or "")
    )


def is_limit(note: str) -> bool:
    """Whether a note is about what bounds the load, and not about a setting of the scenario."""
    return note.startswith(_LIMITED)


def inert_notes(scenario: Scenario) -> tuple[str, ...]:
    """What is known before a start: which settings the document's line does not put in force."""
    inert = scenario.engine.inert or {}
    return tuple(f"known not to be in force: {name}: {why}" for name, why in inert.items())


def settings_notes(scenario: Scenario, measurements: Sequence[Measurement]) -> Iterator[str]:
    """One line for each setting that is not in force, or bounded; said once for all starts.

    Args:
        scenario: what was measured.
        measurements: one per fresh start; none: nothing is said.
    """
    if not measurements:
        return
    inert = scenario.engine.inert or {}
    told = _texts(measurements, "settings_inert")
    yield from (f"not in force, as the scenario says: {one}" for one in told)
    yield from (f"{_LIMITED}{text}" for text in _texts(measurements, "settings_limited"))
    for name in (revived := _texts(measurements, "settings_no_longer_inert")):
        yield (
            f"in force, which the scenario says it is not: {name}: what is documented was measured "
            f"without it; remove engine.inert.{name}, or use the documented release"
        )
    for name, why in inert.items():
        if name not in revived and not any(one.startswith(f"{name}:") for one in told):
            yield f"not in force, by the scenario alone, as the server does not tell: {name}: {why}"
    silent = unestablished(measurements)
    for why in dict.fromkeys(silent.values()):
        names = ", ".join(name for name, reason in silent.items() if reason == why)
        yield f"not established: whether {names} is in force: {why}"


def unestablished(measurements: Sequence[Measurement]) -> dict[str, str]:
    """Setting that is asked for → why it is not known to be in force, over all fresh starts."""
    given = [measurement.facts.get("settings_not_established") for measurement in measurements]
    reasons = [facts for facts in given if isinstance(facts, dict)]
    return {name: str(why) for facts in reasons for name, why in facts.items()}


def _texts(measurements: Sequence[Measurement], fact: str) -> list[str]:
    """The lines of a fact that is a list, over all measurements, each once."""
    given: list[Json] = [measurement.facts.get(fact) for measurement in measurements]
    return [
        *dict.fromkeys(str(line) for lines in given if isinstance(lines, list) for line in lines)
    ]


def prompts_differ_from_document(measurements: Sequence[Measurement]) -> str:
    """How the measured prompts differ from those that the document measured; empty: not at all.

    Args:
        measurements: one per fresh start, each with what is told of its client's prompts.
    """
    differences = (measurement.facts.get(DATASET_DIFFERS) for measurement in measurements)
    return next((f"the dataset: {one}" for one in differences if one), "")


def unlike_baseline(
    scenario: Scenario, entry: Entry, measurements: Sequence[Measurement]
) -> tuple[str, ...]:
    """How the measured conversations differ from those of a baseline, in words.

    A baseline keeps no counts: its sums follow from its rates.

    Args:
        scenario: what was measured; only conversations of a file are compared.
        entry: the baseline's part for the probe, of the same client.
        measurements: one per fresh start; those that do not count their prompts are not looked at.
    """
    load = scenario.workload
    if load is None or load.dataset != "sharegpt":
        return ()
    before = [tokens for run in entry.runs if (tokens := _by_arithmetic(run.metrics)) is not None]
    known = median(before) if before else 0.0
    for measurement in measurements if before else ():
        now = measurement.facts.get("input_tokens")  # of all prompts, as the client counted them
        if type(now) is int and now and abs(now - known) > _TOLERANCE * known:
            return (f"input tokens of all prompts: measured {now}, baseline {known:.0f}",)
    return ()


def _by_arithmetic(metrics: Mapping[str, float]) -> float | None:
    names = ("total_token_throughput", "output_throughput", "duration_s")
    if not all(name in metrics for name in names):
        return None
    every, output, duration = (metrics[name] for name in names)
    return (every - output) * duration
