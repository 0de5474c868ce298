"""Where a server listens: on this machine for this machine alone, elsewhere with a word of it."""

import pytest

from perfgate.core.errors import InputError
from perfgate.launchers.nodes import listening
from perfgate.launchers.nodes.listening import ServerAddress

HERE, THERE = "10.0.0.1", "10.0.0.2"


@pytest.fixture(autouse=True)
def _addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "own_addresses", lambda: {HERE, "127.0.0.1"})


def on(server: ServerAddress, address: str) -> tuple[str, list[str]]:
    told: list[str] = []
    return server.on("n1", address, told.append), told


@pytest.mark.parametrize("word", [None, "loopback"])
def test_on_this_machine_nobody_else_reaches_it(word: str | None) -> None:
    assert on(ServerAddress("slurm.listen", word), HERE) == ("127.0.0.1", [])


def test_the_site_may_want_the_nodes_address_even_so() -> None:
    assert on(ServerAddress("slurm.listen", "node"), HERE) == (HERE, [])


def test_on_another_machine_a_session_is_told_once() -> None:
    server = ServerAddress("slurm.listen", None)
    address, told = on(server, THERE)
    assert address == THERE
    (line,) = told
    assert "listens at 10.0.0.2 of n1 and asks for no key" in line
    assert "slurm.listen: node in site.yaml" in line
    assert on(server, THERE) == (THERE, [])


def test_a_site_that_knows_is_not_told() -> None:
    assert on(ServerAddress("mpirun.listen", "node"), THERE) == (THERE, [])


def test_another_machines_loopback_device_is_refused() -> None:
    with pytest.raises(InputError, match=r"mpirun\.listen"):
        on(ServerAddress("mpirun.listen", "loopback"), THERE)


def test_a_virtual_node_behind_the_loopback_device_needs_no_word() -> None:
    assert on(ServerAddress("slurm.listen", None), "127.64.1.1") == ("127.64.1.1", [])
