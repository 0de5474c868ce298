"""Failures: what class of failure a log shows, by which lines, and the next step for a person.

The classes are in `perfgate.core.errors`, what their lines look like in failure_signatures.toml;
what a log tells of a lack of memory, and the advice for it, in memory_shortage.toml.
"""

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Literal

from perfgate.core.errors import FAILURES
from perfgate.core.files.remembered import toml_beside
from perfgate.core.programs.raw_log import lines_with
from perfgate.core.redaction import COLOUR, redact

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


_TABLE = toml_beside(__file__, "failure_signatures")


@cache  # they take long to compile, and most sessions read no log of a failure
def signatures() -> tuple[Signature, ...]:
    """All signatures, in the file's order: on one line the first one wins."""
    return tuple(
        Signature(group["failure"], re.compile(pattern, re.IGNORECASE), group["rank"])
        for group in _TABLE["signature"]
        for pattern in group["patterns"]
    )


@cache
def _healthy() -> re.Pattern[str]:
    """Lines that are no sign of failure whatever words they hold."""
    return re.compile("|".join(_TABLE["healthy"]), re.IGNORECASE)


# Words without which no line is a signature, in lower case.
TELLING_WORDS: tuple[str, ...] = tuple(_TABLE["telling_words"])

# In lower case: the words of the lines that tell anything.
TELLING = (*TELLING_WORDS, "component could not be created", "is using gpu", "mpi local size")

# What stands before a program's own words, in any number and order.
_PREFIX = re.compile(_TABLE["prefix"], re.VERBOSE)
_ON_ONE_GPU = re.compile(r"Duplicate GPU detected : rank \d+ and rank \d+ both on CUDA device \w+")
_CALM = {"I", "V", "D", "INFO", "VERBOSE", "DEBUG", "TRACE"}

_SHORTAGE = toml_beside(__file__, "memory_shortage")
_BINDING_ADVICE: str = _SHORTAGE["binding_advice"]
_NEIGHBOUR_ADVICE: str = _SHORTAGE["neighbour_advice"]
_COMPONENT_LINES = tuple(map(re.compile, _SHORTAGE["details"]))
_MEMORY = {name: re.compile(pattern) for name, pattern in _SHORTAGE["patterns"].items()}
_BYTES = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
# A display's few MiB are not why it did not fit; the share is that of the check "gpu memory".
_LEAST_SHARE = 0.03


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


