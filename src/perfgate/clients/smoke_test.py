"""The first answer of a running server: one completion, before anything is measured.

The request is that of the DeepSeek-R1 recipe, section "Basic Test"; what counts is that there is
an answer, not what it says.
"""

import json
import urllib.error
import urllib.request
from pathlib import Path

from perfgate.core import json_text
from perfgate.core.durable_files import write_json
from perfgate.core.errors import RunError
from perfgate.core.measurement import Measurement
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
        RunError: no answer, an empty one, or more tokens than asked.
    """
    texts = [_answer(endpoint, smoke, prompt, within_s) for prompt in smoke.prompts]
    write_json(folder / "answers.json", dict(zip(smoke.prompts, texts, strict=True)))
    return Measurement({}, {"answers": len(texts), "first_answer": texts[0][:80]})


def _answer(endpoint: Endpoint, smoke: Smoke, prompt: str, within_s: float) -> str:
    body = json.dumps(request_body(smoke, prompt, endpoint.model)).encode()
    request = urllib.request.Request(  # noqa: S310
        endpoint.url + "/v1/completions", body, {"Content-Type": "application/json"}
    )
    try:
        with _OPENER.open(request, timeout=within_s) as answer:
            told = json_text.parse(answer.read(_LARGEST_ANSWER + 1), limit=_LARGEST_ANSWER)
        choice, usage = told["choices"][0], told.get("usage", {})
        text, tokens = str(choice["text"]), int(usage.get("completion_tokens", 0))
    except urllib.error.HTTPError as error:
        with error:  # it holds the connection
            said = error.read(500).decode(errors="replace")
        raise RunError(
            "client_failed", f"{prompt!r} was answered with status {error.code}", evidence=(said,)
        ) from error
    except (OSError, urllib.error.URLError) as error:
        raise RunError("client_failed", f"no answer to {prompt!r}: {error}") from error
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise RunError("no_metrics", f"the answer to {prompt!r} is not a completion") from error
    if not text.strip():
        raise RunError("no_metrics", f"the answer to {prompt!r} is empty", evidence=(str(told),))
    if smoke.max_tokens is not None and tokens > smoke.max_tokens:
        raise RunError(
            "incomplete",
            f"{tokens} tokens in the answer, at most {smoke.max_tokens} requested",
            evidence=(text[:200],),
        )
    return text
