"""Load files: all that a load left in a probe's folder, read as one measurement.

Beside the client's own results these are the server's CPU seconds, and blocks of load in turns.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from perfgate.clients import blocks
from perfgate.clients.base import Client, Offline
from perfgate.clients.report_tables import number_of
from perfgate.core.files.durable_files import read_json, write_json
from perfgate.core.measurement import Measurement
from perfgate.scenarios.scenario import LoadPoint, Measurable, Scenario

_SERVER_CPU = "server_cpu.json"
_SCHEMA_VERSION = 1


def write_server_cpu(folder: Path, seconds: float) -> None:
    """Keep the CPU seconds that a server used while a load client ran.

    Args:
        folder: of the probe.
        seconds: NaN where they are not known.

    Raises:
        RunError: it cannot be written (class ``disk_full`` or ``unwritable``).
    """
    known = seconds if math.isfinite(seconds) else None
    write_json(folder / _SERVER_CPU, {"schema_version": _SCHEMA_VERSION, "seconds": known})


def parsed_load(client: Client, scenario: Scenario, point: LoadPoint, folder: Path) -> Measurement:
    """What the files of a load give: those of the client's whole load, of blocks, or of both.

    Args:
        client: whose result files they are.
        scenario: as it was started.
        point: of its sweep.
        folder: of the probe.

    Raises:
        RunError, InputError: as `Client.parse`; a file is missing or damaged.
    """
    side, load = blocks.side_of(folder), scenario.workload
    measured = Measurement({})
    if load is not None and (side is None or (folder / _SERVER_CPU).exists()):
        measured = client.parse(load, point, folder)
        derived = of_load(measured, scenario, point, folder)
        measured = replace(measured, metrics={**measured.metrics, **derived})
    if side is None:
        return measured
    found = blocks.parse(folder, side, blocks.pairs_wanted(scenario.gate, point))
    metrics, facts = {**measured.metrics, **found.metrics}, {**measured.facts, **found.facts}
    return replace(measured, metrics=metrics, facts=facts, disturbed=found.disturbed)


def of_load(
    measured: Measurement, scenario: Scenario, point: LoadPoint, folder: Path
) -> Mapping[str, float]:
    """What is added to what a load client reported.

    Args:
        measured: that.
        scenario: as it was started.
        point: of its sweep.
        folder: of the probe, with what `write_server_cpu` wrote.

    Raises:
        InputError: that file is missing or damaged.
    """
    plain = read_json(folder / _SERVER_CPU, what="reading of the server", is_named=False)
    seconds = plain.get("seconds") if isinstance(plain, dict) else None
    used = float(seconds) if isinstance(seconds, int | float) else math.nan
    return {**_per_gpu(measured, scenario), **_cpu_cost(measured, point, used)}


def parsed_offline(
    program: Offline, scenario: Scenario, what: Measurable, folder: Path
) -> Measurement:
    """What an offline program left of `what`, with the metrics that are added to its own.

    Raises:
        RunError: as `Offline.parse`, or `Offline.require_asked`.
    """
    measured: Measurement = program.parse(what, folder)
    if program.require_asked is not None:
        measured = program.require_asked(measured, scenario, what)
    return replace(measured, metrics={**_per_gpu(measured, scenario), **measured.metrics})


def _per_gpu(measured: Measurement, scenario: Scenario) -> Mapping[str, float]:
    """Output tokens/s and GPU, where there are GPUs."""
    throughput = measured.metrics.get("output_throughput")
    if throughput is None or not scenario.hardware.gpus:
        return {}
    return {"output_throughput_per_gpu": throughput / scenario.hardware.gpus}


def _cpu_cost(measured: Measurement, point: LoadPoint, cpu_s: float) -> Mapping[str, float]:
    """CPU seconds per 1,000 output tokens, warm-up requests counted in both.

    Less disturbed by a busy neighbour than wall-clock time: waiting for a core costs nothing. Only
    known where the client tells the true output length.
    """
    osl, completed = (number_of(measured.facts, name) for name in ("osl", "requests_completed"))
    # NaN, where it is not known, is not above 0 either.
    if not cpu_s > 0 or osl is None or completed is None:
        return {}
    tokens = osl * (completed + point.warmup_requests)
    return {"server_cpu_s_per_1k_tokens": 1000.0 * cpu_s / tokens}
