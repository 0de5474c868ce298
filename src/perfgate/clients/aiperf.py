"""AIPerf: NVIDIA's load client against an OpenAI-compatible server; its command and its summary.

The summary is read for schema 1.x (0.13.0 writes 1.4); the metrics' formulas are those of
`aiperf/metrics/types` in that release. A summary of unknown origin is read by `parse_file`.
"""

import math
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from perfgate.clients.base import Client, Target, client, program_version, unsupported, with_asked
from perfgate.clients.logs import left, require
from perfgate.clients.report_tables import (
    AIPERF,
    has_latency,
    is_object_with,
    require_lengths,
    require_ordered,
)
from perfgate.core.errors import RunError
from perfgate.core.measurement import Json, Measurement
from perfgate.core.metrics import lookup
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.programs import AIPERF as PROGRAM
from perfgate.core.programs.raw_log import lines_with
from perfgate.core.redaction import redact
from perfgate.scenarios.scenario import LoadPoint, Workload

RESULT = "profile_export_aiperf.json"
LENGTH_TOLERANCE = 0.005  # of the asked ISL and OSL, on the mean over all requests
CACHED_TOLERANCE = 0.05  # of the prompt tokens: more than that changes what TTFT measures
ONE_WORKER = 32  # requests in flight that one worker of AIPerf keeps up with
_CHECK = "check the installed aiperf against perfgate's parser"

_STATISTICS = {"mean": "avg", "median": "p50", "p90": "p90", "p99": "p99"}


@client("aiperf")
class AIPerf(Client):
    """AIPerf with synthetic prompts of one length and answers of one length."""

    def version(self, locations: Locations) -> str:
        """See `Client.version`."""
        return program_version(PROGRAM, locations)

    def command(self, target: Target, workload: Workload, point: LoadPoint) -> Command:
        """See `Client.command`.

        Raises:
            InputError: the workload is of a kind that this client does not make.
        """
        isl, osl = workload.isl, workload.osl
        if workload.dataset != "synthetic" or isl is None or osl is None:
            problem = "aiperf supports only synthetic prompts of one length"
            raise unsupported(workload, problem, "dataset synthetic, isl and osl given")
        endpoint_type = "completions" if workload.api == "completions" else "chat"
        argv = [*target.locations.find(PROGRAM), "profile", "--model", target.endpoint.model]
        argv += ["--url", target.endpoint.url, "--endpoint-type", endpoint_type]
        argv += ["--streaming"] if workload.streaming else []
        argv += ["--tokenizer", target.tokenizer]
        argv += ["--isl", str(isl), "--isl-stddev", "0", "--osl", str(osl), "--osl-stddev", "0"]
        argv += ["--random-seed", str(point.seed)]
        argv += ["--concurrency", str(point.concurrency), "--request-count", str(point.requests)]
        if point.warmup_requests:
            argv += ["--warmup-request-count", str(point.warmup_requests)]
        if workload.max_request_rate is not None:
            # Without a rate AIPerf 0.13 keeps one core busy while it waits for a free slot.
            rate = format(workload.max_request_rate, "g")
            argv += ["--request-rate", rate, "--arrival-pattern", "constant"]
        argv += ["--use-legacy-max-tokens", "--extra-inputs", "temperature:0"]
        if workload.ignore_eos:
            argv += ["--extra-inputs", "ignore_eos:true"]
        # Counted by the server: the text of the answer, tokenized again, has often fewer tokens
        # than were generated, so that lengths and throughputs would depend on what was said.
        argv += ["--use-server-token-count"]
        # A connection taken from a pool at the moment the server closes it fails the request.
        argv += ["--connection-reuse-strategy", "never"]
        if point.concurrency <= ONE_WORKER:
            # No more processes than needed: they may share the machine with the server.
            argv += ["--workers-max", "1", "--record-processors", "1"]
        argv += ["--ui", "none", "--no-gpu-telemetry", "--no-server-metrics"]
        results = target.folder if target.locations.on_paper else target.folder.resolve()
        argv += ["--export-level", "summary", "--output-artifact-dir", str(results)]
        # AIPerf refuses a tokenizer's folder in offline mode and takes any non-empty value as "on".
        env = {"HF_HUB_OFFLINE": "", "TRANSFORMERS_OFFLINE": "", "DO_NOT_TRACK": "1"}
        return Command(tuple(argv), env)

    def parse(self, workload: Workload, point: LoadPoint, folder: Path) -> Measurement:
        """See `Client.parse`."""
        path = folder / RESULT
        if not path.is_file():
            raise RunError("no_metrics", f"aiperf left no {path.name}", evidence=_log_errors(path))
        fields = left(path, (str(path),))
        require(isinstance(fields, dict), "no_metrics", f"{path.name} holds no JSON object")
        summary = _Summary(fields, f"{path.name} has schema version")
        summary.require_complete(point.requests)
        # The extremes too: one long answer must not make up for a short one.
        osls = [summary.tokens("output_sequence_length", one) for one in ("avg", "min", "max")]
        hint = "check that the engine does not cut prompts"
        isl = summary.tokens("input_sequence_length")
        require_lengths(workload, isl, osls, LENGTH_TOLERANCE, 0, hint)
        measured = summary.measurement(streaming=workload.streaming, osl=workload.osl or osls[0])
        return with_asked(measured, point)


