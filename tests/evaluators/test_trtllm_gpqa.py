"""gpqa_llmapi.py: one printed accuracy of all 198 questions (recorded: tests/data/values.json)."""

from dataclasses import replace
from pathlib import Path

import pytest
from building import SCENARIO

from perfgate.clients.report_lines import lines_of
from perfgate.core.errors import InputError, RunError
from perfgate.core.locations import Locations
from perfgate.engines.base import EngineBuild
from perfgate.evaluators.trtllm_gpqa import METRIC, TrtllmGpqa, parse
from perfgate.scenarios.scenario import (
    AccuracyTask,
    CudaGraphs,
    EngineChoice,
    EngineSettings,
    Model,
    Smoke,
    Source,
)

PRINTED = (Path(__file__).parents[1] / "data" / "gpqa" / "deepseek_v3.txt").read_text()
TASK = AccuracyTask("trtllm-gpqa", "gpqa_diamond", fewshot=0, concurrency=32)
BUILD = EngineBuild("tensorrt-llm", "0.19.0", "a")
V3 = replace(
    SCENARIO,
    source=Source("README.md", "Run evaluation on GPQA dataset", engine_version="0.19.0"),
    model=Model("deepseek-ai/DeepSeek-V3", "fp8"),
    engine=EngineChoice(
        "tensorrt-llm",
        EngineSettings(tp=8, cuda_graphs=CudaGraphs(), overlap_scheduler=True),
    ),
)


def refused(text: str) -> RunError:
    with pytest.raises(RunError) as caught:
        parse(lines_of(text))
    return caught.value


@pytest.mark.parametrize("value", ["nan", "0.000", "1.200", "", "high"])
def test_what_is_no_score(value: str) -> None:
    error = refused(f"Finished in 1.0 seconds\nAverage accuracy: {value}\n")
    assert error.failure == "no_metrics"
    assert error.evidence == (f"Average accuracy: {value}".strip(),)


def test_questions_that_were_not_answered_and_two_scores() -> None:
    error = refused(PRINTED.replace("198/198", "150/198"))
    assert (error.failure, "150 of 198" in error.message) == ("incomplete", True)
    assert refused(PRINTED + PRINTED).failure == "no_metrics"


class TestEvaluator:
    def test_one_call(self) -> None:
        (step,) = TrtllmGpqa().steps(V3, BUILD, TASK, Locations(on_paper=True))
        assert (step.role, step.probe) == ("evaluator", "gpqa_diamond")
        assert "gpqa_llmapi.py" in " ".join(step.command.argv)
        with pytest.raises(InputError, match="only accuracy"):
            TrtllmGpqa().steps(V3, BUILD, Smoke("x", ("Hi",)), Locations(on_paper=True))

    def test_needs_the_questions(self) -> None:
        with pytest.raises(InputError, match="licence"):
            TrtllmGpqa().steps(V3, BUILD, TASK, Locations(source=Path("/src")))

    def test_its_log_holds_the_score(self, tmp_path: Path) -> None:
        bar, _, rest = PRINTED.partition("Finished")
        (tmp_path / "benchmark.err").write_text(bar)
        (tmp_path / "benchmark.out").write_text("Finished" + rest)
        assert TrtllmGpqa().parse(V3, TASK, tmp_path).metrics == {METRIC: 0.682}
        with pytest.raises(RunError, match="198 of 20"):
            TrtllmGpqa().parse(V3, replace(TASK, limit=20), tmp_path)
        (tmp_path / "benchmark.out").write_text("No items in queue. Continuing.\n")
        with pytest.raises(RunError) as caught:
            TrtllmGpqa().parse(V3, TASK, tmp_path)
        assert caught.value.failure == "no_metrics"
