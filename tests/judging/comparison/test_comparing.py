"""Comparing two sides, or numbers: what is matched, what must agree, and what is judged how."""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from building import baseline, entry
from plain_values import judge_performance
from refusals import refused
from sides_made import FINGERPRINT, SUMS, aiperf, measurement, run, scaled, throughputs
from tables import each

from perfgate.baselines import Store
from perfgate.core.measurement import Measurement
from perfgate.core.verdict import Judgement, Rule, Verdict
from perfgate.judging.assembly.bands import NO_HISTORY
from perfgate.judging.comparison import comparison
from perfgate.judging.comparison.comparison import Comparison, ProbeComparison, compare
from perfgate.judging.comparison.numbers import judge_numbers, read_fields
from perfgate.judging.comparison.sides import Fact, differences, read_side, reported_facts
from perfgate.judging.rules.noise import OWN_DOF, OWN_SIGMA

DATA = Path(__file__).parents[2] / "data"
SPEED, TPOT, P99 = "output_throughput", "tpot_mean_ms", "ttft_p99_ms"
VALUES = {SPEED: 100.0, TPOT: 10.0, P99: 50.0}
LM_EVAL = next((DATA / "lm_eval").rglob("results*.json"))
OF_LM_EVAL = {"evaluator": "lm_eval", "questions": 400}
TWO = [measurement({SPEED: 100.0}, probe=probe) for probe in ("c1", "c4")]
Make = Callable[[Path], Path]


def compared(a: Path, b: Path, **options: Any) -> Comparison:
    return compare(read_side(a), read_side(b), comparison.ComparisonOptions(**options))


def only(*sides: Path, **options: Any) -> ProbeComparison:
    (probe,) = compared(*sides, **options).probes
    return probe


def like_gate(*values: Any, **settings: Any) -> Judgement:
    """The gate's own verdict; nothing is stored of the noise of these machines."""
    judged = judge_performance(*values, sessions=1, **settings)
    return replace(judged, notes=(*judged.notes, NO_HISTORY))


# Where a side lies: each is made in the folder that it is given.


def speeds(*values: float, **changes: Any) -> Make:
    return lambda at: throughputs(at, *values, **changes)


def starts(*metrics: Mapping[str, float], failed: Sequence[str] = (), **changes: Any) -> Make:
    lines = [measurement(one, start, **changes) for start, one in enumerate(metrics, 1)]
    return lambda at: run(at, lines, failed=failed)


def tool(*factors: float) -> Make:
    return lambda at: aiperf(at, *factors)


def data(name: str) -> Make:
    return lambda _: DATA / name


def copied(a: Path) -> Path:
    return Path(shutil.copytree(a, a.with_name("copy")))


def other_questions(at: Path) -> Path:
    fields = json.loads(LM_EVAL.read_text())
    fields["n-samples"]["perfgate_arithmetic"]["effective"] = 7
    at.with_suffix(".json").write_text(json.dumps(fields))
    return at.with_suffix(".json")


def answered(right: int, *, answers: bool = True, evaluations: int = 1) -> Make:
    given = {f"q{number}": number < right for number in range(400)}
    told = {"probe": "sums", "facts": OF_LM_EVAL, "answers": {SUMS: given} if answers else {}}
    return starts(*[{SUMS: right / 400}] * evaluations, **told)


def markdown(score: str) -> Make:
    head = "|Tasks|Version|Filter|n-shot|Metric| |Value| |Stderr|\n"

    def make(at: Path) -> Path:
        at.write_text(head + f"|gsm8k|3|strict-match|5|exact_match|↑|{score}|\n")
        return at

    return make


@each(
    "make, other",
    [
        (speeds(100.0, 101.0), copied),
        (tool(1.0, 1.001), lambda a: a / "start-1" / "profile_export_aiperf.json"),
    ],
)
def test_a_run_on_both_sides_is_refused(make, other, tmp_path) -> None:
    a = make(tmp_path / "a")
    refused(compared, a, other(a), match="both sides hold the same run")


def test_runs_are_judged_as_the_gate_judges_whatever_stands_beside_them(tmp_path) -> None:
    a, b = [100.0, 101.0, 99.5], [96.0, 96.2]
    probe = only(throughputs(tmp_path / "a", *a), throughputs(tmp_path / "b", *b))
    assert probe.judgements == (like_gate(SPEED, a, b),)
    assert (probe.name, probe.starts) == ("small-serve-c1", (3, 2))
    c, d = starts(VALUES), starts(*[{**VALUES, TPOT: 10.32}] * 2)
    sides = c(tmp_path / "c"), d(tmp_path / "d")
    (alone,) = only(*sides, metrics=(TPOT,)).judgements
    assert alone in only(*sides).judgements
    assert alone == like_gate(TPOT, [10.0], [10.32, 10.32])


