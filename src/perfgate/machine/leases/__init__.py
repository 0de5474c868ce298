"""Leases: which tests may use which of this machine's GPUs, or its CPU alone. By file locks."""

from perfgate.machine.leases.devices import Device
from perfgate.machine.leases.file_locks import kept_open
from perfgate.machine.leases.pool import GpuPool, Lease

__all__ = ["Device", "GpuPool", "Lease", "kept_open"]
