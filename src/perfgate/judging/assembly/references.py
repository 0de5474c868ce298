"""References: what each probe of a scenario is compared with, and why with that.

`References` reads each file once; the choice among what they hold is pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from perfgate.baselines import (
    SELF,
    BaselineRun,
    ChosenBaseline,
    Entry,
    own_store,
    rehearsal_store,
    suite_store,
)
from perfgate.baselines.baseline import few_sessions
from perfgate.baselines.engine_repo import EngineRepo
from perfgate.core.measurement import MeasuredMetric
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.verdict import Against, counted
from perfgate.judging.assembly.bands import Learnt, read_noise, run_noises
from perfgate.judging.assembly.claims import ClaimProbe
from perfgate.judging.assembly.judgement import Reference, is_interleaved, measures_itself
from perfgate.judging.assembly.measured import gap
from perfgate.judging.assembly.sweeps import SweepProbe
from perfgate.judging.rules.noise import RunNoise
from perfgate.machine.hardware import Machine
from perfgate.plan.toolchain import Toolchain
from perfgate.runs.record import DocumentedMetric
from perfgate.scenarios.documented import Documented, DocumentedValue, documented_values
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import AccuracyTask, LoadPoint, Source

# For load probes of a scenario that measures its own reference: measure it now ("fresh"), use the
# machine's stored one ("stored"), or measure only where no stored one is comparable ("auto").
ReferencePolicy = Literal["auto", "fresh", "stored"]

# Sessions of its own reference that a machine keeps beside the newest: three of six starts each are
# the fifteen degrees of freedom that count (statistics §9).
_EARLIER_SESSIONS = 2


@dataclass(frozen=True)
class Stored:
    """The baselines of one probe, as they were when they were read.

    Attributes:
        chosen: ``baseline``: the one nearest to the build under test; ``anchor``: the last
            release's, where that is another build's.
        entries: the probe's part of each that has it.
        window: files that its part of the baseline is from, newest first.
    """

    chosen: Mapping[Against, ChosenBaseline]
    entries: Mapping[Against, Entry]
    window: tuple[Path, ...]

    def comparable(self, facts: Mapping[str, str]) -> Entry | None:
        """The probe's part of the baseline, where it has these facts."""
        entry = self.entries.get("baseline")
        return None if entry is None or entry.differences(facts) else entry

    def with_session(self, facts: Mapping[str, str], runs: Sequence[BaselineRun]) -> Entry:
        """What a machine keeps of its own reference: a session's runs, then the newest before."""
        earlier = self.comparable(facts)
        before = earlier.runs if earlier else ()
        kept = list(dict.fromkeys(run.run for run in before))[:_EARLIER_SESSIONS]
        return Entry(dict(facts), (*runs, *(run for run in before if run.run in kept)))


def choose_reference(
    probe: Probe,
    stored: Stored,
    document: Documented | None,
    facts: Mapping[str, str],
    learnt: Learnt | None,
    own: Sequence[BaselineRun] = (),
) -> Reference:
    """What a probe is compared with: what this session measured, a baseline, or a document. Pure.

    Args:
        probe: the probe.
        stored: its baselines.
        document: what is documented for its scenario; None: nothing.
        facts: those of this session's measurements, where `own` are given.
        learnt: what is known of the noise of a start; None: nothing.
        own: the reference runs that this session measured, if it did.
    """
    if own:
        measured = Entry(dict(facts), tuple(own))
        return Reference(
            measured,
            noise=noise_for(probe, learnt, measured),
            description=f"this machine itself, {counted(len(own), 'fresh start')} in this session",
            is_interleaved=is_interleaved(probe.scenario),
            earlier=stored.comparable(facts),
        )
    entry, documented = stored.entries.get("baseline"), documented_for(probe, document)
    if entry is None and document and documented.keys() & set(probe.gating_metrics()):
        description = f"the documented value, {cited(document.source)}"
        return Reference(None, documented, description=description)
    if (nearest := stored.chosen.get("baseline")) is None:
        return Reference(None, documented, description="no baseline")
    description, anchor = _describe(nearest, entry), stored.entries.get("anchor")
    if anchor is not None:
        description += f"; anchor {_describe(stored.chosen['anchor'], anchor)}"
    return Reference(
        entry,
        documented,
        anchor,
        noise_for(probe, learnt, entry),
        notes=_notes(nearest, entry),
        description=description,
        source=nearest.baseline.source,
        window=stored.window,
        anchor_file=stored.chosen["anchor"].baseline.file if anchor else None,
    )


