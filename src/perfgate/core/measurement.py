"""Measurement: what a client or evaluator showed on one fresh start, and what a test showed over
all of them: its metrics, the builds behind them, how far they moved. Plain values.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

from perfgate.core.verdict import Against, Count, counted

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True)
class Measurement:
    """Values of one repetition on one fresh start of the engine.

    Attributes:
        metrics: canonical metric name (`perfgate.core.metrics`) → finite value in that metric's
        unit. facts: what else is known of the run: requests asked and completed, true ISL and OSL,
            the program's version, labels the parser did not know.
        answers: for accuracy metrics, metric name → question key → answered correctly.
        disturbed: what disturbed it beyond the limits, each in words; it is then not judged.
    """

    metrics: Mapping[str, float]
    facts: Mapping[str, Json] = field(default_factory=dict)
    answers: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    disturbed: tuple[str, ...] = ()


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
    values: Annotated[tuple[float, ...], Meta(min_length=1)]

    @property
    def n(self) -> int:
        """The number of fresh starts behind it."""
        return len(self.values)


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
    def description(self) -> str:
        """``tensorrt-llm 1.3.0, commit 0a1b2c3, image example/engine:1.3.0, sha256:…``."""
        commit = "" if self.commit == self.version else f"commit {self.commit}"
        image = self.image and f"image {self.image}"
        parts = (f"{self.name} {self.version}", commit, image, self.digest)
        return ", ".join(filter(None, parts))


@dataclass(frozen=True)
class MeasuredControl:
    """The build of the baseline or of the anchor as a control: started in the same session.

    Attributes:
        against: whose build it is.
        build: that build, and the image that it was in; None: it could not be started.
        starts: controls of it behind a verdict, nothing disturbed.
        skip_reason: why there are no more; empty: as many as were wanted.
        note: what a person should know of that build; empty: nothing.
    """

    against: Against
    build: MeasuredBuild | None
    starts: Count
    skip_reason: str = ""
    note: str = ""

    @property
    def description(self) -> str:
        """``tensorrt-llm 1.2.0, commit 0a1b2c3, 2 starts``, or why there is none."""
        words = "none"
        if self.build is not None:
            words = f"{self.build.description}, {counted(self.starts, 'start')}"
        if self.against == "anchor":
            words = f"of the anchor: {words}"
        aside = "; ".join(filter(None, (self.skip_reason, self.note)))
        return f"{words} ({aside})" if aside else words


@dataclass(frozen=True)
class Change:
    """How far a metric moved, without a verdict.

    Attributes:
        metric: canonical name.
        baseline: central value of the baseline, in the metric's unit.
        measured: central value of the fresh starts, in the metric's unit.
        change: signed change, a fraction; of an accuracy the difference.
        interval: confidence bounds of `change`, in its unit, low first.
        runs_used: fresh starts behind it.
        p_value: probability of a loss at least this large if there is none; one-sided.
    """

    metric: str
    baseline: float
    measured: float
    change: float
    interval: tuple[float, float]
    runs_used: Count
    p_value: Annotated[float, Meta(ge=0, le=1)]


@dataclass(frozen=True)
class ChangedQuestions:
    """The questions behind one score that one build answers rightly and the other wrongly.

    A question counts where the share of evaluations with a right answer moved by half or more.

    Attributes:
        metric: canonical name of the score, with task and filter.
        against: what the baseline is.
        asked: how many questions there are.
        lost: how many were right before and are wrong now.
        gained: how many were wrong before and are right now.
        lost_keys: the keys of those lost, at most `MOST`, in order.
        gained_keys: the keys of those gained, likewise.
    """

    metric: str
    against: Against
    asked: Annotated[int, Meta(ge=1)]
    lost: Count
    gained: Count
    lost_keys: tuple[str, ...]
    gained_keys: tuple[str, ...]
