"""How tests name what was leased."""

from perfgate.machine.leases import Lease


def words(lease: Lease) -> str:
    return ",".join(gpu.word for gpu in lease.gpus)
