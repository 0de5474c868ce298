"""The pytest plugin: options, markers, parameters, run folder, exit status. Inert until asked.

It does nothing in a session that collects no test of the suite. What a test measures is the work of
`campaign`; this module only translates between pytest and the rest.
"""

import datetime
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

import pytest

from perfgate.campaign import Session
from perfgate.errors import PerfgateError
from perfgate.exit_status import ExitStatus, exit_status, meaning
from perfgate.gate.performance import Rule
from perfgate.gate.verdict import Judgement, Verdict
from perfgate.hardware import Machine, detect
from perfgate.injection import parse as parse_injection
from perfgate.launchers.base import launcher
from perfgate.outcome import Outcome
from perfgate.paths import repository
from perfgate.probe import Probe, accuracy_probes, load_probes
from perfgate.progress import ProgressView
from perfgate.records import RunFolder, session_facts
from perfgate.reports.outcome_text import brief, resolution
from perfgate.reports.summary import as_judgement, summary
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.scenario import Scenario
from perfgate.scenarios.selection import all_markers, markers_of
from perfgate.suite import Suite
from perfgate.workers import scheduler_by_scenario

# Parameter name of a test function → the probes it is run for.
PROBES = {"load_probe": load_probes, "accuracy_probe": accuracy_probes}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("perfgate", "perfgate: performance and accuracy gate")
    group.addoption(
        "--gate",
        action="store_true",
        help="a release depends on this run: a selected scenario without a verdict fails it",
    )
    group.addoption("--run-dir", type=Path, help="the run folder (default: runs/<time>-<pid>)")
    group.addoption("--scenarios", type=Path, help="folder of scenario files (default: scenarios)")
    group.addoption("--launcher", default="local", help="how programs are started")
    group.addoption(
        "--self-reference",
        choices=["auto", "fresh", "stored"],
        default="auto",
        help="scenarios that measure their own reference: measure it now (fresh), use the "
        "machine's stored one (stored), or measure only where none is comparable (auto)",
    )
    group.addoption(
        "--inject",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a setting of the build under test on purpose, to see the gate catch it",
    )


SESSION: pytest.StashKey["SuiteSession"] = pytest.StashKey()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    session = config.stash[SESSION] = SuiteSession(config)
    config.pluginmanager.register(session, "perfgate-session")
    if config.pluginmanager.hasplugin("dsession") or getattr(config.option, "numprocesses", None):
        config.pluginmanager.register(_XdistHooks(session), "perfgate-xdist")
    if getattr(config.option, "markers", False):
        with _usage_errors():
            session.register_markers()


@contextmanager
def _usage_errors() -> Iterator[None]:
    """Errors of a person's input end the session with pytest's status for wrong usage."""
    try:
        yield
    except PerfgateError as error:
        raise pytest.UsageError(str(error)) from error


