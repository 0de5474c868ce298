"""Sections: signs, and what the page says of each scenario and test that no field says alone.

A verdict, or exit status, has a shape, a word and a tone, never colour alone. Numbers are shown as
they are everywhere, by the filters of `templating`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from markupsafe import Markup

from perfgate.core.measurement import Change
from perfgate.core.verdict import Against, Judgement, Verdict
from perfgate.reports import overview
from perfgate.reports.figures import bad_sign, unit_of, worst_first
from perfgate.reports.outcome_text import resumed
from perfgate.reports.run_report import RunReport, ScenarioFacts, TestResult
from perfgate.runs.exit_status import ExitStatus
from perfgate.runs.record import DocumentedMetric


@dataclass(frozen=True)
class Sign:
    """How something is shown.

    Attributes:
        shape: one character.
        word: what it is called.
        tone: class of the style sheet: `good`, `bad`, `open`, `broken` or `none`.
        rank: the worst has 0.
    """

    shape: str
    word: str
    tone: str
    rank: int

    @cached_property
    def tag(self) -> Markup:
        """It in HTML."""
        shown = Markup('<b class="sign {}"><i aria-hidden=true>{}</i> {}</b>')
        return shown.format(self.tone, self.shape, self.word)


SIGNS: Mapping[str, Sign] = {
    Verdict.REGRESSION: Sign("▼", "REGRESSION", "bad", 0),
    Verdict.ERROR: Sign("■", "ERROR", "broken", 1),
    Verdict.NOT_COMPARABLE: Sign("◇", "NOT_COMPARABLE", "open", 2),
    Verdict.NO_BASELINE: Sign("○", "NO_BASELINE", "open", 3),
    Verdict.INCONCLUSIVE: Sign("◆", "INCONCLUSIVE", "open", 4),
    "unfinished": Sign("□", "not finished", "none", 5),
    "budget": Sign("□", "not run: time", "none", 6),
    "lack": Sign("□", "not run", "none", 7),
    "waived": Sign("▽", "waived", "open", 8),
    Verdict.IMPROVEMENT: Sign("▲", "IMPROVEMENT", "better", 9),
    Verdict.PASS: Sign("●", "PASS", "good", 10),
}
REPORTED = Sign("·", "reported", "none", 11)

_STATUS: Mapping[int, Sign] = {
    ExitStatus.PASSED: Sign("●", "Passed", "good", 0),
    ExitStatus.REGRESSION: Sign("▼", "Regression", "bad", 0),
    ExitStatus.INCONCLUSIVE: Sign("◆", "Undecided", "open", 0),
    ExitStatus.ERROR: Sign("■", "Error", "broken", 0),
    ExitStatus.NOT_JUDGED: Sign("○", "Not judged", "open", 0),
    ExitStatus.REHEARSED: Sign("◌", "Rehearsed", "none", 0),
    ExitStatus.WAIVERS: Sign("▽", "Waivers do not hold", "broken", 0),
    ExitStatus.INTERNAL_ERROR: Sign("■", "perfgate failed", "broken", 0),
    ExitStatus.UNWRITABLE: Sign("■", "Not written", "broken", 0),
}
_NOT_ENDED = Sign("□", "Not ended", "open", 0)


def status_sign(status: int | None) -> Sign:
    """That of a run's exit status; None: it has not ended. An unknown one is shown as broken."""
    if status is None:
        return _NOT_ENDED
    return _STATUS.get(status, Sign("■", "Ended abnormally", "broken", 0))


def sign(one: TestResult | Judgement | Change) -> Sign:
    """That of a test, of a metric, or of a change that is only reported."""
    if isinstance(one, Change):
        return REPORTED
    if isinstance(one, Judgement):
        return SIGNS["waived" if one.waiver else one.verdict]
    return SIGNS[one.verdict if one.verdict is not None else one.skip_reason or "lack"]


LOG_LINES = 200  # of one failure
LOG_CHARACTERS = 200_000  # of all failures of a page
_SHORTEST_LOG = 1_000  # characters of one failure, however many there are
AGAINST: Mapping[Against, str] = {
    "baseline": "",
    "anchor": "since the anchor",
    "documented": "against the document",
    "claim": "of the claim",
    "ab": "B against A",
}

Pair = tuple[str, str]


@dataclass(frozen=True)
class ScenarioSection:
    """One scenario.

    Attributes:
        scenario: its facts.
        tests: its tests, in order.
        common: name and text of what all its measured tests have in common.
        own: test → name and text of what else is known of it.
    """

    scenario: ScenarioFacts
    tests: tuple[TestResult, ...]
    common: tuple[Pair, ...]
    own: Mapping[str, tuple[Pair, ...]]


def scenario_sections(report: RunReport) -> list[ScenarioSection]:
    """The sections of all scenarios, those with the worst verdict first."""
    known = {scenario.id: scenario for scenario in report.scenarios}
    of_it: dict[str, list[TestResult]] = {}
    for result in report.results:
        of_it.setdefault(result.scenario, []).append(result)
    sections = [
        _section(known.get(name, ScenarioFacts(name)), tests, len(report.runs) > 1)
        for name, tests in of_it.items()
    ]
    return sorted(sections, key=lambda section: min(sign(test).rank for test in section.tests))


def _section(
    scenario: ScenarioFacts, tests: Sequence[TestResult], several_runs: bool
) -> ScenarioSection:
    facts = {one.test: tuple(_facts(one, several_runs)) for one in tests}
    measured = [facts[one.test] for one in tests if one.verdict is not None]
    first = dict.fromkeys(measured[0]) if len(measured) > 1 else {}
    common = tuple(pair for pair in first if all(pair in other for other in measured))
    own = {
        test: tuple(pair for pair in pairs if pair not in common) for test, pairs in facts.items()
    }
    return ScenarioSection(scenario, tuple(tests), common, own)


