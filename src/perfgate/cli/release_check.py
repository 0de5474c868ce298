"""`perfgate release check`: hold runs against a release policy (docs/reference/release_policy.md).

Tells of every required test what the runs have of it: passed, missing, stale, synthetic, of other
hardware, waived, a regression, …; the worst first, what passed in one line for each part.

exit status: 0 PASSED, or WARNED without --strict; 1 a required verdict is a regression, or a number
is below its floor; 20 WARNED, with --strict; 21 something required is missing or undecided, or no
metric was checked; 22 the policy cannot be used; 23 the runs are not of the build that it names;
24 a run is of a time still to come; 2 unusable input
"""

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from perfgate.campaign.selection import Selected
from perfgate.cli.output import add_format, described, print_json, print_table
from perfgate.cli.scenario_choice import add_folder, load
from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.core.plain import to_plain
from perfgate.core.redaction import visible
from perfgate.judging.assembly.claims import claims_of_suite
from perfgate.judging.assembly.references import documented_metrics
from perfgate.release.certificate import certificate_markdown
from perfgate.release.check_result import COLUMNS, ReleaseCheck, check_lines, check_rows
from perfgate.release.policy import load_policy
from perfgate.release.release_check import check, status_of
from perfgate.release.required_tests import SuiteTests, broken_suite_rules
from perfgate.release.run_evidence import moment
from perfgate.runs.ended_run import EndedRun, read_run

_HELP = {
    "policy": "what the release needs: a file as release.example.yaml",
    "run": "folders of runs, in any order",
    "--at": "the time of the check, as 2026-11-23T09:00:00+00:00 (default: now)",
    "--strict": "status 20 for WARNED",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    add = described(parser, _HELP)
    add("policy", type=Path, metavar="POLICY")
    add("run", nargs="+", type=Path, metavar="RUN")
    add_format(parser, markdown_for="its certificate")
    add("--strict", action="store_true")
    add("--at", type=time_option, metavar="TIME")
    add_folder(parser)
    parser.set_defaults(execute=_check)


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


def checked(
    policy: Path, runs: Sequence[Path], folders: Sequence[str] | None, at: datetime | None
) -> tuple[ReleaseCheck, tuple[EndedRun, ...]]:
    """A policy's file held against run folders.

    Args:
        policy: the file.
        runs: the folders.
        folders: of scenario files; None: the suite's.
        at: the time of the check; None: now.

    Raises:
        ReleaseRefused: the policy, or the runs, cannot be used for a release.
        InputError, SeveralInputErrors: a file cannot be used.
    """
    suite = suite_tests_of(folders)
    asked = load_policy(policy, partial(broken_suite_rules, suite=suite))
    read = tuple(read_run(one) for one in runs)
    when = at or datetime.now(UTC)
    found = check(asked, read, suite.scenarios, suite.claims, when, markers=suite.markers)
    return found, read


def suite_tests_of(folders: Sequence[str] | None) -> SuiteTests:
    """What the scenario files of `folders`, or the suite's, can measure."""
    suite = load(folders)
    claims = claims_of_suite(suite)
    return SuiteTests(suite.scenarios, claims, suite.markers, _has_document)


def _has_document(one: Selected) -> bool:
    try:
        return bool(documented_metrics(one))
    except (InputError, SeveralInputErrors):
        return True  # a damaged file of documented values is told where it is used


def _check(arguments: argparse.Namespace) -> int:
    found, _ = checked(arguments.policy, arguments.run, arguments.scenarios, arguments.at)
    if arguments.format == "json":
        print_json(to_plain(found))
    elif arguments.format == "markdown":
        print(certificate_markdown(found), end="")
    else:
        print_table(COLUMNS, check_rows(found), arguments.format)
        for line in check_lines(found):
            print(visible(line))
    return status_of(found, strict=arguments.strict).value
