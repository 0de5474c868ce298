"""Sharding: which of a session's tests are its shard's, and which part of what the shard is.

Each worker of pytest-xdist divides the whole selection for itself, all alike; the main process,
which collects nothing, reads the division from a file that they write.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perfgate.campaign.budget import stored_seconds
from perfgate.campaign.shards import Division, divide, parse_shard, require_not_empty
from perfgate.core.durable_files import read_json, write_json
from perfgate.core.errors import InputError
from perfgate.core.plain import from_plain, to_plain
from perfgate.runs.record import ShardRecord
from perfgate.suite.options import option_of
from perfgate.suite.selection import scenarios_of, selected_by

if TYPE_CHECKING:
    from perfgate.suite.session_options import SessionOptions

_DIVISION = "perfgate_division"  # what a worker is told: the file of the division
# Options of pytest that choose tests after all others did, by what is on this machine.
_CHOOSE_LATER = ("lf", "failedfirst", "newfirst", "stepwise")


class Sharding:
    """One shard of a session's selection.

    Args:
        config: the session's.
        options: what its command line asks for.
    """

    def __init__(self, config: pytest.Config, options: "SessionOptions") -> None:
        self._config = config
        self._options = options
        self._shard = parse_shard(option_of(config)("--shard"))
        self._record: ShardRecord | None = None
        self._file: Path | None = None

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
        if self._file is None:
            folder = tempfile.TemporaryDirectory(prefix="perfgate-shard-")
            self._config.add_cleanup(folder.cleanup)
            self._file = Path(folder.name) / "shard.json"
        worker[_DIVISION] = str(self._file)

    def record(self) -> ShardRecord | None:
        """The record of this run's shard; None: the selection is empty, or not known.

        Raises:
            InputError: the shard is empty.
        """
        if self._record is None and self._file is not None and self._file.exists():
            plain = read_json(self._file, what="division", is_named=False)
            self._record = from_plain(ShardRecord, plain)
        if self._record is not None:
            parts = self._record.scenarios
            division = Division(parts, self._record.selection, sum(map(bool, parts)))
            require_not_empty(division, self._shard)
        return self._record

    def is_kept(self, items: Sequence[pytest.Item]) -> list[bool]:
        """Whether each test is this shard's; tests of others than the suite are the first's.

        Raises:
            InputError: the shard is empty.
        """
        selected = {item.nodeid: one for item in items if (one := selected_by(item))}
        if not selected:
            return [True] * len(items)
        scenarios = scenarios_of(selected)
        # Limits of a rehearsal are shorter, and a division must not depend on that.
        whole = [one for one in self._options.whole_scenarios if one.id in scenarios]
        seconds = {name: one.usual for name, one in stored_seconds(whole).items()}
        division = divide(selected, seconds, self._shard.of)
        self._record = division.record(self._shard, self._config.option.markexpr or "")
        given = getattr(self._config, "workerinput", {}).get(_DIVISION)
        if given is None:
            self.record()
        else:
            write_json(Path(given), to_plain(self._record))
        mine = division.tests_of(self._shard.number, selected)
        is_first = self._shard.number == 1
        return [(item.nodeid in mine if item.nodeid in selected else is_first) for item in items]
