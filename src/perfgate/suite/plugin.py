"""The pytest plugin: markers, parameters, run folder, exit status. Inert until asked.

It does nothing in a session that collects no test of the suite. What a test measures is the work of
`campaign`; this module only translates between pytest and the rest.
"""

import os
import sys
import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO, cast

import pytest

from perfgate.campaign.campaigns import Campaigns
from perfgate.campaign.selection import Selected
from perfgate.core.errors import InputError, PerfgateError
from perfgate.core.output_stream import OutputStream
from perfgate.core.redaction import mask_arguments
from perfgate.judging.assembly.exit_status import ExitStatus, worst
from perfgate.judging.assembly.measured_facts import unlike_documented
from perfgate.judging.assembly.outcome import Outcome
from perfgate.judging.assembly.references import documented_metrics
from perfgate.reports.formats.base import report_format
from perfgate.reports.terminal import terminal_lines
from perfgate.runs.progress_view import ProgressView
from perfgate.runs.records import RunFolder
from perfgate.suite.candidate_recording import record_candidates_of
from perfgate.suite.folders import settle_folders
from perfgate.suite.opt_in import OptIn
from perfgate.suite.options import option_of
from perfgate.suite.own_errors import is_ours
from perfgate.suite.parametrize import (
    PARAMETERS,
    has_nothing,
    parameters_of,
    selected_by,
)
from perfgate.suite.rehearsal_seam import RehearsalSeam
from perfgate.suite.rerun import rerun_line
from perfgate.suite.run_conclusion import conclude
from perfgate.suite.run_opening import needs, opened, resume
from perfgate.suite.run_reports import write_page, write_summary
from perfgate.suite.selection_records import record_selection
from perfgate.suite.session_options import SessionOptions
from perfgate.suite.sharding import Sharding
from perfgate.suite.sigterm import end_on_sigterm
from perfgate.suite.unknown_markers import UnknownMarkers
from perfgate.suite.usage_errors import usage_errors
from perfgate.suite.xdist import DESELECTED, XdistHooks

pytest_plugins = (
    "perfgate.suite.fixtures",
    "perfgate.suite.benchmark_entries",
    "perfgate.suite.failure_line",
    "perfgate.suite.junit",
    "perfgate.suite.session_guard",
    "perfgate.suite.session_header",
    "perfgate.suite.verdict_status",
)

SESSION: pytest.StashKey["SuiteSession"] = pytest.StashKey()

_NOTHING_SELECTED = "no test of the suite was selected, so nothing was measured"
_BUG = "perfgate_bug"  # attribute of a test's report, which a worker's report keeps


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    settle_folders(config)
    session = config.stash[SESSION] = SuiteSession(config)
    with usage_errors():
        session.require_sense()
    config.pluginmanager.register(session, "perfgate-session")
    unknown = UnknownMarkers(config.option.markexpr, lambda: session.options.markers)
    config.pluginmanager.register(unknown, "perfgate-unknown-markers")
    config.pluginmanager.register(OptIn(config), "perfgate-opt-in")
    if session.sharding is not None:  # after it: what is registered last has the last word
        config.pluginmanager.register(session.sharding, "perfgate-sharding")
    if config.pluginmanager.hasplugin("dsession") or getattr(config.option, "numprocesses", None):
        config.pluginmanager.register(XdistHooks(session), "perfgate-xdist")
    if getattr(config.option, "markers", False):
        with usage_errors():
            session.register_markers()


