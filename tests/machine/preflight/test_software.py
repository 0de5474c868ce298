"""Software: what the run's own functions say of engine, programs, model and dataset."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from building import SCENARIO
from made_tools import Asking, Client, Made, tools
from tables import each

from perfgate.core.errors import CliDrift, InputError, MissingProgram
from perfgate.core.locations import Locations
from perfgate.core.paths import repository
from perfgate.evaluators.trtllm_eval_results import EVALUATOR as EVAL
from perfgate.evaluators.trtllm_gpqa import EVALUATOR as GPQA
from perfgate.machine.preflight.check import Check
from perfgate.machine.preflight.software import dataset_of, judge_software, own_environment
from perfgate.plan.toolchain import BuildOverride, toolchain_for
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.scenario import AccuracyTask, Scenario


def of(name: str, checks: tuple[Check, ...]) -> Check:
    return next(check for check in checks if check.name == name)


def outcomes(checks: tuple[Check, ...]) -> dict[str, str]:
    return {check.name: check.outcome for check in checks}


LOAD = SCENARIO.workload
assert LOAD is not None


WRONG = InputError(
    "the folder of weights is incomplete",
    file=Path("/models/small"),
    field="small.model.weights.shards",
    found="3 files",
    expected="4 shards",
    hint="fetch it again",
)


def test_all_is_here() -> None:
    checks = judge_software(tools(Made()))
    assert [(check.name, check.outcome, check.found) for check in checks] == [
        ("engine", "ok", "made 1.2, commit 0123456789ab"),
        ("clients", "ok", "aiperf 0.13.0"),
        ("model", "ok", "Small-1B, 4 shards, 3.0 GiB"),
    ]


@pytest.mark.parametrize(
    ("engine", "client", "failed", "found"),
    [
        (Made(build=MissingProgram("made is not installed")), None, "engine", "made is not inst"),
        (Made(check=InputError("made cannot honour this", found="x")), None, "engine", None),
        (Made(), Client(MissingProgram("no aiperf\n  get it")), "clients", "no aiperf get it"),
        (Made(model=WRONG), None, "model", "/models/small: small.model.weights.shards: the folder"),
    ],
)
def test_what_is_missing_is_told_by_the_check_it_belongs_to(engine, client, failed, found) -> None:
    checks = judge_software(tools(engine, client))
    assert of(failed, checks).outcome == "failed"
    assert of(failed, checks).found.startswith(found or "made cannot honour this (x)")
    assert all(check.outcome != "failed" for check in checks if check.name != failed)


def test_what_is_in_a_container_is_not_looked_for() -> None:
    missing = MissingProgram("not installed")
    checks = judge_software(tools(Asking(build=missing), Client(missing)), contained=True)
    unknown = dict.fromkeys(("engine", "clients", "options"), "unknown")
    assert outcomes(checks) == {**unknown, "model": "ok"}


def test_without_the_engines_version_clients_and_options_cannot_be_asked() -> None:
    checks = judge_software(tools(Asking(build=MissingProgram("made is not installed"))))
    unknown = dict.fromkeys(("clients", "options"), "unknown")
    assert outcomes(checks) == {"engine": "failed", "model": "ok", **unknown}
    assert checks[1].found == "the engine reports no version"


def test_a_model_from_the_hub_says_so() -> None:
    engine = Made(model={"name": "lab/Small-1B", "source": "hub"})
    found = of("model", judge_software(tools(engine)))
    assert found.outcome == "unknown"
    assert found.found == (
        "lab/Small-1B comes from the hub, and is not checked: PERFGATE_MODELS is not set"
    )


def test_options_are_asked_of_engines_whose_options_move(monkeypatch) -> None:
    monkeypatch.setattr(
        "perfgate.machine.preflight.software.commands_to_verify", lambda *arguments: ("one", "two")
    )
    found = of("options", judge_software(tools(Asking())))
    assert (found.outcome, found.found) == ("ok", "those of 2 commands")
    unasked = of("options", judge_software(tools(Asking(options=("keys: not asked", "and why")))))
    assert unasked.outcome == "unknown", "what was not asked is never taken for right"
    assert unasked.found == "those of 2 commands; keys: not asked; and why"
    moved = of("options", judge_software(tools(Asking(defaults=("default of a: found 1",)))))
    assert (moved.outcome, moved.found) == ("warning", "those of 2 commands; default of a: found 1")
    both = of("options", judge_software(tools(Asking(options=("keys",), defaults=("default",)))))
    assert (both.outcome, both.found) == ("unknown", "those of 2 commands; keys; default")
    drift = CliDrift("no such option", found="--new")
    assert of("options", judge_software(tools(Asking(options=drift)))).outcome == "failed"


@pytest.mark.parametrize(
    ("dataset", "evaluator", "needed"),
    [
        ("synthetic", "lm_eval", None),
        ("real", "lm_eval", "real"),
        ("sharegpt", GPQA, "sharegpt"),
        ("synthetic", GPQA, "gpqa"),
        ("synthetic", EVAL, None),
    ],
)
def test_which_dataset_a_person_must_bring(dataset, evaluator: str, needed) -> None:
    task, load = AccuracyTask(evaluator, "task", 0), replace(LOAD, dataset=dataset)
    scenario = replace(SCENARIO, workload=load, accuracy=(task,))
    assert dataset_of(scenario) == needed
    found = outcomes(judge_software(replace(tools(Made()), scenario=scenario)))
    assert ("dataset" in found) == (needed is not None)


@pytest.mark.parametrize("dataset", ["real", "sharegpt"])
def test_a_dataset_that_is_not_there(dataset) -> None:
    found = judge_software(tools(Made(), workload=replace(LOAD, dataset=dataset)))
    assert of("dataset", found).outcome == "failed"
    assert "PERFGATE_DATASETS" in of("dataset", found).found


def test_a_dataset_that_is_there(tmp_path: Path) -> None:
    file = tmp_path / "ShareGPT_V3_unfiltered_cleaned_split.json"
    file.write_text("[]")
    made = tools(Made(), workload=replace(LOAD, dataset="sharegpt"))
    found = judge_software(replace(made, locations=Locations(datasets=tmp_path)))
    assert (of("dataset", found).outcome, of("dataset", found).found) == ("ok", str(file))


@pytest.mark.parametrize("evaluator", [GPQA, EVAL])
def test_gpqa_is_looked_for(evaluator: str) -> None:
    asking = AccuracyTask(evaluator, "gpqa_diamond", 0)
    found = judge_software(tools(Made(), accuracy=(asking,)))
    assert of("dataset", found).outcome == "failed"


WEIGHED = [one for one in load_scenarios(repository() / "scenarios") if one.model.weights]


class TestDocumentedWeights:
    """Of every scenario whose document says how large the folder is; the files are sparse."""

    def checked(self, scenario: Scenario, folder: Path, sizes: dict[int, int]) -> Check:
        """The check of a folder as documented, but for the shards of other sizes; 0: not there."""
        asked = scenario.model.weights
        assert asked is not None
        own = folder / (scenario.model.folder or scenario.model.name)
        own.mkdir(parents=True)
        quantization = {"quantization": scenario.model.quantization or {"quant_algo": "NVFP4"}}
        (own / "hf_quant_config.json").write_text(json.dumps(quantization))
        for number in range(1, asked.shards + 1):
            size = sizes.get(number, asked.gib * 2**30 // asked.shards)
            if size:
                name = f"model-{number:05d}-of-{asked.shards:05d}.safetensors"
                with (own / name).open("wb") as file:
                    file.truncate(size)
        made = toolchain_for(scenario, Locations(models=folder), BuildOverride("1.0.0", "0123456"))
        return of("model", judge_software(made, contained=True))

    @each("scenario", WEIGHED, ids=lambda one: one.id)
    def test_as_it_is_documented(self, scenario: Scenario, tmp_path: Path) -> None:
        found = self.checked(scenario, tmp_path, {})
        assert found.outcome == "ok", found
        assert scenario.model.weights is not None
        assert f"{scenario.model.weights.shards} shards" in found.found

    def test_with_a_shard_missing(self, tmp_path: Path) -> None:
        found = self.checked(WEIGHED[0], tmp_path, {7: 0})
        assert found.outcome == "failed"
        assert "the folder of weights is incomplete" in found.found
        assert "no model-00007-of-" in found.found
        assert "download the weights again" in found.hint

    def test_with_a_shard_that_is_a_pointer_or_was_cut(self, tmp_path: Path) -> None:
        found = self.checked(WEIGHED[0], tmp_path, {7: 135})
        assert found.outcome == "failed"
        assert "the folder of weights has another size" in found.found
        assert "model-00007-of-" in found.found
        assert "git lfs pull" in found.found
        cut = self.checked(WEIGHED[0], tmp_path / "cut", {7: 2**31})
        assert "git lfs pull" not in cut.found
        assert "GiB, within 1" in cut.expected


def installed(site: Path, name: str, version: str) -> None:
    metadata = site / f"{name}-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (site / f"{name}.py").write_text("raise RuntimeError('an engine was imported')\n")


def test_an_environment_of_its_own_is_well() -> None:
    assert own_environment() is None


def test_engines_beside_perfgate_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    installed(tmp_path, "tensorrt_llm", "1.0.0")
    installed(tmp_path, "sglang", "0.4.1")
    own = own_environment()
    assert own is not None
    told = own.found
    assert f"({sys.executable}) with tensorrt_llm 1.0.0, sglang 0.4.1: " in told
    assert "numpy and huggingface_hub" in told
