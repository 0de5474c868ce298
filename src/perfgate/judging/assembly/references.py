"""References: what each probe of a scenario is compared with, and why with that."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import Literal

from perfgate import baselines
from perfgate.baselines import Baseline, BaselineRun, ChosenBaseline, Entry, Store
from perfgate.baselines.baseline import few_sessions
from perfgate.baselines.engine_repo import EngineRepo
from perfgate.core.measurement import MeasuredMetric
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.verdict import Against, counted
from perfgate.judging.assembly.bands import read_noise, run_noises
from perfgate.judging.assembly.claims import ClaimProbe
from perfgate.judging.assembly.judgement import Reference, measures_itself, takes_turns
from perfgate.judging.assembly.measured import gap
from perfgate.judging.assembly.sweeps import SweepProbe
from perfgate.judging.rules.noise import RunNoise
from perfgate.machine.hardware import Machine
from perfgate.plan.toolchain import Toolchain
from perfgate.runs.record import DocumentedMetric
from perfgate.runs.run_folder import now
from perfgate.scenarios.documented import Documented, DocumentedValue, documented_values
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import AccuracyTask, LoadPoint, Scenario, Source

ReferencePolicy = Literal["auto", "fresh", "stored"]

# Sessions of its own reference that a machine keeps beside the newest: three of six starts each are
# the fifteen degrees of freedom that count (statistics §9).
_EARLIER_SESSIONS = 2


class References:
    """The references of one scenario on this machine.

    Args:
        tools: the scenario's programs.
        machine: this machine.
        policy: for load probes of a scenario that measures its own reference: measure it now
            ("fresh"), use the machine's stored one ("stored"), or measure only where no stored one
            is comparable ("auto").
        read_documented: reads what is documented for a scenario.
        synthetic: whether mock programs make the numbers: then they are compared with what earlier
            rehearsals left in a store of its own, and with nothing that was measured.
        repo: a clone of the engine's repository, which tells the nearest ancestor.
        commands: what runs before and after each start, by its field of site.yaml.
    """

    def __init__(
        self,
        tools: Toolchain,
        machine: Machine,
        policy: ReferencePolicy,
        read_documented: Callable[[Scenario], Documented | None] = documented_values,
        *,
        synthetic: bool = False,
        repo: EngineRepo | None = None,
        commands: Mapping[str, str] | None = None,
    ) -> None:
        self._repo = repo
        self._commands = commands or {}
        self._synthetic = synthetic
        self._tools = tools
        self._read_documented = read_documented
        self._machine = machine
        self._policy = policy
        # Asked for often, and stored references must not change under a running campaign.
        self._chosen = cache(self._choose)
        # Whether this session must measure the reference of a probe itself.
        self.are_due = cache(self._is_due)
        self._known = cache(lambda machine: read_noise(tools.scenario, machine))
        self._earlier = cache(self._read_earlier)

    def measured_on(self, machine: Machine) -> None:
        """Tell which machine it is that measures, where it is another than perfgate's own."""
        self._machine = machine

    def _is_due(self, probe: Probe) -> bool:
        if not measures_itself(probe) or self._policy == "stored":
            return False
        return self._policy == "fresh" or self._read_earlier(probe) is None

    def fingerprint(self, probe: Probe, tools: Toolchain | None = None) -> Mapping[str, str]:
        """The facts of this session that a reference of `probe` must share.

        Args:
            probe: the probe.
            tools: those of another build, for a control; None: those of the build under test.
        """
        facts = (tools or self._tools).fingerprint(probe, self._machine.fingerprint())
        if isinstance(probe.what, AccuracyTask):
            return facts  # answers do not depend on clocks
        return {**facts, **self._commands}

    def baseline(self, probe: Probe, against: Against) -> Baseline | None:
        """The baseline whose build is a control of `probe`: the nearest, or the anchor."""
        nearest = self._chosen(probe)
        if nearest is None or against == "baseline":
            return nearest.baseline if nearest else None
        anchor = self._anchor(probe, nearest)
        return anchor.baseline if anchor else None

    def save(self, runs: Mapping[Probe, Sequence[BaselineRun]]) -> None:
        """Keep the reference that this machine measured of itself in its own store."""
        entries = {
            probe.label: Entry(
                dict(self.fingerprint(probe)), (*of_probe, *_newest_sessions(self._earlier(probe)))
            )
            for probe, of_probe in runs.items()
        }
        scenario = self._tools.scenario
        reference = Baseline(
            scenario=scenario.id,
            hardware=scenario.hardware.label,
            engine=self._tools.build,
            accepted_by=baselines.SELF,
            accepted_at=now(),
            reason="reference that this machine measured of itself",
            entries=entries,
        )
        baselines.own_store().save(reference)

    def comparison(self, probe: Probe, own: Sequence[BaselineRun] = ()) -> Reference:
        """What `probe` is compared with.

        Args:
            probe: the probe.
            own: the reference runs that this session measured, if it did.

        Raises:
            InputError: the stored baseline is unusable.
            SeveralInputErrors: the documented values are.
        """
        if own:
            measured = Entry(dict(self.fingerprint(probe)), tuple(own))
            return Reference(
                measured,
                noise=self.noise_of(probe, measured),
                in_words=f"this machine itself, {counted(len(own), 'fresh start')} in this session",
                takes_turns=takes_turns(probe.scenario),
                earlier=self._earlier(probe),
            )
        chosen = self._chosen(probe)
        entry = chosen.entry(probe.label) if chosen else None
        document = None if measures_itself(probe) else self._document
        documented = documented_for(probe, document)
        if entry is None and document and documented.keys() & set(probe.gating_metrics()):
            in_words = f"the documented value, {cited(document.source)}"
            return Reference(None, documented, in_words=in_words)
        if chosen is None:
            return Reference(None, documented, in_words="no baseline")
        found = Reference(
            entry,
            documented,
            noise=self.noise_of(probe, entry),
            notes=_notes(chosen, entry),
            in_words=_in_words(chosen, entry),
            source=chosen.baseline.source,
            window=chosen.files(probe.label),
        )
        anchor = self._anchor(probe, chosen)
        of_anchor = anchor.entry(probe.label) if anchor else None
        if anchor is None or of_anchor is None:
            return found
        in_words = f"{found.in_words}; anchor {_in_words(anchor, of_anchor)}"
        file = anchor.baseline.file
        return replace(found, anchor=of_anchor, in_words=in_words, anchor_file=file)

    def noise_of(self, probe: Probe, entry: Entry | None = None) -> Mapping[str, RunNoise]:
        """Metric → noise of one fresh start, as far as it is learnt.

        Args:
            probe: its gating metrics have one.
            entry: what it is compared with: whatever that has is reported, and has one, too.
        """
        if self._synthetic:
            return {}
        metrics = dict.fromkeys((*probe.gating_metrics(), *(entry.metrics() if entry else ())))
        return run_noises(self._known(self._machine), probe.scenario, metrics)

    def _read_earlier(self, probe: Probe) -> Entry | None:
        """The references of this machine's earlier sessions, where they are comparable.

        As they are when first asked for, which `save` does: without those of this session.
        """
        if not measures_itself(probe):
            return None
        chosen = self._chosen(probe)
        entry = chosen.entry(probe.label) if chosen else None
        return None if entry is None or entry.differences(self.fingerprint(probe)) else entry

    def _anchor(self, probe: Probe, nearest: ChosenBaseline) -> ChosenBaseline | None:
        """The last release, where that is not what the probe is compared with anyway."""
        if measures_itself(probe):
            return None
        scenario = self._tools.scenario
        anchor = self._store_of(probe).anchor(
            scenario.hardware.label, scenario.id, self._tools.build
        )
        if anchor is None or anchor.baseline.engine == nearest.baseline.engine:
            return None
        return anchor

    @cached_property
    def _document(self) -> Documented | None:
        return self._read_documented(self._tools.scenario)

    def _choose(self, probe: Probe) -> ChosenBaseline | None:
        scenario = self._tools.scenario
        return self._store_of(probe).choose(
            scenario.hardware.label, scenario.id, self._tools.build, self._repo
        )

    def _store_of(self, probe: Probe) -> Store:
        if self._synthetic:
            return baselines.rehearsal_store()
        return baselines.own_store() if measures_itself(probe) else baselines.suite_store()


def _notes(chosen: ChosenBaseline, entry: Entry | None) -> tuple[str, ...]:
    """That a person's baseline has few sessions; a machine's own reference is made in one."""
    if entry is None or chosen.baseline.accepted_by == baselines.SELF:
        return ()
    few = few_sessions(len({run.run for run in entry.runs}))
    return (few,) if few else ()


def _newest_sessions(earlier: Entry | None) -> tuple[BaselineRun, ...]:
    """The runs of the newest earlier sessions that are kept beside a new one."""
    runs = earlier.runs if earlier else ()
    kept = list(dict.fromkeys(run.run for run in runs))[:_EARLIER_SESSIONS]
    return tuple(run for run in runs if run.run in kept)


def _in_words(chosen: ChosenBaseline, entry: Entry | None) -> str:
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
