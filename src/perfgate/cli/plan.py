"""`perfgate plan`: what a gate of these scenarios could show, and what it would cost. Runs nothing.

For each gating metric: what it would be compared with, its noise, its band, the smallest loss that
is found in 19 of 20 runs, how often one of 1 and 1.5 bands is, and how often an unchanged build
ends red; then engine starts and hours, typical and at worst. What finds too little is an error.
docs/reference/plan.md

exit status: 0 done; 2 a metric that would find too little, or unusable input; 12 with --gate:
something would get no verdict
"""

import argparse
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from perfgate.baselines.engine_repo import EngineRepo
from perfgate.cli.output import add_format, described, print_json, print_table
from perfgate.cli.scenario_choice import add_selection, load, selected, warn, without_templates
from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.plain import to_plain
from perfgate.core.verdict import counted
from perfgate.judging.assembly.bands import band_of, noise_of
from perfgate.judging.forecast.metrics import MetricForecast
from perfgate.judging.forecast.scenarios import CASES, Case, Cost, ScenarioForecast, forecast
from perfgate.judging.forecast.simulation import TRIALS, AbEffort, expected_ab
from perfgate.judging.rules import scale
from perfgate.judging.rules.paired import ab_rule
from perfgate.machine.hardware import detect
from perfgate.plan.release_coverage import uncovered
from perfgate.plan.toolchain import BuildOverride
from perfgate.runs.exit_status import ExitStatus
from perfgate.scenarios.scenario import Claim, Scenario

_HELP = {
    "--engine-version": "release under test (default: ask the program, else that of the document)",
    "--engine-commit": "commit under test, which chooses the baseline (default: ask the program)",
    "--engine-repo": "clone of the engine's repository, to find the nearest ancestor's baseline",
    "--gate": "a selected test that would get no verdict is a failure (exit status 12)",
    "--ab": "what a comparison of two builds (pytest --ab) would take and find, instead",
}
_HEAD = """\
{} gating tests, simulated on noise as published nightlies show it (docs/reference/plan.md)
from: source of the band; baseline: its starts/sessions; finds: the smallest loss that is a
REGRESSION in 19 of 20 runs; of 1 band, of 1.5 bands: how often a loss of that size is;
by accident: how often an unchanged build is"""
_METRICS = (
    "  probe,metric,band,from,noise of a start,baseline,finds,of 1 band,of 1.5 bands,by accident"
)
_TOTALS = "scenario,starts,if slower,at worst,time,if slower,at worst,GPU hours,at worst"
_AB = "metric,band,true loss of B,worse,no worse,undecided,starts of both"
# How a suspected loss is checked.
_CONTROLS = {
    "controlled": "a suspected loss is checked against the baseline's build, started beside it",
    "unproved": "gate.control requires a control, and the baseline does not say how its build is "
    "started: no loss can be a REGRESSION",
    "alone": "no control, the machine is not excluded: the baseline does not say how its build is "
    "started, or gate.control is none",
}


