"""Sessions of pytest, and commands, in this process: what they import is there already.

For what needs no process of its own: nobody kills it, and no worker takes part. Its programs are
processes all the same; they are not counted for the coverage.
"""

import contextlib
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from registered_standins import registered_standins
from sessions import untraced
from test_road import PLUGINS, Finished, Suite

from perfgate.cli.main import main

# The stand-ins were imported by whoever started this session.
QUIET = ("-W", "ignore::pytest.PytestAssertRewriteWarning")


def run(suite: Suite, *options: str, fault: str = "") -> Finished:
    """`Suite.run`, in this process."""
    run = suite.folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    words = [*PLUGINS, "-q", "--run-dir", str(run), *options]
    environment = {**suite.environment, "PERFGATE_STANDIN_FAULT": fault}
    status, output = session(words, suite.folder, environment)
    return Finished(status, output, run)


def session(words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """`pytest` with these words, in a folder: its exit status, and what it printed."""
    return _called(pytest.main, [*words, *QUIET], folder, environment)


def perfgate(suite: Suite, *words: str) -> tuple[int, str]:
    """`perfgate` with these words, in the checkout: its exit status, and what it printed."""
    return _called(main, list(words), suite.folder, suite.environment)


def _called(
    call: Callable[[list[str]], int],
    words: list[str],
    folder: Path,
    environment: Mapping[str, str],
) -> tuple[int, str]:
    with _place(words, folder, untraced(environment)) as output:
        try:
            status = int(call(words))
        except SystemExit as end:  # a session that began again, a wrong call
            status = int(end.code or 0)
    return status, output.getvalue()


@contextlib.contextmanager
def _place(
    words: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> Iterator[io.StringIO]:
    """A block in the folder, with this environment alone; what it prints is kept."""
    modules = set(sys.modules)
    output = io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        registered_standins(),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(output),
    ):
        for name in os.environ.keys() - environment.keys():
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["pytest", *words])
        patch.setattr(sys, "path", list(sys.path))
        patch.chdir(folder)
        try:
            yield output
        finally:
            for name in set(sys.modules) - modules:
                file = getattr(sys.modules[name], "__file__", None) or ""
                if Path(file).is_relative_to(folder):
                    del sys.modules[name]
