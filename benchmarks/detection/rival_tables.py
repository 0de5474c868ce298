"""Tables of creeping losses and of the rules of today."""

from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.detection.creep import COMMITS
from benchmarks.detection.draws import NOISES
from benchmarks.detection.error_rates import standard_error
from benchmarks.detection.markdown import percent, table
from benchmarks.detection.results import Row, load
from benchmarks.detection.rivals import LOSSY, OURS
from benchmarks.detection.rows import rivals_of


def _creep(folder: Path) -> str:
    rows = [
        [
            row["noise"],
            f"{row['step']:g}",
            str(row["anchor"]) if row["anchor"] else "none",
            percent(row["alarmed"], 1),
            "–" if row["loss"] is None else f"{row['loss']:.2f}",
        ]
        for row in load("creep", folder)
    ]
    heads = ["noise", "loss a commit, in bands", "anchor, values"]
    ends = [f"alarm within {COMMITS} commits, %", "median loss at the alarm, in bands"]
    return table([*heads, *ends], rows)


def _by_rule(metric: str, folder: Path) -> dict[str, dict[tuple[str, float], Row]]:
    """Rule → (noise, loss) → row, in the order of the results."""
    found: dict[str, dict[tuple[str, float], Row]] = {}
    for row in rivals_of(metric, folder):
        found.setdefault(row["rule"], {})[row["noise"], row["loss"]] = row
    return found


def _given(rule: str, row: Row) -> list[str]:
    return [str(row["base"]), f"1 to {row['new']}" if rule in OURS.values() else str(row["new"])]


def _false(metric: str) -> Callable[[Path], str]:
    def made(folder: Path) -> str:
        rows = [
            [
                rule,
                *_given(rule, mine["real", 0.0]),
                *(
                    percent(mine[kind, 0.0]["alarms"]) if (kind, 0.0) in mine else "–"
                    for kind in NOISES
                ),
            ]
            for rule, mine in _by_rule(metric, folder).items()
        ]
        return table(["rule: false alarms %", "accepted", "new", *NOISES], rows)

    return made


def _found(metric: str) -> Callable[[Path], str]:
    def made(folder: Path) -> str:
        rows, losses = [], [0.0]
        for rule, mine in _by_rule(metric, folder).items():
            losses = sorted({loss for _, loss in mine})
            rows.append(
                [
                    rule,
                    *(
                        percent(mine[kind, loss]["alarms"], 1)
                        for kind in LOSSY
                        for loss in losses[1:]
                    ),
                    *(f"{mine['real', loss]['starts']:.2f}" for loss in (0.0, losses[-1])),
                ]
            )
        heads = [f"{kind}: {loss:.0%} loss" for kind in LOSSY for loss in losses[1:]]
        ends = ["starts, unchanged", f"at {losses[-1]:.0%} loss"]
        return table(["rule: found %", *heads, *ends], rows)

    return made


def _rivals_trials(folder: Path) -> str:
    ours, otava = load("rivals", folder)[0]["trials"], load("otava", folder)[0]["trials"]
    return (
        f"{ours:,} trials a cell (standard error {percent(standard_error(0.5, ours))} points at "
        f"most); Otava, which takes milliseconds a series, on the first {otava:,} of the same "
        f"trials ({percent(standard_error(0.5, otava))} points at most)."
    )


def _run(folder: Path) -> str:
    rows = load("run", folder)
    seconds = [[row["part"], str(row["seconds"])] for row in rows if row.get("seconds") is not None]
    versions = ", ".join(f"{row['part']} {row['version']}" for row in rows if row.get("version"))
    total = str(sum(int(took) for _, took in seconds))
    return f"{versions}.\n\n" + table(["part", "seconds"], [*seconds, ["together", total]])


TABLES: Mapping[str, Callable[[Path], str]] = {
    "creep": _creep,
    "false-throughput": _false("output_throughput"),
    "found-throughput": _found("output_throughput"),
    "false-ttft": _false("ttft_median_ms"),
    "found-ttft": _found("ttft_median_ms"),
    "rivals-trials": _rivals_trials,
    "run": _run,
}
