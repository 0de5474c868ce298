"""Claim turns: fresh starts in which the two sides of a claim take turns, on one machine.

In the order A B B A A B B A …, so that a machine that drifts touches both sides alike
(`rules.paired`). Made where a start is cheap, without a GPU, for all claims about the two
scenarios together. What is measured here is for claims alone: no baseline is made of it, and no
reference stands against it.
"""

from collections.abc import Mapping, Sequence

from perfgate.campaign.campaign import Campaign
from perfgate.campaign.campaign_state import CampaignState
from perfgate.campaign.probe_state import StartAttempt
from perfgate.campaign.schedule import StartRole, turns
from perfgate.core.measurement import Measurement
from perfgate.core.verdict import Verdict
from perfgate.judging.assembly.claims import ClaimProbe
from perfgate.judging.assembly.outcome import Outcome
from perfgate.judging.rules.paired import CLAIM_RULE, OWN_NOISE_CLAIM_RULE
from perfgate.judging.rules.probe import ProbeJudgement
from perfgate.scenarios.probe import Probe

_FOR_A_CLAIM = ProbeJudgement(Verdict.INCONCLUSIVE, reason="measured for a claim")


class TurnState(CampaignState):
    """What is known of each probe: what the starts for claims gave."""

    role: StartRole = "claim"

    def waiting_for(self, role: StartRole) -> list[Probe]:  # noqa: ARG002 (there is one role)
        """The probes that can be measured."""
        return [probe for probe, state in self.states.items() if state.error is None]

    def take(
        self,
        probe: Probe,
        measured: Measurement,
        attempt: StartAttempt,
        started: str,  # noqa: ARG002
        seconds: float,  # noqa: ARG002
    ) -> None:
        """Keep what a start gave; a disturbed measurement is only told."""
        state = self.states[probe]
        state.folder = attempt.folder / probe.label
        if measured.disturbed:
            why = ", ".join(measured.disturbed)
            state.disturbed.append(f"fresh start {attempt.number}: {why}")
            return
        state.measured[attempt.number] = measured
        state.judged = _FOR_A_CLAIM

    def judge(self) -> None:
        """Nothing: the claim judges."""


class TurnCampaign(Campaign):
    """The starts of one side.

    Args:
        campaign: the scenario's own, whose programs it has.
        probes: what the claims are about.
    """

    def __init__(self, campaign: Campaign, probes: Sequence[Probe]) -> None:
        super().__init__(campaign.scenario, probes, campaign.tools, campaign.session)
        self._found: TurnState = TurnState(
            campaign.scenario, probes, self._references, campaign.session, self.controls
        )

    def _run(self) -> None:
        """Nothing: each start is asked for by `start`."""

    def start(self, probes: Sequence[Probe]) -> bool:
        """One fresh start, made again where it was disturbed; whether it gave all its numbers."""
        self._run_once()
        disturbed = self._make_start("claim", probes)
        while disturbed and self._allowance.repeats("claim"):
            disturbed = self._make_start("claim", probes)
        return not disturbed and not any(self._found.states[one].error for one in probes)

    @property
    def may_go_on(self) -> bool:
        """Whether the scenario's and the session's time allow another start."""
        return not (self._allowance.out_of_time or self._allowance.beyond_budget())


class ClaimTurns:
    """The starts for all claims about the same two scenarios.

    Args:
        claims: those claims; the first one tells which side begins.
        campaigns: id → the own campaign of each of the two scenarios.
    """

    def __init__(self, claims: Sequence[ClaimProbe], campaigns: Mapping[str, Campaign]) -> None:
        first, second = reversed(claims[0].claim.sides)
        self._names = (first, second)
        self._probes = _by_scenario([probe for one in claims for probe in one.probes])
        own_noise = any(one.own_noise for one in claims)
        self._opening = (OWN_NOISE_CLAIM_RULE if own_noise else CLAIM_RULE).looks[0]
        self.campaigns = {
            name: TurnCampaign(campaigns[name], self._probes[name]) for name in self._names
        }
        for campaign in self.campaigns.values():
            campaign.account.planned = self._opening
        self._pairs = 0

    def outcome(self, probe: Probe) -> Outcome:
        """What became of a probe; the first call makes the opening pairs for all of them."""
        if not self._pairs:
            while self._pairs < self._opening and self._pair(self._probes):
                pass
        return self.campaigns[probe.scenario.id].outcome(probe)

    def again(self, claim: ClaimProbe) -> bool:
        """Another pair for one claim; False: there is no time left, or a start failed."""
        if not all(campaign.may_go_on for campaign in self.campaigns.values()):
            return False
        return self._pair(_by_scenario(claim.probes))

    def _pair(self, probes: Mapping[str, Sequence[Probe]]) -> bool:
        order = turns(self._names, self._pairs)
        self._pairs += 1
        return all(self.campaigns[name].start(probes[name]) for name in order)


def _by_scenario(probes: Sequence[Probe]) -> dict[str, list[Probe]]:
    """Id of a scenario → its probes, each once."""
    found: dict[str, list[Probe]] = {}
    for probe in dict.fromkeys(probes):
        found.setdefault(probe.scenario.id, []).append(probe)
    return found
