"""Where a server listens: on this machine for this machine alone, elsewhere with a word of it."""

import socket

import pytest
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.program_query import ask_here
from perfgate.engines.base import Endpoint
from perfgate.launchers.local.job import look_argv
from perfgate.launchers.mpirun.launcher import MpirunLauncher
from perfgate.launchers.nodes import placement
from perfgate.launchers.nodes.placement import NodesLauncher
from perfgate.launchers.site import MpirunSite, SlurmSite
from perfgate.launchers.slurm.launcher import SlurmLauncher

HERE, THERE = "10.0.0.1", "10.0.0.2"


@pytest.fixture(autouse=True)
def _addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "own_addresses", lambda: {HERE, "127.0.0.1"})


def on(launcher: NodesLauncher, address: str) -> tuple[str, list[str]]:
    told: list[str] = []
    return launcher.listens_at("n1", address, told.append), told


@each(
    "word, address, listens",
    [
        (None, HERE, "127.0.0.1"),  # nobody else reaches it
        ("loopback", HERE, "127.0.0.1"),
        ("node", HERE, HERE),
        ("node", THERE, THERE),
        (None, "127.64.1.1", "127.64.1.1"),  # a virtual node
    ],
)
def test_what_needs_no_word(word: str | None, address: str, listens: str) -> None:
    assert on(SlurmLauncher(SlurmSite(listen=word)), address) == (listens, [])


def test_on_another_machine_a_session_is_told_once_and_its_loopback_device_is_refused() -> None:
    session, told = SlurmLauncher(SlurmSite()), list[str]()
    for _ in range(2):
        assert session.listens_at("n1", THERE, told.append) == THERE
    (line,) = told
    assert "listens at 10.0.0.2 of n1 and asks for no key" in line
    assert "slurm.listen: node in site.yaml" in line
    with pytest.raises(InputError, match=r"mpirun\.listen"):
        on(MpirunLauncher(MpirunSite(listen="loopback")), THERE)


def test_a_node_that_has_an_ipv6_address_alone_is_reached_under_it(monkeypatch) -> None:
    found = [(socket.AF_INET6, 1, 6, "", ("fd00::7", 0, 0, 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    assert placement.address_of("n1") == "fd00::7"
    both = [*found, (socket.AF_INET, 1, 6, "", ("10.0.0.7", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
    assert placement.address_of("n1") == "10.0.0.7"
    assert Endpoint("fd00::7", 80, "m").url == "http://[fd00::7]:80"


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_a_port_of_an_ipv6_address_is_found() -> None:
    assert int(ask_here(look_argv("port", "::1", __file__), 60.0).text) > 0
