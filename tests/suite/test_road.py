"""The whole road with stand-ins: pytest in a process of its own, from scenario file to exit status.

The stand-ins of tests/standins are real processes behind real sockets; only their speed is made up.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import forked
import psutil
import pytest
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS, XDIST, inherited

ROOT = Path(__file__).parents[2]
STANDINS = ROOT / "tests" / "standins"
PLUGINS = (*XDIST, *BENCHMARK)
PASSED = {"c1": "PASS", "c2": "PASS", "sums": "PASS"}  # a curve needs four points
PATIENCE_S = 180  # how long to wait for what must happen; a crowded machine is slow
METRIC = "accuracy:sums:exact_match:strict-match"

pytestmark = pytest.mark.slow


@dataclass
class Suite:
    """A small checkout with stand-ins for its programs."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        paths = (str(ROOT), str(ROOT / "src"), str(STANDINS))
        return {
            **inherited(),
            "PYTHONPATH": os.pathsep.join(paths),
            "PERFGATE_ROOT": str(self.folder),
            "PERFGATE_HOME": str(self.folder / "home"),
            "PERFGATE_STANDIN_COUNTER": str(self.folder / "starts"),
            **ONLY_NEEDED_PLUGINS,
        }

    def command(self, *options: str) -> list[str]:
        run = str(self.folder / "run")
        return [sys.executable, "-m", "pytest", *PLUGINS, "-q", "--run-dir", run, *options]

    def run(self, *options: str, fault: str = "", timeout: float = 120) -> "Finished":
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        environment = {**self.environment, "PERFGATE_STANDIN_FAULT": fault}
        command = self.command(*options)
        done = forked.run(command, cwd=self.folder, env=environment, timeout=timeout)
        return Finished(done.returncode, done.stdout + done.stderr, self.folder / "run")

    def again(self, *options: str) -> subprocess.CompletedProcess[str]:
        """A session in the run folder as it is, of the same name as the last one's."""
        return forked.run(self.command(*options), cwd=self.folder, env=self.environment)

    def perfgate(
        self, *words: str, folder: Path | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """A command of perfgate in this checkout, or in a folder."""
        call = [sys.executable, "-m", "perfgate", *words]
        return forked.run(call, cwd=folder or self.folder, env=self.environment)

    def edit(self, change: Callable[[str], str]) -> None:
        path = self.folder / "scenarios" / "standin.yaml"
        path.write_text(change(path.read_text()))

    def processes(self) -> list[psutil.Process]:
        """What is left of the sessions, wardens and stand-ins of this checkout.

        Told by the environment, or by the working folder: the title that an xdist worker gives
        itself overwrites its environment, and one that is just ending has none.
        """
        found = []
        for process in psutil.process_iter():
            try:
                if process.status() != psutil.STATUS_ZOMBIE and self._is_ours(process):
                    found.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied, FileNotFoundError):
                continue  # gone, or going: its /proc goes bit by bit
        return found

    def _is_ours(self, process: psutil.Process) -> bool:
        if process.environ().get("PERFGATE_HOME") == str(self.folder / "home"):
            return True
        return process.pid != os.getpid() and Path(process.cwd()).is_relative_to(self.folder)

    def wait_until_empty(self) -> list[psutil.Process]:
        """The processes still there after a generous while; empty as soon as there are none."""
        deadline = time.monotonic() + 30
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return left


@dataclass
class Finished:
    """A finished pytest session."""

    status: int
    output: str
    folder: Path

    def records(self, kind: str) -> list[dict[str, Any]]:
        lines = (self.folder / "records.jsonl").read_text().splitlines()
        return [line for line in map(json.loads, lines) if line["record"] == kind]

    @property
    def verdicts(self) -> dict[str, str]:
        return {line["probe"]: line["verdict"] for line in self.records("verdict")}


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return make_suite(tmp_path)


def make_suite(tmp_path: Path) -> Suite:
    """A checkout of its own in an empty folder."""
    (tmp_path / "scenarios").mkdir()
    shutil.copy(STANDINS / "standin.yaml", tmp_path / "scenarios")
    (tmp_path / "baselines").mkdir()
    shutil.copytree(ROOT / "perf_tests", tmp_path / "perf_tests")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    plugins = ["perfgate.suite.plugin", "standin"]
    (tmp_path / "conftest.py").write_text(f"pytest_plugins = {plugins!r}\n")
    return Suite(tmp_path)


# Sessions whose result several tests read, run once. A test that changes something has a copy.


@pytest.fixture(scope="module")
def without_baseline(tmp_path_factory: pytest.TempPathFactory) -> tuple[Suite, Finished]:
    """Accuracy, measured where there is nothing to compare with."""
    made = make_suite(tmp_path_factory.mktemp("accepted"))
    return made, made.run("perf_tests/test_accuracy.py", "--record", "--junitxml=junit.xml")


