"""Measurement: what one run of a client or evaluator showed, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field

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
