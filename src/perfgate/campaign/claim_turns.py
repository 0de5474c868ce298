"""Claim turns: fresh starts in which the two sides of a claim take turns, on one machine.

In the order A B B A A B B A …, so that a machine that drifts touches both sides alike
(`rules.paired`). Made where a start is cheap, without a GPU, for all claims about the two
scenarios together. What is measured here is for claims alone: no baseline is made of it, and no
reference stands against it.
"""

from collections.abc import Mapping, Sequence

from perfgate.campaign.campaign import Campaign
from perfgate.campaign.schedule import turns
from perfgate.judging.assembly.claims import ClaimProbe
from perfgate.judging.assembly.outcome import Outcome
from perfgate.judging.rules.paired import CLAIM_RULE, OWN_NOISE_CLAIM_RULE
from perfgate.scenarios.probe import Probe


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
            name: Campaign(
                campaigns[name].scenario,
                self._probes[name],
                campaigns[name].tools,
                campaigns[name].session,
                for_claims=True,
            )
            for name in self._names
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
        if not all(campaign.has_time for campaign in self.campaigns.values()):
            return False
        return self._pair(_by_scenario(claim.probes))

    def _pair(self, probes: Mapping[str, Sequence[Probe]]) -> bool:
        order = turns(self._names, self._pairs)
        self._pairs += 1
        return all(self.campaigns[name].measure_for_claims(probes[name]) for name in order)


def _by_scenario(probes: Sequence[Probe]) -> dict[str, list[Probe]]:
    """Id of a scenario → its probes, each once."""
    found: dict[str, list[Probe]] = {}
    for probe in dict.fromkeys(probes):
        found.setdefault(probe.scenario.id, []).append(probe)
    return found
