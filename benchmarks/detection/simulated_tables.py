"""Tables of the simulation of our own rule: aims and error rates."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.detection.error_rates import BANDS, LOSSES, N_BASE, standard_error
from benchmarks.detection.markdown import met, percent, table
from benchmarks.detection.results import Row, load
from benchmarks.detection.rows import LOSS, NOISE

_OUTLIERS_AIM = "unchanged, with outliers: REGRESSION"


def _headline(folder: Path) -> str:
    rows = []
    for row in load("headline", folder):
        shares = [
            f"{percent(row[name], 3)} ± {percent(standard_error(row[name], row['trials']), 3)}"
            for name in ("regression", "pass", "inconclusive")
        ]
        rows.append([NOISE[row["noise"]], LOSS[row["loss"]], *shares, f"{row['starts']:.3f}"])
    heads = ["noise", "true loss", "REGRESSION %", "PASS %", "INCONCLUSIVE %", "mean starts"]
    return table(heads, rows, left=2)


@dataclass(frozen=True)
class _Aim:
    """An aim of the simulation: a share of trials, and which side of a limit it should be on."""

    what: str
    row: Row
    verdict: str
    limit: float
    least: bool = False

    @property
    def share(self) -> float:
        return float(self.row[self.verdict])

    @property
    def met(self) -> bool:
        return self.share >= self.limit if self.least else self.share <= self.limit

    @property
    def said(self) -> str:
        return f"{'≥' if self.least else '≤'} {100 * self.limit:g} %"


def _aims_of(folder: Path) -> list[_Aim]:
    found = {(row["noise"], row["loss"]): row for row in load("headline", folder)}
    still = found["gauss", 0.0]
    return [
        _Aim("unchanged: REGRESSION", still, "regression", 0.001),
        _Aim("unchanged: PASS", still, "pass", 0.998, least=True),
        _Aim("loss of one band: REGRESSION", found["gauss", 1.0], "regression", 0.95, least=True),
        _Aim("1.5 bands: REGRESSION", found["gauss", 1.5], "regression", 0.995, least=True),
        _Aim(_OUTLIERS_AIM, found["outliers", 0.0], "regression", 0.006),
    ]


def _aims(folder: Path) -> str:
    aims = _aims_of(folder)
    rows = [[aim.what, aim.said, f"{percent(aim.share, 3)} %", met(aim.met)] for aim in aims]
    starts = aims[0].row["starts"]
    rows.insert(2, ["unchanged: mean starts", "≤ 1.05", f"{starts:.3f}", met(starts <= 1.05)])
    return table(["10 baseline runs, band of 4 sigma", "aim", "measured", ""], rows)


def _gap(folder: Path) -> str:
    missed = [
        f"{aim.what}: {percent(aim.share, 3)} ± "
        f"{percent(standard_error(aim.share, aim.row['trials']), 3)} %, aim {aim.said}"
        for aim in _aims_of(folder)
        if not aim.met
    ]
    (close,) = load("close_call", folder)
    error = standard_error(close["regression"], close["trials"])
    return (
        f"Missed in the simulation: {'; '.join(missed) or 'none'}. With {close['trials']:,} trials "
        f"by the twin, an unchanged build with outliers is called a regression in "
        f"{percent(close['regression'], 3)} ± {percent(error, 3)} % of cases."
    )


def _rates(noise: str, alpha: float) -> Callable[[Path], str]:
    def made(folder: Path) -> str:
        found = _cells(folder, noise, alpha, 1.0)
        rows = [
            [str(n_base), str(band), *(_told(found[n_base, band, loss]) for loss in LOSSES)]
            for n_base in N_BASE
            for band in BANDS
        ]
        return table(["baseline runs", "band, sigma", *LOSS.values()], rows, left=0)

    return made


def _priors(folder: Path) -> str:
    rows = []
    for factor, said in ((0.5, "half the true sigma"), (2.0, "twice the true sigma")):
        found = _cells(folder, "gauss", 0.025, factor)
        rows += [
            [said, str(n_base), str(band), *(_told(found[n_base, band, loss]) for loss in LOSSES)]
            for n_base in N_BASE
            for band in (3, 4)
        ]
    return table(["prior", "baseline runs", "band, sigma", *LOSS.values()], rows)


def _cells(
    folder: Path, noise: str, alpha: float, prior: float
) -> Mapping[tuple[int, int, float], Row]:
    return {
        (row["n_base"], row["band"], row["loss"]): row
        for row in load("error_rates", folder)
        if (row["noise"], row["alpha"], row["prior"]) == (noise, alpha, prior)
    }


def _told(row: Row) -> str:
    shares = " / ".join(percent(row[name]) for name in ("regression", "pass", "inconclusive"))
    return f"{shares}, {row['starts']:.2f}"


def _twin(folder: Path) -> str:
    (row,) = load("twin", folder)
    return (
        f"{row['cases']:,} random cases, {row['cases'] // row['cells']} in each of the "
        f"{row['cells']} cells: {row['differing']} differences in verdict or runs used."
    )


def _trials(folder: Path) -> str:
    trials = load("error_rates", folder)[0]["trials"]
    most = percent(standard_error(0.5, trials))
    return (
        f"{trials:,} trials a cell, so the Monte-Carlo standard error is {most} points at most, "
        f"{percent(standard_error(0.01, trials))} at 1 % and "
        f"{percent(standard_error(0.001, trials), 3)} at 0.1 %."
    )


TABLES: Mapping[str, Callable[[Path], str]] = {
    "aims": _aims,
    "aims-gap": _gap,
    "headline": _headline,
    "twin": _twin,
    "trials": _trials,
    "rates-gauss": _rates("gauss", 0.025),
    "rates-outliers": _rates("outliers", 0.025),
    "rates-gauss-many": _rates("gauss", 0.005),
    "rates-outliers-many": _rates("outliers", 0.005),
    "priors": _priors,
}