@pytest.fixture(scope="module")
def accepted(without_baseline: tuple[Suite, Finished]) -> Suite:
    """What `with_baseline` copies: recording and promoting take three processes."""
    made, run = without_baseline
    accept(made, run)
    return made


@pytest.fixture(scope="module")
def unchanged(accepted: Suite, tmp_path_factory: pytest.TempPathFactory) -> tuple[Suite, Finished]:
    """An unchanged build, measured and judged."""
    made = copied(accepted, tmp_path_factory.mktemp("unchanged"))
    return made, made.run("--gate", "--benchmark-json", "benchmark.json")


@pytest.fixture(scope="module")
def answers_worse(
    unchanged: tuple[Suite, Finished], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Suite, Finished]:
    """A build whose answers are worse, measured and judged by what is stored."""
    made = copied(unchanged[0], tmp_path_factory.mktemp("worse"))
    return made, made.run("--inject", "accuracy.temperature=2")


@pytest.fixture
def with_baseline(accepted: Suite, tmp_path: Path) -> Suite:
    """A checkout whose accuracy baseline has been recorded and promoted."""
    return copied(accepted, tmp_path)


def copied(suite: Suite, folder: Path) -> Suite:
    """The checkout, its machine store included, in another folder."""
    shutil.copytree(suite.folder, folder, dirs_exist_ok=True)
    return Suite(folder)


def junit(suite: Suite) -> tuple[ElementTree.Element, dict[str, ElementTree.Element]]:
    """The element of all tests in a session's JUnit XML, and name → that of one test."""
    (whole,) = ElementTree.parse(suite.folder / "junit.xml").getroot()  # noqa: S314 (pytest's own)
    return whole, {str(one.get("name")): one for one in whole.iter("testcase")}


def accept(suite: Suite, run: Finished) -> None:
    """Make the accuracy of a run the baseline."""
    assert run.verdicts == {"sums": "NO_BASELINE"}
    candidate = suite.folder / "home/candidates/cpu/standin-serve/1.0.json"
    for words in (
        ["record", str(run.folder)],
        ["promote", str(candidate), "--by", "tests", "--reason", "made up"],
    ):
        done = suite.perfgate("baseline", *words)
        assert done.returncode == 0, done.stderr


def test_an_unchanged_build_passes_and_every_record_is_there(
    unchanged: tuple[Suite, Finished],
) -> None:
    checkout, done = unchanged
    assert done.verdicts == PASSED, done.output
    assert done.status == 0, done.output
    roles = [line["role"] for line in done.records("measurement")]
    assert roles.count("reference") == 8
    assert roles.index("new") < max(n for n, role in enumerate(roles) if role == "reference")
    summary = (done.folder / "summary.md").read_text()
    assert "**Exit status 0**" in summary
    facts = json.loads((done.folder / "run.json").read_text())
    assert facts["machine"]["cores"] >= 1
    plain = json.loads((checkout.folder / "benchmark.json").read_text())
    entries = {one["name"]: one for one in plain["benchmarks"]}
    entry = entries["test_serving[standin-serve-c2] output_throughput"]
    assert (entry["extra_info"]["verdict"], entry["extra_info"]["unit"]) == ("PASS", "tokens/s")
    assert entry["stats"]["data"] == [
        line["metrics"]["output_throughput"]
        for line in done.records("measurement")
        if (line["probe"], line["role"]) == ("c2", "new")
    ]
    assert checkout.wait_until_empty() == []


def test_one_start_serves_all_probes_that_need_it(unchanged: tuple[Suite, Finished]) -> None:
    checkout, done = unchanged
    starts = int((checkout.folder / "starts").read_text())
    new = {line["start"] for line in done.records("measurement") if line["role"] == "new"}
    # One start recorded the accuracy baseline; then four references and the new ones.
    assert starts == 1 + 4 + len(new)
    first = min(new)
    assert [line["probe"] for line in done.records("measurement") if line["start"] == first] == [
        "c1",
        "c2",
        "sums",
    ]


def test_a_slowed_build_is_a_regression_against_the_stored_reference(
    unchanged: tuple[Suite, Finished], tmp_path: Path
) -> None:
    checkout = copied(unchanged[0], tmp_path)
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


def test_worse_answers_are_a_regression_though_speed_is_fine(
    answers_worse: tuple[Suite, Finished],
) -> None:
    _, done = answers_worse
    assert done.status == 1, done.output
    assert done.verdicts == {**PASSED, "sums": "REGRESSION"}


def test_a_changed_build_never_becomes_a_baseline(answers_worse: tuple[Suite, Finished]) -> None:
    checkout, done = answers_worse
    refused = checkout.perfgate("baseline", "record", str(done.folder))
    assert refused.returncode == 2
    assert "settings were injected" in refused.stderr


