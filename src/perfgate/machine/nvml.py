"""nvml: the one reader of NVIDIA's management library (NVML); no other module imports pynvml.

Every question is answered with a plain value, or with `Unreadable`: no driver, no bindings, a GPU
that is lost, a function for which driver or bindings are too old. Nothing is raised. Names of
functions and constants are NVML's (NVML API reference, "Device Queries"). pynvml is imported when a
GPU is asked for, and not before.
"""

import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

VISIBLE = "CUDA_VISIBLE_DEVICES"
PART = "MIG-"  # how the UUID of a part of a GPU begins
# Read on an H200, driver 580: a CUDA context takes 518 MiB, and at most 21 MiB are nobody's.
UNSEEN_LEAST = 256 * 2**20
# GH200, GB200, GB300: by default the system takes their memory for a part of its own.
_OF_GRACE = re.compile(r"(?<![A-Za-z0-9])G[HB]\d")
PATIENCE_S = 10.0  # for one reading in all; a driver that hangs must not hang who asks
# Multi-process service: the way to a GPU that others' and our own programs share, not a user of it.
_MPS = "nvidia-cuda-mps"
_TEMPERATURE = ("nvmlDeviceGetTemperatureV", "nvmlDeviceGetTemperature")  # the latter until CUDA 14
_REASONS = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")

IDLE = 0x1
# Bits that say why a GPU's clocks are what they are (nvml.h, group nvmlClocksEventReasons,
# nvmlClocksThrottleReasons before CUDA 12.2) → name in records; what held the clocks down, so that
# the GPU is slower than the same one on another day, in words, empty where that is its normal life.
# A B200 under load lives at its power cap; so that cap is recorded and does not count.
CLOCK_REASONS: Mapping[int, tuple[str, str]] = {
    IDLE: ("gpu_idle", ""),
    0x2: ("applications_clocks_setting", ""),
    0x4: ("sw_power_cap", ""),
    0x8: ("hw_slowdown", "its hardware protection"),
    0x10: ("sync_boost", ""),
    0x20: ("sw_thermal_slowdown", "heat"),
    0x40: ("hw_thermal_slowdown", "heat"),
    0x80: ("hw_power_brake_slowdown", "the power brake"),
    0x100: ("display_clock_setting", ""),
    0x200: ("board_limit", ""),
    0x400: ("reliability", ""),
}

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Unreadable:
    """A fact that could not be read.

    Attributes:
        why: in words.
        kind: "unsupported": this machine has no such thing; "hangs": no answer in time; else empty.
    """

    why: str
    kind: Literal["", "unsupported", "hangs"] = field(default="", compare=False)


class NotReadable(Exception):
    """A fact is needed that could not be read."""


def known(fact: _Value | Unreadable) -> _Value:
    """The fact itself.

    Raises:
        NotReadable: it could not be read; the message says why.
    """
    if isinstance(fact, Unreadable):
        raise NotReadable(fact.why)
    return fact


def known_or(fact: _Value | Unreadable, otherwise: _Value) -> _Value:
    """The fact itself; `otherwise` where it could not be read."""
    return otherwise if isinstance(fact, Unreadable) else fact


@dataclass(frozen=True)
class Nvml:
    """The opened library; made by `open_nvml` and `read_nvml`."""

    library: Any

    def ask(self, read: Callable[[Any], _Value], name: str, *arguments: Any) -> _Value | Unreadable:
        """What the function `name` answers, as `read` makes a plain value of it.

        Args:
            read: makes the value.
            name: NVML's name of the function.
            arguments: the function's; constants by their names (``NVML_CLOCK_SM``,
                ``nvmlMemory_v2``).
        """
        try:
            function = getattr(self.library, name, None)
            if function is None:
                return Unreadable(f"this nvidia-ml-py has no {name}")
            return read(function(*map(self._constant, arguments)))
        except self.library.NVMLError as error:
            unsupported = error.value == self.library.NVML_ERROR_NOT_SUPPORTED
            return Unreadable(str(error), "unsupported" if unsupported else "")
        except Exception as error:  # whatever it is, no measurement may fail for it
            return Unreadable(f"{type(error).__name__}: {error}")

    def close(self) -> None:
        """Let go of the driver."""
        self.ask(bool, "nvmlShutdown")

    @property
    def count(self) -> int | Unreadable:
        """How many GPUs there are."""
        return self.ask(int, "nvmlDeviceGetCount")

    def gpu(self, name: int | str) -> "NvmlGpu":
        """The GPU of this index or whole UUID; one that is not there answers nothing."""
        by = "Index" if isinstance(name, int) else "UUID"
        return NvmlGpu(self, self.ask(_as_it_is, f"nvmlDeviceGetHandleBy{by}", name))

    def visible_gpus(self, wanted: int, visible: str | None = None) -> list["NvmlGpu | Unreadable"]:
        """The GPUs that a program on `wanted` of them will use, and which of them cannot be asked.

        Args:
            wanted: how many, at most.
            visible: CUDA_VISIBLE_DEVICES of the program; None: as this process has it.
        """
        count = self.count
        if isinstance(count, Unreadable):
            return [Unreadable(f"GPUs not watched: {count.why}")]
        visible = os.environ.get(VISIBLE) if visible is None else visible
        if visible is None:
            words = [str(index) for index in range(count)]
        else:
            words = [word.strip() for word in visible.split(",") if word.strip()]
        return [self._visible(word, count) for word in words[:wanted]]

    def _constant(self, argument: Any) -> Any:
        is_name = isinstance(argument, str) and argument.startswith(("NVML_", "nvmlMemory_"))
        return getattr(self.library, argument) if is_name else argument

    def _visible(self, word: str, count: int) -> "NvmlGpu | Unreadable":
        """The GPU that CUDA calls so: by number, or by the beginning of its UUID."""
        if word.startswith(PART):
            why = "NVML tells clocks and power of whole GPUs alone"
            return Unreadable(f"{word} not watched: {why}")
        if word.isdigit():
            gpu = self.gpu(int(word))
            if isinstance(gpu.handle, Unreadable):
                return Unreadable(f"GPU {word} not watched: {gpu.handle.why}")
            return gpu
        for gpu in map(self.gpu, range(count)):
            uuid = gpu.uuid
            if isinstance(uuid, str) and uuid.startswith(word):
                return gpu
        return Unreadable(f"{word} of {VISIBLE} not watched: no GPU that answers has that name")


