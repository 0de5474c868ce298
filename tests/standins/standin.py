"""Registers the stand-ins as engine, client and evaluator named "stand-in". For tests alone."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from perfgate.clients.base import Client, Offline, Target, client
from perfgate.core.errors import MissingProgram, RunError
from perfgate.core.measurement import Json, Measurement
from perfgate.core.metrics import accuracy_name
from perfgate.core.programs.command import Command, Step
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.programs import Program
from perfgate.engines.base import Endpoint, Engine, EngineBuild, engine
from perfgate.evaluators.base import Evaluator, evaluator
from perfgate.scenarios.scenario import (
    AccuracyTask,
    LoadPoint,
    Measurable,
    Scenario,
    Smoke,
    Workload,
)

HERE = Path(__file__).parent
QUESTIONS = 200


@engine("stand-in")
class StandinEngine(Engine):
    name = "stand-in"

    def check(self, scenario: Scenario, build: EngineBuild) -> None:
        pass

    def build(self, locations: Locations) -> EngineBuild:
        return EngineBuild("stand-in", "1.0", "1.0")

    def served_model(self, scenario: Scenario, locations: Locations) -> str:
        return scenario.model.name

    def serve(
        self, scenario: Scenario, build: EngineBuild, endpoint: Endpoint, locations: Locations
    ) -> Command:
        threads = str(scenario.engine.settings.cpu_threads)
        return Command(
            (sys.executable, str(HERE / "standin_server.py"))
            + ("--host", endpoint.host, "--port", str(endpoint.port))
            + ("--model", endpoint.model, "--threads", threads)
            + _options(),
            env=scenario.environment,
        )

    def tokenizer(self, scenario: Scenario, cache: Path, locations: Locations) -> str:
        return str(cache)

    def model_facts(self, scenario: Scenario, locations: Locations) -> Mapping[str, Json]:
        return {"sha256": "0" * 64}


@engine("missing")
class MissingEngine(StandinEngine):
    """An engine whose program is nowhere."""

    name = "missing"

    def build(self, locations: Locations) -> EngineBuild:
        Program("missing", "no-such-program-anywhere", "nothing").find()
        raise MissingProgram("unreachable")


def _options() -> tuple[str, ...]:
    """Further options of the server, from a file."""
    named = os.environ.get("PERFGATE_STANDIN_OPTIONS")
    return tuple(Path(named).read_text().splitlines()) if named else ()


def read(folder: Path) -> dict[str, Json]:
    try:
        found: dict[str, Json] = json.loads((folder / "result.json").read_text())
    except FileNotFoundError as error:
        raise RunError("no_metrics", "the client left no result") from error
    except json.JSONDecodeError as error:
        raise RunError("truncated_output", f"result.json is cut: {error}") from error
    return found


@client("stand-in")
class StandinClient(Client):
    name = "stand-in"

    def version(self, locations: Locations) -> str:
        return "1.0"

    def command(self, target: Target, workload: Workload, point: LoadPoint) -> Command:
        return Command(
            (sys.executable, str(HERE / "standin_client.py"), "--url", target.endpoint.url)
            + ("--out", str(target.folder / "result.json"), "--requests", str(point.requests)),
        )

    def parse(self, workload: Workload, point: LoadPoint, folder: Path) -> Measurement:
        plain = read(folder)
        if plain["completed"] != point.requests:
            raise RunError("incomplete", f"{plain['completed']} of {point.requests} requests")
        throughput = plain["output_throughput"]
        if not isinstance(throughput, float) or throughput <= 0:
            raise RunError("incomplete", f"output_throughput is {throughput}")
        facts: dict[str, Json] = {"osl": workload.osl, "requests_completed": point.requests}
        return Measurement({"output_throughput": throughput}, facts)


@client("stand-in-offline")
class StandinOffline(Offline):
    """The engine inside itself; its dataset is printed by a program of its own."""

    name = "stand-in-offline"

    def steps(
        self,
        scenario: Scenario,
        build: EngineBuild,
        what: Measurable,
        locations: Locations,
    ) -> tuple[Step, ...]:
        program = (sys.executable, str(HERE / "standin_offline.py"))
        requests = what.requests if isinstance(what, LoadPoint) else len(scenario.model.name)
        prepare = Command((*program, "prepare", str(requests)), stdout="dataset.txt")
        benchmark = Command((*program, "measure", "dataset.txt"))
        return (
            Step("prepare_dataset", prepare, what.label, "dataset.txt"),
            Step("benchmark", benchmark, what.label),
        )

    def parse(self, what: Measurable, folder: Path) -> Measurement:
        plain = read(folder)
        if isinstance(what, Smoke):
            return Measurement({}, {"answers": plain["completed"]})
        throughput = plain["output_throughput"]
        assert isinstance(throughput, float)
        return Measurement({"output_throughput": throughput}, {"osl": 16})


@evaluator("stand-in")
class StandinEvaluator(Evaluator):
    name = "stand-in"

    def version(self, locations: Locations) -> str:
        if os.environ.get("PERFGATE_STANDIN_LACKS") == self.name:
            raise MissingProgram("no evaluator here", hint="bring it")
        return "1.0"

    def command(self, target: Target, task: AccuracyTask) -> Command:
        return Command(
            (sys.executable, str(HERE / "standin_client.py"), "--url", target.endpoint.url)
            + ("--out", str(target.folder / "result.json"), "--questions", str(QUESTIONS))
            + ("--temperature", str(task.temperature)),
        )

    def parse(self, task: AccuracyTask, folder: Path) -> Measurement:
        answers = read(folder)["answers"]
        assert isinstance(answers, dict)
        metric = accuracy_name(task.task, "exact_match", "strict-match")
        given = {key: bool(right) for key, right in answers.items()}
        return Measurement({metric: sum(given.values()) / len(given)}, {}, {metric: given})
