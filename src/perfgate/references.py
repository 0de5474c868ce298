"""References: what each probe of a scenario is compared with, and why with that."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Literal

from perfgate import baselines
from perfgate.baselines import Baseline, BaselineRun, Entry, Store
from perfgate.documented import Documented, DocumentedValue, documented_values
from perfgate.gate.verdict import counted
from perfgate.hardware import Machine
from perfgate.metrics import is_accuracy
from perfgate.probe import Probe
from perfgate.records import now
from perfgate.scenarios.scenario import LoadPoint, Scenario, Source
from perfgate.tools import Tools

ReferencePolicy = Literal["auto", "fresh", "stored"]


@dataclass(frozen=True)
class Comparison:
    """What one probe is compared with.

    Attributes:
        entry: a baseline's part for it; None: there is none.
        description: in words, which baseline or document it is.
        documented: what is documented for it: metric → value. It is judged where there is no entry,
            and told where there is.
    """

    entry: Entry | None
    description: str
    documented: Mapping[str, DocumentedValue] = field(default_factory=dict)


class References:
    """The references of one scenario on this machine.

    Args:
        tools: the scenario's programs.
        machine: this machine.
        policy: for load probes of a scenario that measures its own reference: measure it now
            ("fresh"), use the machine's stored one ("stored"), or measure only where no stored one
            is comparable ("auto").
        read_documented: reads what is documented for a scenario.
        measured: whether stored measurements may be compared with; a rehearsal's may not.
    """

    def __init__(
        self,
        tools: Tools,
        machine: Machine,
        policy: ReferencePolicy,
        read_documented: Callable[[Scenario], Documented | None] = documented_values,
        *,
        measured: bool = True,
    ) -> None:
        self._measured = measured
        self._tools = tools
        self._read_documented = read_documented
        self._machine = machine
        self._policy = policy
        # Asked for often, and stored references must not change under a running campaign.
        self._chosen = cache(self._choose)
        self._due = cache(self._is_due)

    def are_due(self, probe: Probe) -> bool:
        """Whether this session must measure the reference of `probe` itself."""
        return self._due(probe)

    def _is_due(self, probe: Probe) -> bool:
        if not measures_itself(probe) or self._policy == "stored":
            return False
        if self._policy == "fresh":
            return True
        stored = self._chosen(probe)
        entry = stored.entries.get(probe.label) if stored else None
        return entry is None or bool(entry.differences(self.fingerprint(probe)))

    def fingerprint(self, probe: Probe) -> Mapping[str, str]:
        """The facts of this session that a reference of `probe` must share."""
        return self._tools.fingerprint(probe, self._machine)

    def save(self, runs: Mapping[Probe, Sequence[BaselineRun]]) -> None:
        """Keep the reference that this machine measured of itself in its own store."""
        entries = {
            probe.label: Entry(dict(self.fingerprint(probe)), tuple(of_probe))
            for probe, of_probe in runs.items()
        }
        scenario = self._tools.scenario
        reference = Baseline(
            scenario=scenario.id,
            hardware=scenario.hardware.label,
            engine=self._tools.build,
            accepted_by="self",
            accepted_at=now(),
            reason="reference that this machine measured of itself",
            entries=entries,
        )
        baselines.own_store().save(reference)

    def comparison(self, probe: Probe, own: Sequence[BaselineRun] = ()) -> Comparison:
        """What `probe` is compared with.

        Args:
            probe: the probe.
            own: the reference runs that this session measured, if it did.

        Raises:
            InputError: the stored baseline is unusable.
            SeveralInputErrors: the documented values are.
        """
        if own:
            return Comparison(
                Entry(dict(self.fingerprint(probe)), tuple(own)),
                f"this machine itself, {counted(len(own), 'fresh start')} in this session",
            )
        baseline = self._chosen(probe)
        entry = baseline.entries.get(probe.label) if baseline else None
        documented = self._documented_for(probe)
        if entry is None and documented.keys() & set(probe.gating_metrics()):
            return Comparison(None, self._document_in_words(), documented)
        if baseline is None:
            return Comparison(None, "no baseline", documented)
        same = baseline.engine.commit == self._tools.build.commit
        why = "same engine commit" if same else "newest accepted, no baseline of this commit"
        starts = len(entry.runs) if entry else 0
        return Comparison(
            entry,
            f"{baseline.engine.name} {baseline.engine.version} of {baseline.accepted_at[:10]}, "
            f"accepted by {baseline.accepted_by}, {counted(starts, 'fresh start')} ({why})",
            documented,
        )

    @cached_property
    def _documented(self) -> Documented | None:
        return self._read_documented(self._tools.scenario)

    def _documented_for(self, probe: Probe) -> Mapping[str, DocumentedValue]:
        """What is documented for this probe; nothing where the machine is its own reference."""
        if measures_itself(probe) or self._documented is None:
            return {}
        return {
            metric: value
            for metric, value in self._documented.values.items()
            if _belongs(metric, value, probe)
        }

    def _document_in_words(self) -> str:
        return f"the documented value, {cited(self._documented.source)}" if self._documented else ""

    def _choose(self, probe: Probe) -> Baseline | None:
        if not self._measured:
            return None
        scenario = self._tools.scenario
        return _store_of(probe).choose(
            scenario.hardware.label, scenario.id, self._tools.build.commit
        )


def measures_itself(probe: Probe) -> bool:
    """Whether the machine that measures `probe` is its own reference."""
    return probe.is_load and probe.scenario.gate.reference == "self"


def _store_of(probe: Probe) -> Store:
    return baselines.own_store() if measures_itself(probe) else baselines.suite_store()


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
