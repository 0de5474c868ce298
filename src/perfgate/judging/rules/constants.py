"""Constants of the rules with controls and of those whose noise is known beforehand."""

from dataclasses import dataclass, replace

from perfgate.core.errors import InputError

# (new starts, controls) after which a controlled test looks: N1 | N2 | C1 C2 N3 | N4 C3, so that
# N2 C1 C2 N3 is ABBA (statistics §2).
_LOOKS = ((1, 0), (2, 0), (2, 1), (2, 2), (3, 2), (4, 2), (4, 3))


@dataclass(frozen=True)
class ControlRule:
    """Constants of a test with controls (statistics §2).

    Attributes:
        alpha: one-sided error rate of calling a loss real.
        beta: of excluding a loss of the band.
        later_beta: the same, of the starts after the first, or with any control.
        half: the share of the band that a start must lie beyond history and control, …
        needed: … and how many must.
        far: bands that each start must lie beyond, where there are fewer.
        shift: standard errors of one start from which on a control speaks of another machine.
        broken: bands from which on a control proves that the machine is not fit to judge on.
        looks: (new starts, controls) after which it looks, in order.
    """

    alpha: float = 0.01
    beta: float = 0.025
    later_beta: float = 0.005
    half: float = 0.5
    needed: int = 3
    far: float = 3.0
    shift: float = 2.5
    broken: float = 3.0
    looks: tuple[tuple[int, int], ...] = _LOOKS

    def __post_init__(self) -> None:
        rates = (self.alpha, self.beta, self.later_beta)
        sizes = (self.half, self.far, self.shift, self.broken)
        if not (
            all(0 < rate < 0.5 for rate in rates)
            and all(0 < size < 100 for size in sizes)
            and self.needed >= 2
            and self.looks
            and all(new >= 1 and controls >= 0 for new, controls in self.looks)
        ):
            raise InputError(
                "the gate's rule for controls cannot be used",
                found=self,
                expected="0 < alpha, beta, later_beta < 0.5; half, far, shift and broken above 0; "
                "at least two starts over half a band; at least one look",
            )

    def with_at_most(self, starts: int) -> "ControlRule":
        """The rule with so many fresh starts of the new build at most; at least one."""
        looks = tuple(look for look in self.looks if look[0] <= max(1, starts))
        return replace(self, looks=looks)


@dataclass(frozen=True)
class NormalRule:
    """Constants of a test whose noise is known beforehand (statistics §7).

    Attributes:
        pass_z: normal quantile of the error rate of excluding a loss of the band.
        loss_z: that of calling a loss real.
        most: fresh starts or evaluations, at most.
    """

    pass_z: float
    loss_z: float
    most: int = 3
