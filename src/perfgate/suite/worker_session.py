"""Worker session: the suite's part of a worker of pytest-xdist."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from perfgate.campaign.selection import Selected
from perfgate.core.errors import PerfgateError
from perfgate.runs.run_folder import RunFolder
from perfgate.suite.session import DESELECTED, SuiteSession


class WorkerSession(SuiteSession):
    """A worker measures and records; the main process admits, sums up and shows."""

    def open_run(self) -> RunFolder:
        """The run folder that the main process made."""
        if self.run is None:
            given = self.config.workerinput  # type: ignore[attr-defined]
            self.run = RunFolder(Path(given["perfgate_run"]))
            self.run.join()
            self.rehearsal.join(given["perfgate_stage"])
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
        """Report whether tests of the suite were there, and none was selected."""
        self.config.workeroutput[DESELECTED] = self.deselected  # type: ignore[attr-defined]
