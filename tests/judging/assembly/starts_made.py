"""Fresh starts and baselines that gave a speed, or answers of which so many are right."""

from perfgate.baselines import BaselineRun, Entry
from perfgate.core.measurement import Measurement

SPEED = "output_throughput"
FACTS = {"content": "a", "cpu": "b"}


def speeds(*values: float, **others: float) -> list[Measurement]:
    """One start for each value; `others` are metrics that all of them have."""
    return [Measurement({SPEED: value, **others}) for value in values]


def scored(metric: str, right: int, questions: int, *, answers: bool = True) -> Measurement:
    """An evaluation, with its answers or with the number of its questions alone."""
    given = {metric: {f"q{n}": n < right for n in range(questions)}} if answers else {}
    return Measurement({metric: right / questions}, {"questions": questions}, given)


def entry_of(*starts: Measurement, run: str = "r", **facts: str) -> Entry:
    """A baseline of these starts."""
    at = "2026-01-01T00:00:00+00:00"
    runs = (BaselineRun(run, at, one.metrics, one.answers, start=n) for n, one in enumerate(starts))
    return Entry({**FACTS, **facts}, tuple(runs))
