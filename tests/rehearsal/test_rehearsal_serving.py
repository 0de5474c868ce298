"""The stand-in server, and what measures on it: read by perfgate's own parsers."""

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playing import MIN_LATENCY, SERVED, SHAREGPT, Ended, Stage, scenarios, staged

from perfgate.clients.base import Client, Target, client
from perfgate.clients.smoke_test import ask
from perfgate.core.errors import RunError
from perfgate.core.failures import classify
from perfgate.core.measurement import Measurement
from perfgate.engines.base import Endpoint
from perfgate.engines.tensorrt_llm.engine import TensorRTLLM
from perfgate.evaluators.lm_eval import LmEval
from perfgate.launchers.local.launcher import free_port
from perfgate.rehearsal.faults import FAULTS
from perfgate.scenarios.documented import documented_values

HOST = "127.0.0.1"


@contextmanager
def serving(stage: Stage, name: str, folder: Path) -> Iterator[Endpoint]:
    """The scenario's server, as perfgate calls it."""
    scenario, engine = scenarios()[name], TensorRTLLM()
    endpoint = Endpoint(HOST, free_port(HOST), engine.served_model(scenario, stage.locations))
    command = engine.serve(scenario, stage.build(scenario), endpoint, stage.locations)
    folder.mkdir(parents=True)
    for file, content in command.files.items():
        (folder / file).write_text(content)
    with (folder / "server.out").open("w") as out, (folder / "server.err").open("w") as err:
        server = subprocess.Popen(
            command.argv, cwd=folder, env=stage.environment(name), stdout=out, stderr=err
        )
        try:
            _wait(server, endpoint, folder)
            yield endpoint
        finally:
            server.terminate()
            server.wait(10)


def _wait(server: subprocess.Popen[bytes], endpoint: Endpoint, folder: Path) -> None:
    for _ in range(200):
        assert server.poll() is None, (folder / "server.err").read_text()
        try:
            with urllib.request.urlopen(endpoint.url + "/health", timeout=1) as answer:
                assert answer.status == 200
                return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the server never came up")


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    return monkeypatch


def use(stage: Stage, env: pytest.MonkeyPatch) -> Stage:
    for variable, value in stage.env.items():
        env.setenv(variable, value)
    return stage


def load(
    stage: Stage, name: str, endpoint: Endpoint, folder: Path
) -> tuple[Ended, Measurement | RunError]:
    scenario = scenarios()[name]
    assert scenario.workload is not None
    program = client[scenario.workload.client]()
    assert isinstance(program, Client)
    point = scenario.points()[0]
    tokenizer = str(stage.folder / "models")
    target = Target(endpoint, tokenizer, stage.locations)
    folder.mkdir()
    command = program.command(target, scenario.workload, point, folder)
    ended = stage.run(command.argv, folder, name, point.label)
    (folder / "client.out").write_text(ended.out)
    (folder / "client.err").write_text(ended.err)
    try:
        return ended, program.parse(scenario.workload, point, folder)
    except RunError as error:
        return ended, error


def evaluate(
    stage: Stage, endpoint: Endpoint, folder: Path, start: int = 1
) -> tuple[Ended, Measurement | RunError]:
    task = scenarios()[SERVED].accuracy[0]
    folder.mkdir()
    command = LmEval().command(Target(endpoint, "tokenizer", stage.locations), task, folder)
    ended = stage.run(command.argv, folder, SERVED, task.task, start)
    try:
        return ended, LmEval().parse(task, folder)
    except RunError as error:
        return ended, error


def test_the_server_lists_its_model_and_answers(tmp_path: Path, env: pytest.MonkeyPatch) -> None:
    stage = use(staged(tmp_path / "stage"), env)
    smoke = scenarios()[SERVED].smoke
    assert smoke is not None
    with serving(stage, SERVED, tmp_path / "server") as endpoint:
        with urllib.request.urlopen(endpoint.url + "/v1/models") as answer:
            listed = json.load(answer)["data"]
        assert [model["id"] for model in listed] == [endpoint.model]
        assert "stand-in" in listed[0]["owned_by"]
        found = ask(endpoint, smoke, tmp_path, 5.0)
    assert found.facts["answers"] == len(smoke.prompts)


