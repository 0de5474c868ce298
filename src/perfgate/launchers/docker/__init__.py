"""docker: the engine's programs in containers of its release image."""

from perfgate.launchers.docker.launcher import DockerLauncher

__all__ = ["DockerLauncher"]
