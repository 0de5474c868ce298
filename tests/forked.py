"""Python programs of perfgate and pytest without their start, which takes longer than they do.

`run` is `subprocess.run` for ``python -m pytest`` and ``python -m perfgate``: the program is a
process of its own with a status, an environment and a folder, forked from one that has imported
everything. What Python reads only when it starts (PYTHONUNBUFFERED, a closed standard output) needs
`subprocess.run`. Coverage doubles the time of a session, so that it traces few of them.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import coverage
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS, XDIST, inherited, tracing

_BEGUN_WITHIN_S = 300.0  # a crowded machine takes its time to import everything
_servers: list["_Server"] = []
# Of perfgate; a session imports the last two when it needs them.
_MODULES = (
    *("cli.main", "rehearsal.setup", "suite.session_options"),
    *("judging.rules.sequential", "reports.templating"),
)


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float = 120,
    traced: bool = False,
) -> "subprocess.CompletedProcess[str]":
    """Run ``[sys.executable, "-m", MODULE, …]`` to its end.

    Args:
        argv: MODULE is pytest, perfgate or perfgate.rehearsal.
        cwd: its working folder.
        env: its environment.
        timeout: in seconds; then it is killed, and the test fails.
        traced: whether it counts for the coverage of the tests; what it starts does so if `env`
            has what `tracing` gives.
    """
    server = _servers.pop() if _servers else _Server()
    done = server.run(argv, cwd, env, timeout, traced)
    _servers.append(server)  # not one that was too late: its next answer would be an old one
    return done


def session(
    words: Sequence[str], folder: Path, env: Mapping[str, str], *, traced: bool = False
) -> tuple[int, str]:
    """Run pytest with these words in a folder: its exit status, and all that it printed."""
    argv = [sys.executable, "-m", "pytest", *words]
    return outcome(run(argv, cwd=folder, env=env, timeout=1500, traced=traced))


def outcome(done: "subprocess.CompletedProcess[str]") -> tuple[int, str]:
    """Exit status, and all that was printed."""
    return done.returncode, done.stdout + done.stderr


class _Server:
    """The process that programs are forked from: one for each process that runs tests.

    It is nobody's child, as some tests look at the children of the process that runs them, and ends
    when its standard input does.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            env={**inherited("PERFGATE_"), **ONLY_NEEDED_PLUGINS, **tracing()},
            cwd=tempfile.gettempdir(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # what was read ahead, `select` would wait for
        )
        self._process.wait()  # only its fork goes on
        self._pid = self._answer(_BEGUN_WITHIN_S)
        atexit.register(self._end)

    def run(
        self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], timeout: float, traced: bool
    ) -> "subprocess.CompletedProcess[str]":
        assert self._process.stdin is not None
        with tempfile.TemporaryDirectory() as folder:
            outputs = [Path(folder) / name for name in ("out", "err")]
            task = {"argv": list(argv[2:]), "cwd": str(cwd), "env": dict(env), "traced": traced}
            task["outputs"] = [str(path) for path in outputs]
            self._process.stdin.write(f"{json.dumps(task)}\n".encode())
            pids = [self._pid]
            try:
                pids.append(self._answer(_BEGUN_WITHIN_S))
                status = self._answer(timeout)
            except TimeoutError:
                for pid in pids:
                    os.kill(pid, signal.SIGKILL)
                raise
            out, err = (path.read_text(errors="replace") for path in outputs)
        return subprocess.CompletedProcess(argv, status, out, err)

    def _answer(self, timeout: float) -> int:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], timeout)[0]:
            raise TimeoutError(f"no end within {timeout} s")
        return int(self._process.stdout.readline())

    def _end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()


def _serve() -> Any:
    """Fork a program for each line of standard input; in a fork: what the program is to do."""
    if os.fork() != 0:
        os._exit(0)
    tasks, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w", buffering=1)
    answers.write(f"{os.getpid()}\n")
    _lead_to(os.devnull, os.devnull)
    _import_everything()
    if traced := coverage.Coverage.current():  # what importing ran counts once
        traced.stop()
        traced.save()
    for line in tasks:
        pid = os.fork()
        if pid == 0:
            os.close(tasks.fileno())
            os.close(answers.fileno())
            return json.loads(line)
        answers.write(f"{pid}\n")
        answers.write(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n")
    os._exit(0)


def _import_everything() -> None:
    """By a session of pytest, whose import hook must be the one that loads its plugins."""
    import pytest

    with tempfile.TemporaryDirectory() as nothing:
        words = ["-p", "perfgate.suite.plugin", "--collect-only", "-c", os.devnull, nothing]
        pytest.main([*XDIST, *BENCHMARK, *words])
    for name in _MODULES:
        importlib.import_module(f"perfgate.{name}")
    for kind in ("engines", "clients", "evaluators", "launchers"):
        base = importlib.import_module(f"perfgate.{kind}.base")
        list(getattr(base, kind.removesuffix("s")))  # which imports them all
    importlib.import_module("jsonschema_rs")
    templating = sys.modules["perfgate.reports.templating"]
    for templates, file in (
        (templating.markdown, "summary.md"),
        (templating.terminal, "terminal.txt"),
    ):
        templates().get_template(file)  # compiles it
    # pytest looks for its plugins among all packages, a dozen times a session.
    packages = [one for one in metadata.distributions() if "pytest11" in one.entry_points.groups]
    metadata.distributions = lambda **_: packages  # type: ignore[assignment]
    gc.freeze()


def _lead_to(*outputs: str) -> None:
    for number, file in enumerate((os.devnull, *outputs)):
        opened = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(opened, number)
        os.close(opened)


def _become(task: Mapping[str, Any]) -> None:
    import xdist.plugin

    if task["traced"]:
        coverage.process_startup(force=True)  # does nothing where the tests have none
    _lead_to(*task["outputs"])
    os.chdir(task["cwd"])
    os.environ.clear()
    os.environ.update(task["env"])
    sys.path[:0] = [task["cwd"], *filter(None, task["env"].get("PYTHONPATH", "").split(os.pathsep))]
    xdist.plugin._sys_path[:] = sys.path  # what its workers get
    module, *sys.argv[1:] = task["argv"]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    sys.path.remove(str(Path(__file__).parent))
    if task := _serve():
        _become(task)
