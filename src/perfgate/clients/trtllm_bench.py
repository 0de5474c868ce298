"""trtllm-bench throughput: TensorRT-LLM's own offline benchmark, the engine inside itself.

How it is called depends on the release: `perfgate.engines.tensorrt_llm`.
"""

from pathlib import Path

from perfgate.clients import datasets
from perfgate.clients import trtllm_bench_report as report
from perfgate.clients.base import Offline, client, with_asked
from perfgate.clients.logs import left, logged, no_report
from perfgate.clients.trtllm_bench_asked import require_asked
from perfgate.clients.trtllm_bench_report import CLIENT
from perfgate.core.command import Step
from perfgate.core.errors import InputError, RunError
from perfgate.core.locations import Locations
from perfgate.core.measurement import Measurement
from perfgate.engines.base import EngineBuild
from perfgate.engines.tensorrt_llm import bench, dataset
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
            step = dataset.prepare(scenario, build, what.requests, locations)
            prepared, prompts = (step,), str(step.produces)
        else:
            raise InputError(
                f"{self.name} does not support these prompts",
                field="workload.dataset",
                found=kind,
                expected="synthetic or real",
            )
        command = bench.throughput(scenario, build, what, prompts, locations)
        return (*prepared, Step("benchmark", command, probe=what.label))

    def parse(self, scenario: Scenario, what: Measurable, folder: Path) -> Measurement:
        """See `Offline.parse`; the JSON report is the source, the printed one the fallback."""
        if not isinstance(what, LoadPoint):
            raise TypeError(f"{self.name} measures no {type(what).__name__}")
        return with_asked(require_asked(_reported(folder), scenario, what), what)


def _reported(folder: Path) -> Measurement:
    path = folder / REPORT
    if path.is_file():
        fields = left(path)
        if not report.is_report(fields):
            raise RunError("no_metrics", f"{path.name} is not a report of {CLIENT}")
        return report.parse(fields)
    for lines in logged(folder, "benchmark", report.WORDS):
        if report.is_printed(lines):
            return report.parse_printed(lines)
    raise no_report(CLIENT, folder, "benchmark")
