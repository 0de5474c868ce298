"""Settings notes: what a person should know of the settings that were in force. Pure.

An option that a program accepts may be without effect. What the running server said of itself is
among a measurement's facts (`perfgate.engines.in_force`); where it says nothing, what the scenario
says of its own command line holds.
"""

from collections.abc import Iterator, Sequence

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
