"""slurm: fresh starts on nodes that Slurm gives."""

from perfgate.launchers.slurm.launcher import SlurmLauncher

__all__ = ["SlurmLauncher"]