def noise_for(
    probe: Probe, learnt: Learnt | None, entry: Entry | None = None
) -> Mapping[str, RunNoise]:
    """Metric → noise of one fresh start, as far as it is learnt.

    Args:
        probe: its gating metrics have one.
        learnt: what is known of the hardware's noise; None: nothing.
        entry: what it is compared with: whatever that has is reported, and has one, too.
    """
    metrics = dict.fromkeys((*probe.gating_metrics(), *(entry.metrics() if entry else ())))
    return {} if learnt is None else run_noises(learnt, probe.scenario, metrics)


@dataclass
class References:
    """The references of one scenario on this machine.

    Attributes:
        tools: the scenario's programs.
        machine: the one that measures.
        synthetic: whether mock programs make the numbers: then they are compared with what earlier
            rehearsals left in a store of its own, and with nothing that was measured.
        repo: a clone of the engine's repository, which tells the nearest ancestor.
        commands: what runs before and after each start, by its field of site.yaml.
    """

    tools: Toolchain
    machine: Machine
    synthetic: bool = False
    repo: EngineRepo | None = None
    commands: Mapping[str, str] = field(default_factory=dict)
    _read: dict[Probe, Stored] = field(default_factory=dict)
    _noise: dict[Machine, Learnt] = field(default_factory=dict)

    def stored(self, probe: Probe) -> Stored:
        """The baselines of a probe, read once: they must not change under a running campaign.

        Raises:
            InputError: one is unusable.
        """
        if probe in self._read:
            return self._read[probe]
        itself, scenario = measures_itself(probe), probe.scenario
        own = own_store() if itself else suite_store()
        store = rehearsal_store() if self.synthetic else own
        where = (scenario.hardware.label, scenario.id, self.tools.build)
        chosen: dict[Against, ChosenBaseline] = {}
        if nearest := store.choose(*where, self.repo):
            chosen["baseline"] = nearest
            anchor = None if itself else store.anchor(*where)
            if anchor and anchor.baseline.engine != nearest.baseline.engine:
                chosen["anchor"] = anchor
        found = {against: one.entry(probe.label) for against, one in chosen.items()}
        entries = {against: entry for against, entry in found.items() if entry is not None}
        window = nearest.files(probe.label) if nearest else ()
        self._read[probe] = Stored(chosen, entries, window)
        return self._read[probe]

    def due(self, probes: Iterable[Probe], policy: ReferencePolicy) -> frozenset[Probe]:
        """The probes whose reference this session must measure itself."""
        return frozenset(
            probe
            for probe in probes
            if measures_itself(probe)
            and policy != "stored"
            and (policy == "fresh" or not self.stored(probe).comparable(self.fingerprint(probe)))
        )

    def fingerprint(self, probe: Probe, tools: Toolchain | None = None) -> Mapping[str, str]:
        """The facts of this session that a reference of `probe` must share.

        Args:
            probe: the probe.
            tools: those of another build, for a control; None: those of the build under test.
        """
        facts = (tools or self.tools).fingerprint(probe, self.machine.fingerprint())
        if isinstance(probe.what, AccuracyTask):
            return facts  # answers do not depend on clocks
        return {**facts, **self.commands}

    def comparison(self, probe: Probe, own: Sequence[BaselineRun] = ()) -> Reference:
        """What `probe` is compared with; `own` as of `choose_reference`.

        Raises:
            InputError: a stored baseline is unusable.
            SeveralInputErrors: the documented values are.
        """
        stored = self.stored(probe)
        document = None if measures_itself(probe) else self._document
        facts = self.fingerprint(probe) if own else {}  # on paper nothing can be asked for them
        return choose_reference(probe, stored, document, facts, self._learnt, own)

    def noise_of(self, probe: Probe) -> Mapping[str, RunNoise]:
        """Metric → noise of one fresh start, as far as it is learnt."""
        return noise_for(probe, self._learnt)

    @cached_property
    def _document(self) -> Documented | None:
        return documented_values(self.tools.scenario)

    @property
    def _learnt(self) -> Learnt | None:
        """What is known of the noise on the machine that measures; nodes may prove to be others."""
        if self.synthetic:
            return None
        if self.machine not in self._noise:
            self._noise[self.machine] = read_noise(self.tools.scenario, self.machine)
        return self._noise[self.machine]


