"""The local launcher: what it writes, refuses and keeps of a hang, and how a program ended."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest
from refusals import refused
from tables import each
from witnesses import HIDERS, eventually, living, program, signed

from perfgate.core.errors import MissingProgram, RunError
from perfgate.core.files.untrusted_files import UntrustedFile
from perfgate.core.programs.command import Command
from perfgate.launchers.local import job as local_job
from perfgate.launchers.local import launcher as local
from perfgate.launchers.local.job import MARK, LocalJob, marked
from perfgate.launchers.local.launcher import LocalLauncher


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


SAYS = "import os, sys; print('one', flush=True); print('two', file=sys.stderr, flush=True); "


@each("end, status", [("exit()", 0), ("exit(3)", 3), ("os.kill(os.getpid(), 11)", -11)])
def test_status_output_and_errors_of_a_program_are_those_of_this_job_alone(start, end, status):
    job = start(*python(SAYS + end))
    ended = job.wait()
    assert (ended.status, ended.reason, ended.leftovers) == (status, "exited", ())
    assert (job.stdout.read_text(), job.stderr.read_text()) == ("one\n", "two\n")
    assert (job.stdout.name, job.tail()) == ("job.out", ("one", "two"))


ITS_OWN = """\
import os, sys
print(*(os.environ[name] for name in ('FROM_CALLER', 'REPLACED', 'TERM')))
print(os.environb[b'UNDECODABLE'], sys.stdin.read() == '')
print(os.getsid(0) == os.getpgrp() == os.getpid())
"""
LARGE = {f"LARGE_{number}": "x" * 100_000 for number in range(5)}  # more than a pipe holds


@each(
    "argv, env, output",
    [
        (python(ITS_OWN), {"REPLACED": "c"}, "a c dumb\nb'\\xff' True\nTrue\n"),
        (python("import os; print(sum(map(len, os.environ.values())) > 5e5)"), LARGE, "True\n"),
        (("echo", "$HOME", "*", "a  b; echo c"), {}, "$HOME * a  b; echo c\n"),
    ],
)
def test_what_a_program_gets(start, monkeypatch, argv, env, output):
    monkeypatch.setenv("FROM_CALLER", "a")
    monkeypatch.setenv("REPLACED", "b")
    monkeypatch.setenv("UNDECODABLE", os.fsdecode(b"\xff"))
    monkeypatch.delenv("TERM", raising=False)
    job = start(*argv, env=env)
    job.wait()
    assert job.stdout.read_text() == output


@each("ignored", [(), (signal.SIGINT, signal.SIGQUIT)])
def test_the_program_hears_all_signals_whatever_perfgate_ignores(start, ignored):
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ignored}
    try:
        job = start("cat", "/proc/self/status")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    job.wait()
    masks = dict(line.split(":\t") for line in job.stdout.read_text().splitlines() if "Sig" in line)
    # Signals 1 to 31: those above are the C library's own, or inherited from who runs the tests.
    assert {int(masks[name], 16) & 0x7FFFFFFF for name in ("SigBlk", "SigIgn")} == {0}


def test_files_are_in_the_working_folder_and_the_script_runs_the_same_again(start, tmp_path):
    code = "import os; print(open('sub/in').read(), os.environ['TRTLLM_WORD'])"
    (work := tmp_path / "work").mkdir()
    job = start(*python(code), files={"sub/in": "é"}, env={"TRTLLM_WORD": "it's"}, cwd=work)
    job.wait()
    (work / "sub/in").unlink()
    again = subprocess.run([job.folder / "job.sh"], cwd=tmp_path, capture_output=True, text=True)
    assert again.stdout == job.stdout.read_text() == "é it's\n"
    assert not (job.folder / "sub").exists()


@pytest.mark.parametrize(
    ("name", "content", "mode"),
    [
        *((name, "", 0o644) for name in ("no-such-tool", "./no-such-tool", "/no/such/tool")),
        *(("", text, 0o755) for text in ("#!/no/such/interpreter\n", "text")),
        ("", "text", 0o644),
    ],
)
def test_what_cannot_be_executed_is_missing_and_leaves_none(start, tmp_path, name, content, mode):
    (tmp_path / "tool").write_text(content)
    (tmp_path / "tool").chmod(mode)
    before = psutil.Process().children(recursive=True)
    with pytest.raises(MissingProgram, match=r"cannot start .*tool"):
        start(name or str(tmp_path / "tool"), files={"a.txt": ""})
    assert psutil.Process().children(recursive=True) == before
    assert not any((tmp_path / "run").glob("*"))


def test_folders_that_cannot_be_used_are_told(start, tmp_path):
    refused(start, "true", cwd=tmp_path / "nowhere", match="no such working folder")
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match=r"cannot write .*file: Not a directory") as error:
        LocalLauncher().start(Command(("true",)), tmp_path / "file", "job")
    assert error.value.failure == "unwritable"


@pytest.mark.parametrize("name", ["job.sh", "job.out", "job.err", "in.txt"])
def test_a_link_in_place_of_what_a_launch_writes_is_refused(start, tmp_path, name):
    (tmp_path / "foreign").write_text("precious\n")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).symlink_to(tmp_path / "foreign")
    with pytest.raises(UntrustedFile, match=f"{name}: not a regular file"):
        start("true", files={"in.txt": "other"})
    assert (tmp_path / "foreign").read_text() == "precious\n"


def test_a_program_that_puts_links_in_place_of_its_logs_is_not_believed(start, tmp_path):
    (tmp_path / "foreign").write_text("root:x:secret\n")
    job = start("sh", "-c", "ln -sf ../foreign job.err; ln -sf ../foreign job.evidence.txt")
    job.wait()
    (told,) = job.tail(5)
    assert told.endswith("job.err: not a regular file, so it is not opened")
    refused(job.keep_evidence, "it hangs", match="a symbolic link to", error=UntrustedFile)
    assert (tmp_path / "foreign").read_text() == "root:x:secret\n"


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_raw_logs_and_files_with_secrets_are_for_their_owner_alone(start, umask):
    files = {"plain.yaml": "a: 1", "secret.yaml": "api_key: abc"}
    before = os.umask(umask)
    try:
        job = start("echo", "x", files=files, stdout="result.txt")
        job.wait()
    finally:
        os.umask(before)
    modes = {one.name: one.stat().st_mode & 0o777 for one in job.folder.iterdir()}
    assert modes == {
        "job.sh": 0o777 & ~umask,
        "plain.yaml": 0o644 & ~umask,
        **dict.fromkeys(("result.txt", "job.err", "secret.yaml"), 0o600),
    }


def test_a_full_disk_is_a_run_error(start, tmp_path, monkeypatch):
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(local, "created_regular", Mock(side_effect=full))
    refused(start, "true", match="disk_full", error=RunError)
    assert not any((tmp_path / "run").iterdir())


def test_cpu_time_counts_orphans_that_have_ended(start):
    burn = "import time\nwhile time.process_time() < 0.6: pass"
    job = start("sh", "-c", '( ( "$0" -c "$1" && touch burnt ) & ) ; sleep 600', *python(burn)[::2])
    eventually(lambda: (job.folder / "burnt").exists() and len(job.processes()) == 2)
    eventually(lambda: job.cpu_seconds() >= 0.3)


@pytest.mark.parametrize("is_suspended", [False, True])
def test_stop_lets_an_obedient_program_end_in_its_own_way(start_hider, roll, is_suspended):
    job = start_hider("obedient")
    process = signed(roll)
    if is_suspended:
        process.suspend()
    assert job.poll() is None
    assert job.pid == process.pid
    ended = job.stop(grace_s=600)
    assert (ended.status, ended.reason, ended.leftovers) == (0, "stopped", ())
    assert job.poll() == job.stop() == ended


WATCHES_ITS_CHILD = """
import signal, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(1))
print("ready", flush=True)
while not told:
    time.sleep(0.02)
