"""The whole road with stand-ins: a session of pytest, from scenario file to exit status."""

import json
import os
import shutil
from pathlib import Path

import pytest
from checkouts import ACCURACY, METRIC, Finished, Suite, copied, junit
from tables import each

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


def test_worse_answers_are_a_regression_though_speed_is_fine_and_never_a_baseline(
    unchanged: tuple[Suite, Finished], tmp_path: Path
) -> None:
    checkout = copied(unchanged[0], tmp_path / "suite")
    done = checkout.run("--inject", "accuracy.temperature=2")
    assert (done.status, done.verdicts) == (1, {**PASSED, "sums": "REGRESSION"}), done.output
    refused = checkout.perfgate("baseline", "record", str(done.folder))
    assert refused.returncode == 2
    assert "settings were injected" in refused.stderr


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


def test_without_a_baseline_nothing_is_claimed_and_nothing_is_green(suite: Suite) -> None:
    done = suite.run(ACCURACY)
    assert (done.status, done.verdicts) == (12, {"sums": "NO_BASELINE"}), done.output
    assert "--record" in done.output
    assert done.records("candidate") == []
    assert not (suite.folder / "home" / "candidates").exists()


def test_what_was_judged_makes_a_run_green_and_the_rest_is_told(
    unchanged: tuple[Suite, Finished], tmp_path: Path
) -> None:
    checkout = copied(unchanged[0], tmp_path / "suite")
    shutil.rmtree(checkout.folder / "baselines" / "cpu")
    done = checkout.run("perf_tests", "-k", "sums or c1")
    assert done.verdicts == {"c1": "PASS", "sums": "NO_BASELINE"}, done.output
    assert done.status == 0, done.output
    assert "1 of 2 selected tests got no verdict" in done.output


def test_gate_and_record_together_record_what_has_no_baseline_and_judge_the_rest(
    unchanged: tuple[Suite, Finished], tmp_path: Path
) -> None:
    checkout = copied(unchanged[0], tmp_path / "suite")
    auto = ("perf_tests", "-k", "sums or c1", "--gate", "--record")
    done = checkout.run(*auto)
    assert (done.status, done.output.count("of 3 sessions")) == (0, 0), done.output
    shutil.rmtree(checkout.folder / "baselines" / "cpu")
    done = checkout.run(*auto)
    assert done.verdicts == {"c1": "PASS", "sums": "NO_BASELINE"}, done.output
    assert (done.status, done.output.count("2 of 3 sessions")) == (0, 1), done.output
    lacking = checkout.run(*auto, PERFGATE_STANDIN_LACKS="stand-in")
    assert lacking.status == 12, "what was skipped is neither recorded nor judged"


def test_a_missing_evaluator_skips_its_tests_alone_until_it_is_there(
    unchanged: tuple[Suite, Finished], tmp_path: Path
) -> None:
    checkout = copied(unchanged[0], tmp_path / "suite")
    lacking = checkout.run(PERFGATE_STANDIN_LACKS="stand-in")
    assert lacking.verdicts == {"c1": "PASS", "c2": "PASS"}, lacking.output
    (skipped,) = lacking.records("skipped")
    assert (skipped["probe"], skipped["reason"]) == ("sums", "no evaluator here; bring it")
    resumed = checkout.again()
    assert (resumed.status, resumed.verdicts) == (0, PASSED), resumed.output


@each("options", [(), ("-n", "1"), ("--record",)])
def test_a_selection_without_a_test_is_not_green(suite: Suite, options: tuple[str, ...]) -> None:
    done = suite.run("-k", "nothing", *options)
    assert done.status == 12, done.output
    assert "exit status 12" in done.output


def test_what_is_only_collected_ends_as_pytest_ends_it_and_its_ids_are_readable(
    suite: Suite,
) -> None:
    assert suite.run("--collect-only", "-k", "nothing").status == 5
    done = suite.run("--collect-only", "-m", "standin", "-k", "c2")
    assert done.status == 0, done.output
    assert "test_serving.py::test_serving[standin-serve-c2]" in done.output
    assert "c1]" not in done.output
    assert not done.folder.exists()


