"""Benchmark of the HTML report: size of a page, time to make it, time until a browser has read it.

    python benchmarks/report_page.py [RESULTS]

Makes a report of 500 results (or so many), with two histories each, and opens it five times in the
headless Chromium that ci/browser/packages.sh installs. The aims: under 2 MB, DOM ready in 1.5 s.
"""

import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from perfgate.core.measurement import Change, MeasuredBuild, MeasuredMetric
from perfgate.core.verdict import Judgement, Verdict
from perfgate.reports.formats.base import report_format
from perfgate.reports.histories import HistoryPoint, MetricHistory
from perfgate.reports.run_report import (
    SCHEMA_VERSION,
    GroupEffort,
    RunFacts,
    RunReport,
    ScenarioFacts,
    TestResult,
)
from perfgate.runs.record import DocumentedMetric

POINTS = 10  # of a sweep, each a result
STORED = 20  # points of a history
BUILD = MeasuredBuild(
    "tensorrt-llm",
    "1.3.0rc2",
    "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
    "nvcr.io/nvidia/tensorrt-llm/release:1.3.0rc2",
    "sha256:" + "ab12" * 16,
)
_GATING = ("output_throughput_per_gpu", "ttft_median_ms")
_OBSERVED = (
    "output_throughput_per_user",
    "output_throughput",
    "tpot_mean_ms",
    "ttft_p99_ms",
    "e2el_mean_ms",
    "request_throughput",
)


def made_report(results: int) -> tuple[RunReport, tuple[MetricHistory, ...]]:
    """A report of so many results, a tenth of them not PASS, and the histories of its metrics."""
    draw = random.Random(17)
    commits = [f"{draw.getrandbits(160):040x}" for _ in range(STORED)]
    found, histories = [], []
    for number in range(results):
        result = _result(number, draw)
        found.append(result)
        histories += [_history(result, one, commits, draw) for one in _GATING]
    scenarios = tuple(dict.fromkeys(one.scenario for one in found))
    report = RunReport(
        SCHEMA_VERSION,
        runs=(_run(),),
        status=1,
        meaning="a regression was found",
        synthetic=False,
        results=tuple(found),
        scenarios=tuple(_scenario(one) for one in scenarios),
        efforts=tuple(
            GroupEffort(
                one, "20261123T080000", "8xB200", 8, 3, 3, 0, 0, 2400.0, 900.0, 0.0, "measured"
            )
            for one in scenarios
        ),
    )
    return report, tuple(histories)


def _result(number: int, draw: random.Random) -> TestResult:
    scenario, point = f"b200-r1-made-{number // POINTS}-serve", number % POINTS
    speed = 100 * 2**point * draw.gauss(1, 0.02)
    change = draw.gauss(0, 0.008) - (0.05 if number % 25 == 0 else 0)
    verdict = Verdict.PASS
    if number % 25 == 0:
        verdict = Verdict.REGRESSION
    elif number % 25 in (7, 19):
        verdict = Verdict.INCONCLUSIVE
    values = {
        "output_throughput_per_gpu": speed,
        "ttft_median_ms": 40 + 10 * point,
        "output_throughput_per_user": 120 / (1 + point / 3),
        "output_throughput": 8 * speed,
    }
    measured = tuple(
        _measured(one, values.get(one, 100.0 + point), draw) for one in (*_GATING, *_OBSERVED)
    )
    return TestResult(
        test=f"perf_tests/test_serving.py::test_serving[{scenario}-c{2**point}]",
        name=f"{scenario}-c{2**point}",
        scenario=scenario,
        probe=f"c{2**point}",
        run="20261123T080000",
        verdict=verdict,
        judgements=(
            _judgement(_GATING[0], speed, verdict, change),
            _judgement(_GATING[1], 40.0 + 10 * point, Verdict.PASS, abs(change) / 20),
        ),
        observed=tuple(
            Change(one.metric, one.value * 0.99, one.value, 0.01, (-0.004, 0.021), 3, 0.4)
            for one in measured[2:]
        ),
        measured=measured,
        documented=(
            DocumentedMetric(_GATING[0], speed * 1.05, "tokens/s", "guide.md, section Serving"),
        ),
        compared_with="baseline of 1.3.0rc1, nearest ancestor, 42 commits before",
        build=BUILD,
        starts=3,
        rerun=f"pytest -k '{scenario}-c{2**point}'",
    )


