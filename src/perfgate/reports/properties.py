"""Properties of a test for JUnit XML: its verdict with every number behind it. Pure."""

from collections.abc import Iterator

from perfgate.core.redaction import visible
from perfgate.core.verdict import Judgement
from perfgate.judging.assembly.outcome import Outcome
from perfgate.reports.figures import band, interval, signed
from perfgate.reports.outcome_text import MARKS, brief
from perfgate.reports.run_report import TestResult
from perfgate.runs.record import Failure

Property = tuple[str, str]


def properties(outcome: Outcome) -> list[Property]:
    """What a reader of JUnit XML can take from a test that has just ended; as `properties_of`."""
    error = outcome.error
    return properties_of(
        TestResult(
            test="",
            name=outcome.probe.id,
            scenario=outcome.probe.scenario.id,
            probe=outcome.probe.label,
            run="",
            verdict=outcome.verdict,
            reason=outcome.reason,
            judgements=outcome.judgements,
            measured=outcome.measured,
            compared_with=outcome.compared_with,
            build=outcome.build,
            controls=outcome.controls,
            failure=None
            if error is None
            else Failure(error.failure, error.message, tuple(error.evidence), error.hint),
            settings=tuple(outcome.settings),
            extra_options=outcome.extra_options,
            injected=outcome.injected,
            synthetic=outcome.synthetic,
            resumed_from=outcome.resumed_from,
        )
    )


def properties_of(result: TestResult, *, all_measured: bool = True) -> list[Property]:
    """What a reader of JUnit XML can take from a test, as names and texts.

    ``metric.<name>`` is the value, ``metric.<name>.unit`` its unit, ``metric.<name>.n`` the number
    of fresh starts; of a judged metric also ``.baseline``, ``.change``, ``.interval``, ``.band``,
    ``.verdict``, ``.mark`` and ``.controls``, the number of controls that it rests on; against the
    anchor with ``.anchor`` before those words. ``mark`` is a mark that any of them has.

    Args:
        result: the test; one without a verdict has why in place of it.
        all_measured: also the metrics that were measured and not judged.
    """
    found = [
        ("verdict" if result.verdict else "why_not", result.verdict or result.why_not),
        ("scenario", result.scenario),
        ("probe", result.probe),
        ("summary", summary(result)),
    ]
    if result.synthetic:
        found.append(("synthetic", "true"))
    if result.resumed_from:
        found.append(("resumed_from", result.resumed_from))
    found += [("injected", one) for one in result.injected]
    if result.failure is not None:
        found.append(("error_class", result.failure.error_class))
    marks = dict.fromkeys(one.mark for one in result.judgements if one.mark)
    found += [("mark", f"{mark}: {MARKS[mark]}") for mark in marks]
    if result.reason:
        found.append(("reason", result.reason))
    found += [*_identity(result), *_numbers(result, all_measured=all_measured)]
    return [(name, visible(str(text))) for name, text in found]


def summary(result: TestResult) -> str:
    """The metrics and their changes in one line, else why there are none."""
    failure = result.failure
    failed = "" if failure is None else f"{failure.error_class}: {failure.message}"
    return brief(result.judgements) or failed or result.reason


def _identity(result: TestResult) -> Iterator[Property]:
    build = result.build
    if build is not None:
        yield "engine", build.name
        yield "engine_version", build.version
        yield "engine_commit", build.commit
        if build.image:
            yield "image", build.image
        if build.digest:
            yield "image_digest", build.digest
    for control in result.controls:
        yield "control", control.in_words
    if result.extra_options:
        yield "extra_options", result.extra_options
    for setting in result.settings:
        yield "setting", setting
    if result.compared_with:
        yield "compared_with", result.compared_with


def _numbers(result: TestResult, *, all_measured: bool) -> Iterator[Property]:
    judged = {one.metric for one in result.judgements}
    for one in result.measured:
        if not all_measured and one.metric not in judged:
            continue
        yield f"metric.{one.metric}", f"{one.value:.10g}"
        yield f"metric.{one.metric}.unit", one.unit
        yield f"metric.{one.metric}.n", str(one.n)
    for judgement in result.judgements:
        yield from _judged(judgement)


def _judged(judgement: Judgement) -> Iterator[Property]:
    name = f"metric.{judgement.metric}"
    if judgement.against == "anchor":
        name += ".anchor"
    if judgement.baseline is not None:
        yield f"{name}.baseline", f"{judgement.baseline:.10g}"
    for word, text in (
        ("change", signed(judgement.metric, judgement.change)),
        ("interval", interval(judgement)),
        ("band", band(judgement)),
    ):
        if text != "-":
            yield f"{name}.{word}", text
    yield f"{name}.verdict", judgement.verdict.value
    if judgement.mark:
        yield f"{name}.mark", judgement.mark
    if judgement.controls_used:
        yield f"{name}.controls", str(judgement.controls_used)
    if judgement.waiver:
        yield f"{name}.waiver", judgement.waiver.text
