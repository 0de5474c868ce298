"""First answers: asked of a running server before anything is measured, what every one must be, and
what a scenario says of it.

The request is that of the DeepSeek-R1 recipe, section "Basic Test". All but `ask` is pure.

A build with broken kernels, wrong scales or a damaged cache answers fast, with status 200, and with
one token over and over ("!!!!!!!!" is token 0 of many vocabularies), with bytes that are no text,
or with an end at once. That is looked for by the text and its count of tokens alone (`fault`), and
nothing that a weak model may say: a phrase told twice, a wrong fact, the wrong language. Fluent
nonsense passes there; it is for the texts that a scenario gives and for its accuracy tasks to find.
"""

import json
import re
import unicodedata
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from perfgate.clients.base import same_release
from perfgate.clients.logs import require
from perfgate.core.errors import RunError
from perfgate.core.files import json_text
from perfgate.core.files.durable_files import write_json
from perfgate.core.measurement import Json, Measurement
from perfgate.engines.base import Endpoint
from perfgate.scenarios.scenario import Scenario, Smoke

# The first request may have to wait for kernels to be compiled.
ANSWER_WITHIN_S = 600.0
_LARGEST_ANSWER = 16 * 2**20  # bytes: far more than the longest answer that a model gives
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_SHOWN = 300  # characters of an answer in a message
# What an OpenAI-compatible server says where it generated all that it was to. TensorRT-LLM also
# knows "timeout" and "cancelled", SGLang "abort": requests that were not finished.
_FINISHED = ("length", "stop")
# From how many on a single character or word is no text. Four, as the shortest real ones have
# three ("...", "no no no"); of the end of an answer that began well, more: "aaaah", "very, very".
_ALL_ONE = 4
_LAST_CHARACTERS = 8
_LAST_WORDS = 6
_FEW = 12  # characters or words among which two different ones are still too few
_RULES = frozenset("-=_*#~.·–—─━═│|+0")  # drawn in rows by tables, headings and blanks to fill in
_CUT = 3  # bytes of a character, at most four long, that a limit of tokens can leave behind


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
    tokens, reason = answer.completion_tokens, answer.finish_reason
    it, shown = f"the answer to {prompt!r}", repr(answer.text[:_SHOWN])
    broken = fault(answer.text, prompt, tokens=tokens, most=most)
    require(not broken, "broken_output", f"{it} {broken}", shown)
    if tokens is None:
        return
    message = f"{it} has finish_reason {reason!r}, not {' or '.join(_FINISHED)}"
    require(reason in _FINISHED, "incomplete", message, shown)
    if most is not None:
        message = f"{tokens} tokens in the answer, at most {most} requested"
        require(tokens <= most, "incomplete", message, shown)
        message = f"{it} ended for its length after {tokens} of {most} tokens"
        require(tokens == most or reason != "length", "incomplete", message, shown)


def require_known(smoke: Smoke, answers: Mapping[str, Answer]) -> None:
    """Refuse answers that are not what holds for them at every release.

    Raises:
        RunError: ``wrong_answer``.
    """
    for known in smoke.answers:
        answer = answers[known.prompt]
        it, shown = f"the answer to {known.prompt!r}", repr(answer.text[:_SHOWN])
        for text in known.contains:
            is_there = _plain(text) in _plain(answer.text)
            require(is_there, "wrong_answer", f"{it} does not contain {text!r}", shown)
        for name in ("finish_reason", "prompt_tokens", "completion_tokens"):
            expected, found = getattr(known, name), getattr(answer, name)
            message = f"{it} has {name} {found}, documented is {expected}"
            require(expected in (None, found), "wrong_answer", message, shown)


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


def _plain(text: str) -> str:
    """The text with every stretch of white space as one blank: scenario files have no others."""
    return " ".join(text.split())


def fault(answer: str, prompt: str, *, tokens: int | None = None, most: int | None = None) -> str:
    """What is broken about an answer, in words that follow "the answer"; empty: nothing.

    Args:
        answer: its text.
        prompt: what was asked.
        tokens: its tokens, where the program counts them.
        most: most tokens that were requested; None: the program's own default, which is above one.
    """
    said = answer.strip()
    if not said:
        return "is empty"
    return (
        _of_characters(answer)
        or _of_repetition(said)
        or _of_words(said)
        or _of_echo(said, prompt)
        or ("" if most == 1 else _of_length(said, tokens))
    )


def _of_characters(answer: str) -> str:
    """Bytes that are no text; one character that the limit cut at the very end is none."""
    whole = answer.rstrip("\ufffd")
    if "\ufffd" in whole or len(answer) - len(whole) > _CUT:
        return "has bytes that are no UTF-8 (U+FFFD)"
    for character in whole:
        if unicodedata.category(character) in ("Cc", "Co", "Cs") and not character.isspace():
            return f"has a character of no text, U+{ord(character):04X}"
    return ""