def _measured(metric: str, value: float, draw: random.Random) -> MeasuredMetric:
    values = tuple(value * draw.gauss(1, 0.004) for _ in range(3))
    unit = "tokens/s" if "throughput" in metric else "ms"
    return MeasuredMetric(metric, unit, statistics.geometric_mean(values), values)


def _judgement(metric: str, value: float, verdict: Verdict, change: float) -> Judgement:
    return Judgement(
        metric=metric,
        verdict=verdict,
        baseline=value / (1 + change),
        measured=value,
        change=change,
        interval=(change - 0.012, change + 0.012),
        band=0.02,
        runs_used=3,
        needs_more_runs=False,
        reason=f"{100 * change:+.1f} % against a band of 2.0 %; 3 fresh starts",
    )


def _history(
    result: TestResult, metric: str, commits: list[str], draw: random.Random
) -> MetricHistory:
    now = next(one for one in result.measured if one.metric == metric)
    points = []
    for number, commit in enumerate(commits):
        is_last = number == len(commits) - 1
        values = now.values if is_last else tuple(one * draw.gauss(1, 0.01) for one in now.values)
        points.append(
            HistoryPoint(
                BUILD.commit if is_last else commit,
                f"1.3.0.dev{number}",
                f"2026-11-{number + 1:02}T08:00:00+00:00",
                statistics.geometric_mean(values),
                values,
                "this run"
                if is_last
                else "anchor"
                if number == 2
                else "baseline"
                if number % 5 == 0
                else "run",
                f"run 202611{number + 1:02}T080000",
            )
        )
    return MetricHistory(
        result.name, metric, now.unit, tuple(points), "engine commits, oldest first"
    )


def _scenario(name: str) -> ScenarioFacts:
    return ScenarioFacts(
        name,
        "DeepSeek-R1 served on B200",
        "tensorrt-llm",
        "DeepSeek-R1-FP4",
        "8xB200",
        8,
        "guide.md",
        "Serving",
        ("b200", "serving"),
    )


def _run() -> RunFacts:
    return RunFacts(
        id="20261123T080000",
        started="2026-11-23T08:00:00+00:00",
        status=1,
        gate=True,
        recording=False,
        machine={
            "host": "node7",
            "cpu": "Grace",
            "cores": 72,
            "memory_bytes": 2**34,
            "gpus": [],
            "os": "Linux",
            "python": "3.11",
        },
        versions={"perfgate": "0.1.0"},
        launcher="local",
        arguments=("pytest", "-m", "b200"),
        git={"commit": "0" * 40, "dirty": False},
    )


def main(results: int) -> None:
    """Make the page, open it, print the figures."""
    report, histories = made_report(results)
    began = time.perf_counter()
    text = report_format["html"](histories).render(report)
    made_s = time.perf_counter() - began
    size = len(text.encode()) / 1e6
    print(f"{results} results: {size:.2f} MB (aim: under 2), made in {made_s:.1f} s")
    with tempfile.TemporaryDirectory(prefix="perfgate-page-") as folder:
        path = Path(folder) / "report.html"
        path.write_text(text, encoding="utf-8")
        ready = sorted(_ready_ms(path) for _ in range(5))
    print(
        f"DOM ready: median {ready[2]:.0f} ms, {ready[0]:.0f} to {ready[-1]:.0f} (aim: under 1500)"
    )


def _ready_ms(path: Path) -> float:
    """From the start of navigation to DOMContentLoaded, in a browser of its own."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for one in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(one)
    driver = webdriver.Chrome(options, webdriver.ChromeService("/usr/bin/chromedriver"))
    try:
        driver.get(path.as_uri())
        timing = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
        return float(driver.execute_script(f"return {timing}"))
    finally:
        driver.quit()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
