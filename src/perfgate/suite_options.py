"""The options that the suite adds to pytest's command line."""

from pathlib import Path

import pytest

from perfgate.boosting import OPTION as VBOOST
from perfgate.boosting import level_of
from perfgate.session import LEASE_WAIT_S


def add_options(group: pytest.OptionGroup) -> None:
    """Add every option of the suite to `group`."""
    group.addoption(
        "--gate",
        action="store_true",
        help="a release depends on this run: a selected scenario without a verdict fails it",
    )
    group.addoption("--run-dir", type=Path, help="the run folder (default: runs/<time>-<pid>)")
    group.addoption(
        "--resume",
        type=Path,
        metavar="RUN",
        help="go on with a run that was killed or broken off: its folder, or its name under runs/; "
        "scenarios that were finished are not measured again",
    )
    group.addoption(
        "--budget",
        metavar="TIME",
        help="the time that the session may take (4h, 90m, 2h30m, 3600s): what would not be done "
        "in the time left is not begun, and told",
    )
    group.addoption("--scenarios", type=Path, help="folder of scenario files (default: scenarios)")
    group.addoption(
        "--lease-wait",
        type=float,
        default=LEASE_WAIT_S,
        metavar="SECONDS",
        help="how long a start waits for GPUs, or the CPU, that others use (default: 8 hours)",
    )
    group.addoption(
        "--share-cpu",
        action="store_true",
        help="scenarios without a GPU do not wait for each other, nor for measurements on GPUs",
    )
    group.addoption(
        VBOOST,
        type=level_of,
        metavar="LEVEL",
        help="set the vboost slider of the GPUs for each start, and put back what was there; needs "
        "the right to (root), and GPUs of this machine",
    )
    group.addoption("--launcher", default="local", help="how programs are started")
    group.addoption(
        "--self-reference",
        choices=["auto", "fresh", "stored"],
        default="auto",
        help="scenarios that measure their own reference: measure it now (fresh), use the "
        "machine's stored one (stored), or measure only where none is comparable (auto)",
    )
    group.addoption(
        "--inject",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a setting of the build under test on purpose, to see the gate catch it",
    )
    group.addoption(
        "--engine-version",
        metavar="RELEASE",
        help="release of the engine, whose spelling is used (default: ask the program)",
    )
    group.addoption(
        "--engine-commit",
        metavar="COMMIT",
        help="commit of the engine, which names its baseline (default: ask the program)",
    )
    group.addoption(
        "--engine-repo",
        type=Path,
        metavar="FOLDER",
        help="a clone of the engine's repository: without a baseline of the commit under test, "
        "that of its nearest ancestor is compared with",
    )
    group.addoption(
        "--waivers",
        type=Path,
        metavar="FILE",
        help="the losses that are let through for a while (default: waivers.yaml)",
    )
    group.addoption(
        "--shape",
        action="append",
        default=[],
        metavar="ISL/OSL",
        help="input and output length of the scenarios marked explore; may be repeated",
    )
    group.addoption(
        "--rehearse",
        action="store_true",
        help="stand-ins play the engine's programs: checks everything but the engine, in minutes",
    )
    group.addoption(
        "--rehearse-fault",
        metavar="FAULT",
        help="the stand-ins fail on purpose: oom, hang, partial, slow:8%%, accuracy:2pp, …",
    )
