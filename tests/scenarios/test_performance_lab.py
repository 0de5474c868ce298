"""The performance lab's 15 results, read here a second time from the document's own words.

``tests/data/performance_lab/deepseek_r1_h200.txt`` is the document from "Benchmark Script" to its
end, unchanged. It is read with regular expressions of this module alone.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from string import Template
from typing import Any

import pytest
from documented_commands import COMMANDS, Documented
from documented_set import LAB, documented_suite
from tables import each

from perfgate.cli.main import main
from perfgate.clients.base import client
from perfgate.engines.base import EngineBuild, engine
from perfgate.rehearsal.expected_results import scenario_part
from perfgate.scenarios.documented import documented_values
from perfgate.scenarios.scenario import EngineSettings

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "tests/data/performance_lab/deepseek_r1_h200.txt").read_text(encoding="utf-8")
PREFIX = "h200-r1-0528-lab-"
TENSORRT_LLM = "h200-r1-0528-fp8-sharegpt"
SCENARIOS = {
    scenario.id: scenario
    for scenario in documented_suite().scenarios
    if scenario.source.document == LAB
}
# What stands before each result, in the document's order → the scenario.
RESULTS = {
    ("vLLM", "1. Choosing the Inference Engine"): f"{PREFIX}vllm-sharegpt",
    ("SGLang", "1. Choosing the Inference Engine"): f"{PREFIX}sglang-sharegpt",
    ("TensorRT-LLM", "1. Choosing the Inference Engine"): TENSORRT_LLM,
    ("TP+DP Attention", "2. Parallelism in SGLang"): f"{PREFIX}sglang-dp-sharegpt",
    ("", "3. Torch.compile in SGLang"): f"{PREFIX}sglang-dp-compile-sharegpt",
    ("", "4. MTP in SGLang"): f"{PREFIX}sglang-dp-compile-mtp-sharegpt",
    ("random 32K input", "Baseline"): f"{PREFIX}vllm-random-32000-100",
    ("random 4K input", "Baseline"): f"{PREFIX}vllm-random-4000-200",
    ("random 2K input", "Baseline"): f"{PREFIX}vllm-random-2000-100",
    ("random 128 input", "Baseline"): f"{PREFIX}vllm-random-128-4",
    ("ShareGPT batch size 4", "Baseline"): f"{PREFIX}vllm-sharegpt-c4",
    ("random 32K input", "Optimized"): f"{PREFIX}sglang-dp-random-32000-100",
    ("random 4K input", "Optimized"): f"{PREFIX}sglang-dp-random-4000-200",
    ("random 2K input", "Optimized"): f"{PREFIX}sglang-dp-random-2000-100",
    ("random 128 input", "Optimized"): f"{PREFIX}sglang-dp-random-128-4",
}
# Whose line does not do what the text says → the one beside it that does.
BESIDE = {
    name: name.replace("-sglang-dp-", "-sglang-dp8-")
    for name in RESULTS.values()
    if "-sglang-dp-" in name
}
VERSIONS = {"vllm": "0.11.0", "sglang": "0.5.3", "tensorrt-llm": "1.0.0"}
METRIC_OF = {
    "Request throughput (req/s)": "request_throughput",
    "Output token throughput (tok/s)": "output_throughput",
    "Total Token throughput (tok/s)": "total_token_throughput",
    "Benchmark duration (s)": "duration_s",
    **{
        f"{word} {short} (ms)": f"{short.lower()}_{word.lower()}_ms"
        for short in ("TTFT", "TPOT", "ITL")
        for word in ("Mean", "Median", "P99")
    },
}
COUNTS = {
    *("Successful requests", "Maximum request concurrency", "Peak concurrent requests"),
    *("Total input tokens", "Total generated tokens", "Peak output token throughput (tok/s)"),
}


@dataclass(frozen=True)
class Printed:
    """One result as it is printed: the line that launched its server, its table, its rows."""

    launch: str
    table: str
    rows: Mapping[str, str]

    def number(self, label: str) -> float:
        return float(self.rows[label])


def printed_results() -> dict[tuple[str, str], Printed]:
    """(what stands before it, heading or block) → result, in the document's order."""
    found: dict[tuple[str, str], Printed] = {}
    heading = before = launch = ""
    table: list[str] | None = None
    for line in DOCUMENT.splitlines():
        text = line.strip()
        if table is not None:
            table.append(line)
            if text == "=" * 50:
                rows = dict(re.findall(r"^ *([A-Z].*?): +([\d.]+)$", "\n".join(table), re.M))
                assert (before, heading) not in found
                found[before, heading] = Printed(launch, "\n".join(table), rows)
                before, table = "", None
        elif "Serving Benchmark Result" in text:
            table = [line]
        elif text.startswith("### "):
            heading, before = text.removeprefix("### "), ""
        elif text.startswith(("vLLM", "SGLang", "TensorRT-LLM", "TP+DP", "# ")):
            before = text.removeprefix("# ")
        elif kind := re.fullmatch(r'\?\?\? info "(Baseline|Optimized) .*"', text):
            heading, before = kind[1], ""
        elif text.startswith(("vllm serve", "python3 -m sglang", "trtllm-serve")):
            launch = text
    return found


