"""`perfgate plan`: what could be shown and what it would cost, without starting anything.

`recorded_plans.json` holds what it printed, case by case, when each number was last looked at.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import building
import pytest
import yaml
from building import MACHINE
from command_line import Perfgate

from perfgate.baselines import Baseline, BaselineRun, Entry, own_store, suite_store
from perfgate.baselines.noise_history import NoiseRun, NoiseSeries, save
from perfgate.cli.main import main
from perfgate.core.errors import MissingProgram
from perfgate.engines.base import EngineBuild
from perfgate.engines.build_source import BuildSource
from perfgate.engines.llama_cpp import LlamaCpp

Capture = pytest.CaptureFixture[str]
RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("recorded_plans.json").read_text())
SOURCE = BuildSource(image="engine:old")
PRIOR = {"noise": "prior"}
TINY = {"output_throughput": 0.002, "server_cpu_s_per_1k_tokens": 0.003}
BUILD = EngineBuild("llama.cpp", "2026.10", "2026.10")
ACCURACY = "accuracy:perfgate_arithmetic:exact_match:strict-match"
SPEEDS = (100.0, 100.4, 99.7, 100.1, 99.9, 100.6, 99.5, 100.2, 100.3, 99.8)


@pytest.fixture(autouse=True)
def installed(two_scenarios: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without GPUs with the engine on it; nothing may be started."""
    monkeypatch.setattr("perfgate.cli.plan.detect", lambda: MACHINE)
    monkeypatch.setattr(LlamaCpp, "build", lambda self, locations: BUILD)

    def nothing(*_: object, **__: object) -> None:
        raise AssertionError("a plan starts nothing")

    monkeypatch.setattr("perfgate.launchers.local.launcher.LocalLauncher.start", nothing)


def edit(folder: Path, **gate: Any) -> None:
    """Change the gate of the H200 scenario."""
    path = folder / "h200.yaml"
    plain = yaml.safe_load(path.read_text())
    policy = plain["scenarios"][0]["gate"]
    # five evaluations of 200 questions find a drop of 6 points
    bands = {**policy["bands"], ACCURACY: 0.06, **gate.pop("bands", {})}
    policy.update(gate, bands=bands)
    path.write_text(yaml.safe_dump(plain))


def accepted(
    starts: int = 5,
    *,
    spread: float = 1.0,
    seconds: float | None = 40.0,
    answers: int = 200,
    **changes: Any,
) -> Baseline:
    """A baseline of all probes of the H200 scenario; each start is of another night."""
    right = {ACCURACY: {f"q{n}": n % 2 == 0 for n in range(answers)}} if answers else {}
    runs = tuple(
        BaselineRun(
            f"run-{number}",
            f"2026-11-{number:02}T08:00:00+00:00",
            {
                "output_throughput": 100 + spread * (value - 100),
                "server_cpu_s_per_1k_tokens": 3.0 + value / 1000,
                ACCURACY: 0.5,
            },
            right,
            seconds,
        )
        for number, value in enumerate(SPEEDS[:starts], start=1)
    )
    labels = ("c1", "c4", "perfgate_arithmetic")
    made = {"scenario": "h200-serve", "hardware": "1xH200", "engine": BUILD, "change": "first"}
    entries = {label: Entry({"content": "a"}, runs) for label in labels}
    return building.baseline(entries=entries, **{**made, **changes})


def given(folder: Path, case: Mapping[str, Any]) -> None:
    """The gate, the baseline and the history that a recorded case has."""
    edit(folder, **case["gate"])
    if (stored := case["stored"]) is not None:
        source = SOURCE if stored.get("source") else None
        found = accepted(**{**stored, "source": source})
        (own_store() if found.accepted_by == "self" else suite_store()).save(found)
    if (hardware := case["history"]) is not None:
        own, values = hardware == "cpu", {"output_throughput": (100.0, 101.0, 99.0, 100.5) * 6}
        series = NoiseSeries("s", "c1", "a", "abc", values, own=own)
        save(NoiseRun(hardware, "r", "2026-11-20T08:00:00+00:00", (series,)), own=own)


