"""The pytest plugin: options, markers, parameters, run folder, exit status. Inert until asked.

It does nothing in a session that collects no test of the suite. What a test measures is the work of
`campaign`; this module only translates between pytest and the rest.
"""

import json
import os
import signal
import sys
import threading
import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import TextIO

import pytest

from perfgate.budget import Budget
from perfgate.claims import ClaimProbe, claim_probes
from perfgate.ending import ending
from perfgate.engine_repo import EngineRepo
from perfgate.errors import PerfgateError, RunError
from perfgate.exit_status import ExitStatus
from perfgate.gate.performance import Rule
from perfgate.hardware import Machine, detect
from perfgate.injection import parse as parse_injection
from perfgate.launchers.base import launcher
from perfgate.leases import GpuPool
from perfgate.outcome import Outcome
from perfgate.parameters import (
    CLAIM_MARKER,
    PARAMETERS,
    has_nothing,
    parameters,
    selected_by,
)
from perfgate.paths import machine_store, repository
from perfgate.progress import ProgressView
from perfgate.records import RunFolder
from perfgate.rehearsal.scene import Scene
from perfgate.rehearsal.stage import shortened
from perfgate.reopening import needs, opened, resume
from perfgate.reports.summary import summary
from perfgate.reports.terminal import terminal_lines
from perfgate.resuming import Kept, kept_of
from perfgate.scenarios.claims import claims_of
from perfgate.scenarios.exploration import explored, parse_shape
from perfgate.scenarios.files import LoadedSuite, load_suite
from perfgate.scenarios.scenario import Claim, Scenario
from perfgate.scenarios.selection import all_markers
from perfgate.secrets import mask_arguments
from perfgate.session import Session
from perfgate.suite import Selected, Suite
from perfgate.suite_options import add_options
from perfgate.tools import BuildOverride
from perfgate.usage import usage_errors
from perfgate.waivers import Waiver, load_waivers
from perfgate.workers import XdistHooks


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser.getgroup("perfgate", "perfgate: performance and accuracy gate"))


SESSION: pytest.StashKey["SuiteSession"] = pytest.StashKey()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    session = config.stash[SESSION] = SuiteSession(config)
    config.pluginmanager.register(session, "perfgate-session")
    if config.pluginmanager.hasplugin("dsession") or getattr(config.option, "numprocesses", None):
        config.pluginmanager.register(XdistHooks(session), "perfgate-xdist")
    if getattr(config.option, "markers", False):
        with usage_errors():
            session.register_markers()


