"""Fresh start: one start of an engine, and the measuring of probes on it until it is stopped.

A server is started where a probe needs one; an offline program has the engine inside itself, so
that each of its measurements is a start of its own.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import psutil

from perfgate.campaign.builds.build import Build
from perfgate.campaign.schedule import Start
from perfgate.campaign.serving import (
    answers,
    require_serving,
    run_to_end,
    settings_facts,
    told_settings,
    wait_until_ready,
)
from perfgate.clients import blocks
from perfgate.clients.base import Client, Offline, Target
from perfgate.clients.client_facts import client_facts
from perfgate.clients.first_answers import ANSWER_WITHIN_S, ask, compared_with_texts
from perfgate.clients.load_files import parsed_load, parsed_offline, write_server_cpu
from perfgate.core.errors import RunError
from perfgate.core.files.durable_files import ANOTHER_STORE, kept_folder, write_errors_named
from perfgate.core.files.untrusted_files import make_new_folders
from perfgate.core.measurement import Json, Measurement
from perfgate.core.programs import raw_log
from perfgate.core.programs.command import Command, Step
from perfgate.engines.base import Endpoint
from perfgate.evaluators.base import Evaluator
from perfgate.launchers.base import Job, Placement, PlacementRequest
from perfgate.launchers.site import Site
from perfgate.launchers.start_commands import commands_around, require_here
from perfgate.machine.conditions.watch import Watch
from perfgate.machine.leases import Lease
from perfgate.plan.toolchain import Toolchain
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import (
    AccuracyTask,
    LoadPoint,
    Measurable,
    Scenario,
    Smoke,
    Workload,
)

# A server may still be busy with the last requests of a client that has ended.
WELL_WITHIN_S = 60.0
# Memory that must be free for another server, in sizes of the first.
_ROOM = 1.25
# A free port can be taken by another program before the server has it: no fault of the server.
_TRIES_OF_PORTS = 2


@dataclass(frozen=True)
class StartSetup:
    """Where a start happens, and of what.

    Attributes:
        build: what is started.
        folder: where this start's files go.
        cache: where what can be used again is kept: tokenizers, synthetic datasets.
        account: which start of the campaign it is.
        tell: says what is waited for, to whoever watches the run.
        lease: the GPUs, or the CPU, that it has for itself.
        watch: watches the machine since before it; None: nothing does.
        check: looks at the place before anything is started there, and raises if it will not do.
        nodes: by name those that it must have; empty: any.
        site: what runs before it and after it.
    """

    build: Build
    folder: Path
    cache: Path
    account: Start
    tell: Callable[[str], None]
    lease: Lease
    watch: Watch | None
    check: Callable[["StartSetup", Placement], None]
    nodes: tuple[str, ...]
    site: Site


@dataclass(frozen=True)
class FreshStart:
    """An engine that is ready, and what is needed to measure it.

    Attributes:
        setup: what was started, and where its files are.
        placement: the machine or the nodes that it runs on.
        server: the running server; None where the programs are offline.
        target: where clients find the server.
        server_facts: what the server says that it runs with.
        beside: the start of the other build that is up at the same time, on this machine: load
            takes turns on both in short blocks; None: it is alone.
        whole_load: whether the load client puts its whole load on it, beside blocks or without.
    """

    setup: StartSetup
    placement: Placement
    server: Job | None = None
    target: Target | None = None
    server_facts: Mapping[str, Json] = field(default_factory=dict)
    beside: "FreshStart | None" = None
    whole_load: bool = True

    @property
    def scenario(self) -> Scenario:
        """The scenario as it was started, injections included."""
        return self.setup.build.scenario

    @property
    def tools(self) -> Toolchain:
        """The programs."""
        return self.setup.build.tools

    @property
    def has_ended(self) -> bool:
        """Whether the server, if there is one, has ended by itself."""
        return self.server is not None and self.server.poll() is not None

    @property
    def leaves_room(self) -> bool:
        """Whether the machine has memory for another server like this one."""
        if self.server is None:
            return True
        used = 0
        for process in self.server.processes():
            with suppress(psutil.Error):
                used += process.memory_info().rss
        return psutil.virtual_memory().available > _ROOM * used

    def measure(self, probe: Probe) -> Measurement:
        """Measure one probe on this start; its files go into a folder of the probe's name.

        Raises:
            RunError: there is no usable measurement.
            InputError: a program of this release cannot do it, or a dataset is missing.
        """
        folder = self.setup.folder / probe.label
        with write_errors_named(folder):
            make_new_folders(folder)
        with _explained_by(self.placement):
            measured = self._measure(probe, folder)
            if self.server is not None:  # which may have broken by it
                within_s = min(WELL_WITHIN_S, self.scenario.limits.silence_s)
                require_serving(self.server, self.tools.engine, self._target.endpoint, within_s)
        self.placement.require()
        return self._with_facts(measured)

    def _with_facts(self, measured: Measurement) -> Measurement:
        """A measurement with what the server and the place say of themselves."""
        facts = {**measured.facts, **self.server_facts, **self.placement.facts}
        return replace(measured, facts=facts)

    def _measure(self, probe: Probe, folder: Path) -> Measurement:
        program = self.tools.program_of(probe)
        what = self._as_started(probe)
        if isinstance(program, Offline):
            return self._offline(program, what, probe, folder)
        if isinstance(what, Smoke):
            return self._first_answer(what, folder)
        if isinstance(what, LoadPoint) and isinstance(program, Client):
            return self._load(program, what, probe, folder)
        if isinstance(what, AccuracyTask) and isinstance(program, Evaluator):
            return self._evaluate(program, what, probe, folder)
        raise TypeError(f"{program} does not measure {probe}")

    def _first_answer(self, smoke: Smoke, folder: Path) -> Measurement:
        """A first answer, compared with the texts of the scenario's document."""
        within_s = min(ANSWER_WITHIN_S, self.scenario.limits.silence_s)
        measured = ask(self._target.endpoint, smoke, folder, within_s)
        texts = measured.facts.get("answer_texts")
        if not isinstance(texts, dict):
            return measured
        said = {prompt: str(text) for prompt, text in texts.items()}
        told = compared_with_texts(self.scenario, self.tools.build.version, said)
        return replace(measured, facts={**measured.facts, **told})

    @property
    def _target(self) -> Target:
        if self.target is None:
            raise ValueError(f"{self.scenario.id} was started without a server")
        return self.target

    def _as_started(self, probe: Probe) -> Measurable:
        """What is measured, as the injected scenario has it."""
        if not isinstance(probe.what, AccuracyTask):
            return probe.what
        name = probe.what.task
        return next(task for task in self.scenario.accuracy if task.task == name)

    def _start_client(
        self, command: Command, folder: Path, name: str, probe: Probe, *, of_engine: bool
    ) -> Job:
        marked = self.marked(command, probe.label, of_engine=of_engine)
        if of_engine:
            return self.placement.start_engine_client(marked, folder, name)
        return self.placement.start_client(marked, folder, name)

    def marked(self, command: Command, probe: str, *, of_engine: bool = True) -> Command:
        """The command whose processes say in their environment what they were started for.

        `of_engine`: it is the engine's, whose programs find those of their own build.
        """
        own = self.tools.locations.engine_environment if of_engine else {}
        marks = {
            "PERFGATE_SCENARIO": self.scenario.id,
            "PERFGATE_PROBE": probe,
            "PERFGATE_START": str(self.setup.account.number),
            "PERFGATE_ROLE": self.setup.account.role,
        }
        return replace(command, env={**own, **command.env, **self.setup.lease.env, **marks})

    def _load(self, client: Client, point: LoadPoint, probe: Probe, folder: Path) -> Measurement:
        load, server = self.scenario.workload, self.server
        if load is None or server is None:
            raise ValueError(f"{self.scenario.id} has no workload")
        if self.whole_load:
            command = client.command(replace(self._target, folder=folder), load, point)
            before = server.cpu_seconds()
            with self._start_client(
                command, folder, "client", probe, of_engine=client.of_engine
            ) as job:
                run_to_end(job, server, self.scenario.limits)
            write_server_cpu(folder, server.cpu_seconds() - before)
        if self.beside is not None:
            self._make_blocks(self.beside, load, point, probe)
        measured = parsed_load(client, self.scenario, point, folder)
        if not self.whole_load:
            return measured
        details = client_facts(client, self._target, self.scenario, self.tools.build, measured)
        return replace(measured, facts={**measured.facts, **details})

    def _make_blocks(
        self, other: "FreshStart", load: Workload, point: LoadPoint, probe: Probe
    ) -> None:
        """Let blocks of load take turns on both servers; each side's file goes to its own start."""
        folder, place = self.setup.folder / probe.label, other.setup.folder / probe.label
        targets: dict[str, tuple[Target, int]] = {
            one.setup.account.role: (one._target, one.server.pid)
            for one in (self, other)
            if one.server is not None
        }
        command = blocks.command(targets, load, point, self.scenario.gate)
        with self._start_client(command, folder, "blocks", probe, of_engine=False) as job:
            run_to_end(job, self.server, self.scenario.limits)
        with write_errors_named(place):
            make_new_folders(place)
            name = blocks.file_of(other.setup.account.role)
            (folder / name).replace(place / name)

    def blocks_of(self, probe: Probe) -> Measurement:
        """What blocks of load gave on this start, after `measure` of the one that it is beside."""
        program, point = self.tools.program_of(probe), probe.what
        if not isinstance(program, Client) or not isinstance(point, LoadPoint):
            raise ValueError(f"{probe.label} was not measured in blocks")
        folder = self.setup.folder / probe.label
        return self._with_facts(parsed_load(program, self.scenario, point, folder))

    def _evaluate(
        self, evaluator: Evaluator, task: AccuracyTask, probe: Probe, folder: Path
    ) -> Measurement:
        command = evaluator.command(replace(self._target, folder=folder), task)
        with self._start_client(
            command, folder, "evaluator", probe, of_engine=evaluator.of_engine
        ) as job:
            try:
                run_to_end(job, self.server, self.scenario.limits)
            except RunError as error:
                cause = None
                if error.failure == "client_failed" and evaluator.diagnose is not None:
                    cause = evaluator.diagnose(raw_log.lines(job.stderr))
                raise cause or error from None
        return evaluator.parse(task, folder)

    def _offline(
        self, program: Offline, what: Measurable, probe: Probe, folder: Path
    ) -> Measurement:
        *before, last = program.steps(self.scenario, self.tools.build, what, self.tools.locations)
        for step in before:
            prepare = partial(self._prepare, step, probe, folder)
            made_once(step, folder, self.setup.cache / "datasets", prepare)
        command = self.placement.launched(last.command, self.tools.locations)
        marked = self.marked(command, probe.label)
        with self.placement.start(marked, folder, "benchmark") as job:
            run_to_end(job, None, self.scenario.limits, otherwise="unknown")
        measured = parsed_offline(program, self.scenario, what, folder)
        if not isinstance(what, LoadPoint):
            return measured
        settings = settings_facts(self.scenario, self.tools, job, measured.facts)
        return replace(measured, facts={**settings, **measured.facts})

    def _prepare(self, step: Step, probe: Probe, folder: Path) -> None:
        with self._start_client(step.command, folder, step.role, probe, of_engine=True) as job:
            run_to_end(job, None, self.scenario.limits)


