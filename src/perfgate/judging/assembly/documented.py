"""Documented values: which of a scenario's belong to a test, and how a document is cited."""

from collections.abc import Sequence

from perfgate.core.measured import MeasuredMetric
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.judging.assembly.claims import ClaimProbe
from perfgate.judging.assembly.judgement import measures_itself
from perfgate.judging.assembly.measured import gap
from perfgate.judging.assembly.sweeps import SweepProbe
from perfgate.runs.record import DocumentedMetric
from perfgate.scenarios.documented import Documented, DocumentedValue, documented_values
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import LoadPoint, Source


def cited(source: Source) -> str:
    """A document in words: ``guide.md, section Serving, engine commit abc1234``."""
    words = f"{source.document}, section {source.section}"
    if source.engine_commit:
        return f"{words}, engine commit {source.engine_commit[:7]}"
    return f"{words}, engine {source.engine_version}" if source.engine_version else words


def _belongs(metric: str, value: DocumentedValue, probe: Probe) -> bool:
    """Whether a documented value is one of this probe's.

    A value without a concurrency belongs to the only point of a sweep: with several it cannot be
    known to which.
    """
    if is_accuracy(metric):
        return not probe.is_load and metric.split(":")[1] == probe.label
    if not isinstance(probe.what, LoadPoint):
        return False
    if value.concurrency is None:
        return len(probe.scenario.points()) == 1
    return value.concurrency == probe.what.concurrency


def documented_for(probe: Probe, document: Documented | None) -> dict[str, DocumentedValue]:
    """What a document reports for this probe: metric → value."""
    values = document.values.items() if document else ()
    return {metric: value for metric, value in values if _belongs(metric, value, probe)}


def documented_metrics(
    subject: Probe | ClaimProbe | SweepProbe, measured: Sequence[MeasuredMetric] = ()
) -> list[DocumentedMetric]:
    """Each value that is documented for a test.

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
        return [_documented(claim.metric, claim.value, cited(claim.source))]
    found = None if measures_itself(subject) else documented_values(subject.scenario)
    if found is None:
        return []
    values = {one.metric: one.value for one in measured}
    return [
        _documented(metric, value.value, cited(found.source), values.get(metric))
        for metric, value in documented_for(subject, found).items()
    ]


def _documented(
    metric: str, value: float, source: str, now: float | None = None
) -> DocumentedMetric:
    change = None if now is None else gap(metric, value, now)
    return DocumentedMetric(metric, value, lookup(metric).unit, source, change)
