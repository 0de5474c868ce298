"""Our rule beside those in use today, on the very same simulated numbers."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.detection import apache_otava
from benchmarks.detection.draws import NOISES, Values, latencies, noise, throughputs
from benchmarks.detection.error_rates import MOST_RUNS
from benchmarks.detection.rules import RULES
from perfgate.core.metrics import lookup
from perfgate.judging.forecast.simulation import IN_SESSION, BaselineDesign, Control
from perfgate.judging.rules import scale
from perfgate.judging.rules.sequential import INCONCLUSIVE, REGRESSION, levels

HISTORY = 90  # days, as TensorRT-LLM's rule wants; the others take the last of them
OUR_BASELINE = 10
OURS: dict[Control, str] = {
    "controlled": "perfgate, with controls",
    "alone": "perfgate, without",
}
OTAVA_BASELINE = 30
OTAVA_NEW = (1, 2, 5)
# Losses are looked for in noise as it is, and in the Gaussian noise that most rules are made for.
LOSSY = ("real", "gauss")
OTAVA_NOISES = ("real", "heavy", "gauss")


@dataclass(frozen=True)
class Family:
    """A metric with its true noise; the band is the one perfgate ships for it."""

    metric: str
    losses: tuple[float, ...]

    @property
    def higher(self) -> bool:
        return lookup(self.metric).direction == "higher"

    @property
    def sigma(self) -> float:
        return lookup(self.metric).family.sigma


FAMILIES = (
    Family("output_throughput", (0.0, 0.02, 0.05, 0.10)),
    Family("ttft_median_ms", (0.0, 0.05, 0.10, 0.15)),
)


def losses_of(family: Family, kind: str) -> tuple[float, ...]:
    """The losses that are tried on that noise; of some, only an unchanged build."""
    return family.losses if kind in LOSSY else family.losses[:1]


def lost(family: Family, loss: float) -> float:
    """A loss as it is on the log scale."""
    return float(-np.log1p(-loss) if family.higher else np.log1p(loss))


def draw_losses(family: Family, kind: str, loss: float, trials: int) -> tuple[Values, Values]:
    """History, of one session each, and the new build's session; log scale, (trials, 90 and 8)."""
    counts = [*[1] * HISTORY, IN_SESSION]
    x = family.sigma * noise(f"rivals {family.metric} {kind}", kind, trials, counts)
    x[:, HISTORY:] += lost(family, loss)
    return x[:, :HISTORY], x[:, HISTORY:]


def draw(family: Family, kind: str, loss: float, trials: int) -> tuple[Values, Values]:
    """The same as values of the metric."""
    history, new = draw_losses(family, kind, loss, trials)
    made = throughputs if family.higher else latencies
    return made(history), made(new)


def compared(trials: int) -> list[dict[str, object]]:
    """Share of alarms of every rule but Otava, for each family, noise and loss."""
    rows: list[dict[str, object]] = []
    for family in FAMILIES:
        for kind in NOISES:
            for loss in losses_of(family, kind):
                history, new = draw(family, kind, loss, trials)
                case = {"metric": family.metric, "noise": kind, "loss": loss, "trials": trials}
                rows += [{**case, **_ours(family, kind, loss, trials, how)} for how in OURS]
                for rule in RULES:
                    alarms = rule.alarm(history[:, -rule.base :], new[:, : rule.new], family.higher)
                    rows.append(
                        {
                            **case,
                            "rule": rule.name,
                            "base": rule.base,
                            "new": rule.new,
                            "alarms": float(alarms.mean()),
                            "undecided": 0.0,
                            "starts": float(rule.new),
                        }
                    )
    return rows


def _ours(
    family: Family, kind: str, loss: float, trials: int, control: Control
) -> dict[str, object]:
    """The gate on the same numbers; its controls are starts of that session that lose nothing."""
    known, sigma = lookup(family.metric), family.sigma
    margin = scale.margin(known, known.family.band or 0.0)
    history, session = draw_losses(family, kind, 0.0, trials)
    base = history[:, -OUR_BASELINE:] / sigma
    design = BaselineDesign(OUR_BASELINE, OUR_BASELINE, margin / sigma, control, MOST_RUNS)
    found = design.decided(lost(family, loss) / margin, levels(base, 1.0), session / sigma)
    return {
        "rule": OURS[control],
        "base": OUR_BASELINE,
        "new": found.looks[-1][0],
        "alarms": found.share(REGRESSION),
        "undecided": found.share(INCONCLUSIVE),
        "starts": float((found.new + found.controls).mean()),
    }


def of_otava(python: Path, trials: int) -> list[dict[str, object]]:
    """Otava on the first trials of the same draws: 30 accepted values, then 1, 2 or 5 new ones.

    An alarm is a change point for the worse at the boundary or up to three values before it.
    """
    cases = [
        (family, kind, loss, count)
        for family in FAMILIES
        for kind in OTAVA_NOISES
        for loss in losses_of(family, kind)
        for count in OTAVA_NEW
    ]
    many: list[list[float]] = []
    for family, kind, loss, count in cases:
        history, new = draw(family, kind, loss, trials)
        many += np.hstack([history[:, -OTAVA_BASELINE:], new[:, :count]]).tolist()
    found = apache_otava.change_points(python, many)
    rows = []
    for number, (family, kind, loss, count) in enumerate(cases):
        alarms = [
            any(
                index >= OTAVA_BASELINE - 3 and (change < 0) == family.higher
                for index, change in points
            )
            for points in found[number * trials : (number + 1) * trials]
        ]
        rows.append(
            {
                "metric": family.metric,
                "noise": kind,
                "loss": loss,
                "trials": trials,
                "rule": "Otava p=0.001",
                "base": OTAVA_BASELINE,
                "new": count,
                "alarms": sum(alarms) / trials,
                "undecided": 0.0,
                "starts": float(count),
            }
        )
    return rows
