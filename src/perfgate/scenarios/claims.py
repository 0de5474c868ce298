"""Claims: what documents say about results; the rules of those in files, and those of floors.

Judging them is the work of `perfgate.judging.rules.claims`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from perfgate.core.errors import did_you_mean
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.scenarios.rules.metric_rules import misplaced_point, unknown_metric, unmeasured_metric
from perfgate.scenarios.scenario import Claim, Floor, Scenario
from perfgate.scenarios.yaml_document import Problem


def claims_of(scenarios: Iterable[Scenario], claims: Iterable[Claim] = ()) -> tuple[Claim, ...]:
    """All claims about the scenarios: the floors of each, then those of the files.

    A floor's claim is called ``<scenario>-<metric>-floor``, with the sweep point before ``-floor``
    where the metric has several floors. A claim is given where one of its sides is: what becomes of
    the other side is told where the claim is judged.
    """
    chosen = tuple(scenarios)
    ids = {scenario.id for scenario in chosen}
    floors = tuple(claim for scenario in chosen for claim in _floors(scenario))
    written = (claim for claim in claims if ids.intersection(claim.sides))
    return (*floors, *written)


def broken_claim_rules(claim: Claim, scenarios: Mapping[str, Scenario]) -> list[Problem]:
    """All that is wrong with a claim, given all scenarios by id; paths from the claim down."""
    return [*_needs_one_other(claim), *_numbers_have_a_use(claim), *_fits(claim, scenarios)]


def _floors(scenario: Scenario) -> Iterator[Claim]:
    several = Counter(floor.metric for floor in scenario.floors)
    for floor in scenario.floors:
        point = f"-c{floor.concurrency}" if several[floor.metric] > 1 else ""
        name = floor.metric.translate(str.maketrans("_:.", "---")).lower()
        yield Claim(
            id=f"{scenario.id}-{name}{point}-floor",
            title=f"{scenario.title}: {_words(floor)}",
            source=scenario.source,
            metric=floor.metric,
            scenario=scenario.id,
            expect="better",
            concurrency=floor.concurrency,
            value=floor.value,
        )


def _words(floor: Floor) -> str:
    metric = lookup(floor.metric)
    least = "at least" if metric.direction == "higher" else "at most"
    return f"{metric.name} of {least} {floor.value:g} {metric.unit}"


def _needs_one_other(claim: Claim) -> Iterator[Problem]:
    versus, value = claim.versus, claim.value
    expected = "versus (a scenario) or value (a number)"
    if versus is None and value is None:
        yield Problem((), "compared with nothing", expected=expected)
    if versus is not None and value is not None:
        found = f"versus {versus} and value {value:g}"
        yield Problem(("value",), "compared with two things", found, expected)
    if value is not None and claim.expect in ("worse", "not_better"):
        problem = "a value can only be reached: expect better"
        yield Problem(("expect",), problem, claim.expect, "better or not_worse")


def _numbers_have_a_use(claim: Claim) -> Iterator[Problem]:
    """Margin, minimum effect, documented size and tolerance decide something, where they stand."""
    is_sized, expect = claim.expect in ("better", "worse"), f"with expect {claim.expect}"
    tolerance, documented = f"tolerance {claim.tolerance:g}", claim.documented
    if claim.margin and is_sized:
        expected = "expect not_worse or not_better, or no margin"
        yield _unused("margin", f"margin {claim.margin:g} {expect}", expected)
    if claim.minimum_effect and (claim.expect != "better" or claim.value is not None):
        found = f"minimum_effect {claim.minimum_effect:g} {expect} and "
        found += "versus" if claim.value is None else "value"
        expected = "expect better than another scenario, or no minimum effect"
        yield _unused("minimum_effect", found, expected)
    if documented is None:
        if claim.tolerance:
            expected = "documented beside it, or no tolerance"
            yield _unused("tolerance", f"{tolerance} without documented", expected)
        return
    told = f"documented {documented:g} {expect}"
    if claim.versus is None or claim.minimum_effect or is_accuracy(claim.metric):
        expected = "a speed, compared with another scenario, without minimum_effect"
        yield _unused("documented", told, expected, "documented size")
    elif claim.tolerance and not is_sized:
        expected = "expect better or worse, or no tolerance"
        yield _unused("tolerance", f"{tolerance} {expect}", expected)
    elif is_sized and not claim.tolerance:
        expected = "how far the change may fall short of documented"
        yield Problem(("tolerance",), "missing", expected=expected)
    elif is_sized and not _goes_as_expected(claim, documented):
        expected = "the change of the value with its sign, e.g. -0.348 for a time that is "
        problem = f"the documented change is not {claim.expect}"
        yield Problem(("documented",), problem, told, f"{expected}34.8 % shorter")


def _unused(field: str, found: str, expected: str, what: str = "") -> Problem:
    """The problem of a number that decides nothing; `what`: how it is called, if otherwise."""
    what = what or field.replace("_", " ")
    return Problem((field,), f"the {what} is not used", found, expected)


def _goes_as_expected(claim: Claim, change: float) -> bool:
    """Whether the documented change has the claim's direction; of an unknown metric it has."""
    if unknown_metric(("metric",), claim.metric):
        return True
    rises = (lookup(claim.metric).direction == "higher") == (claim.expect == "better")
    return change > 0 if rises else change < 0


def _fits(claim: Claim, scenarios: Mapping[str, Scenario]) -> Iterator[Problem]:
    unknown = unknown_metric(("metric",), claim.metric)
    if unknown:
        yield unknown
    for field, name in zip(("scenario", "versus"), claim.sides, strict=False):
        if name not in scenarios:
            hint = did_you_mean(name, scenarios) or "load all files, if another one has it"
            yield Problem((field,), "no scenario of that name", name, "the id of a scenario", hint)
        elif unknown is None:
            yield from _gives(claim, scenarios[name])
    one, other = scenarios.get(claim.scenario), scenarios.get(claim.versus or "")
    if claim.versus == claim.scenario:
        yield Problem(("versus",), "compared with itself", claim.versus, "another scenario")
    elif one is not None and other is not None and one.hardware != other.hardware:
        problem = "the two scenarios run on different hardware"
        found = f"{one.hardware.label} and {other.hardware.label}"
        yield Problem(("versus",), problem, found, "scenarios of the same hardware")


def _gives(claim: Claim, scenario: Scenario) -> Iterator[Problem]:
    """Whether the scenario measures the claim's metric, once or at the named point."""
    sweep = f"one point of the sweep of {scenario.id}:"
    if problem := unmeasured_metric(scenario, ("metric",), claim.metric) or misplaced_point(
        scenario, ("concurrency",), claim.metric, claim.concurrency, missing=sweep
    ):
        yield replace(problem, problem=f"{problem.problem} ({scenario.id})")
