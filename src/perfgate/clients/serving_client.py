"""Clients of vLLM's benchmark family: the options that all have, and what they leave."""

import re
from abc import abstractmethod
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from perfgate.clients import datasets, serving_report
from perfgate.clients.base import Client, Target, package_version, unsupported, with_asked
from perfgate.clients.logs import left, printed
from perfgate.clients.releases import BenchOptions, Tables, release
from perfgate.clients.report_tables import FROM_STREAM, LATENCIES, number_of, require_lengths
from perfgate.clients.serving_report import count_facts
from perfgate.core import raw_log
from perfgate.core.command import Command
from perfgate.core.errors import RunError
from perfgate.core.locations import Locations
from perfgate.core.measurement import Measurement
from perfgate.core.programs import Program
from perfgate.engines.base import EngineBuild
from perfgate.scenarios.scenario import LoadPoint, Workload

LENGTH_TOLERANCE = 0.01  # of the asked ISL and OSL, on the mean over all requests …
SPECIAL_TOKENS = 2  # … or so many tokens: those that a tokenizer adds, or an encoder joins


class ServingClient(Client):
    """One of the family, with a release of its own; the results of all are read alike.

    Attributes:
        program: what is called.
        page: its name on recorded pages.
        tables: which of its releases knows what.
    """

    program: Program
    page: str
    tables: Tables

    def version(self, _build: EngineBuild, locations: Locations) -> str:
        """See `MeasuringProgram.version`; the client's own, whatever engine it measures."""
        return package_version(self.program, self.source, locations)

    def options(self, target: Target) -> BenchOptions:
        """The options of the release that the target names; unknown, of the newest one."""
        table = release(self.tables, target.client_version, self.page)
        return BenchOptions(self.name, table, self.page)

    @abstractmethod
    def argv(self, target: Target, workload: Workload, point: LoadPoint) -> list[str]:
        """The words of the command.

        Raises:
            InputError: what this release of the client does not do, or does otherwise.
        """

    def command(
        self, target: Target, workload: Workload, point: LoadPoint, _folder: Path
    ) -> Command:
        """See `Client.command`; the errors are those of `argv`."""
        return Command(tuple(self.argv(target, workload, point)))

    def prompts(self, target: Target, workload: Workload, generated: str = "random") -> list[str]:
        """Options that take prompts from the ShareGPT conversations, or generate them.

        Args:
            target: where the conversations are.
            workload: what is asked.
            generated: the client's word for prompts that it generates.

        Raises:
            InputError: the person's file is missing, or the prompts are of another kind.
        """
        if workload.dataset == "sharegpt":
            path = datasets.sharegpt(target.locations)
            return ["--dataset-name", "sharegpt", "--dataset-path", str(path)]
        if workload.dataset != "synthetic" or workload.isl is None or workload.osl is None:
            expected = "dataset synthetic, isl and osl given; or dataset sharegpt"
            raise unsupported(workload, f"{self.name} does not support these prompts", expected)
        argv = ["--dataset-name", generated, "--random-input-len", str(workload.isl)]
        return [*argv, "--random-output-len", str(workload.osl)]

    def result(self, folder: Path, point: LoadPoint) -> Mapping[str, Any] | None:
        """The result file, decoded; None: there is none.

        Raises:
            RunError: it is cut, or no result.
        """
        path = folder / result_name(point)
        return require_report(left(path), path.name) if path.is_file() else None

    def parse(self, workload: Workload, point: LoadPoint, folder: Path) -> Measurement:
        """See `Client.parse`; the result file is the source, the printed table the fallback."""
        try:
            fields = self.result(folder, point)
            if fields is not None:
                measured = serving_report.parse(fields, streaming=workload.streaming)
            else:
                words, is_printed = serving_report.WORDS, serving_report.is_printed
                lines = printed(self.name, folder, "client", words, is_printed)
                measured = serving_report.parse_printed(lines, streaming=workload.streaming)
            done = measured.facts["requests_completed"]
            if done != point.requests:
                raise RunError("incomplete", f"{done} of {point.requests} requests were completed")
        except RunError as error:
            raise explained(error, self.name, point, folder) from error
        needed = [*(FROM_STREAM if workload.streaming else ()), "e2el"]
        for short in needed if workload.osl != 1 else ["e2el"]:
            if f"{short}_mean_ms" not in measured.metrics:
                raise RunError("no_metrics", f"the report has no mean {short.upper()}")
        isl, osl = (number_of(measured.facts, name) or 0.0 for name in ("isl", "osl"))
        hint = "check that the prompts are made with the model's own tokenizer"
        require_lengths(workload, isl, [osl], LENGTH_TOLERANCE, SPECIAL_TOKENS, hint)
        counted = count_facts(measured.facts, workload)
        facts = {"client": self.name, **measured.facts, **counted}
        return with_asked(Measurement(measured.metrics, facts), point)


def result_name(point: LoadPoint) -> str:
    """The result's file name, as the quick start recipe's bench.sh has it."""
    return f"concurrency_{point.concurrency}.json"


def reporting(target: Target, workload: Workload, point: LoadPoint) -> list[str]:
    """Options for the result: its metrics, its file in the client's folder, server, tokens, seed.

    All latencies that exist are asked for; by default end-to-end latency is left out.
    """
    known = LATENCIES if workload.streaming else [x for x in LATENCIES if x not in FROM_STREAM]
    argv = ["--percentile-metrics", ",".join(known)]
    argv += ["--save-result", "--result-dir", ".", "--result-filename", result_name(point)]
    return [*argv, *asked_of(target, point)]


def asked_of(target: Target, point: LoadPoint) -> list[str]:
    """Options for the server that is asked, its tokenizer where that has another name, the seed."""
    argv = ["--host", target.endpoint.host, "--port", str(target.endpoint.port)]
    if target.tokenizer != target.endpoint.model:
        argv += ["--tokenizer", target.tokenizer]
    return [*argv, "--seed", str(point.seed)]


def requests(workload: Workload, point: LoadPoint) -> list[str]:
    """Options that say how many requests are made, and that hold them back."""
    argv = ["--num-prompts", str(point.requests)]
    argv += ["--max-concurrency", str(point.concurrency)] if point.capped else []
    if workload.max_request_rate is not None:
        argv += ["--request-rate", format(workload.max_request_rate, "g")]
    return argv


def require_report(fields: Any, name: str) -> Mapping[str, Any]:
    """A decoded result file, which is a report.

    Raises:
        RunError: ``no_metrics``, it is anything else.
    """
    if not serving_report.is_report(fields):
        raise RunError("no_metrics", f"{name} is not a result of a serving benchmark")
    found: Mapping[str, Any] = fields
    return found


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
    done = f"none of {point.requests} requests was completed" if none_done else error.message
    evidence, hint = (*error.evidence, *_printed(folder)), _ALL if none_done else _SOME
    message = f"{done}, though {client} ended with status 0"
    return RunError("incomplete", message, evidence=evidence[: _MOST + 1], hint=hint)


def _printed(folder: Path) -> tuple[str, ...]:
    """The first lines that tell why a request failed."""
    logs = (raw_log.lines_with(folder / name, _WORDS) for name in ("client.out", "client.err"))
    lines = (line.strip() for log in logs for _, line in log)
    return tuple(dict.fromkeys(islice(filter(_ERROR.fullmatch, lines), _MOST)))
