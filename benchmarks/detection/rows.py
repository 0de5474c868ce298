"""Rows: selections from the results, and names of cases, that several tables and plots share."""

from pathlib import Path

from benchmarks.detection.online import Settings
from benchmarks.detection.results import Row, load

NOISE = {
    "real": "real",
    "real-start": "real-start: events of starts only",
    "real-sess": "real-sess: events of sessions only",
    "heavy": "heavy: wider core",
    "heavy50": "heavy50: half of it between sessions",
    "old4x6": "old4x6: 4 % of starts slower by 6 sigma",
    "gauss": "gauss",
    "session": "session: 0.3 between sessions",
    "session50": "session50: half between sessions",
}
LOSS = {0.0: "unchanged", 0.5: "0.5 bands", 1.0: "1 band", 1.5: "1.5 bands"}
CONTROL = {"controlled": "yes", "alone": "no"}


def rivals_of(metric: str, folder: Path) -> list[Row]:
    """All rules on one metric, Otava with its number of new values in the name, in order."""
    otava = [{**row, "rule": f"{row['rule']}, {row['new']} new"} for row in load("otava", folder)]
    return [row for row in [*load("rivals", folder), *otava] if row["metric"] == metric]


def starts_of(row: Row) -> float:
    """Mean starts of both builds."""
    return float(row["new"]) + float(row["controls"])


def series_rows(folder: Path) -> tuple[list[Row], list[Row]]:
    """Our gate on the real series, by band and window only, and the rules of today."""
    default = Settings()
    ours = [
        row
        for row in load("series_ours", folder)
        if all(
            row[name] == getattr(default, name)
            for name in ("first", "alpha", "gains", "recalibrate", "anchor", "prior_dof")
        )
    ]
    return sorted(ours, key=lambda row: (row["band"], row["window"])), load("series_others", folder)


def default_row(folder: Path) -> Row:
    """Our gate on the real series with the settings it comes with."""
    ours, _ = series_rows(folder)
    default = Settings()
    return next(
        row for row in ours if (row["band"], row["window"]) == (default.band, default.window)
    )


def otava_sees(rule: str) -> str:
    """What tells Otava's two rows apart, in a word."""
    return "offline" if "offline" in rule else "online"