def test_a_first_run_shows_its_numbers_everywhere(
    without_baseline: tuple[Suite, Finished],
) -> None:
    checkout, done = without_baseline
    assert f"{METRIC}   0.75  fraction  1" in done.output
    assert "build: stand-in 1.0" in done.output
    assert "compared with: no baseline" in done.output
    summary = (done.folder / "summary.md").read_text()
    assert f"| {METRIC} [fraction] | 0.75 | 1 | - | - |" in summary
    assert "- build: stand-in 1.0" in summary
    suite, tests = junit(checkout)
    test = tests["test_accuracy[standin-serve-sums]"]
    told = {one.get("name"): one.get("value") for one in test.iter("property")}
    assert told[f"metric.{METRIC}"] == "0.75"
    assert told["engine_version"] == "1.0"
    skipped = test.find("skipped")
    assert skipped is not None
    assert skipped.get("type") == "perfgate.NO_BASELINE"
    assert (suite.get("skipped"), suite.get("failures")) == ("1", "0")


def test_a_run_that_is_to_record_may_have_nothing_to_be_judged_by(
    without_baseline: tuple[Suite, Finished],
) -> None:
    _, done = without_baseline
    assert (done.status, done.verdicts) == (0, {"sums": "NO_BASELINE"}), done.output
    assert "nothing was judged, so nothing is claimed" in done.output


def test_without_a_baseline_nothing_is_claimed_and_nothing_is_green(suite: Suite) -> None:
    for options in ((), ("--gate",)):
        done = suite.run("perf_tests/test_accuracy.py", *options)
        assert (done.status, done.verdicts) == (12, {"sums": "NO_BASELINE"}), done.output
        assert "--record" in done.output
        assert done.records("candidate") == []
    assert not (suite.folder / "home" / "candidates").exists()


def test_what_was_judged_makes_a_run_green_and_the_rest_is_told(
    unchanged: tuple[Suite, Finished], tmp_path: Path
) -> None:
    checkout = copied(unchanged[0], tmp_path)
    shutil.rmtree(checkout.folder / "baselines" / "cpu")
    done = checkout.run("perf_tests", "-k", "sums or c1")
    assert done.verdicts == {"c1": "PASS", "sums": "NO_BASELINE"}, done.output
    assert done.status == 0, done.output
    assert "1 of 2 selected tests got no verdict" in done.output


def test_what_only_records_is_neither_a_gate_nor_a_rehearsal(
    suite: Suite, subtests: pytest.Subtests
) -> None:
    for other in ("--gate", "--rehearse", "--rehearse-fault=oom"):
        with subtests.test(other):
            done = suite.run("--record", other)
            assert done.status == 4, done.output
            assert f"found: {other.partition('-fault')[0]} beside it" in done.output
            assert not done.folder.exists()


def test_a_selection_without_a_test_is_not_green(suite: Suite, subtests: pytest.Subtests) -> None:
    for options in ((), ("-n", "2"), ("--gate",), ("--record",)):
        with subtests.test(" ".join(options)):
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


@pytest.mark.parametrize(
    ("file", "test"),
    [
        ("baselines/cpu/standin-serve/1.0.json", "perf_tests/test_accuracy.py"),
        ("home/baselines/cpu/standin-serve/1.0.json", "perf_tests/test_serving.py"),
    ],
)
def test_a_baseline_of_an_unknown_schema_version_is_an_error_that_names_the_file(
    with_baseline: Suite, file: str, test: str
) -> None:
    path = with_baseline.folder / file
    if not path.exists():
        path.parent.mkdir(parents=True)
        shutil.copy(with_baseline.folder / "baselines/cpu/standin-serve/1.0.json", path)
    path.write_text(path.read_text().replace('"schema_version": 3', '"schema_version": 99'))
    files = ("--junitxml=junit.xml", "--benchmark-json=benchmark.json")
    done = with_baseline.run(test, *files)
    assert done.status == 11, done.output
    suite, tests = junit(with_baseline)
    assert suite.get("failures") == "0"
    assert suite.get("errors") == str(len(tests))
    for one in tests.values():
        error = one.find("error")
        assert error is not None
        assert error.get("type") == "perfgate.ERROR"
    plain = json.loads((with_baseline.folder / "benchmark.json").read_text())
    assert all(one["extra_info"]["verdict"] == "ERROR" for one in plain["benchmarks"])
    assert set(done.verdicts.values()) == {"ERROR"}
    assert done.output.count("baseline written by a newer perfgate") >= len(done.verdicts)
    assert str(path) in done.output


