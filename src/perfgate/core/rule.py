"""Rule: error rates and effort of the gate. Constants of the policy, whatever is selected."""

from dataclasses import dataclass
from typing import Literal

from perfgate.core.errors import InputError

VERSION = "3"
"""Of everything by which `judging` turns numbers into verdicts. Old evidence is judged again by its
own version alone, so whatever changes a verdict changes this."""

# auto: controls where the other build can be started; required: without one at most INCONCLUSIVE;
# none: never.
ControlPolicy = Literal["auto", "required", "none"]

# Of a machine that is its own reference: fresh starts of the reference below which its spread says
# nothing, and of the new build below which nothing is decided (statistics §9).
FEWEST_REFERENCES = 3
FIRST_LOOK = 4


@dataclass(frozen=True)
class Rule:
    """Error rates and effort of a test without control (docs/reference/verdicts.md).

    They are the same however many tests a session selects and however CI splits them.

    Attributes:
        alpha: one-sided error rate, per look, of calling a loss real.
        beta: one-sided error rate, per look, of excluding a loss of the band.
        max_runs: fresh starts of the new build, at most; REGRESSION needs at least two.
        prior_dof: how many observations the prior sigma is worth.
    """

    alpha: float = 0.005
    beta: float = 0.025
    max_runs: int = 5
    prior_dof: float = 10

    def __post_init__(self) -> None:
        rates_fit = all(0 < rate < 0.5 for rate in (self.alpha, self.beta))
        if not (rates_fit and self.max_runs >= 1 and self.prior_dof > 0):
            raise InputError(
                "the gate's rule cannot be used",
                found=self,
                expected="0 < alpha, beta < 0.5, at least one run, prior_dof above 0",
            )
