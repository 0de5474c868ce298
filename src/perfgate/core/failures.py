"""Failures: what class of failure a log shows, by which lines, and the next step for a person.

The classes are in `perfgate.core.errors`, what their lines look like in
failure_signatures.toml.
"""

import re
import signal
import tomllib
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Literal, NamedTuple

from perfgate.core.errors import FAILURES
from perfgate.core.memory_shortage import BINDING_ADVICE, MemoryShortage
from perfgate.core.raw_log import lines_with
from perfgate.core.redaction import redact

LONGEST_EVIDENCE = 300  # characters of one line of evidence
_MOST_TELLING = 20_000  # lines that have a telling word, at the beginning of a log and at its end

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


_TABLE_FILE = Path(__file__).with_name("failure_signatures.toml")
_TABLE = tomllib.loads(_TABLE_FILE.read_text(encoding="utf-8"))

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

# In lower case: the words of the lines that tell anything.
TELLING = (*TELLING_WORDS, "component could not be created", "is using gpu", "mpi local size")

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# What stands before a program's own words, in any number and order.
_PREFIX = re.compile(_TABLE["prefix"], re.VERBOSE)
_ON_ONE_GPU = re.compile(r"Duplicate GPU detected : rank \d+ and rank \d+ both on CUDA device \w+")
# Signals that a program makes itself; others come from outside: a person, a scheduler, the kernel.
_OF_A_CRASH = {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL}
_CALM = {"I", "V", "D", "INFO", "VERBOSE", "DEBUG", "TRACE"}


@dataclass(frozen=True)
class Diagnosis:
    """What a log shows.

    Attributes:
        failure: class of the failure, one of `FAILURES`; "unknown" where something went wrong but
            no line says what.
        line: number of the telling line, from 1.
        text: that line, redacted and shortened.
        details: further lines that belong to it, as (number, text), redacted and shortened.
        next_step: what a person should do, fitted to what the lines say.
    """

    failure: str
    line: int
    text: str
    details: tuple[tuple[int, str], ...] = ()
    next_step: str = ""

    @property
    def evidence(self) -> tuple[str, ...]:
        """The telling lines, in order."""
        return (self.text, *(text for _, text in self.details))


def diagnose(lines: Iterable[str]) -> Diagnosis | None:
    """The first cause that a log shows; where there is none, its first symptom or banner.

    The first cause wins, since what follows it in a log is most often its consequence. A symptom
    only says that something ended badly: the closing banner of mpirun or Slurm, the last line of a
    traceback. It never wins over a cause, wherever that stands, and one that tells a class wins
    over one that does not.

    Args:
        lines: the program's output, in order, with any prefixes and colours.

    Returns:
        None if no line tells of a failure.
    """
    return diagnose_log(enumerate(lines, start=1))


def diagnose_log(numbered: Iterable[tuple[int, str]]) -> Diagnosis | None:
    """As `diagnose`, of the numbered lines of a log of any size; of some only `TELLING` ones.

    Where those are very many, as in a log that tells of the KV cache all the time, the first and
    the last are looked at: a program fails as it starts, or ends with what it failed of.
    """
    lesser: dict[Rank, Diagnosis] = {}
    shortage = MemoryShortage()
    telling = _first_and_last(one for one in numbered if _has_word(one[1], TELLING))
    for number, line in telling:
        seen = _sign(number, line)
        if seen is None:
            shortage.before(line)
            continue
        rank, sign = seen
        if rank == "cause":
            return _completed(sign, line, telling, shortage)
        kept = lesser.get(rank)
        if kept is None or (kept.failure == "unknown" and sign.failure != "unknown"):
            lesser[rank] = sign
    best = lesser.get("symptom") or lesser.get("banner")
    return None if best is None else _completed(best, best.text, iter(()), shortage)


def _has_word(line: str, words: tuple[str, ...]) -> bool:
    lowered = line.lower()
    return any(word in lowered for word in words)


