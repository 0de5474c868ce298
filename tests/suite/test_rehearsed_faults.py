"""Rehearsed faults: each ends as an error of its class, in a session."""

from pathlib import Path

import pytest
from rehearsing import OFFLINE, rehearse
from sizes import sized

pytestmark = pytest.mark.slow

SERVED = "h200-r1-0528-fp8-sharegpt"


GB200 = "gb200-r1-fp4-chat-streaming"  # a Slurm job with an iteration log
CASES = [
    ("hang", GB200, "hang"),
    ("partial", SERVED, "incomplete"),
    ("ignored_options", OFFLINE, "not_in_force"),
]
# What programs print of these is known for what it is: tests/rehearsal/test_rehearsal_faults.py.
MORE = [
    ("ignored_options", "b200-r1-0528-fp4-serve-no-padding", "not_in_force"),
    ("oom", SERVED, "oom"),
    ("truncated", OFFLINE, "truncated_output"),
    ("oom", OFFLINE, "oom"),
    ("kv_cache_too_small", OFFLINE, "kv_cache_too_small"),
    ("request_too_long", OFFLINE, "request_too_long"),
    ("config_error", SERVED, "config_error"),
    ("cli_drift", OFFLINE, "cli_drift"),
    ("cli_drift_help", OFFLINE, "cli_drift"),
    ("port_in_use", SERVED, "port_in_use"),
    ("nccl", OFFLINE, "nccl"),
    ("cuda_error", OFFLINE, "cuda_error"),
    ("mpi", OFFLINE, "mpi"),
    ("pmi_mismatch", OFFLINE, "pmi_mismatch"),
    ("killed", OFFLINE, "killed"),
    ("no_metrics", OFFLINE, "no_metrics"),
    ("zero_metrics", SERVED, "no_metrics"),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("fault", "scenario", "failure"), sized(CASES, CASES + MORE))
def test_each_fault_is_an_error_of_its_class_with_evidence_and_a_next_step(
    tmp_path: Path, fault: str, scenario: str, failure: str
) -> None:
    done = rehearse(tmp_path, "-k", scenario, "--rehearse-fault", fault)
    errors = [line["error"] for line in done.records("verdict") if line["error"]]
    assert {error["error_class"] for error in errors} == {failure}, done.output[-3000:]
    assert all(error["next_step"] for error in errors)
    assert done.status == 11
