"""Ports: a TCP port of this machine that nothing uses now."""

import socket


def free_port(host: str) -> int:
    """A TCP port of `host` that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port