def probe_of(item: pytest.Item) -> Probe | None:
    """The probe that a test of the suite measures; None for any other test."""
    call = getattr(item, "callspec", None)
    if call is None:
        return None
    return next((call.params[name] for name in PROBES if name in call.params), None)


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
        self._unusable: PerfgateError | None = None
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

    def record_skip(self, node: str, probe: Probe, reason: str) -> None:
        """Write down that a selected probe was not run."""
        self.open_run().record(
            "skipped",
            {
                "test": node,
                "scenario": probe.scenario.id,
                "probe": probe.label,
                "reason": reason,
            },
        )

    def record_outcome(self, node: str, outcome: Outcome) -> None:
        """Write down what became of a probe."""
        self.open_run().record("verdict", {"test": node, **outcome.as_record()})

    # What the rest is made of. --------------------------------------------------------------

    @cached_property
    def scenarios(self) -> tuple[Scenario, ...]:
        """All scenarios.

        Raises:
            SeveralInputErrors: scenario files are not as they should be.
        """
        return load_scenarios(self.config.getoption("--scenarios") or repository() / "scenarios")

    @cached_property
    def machine(self) -> Machine:
        return detect()

    @property
    def _worker_input(self) -> dict[str, str] | None:
        return getattr(self.config, "workerinput", None)

    def register_markers(self) -> None:
        """Make the scenarios' markers known to pytest."""
        for marker in all_markers(self.scenarios):
            self.config.addinivalue_line("markers", f"{marker}: scenarios marked so")

    def open_run(self) -> RunFolder:
        """The session's run folder: made by the main process, shared by its workers."""
        if self.run is None:
            worker = self._worker_input
            if worker is not None:
                self.run = RunFolder(Path(worker["perfgate_run"]))
            else:
                facts = session_facts(self.machine, sys.argv, self.config.rootpath)
                self.run = RunFolder.create(self._run_path(), facts)
                self._stream = os.fdopen(os.dup(self._terminal), "w")
                self._view = ProgressView(self.run.path / "progress.jsonl", self._stream)
                self._view.start()
        return self.run

    def _run_path(self) -> Path:
        given: Path | None = self.config.getoption("--run-dir")
        if given is not None:
            return given.absolute()
        stamp = datetime.datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
        return self.config.rootpath / "runs" / f"{stamp}-{os.getpid()}"

    def _open_suite(self) -> Suite:
        option = self.config.getoption
        return Suite(
            Session(
                run=self.open_run(),
                machine=self.machine,
                launcher=launcher[option("--launcher")](),
                rule=Rule(),
                reference=option("--self-reference"),
                injections=tuple(parse_injection(text) for text in option("--inject")),
            )
        )

    # Hooks. ---------------------------------------------------------------------------------

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give each test of the suite its probes, with readable ids and markers."""
        for name, probes_of in PROBES.items():
            if name not in metafunc.fixturenames:
                continue
            try:
                self.register_markers()
            except PerfgateError as error:
                # Raised here, pytest would bury it in a traceback for each test function.
                self._unusable = error
                metafunc.parametrize(name, [])
                continue
            metafunc.parametrize(
                name,
                [
                    pytest.param(
                        probe,
                        id=probe.id,
                        marks=[getattr(pytest.mark, name) for name in markers_of(scenario)],
                    )
                    for scenario in self.scenarios
                    for probe in probes_of(scenario)
                ],
            )

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Learn what was selected; open the run folder if anything was."""
        if self._unusable is not None:
            raise pytest.UsageError(str(self._unusable))
        found = {item.nodeid: probe for item in session.items if (probe := probe_of(item))}
        if not found or self.config.option.collectonly:
            return
        with _usage_errors():
            self._suite = self._open_suite()
            self._suite.select(found.values())
        worker = self._worker_input
        if worker is None or worker["workerid"] == "gw0":
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
        selected = {test for line in self.run.records("selected") for test in line["tests"]}
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) and selected:
            self._status = self._judge_run(selected)
            if self._failed <= selected:
                session.exitstatus = self._status
        self.run.write_summary(summary(self.run.facts(), self.run.records(), self._status))

    def _judge_run(self, selected: set[str]) -> ExitStatus:
        if self.run is None:
            raise RuntimeError("no run folder")
        verdicts: dict[str, Verdict | None] = dict.fromkeys(selected)
        for line in self.run.records("verdict"):
            verdicts[line["test"]] = Verdict(line["verdict"])
        for test in self._failed & selected:
            # It failed without a verdict of its own: a crashed worker, or an error of ours.
            verdicts[test] = verdicts[test] or Verdict.ERROR
        return exit_status(verdicts.values(), gate=self.config.getoption("--gate"))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.run is None or self._worker_input is not None:
            return
        say = terminalreporter.write_line
        terminalreporter.section("perfgate")
        every: list[Judgement] = []
        for line in self.run.records("verdict"):
            verdict = Verdict(line["verdict"])
            judgements = [as_judgement(plain) for plain in line["judgements"]]
            every += judgements
            detail = brief(judgements) or line["reason"] or line["error"]["message"]
            good = verdict in (Verdict.PASS, Verdict.IMPROVEMENT)
            say(f"{verdict:14} {line['scenario']}-{line['probe']}: {detail}", green=good)
        skipped = self.run.records("skipped")
        for line in skipped:
            say(f"{'skipped':14} {line['scenario']}-{line['probe']}: {line['reason']}")
        if smallest := resolution(every):
            say(f"compared with itself, this machine now shows no loss smaller than: {smallest}")
        if self._status is not None:
            verdicts = [Verdict(line["verdict"]) for line in self.run.records("verdict")]
            ends = [*verdicts, *(None for _ in skipped)]
            say(f"exit status {self._status.value}: {meaning(self._status, ends)}")
        say(f"run folder: {self.run.path} (start with summary.md)")

    def pytest_unconfigure(self) -> None:
        if self.run is not None:
            self.run.close()
        if self._stream is not None:
            self._stream.close()
        if self._took_sigterm:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


class _XdistHooks:
    """What is only called in the main process of a session with pytest-xdist."""

    def __init__(self, session: SuiteSession) -> None:
        self._session = session

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: object) -> None:
        """Tell a worker where the run folder is."""
        with _usage_errors():
            run = self._session.open_run()
        node.workerinput["perfgate_run"] = str(run.path)  # type: ignore[attr-defined]

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Keep probes that share a server on one worker, unless a way of its own was asked for."""
        if config.getoption("dist") not in ("load", "loadgroup"):
            return None
        with _usage_errors():
            return scheduler_by_scenario(config, log, self._session.scenarios)
