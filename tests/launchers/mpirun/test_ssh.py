"""Hosts, asked: what is not said, and by which error that is told. A script plays ssh.

Real hosts are asked in tests/mpi.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from perfgate.core.errors import MissingProgram
from perfgate.launchers.mpirun.ssh import AGENT, Host, HostQuery, HostUnfit, Unreachable
from perfgate.launchers.site import MpirunSite

HERE, THERE = Host("localhost", "127.0.0.1", here=True), Host("n1", "10.0.0.1")
Make = Callable[..., HostQuery]


@pytest.fixture
def reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Hosts behind a script."""
    monkeypatch.delenv(AGENT, raising=False)

    def make(body: str, mode: int = 0o755) -> HostQuery:
        agent = tmp_path / "agent"
        agent.write_text(f"#!/bin/sh\n{body}\n")
        agent.chmod(mode)
        return HostQuery(MpirunSite(rsh_agent=str(agent)), None)

    return make


def test_an_answer(reach: Make) -> None:
    assert reach("echo told; echo beware >&2").ask(THERE, ("true",), 60) == "told\n"


def test_no_ssh() -> None:
    nowhere = HostQuery(MpirunSite(rsh_agent="no-such-agent"), None)
    with pytest.raises(MissingProgram, match=r"^no no-such-agent to reach n1 with$"):
        nowhere.ask(THERE, ("true",), 60)


def test_no_answer_in_time(reach: Make) -> None:
    with pytest.raises(Unreachable, match=r"^no answer in 1 s$"):
        reach("exec sleep 60").ask(THERE, ("true",), 0.6)


def test_an_ssh_that_cannot_be_started(reach: Make) -> None:
    with pytest.raises(Unreachable, match="Permission denied"):
        reach("", mode=0o644).ask(THERE, ("true",), 60)


@pytest.mark.parametrize(
    ("body", "error", "said"),
    [
        ("echo no route >&2; exit 255", Unreachable, "no route"),
        ("exit 255", Unreachable, "ssh failed without a message"),
        ("echo no; echo such  file >&2; exit 2", HostUnfit, "such file"),
        ("exit 2", HostUnfit, "exit status 2"),
    ],
)
def test_what_failed_there_is_told_from_what_is_not_reached(
    reach: Make, body: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error) as caught:
        reach(body).ask(THERE, ("true",), 60)
    assert str(caught.value) == said


def test_this_machine_is_always_reached(reach: Make) -> None:
    with pytest.raises(HostUnfit, match=r"^exit status 255$"):
        reach("exit 255").ask(HERE, (sys.executable, "-c", "raise SystemExit(255)"), 60)


@pytest.mark.parametrize(
    ("body", "address"),
    [
        ("echo port 22; echo hostname 127.0.0.7", "127.0.0.7"),
        ("echo hostname 127.0.0.7; exit 1", "127.0.0.7"),
        ("exit 1", "127.0.0.9"),
        ("echo hostname", "127.0.0.9"),
    ],
)
def test_a_host_has_the_address_that_ssh_is_configured_with(
    reach: Make, body: str, address: str
) -> None:
    assert reach(body).host("127.0.0.9").address == address


def test_a_host_has_its_own_address_where_ssh_cannot_be_asked(reach: Make) -> None:
    assert reach("", mode=0o644).host("127.0.0.9").address == "127.0.0.9"
