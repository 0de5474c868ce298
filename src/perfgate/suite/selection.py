"""Selection: tests of a session, their parameters, templates left out, unknown markers, shards."""

import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from perfgate.campaign.budget import stored_seconds
from perfgate.campaign.selection import Selected, scenarios_of
from perfgate.campaign.shards import Division, divide, parse_shard, require_not_empty
from perfgate.clients.base import Offline, client
from perfgate.core.errors import InputError
from perfgate.core.files.durable_files import read_json, write_json
from perfgate.core.plain import from_plain, to_plain
from perfgate.judging.assembly.claims import ClaimProbe
from perfgate.judging.assembly.sweeps import SweepProbe
from perfgate.runs.record import ShardRecord
from perfgate.scenarios.marker_expression import named_in_expression
from perfgate.scenarios.markers import EXPLORE, OPT_IN_MARKERS
from perfgate.scenarios.scenario import Scenario
from perfgate.scenarios.selection import left_out
from perfgate.suite.options import option_of

PARAMETERS = (
    *("smoke_probe", "load_probe", "offline_probe"),
    *("sweep_probe", "accuracy_probe", "claim_probe"),
)
_DIVISION = "perfgate_division"  # what a worker is told: the file of the division
# Options of pytest that choose tests after all others did, by what is on this machine.
_CHOOSE_LATER = ("lf", "failedfirst", "newfirst", "stepwise")


def parameter_of(test: Selected) -> str:
    """The name of the parameter by which a test function takes a test of the suite."""
    if isinstance(test, ClaimProbe):
        return "claim_probe"
    if isinstance(test, SweepProbe):
        return "sweep_probe"
    if not test.is_load:
        return f"{test.kind}_probe"
    load = test.scenario.workload
    if load is not None and load.client in client and issubclass(client[load.client], Offline):
        return "offline_probe"
    return "load_probe"


def named_in(test: str) -> str:
    """What stands between the brackets of a test's id: for a test of the suite, its parameter."""
    return test.partition("[")[2].removesuffix("]")


def selected_by(item: pytest.Item) -> Selected | None:
    """What a test of the suite measures or judges; None for any other test."""
    call = getattr(item, "callspec", None)
    if call is None:
        return None
    found = (call.params[name] for name in PARAMETERS if name in call.params)
    return next((one for one in found if isinstance(one, Selected)), None)


def has_nothing(item: pytest.Item) -> bool:
    """Whether a test function of the suite got no parameter at all."""
    call = getattr(item, "callspec", None)
    named = call is not None and any(name in call.params for name in PARAMETERS)
    return named and selected_by(item) is None


def unrequested_templates(
    config: pytest.Config, items: Iterable[pytest.Item]
) -> dict[str, Scenario]:
    """The tests of templates that a session does not ask for → the template.

    It asks by a marker of `-m`, by `--shape`, by `-k`, or by a test's id.
    """
    markers = set(named_in_expression(config.option.markexpr))
    if option_of(config)("--shape"):
        markers.add(EXPLORE)
    keywords = re.findall(r"[^\s()]+", config.option.keyword or "")
    given = {named_in(word) for word in config.args if "::" in word}
    found = {}
    for item in items:
        probe = selected_by(item)
        if probe is None or named_in(item.nodeid) in given:
            continue
        scenario = probe.scenario
        names = (scenario.id, *OPT_IN_MARKERS.intersection(scenario.markers))
        if left_out(scenario, markers) and not any(
            name in word for word in keywords for name in names
        ):
            found[item.nodeid] = scenario
    return found


def has_strict_markers(config: pytest.Config) -> bool:
    """Whether unknown markers are errors: by pytest 9's settings, or by pytest 8's option."""
    for setting in ("strict_markers", "strict"):
        try:
            given = config.getini(setting)
        except (KeyError, ValueError):  # pytest 8 does not have it
            continue
        if given is not None:
            return bool(given)
    return bool(getattr(config.option, "strict_markers", False))


class Sharding:
    """One shard of a session's selection.

    Each worker of pytest-xdist divides the whole selection for itself, all alike; the main process,
    which collects nothing, reads the division from a file that they write.

    Args:
        config: the session's.

    Raises:
        InputError: no such shard; or an option of pytest would choose among the tests by what is on
            this machine.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._shard = parse_shard(option_of(config)("--shard"))
        self._record: ShardRecord | None = None
        self._file: Path | None = None
        for name in _CHOOSE_LATER:
            if getattr(config.option, name, False):
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

    def is_kept(
        self, items: Sequence[pytest.Item], scenarios: Callable[[], Sequence[Scenario]]
    ) -> list[bool]:
        """Whether each test is this shard's; tests of others than the suite are the first's.

        Args:
            items: the whole selection.
            scenarios: all there are, with the limits of their files: those of a rehearsal are
                shorter, and a division must not depend on that.

        Raises:
            InputError: the shard is empty.
        """
        selected = {item.nodeid: one for item in items if (one := selected_by(item))}
        if not selected:
            return [True] * len(items)
        names = scenarios_of(selected)
        whole = [one for one in scenarios() if one.id in names]
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
