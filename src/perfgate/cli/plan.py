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
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from perfgate.baselines.engine_repo import EngineRepo
from perfgate.campaign.forecast import (
    Case,
    Cost,
    Plan,
    PlannedProbe,
    PlannedScenario,
    Planner,
    Seconds,
)
from perfgate.cli.ab_plan import plan_ab
from perfgate.cli.input_warnings import warn_of_release
from perfgate.cli.output import add_format, described, print_json, print_table
from perfgate.cli.scenario_choice import add_selection, load, selected, without_templates
from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.core.measurement import Json
from perfgate.core.metrics import is_accuracy
from perfgate.core.verdict import counted
from perfgate.judging.assembly.exit_status import ExitStatus
from perfgate.judging.forecast.power import TRIALS
from perfgate.judging.forecast.prospect import Prospect
from perfgate.machine.hardware import detect
from perfgate.plan.toolchain import BuildOverride
from perfgate.scenarios.scenario import Claim, Scenario

_HELP = {
    "--engine-version": "release under test (default: ask the program, else that of the document)",
    "--engine-commit": "commit under test, which chooses the baseline (default: ask the program)",
    "--engine-repo": "clone of the engine's repository, to find the nearest ancestor's baseline",
    "--gate": "a selected test that would get no verdict is a failure (exit status 12)",
    "--ab": "what a comparison of two builds (pytest --ab) would take and find, instead",
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
    if arguments.ab:
        return plan_ab(scenarios, as_json=arguments.format == "json")
    warn_of_release(scenarios, arguments.engine_version)
    override = BuildOverride(arguments.engine_version, arguments.engine_commit)
    repo = None if arguments.engine_repo is None else EngineRepo(arguments.engine_repo)
    plan = Planner(detect(), override, repo).plan(scenarios, claims)
    problems = [problem for one in plan.scenarios for problem in one.problems()]
    unjudged = [
        probe.probe.id for one in plan.scenarios for probe in one.probes if not probe.is_judged
    ]
    if arguments.format == "json":
        print_json(_plain(plan, [str(problem) for problem in problems], unjudged))
    else:
        _print(plan)
    if problems:
        raise SeveralInputErrors(problems)
    if arguments.gate and unjudged:
        print(
            f"perfgate: {len(unjudged)} of the selected tests would get no verdict: "
            + ", ".join(unjudged),
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
        raise InputError(
            "no scenario is selected",
            found=" ".join(
                [*arguments.pattern, *(f"-m {one}" for one in arguments.marker)]
                + ([f"--gpu {arguments.gpu}"] if arguments.gpu else [])
            ),
            expected="ids, markers and a GPU that at least one scenario has",
            hint="`perfgate scenarios list` names them",
        )
    return found, suite.claims


def _print(plan: Plan) -> None:
    print(
        f"{plan.tests} gating tests, simulated on noise as published nightlies show it "
        "(docs/reference/plan.md)"
    )
    print(
        "from: source of the band; baseline: its starts/sessions; finds: the smallest loss that "
        "is a\nREGRESSION in 19 of 20 runs; of 1 band, of 1.5 bands: how often a loss of that size "
        "is;\nby accident: how often an unchanged build is"
    )
    for one in plan.scenarios:
        print()
        _print_scenario(one)
    if len(plan.scenarios) > 1:
        print()
        _print_totals(plan)


def _print_scenario(one: PlannedScenario) -> None:
    build = one.under_test.build
    commit = "" if build.commit == build.version else f" at {build.commit[:12]}"
    print(f"{one.scenario.id} ({one.scenario.hardware.label})")
    print(f"  build under test: {build.name} {build.version}{commit}, {one.under_test.source}")
    for words, labels in _grouped(one.probes).items():
        print(f"  {', '.join(labels)}: {words}")
    judged = [found for probe in one.probes if probe.is_judged for found in probe.prospects]
    if judged:
        print_table(_COLUMNS, [_row(found) for found in judged])
        if controls := _of_controls(judged):
            print(f"  {controls}")
    for note in _notes(one):
        print(f"  {note}")
    reference = counted(one.reference_starts, "start") + " of the reference, then "
    print(
        f"  engine starts: {reference if one.reference_starts else ''}"
        f"{one.unchanged.mean:.2f} expected for an unchanged build, {one.slower.mean:.2f} for "
        f"one slower by a band, {one.unchanged.starts.most} at most"
        + (f" ({one.most_controls} of them controls)" if one.most_controls else "")
    )
    print(
        f"  time: {_spent(one.cost('unchanged'))} typically, {_spent(one.cost('slower'))} for a "
        f"slower build, {_spent(one.cost('worst'))} at worst"
    )
    if any(found.odds for found in judged):
        print(f"  red though nothing changed: in under {_rare(one.accident)} of runs")


_COLUMNS = (
    "  probe",
    "metric",
    "band",
    "from",
    "noise of a start",
    "baseline",
    "finds",
    "of 1 band",
    "of 1.5 bands",
    "by accident",
)


def _of_controls(judged: Sequence[Prospect]) -> str:
    """How a suspected loss is checked, in a sentence; empty: nothing has a stored baseline."""
    found = {one.control for one in judged if one.against == "baseline"}
    if "controlled" in found:
        return "a suspected loss is checked against the baseline's build, started beside it"
    if "unproved" in found:
        return (
            "gate.control requires a control, and the baseline does not say how its build is "
            "started: no loss can be a REGRESSION"
        )
    if "alone" in found and any(one.noise_from != "measured" for one in judged):
        return (
            "no control, the machine is not excluded: the baseline does not say how its build is "
            "started, or gate.control is none"
        )
    return ""


def _spent(cost: Cost) -> str:
    gpu_hours = f" ({cost.gpu_hours:.1f} GPU hours)" if cost.gpu_hours else ""
    return f"{_hours(cost.duration)}{gpu_hours}"


def _grouped(probes: tuple[PlannedProbe, ...]) -> dict[str, list[str]]:
    """What is compared with → the labels of the probes that are."""
    found: dict[str, list[str]] = {}
    for probe in probes:
        found.setdefault(probe.compared_with, []).append(probe.probe.label)
    return found


def _row(one: Prospect) -> list[str]:
    noise = "-" if one.noise is None else f"{one.noise.sigma:.2%} {one.noise_from}"
    band = "-" if one.band is None else _loss(one, one.band)
    baseline = f"{one.n_base}/{one.sessions}" if one.n_base else "-"
    at = {found.loss: found for found in one.odds}
    shares = [f"{at[loss].regression:.0%}" if loss in at else "-" for loss in (1.0, 1.5)]
    accident = _rare(at[0.0].regression + 1 / TRIALS) if at else "-"
    least = "-" if one.smallest is None else _loss(one, one.smallest)
    if at and one.smallest is None:
        least = "nothing"
    name = f"  {one.probe.label}"
    accidents = f"< {accident}" if at else "-"
    cells = [name, one.metric, band, one.band_source, noise, baseline, least]
    return [*cells, *shares, accidents]


def _rare(share: float) -> str:
    """A share that is a bound, rounded up."""
    digits = 2 if share < 0.01 else 1
    steps = 10 ** (digits + 2)
    return f"{math.ceil(share * steps - 1e-9) / steps:.{digits}%}"


def _loss(one: Prospect, loss: float) -> str:
    return f"{100 * loss:.1f} points" if is_accuracy(one.metric) else f"{loss:.1%}"


def _notes(one: PlannedScenario) -> list[str]:
    """What there is to say, each once, with what it is about."""
    about: dict[str, list[str]] = {}
    for probe in one.probes:
        for found in probe.prospects:
            name = f"{found.probe.label} {found.metric}"
            for note in found.notes:
                about.setdefault(note, []).append(name)
            for warning in found.warnings:
                about.setdefault(f"warning: {warning}", []).append(name)
            if found.problem is not None:
                about.setdefault("cannot gate so, see the error", []).append(name)
    return [*one.notes, *(f"{', '.join(names)}: {note}" for note, names in about.items())]


def _hours(seconds: Seconds) -> str:
    most = "at most " if seconds.at_most else ""
    hours = seconds.value / 3600
    return f"{most}{hours:.1f} h" if hours >= 1 else f"{most}{seconds.value / 60:.0f} min"


def _print_totals(plan: Plan) -> None:
    rows = [_total(one.scenario.id, one) for one in plan.scenarios]
    rows.append(_total("all, one after the other", plan))
    columns = ("scenario", "starts", "if slower", "at worst", "time", "if slower", "at worst")
    print_table((*columns, "GPU hours", "at worst"), rows)
    if plan.accident:
        print(f"red though nothing changed: in under {_rare(plan.accident)} of runs")


def _total(name: str, one: Plan | PlannedScenario) -> tuple[str, ...]:
    costs = [one.cost(case) for case in get_args(Case)]
    unchanged, _, worst = costs
    return (
        name,
        *(f"{cost.starts:.1f}" for cost in costs),
        *(_hours(cost.duration) for cost in costs),
        f"{unchanged.gpu_hours:.1f}",
        f"{worst.gpu_hours:.1f}",
    )


def _plain(plan: Plan, problems: list[str], unjudged: list[str]) -> dict[str, Json]:
    return {
        "tests": plan.tests,
        "accident": _short(plan.accident),
        "scenarios": [_plain_scenario(one) for one in plan.scenarios],
        "total": _plain_cost(plan),
        "problems": [*problems],
        "unjudged": [*unjudged],
    }


def _plain_scenario(one: PlannedScenario) -> dict[str, Json]:
    build = one.under_test.build
    return {
        "id": one.scenario.id,
        "hardware": one.scenario.hardware.label,
        "gpus": one.scenario.hardware.gpus,
        "engine": build.name,
        "version": build.version,
        "commit": build.commit,
        "build_source": one.under_test.source,
        "max_starts": one.longest,
        "max_controls": one.most_controls,
        "reference_starts": one.reference_starts,
        "accident": _short(one.accident),
        "cost": _plain_cost(one),
        "notes": [*one.notes],
        "probes": [
            {
                "probe": probe.probe.label,
                "compared_with": probe.compared_with,
                "judged": probe.is_judged,
                "seconds": probe.seconds.value,
                "seconds_at_most": probe.seconds.at_most,
                "metrics": [_plain_prospect(found) for found in probe.prospects],
            }
            for probe in one.probes
        ],
    }


def _plain_prospect(one: Prospect) -> dict[str, Json]:
    return {
        "metric": one.metric,
        "against": one.against,
        "baseline_runs": one.n_base,
        "baseline_sessions": one.sessions,
        "sigma": None if one.noise is None else one.noise.sigma,
        "noise_from": one.noise_from,
        "noise": None if one.noise is None else one.noise.source,
        "band": one.band,
        "band_source": one.band_source,
        "smallest": one.smallest,
        "control": one.control,
        "odds": [
            {
                "loss": found.loss,
                "regression": _short(found.regression),
                "pass": _short(found.passed),
                "inconclusive": _short(found.inconclusive),
                "host_shift": _short(found.host_shift),
                "starts": _short(found.new),
                "controls": _short(found.controls),
            }
            for found in one.odds
        ],
        "problem": None if one.problem is None else str(one.problem),
        "warnings": [*one.warnings],
        "notes": [*one.notes],
    }


def _plain_cost(one: Plan | PlannedScenario) -> dict[str, Json]:
    costs: dict[Case, Cost] = {case: one.cost(case) for case in get_args(Case)}
    return {
        name: {
            "starts": round(cost.starts, 3),
            "hours": round(cost.duration.value / 3600, 4),
            "hours_at_most": cost.duration.at_most,
            "gpu_hours": round(cost.gpu_hours, 4),
        }
        for name, cost in costs.items()
    }


def _short(share: float) -> float:
    return round(share, 5)