class SuiteSession:
    """The suite's part of one pytest process: the main one, or a worker of pytest-xdist."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.option = option_of(config)
        self.options = SessionOptions(
            self.option, (self._worker_input or {}).get("perfgate_deadline")
        )
        self.run: RunFolder | None = None
        self._campaigns: Campaigns | None = None
        self._view: ProgressView | None = None
        self._status: ExitStatus | None = None
        self._failed: set[str] = set()
        self._with_bug: set[str] = set()
        self.deselected = False
        self._unwritten: list[str] = []
        self._unusable: PerfgateError | None = None
        self._ended: dict[str, Any] | None = None
        self.rehearsal = RehearsalSeam()
        given = self.option("--shard") is not None
        self.sharding = Sharding(config, self) if given else None
        # Output is not captured yet: this is the terminal's own error stream.
        self._terminal = os.dup(2)
        config.add_cleanup(lambda: os.close(self._terminal))

    @property
    def status(self) -> ExitStatus | None:
        """How the run ended; None before it was summed up."""
        return self._status

    # What fixtures use. ---------------------------------------------------------------------

    @property
    def campaigns(self) -> Campaigns:
        """The campaigns of this process."""
        if self._campaigns is None:
            raise self._unusable or RuntimeError("no test of the suite was collected")
        return self._campaigns

    def record_skip(self, node: str, probe: Selected, reason: str) -> None:
        """Write down that a selected probe was not run."""
        self.open_run().record(
            "skipped",
            {
                "test": node,
                "name": probe.id,
                "scenario": probe.scenario.id,
                "probe": probe.label,
                "reason": reason,
                "why": "budget" if self.campaigns.was_refused(probe) else "lack",
            },
        )
        self.campaigns.ended(node, measured=False)

    def record_outcome(self, node: str, outcome: Outcome) -> None:
        """Write down what became of a probe, unless a resumed run has it already."""
        if self.campaigns.keeps(node):
            return
        run = self.open_run()
        environment = run.facts().get("environment", {})
        beside = {
            "rerun": rerun_line(self.config, node, environment),
            "documented": _documented(outcome),
        }
        run.record("verdict", {"test": node, **outcome.as_record(), **beside})
        self.campaigns.ended(node, measured=True)

    def require_sense(self) -> None:
        """Check the options that say what status 0 means.

        Raises:
            InputError: they contradict each other.
        """
        option = self.option
        if option("--record") and option("--rehearse-fault"):
            raise InputError(
                "a fault that mocks play becomes no baseline, not even of rehearsals",
                field="--record",
                found="--rehearse-fault beside it",
                expected="--rehearse, or no --record",
            )
        if self.sharding is not None:
            self.sharding.require_sense()
        if self._wants_page:
            report_format["html"]  # an error names those that there are

    @property
    def _wants_page(self) -> bool:
        """Whether report.html is asked for; the option of pytest-html asks for both reports."""
        return bool(self.option("--html") or self.config.getoption("htmlpath", None))

    # What the rest is made of. --------------------------------------------------------------

    @property
    def _worker_input(self) -> dict[str, str] | None:
        return getattr(self.config, "workerinput", None)

    def register_markers(self) -> None:
        """Make the scenarios' markers known to pytest."""
        for marker, meaning in self.options.markers.items():
            self.config.addinivalue_line("markers", f"{marker}: {meaning}")

    def open_run(self) -> RunFolder:
        """The session's run folder: made by the main process, shared by its workers."""
        if self.run is None:
            worker = self._worker_input
            if worker is not None:
                self.run = RunFolder(Path(worker["perfgate_run"]))
                self.run.join()
                self.rehearsal.join(worker["perfgate_stage"])
            else:
                option = self.option
                self.options.require_possible()
                self.run = opened(option, self.config.rootpath, self.options.machine)
                number = os.dup(self._terminal)
                stream = cast(TextIO, OutputStream(os.fdopen(number, "w"), number))
                self.config.add_cleanup(stream.close)
                progress = self.run.path / "progress.jsonl"
                self._view = ProgressView(
                    progress, stream, from_now=self.options.resumes, column=self._column
                )
                self._view.start()
                if self.options.rehearses:
                    folder = self.run.path / "rehearsal"
                    pages = self.rehearsal.build(folder, self.options.scenarios, option)
                    self.run.record("rehearsal", {"synthetic": True, "pages": pages})
        return self.run

    def admit(self, selected: Mapping[str, Selected]) -> None:
        """Check and write down what was selected, before any of it is measured.

        Done once, by the process that speaks to people: the main one. A resumed run goes on.

        Args:
            selected: test of the suite → what it is about.

        Raises:
            InputError: it cannot be had; or the run to go on with was started for something else,
                and is left as it is.
        """
        if self._campaigns is not None:
            return
        shard = None if self.sharding is None else self.sharding.record()
        if not (selected or self.options.resumes):
            return
        self.options.require_here(selected)
        self._warn(self.options.warnings(selected))
        try:
            run = self.open_run()
            campaigns = self.options.campaigns(run)
            campaigns.select(selected)
            if self.options.resumes:
                resume(run, campaigns, needs(selected), mask_arguments(sys.argv))
            record_selection(run, selected, shard)
            campaigns.tell_selection()
        except BaseException:
            if self.options.resumes:
                self._refuse()
            raise
        self._campaigns = campaigns

    def _warn(self, lines: Iterable[str]) -> None:
        """Tell what is worth a look, on the terminal: a warning of Python could be an error."""
        terminal = self.config.pluginmanager.getplugin("terminalreporter")
        if terminal is not None:
            for line in lines:
                terminal.write_line(f"perfgate: warning: {line}", yellow=True)

    def _column(self) -> int:
        """Where pytest's own output stands on its line."""
        terminal = self.config.pluginmanager.getplugin("terminalreporter")
        writer = getattr(terminal, "_tw", None)
        return int(getattr(writer, "width_of_current_line", 0))

    def _join(self, selected: Mapping[str, Selected]) -> None:
        """Take part as a worker in what the main process admits, or tells the fault of."""
        try:
            campaigns = self.options.campaigns(self.open_run())
            campaigns.select(selected)
            self._campaigns = campaigns
        except PerfgateError as error:
            self._unusable = error

    def _refuse(self) -> None:
        """Let go of a run that this session may not go on with."""
        if self._view is not None:
            self._view.stop()
        if self.run is not None:
            self.run.close()
        self.run = self._campaigns = None

    # Hooks. ---------------------------------------------------------------------------------

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give each test of the suite its probes or claims, with readable ids and markers."""
        for name in PARAMETERS:
            if name not in metafunc.fixturenames:
                continue
            try:
                self.register_markers()
                found = parameters_of(name, self.options.scenarios, self.options.claims)
            except PerfgateError as error:
                # Raised here, pytest would bury it in a traceback for each test function.
                self._unusable = error
                found = []
            metafunc.parametrize(
                name,
                [
                    pytest.param(
                        one, id=one.id, marks=[getattr(pytest.mark, marker) for marker in markers]
                    )
                    for one, markers in found
                ],
            )

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Drop test functions that no scenario has anything for; pytest would show them skipped."""
        empty = [item for item in items if has_nothing(item)]
        if empty:
            items[:] = [item for item in items if item not in empty]
            self.config.hook.pytest_deselected(items=empty)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Learn that tests of the suite were there, and none of these was selected."""
        if any(selected_by(item) or has_nothing(item) for item in items):
            self.deselected = True

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Learn what was selected; open the run folder if anything was."""
        if self._unusable is not None:
            raise pytest.UsageError(str(self._unusable)) from self._unusable
        found = {item.nodeid: probe for item in session.items if (probe := selected_by(item))}
        if not found:
            return
        if self.config.option.collectonly:
            with usage_errors():
                self._warn(self.options.warnings(found))
            return
        with usage_errors():
            if self._worker_input is None:
                self.admit(found)
            else:
                self._join(found)
        end_on_sigterm(self.config)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Mark the report of a test that ended in a bug of perfgate."""
        report = yield
        if report.failed and call.excinfo is not None and is_ours(call.excinfo.value):
            setattr(report, _BUG, True)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.add(report.nodeid)
        if getattr(report, _BUG, False):
            self._with_bug.add(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._failed.add(report.nodeid)

    def sum_up(self, session: pytest.Session, exitstatus: int) -> None:
        """Sum the run up when all else of the session has ended: with what status, by its verdicts.

        A worker only tells the main process what it alone knows.
        """
        if self._worker_input is None:
            self._sum_up(session, exitstatus)
        else:
            self.config.workeroutput[DESELECTED] = self.deselected  # type: ignore[attr-defined]

    def _sum_up(self, session: pytest.Session, exitstatus: int) -> None:
        if self._view is not None:
            self._view.stop()
        nothing = exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.deselected
        if nothing and not self.config.option.collectonly:
            session.exitstatus = self._status = ExitStatus.NOT_JUDGED
        if self.run is None:
            return
        named = self.options.resumes or self.option("--run-dir") is not None
        if not named and not self.run.records():
            # Made for workers that then found no test of the suite.
            self.run.discard()
            self.run = None
            return
        selected = {test for line in self.run.records("selected") for test in line["tests"]}
        counts = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) and bool(selected)
        try:
            if counts:
                self._end(self.run)
            self._record_end(self.run)
            self._write_reports(self.run)
        except (PerfgateError, OSError) as error:  # the disk is full, a record was damaged
            if exitstatus != pytest.ExitCode.USAGE_ERROR:  # then the error that ended it says all
                self._unwritten.append(f"the run could not be summed up: {error}")
            if counts:
                known = ExitStatus.ERROR if self._status is None else self._status
                self._status = worst([known, ExitStatus.UNWRITABLE])
                with suppress(PerfgateError, OSError):
                    self._record_end(self.run, unwritten=True)
        if counts:
            session.exitstatus = self._status or exitstatus

    def _record_end(self, run: RunFolder, *, unwritten: bool = False) -> None:
        """Write down how the run ended; the last such record counts."""
        if self._status is not None and self._ended is not None:
            end = {"status": self._status.value, **self._ended, "unwritten": unwritten}
            run.record("ended", end)

    def _write_reports(self, run: RunFolder) -> None:
        """Write the summary, and the page that was asked for, into the run folder."""
        write_summary(run, self._status)
        if not self._wants_page:
            return
        if failure := write_page(run, self.config.rootpath / "runs"):
            self._unwritten.append(failure)
            if self._status is not None:
                self._status = worst([self._status, ExitStatus.UNWRITABLE])
                self._record_end(run, unwritten=True)

    def lose_report(self, session: pytest.Session, error: PerfgateError) -> None:
        """Take in that pytest or a plugin could not write a report of the session."""
        self._unwritten.append(f"a report of pytest or a plugin is lost: {error}")
        if self._status is not None:
            session.exitstatus = self._status = worst([self._status, ExitStatus.UNWRITABLE])
            if self.run is not None:
                with suppress(PerfgateError, OSError):  # the disk is full
                    self._record_end(self.run, unwritten=True)

    def _end(self, run: RunFolder) -> None:
        """Sum the run up, write down which waivers do not hold, and record what it is to record."""
        end = conclude(
            run.records(),
            self._failed,
            self._with_bug,
            scenarios=self.options.all_scenarios,
            waivers=self.options.waivers,
            today=run.day(),
            gate=self.option("--gate"),
            record=self.option("--record"),
            rehearsed=self.options.rehearses,
        )
        self._status = end.status
        for fault in end.faults:
            run.record("waiver_fault", {"kind": fault.kind, "message": fault.message})
        self._ended = {
            "gate": self.option("--gate"),
            "recording": self.option("--record"),
            "failed": list(end.failed),
            "bugs": sorted(self._with_bug),
        }
        if self.option("--record"):
            record_candidates_of(
                run,
                self.config.invocation_params.args,
                only_unjudged=self.option("--gate"),
                rehearsal=self.options.rehearses,
            )

    def pytest_terminal_summary(
        self,
        terminalreporter: "pytest.TerminalReporter",  # pytest 8 has none
    ) -> None:
        say = terminalreporter.write_line
        if self._worker_input is None and self.run is None and self._status is not None:
            terminalreporter.section("perfgate")
            say(f"exit status {self._status.value}: {_NOTHING_SELECTED}", red=True)
        if self.run is None or self._worker_input is not None:
            return
        terminalreporter.section("perfgate")
        if self.options.rehearses:
            say(
                "SYNTHETIC: stand-ins played the engine; no number below is a measurement", red=True
            )
        for text, green in terminal_lines(self.run.records(), self._status):
            say(text, green=green)
        for told in self._unwritten:
            say(told, red=True)
        first = "report.html" if (self.run.path / "report.html").is_file() else "summary.md"
        say(f"run folder: {self.run.path} (start with {first})")

    def pytest_unconfigure(self) -> None:
        # Else what a killed worker left open ends pytest in status 1, which means a regression.
        warnings.filterwarnings("default", category=pytest.PytestUnraisableExceptionWarning)
        self.rehearsal.leave()
        if self.run is not None:
            self.run.close()


def _documented(outcome: Outcome) -> list[dict[str, Any]]:
    """What its document says; nothing where that is unusable, which the outcome itself tells."""
    try:
        is_alike = not unlike_documented(outcome.measurements)
        measured = outcome.measured if is_alike else ()
        return documented_metrics(cast(Selected, outcome.probe), measured)
    except PerfgateError:
        return []
