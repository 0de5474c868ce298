"""Software: what the run's own functions say of engine, programs, model and dataset."""

import json
import sys
from dataclasses import replace
from pathlib import Path

from building import SCENARIO
from made_tools import Made, tools
from tables import each

from perfgate.core.errors import CliDrift, InputError, MissingProgram
from perfgate.core.files.paths import repository
from perfgate.core.programs.locations import Locations
from perfgate.engines.base import OptionsAnswer
from perfgate.evaluators.trtllm_eval import EVALUATOR as EVAL
from perfgate.evaluators.trtllm_eval import GPQA
from perfgate.machine.preflight import Check, PreflightTarget
from perfgate.machine.preflight.software import judge_software, own_environment
from perfgate.plan.toolchain import BuildOverride, toolchain_for
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.scenario import AccuracyTask, Scenario

CONTAINED = PreflightTarget(contained=True)
LOAD = SCENARIO.workload
MISSING = MissingProgram("made is not installed")
WRONG = InputError("weights are incomplete", file=Path("/m"), field="shards", found="3")


def judged(*arguments) -> dict[str, Check]:
    return {check.name: check for check in judge_software(*arguments)}


def outcomes(*arguments) -> dict[str, str]:
    return {name: check.outcome for name, check in judged(*arguments).items()}


def test_all_is_here() -> None:
    checks = judge_software(tools(Made()))
    assert [(check.name, check.outcome, check.found) for check in checks] == [
        ("engine", "ok", "made 1.2, commit 0123456789ab"),
        ("clients", "ok", "aiperf 0.13.0"),
        ("model", "ok", "Small-1B, 4 shards, 3.0 GiB"),
    ]
    bounded = judged(tools(Made(known_limitations=("mtp: 48 at most",))))["engine"]
    assert (bounded.outcome, bounded.found[-15:]) == ("warning", "mtp: 48 at most")


@each(
    ("engine", "client", "failed", "found"),
    [
        (Made(build=MISSING), "1", "engine", "made is not installed"),
        (Made(check=InputError("cannot honour this", found="x")), "1", "engine", "cannot honour "),
        (Made(), MissingProgram("no aiperf\n  get it"), "clients", "no aiperf get it"),
        (Made(model_facts=WRONG), "1", "model", "/m: shards: weights are incomplete (3)"),
    ],
)
def test_what_is_missing_is_told_by_the_check_it_belongs_to(engine, client, failed, found) -> None:
    checks = judged(tools(engine, client))
    assert checks[failed].found.startswith(found)
    assert [name for name, check in checks.items() if check.outcome == "failed"] == [failed]


def test_what_cannot_be_asked_is_unknown() -> None:
    """Programs in a container; without the engine's version, its clients and options."""
    asked = tools(Made(build=MISSING, verify=OptionsAnswer()), MISSING)
    unknown = {"clients": "unknown", "options": "unknown", "model": "ok"}
    assert outcomes(asked, CONTAINED) == {"engine": "unknown", **unknown}
    assert outcomes(asked) == {"engine": "failed", **unknown}
    assert judged(asked)["clients"].found == "the engine reports no version"


def test_a_model_from_the_hub_says_so() -> None:
    model = judged(tools(Made(model_facts={"name": "lab/Small-1B", "source": "hub"})))["model"]
    where = "comes from the hub, and is not checked: PERFGATE_MODELS is not set"
    assert (model.outcome, model.found) == ("unknown", f"lab/Small-1B {where}")


@each(
    ("told", "outcome", "found"),
    [
        (OptionsAnswer(), "ok", ""),
        # What was not asked is never taken for right.
        (OptionsAnswer(("keys: not asked", "and why")), "unknown", "; keys: not asked; and why"),
        (OptionsAnswer((), ("default of a: found 1",)), "warning", "; default of a: found 1"),
        (OptionsAnswer(marked=("--a: marked so",)), "warning", "; --a: marked so"),
        (OptionsAnswer(("keys",), ("default",)), "unknown", "; keys; default"),
        (CliDrift("no such option", found="--new"), "failed", None),
    ],
)
def test_options_are_asked_of_engines_whose_options_move(told, outcome, found, monkeypatch) -> None:
    asks = "perfgate.plan.calls.commands_to_verify"
    monkeypatch.setattr(asks, lambda *arguments: ("one", "two"))
    options = judged(tools(Made(verify=told)))["options"]
    assert options.outcome == outcome
    assert found is None or options.found == f"those of 2 commands{found}"