class SuiteSession:
    """The suite's part of one pytest process: the main one, or a worker of pytest-xdist."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.run: RunFolder | None = None
        self._suite: Suite | None = None
        self._view: ProgressView | None = None
        self._stream: TextIO | None = None
        self._status: ExitStatus | None = None
        self._failed: set[str] = set()
        self._took_sigterm = False
        self._unwritten: RunError | None = None
        self._told_to_resume = False
        self._unusable: PerfgateError | None = None
        self.scene = Scene()
        # Output is not captured yet: this is the terminal's own error stream.
        self._terminal = os.dup(2)
        config.add_cleanup(lambda: os.close(self._terminal))

    # What fixtures use. ---------------------------------------------------------------------

    @property
    def suite(self) -> Suite:
        """The campaigns of this process."""
        if self._suite is None:
            raise RuntimeError("no test of the suite was collected in this process")
        return self._suite

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
                "why": "budget" if self.suite.was_refused(probe) else "lack",
            },
        )
        self.suite.ended(node, measured=False)

    def record_outcome(self, node: str, outcome: Outcome) -> None:
        """Write down what became of a probe, unless a resumed run has it already."""
        if self.suite.keeps(node):
            return
        self.open_run().record("verdict", {"test": node, **outcome.as_record()})
        self.suite.ended(node, measured=True)

    # What the rest is made of. --------------------------------------------------------------

    @cached_property
    def scenarios(self) -> tuple[Scenario, ...]:
        """All scenarios, in the shapes that were asked for.

        Raises:
            SeveralInputErrors: scenario files are not as they should be.
            InputError: a shape is none.
        """
        shapes = [parse_shape(text) for text in self.config.getoption("--shape")]
        found = explored(self._loaded.scenarios, shapes)
        return tuple(map(shortened, found)) if self.rehearses else found

    @cached_property
    def claims(self) -> tuple[ClaimProbe, ...]:
        """All claims about the scenarios."""
        return claim_probes(self._plain_claims, self.scenarios)

    @cached_property
    def _loaded(self) -> LoadedSuite:
        return load_suite(self.config.getoption("--scenarios") or repository() / "scenarios")

    @cached_property
    def waivers(self) -> tuple[Waiver, ...]:
        """The losses that people let through; none in a rehearsal, whose losses are played.

        Raises:
            SeveralInputErrors: the file is not as it should be.
        """
        return () if self.rehearses else load_waivers(self.config.getoption("--waivers"))

    @property
    def _plain_claims(self) -> tuple[Claim, ...]:
        return claims_of(self.scenarios, self._loaded.claims)

    @property
    def rehearses(self) -> bool:
        """Whether stand-ins play the engine's programs."""
        option = self.config.getoption
        return bool(option("--rehearse") or option("--rehearse-fault"))

    @cached_property
    def machine(self) -> Machine:
        return detect()

    @property
    def _worker_input(self) -> dict[str, str] | None:
        return getattr(self.config, "workerinput", None)

    def register_markers(self) -> None:
        """Make the scenarios' markers known to pytest."""
        self.config.addinivalue_line("markers", f"{CLAIM_MARKER}: statements of the documents")
        for marker in all_markers(self.scenarios):
            self.config.addinivalue_line("markers", f"{marker}: scenarios marked so")

    def open_run(self) -> RunFolder:
        """The session's run folder: made by the main process, shared by its workers."""
        if self.run is None:
            worker = self._worker_input
            if worker is not None:
                self.run = RunFolder(Path(worker["perfgate_run"]))
                self.run.join()
                self.scene.enter(json.loads(worker["perfgate_stage"]))
            else:
                _ = self.budget  # it counts from here, and a wrong one is told before any work
                option = self.config.getoption
                self.run = opened(option, self.config.rootpath, self.machine)
                self._stream = os.fdopen(os.dup(self._terminal), "w")
                progress = self.run.path / "progress.jsonl"
                self._view = ProgressView(progress, self._stream, from_now=self.resumes)
                self._view.start()
                if self.rehearses:
                    option = self.config.getoption
                    self.scene.build(
                        self.run.path / "rehearsal",
                        self.scenarios,
                        option("--engine-version"),
                        option("--rehearse-fault"),
                        launcher[option("--launcher")].starts_by,
                    )
        return self.run

    @property
    def resumes(self) -> bool:
        """Whether this session goes on with an earlier one's run."""
        return self.config.getoption("--resume") is not None

    @cached_property
    def budget(self) -> Budget | None:
        """The time that the session may take; its workers have the same deadline.

        Raises:
            InputError: not a span of time.
        """
        worker, text = self._worker_input, self.config.getoption("--budget")
        if text is None:
            return None
        if worker is not None:
            return Budget(text, float(worker["perfgate_deadline"]))
        return Budget.from_now(text)

    def resume_once(self, tests: Sequence[str]) -> None:
        """Write down that the run goes on, once it is known for which tests; else nothing.

        Args:
            tests: ids of the collected tests; those of others than the suite are left out.

        Raises:
            InputError: the run was started for something else; it is left as it is.
        """
        if not self.resumes or self._told_to_resume:
            return
        needed = needs(tests, self.scenarios, self.claims)
        try:
            suite = self._suite or self._open_suite()
            resume(self.open_run(), suite, needed, mask_arguments(sys.argv))
        except BaseException:
            self._refuse()
            raise
        self._told_to_resume = True

    def _refuse(self) -> None:
        """Let go of a run that this session may not go on with."""
        if self._view is not None:
            self._view.stop()
        if self.run is not None:
            self.run.close()
        self.run = self._suite = None

    def _open_suite(self) -> Suite:
        option = self.config.getoption
        repo = option("--engine-repo")
        run = self.open_run()
        return Suite(
            Session(
                run=run,
                machine=self.machine,
                launcher=launcher[option("--launcher")](),
                rule=Rule(),
                reference=option("--self-reference"),
                injections=tuple(parse_injection(text) for text in option("--inject")),
                cache=(run.path / "rehearsal" if self.rehearses else machine_store()) / "cache",
                synthetic=self.rehearses,
                waivers=self.waivers,
                today=run.day(),
                repo=None if repo is None else EngineRepo(repo),
                pool=GpuPool.of_machine(share_cpu=option("--share-cpu")),
                lease_wait_s=option("--lease-wait"),
                budget=self.budget,
                kept=kept_of(run.records()) if self.resumes else Kept(),
            ),
            BuildOverride(option("--engine-version"), option("--engine-commit")),
        )

    # Hooks. ---------------------------------------------------------------------------------

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give each test of the suite its probes or claims, with readable ids and markers."""
        for name in PARAMETERS:
            if name not in metafunc.fixturenames:
                continue
            try:
                self.register_markers()
                found = parameters(name, self.scenarios, self.claims)
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

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Learn what was selected; open the run folder if anything was."""
        if self._unusable is not None:
            raise pytest.UsageError(str(self._unusable))
        found = {item.nodeid: probe for item in session.items if (probe := selected_by(item))}
        if not found or self.config.option.collectonly:
            return
        with usage_errors():
            self._suite = self._open_suite()
            self._suite.select(found)
        worker = self._worker_input
        if worker is None:
            with usage_errors():
                self.resume_once(tuple(found))
        first = worker is None or worker["workerid"] == "gw0"
        if first and not self.open_run().records("selected"):
            self.open_run().record("selected", {"tests": sorted(found)})
        self._end_on_sigterm()

    def _end_on_sigterm(self) -> None:
        """Let SIGTERM end the session as Ctrl-C does: torn down, summed up, status 2."""

        def interrupt(number: int, _frame: FrameType | None) -> None:
            raise KeyboardInterrupt(f"signal {number}")

        if threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, interrupt)
            self._took_sigterm = True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.add(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Sum the run up, and end with the status that its verdicts give."""
        if self._worker_input is not None or self.run is None:
            return
        if self._view is not None:
            self._view.stop()
        named = self.resumes or self.config.getoption("--run-dir") is not None
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
            self.run.write_summary(summary(self.run.facts(), self.run.records(), self._status))
        except RunError as error:  # the disk is full; else pytest would end as with a regression
            self._unwritten = error
            if counts and self._status != ExitStatus.REGRESSION:
                self._status = ExitStatus.ERROR
        if counts and self._failed <= selected:
            session.exitstatus = self._status or exitstatus

    def _end(self, run: RunFolder) -> None:
        """Sum the run up, and write down which waivers do not hold."""
        end = ending(
            run.records(),
            self._failed,
            scenarios=(*self._loaded.scenarios, *self.scenarios),
            waivers=self.waivers,
            today=run.day(),
            gate=self.config.getoption("--gate"),
            rehearsed=self.rehearses,
        )
        self._status = end.status
        for fault in end.faults:
            run.record("waiver_fault", {"kind": fault.kind, "message": fault.message})

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.run is None or self._worker_input is not None:
            return
        say = terminalreporter.write_line
        terminalreporter.section("perfgate")
        if self.rehearses:
            say(
                "SYNTHETIC: stand-ins played the engine; no number below is a measurement", red=True
            )
        for text, green in terminal_lines(self.run.records(), self._status):
            say(text, green=green)
        if self._unwritten is not None:
            say(f"summary.md could not be written: {self._unwritten}", red=True)
        say(f"run folder: {self.run.path} (start with summary.md)")

    def pytest_unconfigure(self) -> None:
        # Else what a killed worker left open ends pytest in status 1, which means a regression.
        warnings.filterwarnings("default", category=pytest.PytestUnraisableExceptionWarning)
        self.scene.leave()
        if self.run is not None:
            self.run.close()
        if self._stream is not None:
            self._stream.close()
        if self._took_sigterm:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
