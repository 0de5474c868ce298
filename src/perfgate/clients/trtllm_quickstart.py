"""TensorRT-LLM's quickstart_advanced.py: a few prompts answered, as a smoke test.

How it is called depends on the release: `perfgate.engines.tensorrt_llm.checkout`. It prints one
line a prompt, ``[0] Prompt: '…', Generated text: '…'``, both as Python writes strings; the number
is missing in old releases.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from perfgate.clients.base import Offline, client
from perfgate.clients.first_answers import Answer, require_known, require_whole
from perfgate.clients.logs import Line, printed
from perfgate.core.command import Step
from perfgate.core.errors import InputError, RunError
from perfgate.core.locations import Locations
from perfgate.core.measurement import Measurement
from perfgate.engines.base import EngineBuild
from perfgate.engines.tensorrt_llm import checkout
from perfgate.scenarios.scenario import Measurable, Scenario, Smoke

CLIENT = "trtllm-quickstart"
WORDS = ("generated text",)
_STRING = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_ANSWER = re.compile(
    rf"(?:\[\d+\]\s*)*Prompt: (?P<prompt>{_STRING}), Generated text: (?P<answer>{_STRING})"
)


@client(CLIENT)
class TrtllmQuickstart(Offline):
    """The first answers of a model, generated in one process."""

    name = CLIENT

    def steps(
        self, scenario: Scenario, build: EngineBuild, what: Measurable, locations: Locations
    ) -> tuple[Step, ...]:
        """See `Offline.steps`."""
        if not isinstance(what, Smoke):
            raise InputError(f"{self.name} is only a smoke test", found=repr(what)[:120])
        command = checkout.quickstart(scenario, build, what, locations)
        return (Step("benchmark", command, probe=what.label),)

    def parse(self, _scenario: Scenario, what: Smoke, folder: Path) -> Measurement:
        """See `Offline.parse`; there is nothing to measure, only answers to be there."""
        return parse(printed(CLIENT, folder, "benchmark", WORDS, is_report), what)


def is_report(lines: tuple[Line, ...]) -> bool:
    """Whether there are answers in these lines, or the beginning of one."""
    return any("Prompt: " in line.text and "Generated text" in line.text for line in lines)


def parse(lines: tuple[Line, ...], asked: Smoke | None = None) -> Measurement:
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
    asked = asked or Smoke(CLIENT, tuple(found))
    for prompt in asked.prompts:
        if prompt not in found:
            raise RunError("incomplete", f"no answer to {prompt!r}")
    if not found:
        raise RunError("no_metrics", "the program printed no answers")
    answers = {prompt: Answer(text) for prompt, text in found.items()}
    for prompt, answer in answers.items():
        require_whole(prompt, answer, asked.max_tokens)
    require_known(asked, answers)
    return Measurement({}, {"client": CLIENT, "answers": len(found), "answer_texts": dict(found)})


def _answers(lines: tuple[Line, ...]) -> Iterator[tuple[str, str]]:
    """(prompt, answer) of every line that has one."""
    for line in lines:
        found = _ANSWER.fullmatch(line.text)
        if found:
            yield _string(found["prompt"]), _string(found["answer"])
        elif re.match(r"(?:\[\d+\]\s*)*Prompt: ['\"]", line.text):
            evidence = (line.evidence,)
            raise RunError("truncated_output", "an answer is truncated", evidence=evidence)


def _string(literal: str) -> str:
    """The text of a Python string literal.

    Raises:
        RunError: ``truncated_output``, it is none.
    """
    try:
        return str(ast.literal_eval(literal))
    except (SyntaxError, ValueError) as error:
        raise RunError(
            "truncated_output", "an answer is not a complete string", evidence=(literal[:300],)
        ) from error
