"""Reports made for tests of the page: every verdict, and as many results as asked."""

from dataclasses import replace

from building import applied

from perfgate.core.measured import Change, MeasuredBuild, MeasuredMetric
from perfgate.core.verdict import Judgement, Verdict
from perfgate.reports.histories import HistoryPoint, MetricHistory
from perfgate.reports.run_report import (
    SCHEMA_VERSION,
    DocumentedMetric,
    Failure,
    GroupEffort,
    RunFacts,
    RunReport,
    ScenarioFacts,
    TestResult,
)

METRICS = (
    ("output_throughput", "tokens/s", 41_234.0),
    ("request_throughput", "req/s", 41.2),
    ("ttft_median_ms", "ms", 231.4),
    ("ttft_p99_ms", "ms", 913.0),
    ("tpot_mean_ms", "ms", 8.41),
    ("tpot_p99_ms", "ms", 9.93),
    ("e2el_mean_ms", "ms", 8_712.0),
    ("output_speed_per_user", "tokens/s", 118.9),
)
BUILD = MeasuredBuild("tensorrt-llm", "1.3.0", "0a1b2c3d4e5f", "example/engine:1.3.0", "sha256:77")
_CHANGES = {
    Verdict.PASS: (-0.004, (-0.013, 0.006)),
    Verdict.REGRESSION: (-0.071, (-0.093, -0.048)),
    Verdict.IMPROVEMENT: (0.061, (0.044, 0.079)),
    Verdict.INCONCLUSIVE: (-0.018, (-0.041, 0.004)),
}
_KINDS = (
    *(("pass", Verdict.PASS),) * 6,
    ("regression", Verdict.REGRESSION),
    ("improvement", Verdict.IMPROVEMENT),
    ("undecided", Verdict.INCONCLUSIVE),
    ("new", Verdict.NO_BASELINE),
    ("other", Verdict.NOT_COMPARABLE),
    ("failed", Verdict.ERROR),
    ("waived", Verdict.PASS),
    ("lacking", None),
    ("late", None),
    ("cut", None),
)


def judgement(
    verdict: Verdict, metric: str = "output_throughput", baseline: float = 41_400.0, **more: object
) -> Judgement:
    """One with numbers that fit the verdict."""
    change, interval = _CHANGES[verdict]
    made = Judgement(
        metric=metric,
        verdict=verdict,
        baseline=baseline,
        measured=baseline * (1 + change),
        change=change,
        interval=interval,
        band=0.02,
        runs_used=3,
        needs_more_runs=False,
        reason=f"{100 * change:+.1f} %, told in words",
    )
    return replace(made, **more)  # type: ignore[arg-type]


