"""`perfgate report`: reports and one exit status of one run folder or several, merged.

Several runs are shards of one selection (`pytest --shard K/N`), runs of different tests, or later
runs of what an earlier one did not judge. docs/reference/reports.md

exit status: that of the merged run, worked out again from all results: 0, 1, 10 to 16; 2 unusable
input: a missing or doubled shard, runs that are not one
"""

import argparse
import sys
from pathlib import Path

from perfgate.baselines.store import Store
from perfgate.campaign.shards import LARGEST, MatrixRow, read_matrix
from perfgate.cli.output import described
from perfgate.core.errors import InputError
from perfgate.core.files.durable_files import write_text
from perfgate.core.files.paths import require_own
from perfgate.core.files.untrusted_files import read_input
from perfgate.core.redaction import one_line
from perfgate.core.verdict import Verdict
from perfgate.reports.formats.base import report_format, write_formats
from perfgate.reports.histories import MetricHistory, gathered_histories
from perfgate.reports.merge import merge
from perfgate.reports.run_report import RunFacts, RunReport
from perfgate.runs.ended_run import read_run
from perfgate.runs.exit_status import ExitStatus

_HELP = {
    "run": "folders of runs",
    "--matrix": "output of `perfgate ci matrix`; all rows are required; -: standard input",
    "--gate": "fail if a selected test has no verdict, as pytest --gate",
    "--history": "folder of earlier runs, shown beside (default: none)",
    "--baselines": "accepted baselines (default: docs/reference/settings.md)",
    "--format": "write this format",
    "--output": "the file for --format (default: standard output)",
    "--to": "write every format into this folder",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    add = described(parser, _HELP)
    add("run", nargs="+", type=Path, metavar="RUN")
    add("--matrix", metavar="FILE")
    add("--gate", action="store_true")
    add("--history", type=Path, metavar="FOLDER")
    add("--baselines", type=Path, metavar="FOLDER")
    add("--format", choices=sorted(report_format))
    add("--output", type=Path, metavar="FILE")
    add("--to", type=Path, metavar="FOLDER")
    parser.set_defaults(execute=_report)


def _report(arguments: argparse.Namespace) -> int:
    if arguments.output is not None and arguments.format is None:
        raise InputError(
            "no format for the file", field="--output", found=arguments.output, expected="--format"
        )
    rows = None if arguments.matrix is None else _matrix(arguments.matrix)
    found = merge([read_run(path) for path in arguments.run], gate=arguments.gate, matrix=rows)
    writes = arguments.format is not None or arguments.to is not None
    histories = _histories(arguments, found) if writes else ()
    if arguments.format is not None:
        text = report_format[arguments.format](histories).render(found)
        if arguments.output is None:
            print(text, end="" if text.endswith("\n") else "\n")
        else:
            write_text(arguments.output, text)
    # What another program reads stays by itself on standard output.
    beside = arguments.format is not None and arguments.output is None
    stream = sys.stderr if beside else sys.stdout
    for line in _lines(found):
        print(one_line(line), file=stream)
    if arguments.to is not None:
        for path in write_formats(arguments.to, sorted(report_format), found, histories):
            print(f"wrote {path}", file=stream)
    return ExitStatus.ERROR if found.status is None else found.status


def _matrix(named: str) -> tuple[MatrixRow, ...]:
    if named == "-":
        return read_matrix(sys.stdin.buffer.read(LARGEST + 1), Path("<standard input>")).include
    return read_matrix(read_input(Path(named), LARGEST, "matrix"), Path(named)).include


def _histories(arguments: argparse.Namespace, found: RunReport) -> tuple[MetricHistory, ...]:
    """The histories, for the formats that show them; what was left out of them is told."""
    store = None
    if arguments.baselines is not None and not found.synthetic:
        store = Store(require_own(arguments.baselines.absolute()))
    histories, notes = gathered_histories(found, store, arguments.history)
    for note in notes:
        print(f"perfgate: {note}", file=sys.stderr)
    return histories


def _lines(report: RunReport) -> list[str]:
    """What a person reads first."""
    counts = {
        one.value: sum(result.verdict == one for result in report.results)
        for one in reversed(Verdict)
    }
    counts["no verdict"] = sum(result.verdict is None for result in report.results)
    tests = ", ".join(f"{number} {name}" for name, number in counts.items() if number)
    runs = ", ".join(_run_in_words(one) for one in report.runs)
    return [
        *(["SYNTHETIC: mock programs made these numbers"] if report.synthetic else []),
        f"runs: {runs}",
        f"tests: {len(report.results)} ({tests or 'none'})",
        *(f"merged: {line}" for line in report.merged),
        *(f"waiver: {line}" for line in report.waiver_faults),
        *filter(None, [report.without_controls]),
        f"exit status {report.status}: {report.meaning}",
    ]


def _run_in_words(run: RunFacts) -> str:
    shard = "" if run.shard is None else f"shard {run.shard.number}/{run.shard.of}, "
    end = "did not end" if run.status is None else f"exit status {run.status}"
    return f"{run.id} ({shard}{end})"
