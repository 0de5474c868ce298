"""Prompt identity: whether the measured prompts are those that a reference was measured with. Pure.

The tokens of all prompts together tell one dataset from another: another file, one that is cut off,
another seed or another tokenizer has another sum.
"""

from collections.abc import Mapping, Sequence
from statistics import median

from perfgate.baselines import Entry
from perfgate.clients.client_facts import DATASET_DIFFERS
from perfgate.core.measurement import Measurement
from perfgate.scenarios.scenario import Scenario

# A sum that follows from rates: 6.40 s as printed are known to 0.08 %.
_BY_ARITHMETIC_TOLERANCE = 0.002


def unlike_documented(measurements: Sequence[Measurement]) -> str:
    """How the measured prompts differ from those that the document measured; empty: not at all.

    Args:
        measurements: one per fresh start, each with what is told of its client's prompts.
    """
    told = (measurement.facts.get(DATASET_DIFFERS) for measurement in measurements)
    return next((f"the dataset: {one}" for one in told if one), "")


def unlike_baseline(
    scenario: Scenario, entry: Entry, measurements: Sequence[Measurement]
) -> tuple[str, ...]:
    """How the measured conversations differ from those of a baseline, in words.

    A baseline keeps no counts: its sums follow from its rates.

    Args:
        scenario: what was measured; only conversations of a file are compared.
        entry: the baseline's part for the probe, of the same client.
        measurements: one per fresh start; those that do not count their prompts are not looked at.
    """
    load = scenario.workload
    if load is None or load.dataset != "sharegpt":
        return ()
    before = [tokens for run in entry.runs if (tokens := _by_arithmetic(run.metrics)) is not None]
    known = median(before) if before else 0.0
    for measurement in measurements:
        tokens = _counted(measurement)
        if before and tokens and abs(tokens - known) > _BY_ARITHMETIC_TOLERANCE * known:
            return (f"input tokens of all prompts: measured {tokens}, baseline {known:.0f}",)
    return ()


def _counted(measurement: Measurement) -> int | None:
    """The tokens of all prompts of one fresh start, as its client counted them."""
    told = measurement.facts.get("input_tokens")
    return told if isinstance(told, int) and not isinstance(told, bool) else None


def _by_arithmetic(metrics: Mapping[str, float]) -> float | None:
    names = ("total_token_throughput", "output_throughput", "duration_s")
    if not all(name in metrics for name in names):
        return None
    every, output, duration = (metrics[name] for name in names)
    return (every - output) * duration
