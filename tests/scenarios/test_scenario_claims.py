"""Claims in scenario files: what a good one gives, what is said of a bad one, and floors."""

from dataclasses import replace
from pathlib import Path

import pytest
from building import SCENARIO
from tables import each

from perfgate.core.errors import SeveralInputErrors
from perfgate.scenarios.claims import claims_of
from perfgate.scenarios.files import load_scenarios, load_suite
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

BROKEN = {
    "unknown metric": (
        [("metric: output_throughput\n    s", "metric: output_thruput # HERE\n    s")],
        "metric",
        "did you mean output_throughput?",
    ),
    "unknown scenario": (
        [('scenario: "on"', "scenario: onn # HERE")],
        "scenario",
        "no scenario of that name",
    ),
    "unknown other": ([('versus: "off"', "versus: of # HERE")], "versus", "did you mean off?"),
    "compared with itself": ([('versus: "off"', 'versus: "on" # HERE')], "versus", "itself"),
    "compared with nothing": (
        [("  - id: it-is-faster", "  - id: it-is-faster # HERE"), ('    versus: "off"\n', "")],
        "",
        "compared with nothing",
    ),
    "compared with two things": (
        [('versus: "off"', 'versus: "off"\n    value: 9 # HERE')],
        "value",
        "compared with two things",
    ),
    "a number to be missed": (
        [('versus: "off"', "value: 9"), ("expect: better", "expect: worse # HERE")],
        "expect",
        "better or not_worse",
    ),
    "a margin without use": (
        [('versus: "off"', 'versus: "off"\n    margin: 0.1 # HERE')],
        "margin",
        "expect not_worse or not_better, or no margin",
    ),
    "an effect without use": (
        [
            ("expect: better", "expect: not_worse"),
            ('versus: "off"', 'versus: "off"\n    minimum_effect: 0.1 # HERE'),
        ],
        "minimum_effect",
        "expect better than another scenario, or no minimum effect",
    ),
    "an effect beyond a number": (
        [('versus: "off"', "value: 9\n    minimum_effect: 0.1 # HERE")],
        "minimum_effect",
        "the minimum effect is not used",
    ),
    "a number that is not exceeded": (
        [('versus: "off"', "value: 9"), ("expect: better", "expect: not_better # HERE")],
        "expect",
        "better or not_worse",
    ),
    "a documented size of a number": (
        [('versus: "off"', "value: 9\n    documented: 0.1 # HERE\n    tolerance: 0.05")],
        "documented",
        "the documented size is not used",
    ),
    "a documented size beside a minimum effect": (
        [
            (
                'versus: "off"',
                'versus: "off"\n    minimum_effect: 0.1\n    documented: 0.1 # HERE\n'
                "    tolerance: 0.05",
            )
        ],
        "documented",
        "without minimum_effect",
    ),
    "a documented size without tolerance": (
        [
            ("  - id: it-is-faster", "  - id: it-is-faster # HERE"),
            ('versus: "off"', 'versus: "off"\n    documented: 0.1'),
        ],
        "tolerance",
        "how far the change may fall short of documented",
    ),
    "a tolerance of no size": (
        [('versus: "off"', 'versus: "off"\n    tolerance: 0.1 # HERE')],
        "tolerance",
        "documented beside it, or no tolerance",
    ),
    "a tolerance of what only has a direction": (
        [
            ("expect: better", "expect: not_better"),
            ('versus: "off"', 'versus: "off"\n    documented: -0.1\n    tolerance: 0.1 # HERE'),
        ],
        "tolerance",
        "expect better or worse, or no tolerance",
    ),
    "a documented loss that is called a gain": (
        [('versus: "off"', 'versus: "off"\n    documented: -0.1 # HERE\n    tolerance: 0.05')],
        "documented",
        "the documented change is not better",
    ),
    "not given by the other": (
        [("metric: output_throughput\n    s", "metric: tpot_mean_ms # HERE\n    s")],
        "metric",
        "metric does not exist without streaming (off)",
    ),
    "score that the other does not measure": (
        [
            (
                "metric: output_throughput\n    s",
                "metric: accuracy:gsm8k:exact_match:strict-match # HERE\n    s",
            )
        ],
        "metric",
        "score of a task that is not measured (off)",
    ),
    "not a point of the sweep": (
        [('versus: "off"', 'versus: "off"\n    concurrency: 8 # HERE')],
        "concurrency",
        "not a point of the sweep (on)",
    ),
    "which point of the sweep": (
        [
            ("  - id: it-is-faster", "  - id: it-is-faster # HERE"),
            ('versus: "off"', "versus: sweep"),
        ],
        "concurrency",
        "one point of the sweep of sweep: (1, 4)",
    ),
    "other hardware": (
        [('versus: "off"', "versus: elsewhere # HERE")],
        "versus",
        "run on different hardware\n  found: cpu and 1xH200",
    ),
    "unknown field": (
        [("expect: better", "expect: better\n    than: 1 # HERE")],
        "than",
        "unknown",
    ),
    "no number": (
        [('versus: "off"', "value: 0 # HERE")],
        "value",
        "a number, above 0",
    ),
    "title missing": (
        [
            ("  - id: it-is-faster", "  - id: it-is-faster # HERE"),
            ("    title: With it the engine is faster\n", ""),
        ],
        "title",
        "missing\n  expected: The statement, one line.",
    ),
}


