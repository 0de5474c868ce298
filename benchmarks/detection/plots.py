"""Plots of the study as small SVG files: readable in black and white, equal for equal results."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")  # before pyplot, so that no display is asked for

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.detection import results
from benchmarks.detection.rows import otava_sees, rivals_of, series_rows

_STYLE: Any = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "perfgate",
    "font.size": 9,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_LINES = {1: ":", 3: "--", 10: "-"}


def draw(folder: Path, out: Path) -> None:
    """Draw every plot from the results in `folder`."""
    with _figure(out / "operating.svg", 6.4, 3.4) as figure:
        _operating(figure, results.load("curve", folder))
    with _figure(out / "rules.svg", 7.2, 3.6) as figure:
        _rules(figure, rivals_of("output_throughput", folder))
    with _figure(out / "series.svg", 6.4, 3.8) as figure:
        _series(figure, folder)


@contextmanager
def _figure(path: Path, width: float, height: float) -> Iterator[Figure]:
    with plt.rc_context(_STYLE):
        figure = plt.figure(figsize=(width, height), layout="constrained")
        yield figure
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None, "Creator": None})
        plt.close(figure)


def _operating(figure: Figure, rows: list[results.Row]) -> None:
    axes = figure.subplots()
    for n_base, style in _LINES.items():
        mine = [row for row in rows if row["n_base"] == n_base]
        losses = [row["loss"] for row in mine]
        label = f"{n_base} baseline start{'s' if n_base > 1 else ''}"
        axes.plot(
            losses,
            [100 * row["regression"] for row in mine],
            color="black",
            linestyle=style,
            label=label,
        )
        axes.plot(losses, [100 * row["pass"] for row in mine], color="0.55", linestyle=style)
    axes.axvline(1, color="0.8", linewidth=0.8, zorder=0)
    axes.text(0.03, 62, "PASS", color="0.4")
    axes.text(1.05, 88, "REGRESSION")
    axes.set(xlabel="true loss, in bands of 4.04 sigma", ylabel="% of builds", xlim=(0, 2))
    axes.legend(frameon=False, loc="center right")


def _rules(figure: Figure, rows: list[results.Row]) -> None:
    names = list(dict.fromkeys(row["rule"] for row in rows))[::-1]
    false, found = figure.subplots(1, 2, sharey=True)

    def at(noise: str, loss: float) -> dict[str, float]:
        return {
            row["rule"]: 100 * row["alarms"]
            for row in rows
            if row["noise"] == noise and row["loss"] == loss
        }

    _dots(false, names, at("real", 0.0), "o", "black", "noise as it is (real)")
    _dots(false, names, at("gauss", 0.0), "o", "white", "Gaussian")
    _dots(found, names, at("real", 0.02), "o", "white", "loss of 2 %")
    _dots(found, names, at("real", 0.05), "s", "0.6", "5 %")
    _dots(found, names, at("real", 0.10), "^", "black", "10 %")
    false.set(yticks=range(len(names)))
    false.set_yticklabels(names)
    false.set_title("false alarms, % of unchanged builds", fontsize=9)
    found.set_title("found, % of slower builds", fontsize=9)
    for axes in (false, found):
        axes.grid(axis="y", color="0.9")
        axes.set_axisbelow(True)
        axes.legend(
            frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=3
        )


def _dots(
    axes: Axes, names: list[str], values: dict[str, float], marker: str, fill: str, label: str
) -> None:
    axes.plot(
        [values[name] for name in names],
        range(len(names)),
        marker,
        markerfacecolor=fill,
        markeredgecolor="black",
        markersize=5,
        label=label,
        clip_on=False,
    )


def _series(figure: Figure, folder: Path) -> None:
    axes = figure.subplots()
    ours, others = series_rows(folder)
    bands = [row for row in ours if row["window"] == 30]
    axes.plot(
        [row["false_per_1000"] for row in bands],
        [row["found"] for row in bands],
        "o-",
        color="black",
        label="perfgate, online",
    )
    for row in bands:
        _label(axes, row, f"{row['band']:g} sigma", below=True)
    axes.plot(
        [row["false_per_1000"] for row in others],
        [row["found"] for row in others],
        "s",
        markerfacecolor="white",
        markeredgecolor="black",
        label="rules of today",
    )
    for row in others:
        name = row["rule"].split(",")[0].replace("p=0.001", otava_sees(row["rule"]))
        _label(axes, row, name, below="of one run" in name)
    labels = bands[0]["labels"]
    axes.set(xlabel="false alarms per 1000 points", ylabel=f"labels found, of {labels}")
    axes.set(ylim=(8, labels + 1), xlim=(0, 55))
    axes.legend(frameon=False, loc="lower right")


def _label(axes: Axes, row: dict[str, Any], text: str, *, below: bool) -> None:
    place, shift = (row["false_per_1000"], row["found"]), (4, -11 if below else 4)
    axes.annotate(text, place, xytext=shift, textcoords="offset points", fontsize=7)