def _facts(result: TestResult, several_runs: bool) -> Iterator[Pair]:
    """What is known of a test beside its numbers."""
    rows = [
        ("build", [] if result.build is None else [result.build.description]),
        ("compared with", [result.compared_with]),
        ("control", [control.description for control in result.controls]),
        ("extra options", [result.extra_options]),
        ("setting", result.settings),
        ("injected", result.injected),
        ("documented in", list(dict.fromkeys(one.source for one in result.documented))),
        ("disturbance", result.disturbances),
        ("fresh starts", [str(result.starts or "")]),
        ("run", [result.run if several_runs else ""]),
        ("resumed", [resumed(result.resumed_from) if result.resumed_from else ""]),
    ]
    for name, texts in rows:
        yield from ((name, text) for text in texts if text)


@dataclass(frozen=True)
class MetricRow:
    """One metric of a test against one reference.

    Attributes:
        metric: its name.
        unit: of the values.
        value: the measured one; None: there is none.
        starts: fresh starts behind it.
        compared: its numbers and verdict; None: it was neither judged nor compared.
        documented: what the document says; None: nothing.
    """

    metric: str
    unit: str
    value: float | None
    starts: int
    compared: Judgement | Change | None
    documented: DocumentedMetric | None


def metric_rows(result: TestResult) -> Iterator[MetricRow]:
    """The rows of a test: judged metrics first, each reference in a row of its own."""
    measured = {one.metric: one for one in result.measured}
    documented = {one.metric: one for one in result.documented}
    observed = {one.metric: one for one in result.observed}
    judged = {judgement.metric for judgement in result.judgements}
    others = dict.fromkeys([*measured, *observed, *documented])
    compared: list[tuple[str, Judgement | Change | None]] = [
        *((one.metric, one) for one in result.judgements),
        *((metric, observed.get(metric)) for metric in others if metric not in judged),
    ]
    for metric, one in compared:
        values, value = measured.get(metric), documented.get(metric)
        if values is not None:
            yield MetricRow(metric, values.unit, values.value, values.n, one, value)
        elif one is not None:
            yield MetricRow(metric, unit_of(metric), one.measured, one.runs_used, one, value)
        else:
            yield MetricRow(metric, unit_of(metric), None, 0, None, value)


def leading(result: TestResult) -> Judgement | None:
    """The judgement that speaks for a test: the worst verdict, and of those the largest loss in
    bands; None: nothing was judged.
    """
    order = sorted(
        result.judgements, key=lambda judgement: (sign(judgement).rank, worst_first(judgement))
    )
    return order[0] if order else None


def gauge(one: Judgement | Change) -> Mapping[str, float] | None:
    """The picture of a judgement; None: it has no interval or no band.

    The places of `zero`, `band`, `low`, `high` and `middle` (the change) on one line, in percent of
    its width; worse is to the left.
    """
    sign_ = -bad_sign(one.metric)
    band = one.band if isinstance(one, Judgement) else None
    if not sign_ or one.change is None or one.interval is None or not band:
        return None
    low, high = sorted(sign_ * bound for bound in one.interval)
    middle = sign_ * one.change
    reach = 1.15 * max(2 * band, min(abs(low), 6 * band), abs(middle))
    reach = min(reach, 12 * band)
    values = {"zero": 0.0, "band": -band, "low": low, "high": high, "middle": middle}
    places = {name: 50 * (1 + at / reach) for name, at in values.items()}
    return {name: round(min(100.0, max(0.0, place)), 1) for name, place in places.items()}


def counts(results: Iterable[TestResult]) -> list[tuple[Sign, int]]:
    """How many tests have each sign, the worst first."""
    found = Counter(sign(result) for result in results)
    return sorted(found.items(), key=lambda pair: pair[0].rank)


def groups(results: Iterable[TestResult]) -> list[overview.Group[TestResult]]:
    """Tests without numbers to compare, by sign and reason, the worst sign first."""
    found = overview.grouped(
        (sign(result).word, overview.why(result), result) for result in results
    )
    return sorted(found, key=lambda group: sign(group.tests[0]).rank)


def unjudged(report: RunReport) -> list[TestResult]:
    """The measured tests that no metric decided."""
    open_ = overview.of_verdict(
        report, Verdict.NOT_COMPARABLE, Verdict.NO_BASELINE, Verdict.INCONCLUSIVE
    )
    return [
        one
        for one in open_
        if one.verdict != Verdict.INCONCLUSIVE or not overview.open_metrics(one, one.verdict)
    ]


def log_room(report: RunReport) -> int:
    """Characters of the log of each failure."""
    failures = sum(result.failure is not None for result in report.results)
    return max(_SHORTEST_LOG, LOG_CHARACTERS // max(1, failures))


def last_lines(evidence: Sequence[str], room: int) -> list[str]:
    """The last lines that fit."""
    kept: list[str] = []
    for line in reversed(evidence):
        room -= len(line) + 1
        if len(kept) == LOG_LINES or (room < 0 and kept):
            break
        kept.append(line[-max(_SHORTEST_LOG, room) :] if room < 0 else line)
    return kept[::-1]


def machine_rows(machine: Mapping[str, object]) -> Iterator[Pair]:
    """The facts of a machine, as `run.json` has them."""
    for name, value in machine.items():
        if isinstance(value, list | tuple):
            yield name, "; ".join(map(_describe, value)) or "none"
        elif value not in (None, ""):
            yield name, _describe(value)


def _describe(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_describe(one)}" for name, one in value.items())
    return str(value)
