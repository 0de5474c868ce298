"""Tables of the simulation of our own rule: aims, noise as it is, release runs, sizes, priors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.detection.draws import NOISES
from benchmarks.detection.error_rates import (
    BANDS,
    BASELINES,
    CONTROLS,
    LOSSES,
    SHIFTS,
    SIZES,
    standard_error,
)
from benchmarks.detection.markdown import met, percent, table
from benchmarks.detection.release_run import PACKAGED, STUDY
from benchmarks.detection.results import Row, load
from benchmarks.detection.rows import CONTROL, LOSS, NOISE, starts_of


@dataclass(frozen=True)
class _Aim:
    """An aim: what it is about, what was measured, and its limit."""

    what: str
    measured: float
    limit: float
    trials: int = 0
    least: bool = False
    is_share: bool = True

    @property
    def met(self) -> bool:
        return self.measured >= self.limit if self.least else self.measured <= self.limit

    @property
    def said(self) -> str:
        sign = "≥" if self.least else "≤"
        return f"{sign} {100 * self.limit:g} %" if self.is_share else f"{sign} {self.limit:g}"

    @property
    def told(self) -> str:
        if not self.is_share:
            return f"{self.measured:.3f}"
        error = standard_error(self.measured, self.trials)
        return f"{percent(self.measured, 4)} ± {percent(error, 4)} %"


def _aims_of(folder: Path) -> list[_Aim]:
    found = {(row["n_base"], row["loss"]): row for row in load("aims", folder)}
    still, few = found[10, 0.0], found[3, 0.0]
    aims = [
        _Aim(
            f"unchanged: a metric ends in REGRESSION, {said}",
            row["of_a_metric"],
            0.0001,
            row["trials"] * 3,
        )
        for said, row in (("10/10", still), ("3/3", few))
    ]
    worst: dict[str, Row] = {}
    for row in load("release", folder):
        if row["noise"] == "real" and row["control"] == "controlled":
            what = f"release run, {row['suite']}: any REGRESSION, {_size(row)}"
            worst[what] = max(worst.get(what, row), row, key=lambda run: run["any_regression"])
    aims += [_Aim(what, row["any_regression"], 0.01, row["trials"]) for what, row in worst.items()]
    for n_base, limit in ((10, 0.93), (3, 0.92)):
        row = found[n_base, 1.0]
        what = f"a metric that loses one band is found, {n_base}/{n_base}"
        aims.append(_Aim(what, row["of_a_metric"], limit, row["trials"], least=True))
    aims += [
        _Aim(f"unchanged: mean starts, {said}", starts_of(row), 1.25, is_share=False)
        for said, row in (("10/10", still), ("3/3", few))
    ]
    return aims


def _size(row: Row) -> str:
    return f"{row['n_base']}/{row.get('sessions', row['n_base'])}"


def _aims(folder: Path) -> str:
    # Those of the packaged suites are in the sentence of the guarantee; `_gap` has all.
    rows = [
        [aim.what, aim.said, aim.told, met(aim.met)]
        for aim in _aims_of(folder)
        if not any(f" {gpu}:" in aim.what for gpu in PACKAGED)
    ]
    return table(["noise `real`, with controls, band 4.04 sigma", "aim", "measured", ""], rows)


def _gap(folder: Path) -> str:
    missed = [f"{aim.what}: {aim.told}, aim {aim.said}" for aim in _aims_of(folder) if not aim.met]
    return f"Missed in the simulation: {'; '.join(missed) or 'none'}."


def _guarantee(folder: Path) -> str:
    rows = [row for row in load("release", folder) if row["noise"] == "real"]
    studied = [row for row in rows if row["suite"] == STUDY and row["control"] == "controlled"]
    worst = max(row["any_regression"] for row in studied)
    packaged = (
        f"{gpu} {percent(max(row['any_regression'] for row in rows if row['suite'] == gpu))} %"
        for gpu in PACKAGED
    )
    alone = [100 * row["any_regression"] for row in rows if row["control"] == "alone"]
    limit = next(share for share in (0.01, 0.02, 0.05, 1.0) if worst <= share)
    return (
        "If nothing changed, noise is like that of published nightlies and the baseline's build "
        "can be started beside the new one, a release run of 12 scenarios, 6 probes and 3 metrics "
        f"ends in any performance REGRESSION in less than {100 * limit:g} of 100 runs "
        f"({percent(worst)} % at worst, simulated), however it is split into jobs. Without "
        f"controls that is {min(alone):.0f} to {max(alone):.0f} of 100. The packaged suites with "
        f"all that they gate, at worst: {', '.join(packaged)}."
    )


def _headline(folder: Path) -> str:
    rows = []
    for row in load("aims", folder):
        digits = 3 if row["loss"] == 0 else 2
        names = ("of_a_metric", "regression", "pass", "inconclusive")
        shares = [
            f"{percent(row[name], digits)} ± "
            f"{percent(standard_error(row[name], row['trials']), digits)}"
            for name in names
        ]
        rows.append([_size(row), LOSS[row["loss"]], *shares, *_starts(row)])
    heads = ["baseline", "true loss", "a metric: REGRESSION %", "probe: REGRESSION %", "PASS %"]
    heads.append("INCONCLUSIVE %")
    return table([*heads, "starts", "of them controls"], rows, left=2)


def _starts(row: Row) -> list[str]:
    return [f"{starts_of(row):.2f}", f"{row['controls']:.2f}"]


def _scenarios(n_base: int) -> Callable[[Path], str]:
    def made(folder: Path) -> str:
        found = {
            (row["noise"], row["control"], row["loss"]): row
            for row in load("scenarios", folder)
            if row["n_base"] == n_base
        }
        rows = []
        for noise in NOISES:
            for control in CONTROLS:
                still = found[noise, control, 0.0]
                rows.append(
                    [
                        NOISE[noise],
                        CONTROL[control],
                        f"{percent(still['regression'], 3)} ± "
                        f"{percent(standard_error(still['regression'], still['trials']), 3)}",
                        percent(still["of_a_metric"], 4),
                        percent(still["pass"], 1),
                        percent(still["host_shift"], 1),
                        f"{starts_of(still):.2f}",
                        *(
                            percent(found[noise, control, loss]["of_a_metric"], 1)
                            for loss in LOSSES[1:]
                        ),
                    ]
                )
        heads = ["noise", "control", "unchanged: REGRESSION %", "of a metric %", "PASS %"]
        ends = ["HOST_SHIFT %", "starts", *(f"found: {LOSS[loss]} %" for loss in LOSSES[1:])]
        return table([*heads, *ends], rows, left=2)

    return made


def _shifts(folder: Path) -> str:
    found = {(row["moved"], row["control"], row["loss"]): row for row in load("shifts", folder)}
    rows = []
    for moved in SHIFTS:
        for control in CONTROLS:
            still, slow = (found[moved, control, loss] for loss in (0.0, 1.0))
            names = ("regression", "pass", "host_shift", "inconclusive")
            rows.append(
                [
                    f"{moved:g}",
                    CONTROL[control],
                    *(percent(still[name], 2) for name in names),
                    f"{starts_of(still):.2f}",
                    percent(slow["regression"], 1),
                ]
            )
    heads = ["slower by, sigma", "control", "unchanged: REGRESSION %", "PASS %", "HOST_SHIFT %"]
    return table([*heads, "INCONCLUSIVE %", "starts", "found: 1 band %"], rows, left=0)


def _release(folder: Path) -> str:
    rows = [
        [
            f"{row['suite']}, {row['comparisons']}",
            row["noise"],
            CONTROL[row["control"]],
            f"{row['n_base']}/{row['n_base']}",
            "shared" if row["shared"] else "own to each",
            f"{percent(row['any_regression'])} ± "
            f"{percent(standard_error(row['any_regression'], row['trials']))}",
            percent(row["any_without_anchors"]),
            percent(row["all_pass"], 1),
            f"{row['starts']:.2f}",
        ]
        for row in load("release", folder)
    ]
    heads = ["suite, comparisons", "noise", "control", "baseline", "events of the probes"]
    heads += ["any false REGRESSION %", "without anchors %", "all PASS %", "starts a scenario"]
    return table(heads, rows, left=5)


def _release_probes(folder: Path) -> str:
    rows = [
        [
            CONTROL[row["control"]],
            f"{row['band']:g} sigma",
            f"{row['n_base']}/{row['sessions']}",
            *(
                f"{percent(row[name], 4)} ± {percent(standard_error(row[name], row['trials']), 4)}"
                for name in ("of_a_metric", "of_a_probe", "with_anchor")
            ),
            f"{percent(row['found'], 1)} ± "
            f"{percent(standard_error(row['found'], row['found_trials']), 1)}",
        ]
        for row in load("release_probes", folder)
    ]
    heads = ["control", "band", "baseline", "a metric: false REGRESSION %", "any of three %"]
    return table(
        [*heads, "with their anchors %", "a metric that lost a band: found %"], rows, left=3
    )


def _sizes(folder: Path) -> str:
    found = {
        (row["n_base"], row["sessions"], row["band"], row["loss"]): row
        for row in load("sizes", folder)
    }
    rows = []
    for size in SIZES:
        cells = []
        for band in BANDS:
            still, one, more = (found[*size, band, loss] for loss in (0.0, 1.0, 1.5))
            cells.append(
                f"{percent(one['regression'], 1)} / {percent(more['regression'], 1)} / "
                f"{percent(still['pass'], 1)} / {starts_of(still):.2f}"
            )
        rows.append([f"{size[0]}/{size[1]}", *cells])
    return table(["baseline", *(f"band {band:g} sigma" for band in BANDS)], rows)


def _priors(folder: Path) -> str:
    words = {0.5: "half the true sigma", 1.0: "right", 2.0: "twice the true sigma"}
    found = load("priors", folder)
    rows = []
    for prior, n_base in dict.fromkeys((row["prior"], row["n_base"]) for row in found):
        mine = {
            row["loss"]: row for row in found if (row["prior"], row["n_base"]) == (prior, n_base)
        }
        shares = (
            " / ".join(percent(mine[loss][name], 2) for name in ("regression", "pass"))
            + f", {starts_of(mine[loss]):.2f}"
            for loss in LOSSES
        )
        rows.append([words[prior], f"{n_base}/{n_base}", *shares])
    return table(["prior", "baseline", *(LOSS[loss] for loss in LOSSES)], rows, left=2)


def _agreement(folder: Path) -> str:
    (row,) = load("agreement", folder)
    return (
        f"{row['cases']:,} random cases, {row['cases'] // row['cells']} in each of the "
        f"{row['cells']} cells: {row['differing']} differences in verdict or starts."
    )


def _trials(folder: Path) -> str:
    trials = load("scenarios", folder)[0]["trials"]
    aims, releases = load("aims", folder)[0]["trials"], load("release", folder)[0]["trials"]
    return (
        f"{trials:,} trials a cell, so the Monte-Carlo standard error is "
        f"{percent(standard_error(0.5, trials))} points at most and "
        f"{percent(standard_error(0.0001, trials), 4)} at 0.01 %; {aims:,} unchanged builds for "
        f"the aims, {releases:,} release runs a case."
    )


TABLES: Mapping[str, Callable[[Path], str]] = {
    "aims": _aims,
    "aims-gap": _gap,
    "guarantee": _guarantee,
    "headline": _headline,
    "agreement": _agreement,
    "trials": _trials,
    "scenarios-10": _scenarios(BASELINES[0][0]),
    "scenarios-3": _scenarios(BASELINES[1][0]),
    "shifts": _shifts,
    "release": _release,
    "release-probes": _release_probes,
    "sizes": _sizes,
    "priors": _priors,
}
