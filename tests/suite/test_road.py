"""The whole road with stand-ins: a session of pytest, from scenario file to exit status."""

import json
import os
import shutil
from pathlib import Path

import pytest
from checkouts import ACCURACY, METRIC, Finished, Suite, copied, junit

BOTH = ("--gate", "--record")
PASSED = {"c1": "PASS", "c2": "PASS", "sums": "PASS"}  # a curve needs four points

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def unchanged(accepted: Suite, tmp_path_factory: pytest.TempPathFactory) -> tuple[Suite, Finished]:
    """An unchanged build, measured and judged."""
    made = copied(accepted, tmp_path_factory.mktemp("unchanged"))
    return made, made.run("--gate", "--benchmark-json", "benchmark.json")


def test_an_unchanged_build_passes_and_every_record_is_there(
    unchanged: tuple[Suite, Finished],
) -> None:
    checkout, done = unchanged
    assert (done.status, done.verdicts) == (0, PASSED), done.output
    measured = done.records("measurement")
    roles = [line["role"] for line in measured]
    assert roles.count("reference") == 8
    assert roles.index("new") < max(n for n, role in enumerate(roles) if role == "reference")
    assert "**Exit status 0**" in (done.folder / "summary.md").read_text()
    assert json.loads((done.folder / "run.json").read_text())["machine"]["cores"] >= 1
    plain = json.loads((checkout.folder / "benchmark.json").read_text())
    entries = {one["name"]: one for one in plain["benchmarks"]}
    entry = entries["test_serving[standin-serve-c2] output_throughput"]
    assert (entry["extra_info"]["verdict"], entry["extra_info"]["unit"]) == ("PASS", "tokens/s")
    assert entry["stats"]["data"] == [
        line["metrics"]["output_throughput"]
        for line in measured
        if (line["probe"], line["role"]) == ("c2", "new")
    ]
    # One start recorded the accuracy baseline; then four references and the new ones.
    new = {line["start"] for line in measured if line["role"] == "new"}
    assert checkout.starts == 1 + 4 + len(new)
    first = [line["probe"] for line in measured if line["start"] == min(new)]
    assert first == ["c1", "c2", "sums"]
    assert checkout.wait_until_empty() == []
    # The machine is looked at once, before anything starts.
    lines = (done.folder / "records.jsonl").read_text().splitlines()
    kinds = [json.loads(line)["record"] for line in lines]
    assert kinds.index("preflight") < kinds.index("measurement")
    (found,) = done.records("preflight")
    assert found["fit"] is True
    assert {check["name"] for check in found["checks"]} >= {"run folder", "ports", "engine"}


def test_a_slowed_build_is_a_regression_against_the_stored_reference(
    unchanged: tuple[Suite, Finished], tmp_path: Path
) -> None:
    checkout = copied(unchanged[0], tmp_path / "suite")
    files = ("--junitxml=junit.xml", "--benchmark-json=benchmark.json")
    done = checkout.run("--inject", "engine.settings.cpu_threads=1", "-n", "2", *files)
    assert done.status == 1, done.output
    assert done.verdicts == {**dict.fromkeys(PASSED, "REGRESSION"), "sums": "PASS"}
    # What was measured without the injection is the control.
    measured = done.records("measurement")
    assert {line["role"] for line in measured} == {"new", "baseline_control"}
    # Two workers share the tests, and a scenario's stay on one.
    new = [(line["start"], line["probe"]) for line in measured if line["role"] == "new"]
    assert {probe for start, probe in new if start == new[0][0]} == {"c1", "c2", "sums"}
    for expected in ("baseline", "measured", "artifacts:", "rerun: "):
        assert expected in done.output
    assert "injected: engine.settings.cpu_threads=1" in done.output
    suite, tests = junit(checkout)
    assert (suite.get("failures"), suite.get("errors"), suite.get("skipped")) == ("2", "0", "0")
    failure = tests["test_serving[standin-serve-c1]"].find("failure")
    assert failure is not None
    assert failure.get("type") == "perfgate.REGRESSION"
    assert str(failure.get("message")).startswith("REGRESSION: output_throughput -")
    names = {one.get("name") for one in tests["test_serving[standin-serve-c1]"].iter("property")}
    assert {"metric.output_throughput.change", "metric.server_cpu_s_per_1k_tokens.n"} <= names
    # Workers measured; the main process wrote the file.
    entries = json.loads((checkout.folder / "benchmark.json").read_text())["benchmarks"]
    (slow,) = [one["stats"]["data"] for one in entries if "c1] output_throughput" in one["name"]]
    assert len(slow) >= 2
    assert 0 < slow[0] < 150


