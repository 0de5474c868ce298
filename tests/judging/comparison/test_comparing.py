"""Comparing two sides: what is matched, what must agree, and what is judged how."""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from building import baseline, entry
from plain_records import record
from plain_values import judge_performance
from sides_made import FINGERPRINT, SUMS, aiperf, measurement, run, scaled, throughputs
from tables import each

from perfgate.baselines import Store
from perfgate.core.durable_files import append_line
from perfgate.core.errors import InputError
from perfgate.core.measurement import Measurement
from perfgate.core.rule import Rule
from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.assembly.learnt_noise import NO_HISTORY
from perfgate.judging.comparison.comparison import (
    Comparison,
    ComparisonOptions,
    ProbeComparison,
    compare,
)
from perfgate.judging.comparison.sides import Fact, differences, read_side, reported_facts
from perfgate.judging.rules.noise import OWN_DOF, OWN_SIGMA
from perfgate.runs.record import as_line

DATA = Path(__file__).parents[2] / "data"
SPEED = "output_throughput"
VALUES = {SPEED: 100.0, "tpot_mean_ms": 10.0, "ttft_p99_ms": 50.0}
Make = Callable[[Path], Path]
LM_EVAL = next((DATA / "lm_eval").rglob("results*.json"))
TWO = [measurement({SPEED: 100.0}, probe=probe) for probe in ("c1", "c4")]


def compared(a: Path, b: Path, **options: Any) -> Comparison:
    return compare(read_side(a), read_side(b), ComparisonOptions(**options))


def only(comparison: Comparison) -> ProbeComparison:
    (probe,) = comparison.probes
    return probe


def like_gate(*values: Any, **settings: Any) -> Judgement:
    """The gate's own verdict; nothing is stored of the noise of these machines."""
    judged = judge_performance(*values, sessions=1, **settings)
    return replace(judged, notes=(*judged.notes, NO_HISTORY))


class TestRuns:
    def test_are_judged_as_the_gate_judges(self, tmp_path: Path) -> None:
        a, b = [100.0, 101.0, 99.5], [96.0, 96.2]
        probe = only(compared(throughputs(tmp_path / "a", *a), throughputs(tmp_path / "b", *b)))
        assert probe.judgements == (like_gate(SPEED, a, b),)
        assert probe.verdict == Verdict.REGRESSION
        assert (probe.name, probe.starts) == ("small-serve-c1", (3, 2))

    @each(
        "changes, warnings",
        [
            ({"role": "reference"}, ()),
            (
                {"disturbed": ["others used 90 % of the CPU"]},
                ("small-serve-c1: start 1 was disturbed and is not used",),
            ),
        ],
    )
    def test_starts_that_are_not_used(self, changes, warnings, tmp_path: Path) -> None:
        lines = [measurement({SPEED: 50.0}, **changes), measurement({SPEED: 100.0}, 2)]
        side = read_side(run(tmp_path / "a", lines))
        assert side.probes[0].values(SPEED) == [100.0]
        assert side.warnings == warnings

    def test_probes_of_one_side_only_are_named(self, tmp_path: Path) -> None:
        a, b = run(tmp_path / "a", TWO), run(tmp_path / "b", TWO[:1])
        result = compared(a, b)
        assert (result.only_in_a, result.only_in_b) == (("small-serve-c4",), ())
        assert compared(b, a).only_in_b == ("small-serve-c4",)

    @each("name", ["c4", "small-serve-c4"])
    def test_may_be_narrowed_to_a_probe(self, name: str, tmp_path: Path) -> None:
        a, b = run(tmp_path / "a", TWO), run(tmp_path / "b", TWO)
        assert only(compared(a, b, probes=(name,))).name == "small-serve-c4"

    def test_of_two_scenarios_are_matched_by_label_if_that_is_meant(self, tmp_path: Path) -> None:
        a = throughputs(tmp_path / "a", 100.0)
        b = throughputs(tmp_path / "b", 100.0, scenario="other-serve")
        assert compared(a, b).probes == ()
        probe = only(compared(a, b, across=frozenset({"scenario"})))
        assert (probe.name, probe.verdict) == ("c1", Verdict.PASS)
        mixed = run(tmp_path / "c", [TWO[0], {**TWO[0], "scenario": "two"}])
        with pytest.raises(InputError, match="several scenarios"):
            compared(a, mixed, across=frozenset({"scenario"}))

    def test_synthetic_and_injected_ones_are_marked(self, tmp_path: Path) -> None:
        a = throughputs(tmp_path / "a", 100.0)
        b = throughputs(tmp_path / "b", 100.0, synthetic=True, injected=["server.delay=5"])
        result = compared(a, b)
        assert result.synthetic
        assert result.warnings == ("B: injected: server.delay=5",)
        assert not compared(a, throughputs(tmp_path / "c", 100.0)).synthetic


