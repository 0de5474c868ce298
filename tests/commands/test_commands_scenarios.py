import json
import shutil
from pathlib import Path

import pytest
import yaml

from perfgate.cli import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def scenarios(two_scenarios: Path) -> Path:
    """The folder of the suite's two scenarios, a file each."""
    return two_scenarios


class TestList:
    def test_one_line_each(self, scenarios: Path, capsys: Capture) -> None:
        assert main(["scenarios", "list"]) == 0
        header, *lines = capsys.readouterr().out.splitlines()
        assert header.split() == ["id", "hardware", "engine", "markers", "title"]
        assert [line.split()[:4] for line in lines] == [
            ["h200-serve", "1xH200", "llama.cpp", "h200,serving"],
            ["local-smollm2-serve", "cpu", "llama.cpp", "cpu,local,serving,throughput"],
        ]

    def test_as_json(self, scenarios: Path, capsys: Capture) -> None:
        assert main(["scenarios", "list", "h200-*", "--format", "json"]) == 0
        (one,) = json.loads(capsys.readouterr().out)
        assert one == {
            "id": "h200-serve",
            "title": "SmolLM2-135M served on the CPU, two concurrencies and five-shot arithmetic",
            "hardware": "1xH200",
            "engine": "llama.cpp",
            "model": "SmolLM2-135M-Instruct",
            "markers": ["h200", "serving"],
            "document": "docs/architecture.md",
            "section": "The embedded default",
        }

    def test_of_another_folder(self, scenarios: Path, tmp_path: Path, capsys: Capture) -> None:
        (tmp_path / "other").mkdir()
        shutil.move(scenarios / "h200.yaml", tmp_path / "other")
        words = ["scenarios", "list", "--scenarios", str(tmp_path / "other"), "--format", "json"]
        assert main(words) == 0
        assert [one["id"] for one in json.loads(capsys.readouterr().out)] == ["h200-serve"]

    def test_a_pattern_that_matches_nothing_is_an_error(
        self, scenarios: Path, capsys: Capture
    ) -> None:
        assert main(["scenarios", "list", "h200-serv"]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "did you mean h200-serve?" in captured.err


class TestShow:
    def test_as_yaml_and_as_json_alike(self, scenarios: Path, capsys: Capture) -> None:
        assert main(["scenarios", "show", "h200-serve"]) == 0
        text = capsys.readouterr().out
        assert main(["scenarios", "show", "h200-serve", "--format", "json"]) == 0
        plain = json.loads(capsys.readouterr().out)
        assert yaml.safe_load(text) == plain
        assert plain["id"] == "h200-serve"
        assert plain["hardware"]["gpus"] == 1
        assert plain["source"]["section"] == "The embedded default"

    def test_an_unknown_id_is_an_error(self, scenarios: Path, capsys: Capture) -> None:
        assert main(["scenarios", "show", "h200-serv"]) == 2
        assert "did you mean h200-serve?" in capsys.readouterr().err

    def test_takes_no_pattern(self, scenarios: Path, capsys: Capture) -> None:
        assert main(["scenarios", "show", "h200-*"]) == 2
        assert "found: h200-*" in capsys.readouterr().err


class TestValidate:
    def test_what_is_right(self, scenarios: Path, capsys: Capture) -> None:
        assert main(["scenarios", "validate"]) == 0
        assert capsys.readouterr().out == "2 scenarios, all as they should be\n"
        assert main(["scenarios", "validate", "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out) == {
            "valid": True,
            "scenarios": ["h200-serve", "local-smollm2-serve"],
        }

    def test_one_file_alone(self, scenarios: Path, capsys: Capture) -> None:
        file = str(scenarios / "h200.yaml")
        assert main(["scenarios", "validate", file, "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["scenarios"] == ["h200-serve"]

    def test_several_places(self, scenarios: Path, capsys: Capture) -> None:
        files = [str(scenarios / "local.yaml"), str(scenarios / "h200.yaml")]
        assert main(["scenarios", "validate", *files]) == 0
        assert capsys.readouterr().out == "2 scenarios, all as they should be\n"

    def test_all_that_is_wrong_with_file_and_line(self, scenarios: Path, capsys: Capture) -> None:
        broken = scenarios / "local.yaml"
        text = broken.read_text().replace("isl: 64", "isl: many").replace("gpus: 0", "gpus: -1")
        broken.write_text(text)
        lines = text.splitlines()
        assert main(["scenarios", "validate"]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        for wrong in ("isl: many", "gpus: -1"):
            number = next(n for n, line in enumerate(lines, start=1) if wrong in line)
            assert f"{broken}:{number}: " in captured.err

    def test_a_file_that_is_not_there(self, scenarios: Path, capsys: Capture) -> None:
        assert main(["scenarios", "validate", str(scenarios / "none.yaml")]) == 2
        assert "none.yaml" in capsys.readouterr().err