@each(
    "changes, warnings",
    [
        ({"role": "reference"}, ()),
        ({"disturbed": ["others used 90 % of the CPU"]},
         ("small-serve-c1: start 1 was disturbed and is not used",)),
    ],
)  # fmt: skip
def test_starts_that_are_not_used(changes, warnings, tmp_path) -> None:
    lines = [measurement({SPEED: 50.0}, **changes), measurement({SPEED: 100.0}, 2)]
    side = read_side(run(tmp_path / "a", lines))
    assert side.probes[0].values(SPEED) == [100.0]
    assert side.warnings == warnings


def test_which_probes_are_matched(tmp_path) -> None:
    a, b, one = (run(tmp_path / n, lines) for n, lines in (("a", TWO), ("b", TWO), ("c", TWO[:1])))
    assert (compared(a, one).only_in_a, compared(a, one).only_in_b) == (("small-serve-c4",), ())
    assert compared(one, a).only_in_b == ("small-serve-c4",)
    for name in ("c4", "small-serve-c4"):
        assert only(a, b, probes=(name,)).name == "small-serve-c4"
    # Of two scenarios by label, if that is meant.
    other = throughputs(tmp_path / "other", 100.0, scenario="other-serve")
    assert compared(one, other).probes == ()
    probe = only(one, other, across=frozenset({"scenario"}))
    assert (probe.name, probe.verdict) == ("c1", Verdict.PASS)
    mixed = run(tmp_path / "mixed", [TWO[0], {**TWO[0], "scenario": "two"}])
    refused(compared, one, mixed, across=frozenset({"scenario"}), match="several scenarios")
    # Results of another tool are held against one probe.
    results = aiperf(tmp_path / "tool", 1.0)
    like = run(tmp_path / "like", [{**line, "metrics": {SPEED: 74.8}} for line in TWO])
    refused(compared, like, results, match="--probe: results of another tool")
    probe = only(like, results, probes=("c4",))
    assert (probe.name, probe.verdict) == ("small-serve-c4", Verdict.PASS)


def test_an_injected_side_is_marked(tmp_path) -> None:
    sides = throughputs(tmp_path / "a", 100.0), tmp_path / "b"
    b = throughputs(sides[1], 100.0, injected=["server.delay=5"])
    assert compared(sides[0], b).warnings == ("B: injected: server.delay=5",)


NC, PASS, OPEN, LOST = "NOT_COMPARABLE", "PASS", "INCONCLUSIVE", "REGRESSION"
OTHER = {"fingerprint": {**FINGERPRINT, "gpus": "H200"}}
OWN = {"machine_bound": True}
SLOW_TPOT = {SPEED: 100.0, TPOT: 10.0}
FP8, FP16 = (data(f"trtllm_bench/b200_{kv}_max_throughput.txt") for kv in ("fp8kv", "fp16kv"))
FLEXIBLE = SUMS.replace("strict-match", "flexible-extract")
STRICT, BROKEN = (starts({SUMS: x, FLEXIBLE: 0.95}, facts=OF_LM_EVAL) for x in (0.95, 0.4))


