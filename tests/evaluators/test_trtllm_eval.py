"""trtllm-eval as an evaluator: one call, its data set, and what it leaves."""

import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from test_trtllm_eval_results import GPQA, GPQA_TASK, gpqa_log
from test_trtllm_gpqa import V3

from perfgate.core.errors import InputError, MissingProgram, RunError
from perfgate.core.locations import Locations
from perfgate.core.programs import TENSORRT_LLM_PYTHON
from perfgate.engines.base import EngineBuild
from perfgate.evaluators.trtllm_eval import TrtllmEval
from perfgate.plan.toolchain import BuildOverride, toolchain_for
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import LoadPoint

BUILD = EngineBuild("tensorrt-llm", "1.3.0rc3", "a")
PAPER = Locations(on_paper=True)


def test_one_call_that_keeps_its_samples() -> None:
    (step,) = TrtllmEval().steps(V3, BUILD, GPQA_TASK, PAPER)
    assert (step.role, step.probe) == ("evaluator", "gpqa_diamond")
    with pytest.raises(InputError, match="measures only accuracy"):
        TrtllmEval().steps(V3, BUILD, LoadPoint(1, 1, 0, 0), PAPER)
    words = step.command.argv
    at = words.index("gpqa_diamond")
    assert words[:3] == ("trtllm-eval", "--model", "deepseek-ai/DeepSeek-V3")
    assert words[at:] == (
        *("gpqa_diamond", "--dataset_path", "gpqa"),
        *("--log_samples", "--output_path", "."),
    )


def test_gpqa_is_not_loaded_from_the_hub(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="hf download --repo-type dataset Idavidrein/gpqa"):
        TrtllmEval().steps(V3, BUILD, GPQA_TASK, replace(Locations(), datasets=tmp_path))


def test_its_log_is_read(tmp_path: Path) -> None:
    (tmp_path / "benchmark.out").write_text("Loading weights\n")
    with pytest.raises(RunError, match="trtllm-eval left no report") as caught:
        TrtllmEval().parse(V3, GPQA_TASK, tmp_path)
    assert caught.value.failure == "no_metrics"
    (tmp_path / "benchmark.out").write_text("Loading weights\n" + gpqa_log(), encoding="utf-8")
    assert set(TrtllmEval().parse(V3, GPQA_TASK, tmp_path).metrics) == {GPQA}


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


class TestVersion:
    def python(self, folder: Path, code: str) -> str:
        path = folder / "python"
        path.write_text(f"#!{sys.executable}\n{code}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def test_it_is_the_engines(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        python = self.python(tmp_path, "print('0.4.9')")
        monkeypatch.setenv(TENSORRT_LLM_PYTHON.variable, python)
        assert TrtllmEval().version(BUILD, Locations()) == "1.3.0rc3"
        assert TrtllmEval().version(BUILD, PAPER) == "1.3.0rc3"

    def test_without_lm_eval_it_is_not_installed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        python = self.python(tmp_path, "raise SystemExit('No package metadata for lm_eval')")
        monkeypatch.setenv(TENSORRT_LLM_PYTHON.variable, python)
        with pytest.raises(MissingProgram, match="trtllm-eval lacks lm_eval") as caught:
            TrtllmEval().version(BUILD, Locations())
        assert "requirements-dev.txt" in caught.value.hint