time.sleep(0.5)
if child.poll() is not None:
    sys.exit(f"its child crashed with {child.poll()}")
child.terminate()
print("ended its child with", child.wait(), flush=True)
"""


def test_stop_lets_a_program_end_its_children_before_anybody_else_does(start):
    """SGLang takes a scheduler that ends before it for a crash, and writes so into its log."""
    job = start(*python(WATCHES_ITS_CHILD))
    eventually(lambda: "ready" in job.stdout.read_text())
    assert job.stop(grace_s=60).status == 0
    assert job.stdout.read_text().splitlines()[1:] == ["ended its child with -15"]


def test_stop_asks_the_children_of_a_program_that_does_not_listen_before_it_kills_them(start):
    child = (
        "import signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: exit(print('child heard', flush=True)))\n"
        "print('child ready', flush=True)\ntime.sleep(600)"
    )
    deaf = (
        "import signal, subprocess, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"subprocess.Popen([sys.executable, '-c', {child!r}])\ntime.sleep(600)"
    )
    job = start(*python(deaf))
    eventually(lambda: "child ready" in job.stdout.read_text())
    assert job.stop(grace_s=2).status == -signal.SIGKILL
    assert "child heard" in job.stdout.read_text()


@pytest.mark.parametrize("name", [name for name in HIDERS if name != "obedient"])
def test_stop_ends_what_does_not_listen_or_hides(start_hider, roll, name):
    job = start_hider(name)
    assert {one.pid for one in job.processes()} == {signed(roll, role).pid for role in HIDERS[name]}
    ended = job.stop(grace_s=0.5)
    assert ended.reason == "stopped"
    if name == "deaf":
        assert ended.status == -signal.SIGKILL
        assert "heard SIGTERM" in job.stdout.read_text()
    assert living(roll) == []


def test_stop_ends_a_program_that_forks_itself_anew_whenever_it_is_told_to_end(start, roll):
    job = start(*program("phoenix", roll))
    eventually(lambda: signed(roll))
    job.stop(grace_s=3)
    assert len([*roll.glob("life *")]) == 20
    assert living(roll) == []


def test_what_a_program_leaves_behind_is_ended_and_named(start, roll):
    job = start(*program("daemon", roll, "--leave"))
    ended = job.wait()
    assert (ended.status, ended.reason) == (0, "exited")
    assert ended.leftovers == (Path(sys.executable).name[:15],)
    assert (roll / "daemon").exists()
    assert living(roll) == []


@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_child_that_ends_a_little_after_the_program_is_no_leftover(start, is_stopped):
    if not is_stopped:
        assert start("sh", "-c", "sleep 0.3 & exit 0").wait().leftovers == ()
        return
    child = '(trap "sleep 0.3; exit" TERM; touch ready; sleep 600) & wait'
    job = start("sh", "-c", f'trap "exit 0" TERM; {child}')
    eventually((job.folder / "ready").exists)
    ended = job.stop(grace_s=600)
    assert (ended.status, ended.leftovers) == (0, ())


def test_silence_ends_the_program_and_keeps_evidence(start):
    code = "import time\nprint('a word', flush=True)\ndef stuck_here():\n  time.sleep(600)\n"
    job = start(*python(code + "stuck_here()"))
    ended = job.wait(silence_s=1.0, total_s=600)
    assert (ended.status, ended.reason) == (-signal.SIGTERM, "silence")
    evidence = job.evidence.read_text()
    assert "it wrote nothing for 1 s" in evidence
    assert f"pid {job.pid} python" in evidence
    # Where py-spy is missing or may not look (a container without ptrace), a line says so.
    assert any(text in evidence for text in ("stuck_here (<string>:4)", "Error", "no py-spy"))


def test_a_program_that_writes_is_not_silent_though_slow_and_total_time_ends_it(start):
    talk = "import sys, time\nfor n in range(9999):\n  time.sleep(0.3)\n"
    talk += "  print(n, flush=True, file=(sys.stdout, sys.stderr)[n % 2])"
    job = start(*python(talk))
    assert job.wait(silence_s=1.5, total_s=3.0).reason == "total"
    assert "it ran 3 s" in job.evidence.read_text()


def test_ctrl_c_during_stop_still_ends_everything(start_hider, roll, monkeypatch):
    job = start_hider("deaf")
    monkeypatch.setattr(job, "_pause", lambda _: signal.raise_signal(signal.SIGINT))
    refused(job.stop, grace_s=600, error=KeyboardInterrupt)
    monkeypatch.undo()
    eventually(lambda: living(roll) == [] == marked(job.mark))
    assert job.stop().reason == "stopped"


def test_a_signal_handler_may_stop_the_job_in_the_middle_of_wait(start_hider):
    job = start_hider("obedient")
    before = signal.signal(signal.SIGUSR2, lambda *_: job.stop(600))
    try:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR2)).start()
        assert job.wait().reason == "stopped"
    finally:
        signal.signal(signal.SIGUSR2, before)


def descriptors(pid: int) -> list[Path]:
    return [*Path(f"/proc/{pid}/fd").iterdir()]


def test_two_jobs_hold_no_end_of_each_others_pipes(start, roll):
    jobs = [start("sleep", "600", name=name) for name in ("one", "two")]
    one, two = [
        {str(fd.readlink()) for warden in job._wardens for fd in descriptors(warden.pid)}
        for job in jobs
    ]
    assert not {link for link in one & two if link.startswith("pipe:")}
    for job in jobs:
        assert {fd.name for fd in descriptors(job.pid)} == {"0", "1", "2"}
    jobs[0]._control.close()
    eventually(jobs[0].poll)
    assert jobs[1].poll() is None


def test_a_job_started_by_a_thread_outlives_the_thread(start, roll):
    jobs: list[LocalJob] = []
    thread = threading.Thread(target=lambda: jobs.append(start(*program("obedient", roll))))
    thread.start()
    thread.join()
    eventually(lambda: signed(roll))
    assert jobs[0].wait(total_s=0.5).reason == "total"  # and not lost or stopped before


def test_the_programs_mark_holds_that_of_the_launch_around_it(start, monkeypatch):
    monkeypatch.setenv(MARK, "outer")
    job = start("sleep", "600")
    assert psutil.Process(job.pid).environ()[MARK] == f"outer/{job.mark}"
    assert psutil.Process(job.pid) in marked("outer")


# What is kept of a program that hangs; keeping it hinders nothing.

SERVER = "import threading; print('up', flush=True); threading.Event().wait()"
STACKS = 'echo "Process $3: python --api-key said-too"; echo "Python v3.11.7 (python)"'


@pytest.fixture
def server(start, tmp_path, monkeypatch):
    """A server with secrets, which hangs, where no py-spy is."""
    monkeypatch.setenv("HF_TOKEN", "hf_0123456789")
    python = str(psutil.Process().exe())
    job = start(python, "-c", SERVER, "--api-key", "said-too", "hf_0123456789", name="server")
    eventually(lambda: "up" in job.stdout.read_text())
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(sys, "executable", shutil.which("python3", path=os.defpath) or "")
    return job


def write_py_spy(tmp_path: Path, script: str) -> None:
    tool = tmp_path / "bin" / "py-spy"
    tool.write_text(f"#!/bin/sh\nPATH={os.defpath}\n{script}\n")
    tool.chmod(0o755)


def test_states_and_stacks_are_kept_without_secrets_and_the_program_goes_on(server, tmp_path):
    write_py_spy(tmp_path, STACKS)
    server.keep_evidence("a client hangs")
    text = server.evidence.read_text()
    assert re.match(r"....-..-..T..:..:..[+-]..:.. a client hangs\nprocesses:\n", text)
    assert re.search(rf"  pid {server.pid} python\S* sleeping, waits in \S+: ", text)
    assert f"stacks:\n  pid {server.pid}, by py-spy dump:\n  Python v3.11.7 (python)\n" in text
    assert server.poll() is None
    assert "--api-key *** ***" in text
    for secret in ("said-too", "hf_0123456789"):
        assert secret not in text


def test_without_py_spy_the_states_remain(server):
    assert server.give_up("silence", "it wrote nothing").reason == "silence"
    text = server.evidence.read_text()
    assert f"  pid {server.pid} " in text
    assert "stacks:\n  no py-spy beside " in text


def test_evidence_of_a_program_that_has_ended_is_added_to_what_there_is(server):
    server.keep_evidence("once")
    server.stop()
    server.keep_evidence("and again")
    first, again = server.evidence.read_text().split("and again\n")
    assert "once" in first
    assert "processes:\n  none is left\n" in again
    shutil.rmtree(server.folder)
    server.keep_evidence("nobody will see it")
    assert not server.folder.exists()


def test_a_full_disk_is_reported_after_the_program_has_ended(server, monkeypatch):
    monkeypatch.setattr(local_job, "opened_regular", lambda *_: os.open("/dev/full", os.O_WRONLY))
    error = refused(server.give_up, "silence", "it wrote nothing", error=RunError)
    assert error.failure == "disk_full"
    assert server.poll() is not None


def test_a_py_spy_that_hangs_is_given_up(server, tmp_path, monkeypatch):
    monkeypatch.setattr(local_job, "STACKS_S", 0.2)
    write_py_spy(tmp_path, "exec sleep 600")
    server.keep_evidence("a client hangs")
    assert "/py-spy in 0 s" in server.evidence.read_text()
    assert server.poll() is None


def test_a_process_that_cannot_be_read_is_given_up(server, tmp_path, monkeypatch):
    stuck = tmp_path / "stuck.py"
    state = {"pid": "7", "name": "x", "state": "disk sleep", "waits": "nvidia_ioctl", "argv": []}
    stuck.write_text(f"import time; print({json.dumps(state)!r}, flush=True); time.sleep(60)")
    monkeypatch.setattr(local_job, "LOOK", stuck)
    monkeypatch.setattr(local_job, "EVIDENCE_S", 0.5)
    server.keep_evidence("a client hangs")
    head = "processes:\n  pid 7 x disk sleep, waits in nvidia_ioctl: \n  no more: no answer from "
    assert head in server.evidence.read_text()
