"""Run reports for tests: of any size, and one in which every text is hostile."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from building import applied

from perfgate.core.measurement import MeasuredBuild, MeasuredControl, MeasuredMetric
from perfgate.core.verdict import Judgement, Verdict
from perfgate.reports.run_report import (
    SCHEMA_VERSION,
    DocumentedMetric,
    Failure,
    GroupEffort,
    RunFacts,
    RunReport,
    ScenarioFacts,
    Shard,
    TestResult,
)

BUILD = MeasuredBuild("tensorrt-llm", "1.3.0", "0a1b2c3d4e5f", "example/engine:1.3.0")
_OTHERS = ("total_token_throughput", "ttft_mean_ms", "ttft_p99_ms", "e2el_mean_ms", "itl_mean_ms")


def judged(verdict: Verdict, change: float = -0.05, **changes: Any) -> Judgement:
    """A judgement of the output throughput."""
    made = Judgement(
        metric="output_throughput",
        verdict=verdict,
        baseline=1000.0,
        measured=1000.0 * (1 + change),
        change=change,
        interval=(change - 0.01, change + 0.01),
        band=0.02,
        runs_used=2,
        needs_more_runs=False,
        reason=f"{100 * -change:.1f} % lower, interval and band as told",
    )
    return replace(made, **changes)


def result(number: int, verdict: Verdict | None = Verdict.PASS, **changes: Any) -> TestResult:
    """One test with two judged metrics and some that are only measured."""
    scenario, probe = f"b200-scenario-{number // 5:03d}", f"c{2 ** (number % 5)}"
    name = f"{scenario}-{probe}"
    change = {Verdict.REGRESSION: -0.05 - number / 10_000, Verdict.IMPROVEMENT: 0.06}.get(
        verdict or Verdict.PASS, -0.001
    )
    value = 1000.0 * (1 + change)
    made = TestResult(
        test=f"perf_tests/test_serving.py::test_serving[{name}]",
        name=name,
        scenario=scenario,
        probe=probe,
        run="20261123-1",
        verdict=verdict,
    )
    if verdict is None:
        made = replace(made, skip_reason="lack", reason="needs 8 GPUs of type B200, there is none")
        return replace(made, **changes)
    rerun = f"PERFGATE_MODELS=/models pytest '{made.test}' --launcher=docker"
    made = replace(made, build=BUILD, rerun=rerun, starts=2)
    if verdict == Verdict.ERROR:
        evidence = tuple(f"log line {line}" for line in range(200))
        failure = Failure("oom", "the server ran out of GPU memory", evidence, "use fewer tokens")
        return replace(replace(made, failure=failure), **changes)
    tpot = judged(Verdict.PASS, 0.001, metric="tpot_mean_ms", baseline=20.0, measured=20.02)
    made = replace(
        made,
        compared_with="tensorrt-llm 1.2.0 of 2026-11-05, accepted by Ada, 5 fresh starts",
        judgements=(judged(verdict, change), tpot),
        measured=(
            MeasuredMetric("output_throughput", "tokens/s", value, (value - 1, value + 1)),
            MeasuredMetric("tpot_mean_ms", "ms", 20.02, (20.0, 20.04)),
            *(MeasuredMetric(one, "ms", 5.0, (5.0, 5.0)) for one in _OTHERS),
        ),
        documented=(DocumentedMetric("output_throughput", 1100.0, "tokens/s", "guide.md, H200"),),
    )
    return replace(made, **changes)


def verdicts(number: int) -> list[Verdict | None]:
    """As many as asked for, with a few of each kind among many that passed."""
    few = [Verdict.REGRESSION, Verdict.INCONCLUSIVE, Verdict.ERROR, None, Verdict.IMPROVEMENT]
    few += [Verdict.NO_BASELINE, Verdict.NOT_COMPARABLE]
    return [few[place % 20] if place % 20 < len(few) else Verdict.PASS for place in range(number)]


def report(*results: TestResult, **changes: Any) -> RunReport:
    """A run with these results."""
    scenarios = tuple(dict.fromkeys(one.scenario for one in results))
    run = RunFacts(
        id="20261123-1",
        started="2026-11-23T01:00:00+00:00",
        status=1,
        gate=True,
        recording=False,
        machine={"host": "node7", "gpus": ["B200"] * 8},
        versions={"perfgate": "0.1.0"},
        launcher="local",
        arguments=("-m", "b200"),
        git={"commit": "abc123", "dirty": False},
    )
    efforts = (
        GroupEffort(one, run.id, "8xB200", 8, 2, 3, 1, 1, 1800.0, 300.0, 0.0, "measured")
        for one in scenarios
    )
    made = RunReport(
        SCHEMA_VERSION,
        runs=(run,),
        status=1,
        meaning="at least one regression of performance or accuracy",
        synthetic=False,
        results=results,
        scenarios=tuple(ScenarioFacts(one, title=f"Title of {one}", gpus=8) for one in scenarios),
        efforts=tuple(efforts),
    )
    return replace(made, **changes)


def of_size(number: int) -> RunReport:
    """A run of so many tests, with a few of each verdict."""
    return report(*(result(place, verdict) for place, verdict in enumerate(verdicts(number))))


HOSTILE = (
    "<script>alert(1)</script>",
    "]]> --> <!-- <![CDATA[",
    "\x1b]0;owned\x07\x1b[31m\x00\x0b\u202egnp.\u2066",
    "::error title=x::owned\n::set-output name=a::b\r\n::stop-commands::x\n##[error]owned",
    "${{ secrets.TOKEN }} $(touch /tmp/owned) `id`",
    "`code` ``two`` ```\n```\n# heading\n| a | b |\n|---|---|\n/merge\n</details></table>",
    '@octocat #123 !45 GH-26 owner/repo#1 ~"label" %"milestone" &1 $1 ^alert#1 :tada:',
    "[link](https://evil.example) ![image](https://evil.example/a.png) <https://evil.example>",
    "https://evil.example www.evil.example a@evil.example javascript:alert(1)",
    "\\|*bold* _em_ ~~gone~~ <img src=x onerror=alert(1)> <a href='javascript:1'>x</a> &lt;b&gt;",
    "half \ud83d of a character \ufffe\uffff",
    '" onmouseover="alert(1) \' x={} }, \\" \\n # EOF\n# EOF\n- item\n1. item\n    code\n\tcode',
    "x" * 4000 + "|" + "`" * 40 + "<b>" * 30,
)


def hostile(*texts: str, metrics: bool = True) -> RunReport:
    """A report in which every text that can hold one is hostile, names among them; all verdicts.

    Args:
        texts: what it holds; none: all of `HOSTILE`.
        metrics: whether names of metrics are hostile too, of which no run's record is read.
    """
    texts = texts or HOSTILE
    results = []
    few = [*Verdict, None, Verdict.REGRESSION, Verdict.ERROR]
    for place in range(max(len(few), len(texts))):
        text = texts[place % len(texts)]
        made = result(place, few[place % len(few)])
        if made.judgements:
            first = replace(
                made.judgements[0], notes=(text,), waiver=applied(text) if place % 3 == 0 else None
            )
            unknown = [replace(first, metric=text, waiver=None)] if metrics else []
            made = replace(made, judgements=(first, *unknown, *made.judgements[1:]))
        more = {"injected": (text,), "notes": (text,), "settings": (text,), "disturbances": (text,)}
        control = MeasuredControl("baseline", None, 0, text, text)
        measured = (*made.measured, MeasuredMetric(text, text, 1.0, (1.0,)))
        made = replace(
            made, controls=(control,), measured=measured if made.measured else (), **more
        )
        results.append(_texts(made, lambda old, text=text, place=place: f"{old}{place}{text}"))
    whole = report(*results)
    text = "".join(texts)
    shard = Shard(1, 2, text, text, ((text,),))
    run = replace(
        whole.runs[0],
        machine={text: text, "gpus": [text]},
        versions={text: text},
        git={"branch": text, "commit": text},
        arguments=(text,),
        shard=shard,
    )
    return replace(
        _texts(whole, lambda old: old + text, deep=False),
        runs=(_texts(run, lambda old: old + text),),
        scenarios=tuple(_texts(one, lambda old: old + text) for one in whole.scenarios),
        efforts=tuple(_texts(one, lambda old: old + text) for one in whole.efforts),
        waiver_faults=(text,),
        suspicion=text,
        without_controls=text,
        merged=(text,),
    )


_OURS = ("skip_reason", "against", "mark", "metric", "unit")  # our own words, or made above


def _texts(value: Any, change: Callable[[str], str], *, deep: bool = True) -> Any:
    """The dataclass with its free texts changed, and those of what it holds."""
    made = {}
    for one in fields(value):
        held = getattr(value, one.name)
        if isinstance(held, str) and not isinstance(held, Verdict) and one.name not in _OURS:
            made[one.name] = change(held)
        elif deep and is_dataclass(held):
            made[one.name] = _texts(held, change)
        elif deep and isinstance(held, tuple) and held:
            made[one.name] = tuple(
                _texts(part, change)
                if is_dataclass(part)
                else change(part)
                if isinstance(part, str)
                else part
                for part in held
            )
    return replace(value, **made)