@each(
    "a, b, verdict, told",
    [
        (speeds(100.0), starts(VALUES, failed=["c1"]), "ERROR", "B failed: oom: out of memory"),
        (speeds(100.0), starts(failed=["c1"]), "ERROR", "B failed: oom: out of memory"),
        (starts(VALUES), starts(SLOW_TPOT, {SPEED: 100.0}), PASS, "tpot_mean_ms is missing from"),
        # A reported one of value 0 spoils no verdict.
        (starts(VALUES), starts({**VALUES, P99: 0.0}), PASS, "ttft_p99_ms is not comp"),
        (starts({P99: 50.0}), starts({P99: 50.0}), NC, "no band"),
        (speeds(100.0), speeds(100.0, **OTHER), NC, "gpus: A unknown, B H200"),
        (speeds(100.0), speeds(*[97.9] * 7), LOST, "B has 7 fresh starts"),
        # Of a machine that is its own reference few starts decide large changes alone.
        (speeds(100.0, **OWN), speeds(94.0, 94.0, **OWN), OPEN, "A has 1 fresh start on"),
        (speeds(100.0, **OWN), speeds(30.0, 30.0, 30.0, **OWN), LOST, ""),
        # Other loads, told or only to be seen by the numbers, and those of which nothing is known.
        (tool(1.0), data("aiperf/not_streamed.json"), NC, "requests: A 12, B 4; streaming: A True"),
        (FP8, FP16, NC, "requests: A 114690.0, B 49152.0"),
        (lambda _: LM_EVAL, other_questions, NC, "questions:perfgate_arithmetic: A 8, B 7"),
        (starts({SPEED: 74.8}, facts={"client": "aiperf"}), tool(1.0), PASS, "measured the same l"),
        # Each file of another tool is a fresh start.
        (tool(1.0, 1.002, 0.998), tool(1.06, 1.061), LOST, "2 fresh starts against 3"),
        (tool(1.0, 1.002, 0.998), tool(1.0005, 0.9995), PASS, ""),
        # Answers are paired where both sides have them; a second evaluation would have to agree.
        (answered(380), answered(340), OPEN, ""),
        (answered(380), answered(340, evaluations=2), LOST, "answers lost"),
        (answered(380), answered(340, answers=False, evaluations=2), LOST, "be paired"),
        (STRICT, BROKEN, OPEN, "OUTPUT_FORMAT"),
        (markdown("0.9500|±|0.0060"), markdown("0.9000|±|0.0083"), OPEN, "; 13"),  # of GSM8K
    ],
)
def test_what_is_compared_and_what_is_told_of_it(a, b, verdict, told, tmp_path) -> None:
    probe = only(a(tmp_path / "a"), b(tmp_path / "b"))
    assert probe.verdict == verdict
    words = (text for one in probe.judgements for text in (one.reason, *one.notes))
    assert told in "\n".join([probe.reason, *probe.warnings, *words])


def test_baselines_are_a_side(suite_root, tmp_path) -> None:
    """Those of the machine itself measure their noise."""
    values = (100.0, 108.0, 94.0, 103.0, 97.0)
    b = throughputs(
        tmp_path / "b", 98.0, fingerprint={"content": "0123456789abcdef", "cpu": "Grace"}
    )
    for by, settings in (
        ("Ada", {"sessions": 5, "sigma": None}),
        ("self", {"sigma": OWN_SIGMA, "rule": Rule(prior_dof=OWN_DOF), "widen": True}),
    ):
        stored = baseline(entries={"c1": entry(*values)}, accepted_by=by)
        result = compared(Store(tmp_path / by).save(stored), b)
        assert result.a.kind == "baseline"
        assert result.a.description.endswith(f"accepted 2026-11-05 by {by}")
        (judged,) = result.probes[0].judgements
        assert replace(judged, notes=()) == replace(
            judge_performance(SPEED, values, [98.0], **settings), notes=()
        )


@each(
    "options, verdict, judged, reported",
    [
        ({}, LOST, [SPEED, TPOT], [P99]),
        ({"bands": {P99: 0.3}}, LOST, [*VALUES], []),
        ({"metrics": (SPEED,)}, PASS, [SPEED], [TPOT, P99]),
    ],
)
def test_metrics_without_a_band_are_reported(options, verdict, judged, reported, tmp_path) -> None:
    a, b = starts(VALUES, VALUES), starts(*[{**VALUES, P99: 75.0, TPOT: 12.0}] * 2)
    probe = only(a(tmp_path / "a"), b(tmp_path / "b"), **options)
    assert [judgement.metric for judgement in probe.judgements] == judged
    assert [change.metric for change in probe.reported] == reported
    assert (probe.verdict, probe.warned) == (verdict, tuple(reported))


BARE_SCORE = starts({SUMS: 0.95}, probe="sums", facts={"evaluator": "lm_eval"})


@each(
    "a, b, options, problem",
    [
        (starts(VALUES), starts(VALUES), {"metrics": ("itl_mean_ms",)}, "--metric: the two sides"),
        (starts(VALUES), starts(VALUES), {"metrics": (P99,)}, "no band of its own"),
        (BARE_SCORE, BARE_SCORE, {}, "the number of questions behind"),
    ],
)
def test_metrics_that_cannot_be_judged_are_refused(a, b, options, problem, tmp_path) -> None:
    refused(compared, a(tmp_path / "a"), b(tmp_path / "b"), match=problem, **options)


def test_the_questions_of_one_side_are_enough(tmp_path) -> None:
    known = answered(380, answers=False)(tmp_path / "b")
    assert only(BARE_SCORE(tmp_path / "a"), known).verdict in (PASS, OPEN)


def test_facts_may_differ_a_little_and_what_was_asked_outweighs_what_was_seen() -> None:
    a, b, c = (reported_facts(Measurement({}, {"osl": osl})) for osl in (1000, 1004, 1006))
    assert differences(a, b, ()) == ([], [])
    assert differences(a, c, ()) == (["osl: A 1000, B 1006"], [])
    assert differences(a, c, {"osl"}) == ([], ["osl: A 1000, B 1006"])
    found = reported_facts(Measurement({}, {"max_concurrency": 8, "concurrency_mean": 7.1}))
    assert found == {"concurrency": Fact(8)}


