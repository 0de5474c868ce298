"""TensorRT-LLM's own programs with the engine inside: trtllm-bench throughput, and as a smoke test
quickstart_advanced.py, which answers a few prompts.

How they are called depends on the release: `perfgate.engines.tensorrt_llm`. A release may ignore an
option or a YAML key without a word, so that what trtllm-bench's report shows of the engine is held
against the scenario; what it does not show cannot be checked. quickstart_advanced.py prints one
line a prompt, ``[0] Prompt: '…', Generated text: '…'``, both as Python writes strings; the number
is missing in old releases.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from perfgate.clients import datasets
from perfgate.clients import trtllm_bench_report as report
from perfgate.clients.base import Offline, client, with_asked
from perfgate.clients.client_facts import other_lengths
from perfgate.clients.first_answers import Answer, require_known, require_whole
from perfgate.clients.logs import Line, left, printed, require
from perfgate.core.errors import InputError, RunError
from perfgate.core.measurement import Json, Measurement
from perfgate.core.metrics import METRICS
from perfgate.core.programs.command import Step
from perfgate.core.programs.locations import Locations
from perfgate.engines.base import EngineBuild
from perfgate.engines.tensorrt_llm import checkout, programs
from perfgate.scenarios.scenario import LoadPoint, Measurable, Scenario, Smoke

REPORT = "report.json"
LENGTH_TOLERANCE = 0.01  # of the asked ISL and OSL, on the mean over all requests
FRACTION_TOLERANCE = 0.005  # the report shows whole hundredths of a percent
# Made by whoever runs the program, not by its report.
_DERIVED = frozenset({"server_cpu_s_per_1k_tokens", "output_throughput_per_gpu"})
_BACKENDS = {"pytorch": "Pytorch", "tensorrt": "TRT"}  # as the report spells them
_UNQUANTIZED = frozenset({"bf16", "bfloat16", "fp16", "float16"})
QUICKSTART = "trtllm-quickstart"
QUICKSTART_WORDS = ("generated text",)
_STRING = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_ANSWER = re.compile(
    rf"(?:\[\d+\]\s*)*Prompt: (?P<prompt>{_STRING}), Generated text: (?P<answer>{_STRING})"
)


@client(report.CLIENT)
class TrtllmBench(Offline):
    """Throughput of one sweep point, on prompts of one length or on the person's own."""

    def steps(
        self, scenario: Scenario, build: EngineBuild, what: Measurable, locations: Locations
    ) -> tuple[Step, ...]:
        """See `Offline.steps`."""
        if not isinstance(what, LoadPoint) or scenario.workload is None:
            raise InputError(f"{self.name} measures only load", found=repr(what)[:120])
        prepared: tuple[Step, ...] = ()
        if scenario.workload.dataset == "real":
            prompts = str(datasets.real_dataset(scenario, locations))
        else:  # synthetic: the engine refuses others
            step = checkout.prepare(scenario, build, what.requests, locations)
            prepared, prompts = (step,), str(step.produces)
        command = programs.throughput(scenario, build, what, prompts, locations)
        return (*prepared, Step("benchmark", command, probe=what.label))

    def parse(self, what: LoadPoint, folder: Path) -> Measurement:
        """See `Offline.parse`; the JSON report is the source, the printed one the fallback."""
        path = folder / REPORT
        if path.is_file():
            fields = left(path)
            is_report = report.is_report(fields)
            require(is_report, "no_metrics", f"{path.name} is not a report of {report.CLIENT}")
            measured = report.parse(fields)
        else:
            lines = printed(report.CLIENT, folder, "benchmark", report.WORDS, report.is_printed)
            measured = report.parse_printed(lines)
        done = measured.facts.get("requests_completed")
        message = f"{done} of {what.requests} requests were completed"
        require(done in (None, what.requests), "incomplete", message)
        return measured

    def require_asked(
        self, measured: Measurement, scenario: Scenario, point: LoadPoint
    ) -> Measurement:
        """`measured`, whose report shows nothing but what `scenario` asks for at `point`.

        What was asked and is null or missing there is no proof of anything: the fact
        ``asked_not_reported`` names it. Real prompts of other lengths are another dataset
        (`other_lengths`), which is no fault of the run.

        Raises:
            RunError: ``not_in_force`` (a setting or a length is another), ``no_metrics`` (token
                times or a gating metric are missing).
        """
        facts = measured.facts
        silent: list[Json] = []
        for name, asked, tolerance in _asked(scenario):
            shown = facts.get(name)
            if shown is None:
                silent.append(name)
            elif isinstance(shown, int | float) and isinstance(asked, int | float):
                _require_taken(name, shown, asked, abs(shown - asked) <= tolerance * abs(asked))
            else:
                _require_taken(name, shown, asked, shown == asked)
        _require_kv_cache(facts, scenario.engine.settings.kv_cache_dtype)
        message = "the report has no TTFT and TPOT, although the answers are to be streamed"
        hint = "check that the program was called with --streaming"
        is_streamed = not _is_streamed(scenario) or facts.get("streaming")
        require(is_streamed, "no_metrics", message, hint=hint)
        for name in scenario.gate.metrics:
            is_there = name not in METRICS or name in {*_DERIVED, *measured.metrics}
            message = f"the report has no {name}, which the scenario gates on"
            require(is_there, "no_metrics", message)
        more = other_lengths(scenario.workload, measured) if scenario.workload else {}
        more |= {"asked_not_reported": silent} if silent else {}
        return with_asked(replace(measured, facts={**facts, **more}), point)


