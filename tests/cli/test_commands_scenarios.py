import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import Perfgate
from tables import each

from perfgate.cli.main import main
from perfgate.clients.base import client
from perfgate.engines.base import engine
from perfgate.evaluators.base import evaluator

Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).parents[2]
JSON = ("--format", "json")
CLAIM = {
    "id": "more-is-faster",
    "title": "The one is faster than the other",
    "source": {"document": "a.md", "section": "b"},
    "metric": "output_throughput",
    "concurrency": 4,
    "scenario": "h200-serve",
    "expect": "better",
    "versus": "h200-other",
}


@pytest.fixture
def scenarios(two_scenarios: Path) -> Path:
    """The folder of the suite's two scenarios, a file each."""
    return two_scenarios


class TestList:
    def test_one_line_each(self, scenarios: Path, perfgate: Perfgate) -> None:
        header, h200, local, _, *legend = perfgate.printed("scenarios list").splitlines()
        assert header.split() == ["id", "hardware", "engine", "speed", "markers", "title", "bands"]
        told = "1xH200 llama.cpp first run accuracy,h200,serving,streaming,throughput"
        assert h200.split()[:6] == ["h200-serve", *told.split()]
        told = "cpu llama.cpp machine accuracy,cpu,local,serving,streaming,throughput"
        assert local.split()[:5] == ["local-smollm2-serve", *told.split()]
        assert h200.endswith(
            "  2.0 % family throughput: output_throughput; 5.0 % family cpu: "
            "server_cpu_s_per_1k_tokens; 8.5 points scenario: "
            "accuracy:perfgate_arithmetic:exact_match:strict-match"
        )
        assert " ".join(legend) == (
            "speed, first run: no document gives one. Without a baseline the first run records one "
            "(pytest --record), which a person promotes (perfgate baseline promote)."
        )
        assert "first run" not in perfgate.printed("scenarios list local-*")

    def test_as_json_and_of_another_folder(
        self, scenarios: Path, tmp_path: Path, perfgate: Perfgate
    ) -> None:
        folder = tmp_path / "other"
        folder.mkdir()
        shutil.move(scenarios / "h200.yaml", folder)
        (one,) = perfgate.plain(["scenarios", "list", "--scenarios", folder])
        bands = one.pop("bands")
        assert one == {
            "id": "h200-serve",
            "title": "SmolLM2-135M served on the CPU, two concurrencies and five-shot arithmetic",
            "hardware": "1xH200",
            "engine": "llama.cpp",
            "model": "SmolLM2-135M-Instruct",
            "speed": "first run",
            "markers": ["accuracy", "h200", "serving", "streaming", "throughput"],
            "document": "docs/explanation/architecture.md",
            "section": "The embedded default",
        }
        (speed, *_) = bands.items()
        band = {"against": "baseline", "band": 0.02, "source": "family"}
        assert (speed, len(bands)) == (("output_throughput", [band]), 3)

    def test_a_band_against_the_document_once_for_all_its_metrics(self, perfgate: Perfgate) -> None:
        header, line = perfgate.printed("scenarios list h200-r1-fp8-max-throughput").splitlines()
        assert line[header.index("bands") :] == (
            "2.0 % family throughput: output_throughput, total_token_throughput; "
            "2.0 % family latency: mean_request_latency_ms; 10.0 % document: output_throughput, "
            "total_token_throughput, mean_request_latency_ms"
        )

    @each(
        "words, expected",
        [
            (["-m", "serving", "-m", "cpu"], ["local-smollm2-serve"]),
            (["-m", "serving and not (cpu or weekly)"], ["h200-serve"]),
            (["-m", "", "h200-*"], ["h200-serve"]),
            (["-m", "b200"], []),
            (["--gpu", "H200"], ["h200-serve"]),
            (["--gpu", "none", "h200-*"], []),
        ],
    )
    def test_by_marker_and_gpu(
        self, scenarios: Path, perfgate: Perfgate, words: list[str], expected: list[str]
    ) -> None:
        assert [one["id"] for one in perfgate.plain(["scenarios", "list", *words])] == expected

    def test_the_markers_with_their_meaning(self, scenarios: Path, perfgate: Perfgate) -> None:
        """A claim counts by its markers."""
        plain = yaml.safe_load((scenarios / "h200.yaml").read_text())
        plain["scenarios"].append({**plain["scenarios"][0], "id": "h200-other"})
        (scenarios / "h200.yaml").write_text(yaml.safe_dump({**plain, "claims": [CLAIM]}))
        told = {one.pop("marker"): one for one in perfgate.plain("scenarios list --markers")}
        meaning = "a server under load"
        assert told["serving"] == {"scenarios": 3, "claims": 1, "meaning": meaning}
        for name, counts in (("claim", (0, 1)), ("h200", (2, 1)), ("b200", (0, 0))):
            assert (told[name]["scenarios"], told[name]["claims"]) == counts
        out = perfgate.printed("scenarios list --markers --gpu none")
        lines = [line.split() for line in out.splitlines()]
        assert ["h200", "0", "0", "needs", "H200", "GPUs"] in lines
        assert lines[0] == ["marker", "scenarios", "claims", "meaning"]


