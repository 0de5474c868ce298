"""TensorRT-LLM's trtllm-eval: GPQA diamond, GSM8K and MMLU on the model inside one process.

How it is called depends on the release: `perfgate.engines.tensorrt_llm.programs`. What it leaves
is read by `trtllm_eval_results`.
"""

from collections.abc import Mapping
from pathlib import Path

from perfgate.clients import datasets
from perfgate.clients.base import Offline
from perfgate.clients.logs import logged, no_report
from perfgate.core.command import Step
from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.locations import Locations
from perfgate.core.measurement import Measurement
from perfgate.core.programs import TENSORRT_LLM_PYTHON
from perfgate.engines.base import EngineBuild
from perfgate.engines.tensorrt_llm import programs
from perfgate.evaluators import trtllm_eval_results as results
from perfgate.evaluators.base import evaluator
from perfgate.scenarios.scenario import AccuracyTask, Measurable, Scenario

_VERSION_WITHIN_S = 60


@evaluator(results.EVALUATOR)
class TrtllmEval(Offline):
    """The tasks that TensorRT-LLM evaluates by itself, from 0.20 on."""

    name = results.EVALUATOR

    @classmethod
    def scores(cls) -> Mapping[str, frozenset[str]]:
        """See `Evaluator.scores`."""
        return results.SCORES

    def version(self, build: EngineBuild, locations: Locations) -> str:
        """See `Offline.version`.

        Raises:
            MissingProgram: lm_eval is not beside it, which it would tell after the weights are
                loaded.
        """
        if not locations.on_paper:
            code = "from importlib.metadata import version; print(version('lm_eval'))"
            argv = (*locations.find(TENSORRT_LLM_PYTHON), "-c", code)
            answer = locations.ask(argv, _VERSION_WITHIN_S, of_engine=True)
            if not answer.is_good:
                raise MissingProgram(
                    f"trtllm-eval lacks lm_eval: {answer.trouble}",
                    hint="install the lm_eval that TensorRT-LLM's requirements-dev.txt names into "
                    "its environment",
                )
        return build.version

    def steps(
        self,
        scenario: Scenario,
        build: EngineBuild,
        what: Measurable,
        locations: Locations,
    ) -> tuple[Step, ...]:
        """See `Offline.steps`."""
        if not isinstance(what, AccuracyTask):
            raise InputError(f"{self.name} measures only accuracy", found=repr(what)[:120])
        folder = datasets.of_trtllm_eval(what.task, locations)
        questions = None if folder is None else str(folder)
        command = programs.evaluate(scenario, build, what, questions, locations)
        return (Step("evaluator", command, probe=what.task),)

    def parse(
        self,
        scenario: Scenario,  # noqa: ARG002
        what: Measurable,
        folder: Path,
    ) -> Measurement:
        """See `Offline.parse`."""
        if not isinstance(what, AccuracyTask):
            raise TypeError(f"{self.name} measures no {type(what).__name__}")
        for lines in logged(folder, "benchmark", results.WORDS):
            if results.is_report(lines):
                return results.of_task(what, lines, folder)
        raise no_report(self.name, folder, "benchmark")