def test_first_answers_can_be_broken_and_wrong(tmp_path: Path, env: pytest.MonkeyPatch) -> None:
    smoke = scenarios()[SERVED].smoke
    assert smoke is not None
    stage = use(staged(tmp_path / "broken", fault="broken_answers"), env)
    with serving(stage, SERVED, tmp_path / "one") as endpoint, pytest.raises(RunError) as caught:
        ask(endpoint, smoke, tmp_path, 5.0)
    assert caught.value.failure == "broken_output"
    stage = use(staged(tmp_path / "wrong", fault="wrong_answers"), env)
    with serving(stage, SERVED, tmp_path / "two") as endpoint:
        texts = ask(endpoint, smoke, tmp_path, 5.0).facts["answer_texts"]
    assert "London" in str(texts)  # fluent: what it should be stands in the scenario's document


def test_another_model_is_not_served(tmp_path: Path, env: pytest.MonkeyPatch) -> None:
    stage = use(staged(tmp_path / "stage"), env)
    with serving(stage, SERVED, tmp_path / "server") as endpoint:
        other = Endpoint(endpoint.host, endpoint.port, "another")
        ended, _ = load(stage, SERVED, other, tmp_path / "run")
    assert ended.status == 1
    assert "Initial test run failed" in ended.err


@pytest.mark.parametrize("version", [None, "1.0.0", "1.3.0"])
@pytest.mark.parametrize("name", [SERVED, SHAREGPT])
def test_load_is_read_as_a_whole_measurement(
    tmp_path: Path, env: pytest.MonkeyPatch, name: str, version: str | None
) -> None:
    stage = use(staged(tmp_path / "stage", version), env)
    with serving(stage, name, tmp_path / "server") as endpoint:
        ended, found = load(stage, name, endpoint, tmp_path / "run")
    assert ended.status == 0, ended.err
    assert isinstance(found, Measurement), found
    assert "all numbers are synthetic" in ended.err
    documented = documented_values(scenarios()[name])
    for metric, value in (documented.values if documented else {}).items():
        if metric in found.metrics:
            assert found.metrics[metric] == pytest.approx(value.value, rel=0.15)


def test_benchmark_serving_writes_the_odd_keys_of_the_real_one(
    tmp_path: Path, env: pytest.MonkeyPatch
) -> None:
    stage = use(staged(tmp_path / "stage"), env)
    with serving(stage, SERVED, tmp_path / "server") as endpoint:
        load(stage, SERVED, endpoint, tmp_path / "run")
    files = [path for path in (tmp_path / "run").rglob("*.json") if "pytorch" not in path.name]
    assert len(files) == 1
    result = json.loads(files[0].read_text())
    assert "request_goodput:" in result
    assert result["request_rate"] == "inf"
    assert result["perfgate_synthetic"] is True


def test_without_a_server_the_client_fails(tmp_path: Path, env: pytest.MonkeyPatch) -> None:
    stage = use(staged(tmp_path / "stage"), env)
    nowhere = Endpoint(HOST, free_port(HOST), "model")
    ended, found = load(stage, SERVED, nowhere, tmp_path / "run")
    assert ended.status == 1
    assert "Cannot connect to host" in ended.err
    assert isinstance(found, RunError)


@pytest.mark.parametrize("fault", ["partial", "truncated", "no_metrics", "zero_metrics"])
@pytest.mark.parametrize("name", [SERVED, SHAREGPT])
def test_a_fault_of_the_report_ends_in_0_and_is_found_by_the_parser(
    tmp_path: Path, env: pytest.MonkeyPatch, name: str, fault: str
) -> None:
    stage = use(staged(tmp_path / "stage", fault=fault), env)
    with serving(stage, name, tmp_path / "server") as endpoint:
        ended, found = load(stage, name, endpoint, tmp_path / "run")
    assert ended.status == 0, ended.err
    assert isinstance(found, RunError)
    assert found.failure == FAULTS[fault].failure


def test_a_request_that_is_too_long_is_told_by_client_and_server(
    tmp_path: Path, env: pytest.MonkeyPatch
) -> None:
    stage = use(staged(tmp_path / "stage", fault="request_too_long"), env)
    with serving(stage, SERVED, tmp_path / "server") as endpoint:
        ended, _ = load(stage, SERVED, endpoint, tmp_path / "run")
    assert ended.status == 1
    assert classify(ended.err.splitlines())[0] == "request_too_long"
    log = (tmp_path / "server" / "server.err").read_text().splitlines()
    assert classify(log)[0] == "request_too_long"


