"""trtllm-bench throughput: TensorRT-LLM's own offline benchmark, the engine inside itself.

How it is called depends on the release: `perfgate.engines.tensorrt_llm`.
"""

from pathlib import Path

from perfgate.clients import datasets, trtllm_bench_json, trtllm_bench_text
from perfgate.clients.base import Offline, client, with_asked
from perfgate.clients.logs import left, logged, no_report
from perfgate.clients.trtllm_bench_asked import require_asked
from perfgate.clients.trtllm_bench_report import CLIENT, BenchReport
from perfgate.core.command import Step
from perfgate.core.errors import InputError, RunError
from perfgate.core.locations import Locations
from perfgate.core.measurement import Measurement
from perfgate.engines.base import EngineBuild
from perfgate.engines.tensorrt_llm import checkout, programs
from perfgate.scenarios.scenario import LoadPoint, Measurable, Scenario

REPORT = "report.json"


@client(CLIENT)
class TrtllmBench(Offline):
    """Throughput of one sweep point, on prompts of one length or on the person's own."""

    name = CLIENT

    def steps(
        self,
        scenario: Scenario,
        build: EngineBuild,
        what: Measurable,
        locations: Locations,
    ) -> tuple[Step, ...]:
        """See `Offline.steps`."""
        if not isinstance(what, LoadPoint) or scenario.workload is None:
            raise InputError(f"{self.name} measures only load", found=repr(what)[:120])
        kind = scenario.workload.dataset
        prepared: tuple[Step, ...] = ()
        if kind == "real":
            prompts = str(datasets.real_dataset(scenario, locations))
        elif kind == "synthetic":
            step = checkout.prepare(scenario, build, what.requests, locations)
            prepared, prompts = (step,), str(step.produces)
        else:
            raise InputError(
                f"{self.name} does not support these prompts",
                field="workload.dataset",
                found=kind,
                expected="synthetic or real",
            )
        command = programs.throughput(scenario, build, what, prompts, locations)
        return (*prepared, Step("benchmark", command, probe=what.label))

    def parse(self, scenario: Scenario, what: Measurable, folder: Path) -> Measurement:
        """See `Offline.parse`; the JSON report is the source, the printed one the fallback."""
        if not isinstance(what, LoadPoint):
            raise TypeError(f"{self.name} measures no {type(what).__name__}")
        measured = _report(folder).measurement()
        return with_asked(require_asked(measured, scenario, what), what)


def _report(folder: Path) -> BenchReport:
    path = folder / REPORT
    if path.is_file():
        fields = left(path)
        if not trtllm_bench_json.is_report(fields):
            raise RunError("no_metrics", f"{path.name} is not a report of {CLIENT}")
        return trtllm_bench_json.parse(fields)
    for lines in logged(folder, "benchmark", trtllm_bench_text.WORDS):
        if trtllm_bench_text.is_report(lines):
            return trtllm_bench_text.parse(lines)
    raise no_report(CLIENT, folder, "benchmark")