@dataclass(frozen=True)
class Occupants:
    """Who is on a GPU.

    Attributes:
        pids: the processes that compute on it, those of the multi-process service included.
        unseen_bytes: memory in use that no listed process holds. NVML lists only what this pid
            namespace can see, so it is that of programs outside of this container.
    """

    pids: frozenset[int]
    unseen_bytes: int | Unreadable


@dataclass(frozen=True)
class NvmlGpu:
    """One GPU, asked again for each value.

    Attributes:
        nvml: the opened library.
        handle: NVML's; an `Unreadable` one is the answer to every question.
    """

    nvml: Nvml
    handle: Any

    def ask(self, read: Callable[[Any], _Value], name: str, *arguments: Any) -> _Value | Unreadable:
        """As `Nvml.ask`, of this GPU."""
        if isinstance(self.handle, Unreadable):
            return self.handle
        return self.nvml.ask(read, name, self.handle, *arguments)

    @property
    def index(self) -> int | Unreadable:
        """Its number as NVML, and nvidia-smi, counts."""
        return self.ask(int, "nvmlDeviceGetIndex")

    @property
    def name(self) -> str | Unreadable:
        """Its model."""
        return self.ask(str, "nvmlDeviceGetName")

    @property
    def uuid(self) -> str | Unreadable:
        """Its unique name."""
        return self.ask(str, "nvmlDeviceGetUUID")

    @property
    def is_split(self) -> bool | Unreadable:
        """Whether it is divided (MIG); one that knows no MIG is whole."""
        mode = self.ask(lambda modes: bool(modes[0]), "nvmlDeviceGetMigMode")
        return False if isinstance(mode, Unreadable) and mode.kind == "unsupported" else mode

    @property
    def occupants(self) -> Occupants | Unreadable:
        """Who is on it. Memory is read first: what is taken meanwhile is no unseen process's."""
        used = self.ask(lambda info: int(info.used), "nvmlDeviceGetMemoryInfo", "nvmlMemory_v2")
        computing = self.ask(_memory_by_process, "nvmlDeviceGetComputeRunningProcesses")
        if isinstance(computing, Unreadable):
            return computing
        drawing = self.ask(_memory_by_process, "nvmlDeviceGetGraphicsRunningProcesses")
        listed = [*computing, *known_or(drawing, [])]
        return Occupants(frozenset(pid for pid, _ in computing), self._unseen(used, listed))

    @property
    def users(self) -> tuple[str, ...] | Unreadable:
        """Who is on it in words, unseen processes too, without the multi-process service."""
        found = self.occupants
        if isinstance(found, Unreadable):
            return found
        named = {pid: _name(pid) for pid in sorted(found.pids)}
        listed = (words_of(pid, name) for pid, name in named.items() if not is_service(name))
        unseen = found.unseen_bytes
        if isinstance(unseen, Unreadable) or unseen < UNSEEN_LEAST:
            return tuple(listed)
        return (*listed, unseen_words(unseen))

    @property
    def sm_mhz(self) -> int | Unreadable:
        """Clock of its processors."""
        return self.ask(int, "nvmlDeviceGetClockInfo", "NVML_CLOCK_SM")

    @property
    def clock_reasons(self) -> int | Unreadable:
        """Bits that say why the clock is what it is (`CLOCK_REASONS`)."""
        return self._ask_first(_REASONS)

    @property
    def power_w(self) -> float | Unreadable:
        """What it draws."""
        return self.ask(watts, "nvmlDeviceGetPowerUsage")

    @property
    def temperature_c(self) -> int | Unreadable:
        """Its temperature in °C."""
        return self._ask_first(_TEMPERATURE, "NVML_TEMPERATURE_GPU")

    def _unseen(
        self, used: int | Unreadable, listed: Sequence[tuple[int, int | None]]
    ) -> int | Unreadable:
        """What is in use and held by none of `listed`: pid and memory, None where unknown."""
        if isinstance(used, Unreadable):
            return used
        held = [size for _, size in listed if size is not None]
        if len(held) < len(listed):
            return Unreadable("NVML reports no memory of each process")
        unseen = max(0, used - sum(held))
        if unseen < UNSEEN_LEAST:
            return unseen
        if self.is_split is not False:
            return Unreadable("the processes of a split GPU (MIG) are not all listed")
        name = self.name
        if isinstance(name, Unreadable) or _OF_GRACE.search(name):
            why = "the system may keep data of its own in the memory of a Grace GPU"
            return Unreadable(why, "unsupported")
        return unseen

    def _ask_first(self, names: tuple[str, str], *arguments: Any) -> int | Unreadable:
        """The answer of the newer function; of the older one where there is none."""
        newer, older = names
        found = self.ask(int, newer, *arguments)
        return self.ask(int, older, *arguments) if isinstance(found, Unreadable) else found


