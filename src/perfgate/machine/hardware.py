"""What this machine is, and why it cannot run a scenario if it cannot. Reads; changes nothing.

The GPUs are told by nvidia-smi, on purpose not by NVML (`perfgate.machine.nvml`): it needs no
bindings, a driver that hangs or crashes takes only that process with it, and the preflight compares
the two.
"""

import os
import platform
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from perfgate.core.programs.program_query import ask_here
from perfgate.core.programs.programs import on_path
from perfgate.scenarios.scenario import Hardware, Launch

_QUERY_S = 30.0
_CELL = re.compile(r"[^\s|+=-]+")


@dataclass(frozen=True)
class Gpu:
    """One GPU as the driver names it; memory in bytes."""

    name: str
    memory_bytes: int
    driver: str


@dataclass(frozen=True)
class Machine:
    """The facts of a machine that a measurement on it depends on.

    Attributes:
        gpu_note: how asking for the GPUs went.
        boost_slider: number, name, highest and present level of each boost slider of the GPUs;
            empty: nvidia-smi names none.
    """

    host: str
    os: str
    python: str
    cpu: str
    cores: int
    memory_bytes: int
    gpus: tuple[Gpu, ...]
    gpu_note: str
    boost_slider: str = ""

    def lacks(self, needed: Hardware, launch: Launch | None = None) -> str | None:
        """Why this machine cannot run what needs `needed`; None if it can.

        Nodes beyond the first are the launcher's to reach, so only this node's GPUs are counted;
        none at all where Slurm finds the nodes.
        """
        if needed.gpu == "none":
            return None
        if launch is not None and launch.by_slurm:
            found = on_path(launch.by)
            return None if found else f"needs Slurm: no {launch.by} on PATH"
        wanted = needed.gpus // needed.nodes
        nodes = f"{needed.nodes}×" if needed.nodes > 1 else ""
        label = f"needs {nodes}{wanted}×{needed.gpu}"
        matching = [gpu for gpu in self.gpus if is_model(gpu.name, needed.gpu)]
        if len(matching) >= wanted:
            return None
        if not self.gpus:
            return f"{label}, found none ({self.gpu_note})"
        return f"{label}, found {counted(gpu.name for gpu in self.gpus)}"

    def fingerprint(self) -> dict[str, str]:
        """The facts that must be equal for two performance measurements to be compared."""
        facts = {"cpu": self.cpu, "cores": str(self.cores)}
        if self.gpus:
            facts["gpus"] = ", ".join(sorted(gpu.name for gpu in self.gpus))
            facts["driver"] = self.gpus[0].driver
        if self.boost_slider:
            facts["boost_slider"] = self.boost_slider
        return facts


def counted(names: Iterable[str]) -> str:
    """Models of GPUs and how many there are of each: ``8×NVIDIA H200``."""
    return ", ".join(f"{number}×{name}" for name, number in sorted(Counter(names).items()))


def is_model(name: str, wanted: str) -> bool:
    """Whether a driver's GPU name is of model `wanted`: "NVIDIA B200" is B200, "GB200" is not."""
    return re.search(rf"(?<![A-Za-z0-9]){re.escape(wanted)}(?![A-Za-z0-9])", name) is not None


def _cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _gpus() -> tuple[tuple[Gpu, ...], str]:
    """The GPUs by nvidia-smi, and a note that says how it went."""
    program = on_path("nvidia-smi")
    if program is None:
        return (), "no nvidia-smi on PATH"
    query = "--query-gpu=name,memory.total,driver_version"
    answer = ask_here((program, query, "--format=csv,noheader,nounits"), _QUERY_S)
    if not answer.is_good:
        said = answer.why or answer.text.strip()[:200]
        return (), f"nvidia-smi failed: {said}"
    found = []
    for line in answer.stdout.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) == 3:
            memory = int(fields[1]) * 2**20 if fields[1].isdigit() else 0
            found.append(Gpu(fields[0], memory, fields[2]))
    return tuple(found), "by nvidia-smi"


def _boost_slider() -> str:
    """The lines of `nvidia-smi boost-slider -l` that have a number, without the table's frame."""
    answer = ask_here(("nvidia-smi", "boost-slider", "-l"), _QUERY_S)
    if not answer.is_good:
        return ""
    rows = [" ".join(_CELL.findall(line)) for line in answer.stdout.splitlines()]
    return ", ".join(row for row in rows if any(map(str.isdigit, row)))


def usable_cores() -> int:
    """Cores this process may use, which a container or `taskset` can make fewer than exist."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def detect() -> Machine:
    """Look at this machine."""
    gpus, note = _gpus()
    return Machine(
        host=platform.node(),
        os=platform.platform(),
        python=platform.python_version(),
        cpu=_cpu_name(),
        cores=usable_cores(),
        memory_bytes=psutil.virtual_memory().total,
        gpus=gpus,
        gpu_note=note,
        boost_slider=_boost_slider() if gpus else "",
    )
