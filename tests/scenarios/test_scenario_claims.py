"""Claims in scenario files: what a good one gives, what is said of a bad one, and floors."""

from dataclasses import replace

import pytest
from building import SCENARIO
from tables import each
from written_files import Change, Write, assert_told, changed, errors_of

from perfgate.core.errors import SeveralInputErrors
from perfgate.scenarios.claims import claims_of
from perfgate.scenarios.files import load_suite
from perfgate.scenarios.scenario import Claim, Floor, Source

GOOD = """\
schema_version: 1
defaults:
  source: {document: guide.md, section: Serving}
  hardware: {gpu: none, gpus: 0}
  model: {name: Small-1B, precision: bf16}
  engine: {name: llama.cpp}
  workload: {client: aiperf, dataset: synthetic, isl: 64, osl: 32, concurrency: 4, requests: 24}
  gate: {metrics: [output_throughput]}
  limits: {start_s: 60, silence_s: 120, total_s: 600}
scenarios:
  - id: "on"
    title: With it
    accuracy: [{evaluator: lm_eval, task: gsm8k, fewshot: 5}]
  - id: "off"
    title: Without it
    workload: {streaming: false}
  - id: sweep
    title: Several points
    workload: {concurrency: [1, 4]}
  - id: elsewhere
    title: Other hardware
    hardware: {gpu: H200, gpus: 1}
claims:
  - id: it-is-faster
    title: With it the engine is faster
    source: {document: guide.md, section: Features}
    metric: output_throughput
    scenario: "on"
    expect: better
    versus: "off"
"""

OF, VERSUS, BETTER, ID = 'scenario: "on"', 'versus: "off"', "expect: better", "- id: it-is-faster"
METRIC = "    metric: output_throughput"


def beside(line: str, *changes: Change) -> list[Change]:
    return [(VERSUS, f"{VERSUS}\n    {line}"), *changes]


# Field, words, changes: the first one on the line that is told.
BROKEN: list[tuple[str, str, list[Change]]] = [
    ("metric", "did you mean output_throughput?", [(METRIC, "    metric: output_thruput")]),
    ("scenario", "no scenario of that name", [(OF, "scenario: onn")]),
    ("versus", "did you mean off?", [(VERSUS, "versus: of")]),
    ("versus", "itself", [(VERSUS, 'versus: "on"')]),
    ("", "compared with nothing", [(ID, ID), (f"    {VERSUS}\n", "")]),
    ("value", "compared with two things", beside("value: 9")),
    ("expect", "better or not_worse", [(BETTER, "expect: worse"), (VERSUS, "value: 9")]),
    ("expect", "better or not_worse", [(BETTER, "expect: not_better"), (VERSUS, "value: 9")]),
    ("margin", "expect not_worse or not_better, or no margin", beside("margin: 0.1")),
    ("minimum_effect", "expect better than another scenario, or no minimum effect",
     beside("minimum_effect: 0.1", (BETTER, "expect: not_worse"))),
    ("minimum_effect", "the minimum effect is not used",
     [(VERSUS, "value: 9\n    minimum_effect: 0.1")]),
    ("documented", "the documented size is not used",
     [(VERSUS, "value: 9\n    tolerance: 0.05\n    documented: 0.1")]),
    ("documented", "without minimum_effect",
     beside("minimum_effect: 0.1\n    tolerance: 0.05\n    documented: 0.1")),
    ("tolerance", "how far the change may fall short of documented",
     [(ID, ID), *beside("documented: 0.1")]),
    ("tolerance", "documented beside it, or no tolerance", beside("tolerance: 0.1")),
    ("tolerance", "expect better or worse, or no tolerance",
     beside("documented: -0.1\n    tolerance: 0.1", (BETTER, "expect: not_better"))),
    ("documented", "the documented change is not better",
     beside("tolerance: 0.05\n    documented: -0.1")),
    ("metric", "metric does not exist without streaming (off)",
     [(METRIC, "    metric: tpot_mean_ms")]),
    ("metric", "score of a task that is not measured (off)",
     [(METRIC, "    metric: accuracy:gsm8k:exact_match:strict-match")]),
    ("concurrency", "not a point of the sweep (on)", beside("concurrency: 8")),
    ("concurrency", "one point of the sweep of sweep: 1, 4",
     [(ID, ID), (VERSUS, "versus: sweep")]),
    ("versus", "run on different hardware\n  found: cpu and 1xH200",
     [(VERSUS, "versus: elsewhere")]),
    ("than", "unknown", [(BETTER, "expect: better\n    than: 1")]),
    ("value", "a number, above 0", [(VERSUS, "value: 0")]),
    ("title", "missing\n  expected: The statement, one line.",
     [(ID, ID), ("    title: With it the engine is faster\n", "")]),
]  # fmt: skip


