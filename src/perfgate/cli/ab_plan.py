"""Plan of an A/B: what ``pytest --ab`` would take and find for each speed. Runs nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from perfgate.cli.output import print_json, print_table
from perfgate.core.errors import InputError
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.judging.assembly.bands import band_of
from perfgate.judging.assembly.judgement import noise_of
from perfgate.judging.forecast.ab_effort import AbEffort, expected_ab
from perfgate.judging.rules import scale
from perfgate.judging.rules.ab import ab_rule
from perfgate.scenarios.probe import load_probes
from perfgate.scenarios.scenario import Scenario

_COLUMNS = ("metric", "band", "true loss of B", "worse", "no worse", "undecided", "starts of both")


def plan_ab(scenarios: Sequence[Scenario], *, as_json: bool) -> int:
    """Print the expected starts and chances of an A/B at losses of 0, 0.5, 1 and 2 bands.

    By simulating the rule with the prior noise of each metric; probes of one scenario share their
    starts, so that the scenario takes as many as its slowest metric, or a few more.

    Raises:
        InputError: none of the scenarios gates a speed.
    """
    found = [(one, list(_efforts(one))) for one in scenarios]
    if not any(efforts for _, efforts in found):
        raise InputError(
            "nothing to plan", expected="a scenario whose gate has a speed with a band"
        )
    if as_json:
        plain = [
            {"scenario": one.id, "metric": metric, "band": band, "effects": list(map(asdict, all_))}
            for one, efforts in found
            for metric, band, all_ in efforts
        ]
        print_json({"ab": plain})
        return 0
    for one, efforts in found:
        if efforts:
            print(f"{one.id} ({one.hardware.label}): A B B A …, 12 starts of both at most")
            rows = [row for effort in efforts for row in _rows(*effort)]
            print_table(_COLUMNS, rows)
    return 0


def _efforts(scenario: Scenario) -> Iterator[tuple[str, float, tuple[AbEffort, ...]]]:
    """Each speed that gates, its band, and what an A/B comes to."""
    probes = load_probes(scenario)
    metrics = dict.fromkeys(name for probe in probes for name in probe.gating_metrics())
    for metric in metrics:
        band = band_of(metric, scenario)
        if is_accuracy(metric) or band is None:
            continue
        known, found = noise_of(metric, scenario, {}), lookup(metric)
        rule = ab_rule(found, known.sigma, known.between, measured_noise=known.widen)
        yield metric, band, expected_ab(rule, scale.margin(found, band))


def _rows(metric: str, band: float, efforts: Sequence[AbEffort]) -> Iterator[tuple[str, ...]]:
    for one in efforts:
        yield (
            metric,
            f"{100 * band:.1f} %",
            f"{one.bands:g} bands",
            f"{100 * one.worse:.1f} %",
            f"{100 * one.no_worse:.1f} %",
            f"{100 * one.undecided:.1f} %",
            f"{one.starts:.1f}",
        )