def _first_and_last(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    yield from islice(lines, _MOST_TELLING)
    yield from deque(lines, maxlen=_MOST_TELLING)


class Shown(NamedTuple):
    """What logs show.

    Attributes:
        failure: class of the failure.
        evidence: the lines that show it; empty: none does.
        hint: the next step, where the lines call for one of their own; None: that of the class.
    """

    failure: str
    evidence: tuple[str, ...]
    hint: str | None = None


def classify_logs(logs: Iterable[Path], otherwise: str = "unknown") -> Shown:
    """The class that raw logs of any size show, and the lines that show it.

    Args:
        logs: the files, the most telling one first; one that is not there shows nothing.
        otherwise: the class when no line tells which.
    """
    found = diagnose_log(chain.from_iterable(lines_with(log, TELLING) for log in logs))
    if found is None:
        return Shown(otherwise, ())
    if found.failure == "unknown":
        return Shown(otherwise, found.evidence)
    return Shown(found.failure, found.evidence, found.next_step)


def class_of_status(status: int | None) -> str | None:
    """The class of a program's end by a signal, where no line tells; None: it was none.

    Args:
        status: -N: signal N; 128 + N is how a shell tells a signal of the program's own, and other
            programs may mean something else by it.
    """
    if status is None or status >= 0:
        return "crash" if status in {128 + one for one in _OF_A_CRASH} else None
    return "crash" if -status in _OF_A_CRASH else "killed"


def _sign(number: int, line: str) -> tuple[Rank, Diagnosis] | None:
    """What the line tells, and as what; None: nothing."""
    if not _has_word(line, TELLING_WORDS):
        return None
    plain = _COLOUR.sub("", line)
    words, calm = _own_words(plain)
    if HEALTHY.search(words):
        return None
    for signature in SIGNATURES:
        if calm and signature.rank == "cause":
            continue
        found = signature.pattern.search(words)
        if found:
            text = _shortened(plain, found[0])
            return signature.rank, Diagnosis(signature.failure, number, text)
    return None


def _own_words(line: str) -> tuple[str, bool]:
    """The line without prefixes, and whether one of them marks it as information."""
    position, calm = 0, False
    while (found := _PREFIX.match(line, position)) and found.end() > position:
        calm = calm or (found["bracketed"] or found["level"]) in _CALM
        position = found.end()
    return line[position:].rstrip(), calm


def _shortened(line: str, telling: str) -> str:
    """The line, or where it is long (a progress bar), what stands around the telling part.

    Redacted first: half a secret is not recognised as one.
    """
    line, telling = redact(line.strip()), redact(telling)
    begin = max(0, line.find(telling) - LONGEST_EVIDENCE // 3)
    if begin + len(telling) <= LONGEST_EVIDENCE or len(line) <= LONGEST_EVIDENCE:
        begin = 0
    return line[begin : begin + LONGEST_EVIDENCE]


def _completed(
    sign: Diagnosis, line: str, rest: Iterator[tuple[int, str]], shortage: MemoryShortage
) -> Diagnosis:
    """The diagnosis with what the rest of the log adds to it, and the next step."""
    sign = replace(sign, next_step=FAILURES[sign.failure].next_step)
    if sign.failure == "nccl":
        return _of_nccl(sign, line, rest)
    if sign.failure != "oom":
        return sign
    shortage.cause(_COLOUR.sub("", line))
    for number, following in rest:
        shortage.after(number, _COLOUR.sub("", following))
    details = tuple((number, _shortened(text, text)) for number, text, _ in shortage.details)
    return replace(sign, details=details, next_step=shortage.advice(sign.next_step))


def _of_nccl(sign: Diagnosis, line: str, rest: Iterator[tuple[int, str]]) -> Diagnosis:
    """The diagnosis of NCCL's failure: two ranks on one GPU are told before it or after it."""
    for number, one in chain([(sign.line, line)], rest):
        if found := _ON_ONE_GPU.search(one):
            more = ((number, _shortened(_COLOUR.sub("", one), found[0])),)
            details = more if number != sign.line else ()
            return replace(sign, details=details, next_step=f"{found[0]}: {BINDING_ADVICE}")
    return sign
