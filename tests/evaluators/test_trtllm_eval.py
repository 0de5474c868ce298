"""TensorRT-LLM's own evaluators: one call each, and what they leave: scores, and answers.

trtllm-eval prints percent, which are read as fractions; gpqa_llmapi.py one accuracy of all 198
questions. What the recorded lines say is in tests/data/values.json.
"""

import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from building import SCENARIO
from printed_lines import lines_of
from refusals import refused as refusal
from tables import each

from perfgate.core.errors import MissingProgram, RunError
from perfgate.core.measurement import Measurement
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.programs import TENSORRT_LLM_PYTHON
from perfgate.engines.base import EngineBuild
from perfgate.evaluators import lm_eval_results
from perfgate.evaluators.trtllm_eval import (
    GPQA_METRIC,
    TrtllmEval,
    TrtllmGpqa,
    is_report,
    of_task,
    parse_gpqa,
)
from perfgate.plan.toolchain import BuildOverride, toolchain_for
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import (
    AccuracyTask,
    CudaGraphs,
    EngineChoice,
    EngineSettings,
    Model,
    Source,
)

DATA = Path(__file__).parents[1] / "data"
GSM8K = (DATA / "trtllm_eval" / "gsm8k_qwen3.txt").read_text(encoding="utf-8")
MMLU = (DATA / "trtllm_eval" / "mmlu_qwen3.txt").read_text(encoding="utf-8")
PRINTED = (DATA / "gpqa" / "deepseek_v3.txt").read_text()
STRICT = "accuracy:gsm8k:exact_match:strict-match"
FLEXIBLE = "accuracy:gsm8k:exact_match:flexible-extract"
GPQA = "accuracy:gpqa_diamond:exact_match:strict-match"
TASK = AccuracyTask("trtllm-eval", "gsm8k", 5)
GPQA_TASK = AccuracyTask("trtllm-eval", "gpqa_diamond", 0)
LM_EVAL_NAME = "gpqa_diamond_cot_zeroshot_aa"
BUILD = EngineBuild("tensorrt-llm", "1.3.0rc3", "a")
PAPER = Locations(on_paper=True)
SETTINGS = EngineSettings(tp=8, cuda_graphs=CudaGraphs(), overlap_scheduler=True)
V3 = replace(
    SCENARIO,
    source=Source("README.md", "Run evaluation on GPQA dataset", engine_version="0.19.0"),
    model=Model("deepseek-ai/DeepSeek-V3", "fp8"),
    engine=EngineChoice("tensorrt-llm", SETTINGS),
)


def gpqa_log(right: int = 129, questions: int = 198, shots: int = 0) -> str:
    share = right / questions
    error = math.sqrt(share * (1 - share) / (questions - 1))
    return (
        "[11/20/2026-10:00:00] [TRT-LLM] [I] TRTLLM execution time: 812.345 seconds.\n"
        f"[11/20/2026-10:00:00] [TRT-LLM] [I] lm-eval {LM_EVAL_NAME} results "
        "(scores normalized to range 0~100):\n"
        "|Tasks|Version|Filter|n-shot|Metric| | Value | |Stderr|\n"
        "|-----|------:|------|-----:|------|-|------:|-|-----:|\n"
        f"|{LM_EVAL_NAME}|1|strict-match|{shots}|exact_match|↑|{100 * share:.4f}|±|"
        f"{100 * error:.4f}|\n\n"
        f"[11/20/2026-10:00:00] [TRT-LLM] [I] lm-eval {LM_EVAL_NAME} average accuracy: "
        f"{100 * share:.2f}\n"
    )


def samples(folder: Path, right: int = 129, questions: int = 198, **changes: Any) -> None:
    """The file as 1.3.0rc3 writes it (`evaluate/lm_eval.py`), what nobody reads left out."""
    rows = [
        {
            "filter": "strict-match",
            "exact_match": 1.0 if number < right else 0.0,
            "doc_hash": f"d{number}",
            "target_hash": "t",
        }
        for number in range(questions)
    ]
    content = {"results": {}, "samples": {LM_EVAL_NAME: rows}, **changes}
    (folder / f"samples_{LM_EVAL_NAME}.json").write_text(json.dumps(content))


def read(text: str, folder: Path, task: AccuracyTask = GPQA_TASK) -> Measurement:
    return of_task(task, lines_of(text), folder)


def refused(text: str, folder: Path, task: AccuracyTask = GPQA_TASK) -> RunError:
    return refusal(read, text, folder, task, error=RunError)