PRINTED = {RESULTS[place]: result for place, result in printed_results().items()}


def documented(name: str) -> dict[str, float]:
    found = documented_values(SCENARIOS[name])
    assert found is not None
    points = {value.concurrency for value in found.values.values()}
    assert points == {point.concurrency for point in SCENARIOS[name].points()}
    return {metric: value.value for metric, value in found.values.items()}


# Numbers. -----------------------------------------------------------------------------------


def test_there_are_15_results_each_with_a_scenario_and_a_file() -> None:
    assert list(printed_results()) == list(RESULTS)
    assert len(PRINTED) == DOCUMENT.count("Serving Benchmark Result") == 15
    assert set(SCENARIOS) == {*PRINTED, *BESIDE.values()}
    assert {name for name in SCENARIOS if documented_values(SCENARIOS[name])} == set(PRINTED)


@each("name", PRINTED)
def test_every_printed_number_with_a_metric_is_documented(name: str) -> None:
    rows = PRINTED[name].rows
    assert set(rows) <= {*METRIC_OF, *COUNTS}
    assert documented(name) == {METRIC_OF[label]: float(rows[label]) for label in METRIC_OF}


@each("name", PRINTED)
def test_the_load_is_what_was_counted(name: str) -> None:
    result, scenario = PRINTED[name], SCENARIOS[name]
    load, (point,) = scenario.workload, scenario.points()
    assert load is not None
    assert load.input_tokens == result.number("Total input tokens")
    assert point.requests == result.number("Successful requests")
    limit = result.rows.get("Maximum request concurrency")
    assert (point.capped, point.concurrency) == (
        limit is not None,
        int(limit or result.number("Peak concurrent requests")),
    )
    assert (load.client, load.client_version, load.api) == ("vllm-bench", "0.11.0", "chat")
    assert not load.ignore_eos


@each("name", PRINTED)
def test_a_run_that_gives_the_printed_table_is_taken(name: str, tmp_path: Path) -> None:
    """With 3,199,900, 126,882 and 9,952 tokens; perfgate also asks for the end-to-end latency."""
    result, scenario = PRINTED[name], SCENARIOS[name]
    e2el = f"{1e3 * result.number('Benchmark duration (s)'):.2f}"
    (tmp_path / "client.out").write_text(
        result.table.removesuffix("=" * 50)
        + "----------------End-to-end Latency----------------\n"
        + "".join(f"{word} E2EL (ms): {e2el}\n" for word in ("Mean", "Median", "P99"))
        + "=" * 50
    )
    (point,), program = scenario.points(), client["vllm-bench"]()
    measured = program.parse(scenario.workload, point, tmp_path)  # type: ignore[call-arg, arg-type]
    assert documented(name).items() <= measured.metrics.items()
    assert measured.facts["input_tokens"] == result.number("Total input tokens")
    assert measured.facts["output_tokens"] == result.number("Total generated tokens")


@each("name", PRINTED)
def test_a_rehearsal_plays_these_prompts(name: str) -> None:
    """Else it would be told that it measured others."""
    part, (point,) = scenario_part(SCENARIOS[name], "1.0.0"), SCENARIOS[name].points()
    result = PRINTED[name]
    assert round(part.isl * point.requests) == result.number("Total input tokens")
    generated = result.number("Total generated tokens")
    assert part.osl * point.requests == pytest.approx(generated, rel=0.005)