def open_nvml() -> Nvml | Unreadable:
    """The library, to be closed by the caller."""
    try:
        import pynvml
    except ImportError:
        return Unreadable("no nvidia-ml-py in this environment")
    nvml = Nvml(pynvml)
    opened = nvml.ask(bool, "nvmlInit")
    return opened if isinstance(opened, Unreadable) else nvml


def read_nvml(read: Callable[[Nvml], _Value]) -> _Value | Unreadable:
    """What `read` makes of the opened library, unless the driver hangs.

    Args:
        read: asks all that is wanted; its errors are raised here.
    """
    found: list[_Value | Unreadable] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            nvml = open_nvml()
            if isinstance(nvml, Unreadable):
                found.append(nvml)
                return
            try:
                found.append(read(nvml))
            finally:
                nvml.close()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="perfgate-nvml", daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    if errors:
        raise errors[0]
    if not found:
        return Unreadable(f"the driver did not answer in {PATIENCE_S:.0f} s", "hangs")
    return found[0]


def reasons_in(bits: int) -> tuple[str, ...]:
    """The names in NVML's answer; a bit of a later driver by its number."""
    set_bits = (1 << place for place in range(bits.bit_length()) if bits >> place & 1)
    return tuple(CLOCK_REASONS.get(bit, (f"unknown_0x{bit:x}",))[0] for bit in set_bits)


def slows(bits: int) -> bool:
    """Whether one of the reasons in NVML's answer counts as a slowdown."""
    return any(bits & bit and culprit for bit, (_, culprit) in CLOCK_REASONS.items())


def culprits(names: Mapping[str, float]) -> tuple[str, ...]:
    """Who held the clocks down, in words, most frequent first.

    ``hw_slowdown`` is set beside the bit that tells the cause, so it speaks only where it is alone.
    """
    shares: dict[str, float] = {}
    for name, culprit in CLOCK_REASONS.values():
        share = names.get(name, 0.0)
        if culprit and share > shares.get(culprit, 0.0):
            shares[culprit] = share
    if len(shares) > 1:
        shares.pop(CLOCK_REASONS[0x8][1], None)
    return tuple(sorted(shares, key=lambda one: -shares[one]))


def watts(milliwatts: int) -> float:
    """NVML counts power in mW."""
    return milliwatts / 1000.0


def words_of(pid: int, name: str) -> str:
    """A process in words: ``pid 4711 (python)``; without a name where that cannot be seen."""
    return f"pid {pid} ({name})" if name else f"pid {pid}"


def unseen_words(size: int) -> str:
    """An unseen process in words, by the bytes that it holds."""
    return f"an unseen process with {size / 2**30:.1f} GiB (in another container?)"


def is_service(name: str) -> bool:
    """Whether a process of this name is the multi-process service."""
    return name.startswith(_MPS)


def _name(pid: int) -> str:
    """The process's name; empty if it cannot be seen from here, as in a container."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return ""


def _memory_by_process(found: Sequence[Any]) -> list[tuple[int, int | None]]:
    return [(int(process.pid), getattr(process, "usedGpuMemory", None)) for process in found]


def _as_it_is(answer: Any) -> Any:
    return answer
