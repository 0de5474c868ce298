"""Measured metrics: one value of each metric over the fresh starts of a probe, judged or not; and
the build that gave them. Pure.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean, geometric_mean

from perfgate.core.measured import MeasuredBuild, MeasuredMetric
from perfgate.core.measurement import Json, Measurement
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.verdict import Judgement
from perfgate.engines.base import EngineBuild

_IMAGE_FACTS = ("docker", "slurm")  # where a placement tells of the image that it started


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
    judged: dict[str, Judgement] = {}
    for one in judgements:
        judged.setdefault(one.metric, one)
    names = dict.fromkeys(
        [*judged, *gating, *(name for one in measurements for name in one.metrics)]
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


def measured_build(build: EngineBuild, measurements: Sequence[Measurement]) -> MeasuredBuild:
    """The build, with the image that its newest measurement tells of."""
    image: Mapping[str, Json] = {}
    for measurement in measurements:
        for name in _IMAGE_FACTS:
            told = measurement.facts.get(name)
            if isinstance(told, dict) and told.get("image"):
                image = told
    digests = image.get("digests")
    digest = digests[0] if isinstance(digests, list) and digests else image.get("id")
    return MeasuredBuild(
        build.name, build.version, build.commit, str(image.get("image") or ""), str(digest or "")
    )
