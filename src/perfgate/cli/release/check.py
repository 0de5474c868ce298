"""`perfgate release check`, and how its policy and its runs are read for `pack` as well."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from perfgate.campaign.selection import Selected
from perfgate.cli.output import add_format, described, print_json, print_table
from perfgate.cli.scenario_choice import add_folder, load
from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.core.plain import to_plain
from perfgate.core.redaction import visible
from perfgate.judging.assembly.references import documented_metrics
from perfgate.release.certificate import certificate_markdown, check_lines
from perfgate.release.check_result import COLUMNS, check_rows
from perfgate.release.policy import SuiteTests, load_policy
from perfgate.release.release_check import check, status_of
from perfgate.release.run_evidence import moment
from perfgate.runs.ended_run import read_run

_EVIDENCE = {
    "policy": "policy file, as release.example.yaml",
    "run": "run folders, in any order",
}
_HELP = {
    "--at": "time of the check, as 2026-11-23T09:00:00+00:00 (default: now)",
    "--strict": "end WARNED in status 20",
}


def add_check(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], int]:
    """Add the options of `check`; gives what runs it."""
    add = add_evidence(parser, _HELP)
    add_format(parser, markdown=True)
    add("--strict", action="store_true")
    add("--at", type=time_option, metavar="TIME")
    add_folder(parser)
    return _check


def add_evidence(
    parser: argparse.ArgumentParser, helps: Mapping[str, str]
) -> Callable[..., argparse.Action]:
    """Add policy and runs; gives what adds the verb's own options, which `helps` describe."""
    add = described(parser, {**_EVIDENCE, **helps})
    add("policy", type=Path, metavar="POLICY")
    add("run", nargs="+", type=Path, metavar="RUN")
    return add


def time_option(text: str) -> datetime:
    """A time as a person gives it.

    Raises:
        ArgumentTypeError: it is none, or says no time zone.
    """
    try:
        return moment(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"not a time with a time zone: {text!r}; write it as 2026-11-23T09:00:00+00:00"
        ) from error


def suite_tests_of(folders: Sequence[str] | None) -> SuiteTests:
    """What the scenario files of `folders`, or the suite's, can measure."""
    return SuiteTests.of(load(folders), _has_document)


def _has_document(test: Selected) -> bool:
    try:
        return bool(documented_metrics(test))
    except (InputError, SeveralInputErrors):
        return True  # a damaged file of documented values is reported where it is used


def _check(arguments: argparse.Namespace) -> int:
    """`perfgate release check`: compare runs with a release policy
    (docs/reference/release.md).

    Tells of every required test what the runs have of it: passed, missing, stale, synthetic, of
    other hardware, waived, a regression, …; the worst first, what passed in one line for each part.

    exit status: 0 PASSED, or WARNED without --strict; 1 a required verdict is a regression, or a
    number is below its floor; 20 WARNED, with --strict; 21 something required is missing or
    undecided, or no metric was checked; 22 the policy cannot be used; 23 the runs are not of the
    build that it names; 24 a run is of a time still to come; 2 unusable input
    """
    suite = suite_tests_of(arguments.scenarios)
    policy = load_policy(arguments.policy, suite)
    runs = [read_run(folder) for folder in arguments.run]
    checked = check(policy, runs, suite, arguments.at or datetime.now(UTC))
    if arguments.format == "json":
        print_json(to_plain(checked))
    elif arguments.format == "markdown":
        print(certificate_markdown(checked), end="")
    else:
        print_table(COLUMNS, check_rows(checked), arguments.format)
        for line in check_lines(checked):
            print(visible(line))
    return status_of(checked, strict=arguments.strict).value
