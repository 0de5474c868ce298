"""Fresh start: one start of an engine, and the measuring of probes on it until it is stopped."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from perfgate.clients.base import Target
from perfgate.engines.base import Endpoint
from perfgate.errors import RunError
from perfgate.launchers.base import Job, Launcher
from perfgate.measurement import Measurement
from perfgate.paths import machine_store
from perfgate.probe import Probe
from perfgate.scenarios.scenario import AccuracyTask, LoadPoint, Scenario
from perfgate.serving import answers, free_port, run_to_end, wait_until_ready
from perfgate.tools import Tools

_HOST = "127.0.0.1"


@dataclass(frozen=True)
class FreshStart:
    """A server that is ready, and what is needed to measure it.

    Attributes:
        scenario: the scenario as it was started, injections included.
        server: the running server.
        target: where clients find it.
        tools: the programs.
        launcher: how clients and evaluators are started.
        folder: where this start's files go.
    """

    scenario: Scenario
    server: Job
    target: Target
    tools: Tools
    launcher: Launcher
    folder: Path

    def measure(self, probe: Probe) -> Measurement:
        """Measure one probe on this start; its files go into a folder of the probe's name.

        Raises:
            RunError: there is no usable measurement.
        """
        folder = self.folder / probe.label
        folder.mkdir()
        if isinstance(probe.what, LoadPoint):
            return self._load(probe.what, folder)
        # An injected scenario has its own version of the task.
        task = next(task for task in self.scenario.accuracy if task.task == probe.what.task)
        return self._evaluate(task, folder)

    def _load(self, point: LoadPoint, folder: Path) -> Measurement:
        load, client = self.scenario.workload, self.tools.client
        if load is None or client is None:
            raise ValueError(f"{self.scenario.id} has no workload")
        command = client.command(self.target, load, point, folder)
        before = self.server.cpu_seconds()
        with self.launcher.start(command, folder, "client") as job:
            run_to_end(job, self.server, self.scenario.limits)
        used = self.server.cpu_seconds() - before
        measured = client.parse(load, point, folder)
        derived = {**_per_gpu(measured, self.scenario), **_cpu_cost(measured, point, used)}
        return replace(measured, metrics={**measured.metrics, **derived})

    def _evaluate(self, task: AccuracyTask, folder: Path) -> Measurement:
        evaluator = self.tools.evaluators[task.evaluator]
        command = evaluator.command(self.target, task, folder)
        with self.launcher.start(command, folder, "evaluator") as job:
            try:
                run_to_end(job, self.server, self.scenario.limits)
            except RunError as error:
                cause = None
                if error.failure == "client_failed":
                    with job.stderr.open(errors="replace") as log:
                        cause = evaluator.diagnose(log)
                raise cause or error from None
        return evaluator.parse(task, folder)


def _per_gpu(measured: Measurement, scenario: Scenario) -> Mapping[str, float]:
    """Output tokens/s and GPU, where there are GPUs."""
    throughput = measured.metrics.get("output_throughput")
    if throughput is None or not scenario.hardware.gpus:
        return {}
    return {"output_throughput_per_gpu": throughput / scenario.hardware.gpus}


def _cpu_cost(measured: Measurement, point: LoadPoint, cpu_s: float) -> Mapping[str, float]:
    """CPU seconds per 1,000 output tokens, warm-up requests counted in both.

    Less disturbed by a busy neighbour than wall-clock time: waiting for a core costs nothing. Only
    known where the client tells the true output length and the server runs on this machine.
    """
    osl = measured.facts.get("osl")
    completed = measured.facts.get("requests_completed")
    if not isinstance(osl, int | float) or not isinstance(completed, int | float) or cpu_s <= 0:
        return {}
    tokens = osl * (completed + point.warmup_requests)
    return {"server_cpu_s_per_1k_tokens": 1000.0 * cpu_s / tokens}


@contextmanager
def fresh_start(
    scenario: Scenario, tools: Tools, launcher: Launcher, folder: Path
) -> Iterator[FreshStart]:
    """Start the scenario's engine, wait until it is ready, and stop it at the end of the block.

    Raises:
        RunError: it did not become ready.
    """
    folder.mkdir(parents=True)
    endpoint = Endpoint(_HOST, free_port(_HOST), tools.engine.served_model(scenario))
    if answers(endpoint.host, endpoint.port):
        raise RunError("port_in_use", f"another program listens on port {endpoint.port}")
    tokenizer = tools.engine.tokenizer(scenario, machine_store() / "cache")
    command = tools.engine.serve(scenario, endpoint)
    with launcher.start(command, folder, "server") as server:
        wait_until_ready(server, tools.engine, endpoint, scenario.limits.start_s)
        yield FreshStart(scenario, server, Target(endpoint, tokenizer), tools, launcher, folder)
