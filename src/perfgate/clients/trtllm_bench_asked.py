"""Does a report of trtllm-bench show the run that was asked for? Pure.

A release may ignore an option or a YAML key without a word, so that what the report shows of the
engine is held against the scenario; what it does not show cannot be checked.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

from perfgate.clients.client_facts import other_lengths
from perfgate.core.errors import RunError
from perfgate.core.measurement import Json, Measurement
from perfgate.core.metrics import METRICS
from perfgate.scenarios.scenario import LoadPoint, Scenario

LENGTH_TOLERANCE = 0.01  # of the asked ISL and OSL, on the mean over all requests
FRACTION_TOLERANCE = 0.005  # the report shows whole hundredths of a percent
# Made by whoever runs the program, not by its report.
_DERIVED = frozenset({"server_cpu_s_per_1k_tokens", "output_throughput_per_gpu"})
_BACKENDS = {"pytorch": "Pytorch", "tensorrt": "TRT"}  # as the report spells them
_UNQUANTIZED = frozenset({"bf16", "bfloat16", "fp16", "float16"})


@dataclass(frozen=True)
class _Knob:
    """One setting: fact in the report, what was asked, how far it may be off as a fraction."""

    fact: str
    asked: Json
    tolerance: float = 0.0


def require_asked(measured: Measurement, scenario: Scenario, point: LoadPoint) -> Measurement:
    """`measured`, whose report shows nothing but what `scenario` asks for at `point`.

    What was asked and is null or missing there is no proof of anything: the fact
    ``asked_not_reported`` names it. Real prompts of other lengths are another dataset
    (`other_lengths`), which is no fault of the run.

    Raises:
        RunError: ``incomplete`` (other number of requests), ``not_in_force`` (a setting or a
            length is another), ``no_metrics`` (token times or a gating metric are missing).
    """
    facts = measured.facts
    done = facts.get("requests_completed")
    if done is not None and done != point.requests:
        raise RunError("incomplete", f"{done} of {point.requests} requests were completed")
    for knob in _knobs(scenario):
        _require(knob, facts)
    _require_kv_cache(facts, scenario.engine.settings.kv_cache_dtype)
    _require_streaming(measured, scenario)
    for name in scenario.gate.metrics:
        if name in METRICS and name not in _DERIVED and name not in measured.metrics:
            raise RunError("no_metrics", f"the report has no {name}, which the scenario gates on")
    silent: list[Json] = [
        knob.fact for knob in _knobs(scenario) if knob.asked is not None and knob.fact not in facts
    ]
    more = other_lengths(scenario.workload, measured) if scenario.workload else {}
    more |= {"asked_not_reported": silent} if silent else {}
    return replace(measured, facts={**facts, **more})


def _knobs(scenario: Scenario) -> tuple[_Knob, ...]:
    settings, load = scenario.engine.settings, scenario.workload
    synthetic = load is not None and load.dataset == "synthetic"
    return (
        _Knob("isl", load.isl if load and synthetic else None, LENGTH_TOLERANCE),
        _Knob("osl", load.osl if load and synthetic else None, LENGTH_TOLERANCE),
        _Knob("backend", _BACKENDS.get(settings.backend or "")),
        _Knob("tp", settings.tp),
        _Knob("pp", settings.stages),
        _Knob("ep", settings.ep),
        _Knob("max_batch_size", settings.max_batch_size),
        _Knob("max_num_tokens", settings.max_num_tokens),
        _Knob("kv_cache_fraction", settings.kv_cache_fraction, FRACTION_TOLERANCE),
    )


def _require(knob: _Knob, facts: Mapping[str, Json]) -> None:
    shown = facts.get(knob.fact)
    if knob.asked is None or shown is None:
        return
    if isinstance(shown, int | float) and isinstance(knob.asked, int | float):
        if abs(shown - knob.asked) <= knob.tolerance * abs(knob.asked):
            return
    elif shown == knob.asked:
        return
    _refuse(knob.fact, shown, knob.asked)


def _require_kv_cache(facts: Mapping[str, Json], asked: str | None) -> None:
    """The data type that is reported is that of quantization: None or nothing without one."""
    if asked is None or asked == "auto" or "backend" not in facts:
        return
    shown = str(facts.get("kv_cache_dtype") or "none").lower()
    wanted = ("none", "auto", *_UNQUANTIZED) if asked.lower() in _UNQUANTIZED else (asked.lower(),)
    if shown not in wanted:
        _refuse("kv_cache_dtype", shown, asked)


def _require_streaming(measured: Measurement, scenario: Scenario) -> None:
    streamed = bool(measured.facts.get("streaming"))
    asked = scenario.workload is not None and scenario.workload.streaming
    if asked and not streamed:
        raise RunError(
            "no_metrics",
            "the report has no TTFT and TPOT, although the answers are to be streamed",
            hint="check that the program was called with --streaming",
        )
    if streamed and not asked:
        _refuse("streaming", shown=True, asked=False)


def _refuse(name: str, shown: Json, asked: Json) -> NoReturn:
    raise RunError(
        "not_in_force",
        f"{name} did not take effect: found {shown}, expected {asked}",
    )