# What is no side. --------------------------------------------------------------------------------


def whole(folder: Path, *lines: Mapping[str, object]) -> Path:
    made = [{**measurement({SPEED: 100.0}, n), **changes} for n, changes in enumerate(lines, 1)]
    return run(folder / "run", made)


def files(folder: Path, *contents: str) -> Path:
    for number, content in enumerate(contents):
        (folder / f"{number}.txt").write_text(content)
    return folder


BENCH = (DATA / "trtllm_bench" / "b200_fp8kv_max_throughput.txt").read_text()
OTHER_LOAD = (DATA / "aiperf" / "not_streamed.json").read_text()
FAST = json.dumps(scaled(1.0))
FILES = (
    ("", "0.txt:1: no usable result"),
    (FAST[:500], "truncated_output"),
    ('{"entries": {}, "accepted": {}, "schema_version": 99}', "baseline"),
)


@each(
    "make, problem",
    [
        (lambda at: at / "none", "there is nothing to compare"),
        (lambda at: at, "neither a run nor a result"),
        (lambda at: files(at, *["{}"] * 101), "too many files"),
        (lambda at: files(at, FAST, BENCH), "two programs"),
        (lambda at: files(at, FAST, OTHER_LOAD), "not of one load"),
        (lambda at: files(at, BENCH, BENCH), "two files tell of the same run"),
        (lambda at: files(at, BENCH, ""), "a folder must hold nothing but results"),
        *((lambda at, one=one: files(at, one) / "0.txt", problem) for one, problem in FILES),
        (whole, "measured nothing that can be compared"),
        (lambda at: whole(at, {"disturbed": ["x"]}), "measured nothing that can"),
        (lambda at: whole(at, {}, {"fingerprint": {}}), "on unlike machines"),
    ],
    ids=lambda one: one if isinstance(one, str) else one.__name__,
)
def test_what_is_no_side_is_refused(make, problem, tmp_path) -> None:
    refused(read_side, make(tmp_path), match=problem)


# Numbers of a line or of options. ----------------------------------------------------------------
GSM8K, NAN, INFINITY = SUMS.replace("sums", "gsm8k"), float("nan"), float("inf")
BAND, SIGMA = "expected: a fraction between 0 and 1, e.g. 0.02", "the prior noise of one run cannot"


def of_numbers(fields: Mapping[str, Any], *, are_texts: bool = False) -> Judgement:
    return judge_numbers(read_fields(fields, are_texts=are_texts))


@each(
    "metric, fields, problem",
    [
        (SPEED, {"new": [1.0, NAN]}, "new value 2 of output_throughput cannot be judged"),
        (SPEED, {"controls": [INFINITY]}, "control value 1 of output_throughput cannot"),
        *((SPEED, {"band": band}, BAND) for band in (0, -0.1, 1, NAN, INFINITY)),
        *((SPEED, {"sigma": sigma}, SIGMA) for sigma in (0, -1, 1, NAN, INFINITY)),
        (GSM8K, {"questions": 0}, "questions: it cannot be used\n  found: "),
        (GSM8K, {"questions": 9, "baseline": [NAN]}, "value 1 is no share of right answers"),
        (GSM8K, {"questions": 9, "band": 0}, "expected: an absolute fraction between 0 and 1"),
        (GSM8K, {"questions": 9, "sessions": 1}, "sessions means nothing for an accuracy"),
    ],
)
def test_values_that_cannot_be_judged(metric, fields, problem) -> None:
    """Neither in a line nor in options, whose numbers are texts."""
    given = {"metric": metric, "baseline": [1.0], "new": [1.0], **fields}
    texts = {
        name: [*map(str, value)] if isinstance(value, list) else str(value)
        for name, value in given.items()
    }
    for plain, are_texts in ((given, False), (texts, True)):
        assert problem in str(refused(of_numbers, plain, are_texts=are_texts))


def test_more_are_asked_for_only_where_they_would_be_used() -> None:
    """Who sends values while more are needed would never end if the last allowed one asked too."""
    speed = {"metric": SPEED, "baseline": [100.0, 101.0, 99.0], "new": [96.0]}
    for most, more in ({}, "up to 4 more may decide"), ({"max_runs": 1}, ""):
        found = of_numbers({**speed, **most})
        assert (found.verdict, found.needs_more_runs) == (OPEN, bool(more))
        assert (more or "no more") in found.reason
