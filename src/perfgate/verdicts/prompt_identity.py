"""Prompt identity: whether the measured prompts are those that a reference was measured with. Pure.

The tokens of all prompts together tell one dataset from another: another file, one that is cut off,
another seed or another tokenizer has another sum.
"""

from collections.abc import Mapping, Sequence
from statistics import median

from perfgate.baselines import Entry
from perfgate.core.measurement import Measurement
from perfgate.scenarios.scenario import Scenario, Workload

# Of generated prompts the lengths were asked, and the same sum is not promised by any release of a
# tokenizer; the gate's facts allow 0.5 %. Conversations of a file have the sum that they have.
_GENERATED_TOLERANCE = 0.005
# A sum that follows from rates: 6.40 s as printed are known to 0.08 %.
_BY_ARITHMETIC_TOLERANCE = 0.002


def unlike_documented(scenario: Scenario, measurements: Sequence[Measurement]) -> str:
    """How the measured prompts differ from those that the document measured; empty: not at all.

    Args:
        scenario: what was measured; without ``workload.input_tokens`` nothing is known.
        measurements: one per fresh start; those that do not count their prompts are not looked at.
    """
    load = scenario.workload
    if load is None or load.input_tokens is None:
        return ""
    tolerance = _GENERATED_TOLERANCE if load.dataset == "synthetic" else 0.0
    for measurement in measurements:
        measured = _counted(measurement)
        if measured is not None and _differ(measured, load.input_tokens, tolerance):
            return (
                f"input tokens of all prompts: measured {measured:.10g}, "
                f"documented {load.input_tokens}: {_other(load)}"
            )
    return ""


def unlike_baseline(
    scenario: Scenario, entry: Entry, measurements: Sequence[Measurement]
) -> tuple[str, ...]:
    """How the measured conversations differ from those of a baseline, in words.

    A baseline keeps no counts: its sums follow from its rates.

    Args:
        scenario: what was measured; only conversations of a file are compared.
        entry: the baseline's part for the probe.
        measurements: one per fresh start.
    """
    load = scenario.workload
    if load is None or load.dataset != "sharegpt":
        return ()
    before = [tokens for run in entry.runs if (tokens := _by_arithmetic(run.metrics)) is not None]
    if not before:
        return ()
    known = median(before)
    for measurement in measurements:
        measured = _counted(measurement)
        if measured is not None and _differ(measured, known, _BY_ARITHMETIC_TOLERANCE):
            told = f"measured {measured:.10g}, baseline {known:.0f}"
            return (f"input tokens of all prompts: {told}: {_other(load)}",)
    return ()


def _counted(measurement: Measurement) -> float | None:
    """The tokens of all prompts of one fresh start, as its client counted them."""
    told = measurement.facts.get("input_tokens")
    if isinstance(told, bool) or not isinstance(told, int | float):
        return None
    return float(told)


def _by_arithmetic(metrics: Mapping[str, float]) -> float | None:
    names = ("total_token_throughput", "output_throughput", "duration_s")
    if not all(name in metrics for name in names):
        return None
    every, output, duration = (metrics[name] for name in names)
    return (every - output) * duration


def _differ(measured: float, known: float, tolerance: float) -> bool:
    return abs(measured - known) > tolerance * known


def _other(load: Workload) -> str:
    by = f"{load.client} {load.client_version}" if load.client_version else load.client
    return f"other prompts, or counted otherwise than by {by}"