def result(
    kind: str, verdict: Verdict | None, place: int = 0, scenario: str = "b200-made"
) -> TestResult:
    """One test of that kind."""
    name = f"{scenario}-{kind}-c{2 ** (place % 12)}-{place}"
    made = TestResult(
        test=f"perf_tests/test_performance.py::test_load[{name}]",
        name=name,
        scenario=scenario,
        probe=f"c{place}",
        run="20261123-090000-1",
        verdict=verdict,
        rerun=f"pytest perf_tests --run-dir runs/again -k '{name}'",
    )
    if verdict is None:
        why = {"lacking": "lack", "late": "budget", "cut": "unfinished"}[kind]
        reason = {
            "lack": "needs 8×B200, found no GPU",
            "budget": "not enough time left: needs 2 h, 20 min are left",
            "unfinished": "the session ended first",
        }[why]
        return replace(made, why_not=why, reason=reason)
    if verdict == Verdict.ERROR:
        lines = tuple(f"[rank 0] line {number} of the log" for number in range(30))
        failure = Failure("oom", "CUDA ran out of memory", lines, "lower the KV cache fraction")
        return replace(made, failure=failure, build=BUILD)
    made = replace(
        made,
        measured=tuple(MeasuredMetric(name, unit, at, (at,) * 3) for name, unit, at in METRICS),
        build=BUILD,
        compared_with="the baseline of tensorrt-llm 1.2.0, commit 99887766, accepted 2026-10-01",
        starts=3,
    )
    if verdict == Verdict.NO_BASELINE:
        return replace(made, compared_with="no baseline", reason="there is no baseline yet")
    if verdict == Verdict.NOT_COMPARABLE:
        return replace(made, reason="driver: 570.1 here, 565.2 in the baseline")
    judgements: tuple[Judgement, ...] = (
        judgement(verdict),
        judgement(Verdict.PASS, "tpot_mean_ms", 8.3),
    )
    if kind == "regression":
        judgements += (judgement(verdict, against="anchor", mark="NO_CONTROL"),)
    if kind == "waived":
        judgements = (
            judgement(
                Verdict.REGRESSION,
                waiver=applied("known slower sampler, until 2026-12-01"),
            ),
        )
    return replace(
        made,
        judgements=judgements,
        observed=(Change("ttft_p99_ms", 905.0, 913.0, 0.009, (-0.02, 0.04), 3, 0.4),),
        documented=(
            DocumentedMetric(
                "output_throughput", 40_000.0, "tokens/s", "best_practice.md, section 3"
            ),
        ),
    )


def report(number: int = len(_KINDS), *, per_scenario: int = 16, **more: object) -> RunReport:
    """A report of so many results: of all kinds, again and again."""
    results = tuple(
        result(*_KINDS[place % len(_KINDS)], place, f"b200-made-{place // per_scenario}")
        for place in range(number)
    )
    names = tuple(dict.fromkeys(one.scenario for one in results))
    made = RunReport(
        SCHEMA_VERSION,
        runs=(run_facts(),),
        status=1,
        meaning="at least one regression of performance or accuracy",
        synthetic=False,
        results=results,
        scenarios=tuple(
            ScenarioFacts(one, f"Made scenario {one}", "tensorrt-llm", "DeepSeek-R1", "8xB200", 8)
            for one in names
        ),
        efforts=tuple(
            GroupEffort(
                one, "20261123-090000-1", "8xB200", 8, 3, 4, 1, 0, 1_800.0, 600.0, 60.0, "measured"
            )
            for one in names
        ),
    )
    return replace(made, **more)  # type: ignore[arg-type]


def run_facts(**more: object) -> RunFacts:
    """Where the made run was."""
    made = RunFacts(
        id="20261123-090000-1",
        started="2026-11-23T09:00:00+00:00",
        status=1,
        gate=False,
        recording=False,
        machine={
            "host": "node7",
            "cores": 128,
            "cpu": "a CPU",
            "gpus": [{"name": "B200", "driver": "570.1"}],
        },
        versions={"perfgate": "0.1.0", "pytest": "9.2.0"},
        launcher="local",
        arguments=("pytest", "-m", "b200"),
        git={"commit": "4c3100f", "dirty": False},
    )
    return replace(made, **more)  # type: ignore[arg-type]


def histories(of: RunReport, points: int = 30) -> tuple[MetricHistory, ...]:
    """One for each judged test."""
    kinds = ("run", "run", "baseline", "anchor")
    return tuple(
        MetricHistory(
            one.name,
            "output_throughput",
            "tokens/s",
            tuple(
                HistoryPoint(
                    f"{place:012x}",
                    f"1.{place}.0",
                    f"2026-10-{place + 1:02}",
                    41_000.0 + 37 * place + index,
                    (41_000.0 + 37 * place, 41_010.0 + 37 * place, 41_020.0 + 37 * place),
                    "this run" if place == points - 1 else kinds[place % 4],  # type: ignore[arg-type]
                    f"run 202610{place + 1:02}-090000-1",
                )
                for place in range(points)
            ),
            "commits of the engine in their order",
        )
        for index, one in enumerate(of.results)
        if one.judgements
    )
