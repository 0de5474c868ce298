"""Properties of a test for JUnit XML: its verdict with every number behind it. Pure."""

from collections.abc import Iterator

from perfgate.core.redaction import visible
from perfgate.gate.verdict import Judgement
from perfgate.reports.outcome_text import MARKS, band, brief, interval, signed
from perfgate.verdicts.outcome import Outcome

Property = tuple[str, str]


def properties(outcome: Outcome) -> list[Property]:
    """What a reader of JUnit XML can take from a test, as names and texts.

    ``metric.<name>`` is the value, ``metric.<name>.unit`` its unit, ``metric.<name>.n`` the number
    of fresh starts; of a judged metric also ``.baseline``, ``.change``, ``.interval``, ``.band``,
    ``.verdict``, ``.mark`` and ``.controls``, the number of controls that it rests on; against the
    anchor with ``.anchor`` before those words. ``mark`` is a mark that any of them has.
    """
    found = [
        ("verdict", outcome.verdict.value),
        ("scenario", outcome.probe.scenario.id),
        ("probe", outcome.probe.label),
        ("summary", _summary(outcome)),
    ]
    if outcome.synthetic:
        found.append(("synthetic", "true"))
    if outcome.resumed_from:
        found.append(("resumed_from", outcome.resumed_from))
    found += [("injected", one) for one in outcome.injected]
    if outcome.error is not None:
        found.append(("error_class", outcome.error.failure))
    marks = dict.fromkeys(one.mark for one in outcome.judgements if one.mark)
    found += [("mark", f"{mark}: {MARKS[mark]}") for mark in marks]
    if outcome.reason:
        found.append(("reason", outcome.reason))
    found += [*_identity(outcome), *_numbers(outcome)]
    return [(name, visible(text)) for name, text in found]


def _summary(outcome: Outcome) -> str:
    """The metrics and their changes in one line, else why there are none."""
    failed = "" if outcome.error is None else f"{outcome.error.failure}: {outcome.error.message}"
    return brief(outcome.judgements) or failed or outcome.reason


def _identity(outcome: Outcome) -> Iterator[Property]:
    build = outcome.build
    if build is not None:
        yield "engine", build.name
        yield "engine_version", build.version
        yield "engine_commit", build.commit
        if build.image:
            yield "image", build.image
        if build.digest:
            yield "image_digest", build.digest
    for control in outcome.controls:
        yield "control", control.in_words
    if outcome.extra_options:
        yield "extra_options", outcome.extra_options
    for setting in outcome.settings:
        yield "setting", setting
    if outcome.compared_with:
        yield "compared_with", outcome.compared_with


def _numbers(outcome: Outcome) -> Iterator[Property]:
    for one in outcome.measured:
        yield f"metric.{one.metric}", f"{one.value:.10g}"
        yield f"metric.{one.metric}.unit", one.unit
        yield f"metric.{one.metric}.n", str(one.n)
    for judgement in outcome.judgements:
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
        yield f"{name}.waiver", judgement.waiver
