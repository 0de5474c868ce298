"""Scenario section: the facts of a scenario, and of each of its tests all that is known."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfgate.campaign.budget import span
from perfgate.core.verdict import counted
from perfgate.reports.outcome_text import MARKS, resumed
from perfgate.reports.page.metric_rows import AGAINST, MetricRow, metric_rows
from perfgate.reports.page.results_table import anchor_of
from perfgate.reports.page.signs import Sign, result_sign
from perfgate.reports.run_report import RunReport, ScenarioFacts, TestResult

LOG_LINES = 200  # of one failure
LOG_CHARACTERS = 200_000  # of all failures of a page
ROWS = 3_000  # metrics of a page that have a row each, before those not compared share a line
_SHORTEST_LOG = 1_000  # characters of one failure, however many there are

Pair = tuple[str, str]


@dataclass(frozen=True)
class LogLines:
    """The lines that show a failure.

    Attributes:
        lines: the last ones.
        left_out: how many are before them.
    """

    lines: tuple[str, ...]
    left_out: int


@dataclass(frozen=True)
class TestSection:
    """One test.

    Attributes:
        anchor: its id in the page.
        sign: of its verdict.
        result: the test itself.
        rows: its metrics, each a row.
        others: those that were not compared, where a page has too many rows.
        has_documented: whether a document names any of them.
        said: why each metric has its verdict, and notes, in words.
        facts: name and text of what else is known, without what the whole scenario has in common.
        log: lines of its failure.
    """

    __test__ = False

    anchor: str
    sign: Sign
    result: TestResult
    rows: tuple[MetricRow, ...]
    others: tuple[MetricRow, ...]
    has_documented: bool
    said: tuple[str, ...]
    facts: tuple[Pair, ...]
    log: LogLines | None


@dataclass(frozen=True)
class ScenarioSection:
    """One scenario.

    Attributes:
        anchor: its id in the page.
        scenario: its facts.
        counts: how many of its tests have each sign, the worst first.
        facts: name and text of each.
        tests: its tests, in order.
        synthetic: whether stand-ins made any number of it.
    """

    anchor: str
    scenario: ScenarioFacts
    counts: tuple[tuple[Sign, int], ...]
    facts: tuple[Pair, ...]
    tests: tuple[TestSection, ...]
    synthetic: bool


def scenario_sections(report: RunReport) -> tuple[ScenarioSection, ...]:
    """The sections of all scenarios, those with the worst verdict first."""
    failures = sum(one.failure is not None for one in report.results)
    room = max(_SHORTEST_LOG, LOG_CHARACTERS // max(1, failures))
    is_long = sum(len(one.measured) for one in report.results) > ROWS
    known = {one.id: one for one in report.scenarios}
    placed: dict[str, list[tuple[int, TestResult]]] = {}
    for place, one in enumerate(report.results):
        placed.setdefault(one.scenario, []).append((place, one))
    sections = [
        _section(f"s{number}", known.get(name, ScenarioFacts(name)), tests, report, room, is_long)
        for number, (name, tests) in enumerate(placed.items())
    ]
    return tuple(sorted(sections, key=lambda one: one.counts[0][0].rank))


def _section(
    anchor: str,
    scenario: ScenarioFacts,
    tests: Sequence[tuple[int, TestResult]],
    report: RunReport,
    room: int,
    is_long: bool,
) -> ScenarioSection:
    results = [one for _, one in tests]
    several_runs = len(report.runs) > 1
    facts = {anchor_of(place): tuple(_facts(one, several_runs)) for place, one in tests}
    common = _common([facts[anchor_of(place)] for place, one in tests if one.verdict is not None])
    signs = Counter(result_sign(one) for one in results)
    return ScenarioSection(
        anchor=anchor,
        scenario=scenario,
        counts=tuple(sorted(signs.items(), key=lambda pair: pair[0].rank)),
        facts=(*_scenario_facts(scenario, report), *common),
        tests=tuple(
            _test(place, one, _without(facts[anchor_of(place)], common), room, is_long)
            for place, one in tests
        ),
        synthetic=any(one.synthetic for one in results),
    )


def _without(facts: Sequence[Pair], common: Sequence[Pair]) -> list[Pair]:
    return [pair for pair in facts if pair not in common]


def _scenario_facts(scenario: ScenarioFacts, report: RunReport) -> Iterator[Pair]:
    if scenario.engine:
        yield "engine", scenario.engine
    if scenario.model:
        yield "model", scenario.model
    if scenario.hardware:
        yield "hardware", scenario.hardware
    if scenario.document:
        yield "document", ", ".join(filter(None, (scenario.document, scenario.section)))
    if scenario.markers:
        yield "markers", " ".join(scenario.markers)
    for effort in report.efforts:
        if effort.scenario != scenario.id:
            continue
        again = f", {effort.again} of them again" if effort.again else ""
        controls = f", {counted(effort.controls, 'control')} among them" * bool(effort.controls)
        hours = f" × {effort.gpus} GPUs = {effort.spent_s * effort.gpus / 3600:.2f} GPU hours"
        of_run = f" (run {effort.run})" if len(report.runs) > 1 else ""
        yield (
            f"effort{of_run}",
            f"{counted(effort.made, 'fresh start')} made{again}{controls}, {effort.planned} "
            f"planned; {span(effort.spent_s)}{hours if effort.gpus else ''}, of it "
            f"{span(effort.starting_s)} starting; {effort.ended}",
        )


def _test(
    place: int, result: TestResult, facts: Sequence[Pair], room: int, is_long: bool
) -> TestSection:
    rows = metric_rows(result)
    others = [one for one in rows if one.sign is None and not one.documented] if is_long else []
    return TestSection(
        anchor=anchor_of(place),
        sign=result_sign(result),
        result=result,
        rows=tuple(one for one in rows if one not in others),
        others=tuple(others),
        has_documented=bool(result.documented),
        said=tuple(_said(result)),
        facts=tuple(facts),
        log=None if result.failure is None else _log(result.failure.evidence, room),
    )


def _said(result: TestResult) -> Iterator[str]:
    for one in result.judgements:
        against = f" {AGAINST[one.against]}" if AGAINST[one.against] else ""
        yield f"{one.metric}{against}: {one.reason}"
        yield from (f"{one.metric}{against}: note: {note}" for note in one.notes)
        if one.waiver:
            yield f"{one.metric}{against}: waived: {one.waiver}"
        if one.controls_used:
            yield f"{one.metric}{against}: {counted(one.controls_used, 'control')} behind it"
    for mark in dict.fromkeys(one.mark for one in result.judgements if one.mark):
        yield f"{mark}: {MARKS[mark]}"
    yield from (f"note: {note}" for note in result.notes)


def _facts(result: TestResult, several_runs: bool) -> Iterator[Pair]:
    """What is known of a test beside its numbers."""
    sources = dict.fromkeys(one.source for one in result.documented)
    told = [
        ("build", [] if result.build is None else [result.build.in_words]),
        ("compared with", [result.compared_with]),
        ("control", [one.in_words for one in result.controls]),
        ("extra options", [result.extra_options]),
        ("setting", result.settings),
        ("injected", result.injected),
        ("documented in", list(sources)),
        ("disturbance", result.disturbances),
        ("fresh starts", [str(result.starts or "")]),
        ("run", [result.run if several_runs else ""]),
        ("resumed", [resumed(result.resumed_from) if result.resumed_from else ""]),
    ]
    for name, texts in told:
        yield from ((name, text) for text in texts if text)


def _common(facts: Sequence[Sequence[Pair]]) -> tuple[Pair, ...]:
    """What every measured test of the scenario says alike; nothing where there is but one."""
    if len(facts) < 2:
        return ()
    return tuple(pair for pair in dict.fromkeys(facts[0]) if all(pair in one for one in facts[1:]))


def _log(evidence: Sequence[str], room: int) -> LogLines:
    """The last lines that fit."""
    kept: list[str] = []
    for line in reversed(evidence):
        room -= len(line) + 1
        if len(kept) == LOG_LINES or (room < 0 and kept):
            break
        kept.append(line[-max(_SHORTEST_LOG, room) :] if room < 0 else line)
    return LogLines(tuple(reversed(kept)), len(evidence) - len(kept))


def machine_rows(machine: Mapping[str, object]) -> Iterator[Pair]:
    """The facts of a machine, as `run.json` has them."""
    for name, value in machine.items():
        if isinstance(value, list | tuple):
            yield name, "; ".join(map(_in_words, value)) or "none"
        elif value not in (None, ""):
            yield name, _in_words(value)


def _in_words(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_in_words(one)}" for name, one in value.items())
    return str(value)
