"""First answers: what every one must be, and what a scenario says of it. Pure.

Whether a text is one of a working model is decided by `broken_answers`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from perfgate.clients.base import same_release
from perfgate.clients.broken_answers import fault
from perfgate.core.errors import RunError
from perfgate.core.measurement import Json
from perfgate.scenarios.scenario import DocumentedAnswer, Scenario, Smoke

_SHOWN = 300  # characters of an answer in a message
# What an OpenAI-compatible server says where it generated all that it was to. TensorRT-LLM also
# knows "timeout" and "cancelled", SGLang "abort": requests that were not finished.
_FINISHED = ("length", "stop")


@dataclass(frozen=True)
class Answer:
    """An answer as a program gives it; None where it tells the text alone.

    Attributes:
        text: what was generated, without the prompt.
        finish_reason: why it ended.
        prompt_tokens: tokens of the prompt.
        completion_tokens: tokens of the text.
    """

    text: str
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


def require_whole(prompt: str, answer: Answer, most: int | None = None) -> None:
    """Refuse an answer that no working model gives.

    Args:
        prompt: what was asked.
        answer: what came back.
        most: most tokens that were requested; None: the program's own default.

    Raises:
        RunError: ``broken_output`` (its text), ``incomplete`` (it did not finish, or has not the
            number of tokens that it should).
    """
    tokens = answer.completion_tokens
    broken = fault(answer.text, prompt, tokens=tokens, most=most)
    if broken:
        raise _refused("broken_output", f"the answer to {prompt!r} {broken}", answer)
    if tokens is None:
        return
    message = ""
    if answer.finish_reason not in _FINISHED:
        message = f"the answer to {prompt!r} has finish_reason {answer.finish_reason!r}"
        message += f", not {' or '.join(_FINISHED)}"
    elif most is not None and tokens > most:
        message = f"{tokens} tokens in the answer, at most {most} requested"
    elif most is not None and tokens < most and answer.finish_reason == "length":
        message = f"the answer to {prompt!r} ended for its length after {tokens} of {most} tokens"
    if message:
        raise _refused("incomplete", message, answer)


def require_known(smoke: Smoke, answers: Mapping[str, Answer]) -> None:
    """Refuse answers that are not what holds for them at every release.

    Raises:
        RunError: ``wrong_answer``.
    """
    for known in smoke.answers:
        for difference in _differences(known, answers[known.prompt]):
            message = f"the answer to {known.prompt!r} {difference}"
            raise _refused("wrong_answer", message, answers[known.prompt])


def compared_with_texts(
    scenario: Scenario, version: str, texts: Mapping[str, str]
) -> dict[str, Json]:
    """Compare answers with the texts of the scenario's document.

    Greedy decoding gives the same words again only with the same kernels, so that another release
    may differ: that is then a fact, and no failure.

    Args:
        scenario: the scenario.
        version: the engine's release.
        texts: prompt → answer.

    Returns:
        Facts: ``not_as_documented``, the prompts with another answer than the document's, if any.

    Raises:
        RunError: ``wrong_answer``, at the release of the document.
    """
    smoke, documented = scenario.smoke, scenario.source.engine_version
    other: list[Json] = []
    for known in smoke.answers if smoke is not None else ():
        text = texts.get(known.prompt, "")
        if not known.texts or _plain(text) in map(_plain, known.texts):
            continue
        if documented is not None and same_release(version, documented):
            message = f"the answer to {known.prompt!r} is not one that the document gives"
            given = tuple(f"documented: {one!r}" for one in known.texts)
            raise RunError("wrong_answer", message, evidence=(f"found: {text[:_SHOWN]!r}", *given))
        other.append(known.prompt)
    return {"not_as_documented": other} if other else {}


def _differences(known: DocumentedAnswer, answer: Answer) -> Iterator[str]:
    """All that is known and otherwise, in words that follow "the answer"."""
    plain = _plain(answer.text)
    for text in known.contains:
        if _plain(text) not in plain:
            yield f"does not contain {text!r}"
    for name in ("finish_reason", "prompt_tokens", "completion_tokens"):
        expected, found = getattr(known, name), getattr(answer, name)
        if expected is not None and found != expected:
            yield f"has {name} {found}, documented is {expected}"


def _refused(failure: str, message: str, answer: Answer) -> RunError:
    return RunError(failure, message, evidence=(repr(answer.text[:_SHOWN]),))


def _plain(text: str) -> str:
    """The text with every stretch of white space as one blank: scenario files have no others."""
    return " ".join(text.split())
