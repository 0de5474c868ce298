"""Family: how many comparisons the promise of few false alarms speaks of. Pure."""

from collections import Counter
from collections.abc import Iterable

from perfgate.core.errors import InputError
from perfgate.core.metrics import is_accuracy
from perfgate.judging.assembly.sweeps import sweep_probes
from perfgate.scenarios.probe import load_probes
from perfgate.scenarios.scenario import Scenario

# Each costs about 0.004 % of false alarms: from here on a release run has more than the one in a
# hundred that is promised (statistics §3).
MOST_COMPARISONS = 500


def gated_comparisons(scenario: Scenario) -> int:
    """The gated comparisons of speeds: metric × point × {baseline, anchor}, and the curve.

    A machine that measures its own reference has no anchor, and rates of its own.
    """
    if scenario.gate.noise == "measured":
        return 0
    speeds = sum(not is_accuracy(one) for one in scenario.gate.metrics)
    curves = sum(len(one.gating_metrics()) for one in sweep_probes(scenario))
    return 2 * speeds * len(load_probes(scenario)) + curves


def require_small_family(scenarios: Iterable[Scenario]) -> None:
    """Refuse a suite that gates so much on one hardware that its false alarms add up.

    Args:
        scenarios: all of the suite, whatever is selected of it.

    Raises:
        InputError: more than `MOST_COMPARISONS` on one GPU.
    """
    counts: Counter[str] = Counter()
    for scenario in scenarios:
        counts[scenario.hardware.gpu] += gated_comparisons(scenario)
    for gpu, count in counts.items():
        if count > MOST_COMPARISONS:
            raise InputError(
                f"the suite gates too many speeds on {gpu}: of release runs without any change, "
                "more than one in a hundred would end in a REGRESSION",
                found=f"{count} comparisons",
                expected=f"at most {MOST_COMPARISONS}: metrics × points × (baseline and anchor), "
                "and curves",
                hint="gate fewer metrics or points (gate.metrics); the others are still reported",
            )
