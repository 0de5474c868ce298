"""Plan: the program calls of a scenario in the order they are made, as plain values.

The order is: datasets, then offline programs that ask a first question or measure accuracy, then
the server with all that talks to it, then offline benchmarks. Offline programs need the GPUs that a
server holds, so none runs beside one. Nothing is started here.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfgate.clients.base import Client, Offline, Target
from perfgate.clients.first_answers import request_body
from perfgate.core.errors import InputError
from perfgate.core.files.paths import machine_store
from perfgate.core.programs.command import Command, Role, Step
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.programs import BENCHMARK_SERVING
from perfgate.engines.base import Endpoint, EngineBuild, OptionsAnswer
from perfgate.engines.tensorrt_llm.checkout import IMAGE_SOURCES
from perfgate.evaluators.base import Evaluator
from perfgate.plan.container import contained, entered
from perfgate.plan.toolchain import BuildOverride, Toolchain, needs_server, toolchain_for
from perfgate.plan.wrapping import wrapped
from perfgate.scenarios.probe import Probe, all_probes
from perfgate.scenarios.scenario import (
    AccuracyTask,
    Container,
    Listen,
    LoadPoint,
    Scenario,
    Smoke,
)

LISTEN = Listen("localhost", 8000)  # of the documents that name a place
LOOPBACK = ("localhost", "127.0.0.1", "::1")
PUBLISHED = "127.0.0.1"  # where a container's port is open on this machine
RESULTS = Path("results")  # on paper, those folders are in this one
_ROLE_OF: Mapping[type, Role] = {  # of an offline program, by what it measures
    Smoke: "smoke",
    AccuracyTask: "evaluator",
    LoadPoint: "benchmark",
}
_ANYWHERE = ("0.0.0.0", "::")  # noqa: S104  where a server listens, not where it is found


def steps(
    scenario: Scenario,
    build: EngineBuild,
    locations: Locations,
    endpoint: Endpoint | None = None,
) -> tuple[Step, ...]:
    """All program calls of a scenario, launched as its document launches them.

    A step that belongs to a probe bears its label: it runs in a folder of its own, with the other
    steps of the probe, and leaves its results there. A dataset that several probes share belongs
    to none.

    Args:
        scenario: what is measured.
        build: the engine's release, whose spelling is used.
        locations: where things are, on this machine or on paper.
        endpoint: where the server listens; None: where the document lets it listen.

    Raises:
        InputError: the release cannot do it, or something the scenario names is unknown.
        MissingProgram: a program is not here (never on paper).
    """
    return tuple(
        replace(call.step, command=wrapped(call.step.command, scenario, locations))
        if call.has_engine
        else call.step
        for call in _calls(scenario, build, locations, endpoint)
    )


def commands_to_verify(
    scenario: Scenario, build: EngineBuild, locations: Locations
) -> tuple[Command, ...]:
    """The commands of all steps as the programs themselves get them, launched by nothing.

    Raises:
        InputError: as `steps`.
    """
    return tuple(call.step.command for call in _calls(scenario, build, locations, None))


def options_answer(tools: Toolchain) -> tuple[int, OptionsAnswer]:
    """How many commands the plan gives the programs of `tools`, and what the build says of them.

    Raises:
        InputError: as `steps`, or the build lacks an option, choice or key.
    """
    commands = commands_to_verify(tools.measurable(), tools.build, tools.locations)
    ask = tools.engine.verify
    answer = OptionsAnswer() if ask is None else ask(tools.build, commands, tools.locations)
    return len(commands), answer


def endpoint_of(
    scenario: Scenario, build: EngineBuild, locations: Locations, listen: str | None = None
) -> Endpoint:
    """Where the server listens, and what its model is called there.

    Args:
        scenario: its document may name a place.
        build: the engine's release.
        locations: where things are.
        listen: a person's own choice. None: as documented, but for a server that would listen on
            all addresses: it asks for no key, so it listens on this machine's own alone.
    """
    engine = _tools(scenario, build, locations).engine
    documented = scenario.listen or LISTEN
    host = listen or (LISTEN.host if documented.host in _ANYWHERE else documented.host)
    return Endpoint(host, documented.port, engine.served_model(scenario, locations))


def listen_notes(scenario: Scenario, listen: str | None) -> tuple[str, ...]:
    """What whoever starts the server should know of who can reach it."""
    documented = scenario.listen or LISTEN
    if not needs_server(scenario):
        return ()
    if listen is None and documented.host in _ANYWHERE:
        return (
            f"The document lets the server listen on {documented.host}. It asks for no key, so "
            f"here only this machine reaches it; --listen {documented.host} renders it as there.",
        )
    if (listen or documented.host) not in LOOPBACK:
        return (
            f"The server listens on {listen or documented.host} and asks for no key: "
            "whoever reaches that address can use it.",
        )
    return ()


def as_found(endpoint: Endpoint) -> Endpoint:
    """The endpoint as a client on the same machine calls it."""
    return replace(endpoint, host="localhost") if endpoint.host in _ANYWHERE else endpoint


def health_url(
    scenario: Scenario, build: EngineBuild, locations: Locations, listen: str | None = None
) -> str:
    """What tells a client on the same machine whether the server is ready."""
    tools = _tools(scenario, build, locations)
    endpoint = endpoint_of(scenario, build, locations, listen)
    return as_found(endpoint).url + tools.engine.health_path


def contained_steps(
    scenario: Scenario,
    build: EngineBuild,
    locations: Locations,
    container: Container,
    listen: str | None = None,
) -> tuple[Step, ...]:
    """The same steps with the engine's programs in its release container.

    A load client that comes with the engine enters the server's container; other clients and
    evaluators stay outside. The server's port is published on this machine's own address.

    Args:
        scenario, build, locations: as for `steps`.
        container: image and name.
        listen: the address that the port is published on; None: 127.0.0.1.

    Raises:
        InputError: as `steps`.
    """
    # From outside, a server in a container is only reached if it listens on all its addresses.
    endpoint = replace(endpoint_of(scenario, build, locations), host=_ANYWHERE[0])
    # Programs are named as in the container, not as found here.
    inside = replace(locations, on_paper=True, source=locations.source or IMAGE_SOURCES)

    def in_container(call: _Call) -> Step:
        command = call.step.command
        if call.has_engine or call.step.role == "prepare_dataset":
            published = f"{listen or PUBLISHED}:{endpoint.port}:{endpoint.port}"
            command = contained(command, container, locations, published)
            return replace(call.step, command=command)
        if command.argv[: len(BENCHMARK_SERVING.bare())] == BENCHMARK_SERVING.bare():
            folder = RESULTS / (call.step.probe or "")
            return replace(call.step, command=entered(command, container, locations, folder))
        return call.step

    return tuple(in_container(call) for call in _calls(scenario, build, inside, endpoint))


@dataclass(frozen=True)
class _Call:
    """A step, and whether its program has the engine inside."""

    step: Step
    has_engine: bool = False


def _tools(scenario: Scenario, build: EngineBuild, locations: Locations) -> Toolchain:
    return toolchain_for(scenario, locations, BuildOverride(build.version, build.commit))


def _calls(
    scenario: Scenario, build: EngineBuild, locations: Locations, endpoint: Endpoint | None
) -> list[_Call]:
    tools = _tools(scenario, build, locations)
    tools.engine.check(scenario, build)
    offline = [probe for probe in all_probes(scenario) if tools.is_offline(probe)]
    served = [probe for probe in all_probes(scenario) if not tools.is_offline(probe)]
    prepared, measured = _offline(offline, tools, build)
    first = [call for call in measured if call.step.role != "benchmark"]
    last = [call for call in measured if call.step.role == "benchmark"]
    return [
        *(_Call(step) for step in prepared),
        *first,
        *(_served(served, tools, build, endpoint) if served else ()),
        *last,
    ]


def _offline(
    probes: Sequence[Probe], tools: Toolchain, build: EngineBuild
) -> tuple[list[Step], list[_Call]]:
    """The steps that prepare, each once, and those that measure."""
    prepared: list[Step] = []
    measured: list[_Call] = []
    for probe in probes:
        program = tools.program_of(probe)
        if not isinstance(program, Offline):
            raise TypeError(f"{program} is not an offline program")
        *before, last = program.steps(tools.scenario, build, probe.what, tools.locations)
        for step in (replace(one, probe=None) for one in before):
            same = [n for n, other in enumerate(prepared) if replace(other, probe=None) == step]
            if same:
                prepared[same[0]] = step
            else:
                prepared.append(replace(step, probe=probe.label))
        role = _ROLE_OF[type(probe.what)]
        measured.append(_Call(replace(last, role=role, probe=probe.label), has_engine=True))
    return prepared, measured


def _served(
    probes: Sequence[Probe], tools: Toolchain, build: EngineBuild, endpoint: Endpoint | None
) -> Iterator[_Call]:
    """The server, and what is asked of it."""
    scenario, locations = tools.scenario, tools.locations
    if scenario.launch is not None and scenario.launch.by == "sbatch":
        raise InputError(
            "a submitted job cannot serve: its node is not known in advance",
            file=scenario.file,
            field=f"{scenario.id}.launch.by",
            found="sbatch",
            expected="srun or mpirun",
        )
    if endpoint is None:
        endpoint = endpoint_of(scenario, build, locations)
    server = tools.engine.serve(scenario, build, endpoint, locations)
    yield _Call(Step("server", server), has_engine=True)
    endpoint = as_found(endpoint)
    tokenizer = endpoint.model
    if any(not probe.is_smoke for probe in probes):
        tokenizer = tools.engine.tokenizer(scenario, machine_store() / "cache", locations)
    version = scenario.workload.client_version if scenario.workload else None
    target = Target(endpoint, tokenizer, locations, version or "")
    for probe in probes:
        for step in _asked(probe, tools, target):
            yield _Call(replace(step, probe=probe.label))


def _asked(probe: Probe, tools: Toolchain, target: Target) -> Iterator[Step]:
    """What one probe asks of the server."""
    program, what, load = tools.program_of(probe), probe.what, tools.scenario.workload
    if isinstance(what, Smoke):
        yield from _first_answers(what, target.endpoint, tools.engine.health_path)
    elif isinstance(what, LoadPoint) and isinstance(program, Client) and load is not None:
        yield Step("client", program.command(target, load, what))
    elif isinstance(what, AccuracyTask) and isinstance(program, Evaluator):
        yield Step("evaluator", program.command(target, what))
    else:
        raise TypeError(f"{program} does not measure {probe}")


def _first_answers(smoke: Smoke, endpoint: Endpoint, health_path: str) -> Iterator[Step]:
    """Health and a completion, as in the DeepSeek-R1 recipe, section "Basic Test"."""
    health = ("curl", "-s", "-o", "/dev/null", "-w", r"Status: %{http_code}\n")
    yield Step("smoke", Command((*health, f"{endpoint.url}{health_path}")))
    for prompt in smoke.prompts:
        body = request_body(smoke, prompt, endpoint.model)
        argv = ["curl", f"{endpoint.url}/v1/completions", "-H", "Content-Type: application/json"]
        argv += ["-d", json.dumps(body, indent=6, ensure_ascii=False)]
        yield Step("smoke", Command(tuple(argv)))
