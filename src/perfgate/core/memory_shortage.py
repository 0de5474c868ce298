"""A lack of memory as a log tells it: what did not fit, who else is on the GPU, the next step."""

import re
import tomllib
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from perfgate.core.redaction import redact

_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
BINDING_ADVICE: str = _TABLE["binding_advice"]
_NEIGHBOUR_ADVICE: str = _TABLE["neighbour_advice"]

_DETAILS = tuple(map(re.compile, _TABLE["details"]))
_PATTERNS = {name: re.compile(pattern) for name, pattern in _TABLE["patterns"].items()}
_BYTES = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
# A display's few MiB are not why it did not fit; the share is that of the check "gpu memory".
_LEAST_SHARE = 0.03


@dataclass
class MemoryShortage:
    """What the lines of one log say of memory; they are noted one after another.

    Attributes:
        details: lines that say what did not fit, as (number, line, telling part).
    """

    details: list[tuple[int, str, str]] = field(default_factory=list)
    _component: str = ""
    _on_host: bool = False
    _others: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    _complain: dict[tuple[int, int], set[int]] = field(default_factory=lambda: defaultdict(set))
    _users: dict[tuple[int, int], set[int]] = field(default_factory=lambda: defaultdict(set))
    _lists: bool = False
    _taken_before: bool = False
    _local: int = 0

    def before(self, line: str) -> None:
        """Note a line before the first one that tells of the lack."""
        if world := _PATTERNS["world"].search(line):
            self._local = int(world["local"])
        elif (uses := _PATTERNS["uses"].search(line)) and self._local:
            self._users[int(uses["rank"]) // self._local, int(uses["gpu"])].add(int(uses["rank"]))

    def cause(self, line: str) -> None:
        """Note the first line that tells of the lack."""
        self._on_host = bool(_PATTERNS["host_memory"].search(line))
        self._taken_before = bool(_PATTERNS["taken_before"].search(line))
        self._neighbours(line)

    def after(self, number: int, line: str) -> None:
        """Note a line after it."""
        self._neighbours(line)
        seen = {pattern for _, _, pattern in self.details}
        for pattern in _DETAILS:
            found = pattern.search(line)
            if found and pattern.pattern not in seen:
                self.details.append((number, line, pattern.pattern))
                self._component = self._component or found.groupdict().get("component", "").strip()

    def advice(self, general: str) -> str:
        """The next step.

        Args:
            general: the documents' advice, for memory that the engine itself divides up.
        """
        if self._on_host:
            return str(_TABLE["host_advice"])
        ranks, gpu = self._ranks_together()
        if ranks:
            named = " and ".join(map(str, sorted(ranks)))
            return f"ranks {named} are on one GPU (GPU {gpu}): {BINDING_ADVICE}"
        if self._others:
            shared, processes = next(iter(self._others.items()))
            whose = ", ".join(f"process {pid}" for pid in processes)
            size = sum(processes.values()) / _BYTES["GiB"]
            return (
                f"GPU {shared} is shared: {whose} had {size:.2f} GiB of it, and without that it "
                f"would have fit; {_NEIGHBOUR_ADVICE}; of ranks of the same run: {BINDING_ADVICE}"
            )
        if self._taken_before:
            return f"something else had the GPU's memory before the engine; {_NEIGHBOUR_ADVICE}"
        for name, advice in _TABLE["components"].items():
            if self._component.startswith(name):
                step = f"{redact(self._component)} did not fit: {advice}"
                return f"{step}; in general: {general}" if name == "KV cache" else step
        return general

    def _neighbours(self, line: str) -> None:
        """Note who else a message of PyTorch names, if what they have is what was missing."""
        capacity = _PATTERNS["capacity"].search(line)
        tried = _PATTERNS["tried"].search(line)
        if capacity is None or tried is None:
            return
        named = {one["pid"]: _size(one) for one in _PATTERNS["process"].finditer(line)}
        self._lists = self._lists or bool(named)
        if named and not _PATTERNS["itself"].search(line):
            del named[max(named, key=lambda pid: named[pid])]
        theirs = sum(named.values())
        if theirs >= _size(tried) and theirs >= _LEAST_SHARE * _size(capacity):
            self._others[capacity["gpu"]] |= named
            if rank := _PATTERNS["rank"].search(line):
                number = int(next(filter(None, rank.groups())))
                node = number // self._local if self._local else 0
                self._complain[node, int(capacity["gpu"])].add(number)

    def _ranks_together(self) -> tuple[set[int], int]:
        """Ranks that share a GPU, and its number there; none where the log shows none."""
        tables = [self._complain]
        if not self._lists or self._others:
            tables.append(self._users)
        for table in tables:
            for (_, gpu), ranks in table.items():
                if len(ranks) > 1:
                    return ranks, gpu
        return set(), 0


def _size(found: re.Match[str]) -> float:
    return float(found["size"]) * _BYTES[found["unit"]]
