"""Baseline: accepted measurements of one scenario, on one hardware, at one engine commit."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, overload

from perfgate.core.measurement import Measurement
from perfgate.engines.base import EngineBuild

# What accepting a baseline changed: nothing was comparable before; the level stayed; a loss was
# accepted; it became better. Anything but "none" starts a new level.
Change = Literal["first", "none", "regression", "improvement"]

# Runs of a baseline that a measurement is compared with, at most (docs/how-to/baselines.md).
MOST_RUNS = 30
# Sessions that a first baseline should have: fewer leave more losses unseen (statistics §4).
ENOUGH_SESSIONS = 3

NOBODY = "nobody yet"  # who has accepted a candidate
SELF = "self"  # who has accepted a machine's reference of itself
_ID = "sha256:"


@dataclass(frozen=True)
class BuildSource:
    """How an engine build is started; what is empty is as it is on this machine.

    Attributes:
        image: container image that holds its programs.
        digest: what that image is exactly in its registry, ``sha256:…``; empty: not known.
        image_id: what that image is exactly on the machine where it was used, ``sha256:…``: all
            that is known of an image that was built there and never pushed.
        prefix: folder of an installation with a ``bin/``, e.g. a virtual environment.
        programs: variable ``PERFGATE_PROGRAM_…`` → how that program is called.
        settings: settings changed in the scenario, ``KEY=VALUE`` as ``--inject`` takes them.
    """

    image: str = ""
    digest: str = ""
    image_id: str = ""
    prefix: str = ""
    programs: Mapping[str, str] = field(default_factory=dict)
    settings: tuple[str, ...] = ()

    @property
    def names_programs(self) -> bool:
        """Whether its programs are others than those of this environment."""
        return bool(self.image or self.prefix or self.programs)

    @property
    def image_to_start(self) -> str:
        """The image by its digest, which no later push changes; else by its id, else by its name.

        Empty where there is no image.
        """
        if not self.image or "@" in self.image:
            return self.image
        if self.digest:
            return f"{without_tag(self.image)}@{self.digest}"
        return self.image_id or self.image

    @property
    def description(self) -> str:
        """``nvcr.io/…:1.2.0, PERFGATE_PROGRAM_TRTLLM_SERVE=/opt/a``, as a command line has it."""
        image = self.image if self.image_to_start.startswith(_ID) else self.image_to_start
        parts = [image, self.prefix, *(f"{name}={call}" for name, call in self.programs.items())]
        return ",".join([*filter(None, parts), *self.settings]) or "this"


def without_tag(image: str) -> str:
    """The image's name without tag and digest; a port of its registry stays."""
    name = image.partition("@")[0]
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}{last.partition(':')[0]}"


