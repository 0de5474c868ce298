"""Faults that a rehearsal can be asked for: what goes wrong, in which program, what it is called.

The lines that the programs then print are in `fault_lines`.
"""

from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from perfgate.core.errors import InputError
from perfgate.core.metrics import lookup

Place = Literal["engine", "client", "answers", "text", "numbers"]


@dataclass(frozen=True)
class FaultKind:
    """One fault.

    Attributes:
        name: as `--rehearse-fault` takes it.
        meaning: what goes wrong, for people.
        place: ``engine``: the program that holds the engine, when it starts; ``answers``: the
            server's answers; ``text``: what first answers say; ``client``: the program that
            measures; ``numbers``: only the numbers.
        failure: class of failure that perfgate should find; None: none, the numbers are worse.
        unit: of the value behind the colon: ``%``, ``pp`` (percentage points), ``factor`` (of
            single metrics); None: no value.
    """

    name: str
    meaning: str
    place: Place
    failure: str | None
    unit: Literal["%", "pp", "factor"] | None = None

    @property
    def example(self) -> str:
        """How it is asked for."""
        return self.name if self.unit is None else f"{self.name}:{_EXAMPLES[self.unit]}"


_EXAMPLES = {"%": "8%", "pp": "2pp", "factor": "SCENARIO:METRIC=0.5"}

FAULTS: dict[str, FaultKind] = {
    kind.name: kind
    for kind in [
        FaultKind("oom", "GPU memory ends while the executor is made", "engine", "oom"),
        FaultKind("hang", "the measuring program falls silent and stays so", "client", "hang"),
        FaultKind("partial", "not every request is completed", "client", "incomplete"),
        FaultKind("slow", "everything is slower by so much", "numbers", None, "%"),
        FaultKind("accuracy", "scores are lower by so much", "numbers", None, "pp"),
        FaultKind("scale", "metrics of scenarios are multiplied", "numbers", None, "factor"),
        FaultKind(
            "kv_cache_too_small",
            "the KV cache cannot hold one sequence",
            "engine",
            "kv_cache_too_small",
        ),
        FaultKind(
            "request_too_long",
            "a prompt is longer than max_num_tokens",
            "answers",
            "request_too_long",
        ),
        FaultKind("broken_answers", "one token over and over", "text", "broken_output"),
        FaultKind("wrong_answers", "fluent, and not as documented", "text", "wrong_answer"),
        FaultKind("config_error", "a key of the YAML is refused", "engine", "config_error"),
        FaultKind(
            "cli_drift",
            "an option is refused although --help lists it",
            "engine",
            "cli_drift",
        ),
        FaultKind(
            "cli_drift_help",
            "an option is gone, from --help too: found before anything is started",
            "engine",
            "cli_drift",
        ),
        FaultKind("port_in_use", "the port is taken", "engine", "port_in_use"),
        FaultKind("nccl", "the GPUs cannot talk to each other", "engine", "nccl"),
        FaultKind("cuda_error", "a kernel reads memory it must not", "engine", "cuda_error"),
        FaultKind("mpi", "a rank aborts the others", "engine", "mpi"),
        FaultKind(
            "pmi_mismatch", "the ranks do not find their scheduler", "engine", "pmi_mismatch"
        ),
        FaultKind("killed", "the program is killed with SIGKILL", "engine", "killed"),
        FaultKind("truncated", "the report ends in the middle", "client", "truncated_output"),
        FaultKind("no_metrics", "exit status 0, and no report", "client", "no_metrics"),
        FaultKind("zero_metrics", "a report full of zeros", "client", "no_metrics"),
    ]
}


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

    def __str__(self) -> str:
        return f"{self.where}:{self.metric}={self.factor:g}"


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

    def factor(self, scenario: str, probe: str, metric: str) -> float:
        """What a metric of a probe is multiplied with; 1: it stays."""
        found = 1.0
        for scale in self.scales:
            if scale.hits(scenario, probe) and fnmatchcase(metric, scale.metric):
                found *= scale.factor
        return found

    def __str__(self) -> str:
        if self.scales:
            return f"{self.name}:{','.join(map(str, self.scales))}"
        if self.value is None:
            return self.name
        return f"{self.name}:{100 * self.value:g}{self.kind.unit}"


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
    number = written.removesuffix(kind.unit).strip()
    try:
        value = float(number) / 100
    except ValueError:
        raise _refused(f"{name} needs a number and {kind.unit}", text) from None
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
    try:
        value = float(factor)
    except ValueError:
        value = 0.0
    if not where or not metric or not 0 < value < float("inf"):
        raise _refused("scale needs SCENARIO:METRIC=FACTOR, the factor above 0", text)
    return Scale(where, metric, value)


def _refused(problem: str, text: str) -> InputError:
    width = max(len(kind.example) for kind in FAULTS.values())
    listed = "\n".join(f"    {kind.example:{width}}  {kind.meaning}" for kind in FAULTS.values())
    return InputError(
        problem, field="--rehearse-fault", found=repr(text), expected=f"one of\n{listed}"
    )
