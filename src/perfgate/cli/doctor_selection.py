"""`perfgate doctor -m`: what the tests of a marker expression need, and what of it lacks here."""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from perfgate.campaign.selection import (
    Selected,
    measured_scenarios,
    probes_of,
    selected_with,
    suite_tests,
)
from perfgate.cli.output import print_json, print_template
from perfgate.core.errors import InputError, PerfgateError
from perfgate.engines.base import engine
from perfgate.judging.assembly.claims import ClaimProbe, claims_of_suite
from perfgate.launchers.base import Launcher
from perfgate.machine.hardware import Machine
from perfgate.machine.preflight import Check, PreflightReport, PreflightTarget, look
from perfgate.machine.preflight.software import judge_software
from perfgate.scenarios.files import LoadedSuite
from perfgate.scenarios.markers import CLAIM
from perfgate.scenarios.scenario import Scenario

_SHOWN = 2  # ids of scenarios in a row
_OF_ENGINE = ("engine", "options")  # checks that the installed build answers


def check_selection(
    arguments: argparse.Namespace,
    suite: LoadedSuite,
    machine: Machine,
    start_with: Launcher,
    where: PreflightTarget,
) -> int:
    """Print every check of the selected scenarios, like ones once; 1 where one failed.

    With --engine only those of its scenarios, and of them what the installed build answers.

    Raises:
        InputError: nothing is selected, the expression is malformed, or there is no such engine.
        SeveralInputErrors: it names markers that are declared nowhere.
    """
    expression, name = arguments.marker or "", arguments.engine
    title = ", ".join(filter(None, (name, expression)))
    claims = claims_of_suite(suite)
    tests = selected_with(expression, suite_tests(suite.scenarios, claims), suite.markers)
    if name is not None:
        _ = engine[name]  # refuses a name that no engine has
        tests = tuple(test for test in tests if name in _engines(test))
    if not tests:
        raise InputError(
            "no test is selected",
            field="-m" if name is None else "--engine",
            found=title,
            expected="an expression that selects tests" if name is None else "an engine with tests",
            hint="`perfgate scenarios list --markers` explains the markers",
        )
    measured = measured_scenarios(tests)
    scenarios = [
        _as_selected(scenario, tests)
        for scenario in suite.scenarios
        if scenario.id in measured and name in (None, scenario.engine.name)
    ]
    of_engine = name is not None
    checks = {
        scenario.id: _checks(scenario, machine, start_with, where, of_engine=of_engine)
        for scenario in scenarios
    }
    kinds = Counter(map(_kind, tests))
    failed = any(check.outcome == "failed" for found in checks.values() for check in found)
    if arguments.format == "json":
        print_json(
            {
                "expression": expression,
                "machine": asdict(machine),
                "tests": dict(kinds),
                "fit": not failed,
                "checks": {name: [asdict(one) for one in found] for name, found in checks.items()},
            }
        )
    else:
        values = {"expression": title, "kinds": kinds, "scenarios": len(checks)}
        more = {"machine": machine, "has_failed": failed, **_rows(checks)}
        print_template("doctor_selection.txt", {**values, **more})
    return 1 if failed else 0


def preflight_of(
    scenario: Scenario, machine: Machine, start_with: Launcher, where: PreflightTarget
) -> PreflightReport:
    """The look at this machine for one scenario; errors as of `look` and `Launcher.tools`."""
    return look(scenario, start_with.tools(scenario), machine, where)


def _engines(test: Selected) -> set[str]:
    return {probe.scenario.engine.name for probe in probes_of(test)}


def _kind(test: Selected) -> str:
    return CLAIM if isinstance(test, ClaimProbe) else test.kind


def _as_selected(scenario: Scenario, tests: Sequence[Selected]) -> Scenario:
    """The scenario without accuracy tasks where no selected test needs one."""
    kinds = {
        probe.kind for test in tests for probe in probes_of(test) if probe.scenario == scenario
    }
    return scenario if "accuracy" in kinds else replace(scenario, accuracy=())


def _checks(
    scenario: Scenario,
    machine: Machine,
    start_with: Launcher,
    where: PreflightTarget,
    *,
    of_engine: bool,
) -> tuple[Check, ...]:
    """What a preflight finds; or of it what the installed build alone answers."""
    try:
        if of_engine:
            checks = judge_software(start_with.tools(scenario), where)
            return tuple(check for check in checks if check.name in _OF_ENGINE)
        return preflight_of(scenario, machine, start_with, where).checks
    except PerfgateError as error:
        return (Check("setup", "failed", " ".join(str(error).split())),)


def _rows(checks: Mapping[str, Sequence[Check]]) -> dict[str, list[Any]]:
    """A row for each answer, with the scenarios that have it; each fix once."""
    scenarios: dict[Check, list[str]] = {}
    for name, found in checks.items():
        for check in found:
            scenarios.setdefault(check, []).append(name)
    order = {check.name: place for place, check in reversed(list(enumerate(scenarios)))}
    rows = sorted(scenarios, key=lambda check: order[check.name])
    fixes = list(dict.fromkeys(check.hint for check in rows if check.hint and _is_bad(check)))
    cells = [
        (check.name, check.outcome, _named(scenarios[check], len(checks)), _found(check, fixes))
        for check in rows
    ]
    return {"rows": cells, "fixes": fixes}


def _is_bad(check: Check) -> bool:
    return check.outcome in ("failed", "warning")


def _found(check: Check, fixes: Sequence[str]) -> str:
    if not _is_bad(check):
        return check.found
    expected = f"; expected: {check.expected}" if check.expected else ""
    fix = f" [fix {fixes.index(check.hint) + 1}]" if check.hint else ""
    return f"{check.found}{expected}{fix}"


def _named(names: Sequence[str], of: int) -> str:
    if len(names) == of:
        return "all" if of > 1 else names[0]
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