def add_options(command: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    add = described(command, _HELP)
    add_selection(command)
    add("--engine-version", metavar="RELEASE")
    add("--engine-commit", metavar="COMMIT")
    add("--engine-repo", type=Path, metavar="PATH")
    add("--gate", action="store_true")
    add("--ab", action="store_true")
    add_format(command)
    command.set_defaults(execute=_run)


def _run(arguments: argparse.Namespace) -> int:
    scenarios, claims = _selected(arguments)
    as_json = arguments.format == "json"
    if arguments.ab:
        _plan_ab(scenarios, as_json=as_json)
        return 0
    warn(uncovered(scenarios, arguments.engine_version))
    override = BuildOverride(arguments.engine_version, arguments.engine_commit)
    repo = None if arguments.engine_repo is None else EngineRepo(arguments.engine_repo)
    plan = forecast(scenarios, claims, detect(), override, repo)
    if as_json:
        print_json(to_plain(plan))
    else:
        print(_HEAD.format(plan.tests))
        for one in plan.scenarios:
            _print_scenario(one)
        if len(plan.scenarios) > 1:
            rows = [_total(one.id, one.cost) for one in plan.scenarios]
            print()
            print_table(_TOTALS.split(","), [*rows, _total("all, one after the other", plan.total)])
            if plan.accident:
                print(f"red though nothing changed: in under {_bound(plan.accident)} of runs")
    if plan.problems:
        raise SeveralInputErrors([*plan.problems])
    if arguments.gate and plan.unjudged:
        print(
            f"perfgate: {len(plan.unjudged)} of the selected tests would get no verdict: "
            + ", ".join(plan.unjudged),
            file=sys.stderr,
        )
        return ExitStatus.NOT_JUDGED
    return 0


def _selected(arguments: argparse.Namespace) -> tuple[tuple[Scenario, ...], tuple[Claim, ...]]:
    """The scenarios, and all claims of the suite.

    Raises:
        InputError: no scenario is left.
    """
    suite = load(arguments.scenarios)
    found = without_templates(arguments, selected(arguments, suite))
    if not found:
        gpu = [f"--gpu {arguments.gpu}"] if arguments.gpu else []
        markers = [f"-m {one}" for one in arguments.marker]
        raise InputError(
            "no scenario is selected",
            found=" ".join([*arguments.pattern, *markers, *gpu]),
            expected="ids, markers and a GPU that at least one scenario has",
            hint="`perfgate scenarios list` names them",
        )
    return found, suite.claims


def _print_scenario(one: ScenarioForecast) -> None:
    commit = "" if one.commit == one.version else f" at {one.commit[:12]}"
    print(f"\n{one.id} ({one.hardware})")
    print(f"  build under test: {one.engine} {one.version}{commit}, {one.build_source}")
    _print_grouped((probe.probe, probe.compared_with) for probe in one.probes)
    judged = [
        (probe.probe, metric) for probe in one.probes if probe.judged for metric in probe.metrics
    ]
    if judged:
        print_table(_METRICS.split(","), [_row(*each) for each in judged])
    # Noise that was measured in this session needs no control.
    used = {metric.control for _, metric in judged if metric.noise_from != "measured"}
    for control in [one for one in _CONTROLS if one in used][:1]:
        print(f"  {_CONTROLS[control]}")
    for note in one.notes:
        print(f"  {note}")
    _print_grouped(
        (f"{probe.probe} {metric.metric}", note)
        for probe in one.probes
        for metric in probe.metrics
        for note in _notes(metric)
    )
    first, (unchanged, slower, worst) = one.reference_starts, one.cost.values()
    reference = f"{counted(first, 'start')} of the reference, then " if first else ""
    controls = f" ({one.max_controls} of them controls)" if one.max_controls else ""
    print(
        f"  engine starts: {reference}{unchanged.starts - first:.2f} expected for an unchanged "
        f"build, {slower.starts - first:.2f} for one slower by a band, {worst.starts - first:.0f} "
        f"at most{controls}"
    )
    print(
        f"  time: {_spent(unchanged)} typically, {_spent(slower)} for a slower build, "
        f"{_spent(worst)} at worst"
    )
    if any(metric.odds for _, metric in judged):
        print(f"  red though nothing changed: in under {_bound(one.accident)} of runs")


def _print_grouped(pairs: Iterable[tuple[str, str]]) -> None:
    """Each text once, after the names of all that it is about."""
    about: dict[str, list[str]] = {}
    for name, text in pairs:
        about.setdefault(text, []).append(name)
    for text, names in about.items():
        print(f"  {', '.join(names)}: {text}")


def _notes(one: MetricForecast) -> list[str]:
    problem = ["cannot gate so, see the error"] if one.problem else []
    return [*one.notes, *(f"warning: {warning}" for warning in one.warnings), *problem]


def _row(label: str, one: MetricForecast) -> list[str]:
    odds, regressions = one.odds, {at.loss: at.regression for at in one.odds}

    def loss(share: float | None) -> str:
        if share is None:
            return "nothing" if odds else "-"
        return f"{100 * share:.1f} points" if is_accuracy(one.metric) else f"{share:.1%}"

    return [
        f"  {label}",
        one.metric,
        loss(one.band),
        one.band_source,
        "-" if one.sigma is None else f"{one.sigma:.2%} {one.noise_from}",
        f"{one.baseline_runs}/{one.baseline_sessions}" if one.baseline_runs else "-",
        loss(one.smallest),
        *(f"{regressions[bands]:.0%}" if odds else "-" for bands in (1.0, 1.5)),
        f"< {_bound(regressions[0.0] + 1 / TRIALS)}" if odds else "-",
    ]


def _bound(share: float) -> str:
    """A share that is a bound, rounded up."""
    digits = 2 if share < 0.01 else 1
    steps = 10 ** (digits + 2)
    return f"{math.ceil(share * steps - 1e-9) / steps:.{digits}%}"


def _hours(cost: Cost) -> str:
    most = "at most " if cost.hours_at_most else ""
    return f"{most}{cost.hours:.1f} h" if cost.hours >= 1 else f"{most}{60 * cost.hours:.0f} min"


def _spent(cost: Cost) -> str:
    return _hours(cost) + (f" ({cost.gpu_hours:.1f} GPU hours)" if cost.gpu_hours else "")


def _total(name: str, costs: Mapping[Case, Cost]) -> list[str]:
    starts = [f"{costs[case].starts:.1f}" for case in CASES]
    gpu_hours = [f"{costs[case].gpu_hours:.1f}" for case in ("unchanged", "worst")]
    return [name, *starts, *(_hours(costs[case]) for case in CASES), *gpu_hours]


def _plan_ab(scenarios: Sequence[Scenario], *, as_json: bool) -> None:
    """Print the expected starts and chances of an A/B at losses of 0, 0.5, 1 and 2 bands.

    By simulating the rule with the prior noise of each metric; probes of one scenario share their
    starts, so that the scenario takes as many as its slowest metric, or a few more.

    Raises:
        InputError: none of the scenarios gates a speed.
    """
    found = [(one, list(_ab_efforts(one))) for one in scenarios]
    if not any(efforts for _, efforts in found):
        raise InputError(
            "nothing to plan", expected="a scenario whose gate has a speed with a band"
        )
    if as_json:
        plain = [
            {"scenario": one.id, "metric": metric, "band": band, "effects": [*map(asdict, at)]}
            for one, efforts in found
            for metric, band, at in efforts
        ]
        print_json({"ab": plain})
        return
    for one, efforts in found:
        if efforts:
            print(f"{one.id} ({one.hardware.label}): A B B A …, 12 starts of both at most")
            rows = [_ab_row(metric, band, effect) for metric, band, at in efforts for effect in at]
            print_table(_AB.split(","), rows)


def _ab_row(metric: str, band: float, one: AbEffort) -> list[str]:
    undecided = max(0.0, 1 - one.worse - one.no_worse)
    shares = [f"{100 * share:.1f} %" for share in (band, one.worse, one.no_worse, undecided)]
    return [metric, shares[0], f"{one.bands:g} bands", *shares[1:], f"{one.starts:.1f}"]


def _ab_efforts(scenario: Scenario) -> Iterator[tuple[str, float, tuple[AbEffort, ...]]]:
    """Each speed that gates, its band, and what an A/B comes to."""
    for metric in scenario.gate.metrics if scenario.points() else ():
        band = band_of(metric, scenario)
        if is_accuracy(metric) or band is None:
            continue
        known, found = noise_of(metric, scenario, {}), lookup(metric)
        yield metric, band, expected_ab(ab_rule(found, known), scale.margin(found, band))
