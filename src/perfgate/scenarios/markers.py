"""Markers: the words that `pytest -m` selects by, and what each of them means.

A marker is declared once: by perfgate, for what follows from a scenario's facts (below), or under
`markers` of a scenario file, for what a scenario names itself. Markers of a kind are those of a
test, all others those of all tests of a scenario.
"""

from collections.abc import Iterator, Mapping
from typing import Literal, get_args

from perfgate.core.errors import did_you_mean
from perfgate.scenarios.scenario import GPUS, Scenario
from perfgate.scenarios.yaml_document import Keys, Problem

EXPLORE = "explore"
OPT_IN = "opt_in"
STREAMING = "streaming"
LATENCY = "latency"
NIGHTLY, WEEKLY = "nightly", "weekly"

Kind = Literal["smoke", "throughput", "accuracy"]  # what a test measures
CLAIM = "claim"  # and has the marker of its metric's kind
_KINDS: Mapping[str, str] = {
    "smoke": "asks for a first answer",
    "throughput": "measures speed under load, or is a claim about speed",
    "accuracy": "measures how well questions are answered, or is a claim about scores",
    "claim": "checks a statement of the documents about one or two results",
}
KIND_MARKERS = frozenset(_KINDS)

# A scenario with one of these is a template: measured only where one of them is named.
OPT_IN_MARKERS = frozenset({EXPLORE, OPT_IN})

# The marker of each hardware, which every scenario gets by itself.
_OF_GPU = {gpu: "local" if gpu == "none" else gpu.lower() for gpu in GPUS}
HARDWARE_MARKERS = frozenset(_OF_GPU.values())

DECLARED_BY_PERFGATE: Mapping[str, str] = {
    **{
        marker: "needs no GPU, runs on any machine" if gpu == "none" else f"needs {gpu} GPUs"
        for gpu, marker in _OF_GPU.items()
    },
    EXPLORE: "takes other prompt and answer lengths by --shape; measured only when asked for",
    OPT_IN: "measured only when asked for, by this name",
    STREAMING: "load that is streamed token by token",
    LATENCY: "load with few requests in flight: how fast one is answered",
    NIGHTLY: "is done within about an hour, worth a run each night",
    WEEKLY: "takes longer, or seldom shows anything new",
    **_KINDS,
}

_OF_EXPRESSIONS = frozenset({"and", "or", "not"})
# What these do to a test, pytest or a plugin of it says.
_OF_PYTEST = frozenset(
    {"benchmark", "filterwarnings", "parametrize", "skip", "skipif", "usefixtures", "xfail"}
)


def hardware_marker(scenario: Scenario) -> str:
    """The marker of the scenario's hardware: ``b200``, ``h200``, …, ``local`` without GPUs."""
    return _OF_GPU[scenario.hardware.gpu]


def kinds_of(scenario: Scenario) -> tuple[Kind, ...]:
    """What tests of the scenario's own there are."""
    measured: tuple[object, ...] = (scenario.smoke, scenario.workload, scenario.accuracy)
    return tuple(kind for kind, what in zip(get_args(Kind), measured, strict=True) if what)


def markers_of_test(scenario: Scenario, kind: Kind) -> tuple[str, ...]:
    """The markers of the scenario's tests of one kind, sorted.

    Its hardware, what it names itself, and the kind; `latency` and `streaming` are of load alone.
    """
    found = {hardware_marker(scenario), kind, *scenario.markers}
    if kind != "throughput":
        found.discard(LATENCY)
    elif scenario.workload is not None and scenario.workload.streaming:
        found.add(STREAMING)
    return tuple(sorted(found))


def markers_of(scenario: Scenario) -> tuple[str, ...]:
    """The markers of all tests of the scenario's own together, sorted."""
    kinds = kinds_of(scenario)
    return tuple(sorted({name for kind in kinds for name in markers_of_test(scenario, kind)}))


def taken_name(path: Keys, name: str) -> Problem | None:
    """Why no scenario file can declare a marker of that name; None: it can."""
    if name in DECLARED_BY_PERFGATE:
        expected = f"one declaration; perfgate itself has it: {DECLARED_BY_PERFGATE[name]}"
        hint = "take it out, scenarios can name it"
        return Problem(path, "marker declared twice", name, expected, hint)
    if name in _OF_EXPRESSIONS | _OF_PYTEST:
        owner = "marker expressions" if name in _OF_EXPRESSIONS else "pytest"
        return Problem(path, f"a word of {owner}", name, "another name")
    return None


def undeclared_markers(scenario: Scenario, declared: Mapping[str, str]) -> Iterator[Problem]:
    """Each own marker of the scenario that is not among the declared ones; paths from it down."""
    for position, marker in enumerate(scenario.markers):
        if marker not in declared:
            yield unknown_marker(("markers", position), marker, declared)


def unknown_marker(
    path: Keys,
    marker: str,
    declared: Mapping[str, str],
    hint: str = "declare it, with its meaning, under markers of a scenario file",
) -> Problem:
    """What is said of a marker that is declared nowhere; `hint`: where none is like it."""
    hint = did_you_mean(marker, declared) or hint
    return Problem(path, "unknown marker", marker, "one of " + ", ".join(sorted(declared)), hint)