class TestShow:
    def test_as_yaml_and_as_json_alike_and_without_secrets(
        self, scenarios: Path, perfgate: Perfgate
    ) -> None:
        file = scenarios / "h200.yaml"
        document = yaml.safe_load(file.read_text())
        # pragma: allowlist nextline secret
        environment = {"HF_TOKEN": "opaque", "HF_ENDPOINT": "https://me:pass@hub", "N": "1"}
        document["scenarios"][0]["environment"] = environment
        file.write_text(yaml.safe_dump(document))
        plain = perfgate.plain("scenarios show h200-serve")
        assert yaml.safe_load(perfgate.printed("scenarios show h200-serve")) == plain
        assert (plain["id"], plain["hardware"]["gpus"]) == ("h200-serve", 1)
        assert plain["documented"] == {}
        masked = {"HF_TOKEN": "***", "HF_ENDPOINT": "https://***@hub", "N": "1"}
        assert plain["environment"] == masked

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

    def command(self, capsys: Capture, *words: str) -> Any:
        assert main(["scenarios", "command", *words, *JSON]) == 0
        return json.loads(capsys.readouterr().out)

    def test_as_json(self, capsys: Capture) -> None:
        plain = self.command(capsys, self.ID, "--engine-version", "1.0.0")
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
        assert self.command(capsys, "h200-v3-fp8-serve")["engine_version"] == "0.19.0"

    def test_as_shell_it_carries_the_same_calls(self, capsys: Capture, perfgate: Perfgate) -> None:
        steps = self.command(capsys, self.ID)["steps"]
        text = perfgate.printed(["scenarios", "command", self.ID])
        subprocess.run(["bash", "-n"], input=text, text=True, check=True)
        flat = shlex.split(text.replace("\\\n", " "), comments=True)
        for step in steps:
            # The checkout's program is found where the person has it.
            words = [word for word in step["argv"] if not word.startswith("benchmarks/")]
            assert set(words) <= set(flat)
            for content in step["files"].values():
                assert content in text

    def test_in_a_container_and_of_other_lengths(self, capsys: Capture) -> None:
        words = ["b200-r1-0528-fp8-serve", "--container", "--engine-version", "1.2.0"]
        server = self.command(capsys, *words)["steps"][0]["argv"]
        assert server[:3] == ["docker", "run", "--rm"]
        assert "nvcr.io/nvidia/tensorrt-llm/release:1.2.0" in server
        words = ["b200-r1-fp4-explore", "--shape", "4096/512"]
        assert self.command(capsys, *words)["scenario"] == "b200-r1-fp4-explore-4096-512"
        both = self.command(capsys, *words, "--shape", "128/128")
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

    def test_secrets_are_not_shown(
        self, scenarios: Path, capsys: Capture, perfgate: Perfgate
    ) -> None:
        file = ROOT / "scenarios" / "b200" / "deepseek_r1_best_practice.yaml"
        plain = yaml.safe_load(file.read_text())
        plain["scenarios"] = [one for one in plain["scenarios"] if one["id"] == self.ID]
        plain.pop("claims", None)
        plain["scenarios"][0]["environment"] = {"HF_TOKEN": "hf_1"}
        (scenarios / "secret.yaml").write_text(yaml.safe_dump(plain))
        steps = self.command(capsys, self.ID)["steps"]
        assert steps[1]["env"]["HF_TOKEN"] == "***"
        text = perfgate.printed(["scenarios", "command", self.ID])
        assert "hf_1" not in text
        assert "HF_TOKEN:?its value is not written down" in text


class TestValidate:
    def test_what_is_right(self, scenarios: Path, perfgate: Perfgate) -> None:
        assert perfgate.printed("scenarios validate") == "2 scenarios, all valid\n"
        found = perfgate.plain(["scenarios", "validate", scenarios / "h200.yaml"])
        assert found == {"valid": True, "scenarios": ["h200-serve"]}
        assert "none.yaml" in perfgate.refused(f"scenarios validate {scenarios / 'none.yaml'}")

    def test_all_that_is_wrong_with_file_and_line(self, scenarios: Path, capsys: Capture) -> None:
        broken = scenarios / "local.yaml"
        text = broken.read_text().replace("isl: 32", "isl: many").replace("gpus: 0", "gpus: -1")
        broken.write_text(text)
        lines = text.splitlines()
        assert main(["scenarios", "validate"]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        for wrong in ("isl: many", "gpus: -1"):
            number = next(n for n, line in enumerate(lines, start=1) if wrong in line)
            assert f"{broken}:{number}: " in captured.err

    def test_an_engine_of_ones_own_is_imported_first(
        self, scenarios: Path, monkeypatch: pytest.MonkeyPatch, perfgate: Perfgate
    ) -> None:
        file = scenarios / "local.yaml"
        file.write_text(file.read_text().replace("name: llama.cpp", "name: stand-in"))
        assert "--import MODULE" in perfgate.refused("scenarios list local-*")
        unknown = perfgate.refused(f"scenarios validate {file}")
        assert "scenarios[0].engine.name: unknown engine\n  found: stand-in\n" in unknown
        monkeypatch.syspath_prepend(ROOT / "tests" / "standins")
        for registry in (engine, client, evaluator):
            monkeypatch.setattr(registry, "_classes", dict(registry))  # all of them, loaded
        monkeypatch.delitem(sys.modules, "standin", raising=False)
        assert "stand-in" in perfgate.printed("scenarios list local-* --import standin")
