"""Stored side: the side of a claim that was not measured in this session, as a baseline has it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from perfgate.baselines import Baseline, BaselineRun, Entry
from perfgate.baselines.baseline import common_facts
from perfgate.baselines.choice import in_order
from perfgate.core.measurement import Measurement
from perfgate.core.verdict import counted
from perfgate.scenarios.probe import Probe

# Facts of a measurement that two sides of a claim need not share: what is measured, on which
# weights, and by which program, which is looked at by itself.
_OWN_FACTS = frozenset({"content", "model", "extra_options", "client", "evaluator"})


@dataclass(frozen=True)
class StoredSide:
    """An accepted baseline that stands for a side of a claim.

    Attributes:
        probe: the side.
        metric: what the claim is about.
        baseline: its newest accepted one.
        today: the day of this session.
        why: why the side was not measured.
    """

    probe: Probe
    metric: str
    baseline: Baseline
    today: date
    why: str

    @property
    def entry(self) -> Entry:
        """The side's part of the baseline."""
        return self.baseline.entries[self.probe.label]

    @property
    def runs(self) -> Sequence[BaselineRun]:
        """Its fresh starts that have the metric."""
        return [run for run in self.entry.runs if self.metric in run.metrics]

    @property
    def measurements(self) -> Sequence[Measurement]:
        """One per fresh start."""
        return stored_measurements(self.entry, self.metric)

    @property
    def in_words(self) -> str:
        """Which baseline, how old, of which commit, and why it stands there."""
        engine = self.baseline.engine
        commit = "" if engine.commit == engine.version else f", commit {engine.commit[:12]}"
        newest = max(run.started for run in self.runs)
        days = (self.today - datetime.fromisoformat(newest).date()).days
        return (
            f"{self.probe.id} was not measured in this session ({self.why}): its newest accepted "
            f"baseline serves, {engine.name} {engine.version}{commit}, "
            f"{counted(len(self.runs), 'fresh start')} of {newest[:10]} "
            f"({counted(days, 'day')} old), accepted by {self.baseline.accepted_by}"
        )

    def differences(self, fingerprint: Mapping[str, str]) -> tuple[str, ...]:
        """The facts of the machine in which the side measured now differs, in words.

        Args:
            fingerprint: the facts of that side's measurements.
        """
        here, there = (
            {name: value for name, value in facts.items() if name not in _OWN_FACTS}
            for facts in (fingerprint, self.entry.fingerprint)
        )
        return tuple(
            f"{name}: now {here.get(name, 'none')}, baseline {there.get(name, 'none')}"
            for name in common_facts(here, there)
            if here.get(name) != there.get(name)
        )


def stored_measurements(entry: Entry, metric: str) -> list[Measurement]:
    """A baseline's fresh starts that have the metric, as measurements."""
    return [
        Measurement(run.metrics, {}, run.answers) for run in entry.runs if metric in run.metrics
    ]


def client_of(entry: Entry, version: str) -> str:
    """The program that measured an entry, with its release.

    One that came with the engine stands there by its name alone: its release is the engine's.
    """
    told = entry.fingerprint.get("client") or entry.fingerprint.get("evaluator") or "unknown"
    return told if " " in told else f"{told} {version}"


def newest_first(stored: Sequence[Baseline], probe: Probe, metric: str) -> list[Baseline]:
    """The baselines that can stand for a probe, newest first: of its content, not retired."""
    content = probe.content_hash()
    return [
        one
        for one in reversed(in_order(stored))
        if one.retired is None
        and (entry := one.entries.get(probe.label)) is not None
        and entry.fingerprint.get("content") == content
        and entry.values(metric)
    ]


def by_client(stored: Collection[Baseline], probe: Probe, client: str) -> Baseline | None:
    """The first of the baselines that a program of the same release measured; None: there is none.

    Args:
        stored: of `newest_first`.
        probe: the side.
        client: the program of the other side, with its release.
    """
    return next(
        (
            one
            for one in stored
            if client_of(one.entries[probe.label], one.engine.version) == client
        ),
        None,
    )
