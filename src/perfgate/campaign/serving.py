"""Serving: bring a server up, know that it is ours and ready, run programs against it to their end.

Starts nothing itself (launchers do) and reads no results (clients and evaluators do).
"""

import json
import shutil
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress

from perfgate.core.errors import RunError
from perfgate.core.failures import classify_logs
from perfgate.core.files import json_text
from perfgate.core.measurement import Json
from perfgate.core.programs.raw_log import lines_with
from perfgate.engines.base import Endpoint, Engine
from perfgate.engines.effective_settings import (
    EffectiveSettings,
    not_established,
    require_effective_settings,
)
from perfgate.launchers.base import Exit, Job
from perfgate.plan.toolchain import Toolchain
from perfgate.scenarios.scenario import Limits, Scenario

# Signals that a program makes itself; others come from outside: a person, a scheduler, the kernel.
_OF_A_CRASH = {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL}
_POLL_S = 0.1
_ROOM_FOR_A_LINE = 4096  # bytes: file systems give room by pages
_NOTE_EVERY_S = 0.5
# The first token may have to wait for kernels to be compiled; a server that hangs is asked again.
_TOKEN_WITHIN_S = 120.0
# A server that dies closes its connections before it has ended, while its memory is given back: its
# client may be the first to see that. SGLang waits 5 s from the death of its scheduler to its own
# end.
_DYING_S = 9.0