is_report = is_object_with("aiperf_version", "schema_version")


def parse_file(fields: Mapping[str, Any]) -> Measurement:
    """Read a decoded summary without knowing what was asked: the file is all there is.

    What the file itself shows is required as in a run of the suite: no failed request, not cut
    short, no prompt tokens from the prefix cache.

    Raises:
        RunError: it is of an unknown schema, not whole, not finite, or tells of failed requests.
    """
    summary = _Summary(fields, "AIPerf's schema version is")
    summary.require_complete(max(int(summary.count("request_count", "requests") or 0), 1))
    streaming = "time_to_first_token" in fields
    longest = summary.tokens("output_sequence_length", "max")
    measured = summary.measurement(streaming=streaming, osl=longest)
    # How many requests were in flight at most; releases that tell what was asked tell that too.
    asked = _at(fields, "input_config", "loadgen", "concurrency")
    peak = _at(fields, "effective_concurrency", "max")
    facts = dict(measured.facts)
    facts |= {"streaming": streaming, "prompt_tokens_cached": facts.pop("prompt_tokens_cached")}
    facts |= {"concurrency": asked} if type(asked) is int else {}
    facts |= {"concurrency_peak": peak} if isinstance(peak, int | float) else {}
    require_ordered(measured.metrics)
    return Measurement(measured.metrics, facts)


def _at(fields: Any, *path: str) -> Any:
    """What stands there in objects within objects; None: nothing."""
    for name in path:
        fields = fields.get(name) if isinstance(fields, dict) else None
    return fields


