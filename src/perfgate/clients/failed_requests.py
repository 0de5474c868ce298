"""Why requests failed, of clients that end with status 0 whether or not any was answered."""

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from perfgate.core import raw_log
from perfgate.core.errors import RunError
from perfgate.scenarios.scenario import LoadPoint

_MOST = 3
_WORDS = ("error", "failed")
# vLLM since 0.14 lists the first ten, some as a traceback, whose last line is the error; SGLang
# tells none but that of a failed warm-up.
_ERROR = re.compile(
    r"Error \d+: (?!Traceback).*|[\w.]+(?:Error|Exception)(?:: .*)?"
    r"|.*\b(?:Warmup failed|Initial test run failed)\b.*"
)
_ALL = (
    "no number of this run was measured. The first error above says why: the server is gone or "
    "another one's (`curl /v1/models`), the model has another name there, or a prompt is longer "
    "than the server takes"
)
_SOME = (
    "a server that dies in mid-run leaves throughput and latencies of the requests before, which "
    "look healthy: look at the end of the server's log, then at the errors above"
)


def explained(error: RunError, client: str, point: LoadPoint, folder: Path) -> RunError:
    """The error of an incomplete run with what the client printed of it, and the next step.

    Args:
        error: any; what is not about requests comes back as it is.
        client: its name.
        point: what was asked.
        folder: where it ran.
    """
    if error.failure != "incomplete":
        return error
    none_done = error.message.startswith("0 ") or ", 0 were completed" in error.message
    message = (
        f"none of {point.requests} requests was completed, though {client} ended with status 0"
        if none_done
        else f"{error.message}, though {client} ended with status 0"
    )
    evidence = (*error.evidence, *_printed(folder))[: _MOST + 1]
    return RunError("incomplete", message, evidence=evidence, hint=_ALL if none_done else _SOME)


def _printed(folder: Path) -> tuple[str, ...]:
    """The first lines that tell why a request failed."""
    return tuple(dict.fromkeys(islice(_errors(folder), _MOST)))


def _errors(folder: Path) -> Iterator[str]:
    for name in ("client.out", "client.err"):
        for _, line in raw_log.lines_with(folder / name, _WORDS):
            if _ERROR.fullmatch(line.strip()):
                yield line.strip()
