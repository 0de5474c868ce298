"""The JSON lines of ``sglang.bench_serving``: one for each run, added to the end of the file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfgate.clients.logs import decoded
from perfgate.clients.serving_client import require_report
from perfgate.core import json_text
from perfgate.core.durable_files import write_text
from perfgate.core.errors import RunError
from perfgate.core.untrusted_files import FileTooLarge, read_regular
from perfgate.scenarios.scenario import LoadPoint

_CONFIGURATION = "server_info"


def result_name(point: LoadPoint) -> str:
    """The result's file name."""
    return f"concurrency_{point.concurrency}.jsonl"


def read_jsonl(folder: Path, point: LoadPoint) -> Mapping[str, Any] | None:
    """The one run in the result file; None: there is no file.

    The client writes the server's whole configuration into it, ``api_key`` and all, which is taken
    out of the file: a run folder is kept, and shown to others.

    Raises:
        RunError: ``no_metrics``, it is empty, or has several runs. ``truncated_output``, its line
            is cut.
    """
    path = folder / result_name(point)
    if not path.is_file():
        return None
    try:
        content = read_regular(path, json_text.LARGEST_DOCUMENT)
    except FileTooLarge as error:
        raise RunError("no_metrics", str(error)) from error
    if not content.strip():
        raise RunError("no_metrics", f"{path.name} is empty")
    require_one_run(content, path.name)
    fields = require_report(decoded(content, path.name), path.name)
    if fields.get(_CONFIGURATION) is not None:
        fields = {**fields, _CONFIGURATION: None}
        write_text(path, json.dumps(fields) + "\n")
    return fields


def require_one_run(content: bytes, name: str) -> None:
    """A file of JSON lines has one of them.

    Args:
        content: of the file; anything but several lines with an object each is left to its reader.
        name: the file, for people.

    Raises:
        RunError: ``no_metrics``, it has several runs.
    """
    lines = [line.strip() for line in content.splitlines() if line.strip()]
    if len(lines) > 1 and all(line.startswith(b"{") and line.endswith(b"}") for line in lines):
        raise RunError(
            "no_metrics",
            f"{name} holds {len(lines)} runs: nobody can tell which is meant",
            hint="sglang.bench_serving adds a line to the file for each run: let every run have a "
            "file of its own",
        )
