"""Workers of pytest-xdist: their part of a session, and which tests go to which of them.

Probes that share servers, or a claim's measurements, go to one worker.

Not done with xdist's own `--dist loadgroup`: it marks groups by renaming tests, which pytest 9.2
no longer lets it do (pytest-xdist 3.8).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from perfgate.campaign.selection import Selected
from perfgate.campaign.shards import groups_of
from perfgate.core.errors import PerfgateError
from perfgate.runs.run_folder import RunFolder
from perfgate.suite.selection import named_in
from perfgate.suite.session import SuiteSession
from perfgate.suite.session_guard import finish_despite_sigterm

DESELECTED, TEMPLATES = "perfgate_deselected", "perfgate_templates"  # what a worker reports


class WorkerSession(SuiteSession):
    """A worker measures and records; the main process admits, sums up and shows."""

    def open_run(self) -> RunFolder:
        """The run folder that the main process made."""
        if self.run is None:
            given = self.config.workerinput  # type: ignore[attr-defined]
            self.run = RunFolder(Path(given["perfgate_run"]))
            self.config.add_cleanup(self.run.close)
            self.run.join()
            if variables := given["perfgate_rehearsal"]:
                self.options.rehearsal(self.config).enter(variables)
        return self.run

    def admit(self, selected: Mapping[str, Selected]) -> None:
        """Take part in what the main process admits, or reports the error of."""
        try:
            campaigns = self.options.campaigns(self.open_run())
            campaigns.select(selected)
            self._campaigns = campaigns
        except PerfgateError as error:
            self._unusable = error

    @pytest.hookimpl(tryfirst=True)  # before pytest-xdist sends it
    def pytest_sessionfinish(self) -> None:
        """Report whether tests of the suite were deselected, and which templates were left out."""
        finish_despite_sigterm()
        output = self.config.workeroutput  # type: ignore[attr-defined]
        output |= {DESELECTED: self.deselected, TEMPLATES: self.templates}


def groups(tests: Sequence[Selected]) -> dict[str, str]:
    """Id of each test, as it stands between the brackets of pytest's → name of its group.

    A group is named by a scenario; scenarios that a claim compares are in one.
    """
    group = {name: names[0] for names in groups_of(tests) for name in names}
    return {one.id: group[one.scenario.id] for one in tests}


def scheduler_by_scenario(config: Any, log: Any, tests: Sequence[Selected]) -> Any:
    """An xdist scheduler that sends all tests of a group to one worker.

    Args:
        config, log: of pytest-xdist.
        tests: all of the suite.
    """
    from xdist.scheduler import LoadScopeScheduling

    group_of = groups(tests)

    class ByScenario(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return group_of.get(named_in(nodeid), nodeid)

        # pytest-xdist 3.8 hangs after a worker has crashed: it hands that worker's finished groups
        # out again, as work without a test, and gives one group at a time to workers that begin a
        # test only when they know the next one.
        def _assign_work_unit(self, node: Any) -> None:
            while self.workqueue and all(next(iter(self.workqueue.values())).values()):
                self.workqueue.popitem(last=False)
            if self.workqueue:
                super()._assign_work_unit(node)
            else:
                node.shutdown()

        def _reschedule(self, node: Any) -> None:
            super()._reschedule(node)
            while (
                self.workqueue
                and not node.shutting_down
                and self._pending_of(self.assigned_work[node]) < 2
            ):
                self._assign_work_unit(node)

    return ByScenario(config, log)