def common_facts(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Names of the facts that two fingerprints must share.

    A boost slider counts only where both have one: older baselines do not know theirs.
    """
    known_to_one = (one.keys() ^ other.keys()) & {"boost_slider"}
    return sorted((one.keys() | other.keys()) - known_to_one)


@dataclass(frozen=True)
class BaselineRun:
    """One fresh start's part in a baseline.

    Attributes:
        run: id of the perfgate run it comes from.
        started: when that start began, ISO 8601 with time zone.
        metrics: canonical metric name → value.
        answers: accuracy metric → question key → answered correctly.
        seconds: how long this probe's measurement and its share of the start took; None: unknown.
        start: number of the fresh start in its run, the same for all probes measured on it; None:
            not known.
    """

    run: str
    started: str
    metrics: Mapping[str, float]
    answers: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    seconds: float | None = None
    start: int | None = None


@dataclass(frozen=True)
class Entry:
    """A probe's part of a baseline: the facts that must be equal, and one run per fresh start."""

    fingerprint: Mapping[str, str]
    runs: tuple[BaselineRun, ...]

    def values(self, metric: str) -> list[float]:
        """The metric's values, one per fresh start that has it."""
        return [run.metrics[metric] for run in self.runs if metric in run.metrics]

    def answers(self, metric: str) -> list[Mapping[str, bool]]:
        """The accuracy's answers, question by question, of each fresh start that has them."""
        return [run.answers[metric] for run in self.runs if run.answers.get(metric)]

    def sessions(self, metric: str) -> int:
        """The number of sessions behind the metric's values: one run each."""
        return len({run.run for run in self.runs if metric in run.metrics})

    def metrics(self) -> list[str]:
        """The metrics that at least one run has, sorted."""
        return sorted({metric for run in self.runs for metric in run.metrics})

    def differences(self, fingerprint: Mapping[str, str]) -> tuple[str, ...]:
        """The facts in which a measurement differs, as ``name: here X, baseline Y``."""
        return tuple(
            f"{name}: measured {fingerprint.get(name, 'none')}, "
            f"baseline {self.fingerprint.get(name, 'none')}"
            for name in common_facts(self.fingerprint, fingerprint)
            if fingerprint.get(name) != self.fingerprint.get(name)
        )


@dataclass(frozen=True)
class Retired:
    """That a baseline is not compared with any more: who decided, when (ISO 8601, UTC), and why."""

    by: str
    at: str
    reason: str


@dataclass(frozen=True)
class Baseline:
    """All that one file holds.

    Attributes:
        scenario: the scenario's id.
        hardware: the hardware's label, as in `Hardware.label`.
        engine: the engine build that was measured.
        accepted_by: the person, "self" for a machine's own reference, "nobody yet" for a candidate.
        accepted_at: ISO 8601 date and time, UTC.
        reason: why these numbers are right.
        entries: probe label → its runs.
        verdicts: probe label → the verdict that the measuring run gave it.
        change: what accepting it changed; anything but "none" starts a new level.
        regression: why a regression was accepted; empty: none was.
        retired: that it is not compared with any more.
        synthetic: whether mock programs made its numbers: only rehearsals are compared with it.
        source: how the build was started, so that it can be started again; None: not recorded.
        file: where it was read from.
    """

    scenario: str
    hardware: str
    engine: EngineBuild
    accepted_by: str
    accepted_at: str
    reason: str
    entries: Mapping[str, Entry]
    verdicts: Mapping[str, str] = field(default_factory=dict)
    change: Change = "none"
    regression: str = ""
    retired: Retired | None = None
    synthetic: bool = False
    source: BuildSource | None = None
    file: Path | None = field(default=None, compare=False)

    @property
    def sessions(self) -> int:
        """The number of sessions behind the probe that has fewest: one run each."""
        return min(len({run.run for run in entry.runs}) for entry in self.entries.values())

    def merged(self, other: "Baseline") -> "Baseline":
        """The same commit's baseline with the other's entries in place of its own.

        A new level that either of them started stays one: a later, unchanged promotion of the same
        commit must not let the window reach back across an accepted regression.
        """
        started = self.change != "none" and other.change != "regression"
        return replace(
            other,
            entries={**self.entries, **other.entries},
            verdicts={**self.verdicts, **other.verdicts},
            change=self.change if started else other.change,
            regression=other.regression or self.regression,
            source=other.source or self.source,
        )


@dataclass(frozen=True)
class Head:
    """What a baseline's file says of itself, without the numbers; fields as in `Baseline`.

    Attributes:
        labels: labels of the probes that it has runs of.
    """

    scenario: str
    hardware: str
    engine: EngineBuild
    accepted_by: str
    accepted_at: str
    change: Change
    labels: frozenset[str]
    file: Path
    retired: Retired | None = None
    synthetic: bool = False


@dataclass(frozen=True)
class Window(Sequence[Baseline]):
    """Baselines that a build is compared with, newest first; each is read when it is needed.

    Attributes:
        heads: what their files say of themselves.
        read: reads one in full.
    """

    heads: tuple[Head, ...]
    read: Callable[[Path], Baseline] = field(compare=False)

    def __len__(self) -> int:
        return len(self.heads)

    @overload
    def __getitem__(self, place: int) -> Baseline: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Baseline]: ...
    def __getitem__(self, place: int | slice) -> Baseline | Sequence[Baseline]:
        if isinstance(place, slice):
            return Window(self.heads[place], self.read)
        return self.read(self.heads[place].file)


@dataclass(frozen=True)
class ChosenBaseline:
    """The baseline to compare with.

    Attributes:
        baseline: that one.
        why: why that one, in words.
        window: the baseline itself, then the older accepted ones on the same level, newest first.
        is_newer: whether it is of a newer version than the build, as there is no older one.
    """

    baseline: Baseline
    why: str
    window: Window
    is_newer: bool = False

    def entry(self, label: str) -> Entry | None:
        """The runs of one probe over the window, at most `MOST_RUNS`.

        Newest baseline first, the runs of each in the order measured. The facts are those of the
        newest baseline in the window that has the probe; older ones count if theirs are equal.
        """
        parts = [entry for _, entry in self._parts(label)]
        if not parts:
            return None
        facts = parts[0].fingerprint
        runs = [run for entry in parts if not entry.differences(facts) for run in entry.runs]
        return Entry(facts, tuple(runs[:MOST_RUNS]))

    def files(self, label: str) -> tuple[Path, ...]:
        """The files that `entry` reads for a probe, newest first."""
        return tuple(file for file, _ in self._parts(label))

    def _parts(self, label: str) -> Iterator[tuple[Path, Entry]]:
        """The probe's part of each baseline in the window, and its file, until they are enough."""
        facts: Mapping[str, str] | None = None
        count = 0
        for head in self.window.heads:
            if label not in head.labels or count >= MOST_RUNS:
                continue
            entry = self.window.read(head.file).entries[label]
            facts = entry.fingerprint if facts is None else facts
            count += 0 if entry.differences(facts) else len(entry.runs)
            yield head.file, entry


def few_sessions(sessions: int) -> str:
    """What a person should know of a baseline of so many sessions; empty: it has enough."""
    if sessions >= ENOUGH_SESSIONS:
        return ""
    plural = "" if sessions == 1 else "s"
    return f"baseline of {sessions} session{plural}; {ENOUGH_SESSIONS} are asked for"


def as_run(
    measurement: Measurement,
    run: str,
    started: str,
    seconds: float | None = None,
    start: int | None = None,
) -> BaselineRun:
    """A measurement as one run of a baseline."""
    metrics, answers = dict(measurement.metrics), dict(measurement.answers)
    return BaselineRun(run, started, metrics, answers, seconds, start)
