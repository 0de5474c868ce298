"""The stand-in server, and what measures on it: read by perfgate's own parsers."""

import json
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

import pytest
from playing import DATA, MIN_LATENCY, SERVED, SHAREGPT, Ended, Put, Stage, scenarios, serving
from tables import each

from perfgate.clients.base import Client, Target, client
from perfgate.clients.first_answers import ask
from perfgate.core.errors import RunError
from perfgate.core.failures import diagnose
from perfgate.core.measurement import Measurement
from perfgate.engines.base import Endpoint
from perfgate.engines.effective_settings import require_effective_settings
from perfgate.engines.tensorrt_llm.engine import TensorRTLLM
from perfgate.evaluators.lm_eval import LmEval
from perfgate.launchers.local.launcher import free_port
from perfgate.rehearsal.faults import FAULTS
from perfgate.scenarios.documented import documented_values

HOST = "127.0.0.1"
REPORTS = ["partial", "truncated", "no_metrics", "zero_metrics"]
Server = Callable[[str], Endpoint]


@contextmanager
def started(stage: Stage, name: str, folder: Path) -> Iterator[Endpoint]:
    """The scenario's server, as perfgate calls it."""
    scenario, engine = scenarios()[name], TensorRTLLM()
    endpoint = Endpoint(HOST, free_port(HOST), engine.served_model(scenario, stage.locations))
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in stage.env.items():
            patch.setenv(variable, value)
        command = engine.serve(scenario, stage.build(scenario), endpoint, stage.locations)
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in command.files.items():
        (folder / file).write_text(content)
    with serving(command.argv, endpoint.url, folder, stage.environment(name)):
        yield endpoint