@pytest.mark.parametrize("name", RECORDED)
def test_as_recorded(name: str, two_scenarios: Path, capsys: Capture) -> None:
    case = RECORDED[name]
    given(two_scenarios, case)
    status = main(["plan", *case["words"].split()])
    printed = capsys.readouterr()
    err = printed.err.replace(str(two_scenarios), "FOLDER")
    assert status == case["status"]
    assert printed.out.splitlines() == case["out"]
    assert err.splitlines() == case["err"]


@pytest.mark.usefixtures("two_scenarios")
def test_measured_noise_needs_no_control_beside_an_accuracy(capsys: Capture) -> None:
    own = {"scenario": "local-smollm2-serve", "hardware": "cpu"}
    own_store().save(accepted(**own, accepted_by="self"))
    suite_store().save(accepted(**own))
    main(["plan", "local-smollm2-serve"])
    printed = capsys.readouterr().out
    assert re.search(rf"^  perfgate_arithmetic +{ACCURACY} ", printed, re.MULTILINE)
    assert "no control" not in printed


def test_as_json(two_scenarios: Path, perfgate: Perfgate) -> None:
    edit(two_scenarios, **PRIOR)
    suite_store().save(accepted(source=SOURCE))
    plan = perfgate.plain("plan h200-serve")
    (one,) = plan["scenarios"]
    # c1 and c4 with two metrics each, and the accuracy; two points are no sweep
    assert (plan["tests"], plan["problems"], plan["unjudged"]) == (5, [], [])
    assert plan["total"] == one["cost"]
    assert (one["max_starts"], one["max_controls"], one["reference_starts"]) == (4, 3, 0)
    worst, unchanged = one["cost"]["worst"], one["cost"]["unchanged"]
    # a control is measured like any start: 7 of 40 s for each probe but the answers
    assert (worst["starts"], worst["hours_at_most"]) == (7, False)
    assert 3600 * worst["hours"] == pytest.approx(40 * (7 + 7 + 3), abs=1)
    assert unchanged["gpu_hours"] == unchanged["hours"]
    c1 = next(probe for probe in one["probes"] if probe["probe"] == "c1")
    assert (c1["judged"], c1["seconds"], c1["seconds_at_most"]) == (True, 40.0, False)
    metric = c1["metrics"][0]
    assert " ".join(metric) == (
        "metric against baseline_runs baseline_sessions sigma noise_from noise band band_source "
        "smallest control odds problem warnings notes"
    )
    for at in metric["odds"]:
        assert at["regression"] + at["pass"] + at["inconclusive"] == pytest.approx(1, abs=1e-4)
    edit(two_scenarios, bands=TINY)
    problems = perfgate.plain("plan h200-serve", 2)["problems"]
    assert len(problems) == 4
    assert "c1: the gate of output_throughput would find too little" in problems[0]


def test_which_build_is_planned(monkeypatch: pytest.MonkeyPatch, perfgate: Perfgate) -> None:
    for version, commit in (("2026.9", "aaa"), ("2026.10", "bbb")):
        suite_store().save(accepted(engine=EngineBuild("llama.cpp", version, commit)))

    def chosen(*words: str) -> tuple[str, str, str]:
        (one,) = perfgate.plain(["plan", "h200-serve", *words])["scenarios"]
        compared = one["probes"][0]["compared_with"]
        return one["version"], one["build_source"], re.findall(r"llama.cpp (\S+?),? ", compared)[0]

    assert chosen() == ("2026.10", "the installed one", "2026.10")
    assert chosen("--engine-version", "2026.9") == ("2026.9", "as given", "2026.9")
    assert chosen("--engine-commit", "aaa") == ("2026.10", "the installed one", "2026.9")

    def missing(*_: object) -> EngineBuild:
        raise MissingProgram("not here")

    monkeypatch.setattr(LlamaCpp, "build", missing)
    assert chosen()[:2] == ("unknown", "of the document, as none is installed here")


def test_a_damaged_baseline_is_an_error(perfgate: Perfgate) -> None:
    path = suite_store().save(accepted())
    path.write_text("{")
    assert str(path) in perfgate.refused("plan h200-serve")
