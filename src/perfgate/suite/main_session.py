"""Main session: the suite's part of the process that speaks to people: it admits and sums up."""

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TextIO, cast

import pytest
from msgspec.structs import replace

from perfgate.baselines.recording import record_in_run
from perfgate.campaign.resume import call_of
from perfgate.campaign.selection import Selected
from perfgate.core.errors import InputError, PerfgateError
from perfgate.core.files.durable_files import cannot_write
from perfgate.core.output_stream import OutputStream
from perfgate.launchers.base import launcher
from perfgate.reports.merge import conclude
from perfgate.reports.run_text import terminal_lines
from perfgate.runs.exit_status import ExitStatus, worst
from perfgate.runs.progress_view import ProgressView
from perfgate.runs.record import EndedRecord, RehearsalRecord, SelectedRecord
from perfgate.runs.run_folder import PROGRESS, RunFolder
from perfgate.scenarios.marker_expression import unknown_markers
from perfgate.scenarios.selection import left_out_lines
from perfgate.suite import session_run
from perfgate.suite.selection import has_strict_markers
from perfgate.suite.session import BUG, SuiteSession
from perfgate.suite.session_guard import end_on_sigterm, finish_despite_sigterm, usage_errors
from perfgate.suite.session_options import SessionOptions
from perfgate.suite.workers import DESELECTED, TEMPLATES, scheduler_by_scenario

_NOTHING_SELECTED = "no test of the suite was selected, so nothing was measured"
_ANOTHER_PLACE = "free space, or name another place where --junitxml, --benchmark-json … write to"


