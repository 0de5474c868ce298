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

# The lines after the executor's message that say what did not fit, and into how much.
_DETAILS = tuple(
    re.compile(pattern)
    for pattern in (
        r"The following component could not be created: (?P<component>.+)",
        r"Total GPU memory \(GiB\): ",
        r"Free GPU memory before component creation attempt \(GiB\): ",
    )
)
_HOST_MEMORY = re.compile(r"oom[-_]kill|Killed process|memory limit|tasks? \S+: Out Of", re.I)

# PyTorch's message: the GPU, every other process on it, then itself. Where it does not name itself
# (its own number is another one inside a container), one of those that it names is itself.
_SIZE = r"(?P<size>[\d.]+) (?P<unit>[KMG]iB)"
_TRIED = re.compile(rf"Tried to allocate {_SIZE}")
_CAPACITY = re.compile(rf"GPU (?P<gpu>\d+) has a total capacity of {_SIZE}")
_PROCESS = re.compile(rf"\bProcess (?P<pid>\d+) has {_SIZE} memory in use")
_ITSELF = re.compile(r"this process has [\d.]+ [KMG]iB memory in use")
# vLLM, before it has allocated anything.
_TAKEN_BEFORE = re.compile(r"Free memory on device .* on startup is less than desired")
# TensorRT-LLM, as it starts.
_USES = re.compile(r"\bRank (?P<rank>\d+) is using GPU (?P<gpu>\d+)")
_WORLD = re.compile(r"\bMPI size: \d+, MPI local size: (?P<local>\d+)")
_RANK = re.compile(
    r"\[RANK (\d+)\]|\[\S*\d+,(\d+)\]<std(?:out|err)>|\[rank(\d+)\]|^\s*(\d+): ", re.ASCII
)
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
        if world := _WORLD.search(line):
            self._local = int(world["local"])
        elif (uses := _USES.search(line)) and self._local:
            self._users[int(uses["rank"]) // self._local, int(uses["gpu"])].add(int(uses["rank"]))

    def cause(self, line: str) -> None:
        """Note the first line that tells of the lack."""
        self._on_host = bool(_HOST_MEMORY.search(line))
        self._taken_before = bool(_TAKEN_BEFORE.search(line))
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
        capacity = _CAPACITY.search(line)
        tried = _TRIED.search(line)
        if capacity is None or tried is None:
            return
        named = {one["pid"]: _size(one) for one in _PROCESS.finditer(line)}
        self._lists = self._lists or bool(named)
        if named and not _ITSELF.search(line):
            del named[max(named, key=lambda pid: named[pid])]
        theirs = sum(named.values())
        if theirs >= _size(tried) and theirs >= _LEAST_SHARE * _size(capacity):
            self._others[capacity["gpu"]] |= named
            if rank := _RANK.search(line):
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