def copied(a: Path) -> Path:
    return Path(shutil.copytree(a, a.with_name("copy")))


@each(
    "make, other",
    [
        (lambda at: throughputs(at, 100.0, 101.0), copied),
        (
            lambda at: aiperf(at, 1.0, 1.001),
            lambda a: a / "start-1" / "profile_export_aiperf.json",
        ),
    ],
)
def test_a_run_on_both_sides_is_refused(make, other, tmp_path: Path) -> None:
    a = make(tmp_path / "a")
    with pytest.raises(InputError, match="both sides hold the same run"):
        compared(a, other(a))


def speeds(*values: float, **changes: Any) -> Make:
    return lambda at: throughputs(at, *values, **changes)


def starts(*metrics: Mapping[str, float], failed: Sequence[str] = (), **changes: Any) -> Make:
    lines = [measurement(one, start, **changes) for start, one in enumerate(metrics, 1)]
    return lambda at: run(at, lines, failed=failed)


def other_questions(at: Path) -> Path:
    fields = json.loads(LM_EVAL.read_text())
    fields["n-samples"]["perfgate_arithmetic"]["effective"] = 7
    at.with_suffix(".json").write_text(json.dumps(fields))
    return at.with_suffix(".json")


def data(name: str) -> Make:
    return lambda _: DATA / name


def tool(at: Path) -> Path:
    return aiperf(at, 1.0)


NC, PASS = Verdict.NOT_COMPARABLE, Verdict.PASS
OTHER = {**FINGERPRINT, "driver": "580.2", "gpus": "H200"}
OWN = {"machine_bound": True}
TTFT, SLOW_TPOT = {"ttft_p99_ms": 50.0}, {SPEED: 100.0, "tpot_mean_ms": 10.0}
FP8, FP16 = (data(f"trtllm_bench/b200_{kv}_max_throughput.txt") for kv in ("fp8kv", "fp16kv"))


@each(
    "a, b, verdict, told",
    [
        (speeds(100.0), starts(VALUES, failed=["c1"]), "ERROR", "B failed: oom: out of memory"),
        (speeds(100.0), starts(failed=["c1"]), "ERROR", "B failed: oom: out of memory"),
        (starts(VALUES), starts(SLOW_TPOT, {SPEED: 100.0}), PASS, "tpot_mean_ms is missing from"),
        # A reported one of value 0 spoils no verdict.
        (starts(VALUES), starts({**VALUES, "ttft_p99_ms": 0.0}), PASS, "ttft_p99_ms is not comp"),
        (starts(TTFT), starts(TTFT), NC, "no band"),
        (speeds(100.0), speeds(*[97.9] * 7), None, "B has 7 fresh starts"),
        # Of a machine that is its own reference few starts decide large changes alone.
        (speeds(100.0, **OWN), speeds(94.0, 94.0, **OWN), "INCONCLUSIVE", "A has 1 fresh start on"),
        (speeds(100.0, **OWN), speeds(30.0, 30.0, 30.0, **OWN), "REGRESSION", ""),
        # Other loads, told or only to be seen by the numbers, and those of which nothing is known.
        (tool, data("aiperf/not_streamed.json"), NC, "requests: A 12, B 4; streaming: A True, B F"),
        (FP8, FP16, NC, "requests: A 114690.0, B 49152.0"),
        (lambda _: LM_EVAL, other_questions, NC, "questions:perfgate_arithmetic: A 8, B 7"),
        (starts({SPEED: 74.8}, facts={"client": "aiperf"}), tool, None, "measured the same load"),
    ],
)
def test_what_is_compared_and_what_is_told_of_it(
    a: Make, b: Make, verdict: str | None, told: str, tmp_path: Path
) -> None:
    probe = only(compared(a(tmp_path / "a"), b(tmp_path / "b")))
    assert verdict in (None, probe.verdict)
    assert told in "\n".join([probe.reason, *probe.warnings])


