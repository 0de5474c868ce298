"""Leases: which tests may use which of this machine's GPUs, or its CPU alone. By file locks."""

from perfgate.leases.devices import Device
from perfgate.leases.keeping import kept_open
from perfgate.leases.owner import Owner
from perfgate.leases.pool import GpuPool, Lease

__all__ = ["Device", "GpuPool", "Lease", "Owner", "kept_open"]
