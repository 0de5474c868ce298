"""Faults that a rehearsal can be asked for: what goes wrong, in which program, what it is called.

They are told in ``faults.toml``, with the lines that the programs then print.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from msgspec import Struct, toml

from perfgate.core.errors import InputError
from perfgate.core.metrics import lookup

Address = tuple[str, int]  # host and port
Place = Literal["engine", "options", "client", "answers", "text", "numbers"]


class FaultLines(Struct, frozen=True, forbid_unknown_fields=True):
    """What the engine writes to standard error when a fault ends it.

    Attributes:
        text: may speak of the server's ``{host}`` and ``{port}``.
        engine: that writes it.
        since: major and minor version of the engine from which on it is written.
        server: whether the program is a server; None: either.
    """

    text: str
    engine: str = "tensorrt-llm"
    since: tuple[int, int] = (0, 0)
    server: bool | None = None


class FaultKind(Struct, frozen=True, forbid_unknown_fields=True):
    """One fault.

    Attributes:
        name: as `--rehearse-fault` takes it.
        meaning: what goes wrong, for people.
        place: ``engine``: the program that holds the engine, when it starts; ``options``: what
            TensorRT-LLM does with its file of options; ``answers``: the
            server's answers; ``client``: the program that measures; ``numbers``: only the numbers.
        failure: class of failure that perfgate should find; None: none, the numbers are worse.
        on_control: what becomes of a control, a start of the other build: it goes well, the same
            happens to it, or it dies at start.
        unit: of the value behind the colon: ``%``, ``pp`` (percentage points), ``factor`` (of
            single metrics); None: no value.
        says: what is said to every prompt; empty: the fault does not change it.
        lines: what the engine writes; of several, the first that fits counts.
    """

    name: str
    meaning: str
    place: Place
    failure: str | None = None
    on_control: Literal["well", "same", "dies"] = "well"
    unit: Literal["%", "pp", "factor"] | None = None
    says: str = ""
    lines: tuple[FaultLines, ...] = ()

    @property
    def example(self) -> str:
        """How it is asked for."""
        return self.name if self.unit is None else f"{self.name}:{_EXAMPLES[self.unit]}"

    def written(self, engine: str, release: tuple[int, ...], server: Address | None = None) -> str:
        """What the engine writes to standard error when this ends it; empty: nothing.

        Args:
            engine: whose program it is.
            release: numbers of the engine's release.
            server: where it listens; None: the program is no server.
        """
        host, port = server or ("", 0)
        for lines in self.lines:
            is_asked = lines.engine == engine and lines.server in (None, server is not None)
            if is_asked and lines.since <= release:
                return lines.text.format(host=host, port=port)
        return ""


_DEADLY = "cuda_error"  # what a control dies of
_EXAMPLES = {"%": "8%", "pp": "2pp", "factor": "SCENARIO:METRIC=0.5"}
_FILE = Path(__file__).with_suffix(".toml").read_bytes()
_KINDS = toml.decode(_FILE, type=dict[str, tuple[FaultKind, ...]])["fault"]
FAULTS = {kind.name: kind for kind in _KINDS}


@dataclass(frozen=True)
class Scale:
    """What multiplies one metric, so that one statement about it comes out otherwise.

    Attributes:
        where: a scenario's id, or that and the probe's label as in a test's name; may have ``*``.
        metric: canonical name; may have ``*``.
        factor: above 0.
    """

    where: str
    metric: str
    factor: float

    def hits(self, scenario: str, probe: str) -> bool:
        """Whether it is for this probe."""
        return any(fnmatchcase(name, self.where) for name in (scenario, f"{scenario}-{probe}"))


@dataclass(frozen=True)
class Fault:
    """A fault as asked for.

    Attributes:
        name: one of `FAULTS`.
        value: loss as a fraction (0.08 for 8 %, 0.02 for 2 pp); None where the fault has none.
        scales: of the fault ``scale``.
    """

    name: str
    value: float | None = None
    scales: tuple[Scale, ...] = ()

    @property
    def kind(self) -> FaultKind:
        return FAULTS[self.name]

    @property
    def of_control(self) -> "Fault | None":
        """What goes wrong with a control; None: nothing, as it is of another build."""
        if self.kind.on_control == "same":
            return self
        return Fault(_DEADLY) if self.kind.on_control == "dies" else None

    def factor(self, scenario: str, probe: str, metric: str) -> float:
        """What a metric of a probe is multiplied with; 1: it stays."""
        found = 0.0 if self.name == "zero_metrics" else 1.0
        for scale in self.scales:
            if scale.hits(scenario, probe) and fnmatchcase(metric, scale.metric):
                found *= scale.factor
        return found


def parse_fault(text: str) -> Fault:
    """Read a fault as `--rehearse-fault` takes it: ``oom``, ``slow:8%``, ``accuracy:2pp``.

    Raises:
        InputError: no such fault, or a value that it has not, or lacks.
    """
    name, colon, written = text.strip().partition(":")
    kind = FAULTS.get(name)
    if kind is None:
        raise _refused("no such fault", text)
    if kind.unit is None:
        if colon:
            raise _refused(f"{name} has no value", text)
        return Fault(name)
    if kind.unit == "factor":
        return Fault(name, scales=tuple(_scale(one, text) for one in written.split(",")))
    value = _number(written.removesuffix(kind.unit)) / 100
    if not written.endswith(kind.unit) or not 0 < value < 1:
        raise _refused(f"{name} needs a number above 0 and below 100, and {kind.unit}", text)
    return Fault(name, value)


def require_hits(fault: Fault, scenarios: Collection[tuple[str, str]]) -> None:
    """Refuse a scale that would multiply nothing.

    Args:
        fault: as asked for.
        scenarios: (scenario, probe) of all that can be rehearsed.

    Raises:
        InputError: no probe is meant, or no metric has that name.
    """
    for scale in fault.scales:
        if "*" not in scale.metric:
            lookup(scale.metric)
        if not any(scale.hits(*one) for one in scenarios):
            raise InputError(
                "no scenario that is rehearsed has this name",
                field="--rehearse-fault",
                found=repr(scale.where),
                expected="a scenario's id, or SCENARIO-PROBE as in a test's name; * for any text",
                hint="`perfgate scenarios list` shows the ids",
            )


def _scale(written: str, text: str) -> Scale:
    left, _, factor = written.rpartition("=")
    where, _, metric = left.strip().partition(":")
    value = _number(factor)
    if not where or not metric or not 0 < value < float("inf"):
        raise _refused("scale needs SCENARIO:METRIC=FACTOR, the factor above 0", text)
    return Scale(where, metric, value)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _refused(problem: str, text: str) -> InputError:
    width = max(len(kind.example) for kind in FAULTS.values())
    listed = "\n".join(f"    {kind.example:{width}}  {kind.meaning}" for kind in FAULTS.values())
    return InputError(
        problem, field="--rehearse-fault", found=repr(text), expected=f"one of\n{listed}"
    )