def test_facts_that_differ_are_named_whether_meant_or_not(tmp_path: Path) -> None:
    a, b = throughputs(tmp_path / "a", 100.0), throughputs(tmp_path / "b", 100.0, fingerprint=OTHER)
    driver, gpus = "driver: A 570.1, B 580.2", "gpus: A unknown, B H200"
    for across, verdict, reason, meant in (
        ((), NC, f"{driver}; {gpus}", ()),
        (("driver",), NC, gpus, (driver,)),
        (("driver", "gpus"), PASS, "", (driver, gpus)),
    ):
        probe = only(compared(a, b, across=frozenset(across)))
        assert (probe.verdict, probe.reason, probe.across) == (verdict, reason, meant)


class TestBaselines:
    @pytest.fixture
    def against(self, suite_root: Path, tmp_path: Path) -> Callable[..., Comparison]:
        def against(values: Sequence[float], new: Sequence[float], **changes: Any) -> Comparison:
            stored = baseline(entries={"c1": entry(*values)}, **changes)
            fingerprint = {"content": "0123456789abcdef", "cpu": "Grace"}
            b = throughputs(tmp_path / "b", *new, fingerprint=fingerprint)
            return compared(Store(tmp_path / "store").save(stored), b)

        return against

    def test_are_a_side(self, against: Callable[..., Comparison]) -> None:
        result = against((100.0, 101.0, 99.0), (95.0, 95.1))
        assert only(result).verdict == Verdict.REGRESSION
        assert result.a.kind == "baseline"
        assert result.a.description.endswith("accepted 2026-11-05 by Ada")

    def test_of_the_machine_itself_measure_their_noise(
        self, against: Callable[..., Comparison]
    ) -> None:
        values = (100.0, 108.0, 94.0, 103.0, 97.0)
        (judged,) = only(against(values, [98.0], accepted_by="self")).judgements
        own = Rule(prior_dof=OWN_DOF)
        assert judged == judge_performance(
            SPEED, values, [98.0], sigma=OWN_SIGMA, rule=own, widen=True
        )
        assert (judged.band or 0) > 0.1


class TestMetrics:
    def side(self, path: Path, starts: int = 2, **factors: float) -> Path:
        metrics = {name: value * factors.get(name, 1.0) for name, value in VALUES.items()}
        return run(path, [measurement(metrics, start) for start in range(1, starts + 1)])

    @each(
        "options, verdict, judged, reported, warned",
        [
            ({}, "REGRESSION", [SPEED, "tpot_mean_ms"], ["ttft_p99_ms"], ("ttft_p99_ms",)),
            ({"bands": {"ttft_p99_ms": 0.3}}, "REGRESSION", [*VALUES], [], ()),
            (
                {"metrics": (SPEED,)},
                "PASS",
                [SPEED],
                ["tpot_mean_ms", "ttft_p99_ms"],
                ("tpot_mean_ms", "ttft_p99_ms"),
            ),
        ],
    )
    def test_those_with_a_band_are_judged_and_the_others_reported(
        self, options, verdict, judged, reported, warned, tmp_path: Path
    ) -> None:
        b = self.side(tmp_path / "b", ttft_p99_ms=1.5, tpot_mean_ms=1.2)
        probe = only(compared(self.side(tmp_path / "a"), b, **options))
        assert [judgement.metric for judgement in probe.judgements] == judged
        assert [change.metric for change in probe.reported] == reported
        assert (probe.verdict, probe.warned) == (verdict, warned)

    @each(
        "metric, problem",
        [("itl_mean_ms", "--metric: the two sides do not"), ("ttft_p99_ms", "no band of its own")],
    )
    def test_that_cannot_be_judged_are_refused(self, metric, problem, tmp_path: Path) -> None:
        a, b = self.side(tmp_path / "a"), self.side(tmp_path / "b")
        with pytest.raises(InputError, match=problem):
            compared(a, b, metrics=(metric,))

    def test_have_the_same_error_rate_whatever_stands_beside_them(self, tmp_path: Path) -> None:
        a, b = self.side(tmp_path / "a", 1), self.side(tmp_path / "b", 2, tpot_mean_ms=1.032)
        both = only(compared(a, b)).judgements
        (alone,) = only(compared(a, b, metrics=("tpot_mean_ms",))).judgements
        assert alone in both
        assert alone == like_gate("tpot_mean_ms", [10.0], [10.32, 10.32])


