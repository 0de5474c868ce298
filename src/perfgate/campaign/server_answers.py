"""What a running server answers: is it ready, and what does it say that it runs with?

Nothing is started here. A health endpoint alone is no proof: vLLM's answers 200 while its engine
hangs, and the list of models does, too; so that one token is asked for each time.
"""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

from perfgate.core import json_text
from perfgate.core.measurement import Json
from perfgate.core.raw_log import lines_with
from perfgate.engines.base import Endpoint, Engine
from perfgate.engines.in_force import InForce, not_established, require_in_force
from perfgate.launchers.base import Job
from perfgate.plan.toolchain import Toolchain
from perfgate.scenarios.scenario import Scenario

_LARGEST_ANSWER = 4 * 2**20  # bytes: the settings of one server
_MODELS_WITHIN_S = 5.0
_SETTINGS_WITHIN_S = 30.0
_FEWEST_S = 1.0
_ONE_TOKEN = "1 + 1 ="
# A proxy set for the network must not stand between perfgate and a server on this machine.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def not_ready(engine: Engine, endpoint: Endpoint, within_s: float) -> str:
    """What is still missing; empty when the server answers with a token of the expected model.

    Args:
        engine: its engine.
        endpoint: where it listens, and its model's name.
        within_s: how long the token may take.
    """
    try:
        with _OPENER.open(
            endpoint.url + engine.health_path, timeout=engine.health_within_s
        ) as answer:
            if answer.status != 200:
                return f"{engine.health_path} answered {answer.status}"
        listed = _object(endpoint.url + engine.models_path, _MODELS_WITHIN_S)
        names = [model["id"] for model in listed["data"]]  # type: ignore[union-attr, index, call-overload]
    except (OSError, urllib.error.URLError, ValueError, KeyError, TypeError) as error:
        return f"no valid answer yet: {error}"
    if endpoint.model not in names:
        return f"{engine.models_path} lists {names}, not {endpoint.model}"
    return _no_token(endpoint, max(within_s, _FEWEST_S))


def _no_token(endpoint: Endpoint, within_s: float) -> str:
    """Why one token cannot be had; empty where it can."""
    body = {"model": endpoint.model, "prompt": _ONE_TOKEN, "max_tokens": 1, "temperature": 0}
    request = urllib.request.Request(  # noqa: S310
        endpoint.url + "/v1/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        told = _object(request, within_s)
    except urllib.error.HTTPError as error:
        with error:  # it holds the connection
            said = error.read(200).decode(errors="replace")
        return f"a completion of one token was answered with status {error.code}: {said}"
    except (OSError, ValueError) as error:
        return f"no completion of one token: {error}"
    return "" if told.get("choices") else "the answer to a completion of one token has no choices"


def settings_facts(
    scenario: Scenario, tools: Toolchain, program: Job, told: Mapping[str, Json]
) -> dict[str, Json]:
    """Facts for the record: what the engine says that it runs with, and what it does not tell.

    Args:
        scenario: what was asked.
        tools: its engine.
        program: that holds the engine: a server that is ready, or a benchmark at its end.
        told: what the server answers of its settings (`told_settings`), or the benchmark reports.

    Raises:
        RunError: ``not_in_force``: a setting of the scenario is another there.
    """
    engine = tools.engine
    found = engine.in_force(scenario, told, _telling(engine, program))
    if found is not None:
        return require_in_force(scenario, found)
    can_tell = engine.settings_paths or engine.settings_words
    return not_established(scenario, InForce({})) if can_tell else {}


def told_settings(engine: Engine, endpoint: Endpoint) -> Mapping[str, Json]:
    """What the ready server answers of its settings, and under ``path`` where; empty: nothing."""
    for path in engine.settings_paths:
        try:
            answer = _object(endpoint.url + path, _SETTINGS_WITHIN_S)
        except (OSError, ValueError):
            continue
        if answer:
            return {**answer, "path": path}
    return {}


def _telling(engine: Engine, server: Job) -> Iterator[str]:
    logs: tuple[Path, ...] = (server.stderr, server.stdout)
    for log in logs if engine.settings_words else ():
        yield from (line for _, line in lines_with(log, engine.settings_words))


def _object(asked: str | urllib.request.Request, within_s: float) -> Mapping[str, Json]:
    with _OPENER.open(asked, timeout=within_s) as answer:
        found: Mapping[str, Json] = json_text.parse_object(
            answer.read(_LARGEST_ANSWER + 1), limit=_LARGEST_ANSWER
        )
    return found
