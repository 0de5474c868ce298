"""mpirun: fresh starts on hosts that Open MPI reaches by ssh."""

from perfgate.launchers.mpirun.launcher import MpirunLauncher

__all__ = ["MpirunLauncher"]
