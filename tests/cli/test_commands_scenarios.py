"""`perfgate scenarios` on the suite's own scenarios; tests/data/cli has it on small ones."""

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import Perfgate

ROOT = Path(__file__).parents[2]


class TestShow:
    def test_the_band_of_each_gating_metric_and_its_source(self, perfgate: Perfgate) -> None:
        """Against a baseline, then against the documented value; the file's only if it has some."""
        shown = perfgate.plain("scenarios show h200-r1-0528-lab-vllm-sharegpt")
        found = [
            [(one["band"], one["source"]) for one in bands] for bands in shown["bands"].values()
        ]
        wait = [(0.15, "family"), (0.15, "family")]
        speed = [(0.02, "family"), (0.1, "document")]
        assert found == [speed, speed, wait, wait, speed, speed, speed]
        assert list(shown["bands"]) == shown["gate"]["metrics"]
        assert "bands" not in shown["gate"]
        shown = perfgate.plain("scenarios show h200-v3-fp8-gpqa")
        assert shown["gate"]["bands"] == {"accuracy:gpqa_diamond:accuracy:none": 0.1}

    def test_documented_values_with_unit_and_source(self, perfgate: Perfgate) -> None:
        plain = perfgate.plain("scenarios show b200-r1-fp4-fp16kv-max-throughput")
        told = plain["documented"]["output_throughput"]
        assert (told["value"], told["unit"]) == (36384.0838, "tokens/s")
        assert told["source"]["section"].startswith(plain["source"]["section"])
        assert told["source"]["engine_commit"].startswith("b6261862")


class TestCommand:
    """On the suite's own scenarios, as they are rendered on paper."""

    ID = "b200-r1-fp4-fp16kv-max-throughput"

    def command(self, perfgate: Perfgate, *words: str) -> Any:
        return perfgate.plain(["scenarios", "command", *words])

    def test_as_json(self, perfgate: Perfgate) -> None:
        plain = self.command(perfgate, self.ID, "--engine-version", "1.0.0")
        steps = plain.pop("steps")
        assert plain == {
            "scenario": self.ID,
            "engine": "tensorrt-llm",
            "engine_version": "1.0.0",
            "notes": [],
        }
        assert [step["role"] for step in steps] == ["prepare_dataset", "benchmark"]
        prepare, benchmark = steps
        assert set(prepare) == {"role", "probe", "argv", "env", "files", "stdout"}
        assert prepare["stdout"] == "dataset.txt"
        assert benchmark["probe"] == "c3072"
        assert benchmark["argv"][0] == "trtllm-bench"
        assert "enable_attention_dp: true" in benchmark["files"]["extra-llm-api-config.yml"]
        # Without a release that of the document.
        assert self.command(perfgate, "h200-v3-fp8-serve")["engine_version"] == "0.19.0"

    def test_as_shell_it_carries_the_same_calls(self, perfgate: Perfgate) -> None:
        steps = self.command(perfgate, self.ID)["steps"]
        text = perfgate.printed(["scenarios", "command", self.ID])
        subprocess.run(["bash", "-n"], input=text, text=True, check=True)
        flat = shlex.split(text.replace("\\\n", " "), comments=True)
        for step in steps:
            # The checkout's program is found where the person has it.
            words = [word for word in step["argv"] if not word.startswith("benchmarks/")]
            assert set(words) <= set(flat)
            for content in step["files"].values():
                assert content in text

    def test_in_a_container_and_of_other_lengths(self, perfgate: Perfgate) -> None:
        words = ["b200-r1-0528-fp8-serve", "--container", "--engine-version", "1.2.0"]
        server = self.command(perfgate, *words)["steps"][0]["argv"]
        assert server[:3] == ["docker", "run", "--rm"]
        assert "nvcr.io/nvidia/tensorrt-llm/release:1.2.0" in server
        words = ["b200-r1-fp4-explore", "--shape", "4096/512"]
        assert self.command(perfgate, *words)["scenario"] == "b200-r1-fp4-explore-4096-512"
        both = self.command(perfgate, *words, "--shape", "128/128")
        assert [each["scenario"] for each in both][1] == "b200-r1-fp4-explore-128-128"

    def test_here_the_programs_must_be_here(
        self, perfgate: Perfgate, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PERFGATE_PROGRAM_TRTLLM_SERVE", "true")
        monkeypatch.setenv("PERFGATE_PROGRAM_VLLM", "true")
        monkeypatch.setenv("PERFGATE_DATASETS", "/nowhere")
        assert "PERFGATE_DATASETS: no such folder" in perfgate.refused(
            "scenarios command h200-r1-0528-fp8-sharegpt --here"
        )

    def test_secrets_are_not_shown(self, two_scenarios: Path, perfgate: Perfgate) -> None:
        file = ROOT / "scenarios" / "b200" / "deepseek_r1_best_practice.yaml"
        plain = yaml.safe_load(file.read_text())
        plain["scenarios"] = [one for one in plain["scenarios"] if one["id"] == self.ID]
        plain.pop("claims", None)
        plain["scenarios"][0]["environment"] = {"HF_TOKEN": "hf_1"}
        (two_scenarios / "secret.yaml").write_text(yaml.safe_dump(plain))
        steps = self.command(perfgate, self.ID)["steps"]
        assert steps[1]["env"]["HF_TOKEN"] == "***"
        text = perfgate.printed(["scenarios", "command", self.ID])
        assert "hf_1" not in text
        assert "HF_TOKEN:?its value is not written down" in text
