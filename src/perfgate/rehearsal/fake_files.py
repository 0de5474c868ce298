"""Fake files: folders of models, datasets and sources that look like the real ones from outside."""

import csv
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from perfgate.engines.weights import NOT_QUANTIZED
from perfgate.scenarios.scenario import Model, Scenario

SHAREGPT = "ShareGPT_V3_unfiltered_cleaned_split.json"
GPQA = "gpqa_diamond.csv"
_GPQA_QUESTIONS = 198
_CONVERSATIONS = 1200
# File of a checkout of TensorRT-LLM → what plays it.
_SOURCES = {
    "benchmarks/cpp/prepare_dataset.py": "offline:prepare_dataset",
    "examples/pytorch/quickstart_advanced.py": "offline:quickstart_advanced",
    "examples/llm-api/quickstart_advanced.py": "offline:quickstart_advanced",
    "examples/gpqa_llmapi.py": "evaluations:gpqa_llmapi",
}
_CONFIG = """{"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", \
"num_hidden_layers": 61, "num_nextn_predict_layers": 1, "torch_dtype": "bfloat16", \
"perfgate_synthetic": true}"""
_SPREAD = 0.4  # largest deviation of a prompt's length from the mean, as a fraction


def models(folder: Path, scenarios: Iterable[Scenario]) -> None:
    """A folder for each model, with files of the right names and sizes that take no space."""
    found: dict[str, Model] = {}
    for model in (scenario.model for scenario in scenarios):
        name = model.folder or model.name.rpartition("/")[2]
        # Not every scenario of a model says all that is known of it.
        earlier = found.get(name, model)
        found[name] = replace(
            earlier,
            weights=earlier.weights or model.weights,
            quantization={**(model.quantization or {}), **(earlier.quantization or {})},
        )
    for name, model in found.items():
        _model(folder / name, model)


def _model(place: Path, model: Model) -> None:
    place.mkdir(parents=True, exist_ok=True)
    shards = model.weights.shards if model.weights else 1
    size = model.weights.gib * 2**30 // shards if model.weights else 4096
    names = [f"model-{number:05d}-of-{shards:05d}.safetensors" for number in range(1, shards + 1)]
    for name in names:
        with (place / name).open("wb") as file:
            file.truncate(size)
    weights = {f"model.layers.{number}.weight": name for number, name in enumerate(names)}
    index = {"metadata": {"total_size": size * shards}, "weight_map": weights}
    (place / "config.json").write_text(_CONFIG)
    _json(place / "model.safetensors.index.json", index)
    asked = (model.quantization or {}).items()
    quantization = {key: value for key, value in asked if value != NOT_QUANTIZED}
    if "4" in model.precision:
        quantization.setdefault("quant_algo", "NVFP4")
    if quantization:
        producer = {"name": "perfgate rehearsal"}
        _json(place / "hf_quant_config.json", {"producer": producer, "quantization": quantization})


def datasets(folder: Path, scenarios: Iterable[Scenario]) -> None:
    """What people bring themselves: real prompts, conversations, questions; all made up here."""
    (folder / "gpqa").mkdir(parents=True, exist_ok=True)
    for scenario in scenarios:
        load = scenario.workload
        if load is not None and load.dataset == "real":
            most = max(point.requests for point in scenario.points())
            _real(folder / f"{scenario.id}.jsonl", most, load.isl or 1024, load.osl or 1024)
        if load is not None and load.dataset == "sharegpt":
            _sharegpt(folder / SHAREGPT)
        if any(task.task == "gpqa_diamond" for task in scenario.accuracy):
            for path in (folder / GPQA, folder / "gpqa" / GPQA):
                _gpqa(path)
            (folder / "gpqa" / "README.md").write_text("Made up by perfgate's rehearsal.\n")


def _real(path: Path, requests: int, isl: int, osl: int) -> None:
    """Prompts of varying lengths whose means are exactly `isl` and `osl`."""
    with path.open("w") as file:
        for number in range(requests):
            # Pairs deviate to both sides by as much; an odd one out has the mean.
            is_odd_one_out = requests % 2 and number == requests - 1
            step = 0 if is_odd_one_out else (number // 2 + 1) * (1 if number % 2 else -1)
            share = _SPREAD * step / (requests // 2 + 1)
            request = {
                "task_id": number,
                "prompt": f"made-up prompt {number} " + "word " * (number + 1),
                "input_ids": [1 + place % 9 for place in range(isl + int(share * isl))],
                "output_tokens": osl + int(share * osl),
            }
            file.write(json.dumps(request) + "\n")


def _sharegpt(path: Path) -> None:
    turns = [("human", "A made-up question?"), ("gpt", "A made-up answer, and nothing else.")]
    said = [{"from": who, "value": what} for who, what in turns]
    _json(path, [{"id": f"made-up-{n}", "conversations": said} for n in range(_CONVERSATIONS)])


def _gpqa(path: Path) -> None:
    wrong = [f"Incorrect Answer {number}" for number in (1, 2, 3)]
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["Record ID", "Question", "Correct Answer", *wrong])
        for number in range(_GPQA_QUESTIONS):
            table.writerow([f"made-up-{number}", f"Made-up question {number}?", "A", *"BCD"])


def sources(folder: Path) -> None:
    """The example programs of a checkout, at their true locations."""
    for name, played in _SOURCES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f'"""A mock program for TensorRT-LLM\'s {path.name}; its numbers are synthetic."""\n\n'
            f"import sys\nfrom perfgate.rehearsal.programs import play\n\n"
            f"play({played!r}, sys.argv[1:])\n"
        )


def _json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content))