def _asked(scenario: Scenario) -> list[tuple[str, Json, float]]:
    """Fact in the report, what was asked for, and how far it may be off as a fraction."""
    settings, load = scenario.engine.settings, scenario.workload
    lengths = load if load is not None and load.dataset == "synthetic" else None
    knobs: list[tuple[str, Json, float]] = [
        ("isl", lengths.isl if lengths else None, LENGTH_TOLERANCE),
        ("osl", lengths.osl if lengths else None, LENGTH_TOLERANCE),
        ("backend", _BACKENDS.get(settings.backend or ""), 0.0),
        ("tp", settings.tp, 0.0),
        ("pp", settings.stages, 0.0),
        ("ep", settings.ep, 0.0),
        ("max_batch_size", settings.max_batch_size, 0.0),
        ("max_num_tokens", settings.max_num_tokens, 0.0),
        ("kv_cache_fraction", settings.kv_cache_fraction, FRACTION_TOLERANCE),
        ("streaming", None if _is_streamed(scenario) else False, 0.0),
    ]
    return [knob for knob in knobs if knob[1] is not None]


def _is_streamed(scenario: Scenario) -> bool:
    return scenario.workload is not None and scenario.workload.streaming


def _require_kv_cache(facts: Mapping[str, Json], asked: str | None) -> None:
    """The data type that is reported is that of quantization: None or nothing without one."""
    if asked is None or asked == "auto" or "backend" not in facts:
        return
    shown = str(facts.get("kv_cache_dtype") or "none").lower()
    wanted = ("none", "auto", *_UNQUANTIZED) if asked.lower() in _UNQUANTIZED else (asked.lower(),)
    _require_taken("kv_cache_dtype", shown, asked, shown in wanted)


def _require_taken(name: str, shown: Json, asked: Json, is_so: bool) -> None:
    message = f"{name} did not take effect: found {shown}, expected {asked}"
    require(is_so, "not_in_force", message)


@client(QUICKSTART)
class TrtllmQuickstart(Offline):
    """The first answers of a model, generated in one process."""

    def steps(
        self, scenario: Scenario, build: EngineBuild, what: Measurable, locations: Locations
    ) -> tuple[Step, ...]:
        """See `Offline.steps`."""
        if not isinstance(what, Smoke):
            raise InputError(f"{self.name} is only a smoke test", found=repr(what)[:120])
        command = checkout.quickstart(scenario, build, what, locations)
        return (Step("benchmark", command, probe=what.label),)

    def parse(self, what: Smoke, folder: Path) -> Measurement:
        """See `Offline.parse`; there is nothing to measure, only answers to be there."""
        lines = printed(QUICKSTART, folder, "benchmark", QUICKSTART_WORDS, is_quickstart)
        return parse_quickstart(lines, what)


def is_quickstart(lines: tuple[Line, ...]) -> bool:
    """Whether there are answers in these lines, or the beginning of one."""
    return any("Prompt: " in line.text and "Generated text" in line.text for line in lines)


def parse_quickstart(lines: tuple[Line, ...], asked: Smoke | None = None) -> Measurement:
    """Read the answers.

    Args:
        lines: what the program printed.
        asked: what was asked, and what is known of the answers; None: those that are there.

    Raises:
        RunError: ``truncated_output`` (an answer stops in the middle), ``incomplete`` (a prompt
            has no answer), ``no_metrics`` (there is none at all), ``broken_output`` (one is
            nothing that a working model says), ``wrong_answer``.
    """
    found = dict(_answers(lines))
    asked = asked or Smoke(QUICKSTART, tuple(found))
    for prompt in asked.prompts:
        require(prompt in found, "incomplete", f"no answer to {prompt!r}")
    require(found, "no_metrics", "the program printed no answers")
    answers = {prompt: Answer(text) for prompt, text in found.items()}
    for prompt, answer in answers.items():
        require_whole(prompt, answer, asked.max_tokens)
    require_known(asked, answers)
    texts: dict[str, Json] = {**found}
    return Measurement({}, {"client": QUICKSTART, "answers": len(found), "answer_texts": texts})


def _answers(lines: tuple[Line, ...]) -> Iterator[tuple[str, str]]:
    """(prompt, answer) of every line that has one."""
    for line in lines:
        if found := _ANSWER.fullmatch(line.text):
            yield _string(found["prompt"]), _string(found["answer"])
        elif re.match(r"(?:\[\d+\]\s*)*Prompt: ['\"]", line.text):
            raise RunError("truncated_output", "an answer is truncated", evidence=(line.evidence,))


def _string(literal: str) -> str:
    """The text of a Python string literal.

    Raises:
        RunError: ``truncated_output``, it is none.
    """
    try:
        return str(ast.literal_eval(literal))
    except (SyntaxError, ValueError) as error:
        message = "an answer is not a complete string"
        raise RunError("truncated_output", message, evidence=(literal[:300],)) from error
