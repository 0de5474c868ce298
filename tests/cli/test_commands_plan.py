"""`perfgate plan`: what could be shown and what it would cost, without starting anything."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import building
import pytest
import yaml
from building import MACHINE
from command_line import Perfgate
from tables import each

from perfgate.baselines import Baseline, BaselineRun, Entry, own_store, suite_store
from perfgate.baselines.noise_history import NoiseRun, NoiseSeries, save
from perfgate.cli.main import main
from perfgate.core.errors import MissingProgram
from perfgate.core.locations import Locations
from perfgate.engines.base import EngineBuild
from perfgate.engines.build_source import BuildSource
from perfgate.engines.llama_cpp import LlamaCpp
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.scenario import Scenario

Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).parents[2]
BUILD = EngineBuild("llama.cpp", "2026.10", "2026.10")
ACCURACY = "accuracy:perfgate_arithmetic:exact_match:strict-match"
THROUGHPUTS = (100.0, 100.4, 99.7, 100.1, 99.9)


@pytest.fixture(autouse=True)
def installed(two_scenarios: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without GPUs with the engine on it; nothing may be started."""
    monkeypatch.setattr("perfgate.cli.plan.detect", lambda: MACHINE)
    monkeypatch.setattr(LlamaCpp, "build", lambda self, locations: BUILD)

    def nothing(*_: object, **__: object) -> None:
        raise AssertionError("a plan starts nothing")

    monkeypatch.setattr("perfgate.launchers.local.launcher.LocalLauncher.start", nothing)


@pytest.fixture
def h200(two_scenarios: Path) -> Scenario:
    return next(one for one in load_scenarios(two_scenarios) if one.id == "h200-serve")


def edit(folder: Path, **gate: Any) -> None:
    """Change the gate of the H200 scenario."""
    path = folder / "h200.yaml"
    plain = yaml.safe_load(path.read_text())
    policy = plain["scenarios"][0]["gate"]
    policy.update(gate)
    # five evaluations of 200 questions find a drop of so much
    policy["bands"] = {**policy.get("bands", {}), ACCURACY: 0.06}
    path.write_text(yaml.safe_dump(plain))


def accepted(
    h200: Scenario, build: EngineBuild = BUILD, seconds: float | None = 40.0, scale: float = 1.0
) -> Baseline:
    """A baseline of all its probes with five fresh starts."""
    runs = tuple(
        BaselineRun(
            f"run-{number}",
            f"2026-11-0{number}T08:00:00+00:00",
            {
                "output_throughput": scale * value,
                "server_cpu_s_per_1k_tokens": 3.0 + value / 1000,
                "accuracy:perfgate_arithmetic:exact_match:strict-match": 0.5,
            },
            {
                "accuracy:perfgate_arithmetic:exact_match:strict-match": {
                    f"q{n}": n % 2 == 0 for n in range(200)
                }
            },
            seconds,
        )
        for number, value in enumerate(THROUGHPUTS, start=1)
    )
    labels = ("c1", "c4", "perfgate_arithmetic")
    return building.baseline(
        scenario=h200.id,
        hardware=h200.hardware.label,
        engine=build,
        entries={label: Entry({"content": "a"}, runs) for label in labels},
        change="first",
    )


