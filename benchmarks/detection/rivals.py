"""Our rule beside those in use today, on the very same simulated numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.detection import apache_otava
from benchmarks.detection.draws import Values, latencies, noise, throughputs
from benchmarks.detection.error_rates import MOST_RUNS
from benchmarks.detection.rules import RULES
from perfgate.core.metrics import lookup
from perfgate.gate.performance import judge_performance
from perfgate.gate.verdict import Verdict

HISTORY = 90  # days, as TensorRT-LLM's rule wants; the others take the last of them
NEW = 7
OUR_BASELINE = 10
OTAVA_BASELINE = 30
OTAVA_NEW = (1, 2, 5)
NOISES = ("gauss", "outliers")


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


def draw(family: Family, kind: str, loss: float, trials: int) -> tuple[Values, Values]:
    """Values of history and new build, shapes (trials, 90) and (trials, 7)."""
    x = family.sigma * noise(f"rivals {family.metric} {kind}", kind, trials, HISTORY + NEW)
    x[:, HISTORY:] += -np.log1p(-loss) if family.higher else np.log1p(loss)
    values = throughputs(x) if family.higher else latencies(x)
    return values[:, :HISTORY], values[:, HISTORY:]


def compared(trials: int) -> list[dict[str, object]]:
    """Share of alarms of every rule but Otava, for each family, noise and loss."""
    rows = []
    for family in FAMILIES:
        for kind in NOISES:
            for loss in family.losses:
                history, new = draw(family, kind, loss, trials)
                case = {"metric": family.metric, "noise": kind, "loss": loss, "trials": trials}
                rows.append({**case, **_ours(family, history, new)})
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


def _ours(family: Family, history: Values, new: Values) -> Mapping[str, object]:
    judged = [
        judge_performance(family.metric, before, after)
        for before, after in zip(
            history[:, -OUR_BASELINE:].tolist(), new[:, :MOST_RUNS].tolist(), strict=True
        )
    ]
    verdicts = [one.verdict for one in judged]
    return {
        "rule": "perfgate",
        "base": OUR_BASELINE,
        "new": MOST_RUNS,
        "alarms": verdicts.count(Verdict.REGRESSION) / len(judged),
        "undecided": verdicts.count(Verdict.INCONCLUSIVE) / len(judged),
        "starts": float(np.mean([one.runs_used for one in judged])),
    }


def of_otava(python: Path, trials: int) -> list[dict[str, object]]:
    """Otava on the first trials of the same draws: 30 accepted values, then 1, 2 or 5 new ones.

    An alarm is a change point for the worse at the boundary or up to three values before it.
    """
    cases = [
        (family, kind, loss, count)
        for family in FAMILIES
        for kind in NOISES
        for loss in family.losses
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