# What is asked. -----------------------------------------------------------------------------


@each("name", SCENARIOS)
def test_releases_and_seeds_are_the_documents(name: str) -> None:
    scenario = SCENARIOS[name]
    assert scenario.source.engine_version == VERSIONS[scenario.engine.name]
    found = documented_values(scenario)
    assert found is None or found.source.engine_version == VERSIONS[scenario.engine.name]
    (point,) = scenario.points()
    assert point.seed == (42 if "random" in name else 0)  # the client's own where none is given
    assert scenario.limits.total_s >= 600


def test_the_scenario_of_tensorrt_llm_is_the_one_that_people_have_baselines_of() -> None:
    scenario = SCENARIOS[TENSORRT_LLM]
    assert scenario.content_hash() == "00d5b1203de4c9d8"
    assert scenario.content_hash(scenario.points()[0]) == "7477827ba4789841"


LINES = [one for one in COMMANDS if one.document == LAB and one.words is not None]


@each("line", LINES, ids=lambda line: line.words)
def test_a_line_is_the_documents(line: Documented) -> None:
    words = str(line.words)
    shown = [PRINTED[name].launch.split() for name in line.runs_in]
    if line.program == "vllm bench serve":
        numbers = {"isl": 4000, "osl": 200, "num_prompts": 500 if "${isl}" in words else 1000}
        words = Template(words).substitute(numbers)
        lines = [text.split() for text in DOCUMENT.splitlines() if text.startswith(line.program)]
        shown = [one for one in lines if sorted(one) == sorted(words.split())]
    assert shown
    assert all(sorted(one) == sorted(words.split()) for one in shown)


# What the lines do not do. ------------------------------------------------------------------


def test_dp_attention_without_a_size_is_flagged_and_nothing_else_is() -> None:
    flagged = {name: s.engine.inert for name, s in SCENARIOS.items() if s.engine.inert}
    assert set(flagged) == set(BESIDE)
    for name, inert in flagged.items():
        assert inert is not None
        assert list(inert) == ["attention_dp"], name
        assert "--dp-size" in inert["attention_dp"]
        assert SCENARIOS[name].engine.settings.dp is None


@each("call", [["plan"], ["scenarios", "command"], ["plan", "--format", "json"]])
def test_it_is_told_before_anything_is_started(
    call: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for name, told in ((f"{PREFIX}sglang-dp-sharegpt", True), (f"{PREFIX}sglang-sharegpt", False)):
        assert main([*call, name]) == 0
        said = "known not to be in force: attention_dp: " in capsys.readouterr().out
        assert said is told


@each("name", BESIDE)
def test_beside_it_stands_a_line_that_does_what_the_text_says(name: str) -> None:
    flagged, beside = SCENARIOS[name], SCENARIOS[BESIDE[name]]
    own = {
        field.name: getattr(beside.engine.settings, field.name)
        for field in fields(EngineSettings)
        if getattr(beside.engine.settings, field.name)
        != getattr(flagged.engine.settings, field.name)
    }
    assert own.pop("dp") == 8
    speculates = flagged.engine.settings.mtp is not None
    assert set(own) == ({"max_batch_size"} if speculates else set())
    assert replace(beside.workload or fail(), input_tokens=None) == replace(
        flagged.workload or fail(), input_tokens=None
    )
    assert beside.source.section.startswith(f"{flagged.source.section} (with --dp-size 8")
    assert "no result is documented" in beside.source.section
    assert documented_values(beside) is None


@each("name", BESIDE.values())
def test_of_the_line_beside_it_nothing_is_foreseen_that_it_does_not_do(name: str) -> None:
    build = EngineBuild("sglang", VERSIONS["sglang"], VERSIONS["sglang"])
    assert engine["sglang"]().known_limitations(SCENARIOS[name], build) == ()


def fail() -> Any:
    raise AssertionError("no load")


@pytest.mark.parametrize("marker", ["vllm", "sglang"])
def test_engines_can_be_left_out_by_their_marker(marker: str) -> None:
    marked = {name for name, scenario in SCENARIOS.items() if marker in scenario.markers}
    assert marked == {name for name, s in SCENARIOS.items() if s.engine.name == marker}
