"""Run the study: ``python -m benchmarks.detection``; docs/explanation/detection.md and its plots.

Without ``--otava`` and ``--series`` the stored results of those parts stay as they are.
"""

import argparse
import platform
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

from benchmarks.detection import (
    apache_otava,
    creep,
    error_rates,
    labelled,
    page,
    plots,
    real_series,
    release_run,
    results,
    rivals,
)

_FOLDER = Path("docs", "explanation")
_CHECKED_PER_CELL = 100
_CURVE_TRIALS = 20_000
_RIVAL_TRIALS = 20_000
_OTAVA_TRIALS = 1_000


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.detection", description=__doc__)
    parser.add_argument("--trials", type=int, default=100_000, help="per cell (default 100,000)")
    parser.add_argument("--headline", type=int, default=1_000_000, help="per cell of the aims")
    parser.add_argument("--releases", type=int, default=10_000, help="release runs a case")
    parser.add_argument("--series", type=Path, help="folder of the labelled series")
    parser.add_argument("--otava", type=Path, help="python of an environment with apache-otava")
    parser.add_argument("--out", type=Path, default=_FOLDER, help="where detection.md lies")
    parser.add_argument("--parts", nargs="+", metavar="PART", help="only these parts")
    parser.add_argument("--page-only", action="store_true", help="only write page and plots again")
    parser.add_argument("--tables", action="store_true", help="only print all tables, as stored")
    parser.add_argument("--results", type=Path, default=results.FOLDER, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.series and not options.otava:
        parser.error("--series needs --otava, with which the same series are judged")
    if options.tables:
        print(page.all_tables(options.results))
        return 0
    if not options.page_only:
        _study(options)
    plots.draw(options.results, options.out / "detection")
    page.write(options.results, options.out / "detection.md")
    return 0


def _study(options: argparse.Namespace) -> None:
    trials = options.trials
    steps: list[tuple[str, Callable[[], Sequence[dict[str, object]]]]] = [
        ("agreement", _checked_agreement),
        ("aims", lambda: error_rates.aims(options.headline)),
        ("scenarios", lambda: error_rates.of_scenarios(trials)),
        ("shifts", lambda: error_rates.of_shifts(trials)),
        ("release", lambda: release_run.of_releases(options.releases)),
        ("release_probes", lambda: release_run.of_probes(options.headline)),
        ("sizes", lambda: error_rates.of_sizes(trials)),
        ("priors", lambda: error_rates.of_priors(trials)),
        ("curve", lambda: error_rates.operating_curve(min(trials, _CURVE_TRIALS))),
        ("creep", lambda: creep.of_small_steps(max(trials // 2500, 3))),
        ("rivals", lambda: rivals.compared(min(trials, _RIVAL_TRIALS))),
    ]
    if options.otava:
        steps.append(("otava", lambda: rivals.of_otava(options.otava, min(_OTAVA_TRIALS, trials))))
    if options.series:
        series = labelled.read(options.series)
        primary = real_series.primary(series)
        steps += [
            ("series_ours", lambda: real_series.ours(primary)),
            ("series_others", lambda: real_series.others(primary, options.otava)),
            ("series_sizes", lambda: real_series.sizes(primary, options.otava)),
            ("series_edges", lambda: real_series.edges(series)),
        ]
    unknown = set(options.parts or ()) - {name for name, _ in steps}
    if unknown:
        raise SystemExit(f"no such part, or its option is missing: {', '.join(sorted(unknown))}")
    seconds = {}
    for name, step in steps:
        if options.parts and name not in options.parts:
            continue
        began = time.monotonic()
        results.save(name, step(), options.results)
        seconds[name] = round(time.monotonic() - began)
        print(f"{name}: {seconds[name]} s", flush=True)
    _note_run(options, seconds)


def _checked_agreement() -> list[dict[str, object]]:
    """Hold the simulated rule against the gate in every cell; one difference ends the study."""
    cells = error_rates.checked_cells()
    differing = error_rates.disagreements(cells, _CHECKED_PER_CELL)
    if differing:
        raise SystemExit(f"the simulated rule differs from the gate in {differing} cases")
    return [{"cells": len(cells), "cases": len(cells) * _CHECKED_PER_CELL, "differing": differing}]


def _note_run(options: argparse.Namespace, seconds: dict[str, int]) -> None:
    known = {row["part"]: row for row in _noted(options.results)}
    for part, took in seconds.items():
        known[part] = {"part": part, "seconds": took}
    versions = {
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy")},
    }
    if options.otava:
        versions["apache-otava"] = apache_otava.version(options.otava)
    for name, text in versions.items():
        known[name] = {"part": name, "version": text}
    results.save("run", list(known.values()), options.results)


def _noted(folder: Path) -> list[results.Row]:
    """What is noted of earlier runs, of parts that there still are."""
    rows = results.load("run", folder) if (folder / "run.json").exists() else []
    return [row for row in rows if row["version"] or (folder / f"{row['part']}.json").exists()]


if __name__ == "__main__":
    sys.exit(main())
