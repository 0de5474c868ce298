"""The pytest plugin: what a session of the suite registers. Inert until a test of it is collected.

`perfgate.campaign` measures; this room only translates between pytest and the rest.
"""

from collections.abc import Generator

import pytest

from perfgate.suite.folders import settle_folders
from perfgate.suite.main_session import MainSession
from perfgate.suite.options import option_of
from perfgate.suite.selection import OptIn, UnknownMarkers
from perfgate.suite.session import SESSION, SuiteSession
from perfgate.suite.session_guard import guarded, usage_errors
from perfgate.suite.session_options import SessionOptions
from perfgate.suite.worker_session import WorkerSession
from perfgate.suite.xdist import XdistHooks

pytest_plugins = (
    "perfgate.suite.fixtures",
    "perfgate.suite.benchmark_entries",
    "perfgate.suite.junit",
    "perfgate.suite.terminal",
)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the suite's part of this process."""
    settle_folders(config)
    session = config.stash[SESSION] = _session(config)
    plugins = config.pluginmanager
    plugins.register(session, "perfgate-session")
    markers = UnknownMarkers(config.option.markexpr, lambda: session.options.markers)
    plugins.register(markers, "perfgate-unknown-markers")
    plugins.register(OptIn(config), "perfgate-opt-in")
    if session.sharding is not None:  # after it: what is registered last has the last word
        plugins.register(session.sharding, "perfgate-sharding")
    if isinstance(session, MainSession) and (
        plugins.hasplugin("dsession") or getattr(config.option, "numprocesses", None)
    ):
        plugins.register(XdistHooks(session), "perfgate-xdist")
    if getattr(config.option, "markers", False):
        with usage_errors():
            session.register_markers()


def _session(config: pytest.Config) -> SuiteSession:
    option = option_of(config)
    worker = getattr(config, "workerinput", None)
    if worker is not None:
        return WorkerSession(config, SessionOptions(option, worker["perfgate_deadline"]))
    session = MainSession(config, SessionOptions(option))
    with usage_errors():
        session.require_sense()
    return session


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, object, object]:
    """Give a session of the main process that fails, or loses its output, its own status."""
    if hasattr(config, "workerinput"):
        return (yield)
    return (yield from guarded(lambda: config.stash[SESSION].status))
