"""Tables of the real series: all rules, sensitivity, single series, sizes of steps, edge cases."""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path

from benchmarks.detection.markdown import met, percent, table
from benchmarks.detection.online import Settings
from benchmarks.detection.real_series import SENSITIVITY
from benchmarks.detection.results import Row, load
from benchmarks.detection.rows import default_row, series_rows

_FIXED = "fixed 5 % of the mean of the last 10"
_OTAVA = "Otava p=0.001, offline: sees the whole series"
_SIZES = ((0.0, 0.5), (0.5, 1.0), (1.0, 1.5), (1.5, float("inf")))
_NAMES = {
    "band": "band of {:g} sigma",
    "window": "baseline window of {} values",
    "first": "the first {} points for calibration",
    "alpha": "alpha {:g}",
    "gains": "gains by IMPROVEMENT, from half a band on",
    "recalibrate": "sigma from the first points only",
    "anchor": "anchor of {} values",
    "prior_dof": "prior worth {:g} observations",
}


def _other(folder: Path, rule: str) -> Row:
    return next(row for row in load("series_others", folder) if row["rule"] == rule)


def _aims(folder: Path) -> str:
    ours, otava, fixed = default_row(folder), _other(folder, _OTAVA), _other(folder, _FIXED)
    third = fixed["false_per_1000"] / 3
    rows = [
        [
            "labels found, online",
            f"at least Otava's {otava['found']} of {otava['labels']}",
            f"{ours['found']} of {ours['labels']}",
            met(ours["found"] >= otava["found"]),
        ],
        [
            "false alarms per 1000 points, online",
            f"below {third:.2f}, a third of the fixed rule's {fixed['false_per_1000']:.1f}",
            f"{ours['false_per_1000']:.2f}",
            met(ours["false_per_1000"] < third),
        ],
    ]
    return table(["real series, settings below", "aim", "measured", ""], rows)


def _gap(folder: Path) -> str:
    rows = load("series_sizes", folder)
    missed = [row for row in rows if not row["perfgate"]]
    told = [
        f"{row['series']} at {row['at']} ({row['change']:+.1%}, {row['bands']:.2f} bands)"
        for row in missed
    ]
    whole = [row for row in rows if row["bands"] >= 1]
    found = sum(row["perfgate"] for row in whole)
    told_gains = replace(Settings(), gains="improvement")
    shipped = next(row for row in load("series_ours", folder) if _is(row, told_gains))
    return (
        f"Missed: {'; '.join(told) or 'none'}. Of the {len(whole)} steps of one band or more, "
        f"{found} are found. If gains are taken as the gate words them, IMPROVEMENT from half a "
        f"band on, it finds {shipped['found']} labels with {shipped['false_per_1000']:.1f} false "
        "alarms per 1000 points."
    )


def _all(folder: Path) -> str:
    ours, others = series_rows(folder)
    kept = [row for row in ours if row["window"] == Settings().window]
    rows = [_line(f"perfgate, band of {row['band']:g} sigma, online", row) for row in kept[::-1]]
    rows += [_line(row["rule"], row) for row in others]
    return table(_HEADS, rows)


_HEADS = ["rule", "found", "false alarms", "per 1000 points", "median delay", "starts a decision"]


def _line(name: str, row: Row) -> list[str]:
    delay = "–" if row["delay"] is None else f"{row['delay']:g}"
    return [
        name,
        f"{row['found']} / {row['labels']}",
        str(row["false"]),
        f"{row['false_per_1000']:.1f}",
        delay,
        f"{row['starts']:.2f}",
    ]


def _sensitivity(folder: Path) -> str:
    found = load("series_ours", folder)
    rows = []
    for settings in SENSITIVITY:
        row = next(one for one in found if _is(one, settings))
        rows.append([*_line(_said(settings), row), percent(row["undecided"], 1)])
    return table([*_HEADS, "undecided %"], rows)


def _is(row: Row, settings: Settings) -> bool:
    return all(row[field.name] == getattr(settings, field.name) for field in fields(Settings))


def _said(settings: Settings) -> str:
    default = Settings()
    moved = [
        _NAMES[field.name].format(getattr(settings, field.name))
        for field in fields(Settings)
        if getattr(settings, field.name) != getattr(default, field.name)
    ]
    return ", ".join(moved) or "as described"


def _bands_and_windows(folder: Path) -> str:
    ours, _ = series_rows(folder)
    windows = sorted({row["window"] for row in ours})
    rows = []
    for band in sorted({row["band"] for row in ours}):
        mine = {row["window"]: row for row in ours if row["band"] == band}
        rows.append(
            [
                f"{band:g} sigma",
                *(f"{mine[w]['found']} / {mine[w]['false_per_1000']:.1f}" for w in windows),
            ]
        )
    return table(["band", *(f"window {window}" for window in windows)], rows)


def _each(folder: Path) -> str:
    told = {
        "perfgate": default_row(folder),
        "fixed 5 %": _other(folder, _FIXED),
        "Otava": _other(folder, _OTAVA),
    }
    rows = [
        [name, str(told["perfgate"]["each"][name][0])]
        + [f"{row['each'][name][1]} / {row['each'][name][2]}" for row in told.values()]
        for name in told["perfgate"]["each"]
    ]
    return table(["series", "labels", *(f"{name}: found / false" for name in told)], rows)


def _sizes(folder: Path) -> str:
    found = load("series_sizes", folder)
    rows = []
    for low, high in _SIZES:
        mine = [row for row in found if low <= row["bands"] < high]
        said = f"{low:g} to {high:g} bands" if high < float("inf") else f"{low:g} bands or more"
        shares = [str(sum(row[rule] for row in mine)) for rule in ("perfgate", "fixed", "otava")]
        rows.append([said, str(len(mine)), *shares])
    return table(["size of the step", "labels", "perfgate", "fixed 5 %", "Otava, offline"], rows)


def _edges(folder: Path) -> str:
    rows = []
    for row in load("series_edges", folder):
        sigma = "of its own past" if row["sigma"] is None else f"given, {row['sigma']:.1%}"
        if row["refused"]:
            lines = row["refused"].splitlines()
            said = " ".join([lines[0], *(f"({one.strip()})" for one in lines[1:2])])
            rows.append([row["series"], row["use"], sigma, f"refused: {said}", "", "", "", ""])
            continue
        rows.append(
            [
                row["series"],
                row["use"],
                sigma,
                "judged",
                f"{row['found']} / {row['labels']}",
                f"{row['false']} ({row['false_per_1000']:.0f} per 1000)",
                percent(row["undecided"], 1),
                f"{row['starts']:.2f}",
            ]
        )
    heads = ["series", "what it is", "sigma", "what happens", "found", "false alarms"]
    return table([*heads, "undecided %", "starts"], rows, left=4)


TABLES: Mapping[str, Callable[[Path], str]] = {
    "series-aims": _aims,
    "series-gap": _gap,
    "series-all": _all,
    "series-sensitivity": _sensitivity,
    "series-bands": _bands_and_windows,
    "series-each": _each,
    "series-sizes": _sizes,
    "series-edges": _edges,
}
