"""Error rates of our own rule by simulation: how often it says what, and after how many starts.

`rules.sequential` is the gate's rule for many trials at once; each run of the study holds it, on
drawn sigmas, against verdicts of one case each (`PerformanceTest.judge`), on values with a unit.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from math import sqrt

import numpy as np

from benchmarks.detection.draws import NOISES, probes, throughputs
from perfgate.core.verdict import Judgement, Rule, Verdict
from perfgate.judging.forecast.simulation import BaselineDesign, Control
from perfgate.judging.rules.noise import RunNoise
from perfgate.judging.rules.performance import PerformanceTest
from perfgate.judging.rules.sequential import (
    HOST_SHIFT,
    INCONCLUSIVE,
    PASS,
    REGRESSION,
    Verdicts,
    combine,
    levels,
)

METRIC = "output_throughput"
SIGMA = 0.005
BAND = 4.04  # sigma: 2 % of a throughput at 0.5 % noise, on the log scale
MOST_RUNS = 5

BASELINES = ((10, 10), (3, 3))
CONTROLS: tuple[Control, ...] = ("controlled", "alone")
LOSSES = (0.0, 0.5, 1.0, 1.5)
SHIFTS = (3.0, 5.0, 8.0, 14.0)
SIZES = ((1, 1), (2, 2), (3, 1), (3, 3), (5, 5), (10, 2), (10, 10), (20, 20))
BANDS = (3.0, BAND, 5.0)
PRIORS = (0.5, 2.0)
CURVES = ((1, 1), (3, 3), (10, 10))
_PART = 100_000  # trials at once


@dataclass(frozen=True)
class Cell:
    """One case.

    Attributes:
        noise: a name of `draws.NOISES`.
        n_base, sessions: of the baseline.
        band: the loss that counts, in true sigma, on the log scale.
        control: with controls, or without.
        metrics: of the probe, 1 to 3, correlated.
        loss: true loss of every metric, in bands.
        prior: prior sigma / true sigma.
        moved: loss of the whole session, controls included, in sigma.
    """

    noise: str = "real"
    n_base: int = 10
    sessions: int = 10
    band: float = BAND
    control: Control = "controlled"
    metrics: int = 1
    loss: float = 0.0
    prior: float = 1.0
    moved: float = 0.0

    @property
    def design(self) -> BaselineDesign:
        """The test of each metric."""
        return BaselineDesign(self.n_base, self.sessions, self.band, self.control, MOST_RUNS)


def by_rule(cell: Cell, trials: int, part: int = 0) -> list[Verdicts]:
    """The verdicts of each metric."""
    base, session = probes(cell.noise, cell.n_base, cell.sessions, cell.metrics, trials, part)
    found = []
    for metric in range(cell.metrics):
        values = base[:, metric].astype(np.float64)
        against = levels(values, cell.prior, sessions=cell.sessions)
        now = session[:, metric] + cell.moved
        found.append(cell.design.decided(cell.loss, against, now))
    return found


def by_gate(cell: Cell, trials: int) -> list[Judgement]:
    """Those of the first metric by the gate's own function, one call a trial."""
    base, session = probes(cell.noise, cell.n_base, cell.sessions, cell.metrics, trials)
    now = session[:, 0] + cell.moved
    lost = cell.loss * cell.band
    is_controlled = cell.control == "controlled"
    new = now[:, (0, 1, 4, 5)] if is_controlled else now[:, :MOST_RUNS]
    sides = (base[:, 0], new + lost, now[:, (2, 3, 6)])
    before, after, controls = (
        throughputs(SIGMA * side.astype(np.float64)).tolist() for side in sides
    )
    return [
        PerformanceTest(
            METRIC,
            -float(np.expm1(-cell.band * SIGMA)),
            before[trial],
            after[trial],
            RunNoise(cell.prior * SIGMA),
            cell.sessions,
            controls[trial] if is_controlled else None,
        ).judge(Rule(max_runs=MOST_RUNS))
        for trial in range(trials)
    ]


def disagreements(cells: Sequence[Cell], trials: int) -> int:
    """Trials that many at once decide otherwise than one by one, in verdict or in starts."""
    return sum(
        not _agree(
            judged, int(found.codes[trial]), int(found.new[trial]), int(found.controls[trial])
        )
        for cell in cells
        for found in by_rule(cell, trials)[:1]
        for trial, judged in enumerate(by_gate(cell, trials))
    )