def test_a_baseline_of_an_unknown_schema_version_is_an_error_that_names_the_file(
    with_baseline: Suite,
) -> None:
    """Both that of the repository and that of the machine."""
    stored = with_baseline.folder / "baselines/cpu/standin-serve/1.0.json"
    own = with_baseline.folder / "home" / stored.relative_to(with_baseline.folder)
    own.parent.mkdir(parents=True)
    own.write_text(stored.read_text().replace('"schema_version": 3', '"schema_version": 99'))
    stored.write_text(own.read_text())
    done = with_baseline.run("--junitxml=junit.xml", "--benchmark-json=benchmark.json")
    assert done.status == 11, done.output
    assert done.verdicts == dict.fromkeys(PASSED, "ERROR")
    assert done.output.count("baseline written by a newer perfgate") >= len(PASSED)
    assert str(own) in done.output
    whole, tests = junit(with_baseline)
    assert (whole.get("failures"), whole.get("errors")) == ("0", str(len(tests)))
    errors = [one.find("error") for one in tests.values()]
    assert {one.get("type") for one in errors if one is not None} == {"perfgate.ERROR"}
    plain = json.loads((with_baseline.folder / "benchmark.json").read_text())
    assert all(one["extra_info"]["verdict"] == "ERROR" for one in plain["benchmarks"])
    own.unlink()
    done = with_baseline.run(ACCURACY)
    assert (done.status, done.verdicts) == (11, {"sums": "ERROR"}), done.output
    assert str(stored) in done.output


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
    assert suite.run("--record", PATH=path).status == 12


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


def test_the_machine_is_looked_at_once_before_anything_starts(
    unchanged: tuple[Suite, Finished],
) -> None:
    text = (unchanged[1].folder / "records.jsonl").read_text()
    lines = [json.loads(line)["record"] for line in text.splitlines()]
    assert lines.index("preflight") < lines.index("measurement")
    (found,) = unchanged[1].records("preflight")
    assert found["fit"] is True
    assert {check["name"] for check in found["checks"]} >= {"run folder", "ports", "engine"}


def test_a_wrong_scenario_file_ends_as_wrong_usage_with_file_and_line(suite: Suite) -> None:
    suite.edit(("isl: 16", "isl: sixteen"))
    done = suite.run()
    assert done.status == 4, done.output
    assert "standin.yaml:13" in done.output
    assert "sixteen" in done.output


WRONG = ("--inject", "engine.settings.cpu_thread=1")


@each(
    ("options", "message"),
    [
        (WRONG, "no such setting"),
        ((*WRONG, "-n", "1"), "no such setting"),
        (("--inject", "nonsense"), "KEY=VALUE"),
        (("--launcher", "slrum"), "unknown launcher"),
        (("--engine-repo", "perf_tests"), "perf_tests: not a git clone"),
        (("--budget", "tomorrow"), "--budget: not a duration"),
        (("--record", "--rehearse-fault=oom"), "found: --rehearse-fault beside it"),
    ],
)
def test_a_wrong_option_is_told_before_anything_starts(
    suite: Suite, options: tuple[str, ...], message: str
) -> None:
    done = suite.run(*options)
    assert done.status == 4, done.output
    assert done.output.count(message) == 1
    assert "INTERNALERROR" not in done.output
    assert suite.starts == 0


def test_a_session_without_tests_of_the_suite_leaves_no_trace(suite: Suite) -> None:
    (suite.folder / "test_other.py").write_text("def test_other():\n    pass\n")
    done = suite.run("test_other.py", PERFGATE_MODLES="/models")
    assert (done.status, "PERFGATE_MODLES" in done.output) == (0, False), done.output
    assert not (suite.folder / "run").exists()
    assert suite.run("test_other.py", "-k", "nothing", "-n", "1").status == 5
