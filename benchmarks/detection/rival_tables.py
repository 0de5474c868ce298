"""Tables of whole pipelines, of several metrics, of creeping losses, and of the rules of today."""

from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.detection.creep import COMMITS
from benchmarks.detection.error_rates import standard_error
from benchmarks.detection.markdown import percent, table
from benchmarks.detection.results import load
from benchmarks.detection.rows import LOSS, NOISE, rivals_of


def _pipelines(folder: Path) -> str:
    rows = [
        [
            NOISE[row["noise"]],
            str(row["n_base"]),
            f"{row['band']:g}",
            f"{row['alpha']:g}",
            percent(row["regression"], 4),
            f"{percent(row['any_alarm'])} ± {percent(row['any_alarm_error'])}",
            percent(row["all_pass"], 1),
        ]
        for row in load("pipelines", folder)
    ]
    heads = ["noise", "baseline runs", "band, sigma", "alpha", "one test: false alarm %"]
    return table([*heads, "120 tests: any false alarm %", "120 tests: all PASS %"], rows)


def _holm(folder: Path) -> str:
    rows = [
        [
            row["shared"],
            str(row["metrics"]),
            LOSS[row["loss"]],
            *(
                percent(row[name])
                for name in ("plain", "holm", "plain_undecided", "holm_undecided")
            ),
        ]
        for row in load("holm", folder)
    ]
    heads = ["metrics' noise", "metrics", "first metric", "each at alpha: REGRESSION %"]
    return table([*heads, "Holm: REGRESSION %", "plain: undecided %", "Holm: undecided %"], rows)


def _creep(folder: Path) -> str:
    rows = [
        [
            f"{row['step']:g}",
            str(row["anchor"]) if row["anchor"] else "none",
            percent(row["alarmed"], 1),
            "–" if row["loss"] is None else f"{row['loss']:.2f}",
        ]
        for row in load("creep", folder)
    ]
    heads = ["loss a commit, in bands", "anchor, values", f"alarm within {COMMITS} commits, %"]
    return table([*heads, "median loss at the alarm, in bands"], rows, left=0)


def _rivals(metric: str) -> Callable[[Path], str]:
    def made(folder: Path) -> str:
        found = rivals_of(metric, folder)
        losses = sorted({row["loss"] for row in found})
        rows = []
        for rule in dict.fromkeys(row["rule"] for row in found):
            mine = {(row["noise"], row["loss"]): row for row in found if row["rule"] == rule}
            still = mine["gauss", 0.0]
            rows.append(
                [
                    rule,
                    str(still["base"]),
                    f"1 to {still['new']}" if rule == "perfgate" else str(still["new"]),
                    percent(still["alarms"]),
                    percent(mine["outliers", 0.0]["alarms"]),
                    *(percent(mine["gauss", loss]["alarms"], 1) for loss in losses[1:]),
                    f"{still['starts']:.2f}",
                    f"{mine['gauss', losses[-1]]['starts']:.2f}",
                ]
            )
        heads = ["rule", "accepted runs given", "new starts given", "false alarms %"]
        found_at = [f"found at {loss:.0%} loss, %" for loss in losses[1:]]
        ends = ["mean new starts, unchanged", f"at {losses[-1]:.0%} loss"]
        return table([*heads, "the same with outliers %", *found_at, *ends], rows)

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
    "pipelines": _pipelines,
    "holm": _holm,
    "creep": _creep,
    "rivals-throughput": _rivals("output_throughput"),
    "rivals-ttft": _rivals("ttft_median_ms"),
    "rivals-trials": _rivals_trials,
    "run": _run,
}