def _notes(chosen: ChosenBaseline, entry: Entry | None) -> tuple[str, ...]:
    """That a person's baseline has few sessions; a machine's own reference is made in one."""
    if entry is None or chosen.baseline.accepted_by == SELF:
        return ()
    few = few_sessions(len({run.run for run in entry.runs}))
    return (few,) if few else ()


def _describe(chosen: ChosenBaseline, entry: Entry | None) -> str:
    """A baseline in words: which, whose, of how many starts, why that one."""
    baseline = chosen.baseline
    starts = counted(len(entry.runs) if entry else 0, "fresh start")
    if len(chosen.window) > 1:
        starts += f" of it and of {counted(len(chosen.window) - 1, 'older baseline')}"
    engine = baseline.engine
    commit = "" if engine.commit == engine.version else f", commit {engine.commit[:12]},"
    kind = "a rehearsal of " if baseline.synthetic else ""
    return (
        f"{kind}{engine.name} {engine.version}{commit} of {baseline.accepted_at[:10]}, "
        f"accepted by {baseline.accepted_by}, {starts} ({chosen.why})"
    )


def cited(source: Source) -> str:
    """A document in words: ``guide.md, section Serving, engine commit abc1234``."""
    words = f"{source.document}, section {source.section}"
    if source.engine_commit:
        return f"{words}, engine commit {source.engine_commit[:7]}"
    return f"{words}, engine {source.engine_version}" if source.engine_version else words


def _belongs(metric: str, value: DocumentedValue, probe: Probe) -> bool:
    """Whether a documented value is one of this probe's.

    A value without a concurrency belongs to the only point of a sweep: with several it cannot be
    known to which.
    """
    if is_accuracy(metric):
        return not probe.is_load and metric.split(":")[1] == probe.label
    if not isinstance(probe.what, LoadPoint):
        return False
    if value.concurrency is None:
        return len(probe.scenario.points()) == 1
    return value.concurrency == probe.what.concurrency


def documented_for(probe: Probe, document: Documented | None) -> dict[str, DocumentedValue]:
    """What a document reports for this probe: metric → value."""
    values = document.values.items() if document else ()
    return {metric: value for metric, value in values if _belongs(metric, value, probe)}


def documented_metrics(
    subject: Probe | ClaimProbe | SweepProbe, measured: Sequence[MeasuredMetric] = ()
) -> list[DocumentedMetric]:
    """Each value that is documented for a test.

    None for a machine that is its own reference, nor for a curve, whose points have theirs; a claim
    has the number that it must reach.

    Args:
        subject: the test.
        measured: what was measured as the document did: how far it is from the documented value is
            the change, as a fraction, of an accuracy the difference; else that is None.

    Raises:
        InputError, SeveralInputErrors: the file of documented values is not as it should be.
    """
    if isinstance(subject, SweepProbe):
        return []
    if isinstance(subject, ClaimProbe):
        claim = subject.claim
        values = {} if claim.value is None else {claim.metric: claim.value}
        source, measured = claim.source, ()
    else:
        found = None if measures_itself(subject) else documented_values(subject.scenario)
        if found is None:
            return []
        values = {metric: one.value for metric, one in documented_for(subject, found).items()}
        source = found.source
    changes = {
        one.metric: gap(one.metric, values[one.metric], one.value)
        for one in measured
        if one.metric in values
    }
    return [
        DocumentedMetric(metric, value, lookup(metric).unit, cited(source), changes.get(metric))
        for metric, value in values.items()
    ]