def test_a_run_of_a_task(tmp_path: Path) -> None:
    found = read(GSM8K, tmp_path, TASK)
    assert found.metrics == {FLEXIBLE: 0.843063, STRICT: 0.886277}
    assert found.facts == {
        "evaluator": "trtllm-eval",
        "questions": 1319,
        "fewshot": 5,
        "stderr:exact_match:flexible-extract": pytest.approx(0.010015, abs=1e-5),
        "stderr:exact_match:strict-match": pytest.approx(0.008741, abs=1e-5),
    }
    assert found.answers == {}


def test_mmlu_counts_its_questions(tmp_path: Path) -> None:
    task = AccuracyTask("trtllm-eval", "mmlu", 5)
    assert read(MMLU, tmp_path, task).facts["questions"] == 14042
    assert refused(MMLU.replace("14042", "14000"), tmp_path, task).failure == "incomplete"


def test_answers_where_it_keeps_them(tmp_path: Path) -> None:
    samples(tmp_path)
    found = read(gpqa_log(), tmp_path)
    assert (found.facts["duration_s"], found.facts["questions"]) == (812.345, 198)
    assert sum(found.answers[GPQA].values()) == 129
    assert len(found.answers[GPQA]) == 198


@each(
    ("text", "failure", "words"),
    [
        (gpqa_log(125, 188), "incomplete", "188 of 198 questions"),
        (gpqa_log(shots=5), "incomplete", "5 examples were shown, not 0"),
        (gpqa_log().replace("65.1515", "65.2000"), "incomplete", "whole number of 198"),
        (gpqa_log().replace("65.1515", "0.0000"), "no_metrics", "a metric is 0"),
        (gpqa_log().replace("65.1515", "165.15"), "no_metrics", "165.15 percent"),
        (gpqa_log().replace("65.1515", "nan"), "no_metrics", "nan"),
        (gpqa_log().replace("|strict-match", "|none"), "no_metrics", "not those of gpqa_diamond"),
        (gpqa_log().replace(f"|{LM_EVAL_NAME}", "|gsm8k"), "no_metrics", "is of gsm8k"),
        (gpqa_log() + gpqa_log(130), "no_metrics", "appears twice"),
        (gpqa_log().partition("|Tasks")[0], "truncated_output", "no score below"),
        (gpqa_log().partition("±")[0], "truncated_output", "incomplete"),
        (gpqa_log(0), "no_metrics", "a metric is 0"),
    ],
)
def test_what_is_no_result_of_the_task(tmp_path: Path, text: str, failure: str, words: str) -> None:
    error = refused(text, tmp_path)
    assert error.failure == failure
    assert words in f"{error.message} {error.evidence}"


def test_the_same_scores_twice_are_those_of_two_ranks(tmp_path: Path) -> None:
    assert read(gpqa_log(198), tmp_path).metrics == {GPQA: 1.0}
    assert read(gpqa_log() + gpqa_log(), tmp_path).metrics[GPQA] == pytest.approx(0.651515)


def test_fewer_questions_by_a_limit(tmp_path: Path) -> None:
    task = AccuracyTask("trtllm-eval", "gpqa_diamond", 0, limit=40)
    assert read(gpqa_log(26, 40), tmp_path, task).facts["questions"] == 40
    assert refused(gpqa_log(), tmp_path, task).failure == "incomplete"


class TestSamples:
    def test_that_are_not_those_of_the_score(self, tmp_path: Path) -> None:
        samples(tmp_path, right=128)
        assert "the logged answers give 0.646465" in refused(gpqa_log(), tmp_path).message
        samples(tmp_path, questions=197)
        assert refused(gpqa_log(), tmp_path).failure == "incomplete"
        samples(tmp_path, samples={"gsm8k": []})
        assert "has none of gpqa_diamond" in refused(gpqa_log(), tmp_path).message
        samples(tmp_path)
        file = tmp_path / f"samples_{LM_EVAL_NAME}.json"
        file.write_text(file.read_text()[:-40])
        assert refused(gpqa_log(), tmp_path).failure == "truncated_output"


def test_percent_without_the_line_that_says_so_are_refused() -> None:
    table = lines_of(GSM8K.partition("\n")[2])
    assert not is_report(table)
    error = refusal(lm_eval_results.parse_tables, table, error=RunError, match="a percentage")
    assert "the line above its table" in error.hint


