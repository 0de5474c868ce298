"""The options that the suite adds to pytest's command line: the entry point of the package.

pytest loads this module in every session, before any conftest, so that it knows the options from
the first moment. It imports nothing of the suite: a session of other tests pays for the options
alone. The suite's own conftest names the plugin that does the work.
"""

import argparse
import contextlib
from collections.abc import Sequence
from pathlib import Path

import pytest

_FOLDERS = ("--run-dir", "--scenarios", "--resume", "--engine-repo", "--waivers")


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser.getgroup("perfgate", "perfgate: performance and accuracy gate"))


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Begin again if pytest took an option's value for the place of the tests.

    It looks for its settings before it loads any plugin. A folder that stands by itself after an
    option that it does not know yet is to it where the tests are: their settings would be another
    project's (pytest 9.2, `Config.parse`).
    """
    given = [str(word) for word in early_config.invocation_params.args]
    words = joined(given)
    if words == given:
        return
    capture = early_config.pluginmanager.getplugin("capturemanager")
    with contextlib.nullcontext() if capture is None else capture.global_and_fixture_disabled():
        raise SystemExit(pytest.main(words, early_config.invocation_params.plugins))


def joined(args: Sequence[str]) -> list[str]:
    """Arguments, each option that names a file or folder joined with it: ``--run-dir=FOLDER``."""
    words: list[str] = []
    for word in args:
        if words and words[-1] in _FOLDERS:
            words[-1] = f"{words[-1]}={word}"
        else:
            words.append(word)
    return words


def level_of(text: str) -> int:
    """The level as the command line has it; what the GPUs have is known when they are asked.

    Raises:
        ArgumentTypeError: it is none.
    """
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"not a level: {text!r}; expected a whole number from 0")
    return int(text)


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
        metavar="SECONDS",
        help="how long a start waits for GPUs, or the CPU, that others use (default: 8 hours)",
    )
    group.addoption(
        "--share-cpu",
        action="store_true",
        help="scenarios without a GPU do not wait for each other, nor for measurements on GPUs",
    )
    group.addoption(
        "--vboost",
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
