"""The pytest plugin: what a session of the suite registers. Inert until a test of it is collected.

`perfgate.campaign` measures; this room only translates between pytest and the rest.
"""

import os
from collections.abc import Generator

import pytest

from perfgate.core.files import paths
from perfgate.suite.main_session import MainSession
from perfgate.suite.options import option_of
from perfgate.suite.session import SESSION
from perfgate.suite.session_guard import guarded, usage_errors
from perfgate.suite.session_options import SessionOptions
from perfgate.suite.workers import WorkerSession

pytest_plugins = ("perfgate.suite.fixtures", "perfgate.suite.outputs")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the suite's part of this process."""
    settle_folders(config)
    worker = getattr(config, "workerinput", None)
    options = SessionOptions(option_of(config), worker and worker["perfgate_deadline"])
    with usage_errors():
        kind = WorkerSession if worker else MainSession
        session = config.stash[SESSION] = kind(config, options)
        config.pluginmanager.register(session, "perfgate-session")
        if getattr(config.option, "markers", False):
            session.register_markers()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, object, object]:
    """Give a session of the main process that fails, or loses its output, its own status."""
    if hasattr(config, "workerinput"):
        return (yield)
    return (yield from guarded(lambda: config.stash[SESSION].status))


def settle_folders(config: pytest.Config) -> None:
    """Have options, else settings of pytest, name the folders of scenarios and baselines.

    They are put into the variables that `paths` reads: programs that the session starts, and
    workers, take the same ones. What the environment names is weaker than an option and stronger
    than a setting. The variables are put back when the session ends.
    """
    option = option_of(config)
    _settle(config, paths.SCENARIOS, option("--scenarios"), paths.INI_SCENARIOS)
    baselines = option("--baselines")
    _settle(config, paths.BASELINES, baselines and [str(baselines)], paths.INI_BASELINES)


def _settle(config: pytest.Config, variable: str, given: list[str] | None, setting: str) -> None:
    start = config.invocation_params.dir
    if not given:
        if os.environ.get(variable) or config.inipath is None:
            return
        start = config.inipath.parent
        given = config.getini(setting)
        if not given or given == paths.setting_of(start, setting):
            return  # nothing to add to what pyproject.toml says
    names = [name if name == paths.PACKAGED else str(start / name) for name in given]
    patch = pytest.MonkeyPatch()
    patch.setenv(variable, os.pathsep.join(names))
    config.add_cleanup(patch.undo)
