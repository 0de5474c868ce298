"""Measured facts: what measurements say of the settings in force and of the prompts measured. Pure.

An option that a program accepts may be without effect. What the running server said of itself is
among a measurement's facts (`perfgate.engines.in_force`); where it says nothing, what the scenario
says of its own command line holds. The tokens of all prompts together tell one dataset from
another: another file, one that is cut off, another seed or another tokenizer has another sum.
"""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from perfgate.baselines import Entry
from perfgate.clients.client_facts import DATASET_DIFFERS
from perfgate.core.measurement import Json, Measurement
from perfgate.scenarios.scenario import Scenario

_LIMITED = "limited: "


def is_limit(note: str) -> bool:
    """Whether a note is about what bounds the load, and not about a setting of the scenario."""
    return note.startswith(_LIMITED)


def inert_notes(scenario: Scenario) -> tuple[str, ...]:
    """What is known before a start: which settings the document's line does not put in force."""
    inert = scenario.engine.inert or {}
    return tuple(f"known not to be in force: {name}: {why}" for name, why in inert.items())


def settings_notes(scenario: Scenario, measurements: Sequence[Measurement]) -> Iterator[str]:
    """One line for each setting that is not in force, or bounded; said once for all starts.

    Args:
        scenario: what was measured.
        measurements: one per fresh start; none: nothing is said.
    """
    if not measurements:
        return
    inert = scenario.engine.inert or {}
    told = _texts(measurements, "settings_inert")
    yield from (f"not in force, as the scenario says: {one}" for one in told)
    yield from (f"{_LIMITED}{one}" for one in _texts(measurements, "settings_limited"))
    for name in (revived := _texts(measurements, "settings_no_longer_inert")):
        yield (
            f"in force, which the scenario says it is not: {name}: what is documented was measured "
            f"without it; remove engine.inert.{name}, or use the documented release"
        )
    for name, why in inert.items():
        if name not in revived and not any(one.startswith(f"{name}:") for one in told):
            yield f"not in force, by the scenario alone, as the server does not tell: {name}: {why}"
    silent = unestablished(measurements)
    for why in dict.fromkeys(silent.values()):
        names = ", ".join(name for name, reason in silent.items() if reason == why)
        yield f"not established: whether {names} is in force: {why}"


def unestablished(measurements: Sequence[Measurement]) -> dict[str, str]:
    """Setting that is asked for → why it is not known to be in force, over all fresh starts."""
    given = [one.facts.get("settings_not_established") for one in measurements]
    told = [facts for facts in given if isinstance(facts, dict)]
    return {name: str(why) for facts in told for name, why in facts.items()}


def _texts(measurements: Sequence[Measurement], fact: str) -> list[str]:
    """The lines of a fact that is a list, over all measurements, each once."""
    given: list[Json] = [measurement.facts.get(fact) for measurement in measurements]
    return [*dict.fromkeys(str(one) for lines in given if isinstance(lines, list) for one in lines)]


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
