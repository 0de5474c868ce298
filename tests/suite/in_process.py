"""Sessions of pytest, and commands, in this process: what they import is there already.

For what needs no process of its own: nobody kills it, and no worker takes part. Its programs are
processes all the same; unless it says so they are not counted for the coverage.
"""

import contextlib
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from unittest import mock

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
    status, output = session(words, suite.folder, untraced(environment))
    return Finished(status, output, run)


def session(words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """`pytest` with these words, in a folder: its exit status, and what it printed."""
    with registered_standins():
        return _called(pytest.main, [*words, *QUIET], folder, environment)


def perfgate(suite: Suite, *words: str, folder: Path | None = None) -> tuple[int, str]:
    """`perfgate` with these words, in the checkout or in a folder: its exit status, its output."""
    with registered_standins():
        return _called(main, list(words), folder or suite.folder, untraced(suite.environment))


def _called(
    call: Callable[[list[str]], int],
    words: list[str],
    folder: Path,
    environment: Mapping[str, str],
) -> tuple[int, str]:
    with _place(words, folder, environment) as output:
        try:
            status = int(call(words))
        except SystemExit as end:  # a session that began again, a wrong call
            status = int(end.code or 0)
    return status, output.getvalue().decode()


@contextlib.contextmanager
def _place(
    words: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> Iterator[io.BytesIO]:
    """A block in the folder, with this environment alone; what it prints is kept."""
    modules = dict(sys.modules)
    output = io.BytesIO()
    stream = io.TextIOWrapper(output, encoding="utf-8", write_through=True)
    with (
        mock.patch.dict(os.environ, environment, clear=True),
        mock.patch.object(sys, "argv", ["pytest", *words]),
        mock.patch.object(sys, "path", list(sys.path)),
        contextlib.chdir(folder),
        contextlib.redirect_stdout(stream),
        contextlib.redirect_stderr(stream),
    ):
        try:
            yield output
        finally:
            stream.detach()
            _forget_tests(folder, modules)


def _forget_tests(folder: Path, before: Mapping[str, object]) -> None:
    """Take test modules of the folder out of those imported: another checkout has their like."""
    for name, module in list(sys.modules.items()):
        file = Path(getattr(module, "__file__", None) or "/")
        if module is before.get(name) or file.parent not in (folder, folder / "perf_tests"):
            continue
        del sys.modules[name]
        if name in before:
            sys.modules[name] = before[name]  # type: ignore[assignment]