@contextmanager
def fresh_start(setup: StartSetup, probes: Sequence[Probe]) -> Iterator[FreshStart]:
    """Start what `probes` need, wait until it is ready, and stop it at the end of the block.

    Raises:
        RunError: it did not become ready, the place will not do, or a command of the site failed.
        InputError: the site has commands, and the engine starts on other nodes.
    """
    scenario, launcher = setup.build.scenario, setup.build.launcher
    require_here(setup.site, launcher, [scenario])
    with write_errors_named(setup.folder):
        make_new_folders(setup.folder)
    seconds = scenario.limits.start_s + len(probes) * scenario.limits.total_s
    request = PlacementRequest(scenario, setup.folder, seconds, setup.tell, setup.nodes)
    with (
        commands_around(setup.site, setup.folder),
        launcher.placed(request) as placement,
        ExitStack() as running,
    ):
        setup.check(setup, placement)
        start = FreshStart(setup, placement)
        if not all(map(start.tools.is_offline, probes)):
            with _explained_by(placement):
                start = _serving(start, running)
        yield start


def _serving(start: FreshStart, running: ExitStack) -> FreshStart:
    """The start with a server that is ready; `running` stops it."""
    scenario, tools, placement = start.scenario, start.tools, start.placement
    tokenizer = tools.engine.tokenizer(scenario, start.setup.cache, tools.locations)
    served = tools.engine.served_model(scenario, tools.locations)
    for left in reversed(range(_TRIES_OF_PORTS)):
        endpoint = Endpoint(placement.host, placement.free_port(), served)
        try:
            if answers(endpoint.host, endpoint.port):
                raise RunError("port_in_use", f"another program listens on port {endpoint.port}")
            server = running.enter_context(_server(start, endpoint))
            wait_until_ready(server, tools.engine, endpoint, scenario.limits.start_s)
        except RunError as error:
            if error.failure != "port_in_use" or not left:
                raise
            start.setup.tell(
                f"port {endpoint.port} was taken before the server had it: another one"
            )
            running.close()
        else:
            break
    facts = settings_facts(scenario, tools, server, told_settings(tools.engine, endpoint))
    load = scenario.workload
    client_version = tools.versions.get(load.client, "") if load is not None else ""
    target = Target(endpoint, tokenizer, tools.locations, client_version)
    return replace(start, server=server, target=target, server_facts=facts)