def write(folder: Path, changes: list[tuple[str, str]], name: str = "claims.yaml") -> Path:
    text = GOOD
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_a_file_gives_its_claims(tmp_path: Path) -> None:
    suite = load_suite(write(tmp_path, []))
    assert suite.claims == (
        Claim(
            id="it-is-faster",
            title="With it the engine is faster",
            source=Source("guide.md", "Features"),
            metric="output_throughput",
            scenario="on",
            expect="better",
            versus="off",
        ),
    )
    assert suite.scenarios == load_scenarios(tmp_path)


@each("name", BROKEN)
def test_a_wrong_claim_is_told_with_file_line_and_field(name: str, tmp_path: Path) -> None:
    changes, field, words = BROKEN[name]
    file = write(tmp_path, changes)
    rows = file.read_text(encoding="utf-8").splitlines()
    line = next(n for n, row in enumerate(rows, start=1) if "HERE" in row)
    place = f"claims[0].{field}" if field else "claims[0]"

    with pytest.raises(SeveralInputErrors) as caught:
        load_suite(file)

    told = [str(error) for error in caught.value.errors]
    assert [t for t in told if t.startswith(f"{file}:{line}: {place}: ") and words in t], told


@each(
    "changes",
    [
        pytest.param([('versus: "off"', "value: 9.5")], id="a number to be reached"),
        pytest.param(
            [("expect: better", "expect: not_worse\n    margin: 0.01")], id="a loss that is allowed"
        ),
        pytest.param(
            [("expect: better", "expect: not_better\n    margin: 0.01\n    documented: -0.69")],
            id="no gain",
        ),
        pytest.param(
            [("expect: better", "expect: better\n    documented: 2.448\n    tolerance: 0.05")],
            id="a gain by how much",
        ),
        pytest.param(
            [("expect: better", "expect: worse\n    documented: -0.34\n    tolerance: 0.05")],
            id="a cost by how much",
        ),
        pytest.param(
            [('versus: "off"', 'versus: "off"\n    minimum_effect: 0.05')], id="a gain that counts"
        ),
        pytest.param(
            [('versus: "off"', "versus: sweep\n    concurrency: 4")], id="a point that both have"
        ),
        pytest.param(
            [
                ("metric: output_throughput\n    s", "metric: accuracy:gsm8k:a:none\n    s"),
                ('versus: "off"', "value: 0.9"),
            ],
            id="a score",
        ),
    ],
)
def test_good_claims_are_let_through(changes: list[tuple[str, str]], tmp_path: Path) -> None:
    assert len(load_suite(write(tmp_path, changes)).claims) == 1


def test_a_claim_may_speak_of_another_files_scenario(tmp_path: Path) -> None:
    scenarios, claims = GOOD[: GOOD.index("claims:")], GOOD[GOOD.index("claims:") :]
    (tmp_path / "b.yaml").write_text(scenarios, encoding="utf-8")
    own = scenarios.replace('"on"', "a").replace('"off"', "b").replace("id: sweep", "id: c")
    own = own.replace("elsewhere", "d")
    (tmp_path / "a.yaml").write_text(own + claims, encoding="utf-8")
    assert len(load_suite(tmp_path).claims) == 1
    with pytest.raises(SeveralInputErrors, match="load all files, if another one has it"):
        load_suite(tmp_path / "a.yaml")


def test_a_claims_scenario_that_is_itself_wrong_is_not_missed(tmp_path: Path) -> None:
    file = write(tmp_path, [("title: With it\n", "title: With it\n    limits: {total_s: 1}\n")])
    with pytest.raises(SeveralInputErrors) as caught:
        load_suite(file)
    assert [error.field for error in caught.value.errors] == ["scenarios[0].limits.total_s"]


def test_a_claims_id_is_its_own(tmp_path: Path) -> None:
    claim = GOOD[GOOD.index("  - id: it-is-faster") :]
    file = tmp_path / "claims.yaml"
    file.write_text(GOOD + claim, encoding="utf-8")
    with pytest.raises(SeveralInputErrors, match=r"claims\[1\].id: id given twice") as caught:
        load_suite(file)
    assert "one claim of that id" in str(caught.value)


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
    assert speed == Claim(
        id="small-serve-output-speed-per-user-floor",
        title="A small model, served: output_speed_per_user of at least 250 tokens/s",
        source=SCENARIO.source,
        metric="output_speed_per_user",
        scenario="small-serve",
        expect="better",
        concurrency=1,
        value=250.0,
    )
    assert [low.id, high.id] == [
        "small-serve-output-throughput-c1-floor",
        "small-serve-output-throughput-c4-floor",
    ]


def test_a_floor_of_what_should_be_low_is_a_ceiling() -> None:
    (claim,) = claims_of([replace(SCENARIO, floors=(Floor("tpot_mean_ms", 4.0, 1),))])
    assert claim.title.endswith("tpot_mean_ms of at most 4 ms")


def test_a_claim_is_given_with_either_side(tmp_path: Path) -> None:
    suite = load_suite(write(tmp_path, []))
    by_id = {scenario.id: scenario for scenario in suite.scenarios}
    assert claims_of(suite.scenarios, suite.claims) == suite.claims
    assert claims_of([by_id["on"]], suite.claims) == suite.claims
    assert claims_of([by_id["off"]], suite.claims) == suite.claims
    assert claims_of([by_id["sweep"]], suite.claims) == ()
