"""Rule: error rates and effort of the gate."""

from dataclasses import dataclass

from perfgate.core.errors import InputError

# From here on a pipeline's false alarms add up: at a band of four sigma, 120 tests at alpha 0.025
# raise one in 7 % of the pipelines, at 0.005 in 1 % (docs/reference/verdicts.md).
_MANY_TESTS = 20
_ALPHA_OF_MANY_TESTS = 0.005


@dataclass(frozen=True)
class Rule:
    """Error rates and effort of the gate (docs/reference/verdicts.md, "The rule for performance").

    Attributes:
        alpha: one-sided error rate, per look, of calling a loss real.
        beta: one-sided error rate, per look, of excluding a loss of the band.
        max_runs: fresh starts of the new build, at most; REGRESSION needs at least two.
        prior_dof: how many observations the prior sigma is worth.
    """

    alpha: float = 0.025
    beta: float = 0.025
    max_runs: int = 5
    prior_dof: float = 10

    def __post_init__(self) -> None:
        rates = (self.alpha, self.beta)
        if not (
            all(0 < rate < 0.5 for rate in rates) and self.max_runs >= 1 and self.prior_dof >= 0
        ):
            raise InputError(
                "the gate's rule cannot be used",
                found=self,
                expected="0 < alpha, beta < 0.5, at least one run, prior_dof of 0 or more",
            )


def rule_for(tests: int) -> Rule:
    """The rule of a pipeline with so many gate tests: alpha 0.005 beyond 20, else 0.025.

    Raises:
        InputError: fewer than one test.
    """
    if tests < 1:
        raise InputError("a gate without tests", found=tests, expected="at least one")
    return Rule(alpha=_ALPHA_OF_MANY_TESTS) if tests > _MANY_TESTS else Rule()
