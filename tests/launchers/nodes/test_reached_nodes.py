"""How nodes are reached and looked at: where a server on one listens, what ssh and Slurm say.

On this machine a server listens for this machine alone, elsewhere with a word of it. Scripts play
the programs; the real ones are asked in tests/mpi and tests/slurm.
"""

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from refusals import refused
from tables import each

from perfgate.core.errors import InputError, MissingProgram, RunError
from perfgate.core.programs.program_query import ask_here
from perfgate.engines.base import Endpoint
from perfgate.launchers.local.job import look_argv
from perfgate.launchers.mpirun.hosts import AGENT, Host, HostQuery, HostUnfit, Unreachable
from perfgate.launchers.mpirun.launcher import MpirunLauncher
from perfgate.launchers.nodes import placement
from perfgate.launchers.nodes.preflight import doctor_command, scenario_text
from perfgate.launchers.site import MpirunSite, SlurmSite
from perfgate.launchers.slurm import calls as slurm_calls
from perfgate.launchers.slurm.launcher import SlurmLauncher
from perfgate.scenarios.files import load_scenarios

OURS, OTHER = "10.0.0.1", "10.0.0.2"


@pytest.fixture(autouse=True)
def _addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "own_addresses", lambda: {OURS, "127.0.0.1"})


@each(
    "word, address, listens",
    [
        (None, OURS, "127.0.0.1"),  # nobody else reaches it
        ("loopback", OURS, "127.0.0.1"),
        ("node", OURS, OURS),
        ("node", OTHER, OTHER),
        (None, "127.64.1.1", "127.64.1.1"),  # a virtual node
    ],
)
def test_what_needs_no_word(word: str | None, address: str, listens: str) -> None:
    told: list[str] = []
    launcher = SlurmLauncher(SlurmSite(listen=word))
    assert (launcher.listens_at("n1", address, told.append), told) == (listens, [])


def test_on_another_machine_a_session_is_told_once_and_its_loopback_device_is_refused() -> None:
    session, told = SlurmLauncher(SlurmSite()), list[str]()
    for _ in range(2):
        assert session.listens_at("n1", OTHER, told.append) == OTHER
    (line,) = told
    assert "listens at 10.0.0.2 of n1 and asks for no key" in line
    assert "slurm.listen: node in site.yaml" in line
    with pytest.raises(InputError, match=r"mpirun\.listen"):
        MpirunLauncher(MpirunSite(listen="loopback")).listens_at("n1", OTHER, told.append)


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


