"""The whole road with stand-ins: a session of pytest, from scenario file to exit status."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

import forked
import pytest
from checkouts import Finished, Suite, says
from road_words import ACCURACY, BROKEN, GIVEN_BAND, METRIC, NAMED, PLUGINS, POINT, SLOWER, STORED

PASSED = {"c1": "PASS", "c2": "PASS", "sums": "PASS"}  # a curve needs four points
FILES = ("--junitxml=junit.xml", "--benchmark-json=benchmark.json")

pytestmark = pytest.mark.slow

Measured = tuple[Suite, Finished]


def benchmarks(checkout: Suite) -> list[dict[str, Any]]:
    return json.loads((checkout.folder / "benchmark.json").read_text())["benchmarks"]


@pytest.fixture(scope="module")
def unchanged(accepted: Suite, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """An unchanged build, measured and judged."""
    made = accepted.copy(tmp_path_factory.mktemp("unchanged"))
    return made, made.run("--gate", "--benchmark-json", "benchmark.json", traced=True)


def test_an_unchanged_build_passes_with_every_record(unchanged: Measured) -> None:
    checkout, done = unchanged
    done.require(0, PASSED)
    roles = [line["role"] for line in done.measured]
    assert roles.count("reference") == 8
    assert roles.index("new") < max(n for n, role in enumerate(roles) if role == "reference")
    assert "**Exit status 0**" in done.summary
    assert json.loads((done.folder / "run.json").read_text())["machine"]["cores"] >= 1
    # An entry for each metric, with its values at the fresh starts, and no wall clock.
    name = "test_serving[standin-serve-c2] output_throughput"
    (entry,) = [one for one in benchmarks(checkout) if one["name"] == name]
    told = entry["extra_info"]
    assert (told["verdict"], told["unit"], told["direction"]) == ("PASS", "tokens/s", "higher")
    compared = {line["probe"]: line["compared_with"] for line in done.records("verdict")}
    assert told["compared_with"] == compared["c2"] != ""
    assert entry["stats"]["mean"] == pytest.approx(fmean(entry["stats"]["data"]))
    assert (entry["param"], "more is better" in entry["group"]) == ("standin-serve-c2", True)
    assert entry["stats"]["data"] == [
        line["metrics"]["output_throughput"]
        for line in done.measured
        if (line["probe"], line["role"]) == ("c2", "new")
    ]
    # One start recorded the accuracy baseline; then four references and the new ones.
    new = {line["start"] for line in done.measured if line["role"] == "new"}
    assert checkout.starts == 1 + 4 + len(new)
    first = [line["probe"] for line in done.measured if line["start"] == min(new)]
    assert first == ["c1", "c2", "sums"]
    assert checkout.wait_until_empty() == []
    # The machine is looked at once, before anything starts.
    lines = (done.folder / "records.jsonl").read_text().splitlines()
    kinds = [json.loads(line)["record"] for line in lines]
    assert kinds.index("preflight") < kinds.index("measurement")
    (found,) = done.records("preflight")
    assert found["fit"] is True
    assert {check["name"] for check in found["checks"]} >= {"run folder", "ports", "engine"}


def test_a_slowed_build_is_a_regression(unchanged: Measured, tmp_path: Path) -> None:
    checkout = unchanged[0].copy(tmp_path / "suite")
    done = checkout.run(*SLOWER, "-n", "2", *FILES, traced=True)
    told = ("baseline", "measured", "artifacts:", "rerun: ", f"injected: {SLOWER[1]}")
    done.require(1, {**dict.fromkeys(PASSED, "REGRESSION"), "sums": "PASS"}, *told)
    # What was measured without the injection is the control.
    assert {line["role"] for line in done.measured} == {"new", "baseline_control"}
    # Two workers share the tests, and a scenario's stay on one.
    new = [(line["start"], line["probe"]) for line in done.measured if line["role"] == "new"]
    assert {probe for start, probe in new if start == new[0][0]} == {"c1", "c2", "sums"}
    counts, tests = checkout.junit()
    assert counts == ["2", "0", "0"]
    failure = tests["test_serving[standin-serve-c1]"].find("failure")
    assert failure.get("type") == "perfgate.REGRESSION"
    assert str(failure.get("message")).startswith("REGRESSION: output_throughput -")
    says(str(failure.text), "baseline", "rerun: ")  # all that pytest wrote
    names = {one.get("name") for one in tests["test_serving[standin-serve-c1]"].iter("property")}
    assert {"metric.output_throughput.change", "metric.server_cpu_s_per_1k_tokens.n"} <= names
    # Workers measured; the main process wrote the file.
    entries = {one["name"]: one["stats"]["data"] for one in benchmarks(checkout)}
    slow = entries["test_serving[standin-serve-c1] output_throughput"]
    assert len(slow) >= 2
    assert 0 < slow[0] < 150


def test_a_first_run_shows_its_numbers_everywhere(without_baseline: Measured) -> None:
    checkout, done = without_baseline
    told = ("nothing was judged, so nothing is claimed", f"{METRIC}   0.75  fraction  1")
    more = ("compared with: no baseline", "build: stand-in 1.0")
    done.require(0, {"sums": "NO_BASELINE"}, *told, *more)
    says(done.summary, f"| {METRIC} [fraction] | 0.75 | 1 | - | - |", "- build: stand-in 1.0")
    counts, tests = checkout.junit()
    test = tests["test_accuracy[standin-serve-sums]"]
    properties = {one.get("name"): one.get("value") for one in test.iter("property")}
    assert (properties[f"metric.{METRIC}"], properties["engine_version"]) == ("0.75", "1.0")
    assert test.find("skipped").get("type") == "perfgate.NO_BASELINE"
    assert counts == ["0", "0", "1"]


def test_without_baselines_a_session_says_what_it_lacks(
    unchanged: Measured, tmp_path: Path
) -> None:
    checkout = unchanged[0].copy(tmp_path / "suite")
    checkout.edit(*GIVEN_BAND)
    shutil.rmtree(checkout.folder / "baselines" / "cpu")
    half = ("perf_tests", "-k", "sums or c1")
    done = checkout.run(*half)
    done.require(0, {"c1": "PASS", "sums": "NO_BASELINE"})
    assert done.output.count("1 of 2 selected tests got no verdict") == 1
    lacking = checkout.run(*half, "--gate", "--record", PERFGATE_STANDIN_LACKS="stand-in")
    # What was skipped is neither recorded nor judged, and an evaluator skips its tests alone.
    lacking.require(12, {"c1": "PASS"})
    (skipped,) = lacking.records("skipped")
    assert (skipped["probe"], skipped["reason"]) == ("sums", "no evaluator here; bring it")


def test_a_selection_without_a_test_is_not_green_but_for_pytest_that_collects(suite: Suite) -> None:
    suite.run("-k", "nothing", "-n", "1").require(12, None, "exit status 12")
    suite.run("--collect-only", "-k", "nothing").require(5)
    done = suite.run("--collect-only", "-m", "standin", "-k", "c2")
    done.require(0, None, "test_serving.py::test_serving[standin-serve-c2]")
    assert ("c1]" in done.output, done.folder.exists()) == (False, False)
    (suite.folder / "test_other.py").write_text("def test_other():\n    pass\n")
    done = suite.run("test_other.py", PERFGATE_MODLES="/models")
    assert (done.status, "PERFGATE_MODLES" in done.output) == (0, False), done.output
    assert not done.folder.exists()
    suite.run("test_other.py", "-k", "nothing").require(5)


def test_an_unreadable_baseline_is_an_error_that_names_the_file(with_baseline: Suite) -> None:
    """That of the machine; one of the repository is read by the same code."""
    stored = with_baseline.folder / "baselines/cpu/standin-serve/1.0.json"
    own = with_baseline.folder / "home" / stored.relative_to(with_baseline.folder)
    own.parent.mkdir(parents=True)
    own.write_text(stored.read_text().replace('"schema_version": 3', '"schema_version": 99'))
    done = with_baseline.run(*FILES)
    done.require(11, dict.fromkeys(PASSED, "ERROR"), str(own))
    assert done.output.count("baseline written by a newer perfgate") >= len(PASSED)
    counts, tests = with_baseline.junit()
    assert counts[:2] == ["0", str(len(tests))]
    assert benchmarks(with_baseline) == []


def test_other_content_is_not_comparable_and_says_in_what(with_baseline: Suite) -> None:
    with_baseline.edit(("fewshot: 0", "fewshot: 3"))
    done = with_baseline.run(ACCURACY, "-rs", "--junitxml=junit.xml")
    done.require(done.status, {"sums": "NOT_COMPARABLE"}, "content: measured")
    assert with_baseline.junit()[0] == ["0", "0", "1"]


def test_what_this_machine_lacks_is_skipped_and_fails_the_gate(suite: Suite) -> None:
    suite.edit(
        ("{gpu: none, gpus: 0, nodes: 1}", "{gpu: B200, gpus: 8}"),
        ("cpu_threads: 2", "cpu_threads: 2, tp: 8"),
    )
    smi = suite.folder / "bin" / "nvidia-smi"  # before the one of a machine with GPUs
    smi.parent.mkdir()
    smi.write_text("#!/bin/sh\necho No devices were found\n")
    smi.chmod(0o755)
    done = suite.run("-rs", "--gate", PATH=f"{smi.parent}{os.pathsep}{os.environ['PATH']}")
    done.require(12, {}, "needs 8×B200, found none", "nothing was measured, so nothing is claimed")
    assert len(done.records("skipped")) == 3


def test_speed_is_not_measured_once_answers_are_broken(suite: Suite) -> None:
    suite.edit(("fewshot: 0}", "fewshot: 0, limit: 50}"))
    suite.promote(suite.run(ACCURACY).folder, "1.0")
    done = suite.run("perf_tests", *BROKEN, "--junitxml=junit.xml")
    unmeasured = dict.fromkeys(("c1", "c2"), "INCONCLUSIVE")
    told = "not measured, BROKEN_OUTPUT in sums"
    done.require(1, {"sums": "REGRESSION", **unmeasured}, told)
    measured = [(line["role"], line["probe"]) for line in done.measured]
    # The loss is confirmed by a second evaluation; the load waits for neither.
    assert [probe for role, probe in measured if role == "new"] == ["sums", "sums"]
    # The build's first start comes second of all: what follows is saved.
    assert measured.count(("reference", "c1")) == 1
    counts, tests = suite.junit()
    assert counts == ["1", "0", "2"]
    undecided = tests["test_serving[standin-serve-c1]"].find("skipped")
    assert undecided.get("type") == "perfgate.INCONCLUSIVE"
    assert suite.differences() == []


def test_the_numbers_of_a_stubbed_engine_are_synthetic_and_make_no_baseline(suite: Suite) -> None:
    stubbed = ("name: stand-in,", "name: stand-in, stubbed: its kernels,")
    suite.edit(stubbed, STORED, *GIVEN_BAND)
    done = suite.run(*POINT)
    done.require(13, {"c1": "NO_BASELINE"}, "synthetic NO_BASELINE")
    for kind in ("measurement", "verdict", "group"):
        assert {line["synthetic"] for line in done.records(kind)} == {True}, kind
    status, told = suite.perfgate("baseline", "record", str(done.folder))
    assert (status != 0, "synthetic" in told) == (True, True), told


# A first baseline, as a person makes one: a session a night with --record, then one promotion.

CANDIDATE = "home/candidates/cpu/standin-serve/1.0.json"


def said_of_candidate(output: str) -> str:
    (line,) = [one for one in output.splitlines() if one.startswith("standin-serve: ")]
    return line


@pytest.fixture
def one_night(without_baseline: Measured, tmp_path: Path) -> Suite:
    """A checkout in which one session has recorded."""
    return without_baseline[0].copy(tmp_path / "suite")


def require_enough_without_a_store(pipeline: Suite) -> None:
    """A job on another machine has no store, but the run folder of the last night."""
    shutil.rmtree(pipeline.folder / "home")
    for words in (
        *(("init", "-q"), ("config", "user.name", "Ada"), ("config", "user.email", "a@b.c")),
        *(("add", "scenarios", "pyproject.toml"), ("commit", "-qm", "A suite")),
    ):
        subprocess.run(("git", *words), cwd=pipeline.folder, check=True)
    words = ("--scenario", "standin-serve", "--branch", "nights", "--import", "standin")
    status, told = pipeline.perfgate("baseline", "promote", str(pipeline.run_folder), *words)
    assert status == 0, told
    stored = ("git", "show", "nights:baselines/cpu/standin-serve/1.0.json")
    (entry,) = json.loads(subprocess.check_output(stored, cwd=pipeline.folder))["entries"].values()
    assert len({run["run"] for run in entry["runs"]}) == 3


def test_three_sessions_make_a_baseline_and_each_says_what_is_missing(
    without_baseline: Measured, one_night: Suite, tmp_path: Path
) -> None:
    one = said_of_candidate(without_baseline[1].output)
    assert one.startswith("standin-serve: 1 of 3 sessions; two more: pytest ")
    lines, ready = [], []
    for _ in range(2):
        done = one_night.run(ACCURACY, "--record")
        done.require(0)
        lines.append(said_of_candidate(done.output))
        assert lines[-1] in done.summary
        ready.append(one_night.perfgate("baseline", "ready", str(done.folder)))
    assert ready == [(0, ""), (0, "standin-serve\n")]
    require_enough_without_a_store(one_night.copy(tmp_path / "pipeline"))
    two, three = lines
    assert two.startswith("standin-serve: 2 of 3 sessions; one more: pytest ")
    assert two.endswith(f"{ACCURACY} --record, on another night or node")
    assert "--run-dir" not in two
    assert three.startswith("standin-serve: 3 sessions, enough for a baseline: ")
    # The line is the command, but for who and why.
    words = shlex.split(three.partition("baseline: ")[2])
    words[words.index("NAME")], words[words.index("WHY")] = "Ada", "the first three nights"
    status, told = one_night.perfgate(*words[1:])
    assert (status, "are asked for" in told) == (0, False), told
    (file,) = (one_night.folder / "baselines").glob("cpu/*/*.json")
    (entry,) = json.loads(file.read_text())["entries"].values()
    assert len({run["run"] for run in entry["runs"]}) == 3
    assert len(list((one_night.folder / "baselines" / "questions").glob("*/*.json"))) == 1
    judged = one_night.run(ACCURACY, "--gate")
    judged.require(0, {"sums": "PASS"})
    assert "are asked for" not in judged.summary


def test_a_baseline_of_one_session_judges_and_says_that_it_is_small(one_night: Suite) -> None:
    status, told = one_night.perfgate("baseline", "promote", CANDIDATE, *NAMED)
    small = "baseline of 1 session; 3 are asked for"
    assert (status, small in told) == (0, True), told
    done = one_night.run(ACCURACY, "--gate")
    done.require(0, {"sums": "PASS"})
    assert small in done.summary
    # A candidate that cannot be used is told, and nothing is green.
    candidate = one_night.folder / CANDIDATE
    candidate.write_text(candidate.read_text().replace('"count": ', '"count": 1'))
    told = "delete the candidate and record its runs again"
    one_night.run(ACCURACY, "--record").require(16, None, told)


TEST = "test_accuracy.py::test_accuracy[standin-serve-sums]"
SHAPED = (
    *("--engine-version=9.9", "--engine-commit=abc123"),
    *("--scenarios=scenarios", "--self-reference=stored"),
    *("--inject=engine.settings.cpu_threads=1", "--inject=limits.start_s=21"),
)


def test_the_rerun_line_selects_the_same_test_with_the_same_options(suite: Suite) -> None:
    secret = {"PERFGATE_PROGRAM_SECRET_TOKEN": "do-not-tell"}  # pragma: allowlist secret
    given = {"PERFGATE_MODELS": "/models of mine", "CI": "true", **secret}
    nothing = ("--benchmark-json", "benchmark.json")
    done = suite.run(ACCURACY, *SHAPED, *nothing, fault="no-result", **given)
    # In CI pytest repeats whole messages in its short summary, and a table of numbers is long.
    long, _, short = done.output.partition("short test summary info")
    says(short, f"ERROR perf_tests/{TEST}")
    assert (done.status, "rerun: " in short, "do-not-tell" in done.output) == (11, False, False)
    assert benchmarks(suite) == []  # nothing was measured: the file is there, and says so
    (line,) = [one for one in long.splitlines() if one.startswith("rerun: ")]
    words = shlex.split(line.removeprefix("rerun: "))
    start = words.index("pytest")
    variables = dict(word.split("=", 1) for word in words[:start])
    assert variables["PERFGATE_MODELS"] == "/models of mine"
    assert variables["PERFGATE_ROOT"] == str(suite.folder)
    assert variables["PERFGATE_PROGRAM_SECRET_TOKEN"] == "***"
    assert sorted(words[start + 2 :]) == sorted(SHAPED)
    assert "PERFGATE_SCENARIOS" not in variables  # the option says it
    bare = {name: value for name, value in suite.environment.items() if name not in variables}
    again = forked.run(
        [sys.executable, "-m", "pytest", *PLUGINS, *words[start + 1 :], "--collect-only", "-q"],
        cwd=suite.folder,
        env={**bare, **variables},
    )
    assert again.returncode == 0, again.stdout + again.stderr
    assert [one for one in again.stdout.splitlines() if "::" in one] == [f"perf_tests/{TEST}"]


def test_from_another_folder_the_rerun_line_names_the_test_from_there(suite: Suite) -> None:
    done = forked.run(
        suite.command("test_accuracy.py"),
        cwd=suite.folder / "perf_tests",
        env={**suite.environment, "PERFGATE_STANDIN_FAULT": "no-result"},
    )
    (line,) = [one for one in done.stdout.splitlines() if one.startswith("rerun: ")]
    words = shlex.split(line)
    assert (done.returncode, words[words.index("pytest") + 1]) == (11, TEST)