class TestAccuracy:
    def side(
        self, path: Path, right: int, *, answers: bool, evaluations: int = 1, **changes: object
    ) -> Path:
        given = {f"q{number}": number < right for number in range(400)}
        line = measurement(
            {SUMS: right / 400},
            probe="sums",
            facts={"evaluator": "lm_eval", "questions": 400},
            answers={SUMS: given} if answers else {},
        )
        return run(path, [{**line, **changes, "start": n + 1} for n in range(evaluations)])

    @each("answers, words", [(True, "answers lost"), (False, "be paired")])
    def test_is_paired_where_both_have_the_answers(
        self, tmp_path: Path, answers: bool, words: str
    ) -> None:
        a = self.side(tmp_path / "a", 380, answers=True)
        once = self.side(tmp_path / "once", 340, answers=answers)
        (judged,) = only(compared(a, once)).judgements
        assert judged.verdict == Verdict.INCONCLUSIVE  # a second evaluation would have to agree
        b = self.side(tmp_path / "b", 340, answers=answers, evaluations=2)
        (judged,) = only(compared(a, b)).judgements
        assert (judged.verdict, judged.runs_used) == (Verdict.REGRESSION, 2)
        assert words in judged.reason

    def test_tells_a_broken_format_from_a_loss(self, tmp_path: Path) -> None:
        flexible = SUMS.replace("strict-match", "flexible-extract")
        facts = {"evaluator": "lm_eval", "questions": 400}
        a, b = (starts({SUMS: score, flexible: 0.95}, facts=facts) for score in (0.95, 0.4))
        found = only(compared(a(tmp_path / "a"), b(tmp_path / "b"))).judgements
        (notes,) = (one.notes for one in found if one.metric == SUMS)
        assert any("OUTPUT_FORMAT" in note for note in notes)

    def test_needs_the_number_of_questions_or_a_standard_error(self, tmp_path: Path) -> None:
        facts = {"facts": {"evaluator": "lm_eval"}}
        a, b = (self.side(tmp_path / name, 380, answers=False, **facts) for name in "ab")
        with pytest.raises(InputError, match="the number of questions behind"):
            compared(a, b)
        known = self.side(tmp_path / "c", 380, answers=False)
        assert only(compared(a, known)).verdict in (Verdict.PASS, Verdict.INCONCLUSIVE)
        head = "|Tasks|Version|Filter|n-shot|Metric| |Value| |Stderr|\n"
        for name, score in (("d", "0.9500|±|0.0060"), ("e", "0.9000|±|0.0083")):
            (tmp_path / name).write_text(head + f"|gsm8k|3|strict-match|5|exact_match|↑|{score}|\n")
        (judged,) = only(compared(tmp_path / "d", tmp_path / "e")).judgements
        assert (judged.verdict, judged.needs_more_runs) == (Verdict.INCONCLUSIVE, True)
        assert "; 13" in judged.reason  # GSM8K has 1,319 questions


class TestResultsOfOtherTools:
    def test_each_file_is_a_fresh_start(self, tmp_path: Path) -> None:
        a = aiperf(tmp_path / "a", 1.0, 1.002, 0.998)
        b = aiperf(tmp_path / "b", 1.06, 1.061)
        probe = only(compared(a, b))
        assert (probe.name, probe.starts) == ("aiperf", (3, 2))
        assert probe.verdict == Verdict.REGRESSION
        by_name = {one.metric: one for one in probe.judgements}
        assert by_name["output_throughput"].change == pytest.approx(-0.057, abs=0.003)
        assert only(compared(a, aiperf(tmp_path / "c", 1.0005, 0.9995))).verdict == Verdict.PASS

    def test_against_one_probe_of_a_run(self, tmp_path: Path) -> None:
        lines = [{**line, "metrics": {SPEED: 74.8}} for line in TWO]
        a, b = run(tmp_path / "a", lines), aiperf(tmp_path / "b", 1.0)
        with pytest.raises(InputError, match="--probe: results of another tool"):
            compared(a, b)
        probe = only(compared(a, b, probes=("c4",)))
        assert (probe.name, probe.verdict) == ("small-serve-c4", Verdict.PASS)