def test_a_first_run_shows_its_numbers_everywhere(
    without_baseline: tuple[Suite, Finished],
) -> None:
    checkout, done = without_baseline
    assert (done.status, done.verdicts) == (0, {"sums": "NO_BASELINE"}), done.output
    assert "nothing was judged, so nothing is claimed" in done.output
    assert f"{METRIC}   0.75  fraction  1" in done.output
    assert "compared with: no baseline" in done.output
    summary = (done.folder / "summary.md").read_text()
    assert f"| {METRIC} [fraction] | 0.75 | 1 | - | - |" in summary
    assert "build: stand-in 1.0" in done.output
    assert "- build: stand-in 1.0" in summary
    whole, tests = junit(checkout)
    test = tests["test_accuracy[standin-serve-sums]"]
    told = {one.get("name"): one.get("value") for one in test.iter("property")}
    assert (told[f"metric.{METRIC}"], told["engine_version"]) == ("0.75", "1.0")
    skipped = test.find("skipped")
    assert skipped is not None
    assert skipped.get("type") == "perfgate.NO_BASELINE"
    assert (whole.get("skipped"), whole.get("failures")) == ("1", "0")


def test_without_baselines_a_session_judges_records_or_says_that_it_lacks_them(
    unchanged: tuple[Suite, Finished], tmp_path: Path
) -> None:
    checkout = copied(unchanged[0], tmp_path / "suite")
    shutil.rmtree(checkout.folder / "baselines" / "cpu")
    half = ("perf_tests", "-k", "sums or c1")
    for gate, told in (((), "1 of 2 selected tests got no verdict"), (BOTH, "2 of 3 sessions")):
        done = checkout.run(*half, *gate)
        assert done.verdicts == {"c1": "PASS", "sums": "NO_BASELINE"}, done.output
        assert (done.status, done.output.count(told)) == (0, 1), done.output
    lacking = checkout.run(*half, *BOTH, PERFGATE_STANDIN_LACKS="stand-in")
    assert lacking.status == 12, "what was skipped is neither recorded nor judged"
    assert lacking.verdicts == {"c1": "PASS"}, "an evaluator that is missing skips its tests alone"
    (skipped,) = lacking.records("skipped")
    assert (skipped["probe"], skipped["reason"]) == ("sums", "no evaluator here; bring it")


def test_a_selection_without_a_test_is_not_green_but_for_pytest_that_collects(suite: Suite) -> None:
    for options in ((), ("-n", "1")):
        done = suite.run("-k", "nothing", *options)
        assert done.status == 12, done.output
        assert "exit status 12" in done.output
    assert suite.run("--collect-only", "-k", "nothing").status == 5
    done = suite.run("--collect-only", "-m", "standin", "-k", "c2")
    assert done.status == 0, done.output
    assert "test_serving.py::test_serving[standin-serve-c2]" in done.output
    assert "c1]" not in done.output
    assert not done.folder.exists()


