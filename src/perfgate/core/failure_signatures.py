"""Failure signatures, from failure_signatures.toml: lines of a log that show a class of failure."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Rank = Literal["cause", "symptom", "banner"]


@dataclass(frozen=True)
class Signature:
    """A pattern that shows a class of failure.

    Attributes:
        failure: the class; "unknown": something went wrong, and the line does not say what.
        pattern: searched in a line without colours and log prefixes.
        rank: a "symptom" tells that something ended badly and perhaps how, a "banner" only that it
            did; a symptom counts where no cause is, a banner where nothing else is.
    """

    failure: str
    pattern: re.Pattern[str]
    rank: Rank = "cause"


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

# In the file's order: on one line the first signature wins.
SIGNATURES: tuple[Signature, ...] = tuple(
    Signature(group["failure"], re.compile(pattern, re.IGNORECASE), group["rank"])
    for group in _TABLE["signature"]
    for pattern in group["patterns"]
)

# Lines that are no sign of failure whatever words they hold.
HEALTHY = re.compile("|".join(_TABLE["healthy"]), re.IGNORECASE)

# Words without which no line is a signature, in lower case.
TELLING_WORDS: tuple[str, ...] = tuple(_TABLE["telling_words"])