def _agree(judged: Judgement, code: int, new: int, controls: int) -> bool:
    if judged.verdict == Verdict.IMPROVEMENT:  # a PASS, whose second start is only told of
        return code == PASS
    same = {
        Verdict.INCONCLUSIVE: INCONCLUSIVE,
        Verdict.PASS: HOST_SHIFT if judged.mark == "HOST_SHIFT" else PASS,
        Verdict.REGRESSION: REGRESSION,
    }[judged.verdict]
    return (code, new, controls) == (same, judged.runs_used, judged.controls_used)


def checked_cells() -> list[Cell]:
    """The cells in which the two are held against each other."""
    kinds = product(NOISES, (*BASELINES, (1, 1), (10, 2)), CONTROLS, LOSSES)
    cells = [Cell(noise, *size, control=control, loss=loss) for noise, size, control, loss in kinds]
    return [*cells, *(Cell(moved=moved) for moved in SHIFTS)]


def row(cell: Cell, trials: int) -> dict[str, object]:
    """One line of the results: shares of verdicts of a probe, and its mean starts."""
    counts: dict[str, float] = dict.fromkeys(_COLUMNS, 0.0)
    done = 0
    for part in range(-(-trials // _PART)):
        size = min(_PART, trials - part * _PART)
        metrics = by_rule(cell, size, part)
        probe = combine(metrics)
        done += size
        counts["regression"] += size * probe.share(REGRESSION)
        counts["pass"] += size * probe.share(PASS, HOST_SHIFT)
        counts["inconclusive"] += size * probe.share(INCONCLUSIVE)
        counts["host_shift"] += size * probe.share(HOST_SHIFT)
        counts["new"] += float(probe.new.sum())
        counts["controls"] += float(probe.controls.sum())
        alone = np.mean([one.share(REGRESSION) for one in metrics])
        counts["of_a_metric"] += size * float(alone)
    return {**asdict(cell), "trials": done, **{name: counts[name] / done for name in _COLUMNS}}


_COLUMNS = (
    "regression",
    "pass",
    "inconclusive",
    "host_shift",
    "new",
    "controls",
    "of_a_metric",
)


def standard_error(share: float, trials: int) -> float:
    """Monte-Carlo standard error of a share; for a share of 0 or 1, as if one trial differed."""
    kept = min(max(share, 1 / trials), 1 - 1 / trials)
    return sqrt(kept * (1 - kept) / trials)


def aims(trials: int) -> list[dict[str, object]]:
    """The cells of the aims: probes of three metrics on real noise."""
    few = max(1, trials // 5)
    return [
        row(Cell("real", *size, metrics=3, loss=loss), few if loss else trials)
        for size in BASELINES
        for loss in LOSSES
    ]


def of_scenarios(trials: int) -> list[dict[str, object]]:
    """Every noise, with controls and without, probes of three metrics."""
    return [
        row(Cell(noise, *size, control=control, metrics=3, loss=loss), trials)
        for noise in NOISES
        for size in BASELINES
        for control in CONTROLS
        for loss in LOSSES
    ]


def of_shifts(trials: int) -> list[dict[str, object]]:
    """`moved`: the whole session is slower, new build and controls alike."""
    cells = [
        Cell(moved=moved, control=control, loss=loss)
        for moved in SHIFTS
        for control in CONTROLS
        for loss in (0.0, 1.0)
    ]
    return [row(cell, trials) for cell in cells]


def of_sizes(trials: int) -> list[dict[str, object]]:
    """Sizes of the baseline, widths of the band."""
    cells = [
        Cell("real", *size, band=band, loss=loss)
        for size in SIZES
        for band in BANDS
        for loss in (0.0, 1.0, 1.5)
    ]
    return [row(cell, trials) for cell in cells]


def of_priors(trials: int) -> list[dict[str, object]]:
    """A prior that is wrong by a factor of two."""
    return [
        row(replace(Cell("real", *size, loss=loss), prior=prior), trials)
        for prior in (1.0, *PRIORS)
        for size in ((1, 1), (3, 3), (10, 10))
        for loss in LOSSES
    ]


def operating_curve(trials: int) -> list[dict[str, object]]:
    """REGRESSION and PASS against the true loss, on real noise, with controls."""
    losses = [step / 10 for step in range(21)]
    return [row(Cell("real", *size, loss=loss), trials) for size in CURVES for loss in losses]
