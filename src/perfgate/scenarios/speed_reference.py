"""Speed reference: what the first measured speed of a scenario can be compared with."""

from collections.abc import Iterable
from typing import Literal

from perfgate.core.metrics import is_accuracy
from perfgate.scenarios.claims import claims_of
from perfgate.scenarios.documented import documented_values
from perfgate.scenarios.scenario import Claim, Scenario

SpeedFrom = Literal["", "document", "first run", "machine"]


def speed_from(scenario: Scenario, claims: Iterable[Claim] = ()) -> SpeedFrom:
    """What the first measured speed of the scenario can be compared with.

    Its ``document``, which gives a number, be it a floor or a claim; the ``machine``, which
    measures its own; else nothing, so that the ``first run`` records it. Empty: it has no load.

    Args:
        scenario: the scenario.
        claims: the claims of its suite.

    Raises:
        InputError: the file of its documented values is not as it should be.
    """
    if scenario.workload is None:
        return ""
    if scenario.gate.reference == "self":
        return "machine"
    documented = documented_values(scenario)
    told = [] if documented is None else [*documented.values]
    told += [
        claim.metric
        for claim in claims_of([scenario], claims)
        if claim.scenario == scenario.id and claim.value is not None
    ]
    return "first run" if all(map(is_accuracy, told)) else "document"
