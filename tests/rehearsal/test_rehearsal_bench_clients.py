"""Stand-ins of the load clients: every release's command is read, asked and reported as there."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from playing import SHAREGPT, Ended, Stage, scenarios, staged

from perfgate.clients.base import Client, Target, client
from perfgate.core.errors import RunError
from perfgate.core.measurement import Measurement
from perfgate.engines.base import Endpoint
from perfgate.rehearsal.faults import parse_fault
from perfgate.rehearsal.programs.http_json import JsonHandler, JsonServer
from perfgate.scenarios.scenario import Scenario, Workload

NAME = "load-client"
BASE = replace(scenarios()[SHAREGPT], id=NAME)
RELEASES = [
    ("vllm-benchmark-serving", "0.6.6.post1"),
    ("vllm-benchmark-serving", "0.8.5"),
    ("vllm-bench", "0.8.5"),
    ("vllm-bench", "0.11.0"),
    ("vllm-bench", "0.32.0"),
    ("sglang-bench", "0.4.6"),
    ("sglang-bench", "0.5.3"),
    ("sglang-bench", "0.5.23"),
]
NEWEST = [("vllm-bench", "0.33.0"), ("sglang-bench", "0.5.23")]


class _Answers(JsonHandler):
    """An OpenAI-compatible server as small as a client's first request needs."""

    def do_POST(self) -> None:  # noqa: N802 - as http.server calls it
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known = asked["model"] == "served"
        self.answer_json(200 if known else 404, {} if known else {"message": "no such model"})

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@contextmanager
def serving() -> Iterator[int]:
    server = JsonServer(("127.0.0.1", 0), _Answers)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def scenario_of(name: str, version: str, **changes: Any) -> Scenario:
    load = Workload(
        name,
        "synthetic",
        128,
        4,
        (4,),
        requests=20,
        client_version=version,
        warmup_per_concurrency=0,
    )
    return replace(BASE, workload=replace(load, **changes), accuracy=())


def stage_of(scenario: Scenario, folder: Path, fault: str | None = None) -> Stage:
    return staged(folder, fault=fault, cases=[scenario])


def run(
    scenario: Scenario,
    folder: Path,
    env: pytest.MonkeyPatch,
    fault: str | None = None,
    port: int = 9,
    model: str = "served",
) -> tuple[Ended, Measurement | RunError]:
    stage = stage_of(scenario, folder / "stage", fault)
    for variable, value in stage.env.items():
        env.setenv(variable, value)
    load, point = scenario.workload, scenario.points()[0]
    assert load is not None
    program = client[load.client]()
    assert isinstance(program, Client)
    place = folder / point.label
    place.mkdir()
    version = program.version(stage.locations)
    assert version == load.client_version
    endpoint = Endpoint("127.0.0.1", port, model)
    target = Target(endpoint, "tokenizer", stage.locations, version, place)
    command = program.command(target, load, point)
    ended = stage.run(command.argv, place, scenario.id, point.label)
    (place / "client.out").write_text(ended.out)
    (place / "client.err").write_text(ended.err)
    try:
        return ended, program.parse(load, point, place)
    except RunError as error:
        return ended, error


@pytest.mark.parametrize(("name", "version"), RELEASES)
def test_a_release_s_command_is_played_and_read_and_its_table_alone_says_as_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, version: str
) -> None:
    scenario = scenario_of(name, version)
    with serving() as port:
        ended, found = run(scenario, tmp_path, monkeypatch, port=port)
    assert ended.status == 0, ended.err
    assert isinstance(found, Measurement), found
    assert (found.facts["requests_completed"], found.facts["input_tokens"]) == (20, 2560)
    assert {"ttft_mean_ms", "tpot_mean_ms", "total_token_throughput"} <= found.metrics.keys()
    place, program = tmp_path / "c4", client[name]()
    for result in place.glob("*.json*"):
        result.unlink()
    assert scenario.workload is not None
    assert isinstance(program, Client)
    if version in ("0.4.6", "0.5.3"):  # whose tables have no TPOT
        with pytest.raises(RunError, match="no mean TPOT"):
            program.parse(scenario.workload, scenario.points()[0], place)
        return
    again = program.parse(scenario.workload, scenario.points()[0], place)
    assert again.metrics["ttft_mean_ms"] == pytest.approx(found.metrics["ttft_mean_ms"], abs=0.01)


@pytest.mark.parametrize("fault", ["partial", "truncated", "no_metrics", "zero_metrics"])
@pytest.mark.parametrize(("name", "version"), [*RELEASES[:1], *NEWEST])
def test_faults_of_the_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, version: str, fault: str
) -> None:
    kind = parse_fault(fault).kind
    with serving() as port:
        ended, found = run(scenario_of(name, version), tmp_path, monkeypatch, fault, port)
    assert ended.status == 0  # which is why a status is no proof
    assert isinstance(found, RunError)
    assert found.failure == kind.failure


@pytest.mark.parametrize(("name", "version"), NEWEST)
def test_no_server_and_another_model_are_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, version: str
) -> None:
    warm_up = {"warmup_requests": 1} if name == "sglang-bench" else {}
    ended, found = run(scenario_of(name, version, **warm_up), tmp_path, monkeypatch)
    assert ended.status == 1
    assert isinstance(found, RunError)
    if name == "vllm-bench":
        (tmp_path / "other").mkdir()
        with serving() as port:
            case = scenario_of(name, version)
            ended, _ = run(case, tmp_path / "other", monkeypatch, port=port, model="other")
        assert ended.status == 1
        assert "no such model" in ended.err


def test_a_ratio_of_the_other_client_is_an_error(tmp_path: Path) -> None:
    stage = stage_of(scenario_of("vllm-bench", "0.11.0"), tmp_path / "stage")
    words = ["bench", "serve", "--model", "m", "--random-range-ratio", "1.0"]
    ended = stage.run([stage.program("vllm"), *words], tmp_path, NAME)
    assert (ended.status, "must be in [0, 1)" in ended.err) == (1, True)


def test_an_option_of_a_later_release(tmp_path: Path) -> None:
    stage = stage_of(scenario_of("vllm-bench", "0.11.0"), tmp_path / "stage")
    words = ["bench", "serve", "--model", "m", "--num-warmups", "4"]
    ended = stage.run([stage.program("vllm"), *words], tmp_path, NAME)
    assert ended.status == 2
    assert "unrecognized arguments: --num-warmups" in ended.err