class _Summary:
    """The exported summary: every access says what is missing.

    Args:
        fields: what the file holds.
        told: what names its schema in messages.

    Raises:
        RunError: ``no_metrics``, it is of an unknown schema.
    """

    def __init__(self, fields: Mapping[str, Any], told: str) -> None:
        self.fields = fields
        schema = str(fields.get("schema_version"))
        message, evidence = f"{told} {schema}; 1.x is known", f'"schema_version": "{schema}"'
        require(schema.partition(".")[0] == "1", "no_metrics", message, evidence, hint=_CHECK)

    def value(self, tag: str, statistic: str, kind: str, *, may_be_zero: bool = False) -> float:
        """A statistic of a metric, positive (or zero, where it may be) and finite; times in ms.

        Raises:
            RunError: it is absent (``no_metrics``), or zero or not finite (``incomplete``).
        """
        found = self._number(tag, statistic, kind)
        if not math.isfinite(found) or found < 0 or (found == 0 and not may_be_zero):
            raise self._error("incomplete", f"{tag} has {statistic} {found}")
        return found

    def tokens(self, tag: str, statistic: str = "avg") -> float:
        """A number of tokens, otherwise as `value`."""
        return self.value(tag, statistic, "tokens")

    def count(self, tag: str, kind: str) -> float | None:
        """A number that may be zero, and that AIPerf leaves out when there is none."""
        if tag not in self.fields:
            return None
        found = self._number(tag, "avg", kind)
        if not math.isfinite(found):
            raise self._error("incomplete", f"{tag} is {found}")
        return found

    def require_complete(self, requests: int) -> None:
        """All of `requests` succeeded.

        Raises:
            RunError: ``incomplete``.
        """
        succeeded = self.count("request_count", "requests") or 0
        failed = self.count("error_request_count", "requests")
        problems = [f"{failed:g} requests failed"] if failed else []
        if succeeded != requests:
            problems.append(f"{succeeded:g} of {requests} requests succeeded")
        is_whole = self.fields.get("was_cancelled") is False
        if not is_whole or self.fields.get("is_complete") is not True:
            problems.append("the run was cut short")
        if problems:
            raise self._error("incomplete", "; ".join(problems))

    def measurement(self, *, streaming: bool, osl: float) -> Measurement:
        """Metrics and facts of a complete summary.

        Args:
            streaming: whether answers were streamed.
            osl: their tokens: after the last one of an answer there are no times.

        Raises:
            RunError: a number is missing or none, or prompts came from the prefix cache.
        """
        facts: dict[str, Json] = {
            "client": "aiperf",
            "client_version": str(self.fields.get("aiperf_version")),
            "requests_completed": int(self.value("request_count", "avg", "requests")),
            "isl": self.tokens("input_sequence_length"),
            "osl": self.tokens("output_sequence_length"),
            "prompt_tokens_cached": self._cached_tokens(),
        }
        metrics = {}
        for short, row in AIPERF.breakdowns.items():
            is_there = has_latency(short, streaming=streaming, one_token=round(osl) == 1)
            for statistic, key in _STATISTICS.items() if is_there else ():
                name = f"{short}_{statistic}_ms"
                may_be_zero = lookup(name).may_be_zero
                metrics[name] = self.value(row.keys[0], key, "time", may_be_zero=may_be_zero)
        for name, row in AIPERF.metrics.items():
            metrics[name] = self.value(row.keys[0], "avg", row.kind)
        metrics["duration_s"] /= 1e3
        if "tpot_mean_ms" in metrics:
            metrics["output_speed_per_user"] = 1e3 / metrics["tpot_mean_ms"]
        return Measurement(metrics, facts)

    def _cached_tokens(self) -> int | None:
        """Prompt tokens that came from the prefix cache; None when the server does not tell."""
        cached = self.count("total_usage_prompt_cache_read_tokens", "tokens")
        if cached is None:
            return None
        prompts = self.tokens("total_usage_prompt_tokens")
        message = f"{cached:g} of {prompts:g} prompt tokens were served from the prefix cache"
        require(cached <= CACHED_TOLERANCE * prompts, "prefix_cache_hit", message)
        return int(cached)

    def _number(self, tag: str, statistic: str, kind: str) -> float:
        found = _at(self.fields, tag, statistic)
        if not isinstance(found, int | float):
            raise self._error("no_metrics", f"{RESULT} has no {statistic} of {tag}")
        unit = _at(self.fields, tag, "unit")
        known_kind, factor = AIPERF.units.get(str(unit), ("", 1.0))
        message = f"{RESULT} gives {tag} in {unit!r}, which is not a known unit of {kind}"
        require(known_kind == kind, "no_metrics", message, hint=_CHECK)
        return found * factor

    def _error(self, failure: str, message: str) -> RunError:
        """With AIPerf's own summary of failed requests, one line each, the first few."""
        errors = self.fields.get("error_summary")
        entries = errors if isinstance(errors, list) else []
        lines = [
            f"{entry.get('count')} × {details.get('type')}: {details.get('message')}"[:300]
            for entry in entries
            if isinstance(details := _at(entry, "error_details"), dict)
        ]
        return RunError(failure, message, evidence=tuple(lines[:3]))


def _log_errors(path: Path) -> tuple[str, ...]:
    log = path.parent / "logs" / "aiperf.log"
    errors = (line for _, line in lines_with(log, (" - error - ",)) if " - ERROR - " in line)
    return tuple(redact(line.strip())[:300] for line in islice(errors, 3))
