"""Other build: another build of a scenario's engine, started beside the build under test."""

from dataclasses import dataclass

from perfgate.campaign.injection import Injection
from perfgate.engines.build_source import BuildSource
from perfgate.launchers.base import Launcher
from perfgate.plan.toolchain import Toolchain


@dataclass(frozen=True)
class OtherBuild:
    """A build that this session can start.

    Attributes:
        source: how it is started.
        tools: the scenario's programs with this build, asked for its version.
        launcher: what starts it: the session's, with this build's image where it has one.
        injections: settings changed in it on purpose.
    """

    source: BuildSource
    tools: Toolchain
    launcher: Launcher
    injections: tuple[Injection, ...] = ()