def _of_words(said: str) -> str:
    if any(unicodedata.category(character)[0] in "LN" for character in said):
        return ""
    return f"has no letter and no digit, {_shown(said)}"


def _of_repetition(said: str) -> str:
    """One or two characters or words, and nothing else from the middle on at the latest."""
    characters = [character for character in said if not character.isspace()]
    words = said.casefold().split()
    kinds = (characters, _LAST_CHARACTERS, "character"), (words, _LAST_WORDS, "word")
    for parts, many, what in kinds:
        if len(parts) >= _ALL_ONE and len(set(parts)) == 1:
            return f"repeats one {what}, {_shown(parts[0])}"
        few = set(parts)
        if len(parts) >= _FEW and len(few) == 2 and not all(map(_is_number, few)):
            return f"has two different {what}s, {' and '.join(map(_shown, sorted(few)))}"
        last, count = [(part, len([*run])) for part, run in groupby(parts)][-1]
        is_rule = last in _RULES or _is_number(last)
        if count >= many and 2 * count >= len(parts) and not is_rule:
            return f"ends in {count} times the {what} {_shown(last)}"
    return ""


def _of_echo(said: str, prompt: str) -> str:
    """The prompt and nothing else, once or more often."""
    asked, text = _plain(prompt), _plain(said)
    whole, _, rest = text.rpartition(asked) if asked else ("", "", text)
    is_echo = asked in text and not whole.replace(asked, "").strip()
    return "is only the prompt" if is_echo and asked.startswith(rest.strip()) else ""


def _of_length(said: str, tokens: int | None) -> str:
    """A single token, where more were requested.

    Without a count, a single word of ASCII is one; other scripts are written without blanks.
    """
    is_one = re.fullmatch(r"[!-~]+", said) is not None if tokens is None else tokens == 1
    return f"is a single {'word' if tokens is None else 'token'}, {_shown(said)}" if is_one else ""


def _is_number(part: str) -> bool:
    return not any(character.isalpha() for character in part) and any(map(str.isdigit, part))


def _shown(part: str) -> str:
    return repr(part[:20])


def request_body(smoke: Smoke, prompt: str, model: str) -> dict[str, object]:
    """The body of the completion request for one prompt."""
    limit = {} if smoke.max_tokens is None else {"max_tokens": smoke.max_tokens}
    return {"model": model, "prompt": prompt, **limit, "temperature": 0}


def ask(endpoint: Endpoint, smoke: Smoke, folder: Path, within_s: float) -> Measurement:
    """Ask every prompt once; answers go into ``answers.json`` of `folder`.

    Raises:
        RunError: no answer, one of no working model, or not what the scenario says of it.
    """
    answers = {prompt: _answer(endpoint, smoke, prompt, within_s) for prompt in smoke.prompts}
    texts: dict[str, Json] = {prompt: answer.text for prompt, answer in answers.items()}
    write_json(folder / "answers.json", texts)
    for prompt, answer in answers.items():
        require_whole(prompt, answer, smoke.max_tokens)
    require_known(smoke, answers)
    first = answers[smoke.prompts[0]].text[:80]
    return Measurement({}, {"answers": len(answers), "first_answer": first, "answer_texts": texts})


def _answer(endpoint: Endpoint, smoke: Smoke, prompt: str, within_s: float) -> Answer:
    body = json.dumps(request_body(smoke, prompt, endpoint.model)).encode()
    request = urllib.request.Request(  # noqa: S310
        endpoint.url + "/v1/completions", body, {"Content-Type": "application/json"}
    )
    try:
        with _OPENER.open(request, timeout=within_s) as answer:
            told = json_text.parse(answer.read(_LARGEST_ANSWER + 1), limit=_LARGEST_ANSWER)
    except urllib.error.HTTPError as error:
        with error:  # it holds the connection
            said = error.read(500).decode(errors="replace")
        message = f"{prompt!r} was answered with status {error.code}"
        raise RunError("client_failed", message, evidence=(said,)) from error
    except OSError as error:
        raise RunError("client_failed", f"no answer to {prompt!r}: {error}") from error
    except ValueError as error:
        raise RunError("no_metrics", f"the answer to {prompt!r} is not a completion") from error
    return _completion(told, prompt)


def _completion(told: Any, prompt: str) -> Answer:
    """The answer in a decoded completion.

    Raises:
        RunError: ``no_metrics``, it is none, or does not say how many tokens there are.
    """

    def refusal(what: str) -> RunError:
        evidence = (str(told)[:300],)
        return RunError("no_metrics", f"the answer to {prompt!r} {what}", evidence=evidence)

    try:
        choice, usage = told["choices"][0], told["usage"]
        text, reason = choice["text"], choice.get("finish_reason")
        counts = (usage["prompt_tokens"], usage["completion_tokens"])
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise refusal("is not a completion with text and usage") from error
    if not isinstance(text, str) or not all(type(count) is int for count in counts):
        raise refusal("has no text, or counts of tokens that are no numbers")
    return Answer(text, None if reason is None else str(reason), *counts)
