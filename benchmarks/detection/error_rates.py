"""Error rates of our own rule by simulation: how often it says what, and after how many starts."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from math import sqrt

import numpy as np

from benchmarks.detection.draws import Values, noise, throughputs
from benchmarks.detection.twin import CODES, Outcomes, judge_many
from perfgate.gate.performance import judge_performance
from perfgate.gate.rule import Rule
from perfgate.gate.verdict import Verdict

METRIC = "output_throughput"
SIGMA = 0.005
MOST_RUNS = 5

N_BASE = (1, 3, 5, 10, 30)
BANDS = (2, 3, 4)
NOISES = ("gauss", "outliers")
PRIORS = (1.0, 0.5, 2.0)
ALPHAS = (0.025, 0.005)
LOSSES = (0.0, 0.5, 1.0, 1.5)


@dataclass(frozen=True)
class Cell:
    """One case: baseline size, band in sigma, noise, prior sigma / true sigma, alpha, true loss in
    bands."""

    n_base: int = 10
    band: float = 4
    noise: str = "gauss"
    prior: float = 1.0
    alpha: float = 0.025
    loss: float = 0.0

    @property
    def margin(self) -> float:
        return self.band * SIGMA

    @property
    def rule(self) -> Rule:
        return Rule(alpha=self.alpha, max_runs=MOST_RUNS)


def draw(cell: Cell, trials: int, part: str = "") -> tuple[Values, Values]:
    """Losses of baseline and new runs on the log scale, shapes (trials, n_base) and (trials, 5)."""
    key = f"error rates {cell.n_base} {cell.noise}{part}"
    values = SIGMA * noise(key, cell.noise, trials, cell.n_base + MOST_RUNS)
    return values[:, : cell.n_base], values[:, cell.n_base :] + cell.loss * cell.margin


def by_twin(cell: Cell, trials: int, part: str = "") -> Outcomes:
    base, new = draw(cell, trials, part)
    return judge_many(base, new, sigma=cell.prior * SIGMA, margin=cell.margin, rule=cell.rule)


def by_gate(cell: Cell, trials: int) -> Outcomes:
    """The same by the real function, one call a trial."""
    base, new = (throughputs(side).tolist() for side in draw(cell, trials))
    codes, runs = [], []
    for before, after in zip(base, new, strict=True):
        judged = judge_performance(
            METRIC,
            before,
            after,
            band=-float(np.expm1(-cell.margin)),
            sigma=cell.prior * SIGMA,
            rule=cell.rule,
        )
        codes.append(CODES.index(judged.verdict))
        runs.append(judged.runs_used)
    return Outcomes(np.array(codes), np.array(runs))


def disagreements(cells: Sequence[Cell], trials: int) -> int:
    """Trials in which the twin and the real function differ in verdict or in runs."""
    found = 0
    for cell in cells:
        twin, real = by_twin(cell, trials), by_gate(cell, trials)
        found += int(((twin.codes != real.codes) | (twin.runs != real.runs)).sum())
    return found


def row(cell: Cell, outcomes: Outcomes) -> dict[str, object]:
    """One line of the results: shares of verdicts, an IMPROVEMENT counted as PASS, and starts."""
    trials = len(outcomes.codes)

    def share(*verdicts: Verdict) -> float:
        return float(np.isin(outcomes.codes, [CODES.index(one) for one in verdicts]).mean())

    return {
        **asdict(cell),
        "trials": trials,
        "regression": share(Verdict.REGRESSION),
        "pass": share(Verdict.PASS, Verdict.IMPROVEMENT),
        "inconclusive": share(Verdict.INCONCLUSIVE),
        "starts": float(outcomes.runs.mean()),
    }


def standard_error(share: float, trials: int) -> float:
    """Monte-Carlo standard error of a share; for a share of 0 or 1, as if one trial differed."""
    kept = min(max(share, 1 / trials), 1 - 1 / trials)
    return sqrt(kept * (1 - kept) / trials)


def grid() -> Iterator[Cell]:
    for values in product(N_BASE, BANDS, NOISES, PRIORS, ALPHAS, LOSSES):
        yield Cell(*values)


def headline(trials: int) -> list[dict[str, object]]:
    """The cells of the aims, by the real function."""
    cells = [Cell(noise=kind, loss=loss) for kind in NOISES for loss in LOSSES]
    return [row(cell, by_gate(cell, trials)) for cell in cells]


def close_call(trials: int, parts: int = 20) -> list[dict[str, object]]:
    """The aim that the headline's trials cannot decide, with so many times more of them."""
    cell = Cell(noise="outliers")
    found = [by_twin(cell, trials, f" part {number}") for number in range(parts)]
    together = Outcomes(
        np.concatenate([one.codes for one in found]), np.concatenate([one.runs for one in found])
    )
    return [row(cell, together)]


def operating_curve(trials: int) -> list[dict[str, object]]:
    """REGRESSION and PASS against the true loss, band of 4 sigma, for every baseline size."""
    losses = [step / 10 for step in range(21)]
    cells = [Cell(n_base=n_base, loss=loss) for n_base in N_BASE for loss in losses]
    return [row(cell, by_twin(cell, trials)) for cell in cells]
