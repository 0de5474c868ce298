import json
from dataclasses import asdict
from pathlib import Path

import pytest
from building import MACHINE, machine

from perfgate.cli.main import main
from perfgate.core.errors import InputError, MissingProgram, RunError
from perfgate.machine.preflight import Check, PreflightReport, PreflightTarget
from perfgate.plan.toolchain import Toolchain

Capture = pytest.CaptureFixture[str]

REPORT = PreflightReport(
    (
        Check("gpus", "ok", "8×NVIDIA B200: 0, 1", "8×B200"),
        Check("gpu persistence", "warning", "GPU 1: off", "persistence mode on", "-pm 1 as root"),
        Check("hosts", "unknown", "checked only with --reach"),
    ),
    {"driver": "580.65.06"},
    ("0", "1"),
)
SICK = Check("gpu errors", "failed", "GPU 0: 1 uncorrected", "none", "reset the GPU")


@pytest.fixture(autouse=True)
def everything_but_gpus(two_scenarios: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without GPUs; every program there."""
    monkeypatch.setattr("perfgate.cli.doctor.detect", lambda: MACHINE)
    monkeypatch.setattr(Toolchain, "require", lambda self: None)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch):
    """Sets what the preflight finds; keeps what it was asked."""
    asked: list[tuple[str, PreflightTarget]] = []

    def set_report(report: PreflightReport) -> list[tuple[str, PreflightTarget]]:
        def look(scenario, tools, here, where) -> PreflightReport:
            assert (tools.scenario, here) == (scenario, MACHINE)
            asked.append((scenario.id, where))
            return report

        monkeypatch.setattr("perfgate.cli.doctor.look", look)
        return asked

    return set_report


def test_what_can_run_and_why_not_the_rest(capsys: Capture) -> None:
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "machine: node7, 72 cores of Grace",
        "memory: 16.0 GiB; GPUs: none (no nvidia-smi on PATH)",
        "",
    ]
    assert [line.split(None, 1) for line in lines[3:]] == [
        ["scenario", "can run here"],
        ["h200-serve", "no: needs 1×H200, found none (no nvidia-smi on PATH)"],
        ["local-smollm2-serve", "yes"],
    ]


def test_as_json(capsys: Capture) -> None:
    assert main(["doctor", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "machine": json.loads(json.dumps(asdict(MACHINE))),
        "cannot_run": {
            "h200-serve": "needs 1×H200, found none (no nvidia-smi on PATH)",
            "local-smollm2-serve": None,
        },
    }


def test_gpus_are_named(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr("perfgate.cli.doctor.detect", lambda: machine("NVIDIA H200", "NVIDIA H200"))
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "GPUs: NVIDIA H200, NVIDIA H200" in out
    assert out.count("  yes\n") == 2


def test_a_missing_program_is_a_reason_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def missing(self: Toolchain) -> None:
        raise MissingProgram("aiperf is not installed:\n  it comes with `make setup-local`")

    monkeypatch.setattr(Toolchain, "require", missing)
    assert main(["doctor"]) == 0
    assert (
        capsys.readouterr()
        .out.splitlines()[-1]
        .endswith("no: aiperf is not installed: it comes with `make setup-local`")
    )


def test_an_unknown_scenario_is_an_error(capsys: Capture) -> None:
    assert main(["doctor", "--scenario", "h200-serv"]) == 2
    assert "did you mean h200-serve?" in capsys.readouterr().err


def test_a_fit_machine(found, capsys: Capture) -> None:
    asked = found(REPORT)
    assert main(["doctor", "--scenario", "h200-serve"]) == 0
    assert asked == [("h200-serve", PreflightTarget())]
    assert (
        capsys.readouterr().out
        == """\
h200-serve on node7

check            outcome  found
gpus             ok       8×NVIDIA B200: 0, 1
gpu persistence  warning  GPU 1: off
hosts            unknown  checked only with --reach

gpu persistence: warning
  found: GPU 1: off
  expected: persistence mode on
  fix: -pm 1 as root

observed, not judged:
  driver: 580.65.06

fit: 3 checks, 1 to be looked at, 1 unknown
"""
    )


def test_a_machine_that_is_not_fit(found, capsys: Capture) -> None:
    found(PreflightReport((*REPORT.checks, SICK)))
    assert main(["doctor", "--scenario", "h200-serve"]) == 1
    out = capsys.readouterr().out
    assert "\n  fix: reset the GPU\n" in out
    assert out.index("gpu errors: failed") < out.index("gpu persistence: warning")
    assert out.endswith("not fit: 4 checks, 1 failed, 1 to be looked at, 1 unknown\n")


def test_the_preflight_as_json(found, capsys: Capture) -> None:
    found(PreflightReport((SICK,), {"swap": "none"}))
    assert main(["doctor", "--scenario", "h200-serve", "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "scenario": "h200-serve",
        "machine": json.loads(json.dumps(asdict(MACHINE))),
        "fit": False,
        "checks": [
            {
                "name": "gpu errors",
                "outcome": "failed",
                "found": "GPU 0: 1 uncorrected",
                "expected": "none",
                "hint": "reset the GPU",
            }
        ],
        "observed": {"swap": "none"},
    }


def test_where_the_run_would_go_and_how_far_to_reach(found, tmp_path: Path) -> None:
    asked = found(REPORT)
    arguments = ["--scenario", "h200-serve", "--run-dir", str(tmp_path), "--reach"]
    assert main(["doctor", *arguments]) == 0
    assert asked == [("h200-serve", PreflightTarget(run_folder=tmp_path, reach=True))]


def test_on_a_node_that_a_launcher_found(found) -> None:
    asked = found(REPORT)
    assert main(["doctor", "--scenario", "h200-serve", "--on-node", "--contained"]) == 0
    assert asked == [("h200-serve", PreflightTarget(on_node=True, contained=True))]


def test_how_the_programs_would_be_started(
    found, suite_root: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    asked = found(REPORT)
    monkeypatch.delenv("PERFGATE_SITE", raising=False)
    (suite_root / "site.yaml").write_text("schema_version: 1\ndocker: {image: 'mine:1'}\n")
    assert main(["doctor", "--scenario", "h200-serve", "--launcher", "docker"]) == 0
    assert main(["doctor", "--scenario", "h200-serve", "--launcher", "slurm"]) == 0
    assert [where for _, where in asked] == [
        PreflightTarget(runtime="docker"),
        PreflightTarget(by_slurm=True),
    ]
    assert main(["doctor", "--launcher", "docker"]) == 2
    assert "name the scenario" in capsys.readouterr().err


def test_engines_of_ones_own_are_imported(
    found, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    found(REPORT)
    (tmp_path / "engines_of_mine.py").write_text("print('here they are')\n")
    monkeypatch.syspath_prepend(tmp_path)
    words = ["doctor", "--scenario", "h200-serve", "--import"]
    assert main([*words, "engines_of_mine"]) == 0
    assert "here they are" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        main([*words, "no_such_engines"])
    assert "PYTHONPATH must name its folder" in capsys.readouterr().err


def test_only_scenarios_to_explore_with_have_other_shapes(found, capsys: Capture) -> None:
    found(REPORT)
    assert main(["doctor", "--scenario", "h200-serve", "--shape", "4096/512"]) == 2
    assert "a scenario marked explore" in capsys.readouterr().err


@pytest.mark.parametrize(
    "option",
    [
        ["--reach"],
        ["--run-dir", "x"],
        ["--try-vboost", "0"],
        ["--shape", "1/2"],
        ["--on-node"],
        ["--contained"],
    ],
)
def test_what_belongs_to_the_preflight_needs_a_scenario(option: list[str], capsys) -> None:
    assert main(["doctor", *option]) == 2
    assert option[0] in capsys.readouterr().err


def test_really_without_the_gpu(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERFGATE_FAKE_GPUS", raising=False)
    assert main(["doctor", "--scenario", "h200-serve", "--format", "json"]) == 1
    checks = {one["name"]: one for one in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["gpus"]["outcome"] == "failed"
    assert checks["date"]["outcome"] == "ok"


class Boosted:
    """Stands for `boosted`: keeps what it was asked, and fails if it is to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.asked: list[object] = []

    def __call__(self, level: int, gpus: object) -> "Boosted":
        self.asked.append((level, gpus))
        return self

    def __enter__(self) -> dict[str, int]:
        if self.error is not None:
            raise self.error
        return {"0": 0, "1": 2}

    def __exit__(self, *_: object) -> None:
        self.asked.append("put back")


def vboost(found, monkeypatch, capsys: Capture, boosted: Boosted) -> tuple[int, dict[str, str]]:
    found(REPORT)
    monkeypatch.setattr("perfgate.cli.doctor.boosted", boosted)
    words = ["--scenario", "h200-serve", "--try-vboost", "4", "--format", "json"]
    status = main(["doctor", *words])
    return status, json.loads(capsys.readouterr().out)["checks"][-1]


def test_vboost_is_tried_on_request(found, monkeypatch, capsys: Capture) -> None:
    boosted = Boosted()
    status, check = vboost(found, monkeypatch, capsys, boosted)
    assert (status, check["outcome"]) == (0, "ok")
    assert check["found"] == "was set to 4, seen, and put back to 0, 2"
    assert boosted.asked == [(4, ("0", "1")), "put back"]


@pytest.mark.parametrize(
    ("error", "told", "hint"),
    [
        (
            RunError(
                "unfit_machine", "not permitted", evidence=("Insufficient",), hint="run as root"
            ),
            "not permitted; Insufficient",
            "run as root",
        ),
        (MissingProgram("nvidia-smi is not installed"), "nvidia-smi is not installed", ""),
    ],
)
def test_vboost_without_the_right(found, monkeypatch, capsys, error, told: str, hint: str) -> None:
    status, check = vboost(found, monkeypatch, capsys, Boosted(error))
    assert (status, check["outcome"], check["found"], check["hint"]) == (1, "failed", told, hint)


def test_vboost_that_no_gpu_has(found, monkeypatch, capsys: Capture) -> None:
    found(REPORT)
    monkeypatch.setattr("perfgate.cli.doctor.boosted", Boosted(InputError("no such level")))
    assert main(["doctor", "--scenario", "h200-serve", "--try-vboost", "9"]) == 2


def test_vboost_without_gpus(found, capsys: Capture) -> None:
    found(PreflightReport(()))
    assert main(["doctor", "--scenario", "h200-serve", "--try-vboost", "4"]) == 2
    assert "--try-vboost" in capsys.readouterr().err