def whole(folder: Path, *lines: Mapping[str, object]) -> Path:
    return run(
        folder / "run",
        [{**measurement({SPEED: 100.0}, n), **changes} for n, changes in enumerate(lines, 1)],
    )


def truncated(folder: Path) -> Path:
    path = throughputs(folder / "run", 100.0, 101.0)
    records = path / "records.jsonl"
    records.write_bytes(records.read_bytes()[:-40] + b"\n")
    return path


def without_fingerprint(folder: Path) -> Path:
    path = throughputs(folder / "run", 100.0)
    (path / "records.jsonl").unlink()
    line = as_line(record("measurement"), "2026-11-20T08:00:00+00:00")
    del line["fingerprint"]
    append_line(path / "records.jsonl", line, base=path / "run.json")
    return path


def files(folder: Path, *contents: str) -> Path:
    for number, content in enumerate(contents):
        (folder / f"{number}.txt").write_text(content)
    return folder


BENCH = (DATA / "trtllm_bench" / "b200_fp8kv_max_throughput.txt").read_text()
OTHER_LOAD = (DATA / "aiperf" / "not_streamed.json").read_text()
NO_RESULTS = (
    ("", "0.txt:1: no usable result"),
    (json.dumps(scaled(1.0))[:500], "truncated_output"),
    ("torch.OutOfMemoryError: CUDA out of memory.", "oom"),
    ('{"hello": 1}', "no report of a known program"),
    (json.dumps({**scaled(1.0), "was_cancelled": True}), "the run was cut short"),
)
NOT_A_BASELINE = '{"entries": {}, "accepted": {}, "schema_version": 99}'


@each(
    "make, problem",
    [
        (lambda at: at / "none", "there is nothing to compare"),
        (lambda at: at, "neither a run nor a result"),
        (lambda at: files(at, *["{}"] * 101), "too many files"),
        (lambda at: files(at, json.dumps(scaled(1.0)), BENCH), "two programs"),
        (lambda at: files(at, json.dumps(scaled(1.0)), OTHER_LOAD), "not of one load"),
        (lambda at: files(at, BENCH, BENCH), "two files tell of the same run"),
        (lambda at: files(at, BENCH, ""), "a folder must hold nothing but results"),
        *((lambda at, one=one: files(at, one) / "0.txt", problem) for one, problem in NO_RESULTS),
        (lambda _: DATA / "aiperf" / "server_killed.json", "no usable result"),
        (lambda _: DATA / "aiperf" / "prefix_cached.json", "no usable result"),
        (lambda at: files(at, NOT_A_BASELINE) / "0.txt", "baseline"),
        (whole, "measured nothing that can be compared"),
        (lambda at: whole(at, {"disturbed": ["x"]}), "measured nothing that can"),
        (without_fingerprint, "a record is not whole"),
        (truncated, "not JSON"),
        (lambda at: whole(at, {}, {"fingerprint": {}}), "on unlike machines"),
    ],
    ids=lambda one: one if isinstance(one, str) else one.__name__,
)
def test_what_is_no_side_is_refused(
    make: Callable[[Path], Path], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=problem):
        read_side(make(tmp_path))


class TestFacts:
    def test_of_lengths_may_differ_by_half_a_percent(self) -> None:
        a, b, c = (reported_facts(Measurement({}, {"osl": osl})) for osl in (1000, 1004, 1006))
        assert differences(a, b, ()) == ([], [])
        assert differences(a, c, ()) == (["osl: A 1000, B 1006"], [])
        assert differences(a, c, {"osl"}) == ([], ["osl: A 1000, B 1006"])

    def test_what_was_asked_outweighs_what_was_seen(self) -> None:
        found = reported_facts(Measurement({}, {"max_concurrency": 8, "concurrency_mean": 7.1}))
        assert found == {"concurrency": Fact(8)}