def test_a_taken_port_is_told(tmp_path: Path, env: pytest.MonkeyPatch) -> None:
    stage = use(staged(tmp_path / "stage"), env)
    with serving(stage, SERVED, tmp_path / "server") as endpoint:
        argv = [stage.program("trtllm-serve"), "model", "--host", HOST]
        ended = stage.run([*argv, "--port", str(endpoint.port)], tmp_path, SERVED)
    assert ended.status == 1
    assert classify(ended.err.splitlines())[0] == "port_in_use"


def test_a_server_that_oom_ends_before_it_listens(tmp_path: Path) -> None:
    stage = staged(tmp_path / "stage", fault="oom")
    port = str(free_port(HOST))
    argv = [stage.program("trtllm-serve"), "model", "--host", HOST, "--port", port]
    ended = stage.run(argv, tmp_path, SERVED)
    assert ended.status == 1
    assert classify(ended.err.splitlines())[0] == "oom"


class TestLmEval:
    def test_scores_lie_around_the_documented_ones(
        self, tmp_path: Path, env: pytest.MonkeyPatch
    ) -> None:
        stage = use(staged(tmp_path / "stage"), env)
        with serving(stage, SERVED, tmp_path / "server") as endpoint:
            ended, found = evaluate(stage, endpoint, tmp_path / "run")
        assert ended.status == 0, ended.err
        assert isinstance(found, Measurement), found
        assert found.facts["questions"] == 1319
        documented = documented_values(scenarios()[SERVED])
        assert documented is not None
        assert len(found.metrics) == 2
        for name, score in found.metrics.items():
            assert score == pytest.approx(documented.values[name].value, abs=0.003)

    def test_two_starts_differ_in_a_few_answers_only(
        self, tmp_path: Path, env: pytest.MonkeyPatch
    ) -> None:
        stage = use(staged(tmp_path / "stage"), env)
        with serving(stage, SERVED, tmp_path / "server") as endpoint:
            _, one = evaluate(stage, endpoint, tmp_path / "one", start=1)
            _, two = evaluate(stage, endpoint, tmp_path / "two", start=2)
        assert isinstance(one, Measurement)
        assert isinstance(two, Measurement)
        for name, answers in one.answers.items():
            turned = sum(two.answers[name][key] != right for key, right in answers.items())
            assert 0 < turned < 0.05 * len(answers)

    @pytest.mark.parametrize(
        ("fault", "failure"),
        [
            ("partial", "incomplete"),
            ("truncated", "truncated_output"),
            ("no_metrics", "no_metrics"),
        ],
    )
    def test_faults(
        self, tmp_path: Path, env: pytest.MonkeyPatch, fault: str, failure: str
    ) -> None:
        stage = use(staged(tmp_path / "stage", fault=fault), env)
        with serving(stage, SERVED, tmp_path / "server") as endpoint:
            _, found = evaluate(stage, endpoint, tmp_path / "run")
        assert isinstance(found, RunError)
        assert found.failure == failure

    def test_lower_accuracy(self, tmp_path: Path, env: pytest.MonkeyPatch) -> None:
        stage = use(staged(tmp_path / "stage", fault="accuracy:5pp"), env)
        with serving(stage, SERVED, tmp_path / "server") as endpoint:
            _, found = evaluate(stage, endpoint, tmp_path / "run")
        assert isinstance(found, Measurement)
        documented = documented_values(scenarios()[SERVED])
        assert documented is not None
        for name, score in found.metrics.items():
            assert score == pytest.approx(documented.values[name].value - 0.05, abs=0.003)


def test_a_silent_client_writes_nothing_more(tmp_path: Path, env: pytest.MonkeyPatch) -> None:
    stage = use(staged(tmp_path / "stage", fault="hang"), env)
    argv = [stage.program("trtllm-bench"), "-m", "any", "throughput", "--dataset", "data"]
    (tmp_path / "data").write_text('{"task_id": 0, "input_ids": [1, 2], "output_tokens": 4}\n')
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(
            argv, cwd=tmp_path, env=stage.environment(MIN_LATENCY), timeout=2, capture_output=True
        )
