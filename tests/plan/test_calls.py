"""The plan of a scenario: its program calls, in the order they are made."""

import json
from dataclasses import replace

import pytest
from building import SCENARIO
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.programs.command import Step
from perfgate.core.programs.locations import Locations
from perfgate.engines.base import EngineBuild
from perfgate.plan import calls as plan
from perfgate.scenarios.scenario import (
    AccuracyTask,
    Container,
    EngineChoice,
    EngineSettings,
    Hardware,
    Launch,
    Listen,
    Model,
    Scenario,
    Smoke,
)

PAPER = Locations(on_paper=True)
BUILD = EngineBuild("tensorrt-llm", "1.0.0", "1.0.0")
NAME = "deepseek-ai/DeepSeek-R1"
ANYWHERE = "0.0.0.0"  # noqa: S104
assert SCENARIO.workload is not None
SERVED = replace(
    SCENARIO,
    hardware=Hardware("H200", 8),
    model=Model(NAME, "fp8"),
    engine=EngineChoice("tensorrt-llm", EngineSettings(tp=8, ep=8)),
    accuracy=(AccuracyTask("lm_eval", "gsm8k", fewshot=5),),
    smoke=Smoke("completion", ("Where is New York?",), 16),
    listen=Listen(ANYWHERE, 8000),
)
OFFLINE = replace(
    SERVED,
    workload=replace(
        SCENARIO.workload,
        client="trtllm-bench",
        requests=64,
        requests_per_concurrency=None,
        seed=0,
        warmup_requests=0,
    ),
    accuracy=(),
    smoke=None,
    listen=None,
)


def of(scenario: Scenario) -> tuple[Step, ...]:
    return plan.steps(scenario, BUILD, PAPER)


def host_of(server: Step) -> str:
    return server.command.argv[server.command.argv.index("--host") + 1]


EACH = replace(OFFLINE.workload, requests=None, requests_per_concurrency=6)
QUICK = Smoke("trtllm-quickstart", ("The future of AI is",))


@each(
    "scenario, order",
    [
        (SERVED, "server smoke:smoke smoke:smoke client:c1 client:c4 evaluator:gsm8k"),
        # A dataset that serves all probes is made once; of one alone, it is that probe's.
        (OFFLINE, "prepare_dataset benchmark:c1 benchmark:c4"),
        (
            replace(OFFLINE, workload=EACH),
            "prepare_dataset:c1 prepare_dataset:c4 benchmark:c1 benchmark:c4",
        ),
        # Offline benchmarks wait until no server holds the GPUs.
        (
            replace(OFFLINE, accuracy=SERVED.accuracy),
            "prepare_dataset server evaluator:gsm8k benchmark:c1 benchmark:c4",
        ),
        (
            replace(SERVED, smoke=QUICK),
            "smoke:smoke server client:c1 client:c4 evaluator:gsm8k",
        ),
    ],
)
def test_the_order_of_the_steps(scenario: Scenario, order: str) -> None:
    steps = of(scenario)
    assert " ".join(":".join(filter(None, (one.role, one.probe))) for one in steps) == order


class TestServer:
    def test_clients_find_a_server_that_listens_everywhere_at_localhost(self) -> None:
        assert host_of(of(SERVED)[0]) == "localhost", "it asks for no key"
        endpoint = plan.endpoint_of(SERVED, BUILD, PAPER, ANYWHERE)
        server, *others = plan.steps(SERVED, BUILD, PAPER, endpoint)
        assert host_of(server) == ANYWHERE
        asked = [" ".join(step.command.argv) for step in others]
        assert all("localhost" in line for line in asked)
        assert plan.health_url(SERVED, BUILD, PAPER) == "http://localhost:8000/health"

    def test_first_answers_are_asked_for_as_documented(self) -> None:
        """DeepSeek-R1 recipe, section "Basic Test"."""
        _, health, completion, *_ = of(SERVED)
        assert health.command.argv == (
            *("curl", "-s", "-o", "/dev/null", "-w", r"Status: %{http_code}\n"),
            "http://localhost:8000/health",
        )
        *head, body = completion.command.argv
        url = "http://localhost:8000/v1/completions"
        assert head == ["curl", url, "-H", "Content-Type: application/json", "-d"]
        assert json.loads(body) == {
            "model": NAME,
            "prompt": "Where is New York?",
            "max_tokens": 16,
            "temperature": 0,
        }
        assert body.startswith('{\n      "model": ')

    def test_a_submitted_job_cannot_serve(self) -> None:
        with pytest.raises(InputError, match="its node is not known in advance"):
            of(replace(SERVED, launch=Launch("sbatch")))


