"""References: what each probe of a scenario is compared with, and why with that."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from perfgate import baselines
from perfgate.baselines import Baseline, BaselineRun, Entry, Store
from perfgate.gate.verdict import counted
from perfgate.hardware import Machine
from perfgate.probe import Probe
from perfgate.records import now
from perfgate.tools import Tools

ReferencePolicy = Literal["auto", "fresh", "stored"]


@dataclass(frozen=True)
class Comparison:
    """A baseline's part for one probe (None: there is none), and in words which one it is."""

    entry: Entry | None
    description: str


class References:
    """The references of one scenario on this machine.

    Args:
        tools: the scenario's programs.
        machine: this machine.
        policy: for load probes of a scenario that measures its own reference: measure it now
            ("fresh"), use the machine's stored one ("stored"), or measure only where no stored one
            is comparable ("auto").
    """

    def __init__(self, tools: Tools, machine: Machine, policy: ReferencePolicy) -> None:
        self._tools = tools
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
        """
        if own:
            return Comparison(
                Entry(dict(self.fingerprint(probe)), tuple(own)),
                f"this machine itself, {counted(len(own), 'fresh start')} in this session",
            )
        baseline = self._chosen(probe)
        if baseline is None:
            return Comparison(None, "no baseline")
        entry = baseline.entries.get(probe.label)
        same = baseline.engine.commit == self._tools.build.commit
        why = "same engine commit" if same else "newest accepted, no baseline of this commit"
        starts = len(entry.runs) if entry else 0
        return Comparison(
            entry,
            f"{baseline.engine.name} {baseline.engine.version} of {baseline.accepted_at[:10]}, "
            f"accepted by {baseline.accepted_by}, {counted(starts, 'fresh start')} ({why})",
        )

    def _choose(self, probe: Probe) -> Baseline | None:
        scenario = self._tools.scenario
        return _store_of(probe).choose(
            scenario.hardware.label, scenario.id, self._tools.build.commit
        )


def measures_itself(probe: Probe) -> bool:
    """Whether the machine that measures `probe` is its own reference."""
    return probe.is_load and probe.scenario.gate.reference == "self"


def _store_of(probe: Probe) -> Store:
    return baselines.own_store() if measures_itself(probe) else baselines.suite_store()