def test_gpqa_is_not_loaded_from_the_hub(tmp_path: Path) -> None:
    """How it is called: tests/data/calls.json."""
    place, told = Locations(datasets=tmp_path), "hf download --repo-type dataset Idavidrein/gpqa"
    refusal(TrtllmEval().steps, V3, BUILD, GPQA_TASK, place, match=told)


def test_its_log_is_read(tmp_path: Path) -> None:
    (tmp_path / "benchmark.out").write_text("Loading weights\n")
    error = refusal(TrtllmEval().parse, GPQA_TASK, tmp_path, error=RunError)
    assert (error.failure, error.message) == ("no_metrics", "trtllm-eval left no report")
    (tmp_path / "benchmark.out").write_text("Loading weights\n" + gpqa_log(), encoding="utf-8")
    assert set(TrtllmEval().parse(GPQA_TASK, tmp_path).metrics) == {GPQA}


def test_a_score_of_another_evaluator_is_not_comparable() -> None:
    """Verdicts compare what has the same fingerprint; see `verdicts.comparison` for files."""
    found = []
    for name, version in (("trtllm-eval", "1.3.0rc3"), ("trtllm-gpqa", "0.19.0")):
        task = replace(GPQA_TASK, evaluator=name)
        scenario = replace(V3, workload=None, accuracy=(task,))
        tools = toolchain_for(scenario, PAPER, BuildOverride(version))
        vars(tools)["model_facts"] = {"sha256": "0123456789abcdef"}
        found.append(tools.fingerprint(Probe(scenario, task), {}))
    assert [one["evaluator"] for one in found] == ["trtllm-eval", "trtllm-gpqa"]


def test_its_version_is_the_engines_where_lm_eval_is_beside_it(tmp_path, monkeypatch) -> None:
    python = tmp_path / "python"
    monkeypatch.setenv(TENSORRT_LLM_PYTHON.variable, str(python))
    python.write_text(f"#!{sys.executable}\nprint('0.4.9')\n")
    python.chmod(0o755)
    for place in (PAPER, Locations()):
        tools = toolchain_for(V3, place, BuildOverride(BUILD.version))
        assert tools.version_of(TrtllmEval()) == BUILD.version
    python.write_text(f"#!{sys.executable}\nraise SystemExit('No package metadata for lm_eval')\n")
    told = "trtllm-eval lacks lm_eval"
    error = refusal(tools.version_of, TrtllmEval(), error=MissingProgram, match=told)
    assert "requirements-dev.txt" in error.hint


class TestGpqaScript:
    TASK = AccuracyTask("trtllm-gpqa", "gpqa_diamond", fewshot=0, concurrency=32)
    BUILD = EngineBuild("tensorrt-llm", "0.19.0", "a")

    @each(
        ("text", "failure", "told"),
        [
            *(
                (f"Finished in 1.0 seconds\nAverage accuracy: {value}\n", "no_metrics", "a")
                for value in ("nan", "0.000", "1.200", "", "high")
            ),
            (PRINTED.replace("198/198", "150/198"), "incomplete", "150 of 198"),
            (PRINTED + PRINTED, "no_metrics", "2 accuracies"),
        ],
    )
    def test_what_is_no_score(self, text: str, failure: str, told: str) -> None:
        error = refusal(parse_gpqa, lines_of(text), error=RunError, match=told)
        assert error.failure == failure
        if text.startswith("Finished in 1.0"):
            assert error.evidence == (text.splitlines()[1].strip(),)

    def test_its_questions_are_a_person_s(self) -> None:
        """How it is called: tests/data/calls.json."""
        source = Locations(source=Path("/src"))
        refusal(TrtllmGpqa().steps, V3, self.BUILD, self.TASK, source, match="licence")

    def test_its_log_holds_the_score(self, tmp_path: Path) -> None:
        bar, _, rest = PRINTED.partition("Finished")
        (tmp_path / "benchmark.err").write_text(bar)
        (tmp_path / "benchmark.out").write_text("Finished" + rest)
        assert TrtllmGpqa().parse(self.TASK, tmp_path).metrics == {GPQA_METRIC: 0.682}
        few, read = replace(self.TASK, limit=20), TrtllmGpqa().parse
        refusal(read, few, tmp_path, error=RunError, match="198 of 20")
        (tmp_path / "benchmark.out").write_text("No items in queue. Continuing.\n")
        assert refusal(read, self.TASK, tmp_path, error=RunError).failure == "no_metrics"
