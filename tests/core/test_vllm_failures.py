"""What real logs of vLLM 0.32.0 for the CPU show: the class, and the line that tells it.

The logs are of faults provoked on purpose, without the frames of tracebacks and without most lines
of a healthy start; standard error before standard output, as perfgate reads them.
"""

from pathlib import Path

import pytest
from tables import each

from perfgate.core.failures import diagnose

LOGS = Path(__file__).parents[1] / "data" / "vllm_cpu"
TABLE = {
    "port_taken": ("port_in_use", "[Errno 98] Address already in use"),
    "model_missing": ("model_file", "Repo id must be in the form"),
    "model_without_config": ("model_file", "Invalid repository ID or local directory"),
    "weights_missing": ("model_file", "Cannot find any model weights with"),
    "weights_truncated": ("model_file", "SafetensorError: Error while deserializing header"),
    "model_len": ("config_error", "User-specified max_model_len (1000000) is greater than"),
    "kv_space_too_big": ("oom", "less than requested memory for kv (40.0 GiB)"),
    "kv_cache_too_small": ("kv_cache_too_small", "larger than the available KV cache memory"),
    "engine_core_killed": ("killed", "engine core exited unexpectedly"),
    "worker_killed": ("killed", "VllmWorker-0 died unexpectedly"),
    "unknown_option": ("cli_drift", "unrecognized arguments: --nonsense 1"),
}


def read(name: str) -> list[str]:
    return (LOGS / f"{name}.log").read_text().splitlines()


@each("name", TABLE)
def test_a_fault_has_its_class_and_telling_line(name: str) -> None:
    failure, says = TABLE[name]
    found = diagnose(read(name))
    assert found is not None
    assert (found.failure, says in found.text) == (failure, True), found
    assert found.next_step


def test_a_healthy_start_and_stop_shows_nothing() -> None:
    lines = read("healthy")
    assert any("Too many open files" in line for line in lines)  # a warning that quotes an error
    assert diagnose(lines) is None


def test_every_log_is_in_the_table() -> None:
    assert {*TABLE, "healthy"} == {log.stem for log in LOGS.iterdir()}


@each(
    ("line", "failure"),
    [
        # vLLM's own words for what became of its processes, where nothing above says why.
        (
            "(EngineCore pid=9) ERROR 11-23 06:47:10 [multiproc_executor.py:315] Worker proc "
            "VllmWorker-0 died unexpectedly (exit code: None), shutting down executor.",
            "killed",
        ),
        ("vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.", "unknown"),
        ("TimeoutError: RPC call to execute_model timed out.", "hang"),
        ("No available shared memory broadcast block found in 60 seconds.", "hang"),
        ("ValueError: No available memory for the cache blocks.", "kv_cache_too_small"),
        ("pydantic_core.ValidationError: 1 validation error for SchedulerConfig", "config_error"),
    ],
)
def test_a_line_alone(line: str, failure: str) -> None:
    found = diagnose([line])
    assert found is not None
    assert found.failure == failure


@pytest.mark.parametrize(
    "line",
    [
        # The consequence of a failed start: that worker ended as it was told.
        "ERROR Worker proc VllmWorker-0 died unexpectedly (exit code: 0), shutting down executor.",
        "WARNING Address already in use. Retrying with a new port.",
    ],
)
def test_a_line_that_shows_nothing(line: str) -> None:
    assert diagnose([line]) is None


def test_a_head_without_a_reason_gives_way_to_the_reason() -> None:
    head, reason = (line for line in read("model_len") if "alidation" in line or "Value" in line)
    assert diagnose([head]) is not None
    found = diagnose([head, reason])
    assert found is not None
    assert found.line == 2