def test_other_content_is_not_comparable_and_says_in_what(with_baseline: Suite) -> None:
    with_baseline.edit(lambda text: text.replace("fewshot: 0", "fewshot: 3"))
    done = with_baseline.run("perf_tests/test_accuracy.py", "-rs")
    assert done.verdicts == {"sums": "NOT_COMPARABLE"}, done.output
    assert "content: measured" in done.output


def test_what_this_machine_lacks_is_skipped_with_the_reason_and_fails_the_gate(
    suite: Suite,
) -> None:
    suite.edit(
        lambda text: text.replace("{gpu: none, gpus: 0, nodes: 1}", "{gpu: B200, gpus: 8}").replace(
            "cpu_threads: 2", "cpu_threads: 2, tp: 8"
        )
    )
    done = suite.run("-rs", "--gate")
    assert done.status == 12, done.output
    assert "needs 8×B200, found none" in done.output
    assert "nothing was measured, so nothing is claimed" in done.output
    assert len(done.records("skipped")) == 3
    assert suite.run("--record").status == 12


def test_a_missing_program_is_skipped_with_the_way_to_get_it(suite: Suite) -> None:
    suite.edit(lambda text: text.replace("name: stand-in", "name: missing"))
    done = suite.run("-rs")
    assert done.status == 12
    assert "PERFGATE_PROGRAM_MISSING" in done.output


def test_speed_is_not_measured_once_the_first_answers_are_broken(suite: Suite) -> None:
    suite.edit(lambda text: text.replace("fewshot: 0}", "fewshot: 0, limit: 50}"))
    accept(suite, suite.run("perf_tests/test_accuracy.py"))
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


def test_a_documented_score_is_measured_again_until_it_is_decided(suite: Suite) -> None:
    """Each evaluation on a fresh start of its own; a loss needs two, and no control."""
    suite.edit(lambda text: text.replace("fewshot: 0}", "fewshot: 0, limit: 50}"))
    documented = suite.folder / "baselines" / "documented"
    documented.mkdir()
    (documented / "standin-serve.json").write_text(
        json.dumps(
            {
                "schema_version": 1,
                "scenario": "standin-serve",
                "source": {"document": "made.md", "section": "up", "engine_version": "1.0"},
                "values": {METRIC: {"value": 0.75, "stderr": 0.03}},
            }
        )
    )
    done = suite.run("perf_tests/test_accuracy.py", "--inject", "accuracy.temperature=9")
    assert done.status == 1, done.output
    starts = [(line["role"], line["start"]) for line in done.records("measurement")]
    assert starts == [("new", 1), ("new", 2)]
    assert "worse than the documented score: " in done.output
    assert "in 2 evaluations" in done.output
    done = suite.run("perf_tests/test_accuracy.py")
    assert (done.status, len(done.records("measurement"))) == (0, 1), done.output


def test_the_machine_is_looked_at_once_before_anything_starts(
    unchanged: tuple[Suite, Finished],
) -> None:
    _, done = unchanged
    text = (done.folder / "records.jsonl").read_text()
    lines = [json.loads(line)["record"] for line in text.splitlines()]
    assert lines.count("preflight") == 1
    assert lines.index("preflight") < lines.index("measurement")
    (found,) = done.records("preflight")
    assert found["fit"] is True
    assert {check["name"] for check in found["checks"]} >= {"run folder", "ports", "engine"}


def test_a_wrong_scenario_file_ends_as_wrong_usage_with_file_and_line(suite: Suite) -> None:
    suite.edit(lambda text: text.replace("isl: 16", "isl: sixteen"))
    done = suite.run()
    assert done.status == 4, done.output
    assert "standin.yaml:13" in done.output
    assert "sixteen" in done.output


def test_a_wrong_option_is_told_before_anything_starts(
    suite: Suite, subtests: pytest.Subtests
) -> None:
    wrong = ("--inject", "engine.settings.cpu_thread=1")
    for options, message in (
        (wrong, "no such setting"),
        ((*wrong, "-n", "2"), "no such setting"),
        (("--inject", "nonsense"), "KEY=VALUE"),
        (("--launcher", "slrum"), "unknown launcher"),
    ):
        with subtests.test(" ".join(options)):
            done = suite.run(*options)
            assert done.status == 4, done.output
            assert done.output.count(message) == 1
            assert "INTERNALERROR" not in done.output
            assert not (suite.folder / "starts").exists()


def test_a_session_without_tests_of_the_suite_leaves_no_trace(suite: Suite) -> None:
    (suite.folder / "test_other.py").write_text("def test_other():\n    pass\n")
    done = suite.run("test_other.py")
    assert done.status == 0
    assert not (suite.folder / "run").exists()
    for workers in ((), ("-n", "2")):
        assert suite.run("test_other.py", "-k", "nothing", *workers).status == 5


def _wait_for(path: Path) -> None:
    _wait_until(path.exists)


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail("waited in vain")
        time.sleep(0.05)
