"""HTTP requests: the few requests that the mock programs of clients really make of the server."""

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from perfgate.rehearsal.playbook import crash

_TIMEOUT_S = 5.0


def served_models(base_url: str) -> list[str]:
    """The names of ``/v1/models``.

    Raises:
        OSError: nobody answers.
        ValueError: the answer is no list of models.
    """
    status, answer = _request(base_url, "GET", "/v1/models", None)
    if status != 200:
        raise ValueError(f"/v1/models answered {status}")
    return [str(model["id"]) for model in answer["data"]]


def complete(base_url: str, path: str, model: str) -> str | None:
    """Ask for one short answer; None: it came, else what the server said instead.

    Raises:
        OSError: nobody answers.
    """
    prompt: dict[str, Any] = {"prompt": "Hello"}
    if path.endswith("/chat/completions"):
        prompt = {"messages": [{"role": "user", "content": "Hello"}]}
    body = {"model": model, **prompt, "max_tokens": 8, "temperature": 0.0}
    status, answer = _request(base_url, "POST", path, json.dumps(body).encode())
    if status == 200:
        return None
    reason = http.client.responses.get(status, str(status))
    return f"{reason}: {answer.get('message', '')}"


def _request(base_url: str, method: str, path: str, body: bytes | None) -> tuple[int, Any]:
    place = urlsplit(base_url)
    connection = http.client.HTTPConnection(
        place.hostname or "localhost", place.port or 80, timeout=_TIMEOUT_S
    )
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        return answer.status, json.loads(content) if content else {}
    finally:
        connection.close()


def require_answer(base_url: str, path: str, model: str) -> None:
    """The first prompt of benchmark_serving and of `vllm bench serve`; a failing one ends them."""
    print("Starting initial single prompt test run...", flush=True)
    try:
        refused = complete(base_url, path, model)
    except OSError as error:
        place = urlsplit(base_url)
        refused = (
            f"Cannot connect to host {place.hostname}:{place.port} ssl:default "
            f"[Connect call failed ('{place.hostname}', {place.port})]: {error}"
        )
    if refused is not None:
        crash(
            "ValueError: Initial test run failed - Please make sure benchmark arguments are "
            f"correctly specified. Error: {refused}"
        )
    print("Initial test run completed. Starting main benchmark run...", flush=True)
