"""Measured metrics: one value of each metric over the fresh starts of a probe, judged or not; and
the build that gave them. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean

from perfgate.core.measurement import Json, Measurement
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.verdict import Against, Judgement, counted
from perfgate.engines.base import EngineBuild

_IMAGE_FACTS = ("docker", "slurm")  # where a placement tells of the image that it started


@dataclass(frozen=True)
class MeasuredMetric:
    """A metric over the fresh starts of the build under test.

    Attributes:
        metric: canonical name.
        unit: unit of all its values.
        value: the central value, as the gate has it: the geometric mean of `values`; of an
            accuracy, and of values that are not all above 0, the arithmetic one.
        values: one per fresh start, in order; of a metric that was judged those that the gate used.
    """

    metric: str
    unit: str
    value: float
    values: tuple[float, ...]

    @property
    def n(self) -> int:
        """The number of fresh starts behind it."""
        return len(self.values)


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


@dataclass(frozen=True)
class MeasuredBuild:
    """The build under test: the engine as its program tells it, and the image that it was in.

    Attributes:
        name: the engine.
        version: its release.
        commit: its commit; an engine that tells none has its version here.
        image: name of the container image; empty: none, or not known.
        digest: what that image is exactly; empty: not known.
    """

    name: str
    version: str
    commit: str
    image: str = ""
    digest: str = ""

    @property
    def in_words(self) -> str:
        """``tensorrt-llm 1.3.0, commit 0a1b2c3, image example/engine:1.3.0, sha256:…``."""
        parts = [f"{self.name} {self.version}"]
        if self.commit != self.version:
            parts.append(f"commit {self.commit}")
        if self.image:
            parts.append(f"image {self.image}")
        if self.digest:
            parts.append(self.digest)
        return ", ".join(parts)


@dataclass(frozen=True)
class MeasuredControl:
    """The build of the baseline or of the anchor as a control: started in the same session.

    Attributes:
        against: whose build it is.
        build: that build, and the image that it was in; None: it could not be started.
        starts: controls of it behind a verdict, nothing disturbed.
        why_not: why there are no more; empty: as many as were wanted.
        note: what a person should know of that build; empty: nothing.
    """

    against: Against
    build: MeasuredBuild | None
    starts: int
    why_not: str = ""
    note: str = ""

    @property
    def in_words(self) -> str:
        """``tensorrt-llm 1.2.0, commit 0a1b2c3, 2 starts``, or why there is none."""
        told = [] if self.build is None else [self.build.in_words, counted(self.starts, "start")]
        if self.build is None:
            told.append("none")
        words = ", ".join(told)
        if self.against == "anchor":
            words = f"of the anchor: {words}"
        aside = "; ".join(filter(None, (self.why_not, self.note)))
        return f"{words} ({aside})" if aside else words


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