def planned(perfgate: Perfgate, *words: str, status: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = perfgate.plain(["plan", *words], status)
    return found


def of(plan: dict[str, Any], scenario: str, probe: str, metric: str) -> dict[str, Any]:
    (one,) = [one for one in plan["scenarios"] if one["id"] == scenario]
    (measured,) = [found for found in one["probes"] if found["probe"] == probe]
    (judged,) = [found for found in measured["metrics"] if found["metric"] == metric]
    return {"compared_with": measured["compared_with"], **judged}


def test_against_a_baseline(two_scenarios: Path, h200: Scenario, perfgate: Perfgate) -> None:
    edit(two_scenarios, noise="prior")
    suite_store().save(accepted(h200))
    plan = planned(perfgate, "h200-serve")
    # c1 and c4 with two metrics each, and the accuracy; two points are no sweep
    assert (plan["tests"], plan["problems"], plan["unjudged"]) == (5, [], [])
    found = of(plan, "h200-serve", "c1", "output_throughput")
    assert found["compared_with"] == (
        "compared with llama.cpp 2026.10 of 2026-11-05, accepted by Ada, 5 fresh starts "
        "(same engine commit), if the machine's facts match"
    )
    assert (found["against"], found["noise_from"]) == ("baseline", "history")
    assert (found["baseline_runs"], found["baseline_sessions"]) == (5, 5)
    assert found["sigma"] == pytest.approx(0.005, rel=0.25)
    assert found["smallest"] == pytest.approx(0.0225, abs=0.003)
    assert [at["loss"] for at in found["odds"]] == [0.0, 0.5, 1.0, 1.5]
    assert found["odds"][2]["regression"] == pytest.approx(0.94, abs=0.05)
    for at in found["odds"]:
        assert at["regression"] + at["pass"] + at["inconclusive"] == pytest.approx(1, abs=1e-4)
    # no control: this baseline does not say how its build is started
    assert (found["control"], found["odds"][0]["controls"]) == ("alone", 0)
    assert 0.01 < found["odds"][0]["regression"] < 0.04
    (one,) = plan["scenarios"]
    assert one["build_source"] == "the installed one"
    assert (one["max_starts"], one["max_controls"]) == (5, 0)
    assert one["cost"]["unchanged"]["starts"] == pytest.approx(1.3, abs=0.25)
    assert 2.0 <= one["cost"]["slower"]["starts"] < 2.9
    assert one["cost"]["worst"]["starts"] == 5
    # three probes of 40 s each, a share of the start in each
    seconds = 3600 * one["cost"]["unchanged"]["hours"]
    assert 120 <= seconds < 120 * one["cost"]["unchanged"]["starts"] + 1
    assert one["cost"]["unchanged"]["hours_at_most"] is False


@each(
    "scenario, probe, metric, band, source",
    [
        ("local-smollm2-serve", "perfgate_arithmetic", ACCURACY, 0.085, "scenario"),
        (
            "h200-v3-fp8-gpqa",
            "gpqa_diamond",
            "accuracy:gpqa_diamond:accuracy:none",
            0.1,
            "scenario",
        ),
        ("h200-v3-fp8-serve", "c32", "output_throughput", 0.02, "family"),
        ("h200-v3-fp8-2node-slurm", "c4096", "output_throughput", 0.06, "nodes"),
        ("h200-r1-fp8-max-throughput", "c1024", "output_throughput", 0.1, "document"),
    ],
)
def test_each_band_with_its_source(
    scenario: str, probe: str, metric: str, band: float, source: str, perfgate: Perfgate
) -> None:
    plan = planned(perfgate, scenario, "--scenarios", "packaged")
    found = of(plan, scenario, probe, metric)
    assert (found["band_source"], found["band"]) == (source, pytest.approx(band))


def test_as_text(two_scenarios: Path, h200: Scenario, perfgate: Perfgate) -> None:
    edit(two_scenarios, noise="prior")
    suite_store().save(accepted(h200))
    lines = perfgate.printed("plan").splitlines()
    assert lines[0].startswith("10 gating tests, simulated on noise as published nightlies")
    assert "h200-serve (1xH200)" in lines
    assert "  build under test: llama.cpp 2026.10, the installed one" in lines
    assert "  c1, c4: compared with this machine itself, 6 fresh starts to be made first" in lines
    row = next(line.split() for line in lines if line.startswith("  c1 "))
    assert row[:4] == ["c1", "output_throughput", "2.0%", "family"]
    assert any("6 starts of the reference, then 4." in line for line in lines)
    assert any(line.startswith("  no control, the machine is not excluded: ") for line in lines)
    assert any("GPU hours) at worst" in line for line in lines)
    assert sum("red though nothing changed: in under " in line for line in lines) == 3
    assert lines[-2].startswith("all, one after the other")


def test_no_baseline_is_no_error_but_with_gate(
    two_scenarios: Path, capsys: Capture, perfgate: Perfgate
) -> None:
    plan = planned(perfgate, "h200-serve")
    assert plan["unjudged"] == ["h200-serve-c1", "h200-serve-c4", "h200-serve-perfgate_arithmetic"]
    found = of(plan, "h200-serve", "c1", "output_throughput")
    assert found["compared_with"] == (
        "no baseline: the first run records one (--record), this one would only measure"
    )
    assert (found["against"], found["smallest"], found["odds"]) == ("nothing", None, [])
    (one,) = plan["scenarios"]
    assert one["cost"]["slower"]["starts"] == 1.0
    # as the limits allow: 60 s to be ready and 600 s for each of three measurements
    assert one["cost"]["slower"]["hours"] == pytest.approx((60 + 3 * 600) / 3600, abs=1e-3)
    assert one["cost"]["slower"]["gpu_hours"] == one["cost"]["slower"]["hours"]
    assert main(["plan", "h200-serve", "--gate"]) == 12
    assert "would get no verdict: h200-serve-c1, h200-serve-c4" in capsys.readouterr().err


def test_a_machine_that_measures_itself_is_planned_with_its_reference(perfgate: Perfgate) -> None:
    plan = planned(perfgate, "local-smollm2-serve")
    (one,) = plan["scenarios"]
    assert (one["reference_starts"], one["max_starts"]) == (6, 6)
    assert plan["total"] == one["cost"]
    assert 10.0 <= one["cost"]["unchanged"]["starts"] < 10.4
    assert one["cost"]["unchanged"]["gpu_hours"] == 0
    # accuracy alone is compared with the suite's store
    assert plan["unjudged"] == ["local-smollm2-serve-perfgate_arithmetic"]


def test_its_stored_reference_spares_the_starts(h200: Scenario, perfgate: Perfgate) -> None:
    stored = accepted(h200)
    own_store().save(
        replace(stored, scenario="local-smollm2-serve", hardware="cpu", accepted_by="self")
    )
    plan = planned(perfgate, "local-smollm2-serve")
    (one,) = plan["scenarios"]
    assert one["reference_starts"] == 0
    found = of(plan, "local-smollm2-serve", "c1", "output_throughput")
    assert (found["against"], found["noise_from"]) == ("baseline", "measured")
    assert found["notes"][0].startswith("band widened from 2.0%")


def test_with_a_baseline_that_can_be_started_again_controls_are_planned(
    two_scenarios: Path, h200: Scenario, perfgate: Perfgate
) -> None:
    edit(two_scenarios, noise="prior")
    suite_store().save(replace(accepted(h200), source=BuildSource(image="engine:old")))
    plan = planned(perfgate, "h200-serve")
    found = of(plan, "h200-serve", "c1", "output_throughput")
    assert found["control"] == "controlled"
    assert found["odds"][0]["regression"] <= 0.0005
    (one,) = plan["scenarios"]
    assert (one["max_starts"], one["max_controls"]) == (4, 3)
    assert one["cost"]["worst"]["starts"] == 7
    assert one["accident"] < 0.02
    # a control is measured like any start: 7 of 40 s for each probe but the answers
    assert 3600 * one["cost"]["worst"]["hours"] == pytest.approx(40 * (7 + 7 + 3), abs=1)
    edit(two_scenarios, control="none")
    plan = planned(perfgate, "h200-serve")
    assert of(plan, "h200-serve", "c1", "output_throughput")["control"] == "alone"


def test_what_finds_too_little_is_an_error_and_all_are_told(
    two_scenarios: Path, h200: Scenario, capsys: Capture, perfgate: Perfgate
) -> None:
    bands = {"output_throughput": 0.002, "server_cpu_s_per_1k_tokens": 0.003}
    edit(two_scenarios, noise="prior", bands=bands)
    suite_store().save(accepted(h200))
    assert main(["plan", "h200-serve"]) == 2
    told = capsys.readouterr()
    for label in ("c1", "c4"):
        for metric in bands:
            assert f"{label}: the gate of {metric} would find too little" in told.err
    assert told.err.count("fix: widen the band to ") == 4
    assert f"{two_scenarios / 'h200.yaml'}: h200-serve.gate.bands.output_throughput" in told.err
    assert "cannot gate so, see the error" in told.out  # and the plan is shown all the same
    assert len(planned(perfgate, "h200-serve", status=2)["problems"]) == 4
    edit(two_scenarios, noise="measured", bands={"output_throughput": 0.002})
    assert planned(perfgate, "h200-serve")["problems"] == [], "measured noise widens the band"


def test_noise_of_the_hardwares_history_is_taken_and_told(
    two_scenarios: Path, h200: Scenario, perfgate: Perfgate
) -> None:
    edit(two_scenarios, noise="prior")
    suite_store().save(accepted(h200))
    values = (100.0, 101.0, 99.0, 100.5, 99.5, 100.2) * 4
    series = NoiseSeries(h200.id, "c1", "a", "abc", {"output_throughput": values})
    label = h200.hardware.label
    save(NoiseRun(label, "r", "2026-11-20T08:00:00+00:00", (series,)), own=False)
    plan = planned(perfgate, "h200-serve")
    found = of(plan, "h200-serve", "c1", "output_throughput")
    assert found["noise_from"] == "history"
    assert found["sigma"] > 0.006
    assert found["noise"].startswith("history 0.")


def test_the_budget_in_seconds_allows_fewer_starts(
    two_scenarios: Path, h200: Scenario, perfgate: Perfgate
) -> None:
    text = (two_scenarios / "h200.yaml").read_text()
    plain = yaml.safe_load(text)
    one = plain["scenarios"][0]
    one["workload"]["concurrency"] = [1]
    del one["accuracy"]
    one["gate"].update(
        noise="prior", budget_s=70, metrics=["output_throughput"], bands={}, reference="stored"
    )
    (two_scenarios / "h200.yaml").write_text(yaml.safe_dump(plain))
    suite_store().save(accepted(h200))
    (found,) = planned(perfgate, "h200-serve")["scenarios"]
    # One probe of 40 s: after two starts 80 s are gone.
    assert found["max_starts"] == 2
    assert found["notes"] == ["the budget of 70 s allows 2 starts of 40 s, not 5"]
    judged = of(planned(perfgate, "h200-serve"), "h200-serve", "c1", "output_throughput")
    assert judged["odds"][2]["regression"] > 0.7
    assert found["cost"]["unchanged"]["hours_at_most"] is False


def test_which_build_is_planned(
    h200: Scenario, monkeypatch: pytest.MonkeyPatch, perfgate: Perfgate
) -> None:
    suite_store().save(accepted(h200, EngineBuild("llama.cpp", "2026.9", "aaa")))
    suite_store().save(accepted(h200, EngineBuild("llama.cpp", "2026.10", "bbb")))

    def chosen(*words: str) -> tuple[str, str, str]:
        plan = planned(perfgate, "h200-serve", *words)
        (one,) = plan["scenarios"]
        compared = of(plan, "h200-serve", "c1", "output_throughput")["compared_with"]
        return one["version"], one["build_source"], re.findall(r"llama.cpp (\S+?),? ", compared)[0]

    assert chosen() == ("2026.10", "the installed one", "2026.10")
    assert chosen("--engine-version", "2026.9") == ("2026.9", "as given", "2026.9")
    assert chosen("--engine-commit", "aaa") == ("2026.10", "the installed one", "2026.9")

    def missing(self: LlamaCpp, locations: Locations) -> EngineBuild:
        raise MissingProgram("not here")

    monkeypatch.setattr(LlamaCpp, "build", missing)
    version, source, _ = chosen()
    assert (version, source) == ("unknown", "of the document, as none is installed here")


@each(
    "words, problem",
    [
        (["h200-srve"], "did you mean h200-serve?"),
        (["-m", "b200"], "no scenario is selected"),
        (["--gpu", "GB200"], "no scenario is selected"),
        (["--engine-repo", "/nowhere-at-all"], "not a git clone"),
    ],
)
def test_bad_wishes(words: list[str], problem: str, perfgate: Perfgate) -> None:
    assert problem in perfgate.refused(["plan", *words])


def test_a_damaged_baseline_is_an_error(h200: Scenario, perfgate: Perfgate) -> None:
    path = suite_store().save(accepted(h200))
    path.write_text("{")
    assert str(path) in perfgate.refused("plan h200-serve")
