"""Reports that the browser is shown: one of everything, and one of hostile texts."""

from dataclasses import replace

from msgspec import structs

from benchmarks.report_page import made_report
from perfgate.core.verdict import Verdict
from perfgate.reports.histories import MetricHistory
from perfgate.reports.run_report import Failure, RunReport, TestResult

# What must stay text: markup, a link that runs a script, marks of direction, what ends an element.
HOSTILE = (
    "<script>window.attacked=1</script>",
    '"><img src=x onerror="window.attacked=2">',
    "<a href='javascript:window.attacked=3'>here</a>",
    "</script></title></style><script>window.attacked=4</script>",
    "\u202eright to left\u2066 and \u200bunseen",
    "{{ 7 * 7 }} ${7 * 7} datum['attacked']",
)
LONG = "a-name-of-4000-characters-" + "x" * 3974
MESSAGE = "CUDA ran out of memory while the KV cache was allocated"


def whole_report() -> tuple[RunReport, tuple[MetricHistory, ...]]:
    """20 results of every kind: passed, regressed, undecided, failed, without baseline, not run."""
    report, histories = made_report(20)
    results = list(report.results)
    lines = tuple(f"[rank 0] line {number} of the log" for number in range(12))
    results[3] = replace(
        results[3],
        verdict=Verdict.ERROR,
        judgements=(),
        failure=Failure("oom", MESSAGE, lines, "lower the KV cache fraction"),
    )
    results[4] = replace(
        results[4], verdict=Verdict.NO_BASELINE, judgements=(), reason="there is no baseline yet"
    )
    results[5] = replace(
        results[5],
        verdict=None,
        skip_reason="lack",
        reason="needs 8×B200, found no GPU",
        judgements=(),
        measured=(),
        observed=(),
    )
    return replace(report, results=tuple(results), synthetic=False), histories


def hostile_report() -> tuple[RunReport, tuple[MetricHistory, ...]]:
    """Every text that a name, a log or a YAML file could bring is one that would do harm."""
    report, histories = made_report(len(HOSTILE) + 1)
    names = (*HOSTILE, LONG)
    changed = {one.name: name for one, name in zip(report.results, names, strict=True)}
    results = tuple(_hostile(one, changed[one.name]) for one in report.results)
    return (
        replace(report, results=results, suspicion=HOSTILE[0], waiver_faults=HOSTILE),
        tuple(_hostile_history(one, changed[one.name]) for one in histories),
    )


def _hostile(result: TestResult, text: str) -> TestResult:
    build = result.build
    assert build is not None
    return replace(
        result,
        test=f"{result.test}{text}",
        name=text,
        probe=text,
        verdict=Verdict.REGRESSION,
        reason=text,
        judgements=tuple(
            replace(one, verdict=Verdict.REGRESSION, reason=text) for one in result.judgements
        ),
        compared_with=text,
        build=replace(build, commit=text, image=text),
        rerun=text,
        notes=(text,),
        disturbances=(text,),
        failure=Failure("crash", text, HOSTILE, text),
    )


def _hostile_history(history: MetricHistory, text: str) -> MetricHistory:
    points = tuple(
        structs.replace(one, commit=f"{number}{text}", version=text, source=text, note=text)
        for number, one in enumerate(history.points)
    )
    return replace(history, name=text, points=points, order=text)
