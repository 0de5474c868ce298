"""The plan of a scenario: its program calls, in the order they are made."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from building import SCENARIO
from tables import each

from perfgate.core.command import ROLES, Step
from perfgate.core.errors import InputError
from perfgate.core.locations import Locations
from perfgate.core.redaction import is_secret
from perfgate.engines.base import EngineBuild
from perfgate.plan import calls as plan
from perfgate.scenarios.files import load_scenarios
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

SUITE = Path(__file__).parents[2] / "scenarios"
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


def outline(steps: Sequence[Step]) -> list[tuple[str, str | None]]:
    return [(step.role, step.probe) for step in steps]


class TestOrder:
    def test_a_server_then_what_is_asked_of_it(self) -> None:
        assert outline(of(SERVED)) == [
            ("server", None),
            ("smoke", "smoke"),
            ("smoke", "smoke"),
            ("client", "c1"),
            ("client", "c4"),
            ("evaluator", "gsm8k"),
        ]

    def test_offline_datasets_come_first_and_one_that_serves_all_is_made_once(self) -> None:
        assert outline(of(OFFLINE)) == [
            ("prepare_dataset", None),
            ("benchmark", "c1"),
            ("benchmark", "c4"),
        ]

    def test_a_dataset_of_one_probe_alone_is_that_probes(self) -> None:
        assert OFFLINE.workload is not None
        different = replace(OFFLINE.workload, requests=None, requests_per_concurrency=6)
        assert outline(of(replace(OFFLINE, workload=different))) == [
            ("prepare_dataset", "c1"),
            ("prepare_dataset", "c4"),
            ("benchmark", "c1"),
            ("benchmark", "c4"),
        ]

    def test_offline_benchmarks_wait_until_no_server_holds_the_gpus(self) -> None:
        both = replace(OFFLINE, accuracy=SERVED.accuracy)
        assert [step.role for step in of(both)] == [
            *("prepare_dataset", "server", "evaluator", "benchmark", "benchmark")
        ]

    def test_an_offline_first_answer_is_a_smoke_step_before_the_server(self) -> None:
        first = replace(SERVED, smoke=Smoke("trtllm-quickstart", ("The future of AI is",)))
        assert [step.role for step in of(first)][:2] == ["smoke", "server"]


class TestServer:
    def test_clients_find_a_server_that_listens_everywhere_at_localhost(self) -> None:
        server, *others = of(SERVED)
        words = server.command.argv
        assert words[words.index("--host") + 1] == "localhost", "it asks for no key"
        endpoint = plan.endpoint_of(SERVED, BUILD, PAPER, ANYWHERE)
        server, *others = plan.steps(SERVED, BUILD, PAPER, endpoint)
        words = server.command.argv
        assert words[words.index("--host") + 1] == ANYWHERE
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
        roles = {
            step.role
            for scenario in (SERVED, OFFLINE)
            for step in of(replace(scenario, launch=Launch("srun")))
            if step.command.argv[0] == "srun"
        }
        assert roles == {"server", "benchmark"}

    def test_what_is_verified_is_launched_by_nothing(self) -> None:
        several = replace(OFFLINE, launch=Launch("srun"))
        commands = plan.commands_to_verify(several, BUILD, PAPER)
        assert commands == tuple(step.command for step in of(OFFLINE))


class TestContainer:
    BOX = Container("nvcr.io/nvidia/tensorrt-llm/release:1.0.0", "tensorrt_llm")

    def test_the_engine_is_in_it_and_its_own_client_enters_it(self) -> None:
        assert SERVED.workload is not None
        load = replace(SERVED.workload, client="benchmark_serving", warmup_requests=0)
        steps = plan.contained_steps(replace(SERVED, workload=load), BUILD, PAPER, self.BOX)
        programs = {step.role: step.command.argv[:2] for step in steps}
        assert programs["server"] == ("docker", "run")
        assert programs["client"] == ("docker", "exec")
        assert programs["evaluator"][0] == "lm_eval"
        assert programs["smoke"][0] == "curl"

    def test_a_server_in_it_is_reached_from_outside(self) -> None:
        inward = replace(SERVED, listen=Listen("localhost", 8001))
        server = plan.contained_steps(inward, BUILD, PAPER, self.BOX)[0].command.argv
        assert server[server.index("--host") + 1] == ANYWHERE
        assert "127.0.0.1:8001:8001" in server
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
        assert SERVED.workload is not None
        with pytest.raises(InputError, match="unknown client"):
            of(replace(SERVED, workload=replace(SERVED.workload, client="trtlm-bench")))


DOCUMENTED = [one for one in load_scenarios(SUITE) if one.engine.name == "tensorrt-llm"]
RELEASES = ("0.20.0", "0.21.0", "1.0.0", "1.1.0", "1.2.0", "1.3.0")


class TestEveryScenario:
    """All that the suite has, on paper: nothing is installed and no machine is known."""

    @each("version", [None, *RELEASES])
    @each("scenario", DOCUMENTED, ids=lambda one: one.id)
    def test_is_rendered_or_refused_with_a_reason(
        self, scenario: Scenario, version: str | None
    ) -> None:
        release = version or str(scenario.source.engine_version)
        refused = None
        try:
            self.check(plan.steps(scenario, EngineBuild("tensorrt-llm", release, release), PAPER))
        except InputError as error:
            refused = error
        if refused is not None:
            assert version is not None, "its own document's release"
            assert version in str(refused)
            assert refused.expected or refused.hint, "no next step"

    @staticmethod
    def check(steps: tuple[Step, ...]) -> None:
        assert {step.role for step in steps} <= set(ROLES)
        assert any(step.probe for step in steps)
        for step in steps:
            assert all(isinstance(word, str) and word for word in step.command.argv)
            assert not [name for name in step.command.env if is_secret(name)]
            text = " ".join([*step.command.argv, *step.command.files.values()])
            assert str(Path.cwd()) not in text
            assert str(Path.home()) not in text
        measuring = [step for step in steps if step.role in ("benchmark", "client", "evaluator")]
        assert all(step.probe for step in measuring)
