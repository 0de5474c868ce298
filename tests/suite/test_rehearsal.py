"""Rehearsals: what is synthetic, what they leave, and each verdict, fault and setting once."""

import json
import re
import shutil
from pathlib import Path

import pytest
from checkouts import Finished, rehearse, says
from documented_set import documented_suite
from planted import CommandLines, leaks, variables, write_reports
from road_words import NAMED, OFFLINE, ROOT
from sizes import sized

from ci.maintenance.reference_tables import FILES, RECORD_KINDS
from perfgate.cli.main import main
from perfgate.release.policy import SuiteTests
from perfgate.release.recomputation import recompute_run
from perfgate.runs.ended_run import read_run
from perfgate.scenarios.files import load_suite

NAME = "b200-r1-fp4-fp16kv-max-throughput"

pytestmark = pytest.mark.slow


# A finished session, and all command lines that there were meanwhile.
Well = tuple[Finished, CommandLines]


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> Well:
    """A rehearsal in which all is well, with secrets in its environment."""
    place = tmp_path_factory.mktemp("well")
    files = (f"--junitxml={place / 'junit.xml'}", f"--benchmark-json={place / 'b.json'}")
    selected = ("--gate", "-k", f"{NAME} and not floor")
    with CommandLines() as watch:
        done = rehearse(place, *selected, *files, traced=True, **variables("environment"))
    return done, watch


def test_the_folder_of_a_run_holds_what_its_table_says(well: Well) -> None:
    folder = well[0].folder
    there = {f"{one.name}/" if one.is_dir() else one.name for one in folder.iterdir()}
    assert there - FILES.keys() == {f"{NAME}/"}, (
        "ci/maintenance/reference_tables.py names each file; then `make reference`"
    )
    lines = (folder / "records.jsonl").read_text().splitlines()
    assert {json.loads(line)["record"] for line in lines} <= RECORD_KINDS.keys()
    starts = [one.name for one in (folder / NAME).iterdir()]
    assert starts
    assert all(re.fullmatch(r"start-\d+-\w+", name) for name in starts)


def test_a_rehearsal_is_synthetic_everywhere(
    well: Well, capsys: pytest.CaptureFixture[str]
) -> None:
    done = well[0]
    place = done.folder.parent
    done.require(13, None, "nothing is claimed of any engine")
    assert set(done.verdicts.values()) == {"PASS"}
    assert '<property name="synthetic" value="true"' in (place / "junit.xml").read_text()
    entries = json.loads((place / "b.json").read_text())["benchmarks"]
    assert len({one["extra_info"]["metric"] for one in entries}) == len(entries) > 1
    assert all(one["extra_info"]["synthetic"] for one in entries)
    rows = [line for line in done.output.splitlines() if "PASS  " in line]
    assert rows
    assert all(row.startswith("synthetic ") for row in rows)
    assert "Synthetic values:" in done.summary
    (played,) = done.records("rehearsal")
    assert played["pages"]["tensorrt-llm 1.0.0"]["trtllm-bench throughput"] == "1.0.0rc4"
    assert main(["baseline", "record", str(done.folder)]) == 2
    assert "synthetic" in capsys.readouterr().err


def test_a_rehearsal_tells_no_secret(well: Well) -> None:
    done, watch = well
    place = done.folder.parent
    assert len(write_reports(done.folder, place / "reports")) > 5
    assert not leaks(place, done.output, frozenset())
    assert not watch.found


# Templates only where they are named. A release is one of TensorRT-LLM.
EVERY = "(b200 or h200 or gb200 or explore) and not vllm and not sglang"
REFUSED = {"h200-v3-fp8-gpqa"}
# On each push the newer release plays each kind for one GPU; the older one plays in tests above.
WHOLE = [("1.3.0", EVERY, REFUSED), ("1.0.0", EVERY, REFUSED)]
SELECTIONS = sized([("1.3.0", "gb200 and (chat or multinode)", set())], WHOLE)


@pytest.mark.nightly
@pytest.mark.parametrize(("release", "gpus", "refused"), SELECTIONS)
def test_every_gpu_scenario_rehearses(
    tmp_path: Path, release: str, gpus: str, refused: set[str]
) -> None:
    options = ("-m", gpus, "--engine-version", release, *sized((), ("-n", "2")))
    done = rehearse(tmp_path, *options)
    selected = {test for line in done.records("selected") for test in line["tests"]}
    assert set(done.verdicts.values()) == {"PASS", "NO_BASELINE"}, done.output[-4000:]
    cannot = [line for line in done.records("skipped") if "cannot do this" in line["reason"]]
    documented = {scenario.id for scenario in documented_suite().scenarios}
    assert {line["scenario"] for line in cannot} & documented == refused
    assert len(done.records("verdict")) + len(done.records("skipped")) == len(selected)
    assert all(line["synthetic"] for line in (*done.records("verdict"), *done.measured))
    for text in (done.output, done.summary):
        assert "SYNTHETIC" in text