HERE, THERE = Host("localhost", "127.0.0.1", here=True), Host("n1", "10.0.0.1")
Play = Callable[..., HostQuery]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    """Has a script for ssh and for scontrol, and no other program of Slurm."""
    monkeypatch.delenv(AGENT, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    def play(body: str, mode: int = 0o755) -> HostQuery:
        script = tmp_path / "scontrol"
        script.write_text(f"#!/bin/sh\n{body}\n")
        script.chmod(mode)
        return HostQuery(MpirunSite(rsh_agent=str(script)), None)

    return play


def test_an_answer_and_a_program_that_is_not_there(play: Play) -> None:
    reach = play("echo n1; echo n2; echo beware >&2")
    assert reach.ask(THERE, ("true",), 60) == "n1\nn2\n"
    assert slurm_calls.node_names("n[1-2]") == ("n1", "n2")
    nowhere = HostQuery(MpirunSite(rsh_agent="no-such-agent"), None)
    with pytest.raises(MissingProgram, match=r"^no no-such-agent to reach n1 with$"):
        nowhere.ask(THERE, ("true",), 60)
    with pytest.raises(MissingProgram, match=r"^needs Slurm: no no-such-program on PATH$"):
        slurm_calls.call(("no-such-program",))


@each(
    "body, error, of_ssh, of_slurm",
    [
        ("exec /bin/sleep 60", Unreachable, "no answer in 1 s", "no answer in 1 s"),
        ("echo no route >&2; exit 255", Unreachable, "no route", "no route"),
        ("exit 255", Unreachable, "ssh failed without a message", "exit status 255"),
        ("echo no; echo such  file >&2; exit 2", HostUnfit, "such file", "such file"),
        ("echo told; exit 1", HostUnfit, "told", "told"),
        ("exit 2", HostUnfit, "exit status 2", "exit status 2"),
    ],
)
def test_a_failure_is_told_in_its_own_words(play: Play, body, error, of_ssh, of_slurm) -> None:
    caught = refused(play(body).ask, THERE, ("true",), 0.6, error=error)
    assert str(caught) == of_ssh
    failed = refused(slurm_calls.call, ("scontrol",), 0.6, error=RunError)
    assert failed.failure == "slurm_unreachable"
    assert failed.message == f"scontrol failed: {of_slurm}"


def test_a_program_that_cannot_be_started_and_this_machine(play: Play) -> None:
    with pytest.raises(Unreachable, match="Permission denied"):
        play("", mode=0o644).ask(THERE, ("true",), 60)
    with pytest.raises(RunError, match=r"slurm_unreachable: scontrol failed: .*Permission denied"):
        slurm_calls.call(("scontrol",))
    with pytest.raises(HostUnfit, match=r"^exit status 255$"):
        play("exit 255").ask(HERE, (sys.executable, "-c", "raise SystemExit(255)"), 60)


@each(
    "body, mode, address",
    [
        ("echo port 22; echo hostname 127.0.0.7", 0o755, "127.0.0.7"),
        ("echo hostname 127.0.0.7; exit 1", 0o755, "127.0.0.7"),
        ("echo hostname", 0o755, "127.0.0.9"),
        ("", 0o644, "127.0.0.9"),
    ],
)
def test_a_host_has_the_address_of_sshs_configuration_else_its_own(play, body, mode, address):
    assert play(body, mode).host("127.0.0.9").address == address


def test_an_unknown_job_without_accounting_is_forgotten(play: Play) -> None:
    play("echo slurm_load_jobs error: Invalid job id specified >&2; exit 1")
    assert slurm_calls.job_facts("12").state == "FORGOTTEN"


# The preflight of a node: the scenario file that it reads, and the program that reads it.

SUITE = load_scenarios(Path(__file__).parents[3] / "scenarios")


@each("scenario", SUITE, ids=lambda one: one.id)
def test_it_is_read_there_as_it_is_here_but_for_its_markers(tmp_path, scenario) -> None:
    """A marker is declared in another file, which does not go to the node."""
    file = tmp_path / "scenario.yaml"
    file.write_text(scenario_text(replace(scenario, markers=("of_our_own",))))
    assert load_scenarios(file) == (replace(scenario, markers=()),)


def test_values_that_no_script_has_are_not_in_it() -> None:
    (mpi,) = (one for one in SUITE if one.id == "h200-v3-fp8-2node-deepgemm-on")
    secret = {"HF_TOKEN": "s3cr3t", "MY_LICENCE": "s3cr3t too"}
    launch = replace(mpi.launch, pass_on={**mpi.launch.pass_on, **secret})
    text = scenario_text(replace(mpi, environment={**mpi.environment, **secret}, launch=launch))
    assert "s3cr3t" not in text
    assert "TRTLLM_DG_ENABLED" in text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the scenario file of eight GPUs, and modules that nobody may import."""
    text = scenario_text(next(one for one in SUITE if one.id == "h200-v3-fp8-2node-slurm"))
    (tmp_path / "scenario.yaml").write_text(text)
    for name in ("json.py", "argparse.py", "perfgate.py"):
        (tmp_path / name).write_text("raise SystemExit('the working folder was imported')\n")
    return tmp_path


def checked(folder: Path, *, contained: bool) -> dict[str, dict[str, str]]:
    """The checks by name, as the program prints them."""
    command = doctor_command(SUITE[0], folder, contained=contained)
    done = subprocess.run(command.argv, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert answer["machine"]["host"]
    assert "swap" in answer["observed"]
    return {one["name"]: one for one in answer["checks"]}


def test_the_program_looks_at_this_machine_and_imports_nothing_of_its_folder(folder: Path) -> None:
    checks = checked(folder, contained=False)
    assert checks["gpus"]["outcome"] == checks["engine"]["outcome"] == "failed"
    assert "slurm" not in checks, "a node does not look for further nodes"
    checks = checked(folder, contained=True)  # programs in a container are unknown
    assert checks["engine"]["outcome"] == checks["clients"]["outcome"] == "unknown"


def test_a_node_without_the_file_says_so(tmp_path: Path) -> None:
    command = doctor_command(SUITE[0], tmp_path / "elsewhere", contained=False)
    done = subprocess.run(command.argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("perfgate: ")
    assert "elsewhere" in done.stderr
    assert "Traceback" not in done.stderr