@dataclass
class _MemoryShortage:
    """A lack of memory as the lines of one log tell it: what did not fit, who else is on the GPU.

    The lines are noted one after another.

    Attributes:
        details: lines that say what did not fit, as (number, line, telling part).
    """

    details: list[tuple[int, str, str]] = field(default_factory=list)
    _component: str = ""
    _on_host: bool = False
    _others: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    _complain: dict[tuple[int, int], set[int]] = field(default_factory=lambda: defaultdict(set))
    _users: dict[tuple[int, int], set[int]] = field(default_factory=lambda: defaultdict(set))
    _lists: bool = False
    _taken_before: bool = False
    _local: int = 0

    def before(self, line: str) -> None:
        """Note a line before the first one that tells of the lack."""
        if world := _MEMORY["world"].search(line):
            self._local = int(world["local"])
        elif (uses := _MEMORY["uses"].search(line)) and self._local:
            self._users[int(uses["rank"]) // self._local, int(uses["gpu"])].add(int(uses["rank"]))

    def cause(self, line: str) -> None:
        """Note the first line that tells of the lack."""
        self._on_host = bool(_MEMORY["host_memory"].search(line))
        self._taken_before = bool(_MEMORY["taken_before"].search(line))
        self._neighbours(line)

    def after(self, number: int, line: str) -> None:
        """Note a line after it."""
        self._neighbours(line)
        seen = {pattern for _, _, pattern in self.details}
        for pattern in _COMPONENT_LINES:
            found = pattern.search(line)
            if found and pattern.pattern not in seen:
                self.details.append((number, line, pattern.pattern))
                self._component = self._component or found.groupdict().get("component", "").strip()

    def advice(self, general: str) -> str:
        """The next step.

        Args:
            general: the documents' advice, for memory that the engine itself divides up.
        """
        if self._on_host:
            return str(_SHORTAGE["host_advice"])
        ranks, gpu = self._ranks_together()
        if ranks:
            named = " and ".join(map(str, sorted(ranks)))
            return f"ranks {named} are on one GPU (GPU {gpu}): {_BINDING_ADVICE}"
        if self._others:
            shared, processes = next(iter(self._others.items()))
            whose = ", ".join(f"process {pid}" for pid in processes)
            size = sum(processes.values()) / _BYTES["GiB"]
            return (
                f"GPU {shared} is shared: {whose} had {size:.2f} GiB of it, and without that it "
                f"would have fit; {_NEIGHBOUR_ADVICE}; of ranks of the same run: {_BINDING_ADVICE}"
            )
        if self._taken_before:
            return f"something else had the GPU's memory before the engine; {_NEIGHBOUR_ADVICE}"
        for name, advice in _SHORTAGE["components"].items():
            if self._component.startswith(name):
                step = f"{redact(self._component)} did not fit: {advice}"
                return f"{step}; in general: {general}" if name == "KV cache" else step
        return general

    def _neighbours(self, line: str) -> None:
        """Note who else a message of PyTorch names, if what they have is what was missing."""
        capacity = _MEMORY["capacity"].search(line)
        tried = _MEMORY["tried"].search(line)
        if capacity is None or tried is None:
            return
        named = {one["pid"]: _size(one) for one in _MEMORY["process"].finditer(line)}
        self._lists = self._lists or bool(named)
        if named and not _MEMORY["itself"].search(line):
            del named[max(named, key=lambda pid: named[pid])]
        theirs = sum(named.values())
        if theirs >= _size(tried) and theirs >= _LEAST_SHARE * _size(capacity):
            self._others[capacity["gpu"]] |= named
            if rank := _MEMORY["rank"].search(line):
                number = int(next(filter(None, rank.groups())))
                node = number // self._local if self._local else 0
                self._complain[node, int(capacity["gpu"])].add(number)

    def _ranks_together(self) -> tuple[set[int], int]:
        """Ranks that share a GPU, and its number there; none where the log shows none."""
        tables = [self._complain]
        if not self._lists or self._others:
            tables.append(self._users)
        for table in tables:
            for (_, gpu), ranks in table.items():
                if len(ranks) > 1:
                    return ranks, gpu
        return set(), 0


def diagnose(numbered: Iterable[tuple[int, str]]) -> Diagnosis | None:
    """The first cause that a log shows; where there is none, its first symptom or banner.

    The first cause wins, since what follows it in a log is most often its consequence. A symptom
    only says that something ended badly: the closing banner of mpirun or Slurm, the last line of a
    traceback. It never wins over a cause, wherever that stands, and one that tells a class wins
    over one that does not. Where the lines that tell anything are very many, as in a log that
    tells of the KV cache all the time, the first and the last are looked at: a program fails as it
    starts, or ends with what it failed of.

    Args:
        numbered: the program's output of any size, in order, with any prefixes and colours: each
            line with its number; of some lines only `TELLING` ones.

    Returns:
        None if no line tells of a failure.
    """
    lesser: dict[Rank, Diagnosis] = {}
    shortage = _MemoryShortage()
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


def classify_logs(
    logs: Iterable[Path], otherwise: str = "unknown"
) -> tuple[str, tuple[str, ...], str | None]:
    """What raw logs of any size show.

    Args:
        logs: the files, the most telling one first; one that is not there shows nothing.
        otherwise: the class when no line tells which.

    Returns:
        class of the failure; the lines that show it, empty where none does; the next step where
        the lines call for one of their own, else None: that of the class.
    """
    found = diagnose(chain.from_iterable(lines_with(log, TELLING) for log in logs))
    if found is None:
        return otherwise, (), None
    if found.failure == "unknown":
        return otherwise, found.evidence, None
    return found.failure, found.evidence, found.next_step


def _sign(number: int, line: str) -> tuple[Rank, Diagnosis] | None:
    """What the line tells, and as what; None: nothing."""
    if not _has_word(line, TELLING_WORDS):
        return None
    plain = COLOUR.sub("", line)
    words, calm = own_words(plain)
    if _healthy().search(words):
        return None
    for signature in signatures():
        if calm and signature.rank == "cause":
            continue
        found = signature.pattern.search(words)
        if found:
            text = _shortened(plain, found[0])
            return signature.rank, Diagnosis(signature.failure, number, text)
    return None


def own_words(line: str) -> tuple[str, bool]:
    """The line without prefixes, and whether one of them marks it as information.

    Args:
        line: without colours.
    """
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
    sign: Diagnosis, line: str, rest: Iterator[tuple[int, str]], shortage: _MemoryShortage
) -> Diagnosis:
    """The diagnosis with what the rest of the log adds to it, and the next step."""
    sign = replace(sign, next_step=FAILURES[sign.failure].next_step)
    if sign.failure == "nccl":
        return _of_nccl(sign, line, rest)
    if sign.failure != "oom":
        return sign
    shortage.cause(COLOUR.sub("", line))
    for number, following in rest:
        shortage.after(number, COLOUR.sub("", following))
    details = tuple((number, _shortened(text, text)) for number, text, _ in shortage.details)
    return replace(sign, details=details, next_step=shortage.advice(sign.next_step))


def _of_nccl(sign: Diagnosis, line: str, rest: Iterator[tuple[int, str]]) -> Diagnosis:
    """The diagnosis of NCCL's failure: two ranks on one GPU are told before it or after it."""
    for number, one in chain([(sign.line, line)], rest):
        if found := _ON_ONE_GPU.search(one):
            more = ((number, _shortened(COLOUR.sub("", one), found[0])),)
            details = more if number != sign.line else ()
            return replace(sign, details=details, next_step=f"{found[0]}: {_BINDING_ADVICE}")
    return sign


def _size(found: re.Match[str]) -> float:
    return float(found["size"]) * _BYTES[found["unit"]]
