"""Claim runner: how each claim of a session gets the numbers of its sides, and its outcome.

A side is measured by its scenario's own campaign, or, where a start is cheap, in turns with the
other one. A side that is not measured is its newest accepted baseline; without one the claim says
why it cannot be judged.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from perfgate import baselines
from perfgate.baselines.snapshots import keep_baseline
from perfgate.campaign.campaign import Campaign
from perfgate.campaign.schedule import CLAIMS
from perfgate.campaign.selection import Selected, measured_scenarios
from perfgate.campaign.session import Session
from perfgate.core.errors import CannotDo, MissingProgram, PerfgateError
from perfgate.core.verdict import Verdict
from perfgate.judging.assembly.claims import ClaimProbe, StoredSide, claim_outcome, stored_sides
from perfgate.judging.assembly.judge_input import Outcome, Provenance, Side
from perfgate.judging.rules.paired import CLAIM_RULE, OWN_NOISE_CLAIM_RULE
from perfgate.scenarios.probe import Probe

if TYPE_CHECKING:
    from perfgate.campaign.campaigns import Campaigns

_UNSELECTED = "no test of it is selected"


class ClaimTurns:
    """The starts for all claims about the same two scenarios.

    Args:
        claims: those claims; the first one tells which side begins.
        campaigns: id → the own campaign of each of the two scenarios.
    """

    def __init__(self, claims: Sequence[ClaimProbe], campaigns: Mapping[str, Campaign]) -> None:
        first, second = reversed(claims[0].claim.sides)
        self._names, self._claims = (first, second), claims
        own_noise = any(claim.own_noise for claim in claims)
        self._opening = (OWN_NOISE_CLAIM_RULE if own_noise else CLAIM_RULE).looks[0]
        self._pairs = 0
        self.campaigns: dict[str, Campaign] = {}
        for name in self._names:
            tools, session = campaigns[name].tools, campaigns[name].session
            campaign = Campaign(_probes_of(claims, name), tools, session, schedule=CLAIMS)
            campaign.starts.planned = self._opening
            self.campaigns[name] = campaign

    def measured(self, probe: Probe) -> Outcome:
        """What became of a probe; the first call makes the opening pairs for all of them."""
        if not self._pairs:
            while self._pairs < self._opening and self._pair(self._claims):
                pass
        return self.campaigns[probe.scenario.id].outcome(probe)

    def again(self, claim: ClaimProbe) -> bool:
        """Another pair for one claim; False: there is no time left, or a start failed."""
        has_time = all(campaign.starts.has_time for campaign in self.campaigns.values())
        return has_time and self._pair([claim])

    def _pair(self, claims: Sequence[ClaimProbe]) -> bool:
        order = self._names[:: -1 if self._pairs % 2 else 1]  # A B, B A, A B, …
        self._pairs += 1
        return all(
            self.campaigns[name].measure_for_claims(_probes_of(claims, name)) for name in order
        )


def _probes_of(claims: Sequence[ClaimProbe], scenario: str) -> list[Probe]:
    """The probes of a scenario that claims are about, each once."""
    every = dict.fromkeys(probe for claim in claims for probe in claim.probes)
    return [probe for probe in every if probe.scenario.id == scenario]


class ClaimRunner:
    """The claims of one process.

    Args:
        session: what the campaigns share.
        own: the scenarios' own campaigns.
        selected: what all tests are about.
    """

    def __init__(
        self, session: Session, own: "Campaigns", selected: Collection[Selected] = ()
    ) -> None:
        self._session, self._own = session, own
        self._claims = [one for one in selected if isinstance(one, ClaimProbe)]
        self._measured = measured_scenarios(selected)
        self._turns: dict[frozenset[str], ClaimTurns] = {}

    def to_measure(self, claim: ClaimProbe) -> tuple[Probe, ...]:
        """The sides that this session measures, as far as this machine can."""
        return tuple(probe for probe in claim.probes if probe.scenario.id in self._measured)

    def turns_of(self, scenario: str) -> list[Campaign]:
        """The campaigns in which starts of a scenario are made for claims."""
        return [one.campaigns[scenario] for ids, one in self._turns.items() if scenario in ids]

    def skip_reason(self, claim: ClaimProbe) -> str | None:
        """Why a claim cannot be judged: neither side can be measured, or the other has no baseline.

        None where it can; an unusable baseline is told by `outcome`.
        """
        unmeasured = self._unmeasured(claim)
        if len(unmeasured) == len(claim.probes):
            return next(iter(unmeasured.values()))
        try:
            missing = [one for one in unmeasured if not self._stored(claim, one, unmeasured[one])]
        except PerfgateError:
            return None
        return _no_side(missing[0], unmeasured[missing[0]]) if missing else None

    def outcome(self, claim: ClaimProbe) -> Outcome:
        """What becomes of a claim.

        Raises:
            MissingProgram: neither side's programs are installed.
            CannotDo: one side can neither be measured, nor has it a baseline.
            InputError: a scenario or a baseline cannot be used.
        """
        unmeasured = self._unmeasured(claim)
        errors = self._not_installed(claim, unmeasured)
        now = [one for one in claim.probes if one not in unmeasured]
        if not now and errors:
            raise errors[0]
        stored = self._compared_with(claim, now, unmeasured)
        if isinstance(stored, str):
            synthetic = self._session.synthetic
            return Outcome(claim, Verdict.NOT_COMPARABLE, reason=stored, synthetic=synthetic)
        found, ends = self._decided(claim, now, stored)
        if found.error is not None:
            return found
        sides = []
        for probe in claim.probes:
            source = Side(probe.scenario.id, probe.label)
            if probe in stored:
                kept = keep_baseline(self._session.run.path, stored[probe].baseline.file)
                source = replace(source, baseline=kept)
            elif (found_of := ends[probe].provenance) is not None:
                source = replace(source, role=found_of.role, starts=found_of.starts)
            sides.append(source)
        return replace(found, provenance=Provenance(sides=tuple(sides)))

    def _decided(
        self, claim: ClaimProbe, now: Sequence[Probe], stored: Mapping[Probe, StoredSide]
    ) -> tuple[Outcome, dict[Probe, Outcome]]:
        """The end of a claim, decided or with no start left, and those of its measured sides."""
        turns = None
        if claim.is_interleaved and not stored and not any(map(self._is_kept, now)):
            turns = self._turns_for(claim)
        source, goes_on = turns or self._own, True
        while True:
            ends = {probe: source.measured(probe) for probe in now}
            found = claim_outcome(claim, ends, stored)
            if not (goes_on and any(judgement.needs_more_runs for judgement in found.judgements)):
                return found, ends
            if turns:
                goes_on = turns.again(claim)
                continue
            # The side with fewer starts tells less, so it is measured first; where it fails, the
            # other side can decide nothing.
            order = sorted(now, key=lambda probe: len(ends[probe].measurements))
            goes_on = any(self._own.again(one) or self._own.measured(one).error for one in order)

    def _unmeasured(self, claim: ClaimProbe) -> dict[Probe, str]:
        """The sides that are not measured in this session → why."""
        found = {}
        for probe in claim.probes:
            if self._is_kept(probe):
                continue
            if probe.scenario.id not in self._measured:
                found[probe] = _UNSELECTED
            elif (reason := self._own.missing_hardware(probe.scenario)) is not None:
                found[probe] = reason
        return found

    def _not_installed(
        self, claim: ClaimProbe, unmeasured: dict[Probe, str]
    ) -> list[MissingProgram | CannotDo]:
        """Add the sides whose programs are not here, or cannot do it; gives what was met."""
        met: list[MissingProgram | CannotDo] = []
        for probe in claim.probes:
            if probe in unmeasured or self._is_kept(probe):
                continue
            try:
                self._own.campaign_for(probe)
            except (MissingProgram, CannotDo) as error:
                unmeasured[probe] = str(error)
                met.append(error)
        return met

    def _is_kept(self, probe: Probe) -> bool:
        """Whether the session that this one resumes has measured it."""
        return probe.scenario.id in self._session.kept.groups

    def _client(self, probe: Probe) -> str:
        """The program that measures a side, with its release; empty: not known."""
        if self._is_kept(probe):
            return ""
        return self._own.campaign(probe.scenario).tools.named_program(probe)

    def _stored(self, claim: ClaimProbe, probe: Probe, why: str) -> list[StoredSide]:
        """The accepted baselines that may stand for a side, newest first."""
        scenario = probe.scenario
        if scenario.gate.reference == "self":
            return []  # what a machine measured of itself, no person has accepted
        synthetic = self._session.synthetic
        store = baselines.rehearsal_store() if synthetic else baselines.suite_store()
        found = store.of_scenario(scenario.hardware.label, scenario.id)
        metric, today = claim.claim.metric, self._session.today
        return stored_sides(found, probe, metric, today=today, why=why)

    def _compared_with(
        self, claim: ClaimProbe, now: Sequence[Probe], unmeasured: Mapping[Probe, str]
    ) -> dict[Probe, StoredSide] | str:
        """The baseline that stands for a side that is not measured; or why it is not comparable.

        Raises:
            CannotDo: there is none at all.
        """
        clients = {probe: self._client(probe) for probe in now}
        if len(set(filter(None, clients.values()))) > 1:
            named = ", ".join(f"{probe.id} by {name}" for probe, name in clients.items())
            return f"the sides are measured by different clients: {named}"
        if not unmeasured:
            return {}
        ((probe, why),), ((measured, client),) = unmeasured.items(), clients.items()
        found = self._stored(claim, probe, why)
        if not found:
            raise CannotDo(_no_side(probe, why))
        side = next((one for one in found if client in ("", one.client)), None)
        if side is None:
            newest = found[0]
            return (
                f"the sides were measured by different clients: {client} now, {newest.client} in "
                f"the newest baseline of {probe.id}, engine commit "
                f"{newest.baseline.engine.commit[:12]}"
            )
        if self._is_kept(measured) or self._own.measured(measured).error is not None:
            return {probe: side}
        facts = self._own.campaign(measured.scenario).references.fingerprint(measured)
        if differences := side.differences(facts):
            where = f"another machine than that of the baseline of {probe.id}"
            return f"{claim.id}: {where}: {'; '.join(differences)}"
        return {probe: side}

    def _turns_for(self, claim: ClaimProbe) -> ClaimTurns:
        """The starts in turns of a claim's sides, shared by all claims about these scenarios."""
        both = frozenset(claim.claim.sides)
        if both not in self._turns:
            claims = [
                one
                for one in (claim, *self._claims)
                if one.is_interleaved and both == frozenset(one.claim.sides)
            ]
            own = {probe.scenario.id: self._own.campaign(probe.scenario) for probe in claim.probes}
            self._turns[both] = ClaimTurns(claims, own)
        return self._turns[both]


def _no_side(probe: Probe, why: str) -> str:
    """Why a claim cannot be judged without a side that is not measured."""
    problem = f"{probe.id} is not measured in this session ({why}), and no accepted baseline serves"
    if why == _UNSELECTED:
        problem += f"; select the tests of {probe.scenario.id}, too"
    return problem
