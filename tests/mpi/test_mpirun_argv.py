"""The argv that mpirun is given, and what its exit status means."""

from pathlib import Path

from tables import each

from perfgate.core.programs.command import Command
from perfgate.launchers.base import Exit
from perfgate.launchers.mpirun.launcher import started_by, status_of_rank
from perfgate.launchers.site import MpirunSite

PROGRAM = ("/usr/bin/mpirun",)
SERVE = Command(("/bin/serve", "--port", "1"), env={"HF_TOKEN": "hf_1", "A": "b c"})


def started(command: Command = SERVE, **changes: object) -> tuple[str, ...]:
    site = changes.pop("site", MpirunSite())
    plain: dict[str, object] = {"ssh_port": None, "mark": "m/n", "environment": (), "root": False}
    arguments = {**plain, **changes}
    return started_by(PROGRAM, command, Path("/runs/x"), "n1", site, **arguments)  # type: ignore[arg-type]


def test_a_command_of_its_own_is_one_process_on_one_host_bound_to_no_core() -> None:
    assert started() == (
        *("/usr/bin/mpirun", "--wdir", "/runs/x", "-x", "HF_TOKEN", "-x", "A"),
        *("-x", "PERFGATE_LAUNCH=m/n", "--bind-to", "none", "-H", "n1:1", "-n", "1"),
        *("/bin/serve", "--port", "1"),
    )


def test_what_the_site_says_is_said() -> None:
    site = MpirunSite(
        rsh_agent="ssh -F /etc/x",
        mca={"btl_tcp_if_include": "eth0"},
        pass_on=("HF_HOME", "NOT_SET"),
        options=("--bind-to socket", "--report-bindings"),
    )
    argv = started(site=site, ssh_port=2233, root=True, environment=("HF_HOME", "HOME"))
    assert argv[: argv.index("-H")] == (
        *("/usr/bin/mpirun", "--allow-run-as-root", "-mca", "btl_tcp_if_include", "eth0"),
        *("-mca", "plm_rsh_agent", "ssh -F /etc/x", "-mca", "plm_rsh_args", "-p 2233"),
        *("--wdir", "/runs/x", "--bind-to", "socket", "--report-bindings"),
        *("-x", "HF_HOME", "-x", "HF_TOKEN", "-x", "A", "-x", "PERFGATE_LAUNCH=m/n"),
    )


def test_a_documented_call_keeps_its_own_options_and_they_win() -> None:
    call = Command((*PROGRAM, "-mca", "plm_rsh_args", "-p 1", "-x", "A=doc", "-n", "4", "x"))
    site = MpirunSite(mca={"plm_rsh_args": "-p 7"}, pass_on=("A",))
    argv = started(call, site=site, ssh_port=2233, environment=("A",))
    assert argv.count("plm_rsh_args") == 1  # twice is an error
    assert argv[argv.index("plm_rsh_args") + 1] == "-p 1"
    # Of a variable that is named twice the last counts.
    assert argv.index("A") < argv.index("A=doc")
    assert "--bind-to" not in argv
    named = Command((*PROGRAM, "-x", "A", "-n", "4", "x"), env={"A": "1"})
    assert started(named).count("A") == 1


NOTICED = "mpirun noticed that process rank 1 with PID 9 on node n1 exited on signal {} (x).\n"


@each(
    "told, said, meant",
    [
        *((told, "", told) for told in (0, 7, 205, 255, None)),
        (137, NOTICED.format(9), -9),
        (139, NOTICED.format(11), -11),
        (137, "", -9),  # of a rank that is a shell
        (132, "could not access\nor execute an executable", 132),
        (135, "could not\nchange to the specified working directory", 135),
        (135, NOTICED.format(7), -7),
    ],
)
def test_a_ranks_signal_is_told_as_a_signal(
    tmp_path: Path, told: int | None, said: str, meant: int | None
) -> None:
    (tmp_path / "log").write_text(said)
    assert status_of_rank(Exit(told, "exited", 1.0), tmp_path / "log") == meant