def answers(host: str, port: int) -> bool:
    """Whether anything listens there."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((host, port)) == 0


def wait_until_ready(job: Job, engine: Engine, endpoint: Endpoint, start_s: float) -> None:
    """Wait until the server of `job` is ready to serve the expected model.

    Ready means all of: the process is alive, the listening socket is its own (another server's
    ``/health`` answers just as well), health is 200, the model list names the model, and one token
    can be had.

    Raises:
        RunError: it ended, another program has the port, or `start_s` went by.
    """
    before = ("before it was ready", "the port is not open yet")
    if missing := _missing_after(job, engine, endpoint, start_s, *before):
        _give_up(job, "start_timeout", f"was not ready after {start_s:.0f} s: {missing}")


def require_serving(job: Job, engine: Engine, endpoint: Endpoint, within_s: float) -> None:
    """Make sure, between two measurements, that the server is alive, ours, and well.

    What was measured on a server that broke by it is not trusted, nor is anything after it.

    Args:
        job: the server.
        engine: its engine.
        endpoint: where it listens, and its model's name.
        within_s: a server may be busy with requests that a client gave up; it gets this long.

    Raises:
        RunError: it has ended, another program has its port, or it does not answer (``hang``).
    """
    after = ("right after a measurement", "nothing listens on its port")
    if missing := _missing_after(job, engine, endpoint, within_s, *after):
        why = f"was unhealthy for {within_s:.0f} s after a measurement: {missing}"
        _give_up(job, "hang", why)


def _missing_after(
    job: Job, engine: Engine, endpoint: Endpoint, within_s: float, when: str, closed: str
) -> str:
    """What the server lacks to be well after `within_s` seconds; empty as soon as it is well.

    `when` it may have ended, and what to say where its port is `closed`, is for messages.
    """
    look_at = time.monotonic()
    deadline = look_at + within_s
    while True:
        require_alive(job, when)
        if (now := time.monotonic()) >= look_at:
            job.note_shared_memory()
            look_at = now + _NOTE_EVERY_S
        missing = closed
        if answers(endpoint.host, endpoint.port):
            _refuse_stranger(job, endpoint)
            missing = not_ready(engine, endpoint, min(deadline - now, _TOKEN_WITHIN_S))
        if not missing or time.monotonic() >= deadline:
            return missing
        time.sleep(_POLL_S)


def _give_up(job: Job, failure: str, why: str) -> None:
    job.keep_evidence(f"{job.name} {why}")
    raise RunError(failure, f"{job.name} {why}", evidence=job.tail(5))


def require_alive(job: Job, when: str) -> None:
    """Raise when the server has ended, with the first cause its log shows.

    Raises:
        RunError: it has.
    """
    ended = job.poll()
    if ended is None:
        return
    lost = ended.reason == "lost"
    otherwise = "killed" if lost else class_of_status(ended.status) or "server_died"
    failure, evidence, hint = classify_logs((job.stderr, job.stdout), otherwise)
    status = "of unknown status" if ended.status is None else f"with status {ended.status}"
    how = "was lost: its watcher process died" if lost else "ended by itself"
    raise RunError(
        failure, f"{job.name} {how} {when}, {status}", evidence=evidence or job.tail(5), hint=hint
    )


def run_to_end(
    job: Job, server: Job | None, limits: Limits, otherwise: str = "client_failed"
) -> Exit:
    """Wait for a measuring program; end it when it hangs, takes too long, or the server dies.

    Progress is anything the programs write: to their output or into the job's folder.

    Args:
        job: the client, evaluator or offline benchmark.
        server: the server it talks to; None: the engine is inside the job.
        limits: time limits.
        otherwise: class of a failure that no line of the log tells.

    Raises:
        RunError: classes ``server_died`` (or what the server's log shows), ``hang``,
            ``total_timeout``, ``killed``, or what the job's own log shows.
    """
    names = " and ".join(one.name for one in (job, server) if one is not None)

    def watch() -> None:
        if server is not None:
            require_alive(server, f"while {job.name} ran")

    ended = job.wait(
        silence_s=limits.silence_s,
        total_s=limits.total_s,
        written=lambda: _bytes_written(job, server),
        watch=watch,
    )
    if ended.reason in ("silence", "total"):
        failure, why = {
            "silence": ("hang", f"{names} wrote nothing for {limits.silence_s:.0f} s"),
            "total": ("total_timeout", f"{job.name} did not finish within {limits.total_s:.0f} s"),
        }[ended.reason]
        if server is not None:  # a client that waits mostly waits for its server
            server.keep_evidence(why)
        raise RunError(failure, why, evidence=job.tail(5))
    is_good = ended.status == 0 and ended.reason == "exited"
    if server is not None and not is_good:
        server.until(_DYING_S)
    watch()
    if is_good:
        return ended
    status = ended.status or 0
    how = f"ended with status {status}"
    if ended.reason == "lost":
        otherwise, how = "killed", "was lost: its watcher process died"
    elif status < 0:
        otherwise, how = "killed", f"was killed by signal {-status}"
    failure, evidence, hint = classify_logs(
        (job.stderr, job.stdout), class_of_status(ended.status) or otherwise
    )
    if not evidence and shutil.disk_usage(job.folder).free < _ROOM_FOR_A_LINE:
        failure, how = "disk_full", f"{how}, and {job.folder} has no room for what it wrote"
    raise RunError(failure, f"{job.name} {how}", evidence=evidence or job.tail(8), hint=hint)


def _bytes_written(job: Job, server: Job | None) -> int:
    files = set(job.folder.rglob("*"))
    if server is not None:
        files |= {server.stdout, server.stderr}
    total = 0
    for path in files:
        with suppress(OSError):
            total += path.stat().st_size
    return total


def _refuse_stranger(job: Job, endpoint: Endpoint) -> None:
    """Raise unless the listener turns out to be our own, just opened."""
    if job.listens(endpoint.port):
        return
    require_alive(job, "before it was ready")
    raise RunError(
        "port_in_use",
        f"another program listens on {endpoint.host}:{endpoint.port}, so {job.name} cannot",
        evidence=job.tail(3),
    )


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
        completion = _object(request, within_s)
    except urllib.error.HTTPError as error:
        with error:  # it holds the connection
            said = error.read(200).decode(errors="replace")
        return f"a completion of one token was answered with status {error.code}: {said}"
    except (OSError, ValueError) as error:
        return f"no completion of one token: {error}"
    has_text = bool(completion.get("choices"))
    return "" if has_text else "the answer to a completion of one token has no choices"


def settings_facts(
    scenario: Scenario, tools: Toolchain, program: Job, answers: Mapping[str, Json]
) -> dict[str, Json]:
    """Facts for the record: what the engine says that it runs with, and what it does not tell.

    Args:
        scenario: what was asked.
        tools: its engine.
        program: that holds the engine: a server that is ready, or a benchmark at its end.
        answers: the server's, of its settings (`told_settings`), or what the benchmark reports.

    Raises:
        RunError: ``not_in_force``: a setting of the scenario is another there.
    """
    engine = tools.engine
    words, logs = engine.settings_words, (program.stderr, program.stdout)
    telling = (line for log in logs if words for _, line in lines_with(log, words))
    found = (
        engine.effective_settings(scenario, answers, telling) if engine.effective_settings else None
    )
    if found is not None:
        return require_effective_settings(scenario, found)
    can_tell = engine.settings_paths or words
    return not_established(scenario, EffectiveSettings({})) if can_tell else {}


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


def _object(asked: str | urllib.request.Request, within_s: float) -> Mapping[str, Json]:
    with _OPENER.open(asked, timeout=within_s) as answer:
        found: Mapping[str, Json] = json_text.parse_object(
            answer.read(_LARGEST_ANSWER + 1), limit=_LARGEST_ANSWER
        )
    return found


def class_of_status(status: int | None) -> str | None:
    """The class of a program's end by a signal, where no line tells; None: it was none.

    Args:
        status: -N: signal N; 128 + N is how a shell tells a signal of the program's own, and other
            programs may mean something else by it.
    """
    if status is None or status >= 0:
        return "crash" if status in {128 + one for one in _OF_A_CRASH} else None
    return "crash" if -status in _OF_A_CRASH else "killed"