@each(
    ("dataset", "evaluator", "task", "lacking"),
    [
        ("synthetic", "lm_eval", "task", None),
        ("real", "lm_eval", "task", "small-serve.jsonl or real-64-32.jsonl"),
        ("sharegpt", GPQA, "task", "ShareGPT_V3_unfiltered_cleaned_split.json"),
        ("synthetic", GPQA, "task", "gpqa_diamond.csv"),
        ("synthetic", EVAL, "task", None),
        ("synthetic", EVAL, "gpqa_diamond", "gpqa/gpqa_diamond.csv"),
    ],
)
def test_which_dataset_a_person_must_bring(dataset, evaluator: str, task: str, lacking) -> None:
    asking, load = AccuracyTask(evaluator, task, 0), replace(LOAD, dataset=dataset)
    scenario = replace(SCENARIO, workload=load, accuracy=(asking,))
    check = judged(replace(tools(Made()), scenario=scenario)).get("dataset")
    expected = None if lacking is None else f"a folder with {lacking}"
    assert (check and check.expected) == expected
    assert check is None or check.outcome == "failed"


def test_a_dataset_that_is_there(tmp_path: Path) -> None:
    file = tmp_path / "ShareGPT_V3_unfiltered_cleaned_split.json"
    file.write_text("[]")
    made = tools(Made(), workload=replace(LOAD, dataset="sharegpt"))
    dataset = judged(replace(made, locations=Locations(datasets=tmp_path)))["dataset"]
    assert (dataset.outcome, dataset.found) == ("ok", str(file))
    assert "PERFGATE_DATASETS" in judged(made)["dataset"].found


WEIGHED = [one for one in load_scenarios(repository() / "scenarios") if one.model.weights]


def of_weights(scenario: Scenario, folder: Path, sizes: dict[int, int]) -> Check:
    """The check of a folder as documented, but for the shards of other sizes; sparse files."""
    asked = scenario.model.weights
    own = folder / (scenario.model.folder or scenario.model.name)
    own.mkdir(parents=True)
    quantization = {"quantization": scenario.model.quantization or {"quant_algo": "NVFP4"}}
    (own / "hf_quant_config.json").write_text(json.dumps(quantization))
    for number in range(1, asked.shards + 1):
        name = f"model-{number:05d}-of-{asked.shards:05d}.safetensors"
        with (own / name).open("wb") as file:
            file.truncate(sizes.get(number, asked.gib * 2**30 // asked.shards))
    made = toolchain_for(scenario, Locations(models=folder), BuildOverride("1.0.0", "0123456"))
    return judged(made, CONTAINED)["model"]


@each("scenario", WEIGHED, ids=lambda one: one.id)
def test_weights_as_they_are_documented(scenario: Scenario, tmp_path: Path) -> None:
    found = of_weights(scenario, tmp_path, {})
    assert found.outcome == "ok", found
    assert f"{scenario.model.weights.shards} shards" in found.found


def test_a_shard_that_is_a_pointer_or_was_cut(tmp_path: Path) -> None:
    pointer = of_weights(WEIGHED[0], tmp_path, {7: 135})
    assert pointer.outcome == "failed"
    assert "the folder of weights has another size" in pointer.found
    assert "model-00007-of-" in pointer.found
    assert "git lfs pull" in pointer.found
    cut = of_weights(WEIGHED[0], tmp_path / "cut", {7: 2**31})
    assert "git lfs pull" not in cut.found
    assert "GiB, within 1" in cut.expected


def test_engines_beside_perfgate_are_named(tmp_path: Path, monkeypatch) -> None:
    assert own_environment() is None
    monkeypatch.syspath_prepend(tmp_path)
    for name, version in (("tensorrt_llm", "1.0.0"), ("sglang", "0.4.1")):
        metadata = tmp_path / f"{name}-{version}.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('an engine was imported')\n")
    own = own_environment()
    assert f"({sys.executable}) with tensorrt_llm 1.0.0, sglang 0.4.1: " in own.found
    assert "numpy and huggingface_hub" in own.found