def _server(start: FreshStart, endpoint: Endpoint) -> Job:
    """The started server, which may not be ready yet."""
    scenario, tools, placement = start.scenario, start.tools, start.placement
    bound = replace(endpoint, host=placement.binds)
    command = tools.engine.serve(scenario, tools.build, bound, tools.locations)
    launched = placement.launched(command, tools.locations)
    return placement.start(start.marked(launched, ""), start.setup.folder, "server")


@contextmanager
def _explained_by(placement: Placement) -> Iterator[None]:
    """Turn a failure into what happened to the place, if that is what caused it."""
    try:
        yield
    except RunError as error:
        cause = placement.explained(error)
        if cause is error:
            raise
        raise cause from error


def made_once(step: Step, folder: Path, store: Path, make: Callable[[], None]) -> bool:
    """Put the file that `step` produces into `folder`, from `store` if it is there whole.

    Args:
        step: what is made; one that produces nothing is made each time.
        folder: where the file is wanted, and where `make` makes it.
        store: where such files are kept, by their call, with size and hash.
        make: runs the step in `folder`.

    Returns:
        Whether it had to be made.
    """
    name = step.produces
    if name is None:
        make()
        return True

    def fill(draft: Path) -> None:
        make()
        # Not renamed: the store may be on another disk than the run folder.
        with write_errors_named(store, ANOTHER_STORE):
            shutil.move(folder / name, draft / name)

    kept = store / _digest(step)
    made = kept_folder(kept, fill)
    with write_errors_named(folder):
        (folder / name).unlink(missing_ok=True)
        # A copy: the run folder is evidence by itself, and `perfgate release pack` refuses links.
        shutil.copyfile(kept / name, folder / name)
    return made


def _digest(step: Step) -> str:
    command = step.command
    call = [command.argv, sorted(command.env.items()), sorted(command.files.items()), step.produces]
    return hashlib.sha256(json.dumps(call).encode()).hexdigest()[:24]
