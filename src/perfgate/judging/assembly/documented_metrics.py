"""Documented metrics: what the document of a test says of its metrics, as plain values."""

from collections.abc import Sequence
from typing import Any

from perfgate.core.metrics import lookup
from perfgate.judging.assembly.claims import ClaimProbe
from perfgate.judging.assembly.documented_values import gap
from perfgate.judging.assembly.measured import MeasuredMetric
from perfgate.judging.assembly.references import belongs, cited, measures_itself
from perfgate.judging.assembly.sweeps import SweepProbe
from perfgate.scenarios.documented import documented_values
from perfgate.scenarios.probe import Probe


def documented_metrics(
    subject: Probe | ClaimProbe | SweepProbe, measured: Sequence[MeasuredMetric] = ()
) -> list[dict[str, Any]]:
    """Metric, value, unit, source and change of each value that is documented for a test.

    None for a machine that is its own reference, nor for a curve, whose points have theirs; a claim
    has the number that it must reach.

    Args:
        subject: the test.
        measured: what was measured as the document did: how far it is from the documented value is
            the change, as a fraction, of an accuracy the difference; else that is None.

    Raises:
        InputError, SeveralInputErrors: the file of documented values is not as it should be.
    """
    if isinstance(subject, SweepProbe):
        return []
    if isinstance(subject, ClaimProbe):
        claim = subject.claim
        if claim.value is None:
            return []
        return [_plain(claim.metric, claim.value, cited(claim.source))]
    found = None if measures_itself(subject) else documented_values(subject.scenario)
    if found is None:
        return []
    values = {one.metric: one.value for one in measured}
    return [
        _plain(metric, value.value, cited(found.source), values.get(metric))
        for metric, value in found.values.items()
        if belongs(metric, value, subject)
    ]


def _plain(metric: str, value: float, source: str, now: float | None = None) -> dict[str, Any]:
    return {
        "metric": metric,
        "value": value,
        "unit": lookup(metric).unit,
        "source": source,
        "change": None if now is None else gap(metric, value, now),
    }