def perfgate(home: Path, *words: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERFGATE_HOME", str(home))
        return main(["baseline", *words])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A machine store with the baseline of a rehearsal in it, which only its own words let in."""
    folder = tmp_path_factory.mktemp("promoted")
    home = folder / "home"
    run = str(rehearse(folder, "-k", OFFLINE).folder)
    assert perfgate(home, "record", run) == 2
    assert perfgate(home, "record", "--rehearsal", run) == 0
    (candidate,) = (home / "rehearsal" / "candidates").rglob("*.json")
    assert perfgate(home, "promote", str(candidate), *NAMED) == 2
    assert perfgate(home, "promote", "--rehearsal", str(candidate), *NAMED) == 0
    return home


BOTH = {"new", "baseline_control"}
FAILED = "control: none (it failed twice: fresh start 3: cuda_error"


# Fault, control → verdict, status, starts, mark, what is told everywhere.
BESIDE_ITS_BASELINE = {
    "as it was": ("", "auto", "PASS", 13, {"new"}, "", "a rehearsal of tensorrt-llm"),
    "a slow build": ("slow:4%", "auto", "REGRESSION", 1, BOTH, "", ", 2 starts"),
    "a slow host": ("slow_host:4%", "auto", "PASS", 13, BOTH, "HOST_SHIFT", "machine, not build"),
    "a control that cannot start": (
        *("slow_no_control:8%", "required"),
        *("INCONCLUSIVE", 10, {"new"}, "NO_CONTROL", FAILED),
    ),
}


@pytest.mark.parametrize("case", BESIDE_ITS_BASELINE)
def test_a_rehearsal_beside_its_baseline(home: Path, tmp_path: Path, case: str) -> None:
    fault, control, verdict, status, starts, mark, told = BESIDE_ITS_BASELINE[case]
    shutil.copytree(home, tmp_path / "home")
    report = tmp_path / "junit.xml"
    options = [f"--control={control}", f"--junitxml={report}"]
    options += [f"--rehearse-fault={fault}"] if fault else []
    done = rehearse(tmp_path, "-k", OFFLINE, *options)
    done.require(status)
    assert {*done.verdicts.values()} == {verdict}
    roles = [line["role"] for line in done.measured]
    assert {*roles} == starts
    assert fault or roles == ["new"]
    if verdict == "REGRESSION":
        assert roles == ["new", "new", "baseline_control", "baseline_control", "new"]
        assert '.controls" value="2"' in report.read_text()
        assert "control: tensorrt-llm" in done.output
    verdicts = done.records("verdict")
    assert all(line["synthetic"] for line in verdicts)
    marks = {one["mark"] for line in verdicts for one in line["judgements"] if one["mark"]}
    assert marks == {mark} - {""}
    assert told in done.summary
    assert ("control" in done.summary) is bool(fault)
    # The raw files give every verdict and number, those of the controls too.
    suite = SuiteTests.of(load_suite(ROOT / "scenarios"))
    found = recompute_run(read_run(done.folder), suite)
    assert {one.test: one.verdict.value for one in found if one.verdict} == done.verdicts
    assert [told for one in found for told in one.differences] == []


SERVED = "h200-r1-0528-fp8-sharegpt"
GB200 = "gb200-r1-fp4-chat-streaming"  # a Slurm job with an iteration log
CASES = [
    ("hang", GB200, "hang"),
    ("partial", SERVED, "incomplete"),
    ("ignored_options", OFFLINE, "not_in_force"),
]
# What programs print of these is known for what it is: tests/rehearsal/test_rehearsal_faults.py.
MORE = [
    ("ignored_options", "b200-r1-0528-fp4-serve-no-padding", "not_in_force"),
    *((fault, SERVED, fault) for fault in ("oom", "config_error", "port_in_use")),
    ("zero_metrics", SERVED, "no_metrics"),
    ("truncated", OFFLINE, "truncated_output"),
    ("cli_drift_help", OFFLINE, "cli_drift"),
    *((fault, OFFLINE, fault) for fault in ("oom", "kv_cache_too_small", "request_too_long")),
    *((fault, OFFLINE, fault) for fault in ("cli_drift", "nccl", "cuda_error", "mpi")),
    *((fault, OFFLINE, fault) for fault in ("pmi_mismatch", "killed", "no_metrics")),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("fault", "scenario", "failure"), sized(CASES, CASES + MORE))
def test_each_fault_has_its_class(tmp_path: Path, fault: str, scenario: str, failure: str) -> None:
    done = rehearse(tmp_path, "-k", scenario, "--rehearse-fault", fault)
    done.require(11)
    errors = [line["error"] for line in done.records("verdict") if line["error"]]
    assert {error["error_class"] for error in errors} == {failure}, done.output[-3000:]
    assert all(error["next_step"] for error in errors)


LINE = (
    "not in force, as the scenario says: attention_dp: asked True, in force False: "
    "SGLang 0.5.2 to 0.5.18 switch --enable-dp-attention off"
)


def test_every_report_says_which_setting_was_not_in_force(tmp_path: Path) -> None:
    lab = "h200-r1-0528-lab-sglang"
    name, with_size = f"{lab}-dp-sharegpt", f"{lab}-dp8-sharegpt"
    xml = tmp_path / "junit.xml"
    done = rehearse(tmp_path, "-k", f"{name} or {with_size}", "--junitxml", str(xml))
    done.require(done.status, {f"{name}-c1000": "PASS", f"{with_size}-c1000": "NO_BASELINE"})
    verdicts = {line["scenario"]: line["settings"] for line in done.records("verdict")}
    assert verdicts[name][0].startswith(LINE)
    output = " ".join(done.output.split())
    says(output, f"setting: {name}: {LINE}")
    says(done.summary, f"- setting: {LINE}")
    says(xml.read_text(), f'<property name="setting" value="{LINE}')
    assert not [one for one in verdicts[with_size] if "attention_dp" in one]
    assert output.count("attention_dp") == output.count(LINE)
    (measured,) = [one for one in done.measured if one["scenario"] == with_size]
    assert measured["facts"]["settings_in_force"]["attention_dp"] is True