def test_a_baseline_that_cannot_be_read_is_an_error_that_names_the_file(
    with_baseline: Suite,
) -> None:
    """That of the machine; one of the repository is read by the same code."""
    stored = with_baseline.folder / "baselines/cpu/standin-serve/1.0.json"
    own = with_baseline.folder / "home" / stored.relative_to(with_baseline.folder)
    own.parent.mkdir(parents=True)
    own.write_text(stored.read_text().replace('"schema_version": 3', '"schema_version": 99'))
    done = with_baseline.run("--junitxml=junit.xml", "--benchmark-json=benchmark.json")
    assert (done.status, done.verdicts) == (11, dict.fromkeys(PASSED, "ERROR")), done.output
    assert done.output.count("baseline written by a newer perfgate") >= len(PASSED)
    assert str(own) in done.output
    whole, tests = junit(with_baseline)
    assert (whole.get("failures"), whole.get("errors")) == ("0", str(len(tests)))
    plain = json.loads((with_baseline.folder / "benchmark.json").read_text())
    assert all(one["extra_info"]["verdict"] == "ERROR" for one in plain["benchmarks"])


def test_other_content_is_not_comparable_and_says_in_what(with_baseline: Suite) -> None:
    with_baseline.edit(("fewshot: 0", "fewshot: 3"))
    done = with_baseline.run(ACCURACY, "-rs")
    assert done.verdicts == {"sums": "NOT_COMPARABLE"}, done.output
    assert "content: measured" in done.output


def test_what_this_machine_lacks_is_skipped_with_the_reason_and_fails_the_gate(
    suite: Suite,
) -> None:
    suite.edit(
        ("{gpu: none, gpus: 0, nodes: 1}", "{gpu: B200, gpus: 8}"),
        ("cpu_threads: 2", "cpu_threads: 2, tp: 8"),
    )
    smi = suite.folder / "bin" / "nvidia-smi"  # before the one of a machine with GPUs
    smi.parent.mkdir()
    smi.write_text("#!/bin/sh\necho No devices were found\n")
    smi.chmod(0o755)
    path = os.pathsep.join((str(smi.parent), os.environ["PATH"]))
    done = suite.run("-rs", "--gate", PATH=path)
    assert done.status == 12, done.output
    assert "needs 8×B200, found none" in done.output
    assert "nothing was measured, so nothing is claimed" in done.output
    assert len(done.records("skipped")) == 3


def test_speed_is_not_measured_once_the_first_answers_are_broken(suite: Suite) -> None:
    suite.edit(("fewshot: 0}", "fewshot: 0, limit: 50}"))
    suite.promote(suite.run(ACCURACY).folder, "1.0")
    done = suite.run("perf_tests", "--inject", "accuracy.temperature=9", "--junitxml=junit.xml")
    assert done.status == 1, done.output
    assert done.verdicts == {
        "sums": "REGRESSION",
        **dict.fromkeys(("c1", "c2"), "INCONCLUSIVE"),
    }
    measured = [(line["role"], line["probe"]) for line in done.records("measurement")]
    # The loss is confirmed by a second evaluation; the load waits for neither.
    assert [probe for role, probe in measured if role == "new"] == ["sums", "sums"]
    # The build's first start comes second of all: what follows is saved.
    assert measured.count(("reference", "c1")) == 1
    assert "not measured, BROKEN_OUTPUT in sums" in done.output
    whole, tests = junit(suite)
    assert (whole.get("failures"), whole.get("errors"), whole.get("skipped")) == ("1", "0", "2")
    undecided = tests["test_serving[standin-serve-c1]"].find("skipped")
    assert undecided is not None
    assert undecided.get("type") == "perfgate.INCONCLUSIVE"


def test_a_session_without_tests_of_the_suite_leaves_no_trace(suite: Suite) -> None:
    (suite.folder / "test_other.py").write_text("def test_other():\n    pass\n")
    done = suite.run("test_other.py", PERFGATE_MODLES="/models")
    assert (done.status, "PERFGATE_MODLES" in done.output) == (0, False), done.output
    assert not (suite.folder / "run").exists()
    assert suite.run("test_other.py", "-k", "nothing", "-n", "1").status == 5
