"""The whole road with stand-ins: pytest in a process of its own, from scenario file to exit status.

The stand-ins of tests/standins are real processes behind real sockets; only their speed is made up.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS, XDIST, inherited

ROOT = Path(__file__).parents[2]
STANDINS = ROOT / "tests" / "standins"
PLUGINS = (*XDIST, *BENCHMARK)
PASSED = {"c1": "PASS", "c2": "PASS", "sweep": "PASS", "sums": "PASS"}
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
        done = subprocess.run(
            self.command(*options),
            cwd=self.folder,
            env={**self.environment, "PERFGATE_STANDIN_FAULT": fault},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Finished(done.returncode, done.stdout + done.stderr, self.folder / "run")

    def again(self, *options: str) -> subprocess.CompletedProcess[str]:
        """A session in the run folder as it is, of the same name as the last one's."""
        return subprocess.run(
            self.command(*options),
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

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
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
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
    shutil.copy(ROOT / "scenarios" / "scenario.schema.json", tmp_path / "scenarios")
    (tmp_path / "baselines").mkdir()
    for schema in (ROOT / "baselines").glob("*.schema.json"):
        shutil.copy(schema, tmp_path / "baselines")
    shutil.copytree(ROOT / "perf_tests", tmp_path / "perf_tests")
    shutil.copy(ROOT / "waivers.schema.json", tmp_path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    plugins = ["perfgate.suite.plugin", "fixtures.measuring", "standin"]
    (tmp_path / "conftest.py").write_text(f"pytest_plugins = {plugins!r}\n")
    return Suite(tmp_path)


# Sessions whose result several tests read, run once. A test that changes something has a copy.


@pytest.fixture(scope="module")
def without_baseline(tmp_path_factory: pytest.TempPathFactory) -> tuple[Suite, Finished]:
    """Accuracy, measured where there is nothing to compare with."""
    made = make_suite(tmp_path_factory.mktemp("accepted"))
    return made, made.run("perf_tests/test_accuracy.py")


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
    accepted: Suite, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Suite, Finished]:
    """A build whose answers are worse, measured and judged."""
    made = copied(accepted, tmp_path_factory.mktemp("worse"))
    return made, made.run("--inject", "accuracy.temperature=2")


@pytest.fixture
def with_baseline(accepted: Suite, tmp_path: Path) -> Suite:
    """A checkout whose accuracy baseline has been recorded and promoted."""
    return copied(accepted, tmp_path)


def copied(suite: Suite, folder: Path) -> Suite:
    """The checkout, its machine store included, in another folder."""
    shutil.copytree(suite.folder, folder, dirs_exist_ok=True)
    return Suite(folder)


def accept(suite: Suite, run: Finished) -> None:
    """Make the accuracy of a run the baseline."""
    assert run.verdicts == {"sums": "NO_BASELINE"}
    perfgate = [sys.executable, "-m", "perfgate.cli.main", "baseline"]
    for words in (
        ["record", str(suite.folder / "run")],
        ["promote", str(suite.folder / "home/candidates/cpu/standin-serve/1.0.json")]
        + ["--by", "tests", "--reason", "made up"],
    ):
        done = subprocess.run(
            [*perfgate, *words],
            env=suite.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
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
    names = {one["name"]: one["extra_info"] for one in plain["benchmarks"]}
    info = names["test_serving[standin-serve-c2]"]
    assert info["verdict"] == "PASS"
    assert info["metrics"][0]["output_throughput"] > 0
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
    done = copied(unchanged[0], tmp_path).run("--inject", "engine.settings.cpu_threads=1")
    assert done.status == 1, done.output
    assert done.verdicts == {**dict.fromkeys(PASSED, "REGRESSION"), "sums": "PASS"}
    assert {line["role"] for line in done.records("measurement")} == {"new"}
    for expected in ("baseline", "measured", "-50", "artifacts:", "again: pytest "):
        assert expected in done.output
    assert "changed on purpose: engine.settings.cpu_threads=1" in done.output


def test_worse_answers_are_a_regression_though_speed_is_fine(
    answers_worse: tuple[Suite, Finished],
) -> None:
    _, done = answers_worse
    assert done.status == 1, done.output
    assert done.verdicts == {**PASSED, "sums": "REGRESSION"}


def test_a_changed_build_never_becomes_a_baseline(answers_worse: tuple[Suite, Finished]) -> None:
    checkout, done = answers_worse
    refused = subprocess.run(
        [sys.executable, "-m", "perfgate.cli.main", "baseline", "record", str(done.folder)],
        env=checkout.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert refused.returncode == 2
    assert "changed on purpose" in refused.stderr


def test_without_a_baseline_nothing_is_claimed_and_the_gate_fails(
    without_baseline: tuple[Suite, Finished], suite: Suite
) -> None:
    _, done = without_baseline
    assert (done.status, done.verdicts) == (0, {"sums": "NO_BASELINE"}), done.output
    done = suite.run("perf_tests/test_accuracy.py", "--gate")
    assert done.status == 12, done.output


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
    path.write_text(path.read_text().replace('"schema_version": 2', '"schema_version": 99'))
    done = with_baseline.run(test)
    assert done.status == 11, done.output
    assert set(done.verdicts.values()) == {"ERROR"}
    assert done.output.count("baseline of an unknown schema version") >= len(done.verdicts)
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
    done = suite.run("-rs")
    assert done.status == 0, done.output
    assert "needs 8×B200, found none" in done.output
    assert len(done.records("skipped")) == 4
    assert suite.run("--gate").status == 12


def test_a_missing_program_is_skipped_with_the_way_to_get_it(suite: Suite) -> None:
    suite.edit(lambda text: text.replace("name: stand-in", "name: missing"))
    done = suite.run("-rs")
    assert done.status == 0
    assert "PERFGATE_PROGRAM_MISSING" in done.output
    assert suite.run("--gate").status == 12


@pytest.mark.parametrize(
    ("fault", "failure"),
    [
        ("die-at-start", "model_file"),
        ("wrong-model", "start_timeout"),
        ("never-ready", "start_timeout"),
        ("die-on-load", "server_died"),
        ("client-fails", "client_failed"),
        ("client-hangs", "hang"),
        ("failed-requests", "incomplete"),
        ("zeros", "incomplete"),
        ("cut", "truncated_output"),
        ("no-result", "no_metrics"),
    ],
)
def test_a_fault_is_an_error_with_its_class_never_a_number(
    suite: Suite, fault: str, failure: str
) -> None:
    suite.edit(lambda text: text.replace("start_s: 20, silence_s: 20", "start_s: 3, silence_s: 3"))
    done = suite.run("perf_tests/test_serving.py", fault=fault)
    assert done.status == 11, done.output
    assert set(done.verdicts.values()) == {"ERROR"}
    assert {line["error"]["class"] for line in done.records("verdict")} == {failure}
    assert "next step:" in done.output
    assert suite.wait_until_empty() == []


def test_a_crash_fails_what_needed_the_server_and_is_told_once(suite: Suite) -> None:
    done = suite.run("perf_tests", "--self-reference", "stored", fault="die-after-load")
    assert done.status == 11, done.output
    told = {line["probe"]: line["error"] for line in done.records("verdict")}
    assert {error["class"] for error in told.values()} == {"server_died"}
    assert "right after a measurement" in told["c1"]["message"]
    for probe in ("c2", "sums"):  # the sweep has c1's own words
        assert told[probe]["message"].startswith("not measured, as c1 failed before it")
    assert len(list(done.folder.rglob("server.sh"))) == 1
    assert suite.wait_until_empty() == []


def test_speed_is_not_measured_once_the_first_answers_are_broken(suite: Suite) -> None:
    suite.edit(lambda text: text.replace("fewshot: 0}", "fewshot: 0, limit: 50}"))
    accept(suite, suite.run("perf_tests/test_accuracy.py"))
    done = suite.run("perf_tests", "--inject", "accuracy.temperature=9")
    assert done.status == 1, done.output
    assert done.verdicts == {
        "sums": "REGRESSION",
        **dict.fromkeys(("c1", "c2", "sweep"), "INCONCLUSIVE"),
    }
    measured = [(line["role"], line["probe"]) for line in done.records("measurement")]
    assert [probe for role, probe in measured if role == "new"] == ["sums"]
    # Half of the reference's starts come before the build's: the others are saved.
    assert measured.count(("reference", "c1")) == 2
    assert "not measured, BROKEN_OUTPUT in sums" in done.output


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
    assert "standin.yaml:11" in done.output.replace("standin.yaml:12", "standin.yaml:11")
    assert "sixteen" in done.output


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--inject", "engine.settings.cpu_thread=1"], "no such setting"),
        (["--inject", "nonsense"], "KEY=VALUE"),
        (["--launcher", "slrum"], "unknown launcher"),
    ],
)
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "with workers"])
def test_a_wrong_option_is_told_before_anything_starts(
    suite: Suite, option: list[str], message: str, workers: tuple[str, ...]
) -> None:
    done = suite.run(*option, *workers)
    assert done.status == 4, done.output
    assert done.output.count(message) == 1
    assert "INTERNALERROR" not in done.output
    assert not (suite.folder / "starts").exists()


