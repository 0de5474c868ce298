"""How models, loads, datasets and examples of the documents are named to the programs."""

from dataclasses import replace
from pathlib import Path

import pytest
from tables import each
from trtllm_scenarios import CASES, ON_PAPER, build, offline, options, render, scenario

from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.programs.locations import Locations
from perfgate.engines.tensorrt_llm import checkout, programs
from perfgate.engines.tensorrt_llm.engine import TensorRTLLM
from perfgate.scenarios.scenario import EngineSettings, Smoke


class TestLocalModels:
    @pytest.fixture
    def locations(self, tmp_path: Path) -> Locations:
        (tmp_path / "DeepSeek-R1-FP4").mkdir()
        return replace(ON_PAPER, models=tmp_path)

    def test_the_benchmark_keeps_the_name_and_adds_the_folder(self, locations: Locations) -> None:
        found = options(render(CASES["b200-min-latency"], "1.0.0", locations).argv)
        assert found["--model"] == "nvidia/DeepSeek-R1-FP4"
        assert str(found["--model_path"]).endswith("/DeepSeek-R1-FP4")

    def test_the_server_takes_the_folder_calls_it_by_its_last_part_and_has_its_tokenizer(
        self, tmp_path: Path, locations: Locations
    ) -> None:
        folder = tmp_path / "DeepSeek-R1-0528"
        folder.mkdir()
        trtllm, case = TensorRTLLM(), CASES["sharegpt"]
        assert render(case, "1.0.0", locations).argv[1] == str(folder)
        for here, name in ((locations, str(folder)), (ON_PAPER, case.model.name)):
            assert trtllm.tokenizer(case, folder, here) == name
        assert trtllm.served_model(case, locations) == "DeepSeek-R1-0528"
        assert trtllm.served_model(case, ON_PAPER) == case.model.name

    @each("place", ["deepseek-ai/DeepSeek-V3", "DeepSeek-V3"])
    def test_a_folder_named_as_its_model_is_found_wherever_that_is(
        self, tmp_path: Path, place: str
    ) -> None:
        (tmp_path / place).mkdir(parents=True)
        case = CASES["2node-slurm"]
        assert case.model.folder == "DeepSeek-V3"
        found = options(render(case, "0.19.0", replace(ON_PAPER, models=tmp_path)).argv)
        assert found["--model_path"] == str(tmp_path / place)


class TestLoad:
    def throughput(self, **load: object) -> dict[str, str | None]:
        case = scenario(settings=EngineSettings(tp=8), workload=offline(8, 16, **load))
        point = case.points()[0]
        return options(programs.throughput(case, build("1.0.0"), point, "d.txt", ON_PAPER).argv)

    def test_warm_up_is_told_unless_it_is_the_programs_own(self) -> None:
        assert "--warmup" not in self.throughput(warmup_requests=2)
        assert self.throughput(warmup_requests=0)["--warmup"] == "0"


class TestDataset:
    CASE = CASES["b200-fp16-kv"]

    def test_a_subcommand_finds_the_tokenizer_in_the_local_folder(self, tmp_path: Path) -> None:
        (tmp_path / "DeepSeek-R1-FP4").mkdir()
        locations = Locations(on_paper=True, models=tmp_path)
        argv = checkout.prepare(self.CASE, build("1.2.0"), 1, locations).command.argv
        assert argv[2] == str(tmp_path / "DeepSeek-R1-FP4")

    def test_a_seed_is_passed_on(self) -> None:
        case = scenario(workload=offline(seed=7))
        for version in ("1.0.0", "1.3.0"):
            argv = checkout.prepare(case, build(version), 1, ON_PAPER).command.argv
            assert options(argv)["--random-seed"] == "7"

    def test_a_script_needs_a_checkout(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PERFGATE_PROGRAM_TENSORRT_LLM", "python3")
        with pytest.raises(InputError, match="PERFGATE_TENSORRT_LLM_SOURCE: this program is part"):
            checkout.prepare(self.CASE, build("1.0.0"), 1, Locations())
        with pytest.raises(InputError, match="the checkout of TensorRT-LLM lacks a program"):
            checkout.prepare(self.CASE, build("1.0.0"), 1, Locations(source=tmp_path))
        file = tmp_path / "benchmarks/cpp/prepare_dataset.py"
        file.parent.mkdir(parents=True)
        file.touch()
        with pytest.raises(MissingProgram, match="python3 has no package tensorrt_llm"):
            checkout.prepare(self.CASE, build("1.0.0"), 1, Locations(source=tmp_path))
        python = tmp_path / "python"
        python.write_text("#!/bin/sh\necho 1.0.0\n")
        python.chmod(0o755)
        monkeypatch.setenv("PERFGATE_PROGRAM_TENSORRT_LLM", str(python))
        argv = checkout.prepare(
            self.CASE, build("1.0.0"), 1, Locations(source=tmp_path)
        ).command.argv
        assert argv[:2] == (str(python), str(file))

    def test_lengths_are_needed(self) -> None:
        with pytest.raises(InputError, match="synthetic prompts need lengths"):
            checkout.prepare(scenario(workload=offline(isl=None)), build("1.0.0"), 1, ON_PAPER)


class TestExamples:
    def test_other_prompts_are_passed(self) -> None:
        case = replace(
            CASES["quickstart"], smoke=Smoke("trtllm-quickstart", ("Why?", "How so?"), 8)
        )
        argv = render(case, "0.19.0").argv
        assert argv[-3:] == ("--prompt", "Why?", "How so?")
        assert options(argv)["--max_tokens"] == "8"

    def test_gpqa_takes_a_share_for_the_first_questions(self) -> None:
        case = CASES["gpqa"]
        for limit in (1, 20, 197, 198):
            task = replace(case.accuracy[0], limit=limit)
            argv = checkout.gpqa(case, build("0.19.0"), task, "gpqa_diamond.csv", ON_PAPER).argv
            share = float(str(options(argv)["--limit"]))
            assert int(198 * share) + 1 == limit, "the program's own arithmetic"
