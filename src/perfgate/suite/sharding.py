"""Sharding: leaves of a session's tests those of its shard, and says which part of what it is.

Each worker of pytest-xdist divides the whole selection for itself, all alike; the main process,
which collects nothing, is told by the first of them through a file.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perfgate.campaign.budget import stored_seconds
from perfgate.campaign.selection import Selected, probes_of
from perfgate.campaign.shards import Division, divide, parse_shard, require_not_empty
from perfgate.core.durable_files import read_json, write_json
from perfgate.core.errors import InputError, PerfgateError
from perfgate.core.plain import from_plain, to_plain
from perfgate.runs.record import ShardRecord
from perfgate.suite.options import option_of
from perfgate.suite.selection import selected_by
from perfgate.suite.session_guard import usage_errors

if TYPE_CHECKING:
    from perfgate.suite.session_options import SessionOptions

_FOLDER = "perfgate_division"  # what a worker is told: where to tell the division
_FILE = "shard.json"
# Options of pytest that choose tests after all others did, by what is on this machine.
_CHOOSE_LATER = ("lf", "failedfirst", "newfirst", "stepwise")


class Sharding:
    """One shard of a session's selection; a plugin of sessions with ``--shard`` alone.

    Args:
        config: the session's.
        options: what its command line asks for.
    """

    def __init__(self, config: pytest.Config, options: "SessionOptions") -> None:
        self._config = config
        self._options = options
        self._shard = parse_shard(option_of(config)("--shard"))
        self._record: ShardRecord | None = None
        self._told: Path | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def require_sense(self) -> None:
        """Check that nothing of this machine's past would choose among the tests.

        Raises:
            InputError: an option of pytest would.
        """
        for name in _CHOOSE_LATER:
            if getattr(self._config.option, name, False):
                raise InputError(
                    "what ran on this machine before would choose the tests of the shard",
                    field="--shard",
                    found=f"--{name} beside it",
                    expected="tests chosen by -m, -k or their names",
                )

    def tell_worker(self, worker: dict[str, Any]) -> None:
        """Say to a worker where to put the division."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="perfgate-shard-")
            self._config.add_cleanup(self._folder.cleanup)
        worker[_FOLDER] = str(Path(self._folder.name) / str(worker["workerid"]))

    def record(self) -> ShardRecord | None:
        """The record of this run's shard; None: the selection is empty, or not known.

        Raises:
            InputError: the shard is empty.
        """
        if self._record is None and self._folder is not None:
            for file in sorted(Path(self._folder.name).glob(f"*/{_FILE}")):
                plain = read_json(file, what="division", is_named=False)
                self._record = from_plain(ShardRecord, plain)
                break
        if self._record is not None:
            parts = self._record.scenarios
            division = Division(parts, self._record.selection, sum(map(bool, parts)))
            require_not_empty(division, self._shard)
        return self._record

    @pytest.hookimpl(trylast=True)  # after `-m`, `-k` and what leaves templates out
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Deselect what other shards run; tests of others run on the first shard."""
        selected = {item.nodeid: one for item in items if (one := selected_by(item))}
        if not selected:
            return
        try:
            division, mine = self._divide(selected)
            self._record = division.record(self._shard, self._config.option.markexpr or "")
            self._tell()
            if not hasattr(self._config, "workerinput"):
                require_not_empty(division, self._shard)
        except PerfgateError as error:
            with usage_errors():
                raise error
        others = self._shard.number == 1
        kept = [
            item for item in items if (item.nodeid in mine if item.nodeid in selected else others)
        ]
        dropped = [item for item in items if item not in kept]
        if dropped:
            items[:] = kept
            self._config.hook.pytest_deselected(items=dropped)

    def _divide(self, selected: Mapping[str, Selected]) -> tuple[Division, frozenset[str]]:
        scenarios = {probe.scenario.id for one in selected.values() for probe in probes_of(one)}
        # Limits of a rehearsal are shorter, and a division must not depend on that.
        asked = [one for one in self._options.whole_scenarios if one.id in scenarios]
        seconds = {name: one.usual for name, one in stored_seconds(asked).items()}
        division = divide(selected, seconds, self._shard.of)
        return division, division.tests_of(self._shard.number, selected)

    def _tell(self) -> None:
        folder = getattr(self._config, "workerinput", {}).get(_FOLDER)
        if folder is not None:
            Path(folder).mkdir(exist_ok=True)
            write_json(Path(folder) / _FILE, to_plain(self._record))