def test_two_runs_in_one_folder_are_refused(suite: Suite) -> None:
    first = subprocess.Popen(
        suite.command("perf_tests/test_serving.py"),
        cwd=suite.folder,
        env={**suite.environment, "PERFGATE_STANDIN_FAULT": "never-ready"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(suite.folder / "run" / "records.jsonl")
        second = suite.again()
    finally:
        first.terminate()
        first.wait(60)
    assert second.returncode == 4, second.stdout
    assert "another run is writing to this folder" in second.stdout + second.stderr
    third = suite.again()
    assert third.returncode == 4
    assert "already holds a run" in third.stdout + third.stderr


@pytest.fixture
def small_disk(suite: Suite) -> Iterator[Callable[[int], Path]]:
    """Makes the run folder a file system of its own, of so many MiB."""
    folder = suite.folder / "run"
    folder.mkdir()

    def mount(mebibytes: int) -> Path:
        call = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(folder)]
        if os.geteuid() != 0 or subprocess.run(call, check=False, capture_output=True).returncode:
            pytest.skip("needs the right to mount a small file system")
        return folder

    yield mount
    if folder.is_mount():
        subprocess.run(["umount", str(folder)], check=True)


def test_a_small_disk_is_told_before_anything_starts(
    suite: Suite, small_disk: Callable[[int], Path]
) -> None:
    folder = small_disk(100)
    done = suite.again("perf_tests/test_serving.py")
    assert done.returncode == 11, done.stdout
    assert "run folder: 100 MiB free" in done.stdout
    assert not list(folder.rglob("server.sh"))


def test_a_disk_that_fills_is_told_and_leaves_readable_records(
    suite: Suite, small_disk: Callable[[int], Path]
) -> None:
    folder = small_disk(1100)
    with subprocess.Popen(
        suite.command("perf_tests/test_serving.py"),
        cwd=suite.folder,
        env=suite.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as run:
        wait_until(lambda: any(folder.rglob("client.sh")))
        fill(folder / "full")
        said = run.communicate(timeout=120)[0]
    lines = (folder / "records.jsonl").read_text().splitlines()
    assert run.returncode != 0
    assert "disk_full" in said
    assert json.loads(lines[0])["record"] == "selected"
    assert suite.wait_until_empty() == []


def fill(file: Path) -> None:
    """Write until there is no room left."""
    piece = bytes(1 << 20)
    with file.open("wb", buffering=0) as out:
        while piece:
            try:
                out.write(piece)
            except OSError:
                piece = piece[: len(piece) // 2]


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("stage", ["start", "load"])
def test_nothing_outlives_a_killed_session_and_its_records_stay_readable(
    suite: Suite, number: signal.Signals, stage: str
) -> None:
    fault = {"start": "never-ready", "load": "client-hangs"}[stage]
    session = subprocess.Popen(
        suite.command("perf_tests/test_serving.py"),
        cwd=suite.folder,
        env={**suite.environment, "PERFGATE_STANDIN_FAULT": fault},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    folder = suite.folder / "run" / "standin-serve" / "start-1-reference"
    _wait_for(folder / "server.out" if stage == "start" else folder / "c1" / "client.out")
    _wait_until(lambda: len(suite.processes()) >= 3)
    session.send_signal(number)
    status = session.wait(60)
    assert suite.wait_until_empty() == []
    assert status == (-number if number == signal.SIGKILL else 2)
    assert Finished(status, "", suite.folder / "run").records("selected")


def test_under_xdist_a_scenario_stays_on_one_worker_and_nothing_is_lost(
    with_baseline: Suite,
) -> None:
    done = with_baseline.run("-n", "2", "--gate")
    assert done.verdicts == PASSED, done.output
    assert done.status == 0, done.output
    assert len([line for line in done.records("measurement") if line["role"] == "new"]) >= 3


def test_a_killed_worker_is_an_error_and_leaves_nothing(suite: Suite) -> None:
    session = subprocess.Popen(
        suite.command("perf_tests/test_serving.py", "-n", "1", "--max-worker-restart", "0"),
        cwd=suite.folder,
        env={**suite.environment, "PERFGATE_STANDIN_FAULT": "client-hangs"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    folder = suite.folder / "run" / "standin-serve" / "start-1-reference"
    try:
        _wait_for(folder / "c1" / "client.out")
        workers = [child for child in psutil.Process(session.pid).children() if _is_worker(child)]
        assert workers
        for worker in workers:
            worker.kill()
        output, _ = session.communicate(timeout=60)
    finally:
        session.kill()
        session.communicate()
    assert suite.wait_until_empty() == []
    assert session.returncode == 11, output


def _is_worker(process: psutil.Process) -> bool:
    return any("serve" in word or "execnet" in word for word in process.cmdline())


def test_selecting_by_marker_and_id_is_readable(suite: Suite) -> None:
    done = suite.run("--collect-only", "-m", "standin", "-k", "c2")
    assert "test_serving.py::test_serving[standin-serve-c2]" in done.output
    assert "c1]" not in done.output
    assert not (suite.folder / "run").exists()


def test_a_session_without_tests_of_the_suite_leaves_no_trace(suite: Suite) -> None:
    (suite.folder / "test_other.py").write_text("def test_other():\n    pass\n")
    done = suite.run("test_other.py")
    assert done.status == 0
    assert not (suite.folder / "run").exists()


def _wait_for(path: Path) -> None:
    _wait_until(path.exists)


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail("waited in vain")
        time.sleep(0.05)
