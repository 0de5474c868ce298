"""The first answer of a running server: one completion, before anything is measured.

The request is that of the DeepSeek-R1 recipe, section "Basic Test". What an answer must be, and
what a document says of it, is decided by `first_answers`.
"""

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from perfgate.clients.first_answers import Answer, require_known, require_whole
from perfgate.core import json_text
from perfgate.core.durable_files import write_json
from perfgate.core.errors import RunError
from perfgate.core.measurement import Json, Measurement
from perfgate.engines.base import Endpoint
from perfgate.scenarios.scenario import Smoke

# The first request may have to wait for kernels to be compiled.
ANSWER_WITHIN_S = 600.0
_LARGEST_ANSWER = 16 * 2**20  # bytes: far more than the longest answer that a model gives
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def request_body(smoke: Smoke, prompt: str, model: str) -> dict[str, object]:
    """The body of the completion request for one prompt."""
    body: dict[str, object] = {"model": model, "prompt": prompt}
    if smoke.max_tokens is not None:
        body["max_tokens"] = smoke.max_tokens
    return {**body, "temperature": 0}


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
        raise RunError(
            "client_failed", f"{prompt!r} was answered with status {error.code}", evidence=(said,)
        ) from error
    except (OSError, urllib.error.URLError) as error:
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
