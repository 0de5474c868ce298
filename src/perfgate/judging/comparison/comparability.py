"""Comparability: the facts in which two measurements must agree before they are compared. Pure.

perfgate's own measurements carry a fingerprint. Results of other tools tell of their load what they
tell: what both sides tell must agree; what only one tells cannot be checked.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfgate.core.errors import InputError
from perfgate.core.measurement import Json, Measurement
from perfgate.core.metrics import is_accuracy

# Token counts of one load differ from run to run where answers may end by themselves or prompts are
# drawn at random; the gate's facts allow 0.5 %. The mean of requests in flight is measured, not
# asked.
_LENGTH_TOLERANCE = 0.005
_MEASURED_TOLERANCE = 0.10
# Name in programs' results → the fact, and how far two values may differ; the last name counts.
_REPORTED = {
    "isl": ("isl", _LENGTH_TOLERANCE),
    "osl": ("osl", _LENGTH_TOLERANCE),
    "requests_completed": ("requests", 0.0),
    "max_concurrency": ("concurrency", 0.0),
    "concurrency_peak": ("concurrency_peak", _MEASURED_TOLERANCE),
    "concurrency_mean": ("concurrency_mean", _MEASURED_TOLERANCE),
    "concurrency": ("concurrency", 0.0),
    "request_rate": ("request_rate", 0.0),
    "streaming": ("streaming", 0.0),
    "model": ("model", 0.0),
    "gpu": ("gpu", 0.0),
    "gpus": ("gpus", 0.0),
    "fewshot": ("fewshot", 0.0),
}
# Programs that come with the engine have its version, which is what is under test.
_OF_THE_ENGINE = (
    "trtllm-bench",
    "benchmark_serving",
    "trtllm-eval",
    "trtllm-gpqa",
    "trtllm-quickstart",
)
PROGRAM = "program"
_PER_TASK = "questions:"
# Rates and durations that parsers hold against each other to one percent.
_ARITHMETIC_TOLERANCE = 0.02
_REQUESTED, _SEEN = "concurrency", ("concurrency_peak", "concurrency_mean")


@dataclass(frozen=True)
class Fact:
    """A value of one fact, and how far, relatively, another may be from it."""

    value: Json
    tolerance: float = 0.0

    def differs(self, other: "Fact") -> bool:
        """Whether the other is another load, machine or program."""
        numbers = [
            value
            for value in (self.value, other.value)
            if isinstance(value, int | float) and not isinstance(value, bool)
        ]
        tolerance = max(self.tolerance, other.tolerance)
        if len(numbers) == 2 and tolerance:
            return abs(numbers[0] - numbers[1]) > tolerance * max(map(abs, numbers))
        return self.value != other.value


def reported_facts(run: Measurement) -> dict[str, Fact]:
    """What a measurement tells of its program and load, by one name for each fact."""
    facts = _by_arithmetic(run.metrics)
    for name, (fact, tolerance) in _REPORTED.items():
        if run.facts.get(name) is not None:
            facts[fact] = Fact(run.facts[name], tolerance)
    if _REQUESTED in facts:  # what was seen may move with the build
        for name in _SEEN:
            facts.pop(name, None)
    # How many questions each task asked; a run of the suite has one task, and says it once.
    tasks = {name.split(":")[1] for name in run.metrics if is_accuracy(name)}
    questions = {f"{_PER_TASK}{task}": run.facts.get("questions") for task in tasks}
    questions |= {name: value for name, value in run.facts.items() if name.startswith(_PER_TASK)}
    facts |= {name: Fact(value) for name, value in questions.items() if value is not None}
    return facts | _program(run.facts)


def _by_arithmetic(metrics: Mapping[str, float]) -> dict[str, Fact]:
    """Requests and mean lengths that follow from the metrics, for reports that do not tell them."""
    requests, output = metrics.get("request_throughput"), metrics.get("output_throughput")
    duration, every = metrics.get("duration_s"), metrics.get("total_token_throughput")
    values = {}
    if requests and duration:
        values["requests"] = requests * duration
    if requests and output:
        values["osl"] = output / requests
    if requests and output and every:
        values["isl"] = (every - output) / requests
    return {
        name: Fact(float(f"{value:.5g}"), _ARITHMETIC_TOLERANCE) for name, value in values.items()
    }


def _program(facts: Mapping[str, Json]) -> dict[str, Fact]:
    for kind in ("evaluator", "client"):
        name, version = facts.get(kind), facts.get(f"{kind}_version")
        if isinstance(name, str):
            found = {PROGRAM: Fact(name)}
            if name not in _OF_THE_ENGINE and version not in (None, "None"):
                found[f"{PROGRAM}_version"] = Fact(version)
            return found
    return {}


def require_one_load(path: Path, runs: Sequence[Measurement], names: Sequence[str]) -> None:
    """Refuse the runs of one side that tell of different loads.

    Args:
        path: the side, for messages.
        runs: those of the side.
        names: how each run is called in messages.

    Raises:
        InputError: two runs differ.
    """
    facts, *others = map(reported_facts, runs)
    for name, of_other in zip(names[1:], others, strict=True):
        for fact in sorted(facts.keys() & of_other.keys()):
            if facts[fact].differs(of_other[fact]):
                raise InputError(
                    "the runs of one side are not of one load",
                    file=path,
                    field=fact,
                    found=f"{of_other[fact].value} in {name}",
                    expected=f"{facts[fact].value} as in {names[0]}",
                    hint="compare one load at a time",
                )


def differences(
    a: Mapping[str, Fact], b: Mapping[str, Fact], across: Collection[str]
) -> tuple[list[str], list[str]]:
    """The facts in which two sides differ, in words: those that matter, and those meant to.

    Args:
        a: facts of the reference.
        b: facts of the new side.
        across: names of the facts that are meant to differ.
    """
    matter: list[str] = []
    meant: list[str] = []
    for name in sorted(a.keys() & b.keys()):
        if a[name].differs(b[name]):
            words = f"{name}: A {a[name].value}, B {b[name].value}"
            (meant if name in across else matter).append(words)
    return matter, meant


def fingerprint_facts(fingerprint: Mapping[str, str], names: Collection[str]) -> dict[str, Fact]:
    """A fingerprint as facts; a name it lacks is `unknown`, which differs from any value."""
    return {name: Fact(fingerprint.get(name, "unknown")) for name in names}
