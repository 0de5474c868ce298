"""Derived metrics: what perfgate adds to a program's own numbers, from files it can read again."""

import math
from collections.abc import Mapping
from pathlib import Path

from perfgate.core.durable_files import read_json, write_json
from perfgate.core.measurement import Measurement
from perfgate.scenarios.scenario import LoadPoint, Scenario

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


def of_offline(measured: Measurement, scenario: Scenario) -> Mapping[str, float]:
    """The metrics of an offline program, with what is added to its own."""
    return {**_per_gpu(measured, scenario), **measured.metrics}


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
    if not cpu_s > 0:  # NaN, where it is not known, is not above it either
        return {}
    osl = measured.facts.get("osl")
    completed = measured.facts.get("requests_completed")
    if not isinstance(osl, int | float) or not isinstance(completed, int | float):
        return {}
    tokens = osl * (completed + point.warmup_requests)
    return {"server_cpu_s_per_1k_tokens": 1000.0 * cpu_s / tokens}
