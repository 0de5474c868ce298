"""Session: the suite's part of one pytest process, and what its fixtures use of it."""

import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, cast

import pytest

from perfgate.campaign.selection import Selected
from perfgate.core.errors import PerfgateError
from perfgate.judging.assembly.judge_input import Outcome
from perfgate.judging.assembly.measured import prompts_differ_from_document
from perfgate.judging.assembly.references import documented_metrics
from perfgate.runs.exit_status import ExitStatus
from perfgate.runs.record import DocumentedMetric, SkippedRecord
from perfgate.runs.run_folder import RunFolder
from perfgate.scenarios.selection import template_marker
from perfgate.suite.options import option_of
from perfgate.suite.selection import (
    PARAMETERS,
    Sharding,
    has_nothing,
    parameter_of,
    selected_by,
    unrequested_templates,
)
from perfgate.suite.session_guard import end_on_sigterm, is_ours, usage_errors
from perfgate.suite.session_options import SessionOptions, rerun_line

if TYPE_CHECKING:
    from perfgate.campaign.campaigns import Campaigns

SESSION: pytest.StashKey["SuiteSession"] = pytest.StashKey()
BUG = "perfgate_bug"  # attribute of a test's report, which a worker's report keeps


class SuiteSession:
    """The suite's part of one pytest process: the base of `MainSession` and `WorkerSession`.

    Args:
        config: the session's.
        options: what its command line asks for.

    Attributes:
        run: the run folder; None: not opened.
        status: how the run ended; None before it was summed up.
        deselected: whether tests of the suite were there, and none was selected.
        templates: id of each scenario that was left out → the marker that asks for it.
    """

    def __init__(self, config: pytest.Config, options: SessionOptions) -> None:
        self.config = config
        self.option = option_of(config)
        self.options = options
        self.run: RunFolder | None = None
        self.status: ExitStatus | None = None
        self.deselected = False
        self.templates: dict[str, str] = {}
        self._campaigns: Campaigns | None = None
        self._unusable: PerfgateError | None = None
        self.sharding = Sharding(config) if self.option("--shard") else None

    # What the processes differ in. ----------------------------------------------------------

    def open_run(self) -> RunFolder:
        """The session's run folder: made by the main process, shared by its workers."""
        raise NotImplementedError

    def admit(self, selected: Mapping[str, Selected]) -> None:
        """Take in what was selected, before any of it is measured.

        Args:
            selected: test of the suite → what it is about.
        """
        raise NotImplementedError

    # What fixtures use. ---------------------------------------------------------------------

    @property
    def campaigns(self) -> "Campaigns":
        """The campaigns of this process."""
        if self._campaigns is None:
            raise self._unusable or RuntimeError("no test of the suite was collected")
        return self._campaigns

    def record_skip(self, node: str, probe: Selected, reason: str) -> None:
        """Write down that a selected probe was not run."""
        self.open_run().record(
            SkippedRecord(
                test=node,
                name=probe.id,
                scenario=probe.scenario.id,
                probe=probe.label,
                reason=reason,
                why="budget" if self.campaigns.was_refused(probe) else "lack",
            )
        )
        self.campaigns.ended(node, measured=False)

    def record_outcome(self, node: str, outcome: Outcome) -> None:
        """Write down what became of a probe, unless a resumed run has it already."""
        if self.campaigns.keeps(node):
            return
        record = outcome.as_record(node, self.rerun_line(node), _documented(outcome))
        self.open_run().record(record)
        self.campaigns.ended(node, measured=True)

    def rerun_line(self, node: str) -> str:
        """The command line that runs a test again."""
        environment = self.open_run().facts().get("environment", {})
        return rerun_line(self.config, node, environment)

    # Selecting. -----------------------------------------------------------------------------

    def register_markers(self) -> None:
        """Make the scenarios' markers known to pytest."""
        for marker, meaning in self.options.loaded.markers.items():
            self.config.addinivalue_line("markers", f"{marker}: {meaning}")

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give each test of the suite its probes or claims, with readable ids and markers."""
        for name in PARAMETERS:
            if name not in metafunc.fixturenames:
                continue
            try:
                self.register_markers()
                tests = self.options.tests
            except PerfgateError as error:
                # Raised here, pytest would bury it in a traceback for each test function.
                self._unusable = error
                tests = []
            names = {marker for _, markers in tests for marker in markers}
            marks = {marker: getattr(pytest.mark, marker) for marker in names}
            metafunc.parametrize(
                name,
                [
                    pytest.param(test, id=test.id, marks=[marks[marker] for marker in markers])
                    for test, markers in tests
                    if parameter_of(test) == name
                ],
            )

    @pytest.hookimpl(trylast=True)  # after `-m` and `-k`: only what these chose is reported
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Deselect test functions that no scenario has anything for, which pytest would show
        skipped, templates that nobody asked for, and the tests of other shards.
        """
        self._keep(items, [not has_nothing(item) for item in items])
        templates = unrequested_templates(self.config, items)
        self.templates = {one.id: template_marker(one) for one in templates.values()}
        self._keep(items, [item.nodeid not in templates for item in items])
        if self.sharding is not None:
            with usage_errors():
                kept = self.sharding.is_kept(items, lambda: self.options.whole_scenarios)
            self._keep(items, kept)

    def _keep(self, items: list[pytest.Item], is_kept: Sequence[bool]) -> None:
        if not all(is_kept):
            dropped = [item for item, kept in zip(items, is_kept, strict=True) if not kept]
            items[:] = compress(items, is_kept)
            self.config.hook.pytest_deselected(items=dropped)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Learn that tests of the suite were there, and none of these was selected."""
        if any(selected_by(item) or has_nothing(item) for item in items):
            self.deselected = True

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Learn what was selected; open the run folder if anything was."""
        if self._unusable is not None:
            raise pytest.UsageError(str(self._unusable)) from self._unusable
        selected = {item.nodeid: test for item in session.items if (test := selected_by(item))}
        if not selected:
            return
        with usage_errors():
            if self.config.option.collectonly:
                self.warn(self.options.warnings(selected))
                return
            self.admit(selected)
        end_on_sigterm(self.config)

    def warn(self, lines: Iterable[str]) -> None:
        """Show what is worth a look on the terminal: a warning of Python could be an error."""
        terminal = self.config.pluginmanager.getplugin("terminalreporter")
        if terminal is not None:
            for line in lines:
                terminal.write_line(f"perfgate: warning: {line}", yellow=True)

    # Ending. --------------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Mark the report of a test that ended in a bug of perfgate."""
        report = yield
        if report.failed and call.excinfo is not None and is_ours(call.excinfo.value):
            setattr(report, BUG, True)
        return report

    def pytest_unconfigure(self) -> None:
        # Else what a killed worker left open ends pytest in status 1, which means a regression.
        warnings.filterwarnings("default", category=pytest.PytestUnraisableExceptionWarning)


def _documented(outcome: Outcome) -> Sequence[DocumentedMetric]:
    """What its document says; nothing where that is unusable, which the outcome itself reports."""
    try:
        is_alike = not prompts_differ_from_document(outcome.measurements)
        measured = outcome.measured if is_alike else ()
        return documented_metrics(cast(Selected, outcome.probe), measured)
    except PerfgateError:
        return []
