"""Preflight: is this machine fit for a scenario? Asked before GPU time is spent; starts no engine.

Rules ask and judge the GPUs (`gpus`) and the host (`host`), `reachability` and `software` the rest;
`inspection` puts all together. docs/how-to/preflight.md has a table of all checks.
"""

from perfgate.machine.preflight.check import Check
from perfgate.machine.preflight.inspection import (
    FAILURE,
    PreflightReport,
    PreflightTarget,
    look,
    refuse_unfit,
)

__all__ = [
    "FAILURE",
    "Check",
    "PreflightReport",
    "PreflightTarget",
    "look",
    "refuse_unfit",
]
