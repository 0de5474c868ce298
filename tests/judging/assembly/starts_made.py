"""Fresh starts that gave a speed, or the answers to questions of which so many are right."""

from perfgate.core.measurement import Measurement

SPEED = "output_throughput"


def speeds(*values: float, **others: float) -> list[Measurement]:
    """One start for each value; `others` are metrics that all of them have."""
    return [Measurement({SPEED: value, **others}) for value in values]


def scored(metric: str, right: int, questions: int, *, answers: bool = True) -> Measurement:
    """An evaluation, with its answers or with the number of its questions alone."""
    given = {metric: {f"q{n}": n < right for n in range(questions)}} if answers else {}
    return Measurement({metric: right / questions}, {"questions": questions}, given)
