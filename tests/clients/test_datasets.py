"""Datasets that a person brings: found, checked, and refused when they were generated."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from building import SCENARIO
from refusals import refused

from perfgate.clients.datasets import (
    GPQA_DIAMOND,
    SHAREGPT,
    gpqa_diamond,
    of_trtllm_eval,
    real_dataset,
    sharegpt,
)
from perfgate.core.programs.locations import Locations
from perfgate.scenarios.scenario import Scenario

REAL: Scenario = replace(
    SCENARIO,
    id="b200-min-latency",
    workload=replace(
        SCENARIO.workload, dataset="real", isl=1024, osl=2048, concurrency=(1,), requests=3
    ),
)
PAPER = Locations(on_paper=True)


def lines(*requests: dict[str, Any]) -> str:
    return "".join(json.dumps(request) + "\n" for request in requests)


def request(number: int, **changes: Any) -> dict[str, Any]:
    return {"task_id": number, "prompt": "word " * (number + 5), "output_tokens": 2048, **changes}


@pytest.fixture
def locations(tmp_path: Path) -> Locations:
    return Locations(datasets=tmp_path)


class TestRealDataset:
    def test_is_found_by_lengths_or_first_by_scenario(self, locations, tmp_path) -> None:
        for name in ("real-1024-2048.jsonl", "b200-min-latency.jsonl"):
            (tmp_path / name).write_text(lines(*map(request, range(3))) + "\n")
            assert real_dataset(REAL, locations) == tmp_path / name
        assert str(real_dataset(REAL, PAPER)) == "YOUR_DATASET.jsonl"

    def test_may_hold_token_ids(self, locations: Locations, tmp_path: Path) -> None:
        ids = [
            {"task_id": n, "input_ids": list(range(n + 2)), "output_tokens": 8} for n in range(3)
        ]
        (tmp_path / "b200-min-latency.jsonl").write_text(lines(*ids))
        assert real_dataset(REAL, locations).is_file()

    @pytest.mark.parametrize("locations", [Locations(), None], ids=["no folder named", "not in it"])
    def test_is_asked_for(self, locations: Locations | None, tmp_path: Path) -> None:
        message = str(refused(real_dataset, REAL, locations or Locations(datasets=tmp_path)))
        assert "b200-min-latency.jsonl or real-1024-2048.jsonl" in message
        assert "Dataset preparation" in message
        assert '"output_tokens"' in message

    def test_a_generated_one_and_too_few_requests_are_refused(self, locations, tmp_path) -> None:
        same = [request(0) | {"task_id": number} for number in range(3)]
        (tmp_path / "b200-min-latency.jsonl").write_text(lines(*same))
        error = refused(real_dataset, REAL, locations, match="was generated")
        assert "MTP's acceptance rate" in str(error)
        (tmp_path / "b200-min-latency.jsonl").write_text(lines(*map(request, range(2))))
        error = refused(real_dataset, REAL, locations, match="too small")
        assert (error.found, error.expected) == ("2 requests", "at least 3")

    @pytest.mark.parametrize(
        ("bad", "problem"),
        [
            ('{"task_id": 1', "no JSON"),
            ('{"task_id": ' + "[" * 200_000, "nested too deep"),
            ('{"task_id": ' + "1" * 6000 + "}", "too many digits"),
            ("x" * (2**24 + 1), "is too large"),
            ('["a"]', "task_id"),
            (json.dumps({"prompt": "a", "output_tokens": 3}), "task_id"),
            (json.dumps({"task_id": 1, "output_tokens": 3}), "prompt or input_ids"),
            (json.dumps({"task_id": 1, "prompt": "a"}), "output_tokens"),
            (json.dumps({"task_id": 1, "prompt": "a", "output_tokens": 0}), "output_tokens"),
        ],
    )
    def test_a_broken_line_is_told_by_its_number(self, locations, tmp_path, bad, problem) -> None:
        (tmp_path / "b200-min-latency.jsonl").write_text(lines(request(0)) + bad + "\n")
        assert refused(real_dataset, REAL, locations, match=problem).line == 2


def test_sharegpt_is_whole(locations: Locations, tmp_path: Path) -> None:
    assert str(sharegpt(PAPER)) == "ShareGPT_V3_unfiltered_cleaned_split.json"
    refused(sharegpt, locations, match="anon8231489123")
    (tmp_path / SHAREGPT).write_text('[{"id": "a"}, {"id": "b')
    refused(sharegpt, locations, match="is truncated")
    (tmp_path / SHAREGPT).write_text('[{"id": "a"}]\n')
    assert sharegpt(locations) == tmp_path / SHAREGPT


class TestGpqa:
    HEAD = "Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2,Incorrect Answer 3\n"

    def test_all_questions(self, locations: Locations, tmp_path: Path) -> None:
        refused(gpqa_diamond, locations, match="licence")
        row = '"Which, of\nthese?",a,b,c,d\n'
        (tmp_path / GPQA_DIAMOND).write_text(self.HEAD + row * 198)
        assert gpqa_diamond(locations) == tmp_path / GPQA_DIAMOND

    @pytest.mark.parametrize("text", [HEAD + "q,a,b,c,d\n" * 10, "a,b\n" + "1,2\n" * 198])
    def test_another_file(self, locations: Locations, tmp_path: Path, text: str) -> None:
        (tmp_path / GPQA_DIAMOND).write_text(text)
        refused(gpqa_diamond, locations, match="not the questions")

    def test_trtllm_eval_takes_the_folder_of_the_data_set(self, locations, tmp_path) -> None:
        folder = tmp_path / "gpqa"
        folder.mkdir()
        (folder / GPQA_DIAMOND).write_text(self.HEAD + "q,a,b,c,d\n" * 198)
        refused(of_trtllm_eval, "gpqa_diamond", locations, match=r"README\.md")
        (folder / "README.md").write_text("configs")
        assert of_trtllm_eval("gpqa_diamond", locations) == folder
        (folder / GPQA_DIAMOND).write_text(self.HEAD)
        error = refused(of_trtllm_eval, "gpqa_diamond", locations, match="not the questions")
        assert "hf download" in str(error)

    def test_other_tasks_of_trtllm_eval_may_come_from_the_hub(self, locations, tmp_path) -> None:
        assert of_trtllm_eval("gsm8k", locations) is None
        (tmp_path / "gsm8k").mkdir()
        assert of_trtllm_eval("gsm8k", locations) == tmp_path / "gsm8k"
        assert of_trtllm_eval("gsm8k", PAPER) is None
        assert of_trtllm_eval("gpqa_diamond", PAPER) == Path("gpqa")
