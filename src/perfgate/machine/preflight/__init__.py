"""Preflight: is this machine fit for a scenario? Asked before GPU time is spent; starts no engine.

Tables of rules ask and judge the GPUs (`gpus`), the host (`host`) and what is installed
(`software`); `inspection` puts all together, and asks what is beyond this machine.
docs/how-to/preflight.md has a table of all checks.
"""

from perfgate.machine.preflight.check import Check, PreflightTarget
from perfgate.machine.preflight.inspection import FAILURE, PreflightReport, look, refuse_unfit

__all__ = [
    "FAILURE",
    "Check",
    "PreflightReport",
    "PreflightTarget",
    "look",
    "refuse_unfit",
]
