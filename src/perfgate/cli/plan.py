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
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from perfgate.baselines.engine_repo import EngineRepo
from perfgate.cli.output import add_format, described, print_json, print_template
from perfgate.cli.scenario_choice import add_selection, load, selected, warn, without_templates
from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.plain import to_plain
from perfgate.core.verdict import counted
from perfgate.judging.assembly.bands import band_of, noise_of
from perfgate.judging.forecast.forecast import Cost, MetricForecast, forecast
from perfgate.judging.forecast.simulation import TRIALS, odds, two_builds
from perfgate.judging.rules import scale
from perfgate.judging.rules.paired import ab_rule
from perfgate.machine.hardware import detect
from perfgate.plan.toolchain import BuildOverride, uncovered
from perfgate.runs.exit_status import ExitStatus
from perfgate.scenarios.scenario import Claim, Scenario

_HELP = {
    "--engine-version": "release under test (default: installed, else the document's)",
    "--engine-commit": "commit under test; chooses the baseline (default: installed)",
    "--engine-repo": "engine's clone, to find the nearest ancestor's baseline",
    "--gate": "fail if a selected test would get no verdict (status 12)",
    "--ab": "forecast pytest --ab instead",
}
_EFFECTS = (0.0, 0.5, 1.0, 2.0)  # true losses of B, in bands, at which an A/B is simulated


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
        values = {"plan": plan, "step": 1 / TRIALS, "counted": counted}
        own = {"grouped": _grouped, "loss": _loss, "bound": _bound, "hours": _hours}
        print_template("plan.txt", {**values, **own})
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


def _grouped(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Each text once, after the names of all that it is about."""
    about: dict[str, list[str]] = {}
    for name, text in pairs:
        about.setdefault(text, []).append(name)
    return [f"{', '.join(names)}: {text}" for text, names in about.items()]


def _loss(share: float | None, one: MetricForecast) -> str:
    if share is None:
        return "nothing" if one.odds else "-"
    return f"{100 * share:.1f} points" if is_accuracy(one.metric) else f"{share:.1%}"


def _bound(share: float) -> str:
    """A share that is a bound, rounded up."""
    digits = 2 if share < 0.01 else 1
    steps = 10 ** (digits + 2)
    return f"{math.ceil(share * steps - 1e-9) / steps:.{digits}%}"


def _hours(cost: Cost) -> str:
    most = "at most " if cost.hours_at_most else ""
    return f"{most}{cost.hours:.1f} h" if cost.hours >= 1 else f"{most}{60 * cost.hours:.0f} min"


def _plan_ab(scenarios: Sequence[Scenario], *, as_json: bool) -> None:
    """Print the expected starts and chances of an A/B at losses of 0, 0.5, 1 and 2 bands.

    By simulating the rule with the prior noise of each metric; probes of one scenario share their
    starts, so that the scenario takes as many as its slowest metric, or a few more.

    Raises:
        InputError: none of the scenarios gates a speed.
    """
    found = [one for scenario in scenarios for one in _of_two_builds(scenario)]
    if not found:
        raise InputError(
            "nothing to plan", expected="a scenario whose gate has a speed with a band"
        )
    if as_json:
        print_json({"ab": found})
        return
    values = {"scenarios": scenarios, "found": found}
    print_template("plan_ab.txt", values, share=lambda share: f"{100 * share:.1f} %")


def _of_two_builds(scenario: Scenario) -> Iterator[dict[str, Any]]:
    """Each speed that gates, its band, and what an A/B comes to."""
    for metric in scenario.gate.metrics if scenario.points() else ():
        band = band_of(metric, scenario)
        if is_accuracy(metric) or band is None:
            continue
        known, found = noise_of(metric, scenario, {}), lookup(metric)
        design = two_builds(ab_rule(found, known), scale.margin(found, band))
        effects = [
            dict(bands=at.loss, worse=at.regression, no_worse=at.passed, starts=2 * at.starts)
            for at in (odds(design, bands) for bands in _EFFECTS)
        ]
        yield {"scenario": scenario.id, "metric": metric, "band": band, "effects": effects}
