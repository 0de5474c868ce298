"""Listening: the address that the server of a start listens at, which asks nobody for a key.

On this machine that is the loopback device. On another node it is the node's own address, as
perfgate and its clients come from here: whoever reaches the node can use the server, and a session
is told so once, unless the site says that it knows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address

import psutil

from perfgate.core.errors import InputError

LOOPBACK = "127.0.0.1"
NODE = "node"


@dataclass
class ServerAddress:
    """Where the servers of one session listen.

    Attributes:
        field: of the site file: ``slurm.listen``.
        word: what stands there: "loopback", "node", or None.
        told: whether the session was told that others can reach its servers.
    """

    field: str
    word: str | None
    told: bool = False

    def on(self, node: str, address: str, tell: Callable[[str], None]) -> str:
        """The address on a node, which is reached from here under `address`.

        Raises:
            InputError: it must be the loopback device, and the node is another machine.
        """
        if self.word != NODE and address in own_addresses():
            return LOOPBACK
        if ip_address(address).is_loopback:
            return address
        if self.word == "loopback":
            raise InputError(
                "a server on another machine's loopback device cannot be reached",
                field=self.field,
                found=f"loopback, and the server's node is {node} ({address})",
                expected="node; or perfgate runs on the server's node",
            )
        if self.word is None and not self.told:
            self.told = True
            tell(
                f"the server listens at {address} of {node} and asks for no key: whoever reaches "
                f"that address can use it ({self.field}: node in site.yaml says that this is known)"
            )
        return address


def own_addresses() -> set[str]:
    """The addresses of this machine."""
    return {one.address for many in psutil.net_if_addrs().values() for one in many}
