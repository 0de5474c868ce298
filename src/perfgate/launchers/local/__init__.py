"""local: this machine as the place of a fresh start; what other launchers start here, too."""

from perfgate.launchers.local.launcher import LocalLauncher

__all__ = ["LocalLauncher"]
