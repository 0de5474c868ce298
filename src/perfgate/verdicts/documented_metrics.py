"""Documented metrics: what the document of a test says of its metrics, as plain values."""

from typing import Any

from perfgate.core.metrics import lookup
from perfgate.scenarios.documented import documented_values
from perfgate.scenarios.probe import Probe
from perfgate.verdicts.claims import ClaimProbe
from perfgate.verdicts.references import belongs, cited, measures_itself
from perfgate.verdicts.sweeps import SweepProbe


def documented_metrics(subject: Probe | ClaimProbe | SweepProbe) -> list[dict[str, Any]]:
    """Metric, value, unit and source of each value that is documented for a test.

    None for a machine that is its own reference, nor for a curve, whose points have theirs; a claim
    has the number that it must reach.

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
    return [
        _plain(metric, value.value, cited(found.source))
        for metric, value in found.values.items()
        if belongs(metric, value, subject)
    ]


def _plain(metric: str, value: float, source: str) -> dict[str, Any]:
    return {"metric": metric, "value": value, "unit": lookup(metric).unit, "source": source}
