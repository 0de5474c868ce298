"""Nights for whole outputs: passed, red, broken, rehearsed and killed; outcomes as tests end.

    PYTHONPATH=tests python tests/reports/night_runs.py

writes the outputs again into tests/data/reports/; look at the difference before it is committed.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from building import (
    SUMS,
    applied,
    group_record,
    judgement,
    lower_accuracy,
    machine,
    outcome,
    with_inert_setting,
)
from lxml import etree, html
from made_runs import facts, verdict_record
from plain_records import record
from run_reports import judged as judged_speed
from run_reports import report, result

from perfgate.core.errors import RunError
from perfgate.core.measurement import (
    Change,
    ChangedQuestions,
    MeasuredBuild,
    MeasuredControl,
    MeasuredMetric,
)
from perfgate.core.plain import to_plain
from perfgate.core.verdict import Judgement, Verdict
from perfgate.reports.charts import ChartSet
from perfgate.reports.formats.base import report_format
from perfgate.reports.formats.junit import properties
from perfgate.reports.outcome_text import render
from perfgate.reports.page import page_of
from perfgate.reports.page.sections import LOG_LINES
from perfgate.reports.run_report import Failure, report_of
from perfgate.reports.run_text import summary, terminal_lines
from perfgate.runs.ended_run import end_of
from perfgate.runs.exit_status import ExitStatus
from perfgate.runs.record import Record, SelectedTest, SkippedRecord, VerdictRecord

FOLDER = Path(__file__).parents[1] / "data" / "reports"
BUILD = MeasuredBuild("tensorrt-llm", "1.3.0", "0a1b2c3d4e5f", "example/engine:1.3.0")
BASELINE = "tensorrt-llm 1.2.0 of 2026-11-05, accepted by Ada, 5 fresh starts"
SPEED, WAIT = "output_throughput", "ttft_p99_ms"
_UNITS = {SPEED: "tokens/s", WAIT: "ms", SUMS: "fraction"}
_BEFORE = {SPEED: 41_400.0, WAIT: 900.0, SUMS: 0.94}


def judged(metric: str, verdict: Verdict, change: float, **changes: Any) -> Judgement:
    """A judgement with numbers that fit the change; its band is 2 % or 5 %."""
    before = _BEFORE[metric]
    after = before + change if metric == SUMS else before * (1 + change)
    band = 0.02 if metric == SPEED else 0.05
    given = {
        "baseline": before,
        "measured": after,
        "change": change,
        "interval": (change - 0.012, change + 0.012),
        "band": band,
        "runs_used": 2,
        "needs_more_runs": False,
        "reason": f"{100 * change:+.1f} %, the band is {100 * band:.1f} %; 2 fresh starts",
    }
    return Judgement(metric, verdict, **{**given, **changes})


def verdict(
    test: str, result: Verdict, *judgements: Judgement, observed: Sequence[Change] = (), **more: Any
) -> Record:
    """The record of a test with these judgements, measured twice."""
    values = {SPEED: 41_234.0, WAIT: 913.0}
    values |= {one.metric: one.measured for one in judgements if one.measured is not None}
    measured = [
        MeasuredMetric(name, _UNITS.get(name, "tokens/s"), value, (value * 0.99, value * 1.01))
        for name, value in values.items()
    ]
    changes = {
        "judgements": list(judgements),
        "observed": list(observed),
        "measured": measured if result != Verdict.ERROR else [],
        "build": BUILD,
        "compared_with": BASELINE,
        "rerun": f"pytest 'perf_tests/test_serving.py::test_serving[{test}]'",
        **more,
    }
    return record("verdict", verdict_record(test, result, **changes))


def skipped(test: str, why: str, reason: str) -> Record:
    scenario, _, probe = test.partition("-")
    subject = {"name": test, "scenario": scenario, "probe": probe}
    return record("skipped", subject, test=test, why=why, reason=reason)


def _failed(kind: str, message: str, *evidence: str) -> dict[str, Any]:
    error = {"error_class": kind, "message": message, "evidence": [*evidence]}
    return {"error": {**error, "next_step": "lower the KV cache fraction"}, "compared_with": ""}


def _effort(scenario: str, **changes: Any) -> Record:
    return group_record(scenario=scenario, hardware="8xB200", **changes)


def run_of(ends: Sequence[Record], *others: Record, unfinished: Sequence[str] = ()) -> list[Record]:
    """The records of a run: what was selected, its scenarios, these lines."""
    subjects = {
        one.test: SelectedTest(one.name, one.scenario, one.probe)
        for one in ends
        if isinstance(one, VerdictRecord | SkippedRecord)
    }
    for test in unfinished:
        scenario, _, probe = test.partition("-")
        subjects[test] = SelectedTest(test, scenario, probe)
    scenarios = dict.fromkeys(one.scenario for one in subjects.values())
    about = {"engine_name": "tensorrt-llm", "model": "DeepSeek-R1-FP4", "hardware": "8xB200"}
    return [
        record("selected", tests=list(subjects), subjects=subjects),
        *(
            record("scenario", about, scenario=one, title=f"Model {one}", gpus=8)
            for one in scenarios
        ),
        *ends,
        *others,
    ]


def _ended(status: ExitStatus, *failed: str) -> Record:
    return record("ended", status=status.value, gate=True, failed=[*failed])


def passed_night(scenarios: int = 2, points: int = 3) -> list[Record]:
    """Every test passed."""
    ends = [
        verdict(
            f"r1s{number}-c{2**point}",
            Verdict.PASS,
            judged(SPEED, Verdict.PASS, -0.001),
            judged(WAIT, Verdict.PASS, 0.004),
        )
        for number in range(scenarios)
        for point in range(points)
    ]
    efforts = (_effort(f"r1s{number}") for number in range(scenarios))
    return run_of(ends, *efforts, _ended(ExitStatus.PASSED))


def red_night() -> list[Record]:
    """Regressions, one of them waived, broken answers, undecided tests, and tests not judged."""
    lost, undecided, well = Verdict.REGRESSION, Verdict.INCONCLUSIVE, Verdict.PASS
    waiver = applied("Ada lets up to -8.0 % through until 2026-12-01: known sampler, example#7")
    broken = "the score of sums fell to a half: the speed of broken answers is no evidence"
    control = MeasuredControl("baseline", MeasuredBuild("tensorrt-llm", "1.2.0", "abc123"), 2)
    questions = ChangedQuestions(SUMS, "baseline", 60, 8, 2, ("q1", "q2"), ("q9",))
    missed = [
        {"metric": WAIT, "value": 700.0, "unit": "ms", "source": "guide.md, H200", "change": 0.304}
    ]
    moved = (
        Change("e2el_mean_ms", 8000.0, 9600.0, 0.2, (0.15, 0.25), 2, 1e-6),
        Change("itl_p99_ms", 10.0, 10.1, 0.01, (-0.02, 0.04), 2, 0.4),
    )
    ends = [
        verdict("r1-c1", well, judged(SPEED, well, -0.001)),
        verdict(
            "r1-c4",
            lost,
            judged(SPEED, lost, -0.123, controls_used=2),
            judged(WAIT, lost, 0.15),
            controls=[control],
            observed=moved,
            documented=missed,
        ),
        verdict("r1-c16", lost, judged(SPEED, lost, -0.21), settings=["tp: one core has no peers"]),
        verdict("r1-c64", well, judged(SPEED, lost, -0.06, waiver=waiver)),
        verdict(
            "r1-sums",
            lost,
            judged(SUMS, lost, -0.4, reason="40.0 points lower, BROKEN_OUTPUT"),
            changed_questions=[questions],
        ),
        verdict("v3-c1", undecided, judged(SPEED, undecided, -0.018), notes=[broken]),
        verdict("v3-c4", undecided, reason=broken, measured=[], starts=0),
        verdict("v3-c16", Verdict.IMPROVEMENT, judged(SPEED, Verdict.IMPROVEMENT, 0.08)),
        verdict("v3-c64", well, judged(SPEED, well, -0.03, mark="HOST_SHIFT", controls_used=2)),
        verdict("new-c1", Verdict.NO_BASELINE, reason="there is no baseline yet", compared_with=""),
        verdict("new-c4", Verdict.NO_BASELINE, reason="there is no baseline yet", compared_with=""),
        verdict("old-c1", Verdict.NOT_COMPARABLE, reason="driver: 570.1 here, 565.2 there"),
        skipped("big-c1", "lack", "needs 16×B200, found 8"),
        skipped("big-c4", "lack", "needs 16×B200, found 8"),
        skipped("late-c1", "budget", "not run: needs about 1 h 10 min, 25 min are left"),
    ]
    disturbed = {"scenario": "r1", "probe": "c4", "start": 1, "role": "new", "disturbed": ["hot"]}
    return run_of(
        ends,
        record("measurement", disturbed),
        _effort("r1"),
        _effort("v3", starts={"planned": 2, "made": 2, "without_sharing": 8, "again": 0}),
        _ended(ExitStatus.REGRESSION),
    )


def broken_night() -> list[Record]:
    """Most tests failed, one never finished, a worker died, a waiver expired."""
    memory = _failed("oom", "the server ran out of GPU memory", "CUDA out of memory", "Traceback")
    ends = [
        *(verdict(f"r1-c{2**point}", Verdict.ERROR, **memory) for point in range(7)),
        verdict("v3-c1", Verdict.ERROR, **_failed("hang", "no log line for 600 s", "rank 0")),
        verdict("v3-c4", Verdict.PASS, judged(SPEED, Verdict.PASS, -0.001)),
    ]
    fault = "waivers.yaml, line 3: r1-c4 output_throughput: expired on 2026-11-20"
    return run_of(
        ends,
        record("waiver_fault", kind="expired", message=fault),
        _ended(ExitStatus.ERROR, "perf_tests/test_other.py::test_of_others"),
        unfinished=["v3-c16"],
    )


def killed_night() -> list[Record]:
    """A rehearsal that was resumed and killed: nothing compared, texts of others everywhere."""
    unjudged, builds = (
        Verdict.NO_BASELINE,
        [MeasuredBuild("x", f"1.{n}", f"1.{n}") for n in range(7)],
    )
    alike = {"compared_with": "", "reason": "none yet\n\x1b[2Kexit status 0: all passed"}
    evil = "unknown engine\n  found: sglangg\n  fix: did you mean sglang?"
    inert = "tp: one core has no peers"
    limited = ["limited: 48 of 1000", inert]
    ends = [
        *(verdict(f"r1-c{n}", unjudged, build=one, **alike) for n, one in enumerate(builds)),
        verdict("v3-c1", unjudged, settings=limited, synthetic=True, **alike),
        verdict(
            "v4-c1",
            Verdict.REGRESSION,
            judged(SPEED, Verdict.REGRESSION, -0.1),
            settings=[inert],
            injected=["a=1", "b=2"],
            extra_options="server --workers 4",
            resumed_from="2026-11-21T04:00:00+00:00",
        ),
        verdict("v4-c4", Verdict.REGRESSION, measured=[], build=None),
        skipped("big-c64", "lack", evil),
        skipped("big-c128", "lack", evil),
    ]
    candidate = {"hardware": "cpu", "commit": "abc", "again": "pytest --record", "wanted": 3}
    of_file = {name: {**candidate, "scenario": name, "file": f"/my {name}.json"} for name in "abc"}
    return run_of(
        ends,
        record("resumed", at="2026-11-05T18:00:00+00:00", groups=["a"], repeats=["b", "c"]),
        _effort("r1"),
        _effort("v3", synthetic=True),
        record("candidate", of_file["a"], sessions=1, synthetic=False),
        record("not_recorded", reasons=["a: old"]),
        record("candidate", of_file["a"], sessions=2, synthetic=False),
        record("candidate", of_file["b"], sessions=1, synthetic=False),
        record("candidate", of_file["b"], sessions=9, synthetic=False),
        record("candidate", of_file["c"], sessions=3, synthetic=True),
        record("candidate", {**of_file["c"], "file": "/d"}, sessions=3, synthetic=False),
        record("candidate", {**of_file["c"], "file": "/d"}, sessions=1, synthetic=False),
        record("not_recorded", reasons=["a: new"]),
        record("noise_kept", files=["/n.json"]),
        unfinished=["v5-c1"],
    )


NIGHTS = {
    "passed": passed_night,
    "red": red_night,
    "broken": broken_night,
    "killed": killed_night,
}
FACTS = {
    "killed": {
        "machine": to_plain(machine("NVIDIA H200")),
        "site_commands": {"before": "set it", "after": "unset it"},
        "arguments": ["pytest", "-m", "b200", "--gate"],
        "synthetic": True,
    }
}


def outputs(records: Sequence[Record], **changes: Any) -> dict[str, str]:
    """Name of the file → the whole text that a person or a program gets of the run."""
    end = end_of(records)
    status = None if end is None else ExitStatus(end.status)
    run = facts("20261123-1", "01:00", **changes)
    read = report_of(run, records)
    made = {
        report_format[name].file: report_format[name]().render(read)
        for name in ("markdown", "junit", "json", "annotations", "html")
    }
    page = made.pop("report.html")
    return {
        "terminal.txt": "".join(f"{line}\n" for line, _ in terminal_lines(read, status)),
        "summary.md": summary(read, status),
        "first_screen.txt": first_screen_text(page),
        **made,
    }


def page_text() -> str:
    """All that a reader sees of a page: a loss, an error and changed questions in full."""
    lost = judged_speed(Verdict.REGRESSION)
    both = (lost, replace(lost, against="anchor", mark="NO_CONTROL"))
    moved = Change(WAIT, 4.9, 5.0, 0.02, (-0.02, 0.06), 2, 0.4)
    lines = tuple(f"line {number}" for number in range(LOG_LINES + 3))
    changed = tuple(
        ChangedQuestions(f"{SUMS}:{name}", "baseline", 100, 3, 1, ("a", "b"), ("c",))
        for name in ("strict", "flexible")
    )
    results = (
        result(0, Verdict.REGRESSION, judgements=both, observed=(moved,)),
        result(1, Verdict.ERROR, failure=Failure("hang", "no answer", lines, "look there")),
        result(2, changed=changed),
    )
    told = {"suspicion": "the host moved", "waiver_faults": ("old",), "merged": ("retry",)}
    page = page_of(report(*results, **told), ChartSet((), "no charts"), lambda: None)
    return first_screen_text(page, "//body")


def outcome_texts() -> str:
    """What pytest prints of each test as it ends, and the properties of its JUnit XML."""
    control = MeasuredControl("baseline", MeasuredBuild("llama.cpp", "1.2.0", "abc123"), 2)
    of_anchor = MeasuredControl("anchor", None, 0, "its image is gone")
    image = MeasuredBuild("llama.cpp", "1.3.0", "def456", "engine:1", "engine@sha256:2")
    shifted = judgement(verdict=Verdict.PASS, mark="HOST_SHIFT", controls_used=2)
    waived = judgement(against="anchor", change=-0.2, waiver=applied("let through by Ada"))
    unknown = dict.fromkeys(("baseline", "measured", "change", "interval", "band"))
    error = RunError("oom", "the server ended", evidence=("CUDA out of memory",))
    failed = {"verdict": Verdict.ERROR, "judgements": (), "measurements": (), "compared_with": ""}
    of_before = {"build": image, "resumed_from": "2026-11-21T04:00:00+00:00"}
    made = (
        outcome(injected=("a=1", "b=2"), synthetic=True, **of_before),
        outcome(verdict=Verdict.PASS, judgements=(shifted,), controls=(control, of_anchor)),
        outcome(judgements=(judgement(), waived, lower_accuracy(), judgement(**unknown))),
        outcome(error=error, **failed),
        with_inert_setting(),
    )
    return "\n".join(
        f"{render(one, reproduce='pytest -k it')}\n"
        + "".join(f"    {name} = {text}\n" for name, text in properties(one))
        for one in made
    )


_BLOCKS = {"li", "tr", "h1", "h2", "p", "dt", "summary"}


def first_screen_text(page: str, place: str = "//section[@id='verdict']") -> str:
    """What a reader sees of it, a line each; without drawings."""
    (screen,) = html.document_fromstring(page).xpath(place)
    unseen = (f"local-name()='{name}'" for name in ("svg", "script", "style"))
    for unread in screen.xpath(f".//*[{' or '.join(unseen)}]"):
        unread.drop_tree()
    screen.tail = None
    lines = [""]
    for event, one in etree.iterwalk(screen, ("start", "end")):
        if event == "start" and one.tag in _BLOCKS:
            lines.append("")
        text = one.text if event == "start" else one.tail
        if text and text.strip():
            goes_on = one.tag == "wbr"  # behind a place where a line may be broken
            lines[-1] += f"{'' if goes_on else ' '}{' '.join(text.split())}"
    return "".join(f"{line.strip()}\n" for line in lines if line.strip())


def main() -> None:
    (FOLDER / "outcomes.txt").write_text(outcome_texts(), encoding="utf-8")
    (FOLDER / "page.txt").write_text(page_text(), encoding="utf-8")
    for night, records in NIGHTS.items():
        folder = FOLDER / night
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in outputs(records(), **FACTS.get(night, {})).items():
            (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