class TestLaunch:
    def test_only_the_engine_is_launched(self) -> None:
        several = [replace(one, launch=Launch("srun")) for one in (SERVED, OFFLINE)]
        steps = [step for one in several for step in of(one) if step.command.argv[0] == "srun"]
        assert {step.role for step in steps} == {"server", "benchmark"}

    def test_what_is_verified_is_launched_by_nothing(self) -> None:
        several = replace(OFFLINE, launch=Launch("srun"))
        commands = plan.commands_to_verify(several, BUILD, PAPER)
        assert commands == tuple(step.command for step in of(OFFLINE))


class TestContainer:
    BOX = Container("nvcr.io/nvidia/tensorrt-llm/release:1.0.0", "tensorrt_llm")

    def test_the_engine_is_in_it_and_its_own_client_enters_it(self) -> None:
        load = replace(SERVED.workload, client="benchmark_serving", warmup_requests=0)
        steps = plan.contained_steps(replace(SERVED, workload=load), BUILD, PAPER, self.BOX)
        programs = {step.role: step.command.argv[:2] for step in steps}
        assert programs["server"] == ("docker", "run")
        assert programs["client"] == ("docker", "exec")
        assert programs["evaluator"][0] == "lm_eval"
        assert programs["smoke"][0] == "curl"

    def test_a_server_in_it_is_reached_from_outside(self) -> None:
        inward = replace(SERVED, listen=Listen("localhost", 8001))
        server = plan.contained_steps(inward, BUILD, PAPER, self.BOX)[0]
        assert host_of(server) == ANYWHERE
        assert "127.0.0.1:8001:8001" in server.command.argv
        steps = plan.contained_steps(inward, BUILD, PAPER, self.BOX, "10.0.0.7")
        assert "10.0.0.7:8001:8001" in steps[0].command.argv

    def test_who_can_reach_a_server_is_told(self) -> None:
        (note,) = plan.listen_notes(SERVED, None)
        assert "only this machine reaches it; --listen 0.0.0.0 renders it as there" in note
        (note,) = plan.listen_notes(SERVED, "10.0.0.7")
        assert "whoever reaches that address can use it" in note
        assert not plan.listen_notes(replace(SERVED, listen=None), None)
        assert not plan.listen_notes(OFFLINE, "10.0.0.7")

    def test_datasets_are_made_in_it_from_its_own_sources(self) -> None:
        steps = plan.contained_steps(OFFLINE, BUILD, PAPER, self.BOX)
        prepare = steps[0].command
        assert prepare.stdout == "dataset.txt"
        assert "/app/tensorrt_llm/benchmarks/cpp/prepare_dataset.py" in prepare.argv
        assert all(step.command.argv[:2] == ("docker", "run") for step in steps)


class TestRefusal:
    def test_comes_before_any_step(self) -> None:
        asked = replace(SERVED.engine, settings=replace(SERVED.engine.settings, cpu_threads=2))
        with pytest.raises(InputError, match="cpu_threads"):
            of(replace(SERVED, engine=asked))

    def test_of_unknown_programs(self) -> None:
        with pytest.raises(InputError, match="unknown client"):
            of(replace(SERVED, workload=replace(SERVED.workload, client="trtlm-bench")))
