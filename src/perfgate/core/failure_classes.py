"""The classes of failure, from failure_classes.toml: what each means, and a person's next step."""

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Failure:
    """One class of failure.

    Attributes:
        name: its name.
        meaning: what it means.
        next_step: what a person does next.
        of_machine: whether the machine failed rather than what ran on it, so that another try on
            other nodes makes sense.
    """

    name: str
    meaning: str
    next_step: str
    of_machine: bool = False


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

FAILURES: dict[str, Failure] = {name: Failure(name, **one) for name, one in _TABLE.items()}