def test_a_file_gives_its_claims(write: Write) -> None:
    suite, source = load_suite(write(GOOD)), Source("guide.md", "Features")
    told = ("it-is-faster", "With it the engine is faster", source, "output_throughput", "on")
    assert suite.claims == (Claim(*told, "better", versus="off"),)
    by_id = {scenario.id: scenario for scenario in suite.scenarios}
    for either in ("on", "off"):
        assert claims_of([by_id[either]], suite.claims) == suite.claims
    assert claims_of([by_id["sweep"]], suite.claims) == ()


@each(("field", "words", "changes"), BROKEN)
def test_a_wrong_claim_is_told_with_file_line_and_field(
    field: str, words: str, changes: list[Change], write: Write
) -> None:
    text, line = changed(GOOD, *changes)
    assert_told(write(text), line, f"claims[0].{field}".rstrip(".") + ": ", words)


@each(
    "changes",
    [
        [(VERSUS, "value: 9.5")],
        [(BETTER, "expect: not_worse\n    margin: 0.01")],
        [(BETTER, "expect: not_better\n    margin: 0.01\n    documented: -0.69")],
        beside("documented: 2.448\n    tolerance: 0.05"),
        [(BETTER, "expect: worse\n    documented: -0.34\n    tolerance: 0.05")],
        beside("minimum_effect: 0.05"),
        [(VERSUS, "versus: sweep\n    concurrency: 4")],
        [(METRIC, "    metric: accuracy:gsm8k:a:none"), (VERSUS, "value: 0.9")],
    ],
)
def test_good_claims_are_let_through(changes: list[Change], write: Write) -> None:
    assert len(load_suite(write(changed(GOOD, *changes)[0])).claims) == 1


def test_a_claim_may_speak_of_another_files_scenario(write: Write) -> None:
    scenarios, claims = GOOD[: GOOD.index("claims:")], GOOD[GOOD.index("claims:") :]
    own = scenarios.replace('"on"', "a").replace('"off"', "b").replace("id: sweep", "id: c")
    own = own.replace("elsewhere", "d")
    first, _ = write(own + claims, "a.yaml"), write(scenarios, "b.yaml")
    assert len(load_suite(first.parent).claims) == 1
    with pytest.raises(SeveralInputErrors, match="load all files, if another one has it"):
        load_suite(first)


def test_a_claims_scenario_that_is_itself_wrong_is_not_missed(write: Write) -> None:
    text, _ = changed(GOOD, ("With it\n", "With it\n    limits: {total_s: 1}\n"))
    assert [error.field for error in errors_of(write(text))] == ["scenarios[0].limits.total_s"]


def test_a_claims_id_is_its_own(write: Write) -> None:
    (error,) = errors_of(write(GOOD + GOOD[GOOD.index("  - id: it-is-faster") :]))
    assert (error.field, error.problem) == ("claims[1].id", "id given twice")
    assert "one claim of that id" in str(error)


# Floors. ------------------------------------------------------------------------------------

FLOORS = replace(
    SCENARIO,
    floors=(
        Floor("output_speed_per_user", 250.0, 1),
        Floor("output_throughput", 100.0, 1),
        Floor("output_throughput", 300.0, 4),
    ),
)


def test_a_floor_is_a_claim_of_its_scenario() -> None:
    speed, low, high = claims_of([FLOORS])
    title = "A small model, served: output_speed_per_user of at least 250 tokens/s"
    name, metric = "small-serve-output-speed-per-user-floor", "output_speed_per_user"
    assert speed == Claim(
        *(name, title, SCENARIO.source, metric, "small-serve", "better"), concurrency=1, value=250.0
    )
    points = [f"small-serve-output-throughput-c{point}-floor" for point in (1, 4)]
    assert [low.id, high.id] == points


def test_a_floor_of_what_should_be_low_is_a_ceiling() -> None:
    (claim,) = claims_of([replace(SCENARIO, floors=(Floor("tpot_mean_ms", 4.0, 1),))])
    assert claim.title.endswith("tpot_mean_ms of at most 4 ms")