class MainSession(SuiteSession):
    """The main process opens the run folder, admits the selection, and ends the run.

    Raises:
        InputError: options that say what status 0 means contradict each other.
    """

    def __init__(self, config: pytest.Config, options: SessionOptions) -> None:
        super().__init__(config, options)
        if self.option("--record") and self.option("--rehearse-fault"):
            raise InputError(
                "a fault that mocks play becomes no baseline, not even of rehearsals",
                field="--record",
                found="--rehearse-fault beside it",
                expected="--rehearse, or no --record",
            )
        self._view: ProgressView | None = None
        self._rehearsal: dict[str, str] = {}  # variables of a rehearsal, which workers need too
        self._failed: set[str] = set()
        self._with_bug: set[str] = set()
        self._unwritten: list[str] = []
        self._ended: EndedRecord | None = None
        # Output is not captured yet: this is the terminal's own error stream.
        number = os.dup(2)
        self._terminal = cast(TextIO, OutputStream(os.fdopen(number, "w"), number))
        config.add_cleanup(self._terminal.close)

    # Opening. -------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Refuse unknown markers where --strict-markers holds, before anything is collected.

        pytest from 9.1 on would refuse them afterwards, when a run was opened, and crash with
        pytest-xdist 3.8.
        """
        if has_strict_markers(self.config) and (unknown := self._unknown_markers()):
            raise pytest.UsageError("\n".join(unknown))

    def _unknown_markers(self) -> list[str]:
        return unknown_markers(
            self.config.option.markexpr,
            self.config.getini("markers"),
            lambda: self.options.loaded.markers,
        )

    def open_run(self) -> RunFolder:
        """The run folder, made when it is first needed."""
        if self.run is None:
            self.options.require_possible()
            self.run = session_run.opened(self.options, self.config.rootpath)
            self.config.add_cleanup(self.run.close)
            self._view = ProgressView(
                self.run.path / PROGRESS,
                self._terminal,
                from_now=self.options.resumes,
                column=self._column,
            )
            self._view.start()
            if self.options.rehearses:
                self._rehearse(self.run)
        return self.run

    def _column(self) -> int:
        """Where pytest's own output stands on its line."""
        terminal = self.config.pluginmanager.getplugin("terminalreporter")
        writer = getattr(terminal, "_tw", None)
        return int(getattr(writer, "width_of_current_line", 0))

    def _rehearse(self, run: RunFolder) -> None:
        rehearsal = self.options.rehearsal(self.config)
        rehearsal.build(
            run.path / "rehearsal",
            self.options.scenarios,
            self.option("--engine-version"),
            self.option("--rehearse-fault"),
            launcher[self.option("--launcher")].starts_by,
        )
        self._rehearsal = dict(rehearsal.variables)
        run.record(RehearsalRecord(pages=rehearsal.pages))

    def admit(self, selected: Mapping[str, Selected]) -> None:
        """Check and write down what was selected, once. A resumed run goes on.

        Raises:
            InputError: it cannot be had; or the run to resume was started for something else, and
                is left as it is.
        """
        if self._campaigns is not None:
            return
        shard = None if self.sharding is None else self.sharding.record()
        if not (selected or self.options.resumes):
            return
        self.options.require_here(selected)
        self.warn(self.options.warnings(selected))
        try:
            run = self.open_run()
            campaigns = self.options.campaigns(run)
            campaigns.select(selected)
            if self.options.resumes:
                session_run.resume(run, campaigns, selected)
            session_run.record_selection(run, selected, shard)
            campaigns.tell_selection()
        except BaseException:
            if self.options.resumes and self.run is not None:
                self.run.close()  # this session may not go on with it
                self.run = None
            raise
        self._campaigns = campaigns

    # With workers of pytest-xdist. ----------------------------------------------------------

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker where the run folder is, and when the session's time is used up."""
        with usage_errors():
            run = self.open_run()
        end_on_sigterm(self.config)
        budget = self.options.budget
        node.workerinput |= {
            "perfgate_run": str(run.path),
            "perfgate_rehearsal": self._rehearsal,
            "perfgate_deadline": None if budget is None else budget.deadline,
        }
        if self.sharding is not None:
            self.sharding.tell_worker(node.workerinput)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Admit what was selected, or refuse to, before the first test is given to a worker."""
        with usage_errors():
            self.admit(self.options.named_by(ids))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Keep probes that share a server on one worker, unless a way of its own was asked for."""
        if config.getoption("dist") not in ("load", "loadgroup"):
            return None
        with usage_errors():
            return scheduler_by_scenario(config, log, [one for one, _ in self.options.tests])

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Learn from a worker what was deselected, and which templates were left out."""
        output = getattr(node, "workeroutput", {})
        self.deselected |= output.get(DESELECTED, False)
        self.templates |= output.get(TEMPLATES, {})

    # Ending. --------------------------------------------------------------------------------

    def pytest_runtest_logreport(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        """Keep which tests and files failed, and which of them in a bug of perfgate."""
        if report.failed:
            self._failed.add(report.nodeid)
        if getattr(report, BUG, False):
            self._with_bug.add(report.nodeid)

    pytest_collectreport = pytest_runtest_logreport

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Generator[None]:
        """Sum the run up at last, also where pytest or a plugin fails to write its own report.

        Those who write one (JUnit, benchmarks) are inside of this wrapper, the terminal's summary
        is outside.
        """
        finish_despite_sigterm()
        lost: OSError | None = None
        try:
            yield
        except OSError as error:
            if self.run is None:
                raise
            lost = error
        finally:
            if self._view is not None:
                self._view.stop()
            self._sum_up(session, exitstatus)
        if lost is not None:
            why = cannot_write(lost.filename, lost, _ANOTHER_PLACE)
            self._lose(f"a report of pytest or a plugin is lost: {why}")
            session.exitstatus = session.exitstatus if self.status is None else self.status

    def _sum_up(self, session: pytest.Session, exitstatus: int) -> None:
        """Say how the run ended, by its verdicts."""
        nothing = exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.deselected
        if nothing and not self.config.option.collectonly:
            session.exitstatus = self.status = ExitStatus.NOT_JUDGED
        if self.run is None:
            return
        named = self.options.resumes or self.option("--run-dir") is not None
        if not named and not self.run.records():
            # Made for workers that then found no test of the suite.
            self.run.discard()
            self.run = None
            return
        has_tests = any(one.tests for one in self.run.records_of(SelectedRecord))
        counts = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) and has_tests
        try:
            if counts:
                self._conclude(self.run)
            session_run.write_summary(self.run, self.status)
            # The option of pytest-html requests both reports.
            if self.option("--html") or self.config.getoption("htmlpath", None):
                self._lose(session_run.write_page(self.run, self.config.rootpath / "runs"))
        except (PerfgateError, OSError) as error:  # the disk is full, a record was damaged
            if counts and self.status is None:
                self.status = ExitStatus.ERROR
            if exitstatus != pytest.ExitCode.USAGE_ERROR:  # then the error that ended it says all
                self._lose(f"the run could not be summed up: {error}")
        if counts:
            session.exitstatus = self.status or exitstatus

    def _conclude(self, run: RunFolder) -> None:
        """Write down which waivers do not hold, the candidates, and how the run ended."""
        rehearses, gate = self.options.rehearses, self.option("--gate")
        self._ended, faults = conclude(
            run.records(),
            self._failed,
            self._with_bug,
            scenarios=(*self.options.loaded.scenarios, *self.options.scenarios),
            waivers=self.options.waivers,
            today=run.day(),
            gate=gate,
            record=self.option("--record"),
            rehearsed=rehearses,
        )
        self.status = ExitStatus(self._ended.status)
        for fault in faults:
            run.record(fault)
        if self.option("--record"):
            again = call_of(run.facts())
            record_in_run(run, again, only_unjudged=gate, rehearsal=rehearses)
        run.record(self._ended)

    def _lose(self, text: str) -> None:
        """Take in that something could not be written, which outweighs only good news.

        The last record of an end counts.
        """
        if not text:
            return
        self._unwritten.append(text)
        if self.status is not None:
            self.status = worst([self.status, ExitStatus.UNWRITABLE])
            if self.run is not None and self._ended is not None:
                end = replace(self._ended, status=self.status.value, unwritten=True)
                with suppress(PerfgateError, OSError):  # the disk is full
                    self.run.record(end)

    def pytest_terminal_summary(
        self,
        terminalreporter: "pytest.TerminalReporter",  # pytest 8 has none
    ) -> None:
        """Show what was left out, unknown markers, and the end of the run."""
        say = terminalreporter.write_line
        for line in left_out_lines(self.templates):
            say(f"perfgate: {line}")
        for line in self._unknown_markers():
            say(f"perfgate: {line}", yellow=True)
        if self.run is None:
            if self.status is not None:
                terminalreporter.section("perfgate")
                say(f"exit status {self.status.value}: {_NOTHING_SELECTED}", red=True)
            return
        terminalreporter.section("perfgate")
        if self.options.rehearses:
            say(
                "SYNTHETIC: mock programs played the engine; no number below is a measurement",
                red=True,
            )
        for text, green in terminal_lines(session_run.report_so_far(self.run), self.status):
            say(text, green=green)
        for line in self._unwritten:
            say(line, red=True)
        first = "report.html" if (self.run.path / "report.html").is_file() else "summary.md"
        say(f"run folder: {self.run.path} (start with {first})")