@pytest.fixture(scope="module")
def server(_stages: Put, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A scenario's server with which nothing is wrong, one for all tests."""
    with ExitStack() as stack:

        @cache
        def of(name: str) -> Endpoint:
            folder = tmp_path_factory.mktemp("server")
            return stack.enter_context(started(_stages(None, None), name, folder))

        yield of


def load(
    stage: Stage, name: str, endpoint: Endpoint, folder: Path
) -> tuple[Ended, Measurement | RunError]:
    scenario = scenarios()[name]
    assert scenario.workload is not None
    program = client[scenario.workload.client]()
    assert isinstance(program, Client)
    point = scenario.points()[0]
    target = Target(endpoint, str(stage.folder / "models"), stage.locations, folder=folder)
    folder.mkdir()
    command = program.command(target, scenario.workload, point)
    ended = stage.run(command.argv, folder, name, point.label)
    (folder / "client.out").write_text(ended.out)
    (folder / "client.err").write_text(ended.err)
    try:
        return ended, program.parse(scenario.workload, point, folder)
    except RunError as error:
        return ended, error


def evaluate(
    stage: Stage, endpoint: Endpoint, folder: Path, start: int = 1
) -> Measurement | RunError:
    task = scenarios()[SERVED].accuracy[0]
    folder.mkdir()
    target = Target(endpoint, "tokenizer", stage.locations, folder=folder)
    command = LmEval().command(target, task)
    stage.run(command.argv, folder, SERVED, task.task, start)
    try:
        return LmEval().parse(task, folder)
    except RunError as error:
        return error


def test_the_server_lists_its_model_and_answers(server: Server, tmp_path: Path) -> None:
    smoke, endpoint = scenarios()[SERVED].smoke, server(SERVED)
    assert smoke is not None
    with urllib.request.urlopen(endpoint.url + "/v1/models") as answer:
        (listed,) = json.load(answer)["data"]
    assert listed["id"] == endpoint.model
    assert "mock" in listed["owned_by"]
    assert ask(endpoint, smoke, tmp_path, 5.0).facts["answers"] == len(smoke.prompts)


@each("fault", [None, "ignored_options"])
def test_its_log_tells_what_it_runs_with(put: Put, tmp_path: Path, fault: str | None) -> None:
    scenario, stage = scenarios()[SERVED], put(fault=fault)
    with started(stage, SERVED, tmp_path):
        pass
    log = [line for one in tmp_path.glob("*.out") for line in one.read_text().splitlines()]
    found = TensorRTLLM().effective_settings(scenario, {}, log)
    assert found is not None
    if fault is None:
        told = require_effective_settings(scenario, found)["settings_in_force"]
        assert isinstance(told, dict)
        assert told["kv_cache_dtype"] == scenario.engine.settings.kv_cache_dtype
        return
    with pytest.raises(RunError, match="kv_cache_dtype: asked fp8, in force auto"):
        require_effective_settings(scenario, found)


def test_first_answers_can_be_broken_and_wrong(put: Put, tmp_path: Path) -> None:
    smoke = scenarios()[SERVED].smoke
    assert smoke is not None
    with started(put(fault="broken_answers"), SERVED, tmp_path) as endpoint:
        with pytest.raises(RunError) as caught:
            ask(endpoint, smoke, tmp_path, 5.0)
        assert caught.value.failure == "broken_output"
    with started(put(fault="wrong_answers"), SERVED, tmp_path) as endpoint:
        texts = ask(endpoint, smoke, tmp_path, 5.0).facts["answer_texts"]
    assert "London" in str(texts)  # fluent: what it should be stands in the scenario's document


def test_another_model_is_not_served(put: Put, server: Server, tmp_path: Path) -> None:
    other = Endpoint(HOST, server(SERVED).port, "another")
    ended, _ = load(put(), SERVED, other, tmp_path / "run")
    assert ended.status == 1
    assert "Initial test run failed" in ended.err


@each("name", [SERVED, SHAREGPT])
def test_load_is_read_as_a_whole_measurement(
    put: Put, server: Server, tmp_path: Path, name: str
) -> None:
    ended, found = load(put(), name, server(name), tmp_path / "run")
    assert ended.status == 0, ended.err
    assert isinstance(found, Measurement), found
    assert "all numbers are synthetic" in ended.err
    documented = documented_values(scenarios()[name])
    for metric, value in (documented.values if documented else {}).items():
        if metric in found.metrics:
            assert found.metrics[metric] == pytest.approx(value.value, rel=0.15)


def test_a_newer_release_serves_and_loads(put: Put, tmp_path: Path) -> None:
    stage = put("1.3.0")
    with started(stage, SERVED, tmp_path / "server") as endpoint:
        _, found = load(stage, SERVED, endpoint, tmp_path / "run")
    assert isinstance(found, Measurement), found


def test_benchmark_serving_writes_the_odd_keys_of_the_real_one(
    put: Put, server: Server, tmp_path: Path
) -> None:
    load(put(), SERVED, server(SERVED), tmp_path / "run")
    (file,) = [one for one in (tmp_path / "run").rglob("*.json") if "pytorch" not in one.name]
    result = json.loads(file.read_text())
    assert "request_goodput:" in result
    assert result["request_rate"] == "inf"
    assert result["perfgate_synthetic"] is True


def test_without_a_server_the_client_fails(put: Put, tmp_path: Path) -> None:
    nowhere = Endpoint(HOST, free_port(HOST), "model")
    ended, found = load(put(), SERVED, nowhere, tmp_path / "run")
    assert ended.status == 1
    assert "Cannot connect to host" in ended.err
    assert isinstance(found, RunError)


@each("fault", REPORTS)
@each("name", [SERVED, SHAREGPT])
def test_a_fault_of_the_report_ends_in_0_and_is_found_by_the_parser(
    put: Put, server: Server, tmp_path: Path, name: str, fault: str
) -> None:
    ended, found = load(put(fault=fault), name, server(name), tmp_path / "run")
    assert ended.status == 0, ended.err
    assert isinstance(found, RunError)
    assert found.failure == FAULTS[fault].failure


def test_a_request_that_is_too_long_is_told_by_client_and_server(put: Put, tmp_path: Path) -> None:
    stage = put(fault="request_too_long")
    with started(stage, SERVED, tmp_path / "server") as endpoint:
        ended, _ = load(stage, SERVED, endpoint, tmp_path / "run")
    assert ended.status == 1
    log = (tmp_path / "server" / "server.err").read_text()
    for told in (ended.err, log):
        assert diagnose(enumerate(told.splitlines(), start=1)).failure == "request_too_long"


def test_a_server_that_cannot_start_tells_why(put: Put, server: Server, tmp_path: Path) -> None:
    for fault, port, failure in (
        (None, server(SERVED).port, "port_in_use"),
        ("oom", free_port(HOST), "oom"),
    ):
        stage = put(fault=fault)
        argv = [stage.program("trtllm-serve"), "model", "--host", HOST, "--port", str(port)]
        ended = stage.run(argv, tmp_path, SERVED)
        assert ended.status == 1
        assert diagnose(enumerate(ended.err.splitlines(), start=1)).failure == failure


@each(("fault", "loss"), [(None, 0.0), ("accuracy:5pp", 0.05)])
def test_scores_lie_around_the_documented_ones_or_as_far_below_as_asked(
    put: Put, server: Server, tmp_path: Path, fault: str | None, loss: float
) -> None:
    found = evaluate(put(fault=fault), server(SERVED), tmp_path / "run")
    assert isinstance(found, Measurement), found
    assert found.facts["questions"] == 1319
    documented = documented_values(scenarios()[SERVED])
    assert documented is not None
    assert len(found.metrics) == 2
    for name, score in found.metrics.items():
        assert score == pytest.approx(documented.values[name].value - loss, abs=0.003)


def test_two_starts_differ_in_a_few_answers_only(put: Put, server: Server, tmp_path: Path) -> None:
    one, two = (evaluate(put(), server(SERVED), tmp_path / str(n), n) for n in (1, 2))
    assert isinstance(one, Measurement)
    assert isinstance(two, Measurement)
    for name, answers in one.answers.items():
        turned = sum(two.answers[name][key] != right for key, right in answers.items())
        assert 0 < turned < 0.05 * len(answers)


@each("fault", REPORTS[:3])
def test_a_fault_of_lm_eval_is_found_by_the_parser(
    put: Put, server: Server, tmp_path: Path, fault: str
) -> None:
    found = evaluate(put(fault=fault), server(SERVED), tmp_path / "run")
    assert isinstance(found, RunError)
    assert found.failure == FAULTS[fault].failure


def test_a_silent_client_writes_nothing_more(put: Put, tmp_path: Path) -> None:
    stage = put(fault="hang")
    argv = [stage.program("trtllm-bench"), "-m", "any", "throughput", "--dataset", "data"]
    (tmp_path / "data").write_text(DATA)
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(
            argv, cwd=tmp_path, env=stage.environment(MIN_LATENCY), timeout=2, capture_output=True
        )
