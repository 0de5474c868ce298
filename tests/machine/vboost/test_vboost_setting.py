"""Boost: the slider is where it was before, whatever happens in between.

nvidia-smi is a stand-in (made_smi).
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from made_smi import Smi, smi

from perfgate.core.errors import InputError, MissingProgram, RunError
from perfgate.machine.leases import GpuPool
from perfgate.machine.vboost.setting import NotPermitted, boosted

PROGRAMS = Path(__file__).with_name("programs")
BEFORE = {"0": 0, "1": 2}

__all__ = ["smi"]

pytestmark = pytest.mark.slow


def test_set_seen_and_put_back(smi: Smi) -> None:
    with boosted(4) as before:
        assert before == {"0": 0, "1": 2}
        assert smi.levels == {"0": 4, "1": 4}
    assert smi.levels == {"0": 0, "1": 2}
    assert smi.calls == [
        "-l",
        "-i 0,1 --vboost 4",
        "-l",
        "-l",
        "-i 0 --vboost 0",
        "-i 1 --vboost 2",
        "-l",
    ]
    # No call outlives the one that made it.
    assert [line["what"] for line in smi.lines] == ["begins", "ends"] * 7


def test_only_the_gpus_that_are_named(smi: Smi) -> None:
    with boosted(3, ["1"]):
        assert smi.levels == {"0": 0, "1": 3}
    assert smi.levels == {"0": 0, "1": 2}


def test_put_back_when_the_block_fails(smi: Smi) -> None:
    with pytest.raises(ZeroDivisionError), boosted(4):
        raise ZeroDivisionError
    assert smi.levels == {"0": 0, "1": 2}


def test_without_the_right_nothing_changes_and_that_is_said(smi: Smi) -> None:
    smi.set(levels={"0": 0}, refuse="permission")
    with pytest.raises(NotPermitted) as caught, boosted(4):
        pytest.fail("the block must not run")
    assert "not permitted" in caught.value.message
    assert caught.value.hint == "requires root; or run without vboost"
    assert "Insufficient Permissions" in caught.value.evidence[0]
    assert smi.calls == ["-l", "-i 0 --vboost 4", "-l"]


def test_half_set_is_put_back(smi: Smi) -> None:
    smi.set(levels={"0": 1, "1": 1}, fails_after=1)
    with pytest.raises(RunError, match="could not be set to 4 on GPU 0, 1"), boosted(4):
        pytest.fail("the block must not run")
    assert smi.levels == {"0": 1, "1": 1}


def test_set_is_believed_only_when_seen(smi: Smi) -> None:
    smi.set(levels={"0": 0}, pretends=True)
    with pytest.raises(RunError, match="GPU 0: 0, not 4"), boosted(4):
        pytest.fail("the block must not run")


@pytest.mark.parametrize("level", [-1, 5])
def test_a_level_that_there_is_not(smi: Smi, level: int) -> None:
    with pytest.raises(InputError, match="0 to 4"), boosted(level):
        pytest.fail("the block must not run")
    assert smi.calls == ["-l"]


def test_one_gpu_without_a_level_stops_all(smi: Smi) -> None:
    with pytest.raises(RunError, match="level of GPU 7 cannot be read"), boosted(1, ["0", "7"]):
        pytest.fail("the block must not run")


def test_put_back_blindly_when_the_levels_cannot_be_read_any_more(smi: Smi) -> None:
    smi.set(levels={"0": 0, "1": 2}, list_fails_from=3)
    with pytest.raises(RunError, match="cannot be read"), boosted(4):
        pass
    assert smi.levels == {"0": 0, "1": 2}


def test_without_nvidia_smi(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PERFGATE_PROGRAM_NVIDIA_SMI", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingProgram, match="nvidia-smi is not installed"), boosted(1):
        pytest.fail("the block must not run")


def test_in_another_thread(smi: Smi) -> None:
    seen = []

    def hold() -> None:
        with boosted(4):
            seen.append(smi.levels)

    thread = threading.Thread(target=hold)
    thread.start()
    thread.join(20)
    assert seen == [{"0": 4, "1": 4}]
    assert smi.levels == {"0": 0, "1": 2}


def start(level: int, seconds: float, *more: str) -> "subprocess.Popen[str]":
    """In a group of its own, as a shell starts what Ctrl-C then goes to."""
    return subprocess.Popen(
        [sys.executable, str(PROGRAMS / "boosting.py"), str(level), str(seconds), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL], ids=str
)
def test_put_back_however_it_is_ended(smi: Smi, number: int) -> None:
    with start(4, 60) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "boosted\n"
        assert smi.levels == {"0": 4, "1": 4}
        program.send_signal(number)
        program.communicate(timeout=30)
    assert program.returncode == -number
    wait_for(lambda: smi.levels == BEFORE)


def test_put_back_when_it_is_ended_again_and_again(smi: Smi) -> None:
    smi.set(levels=BEFORE, seconds=0.4)
    with start(4, 60) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "boosted\n"
        while program.poll() is None:
            program.send_signal(signal.SIGINT)
            time.sleep(0.05)
        program.communicate(timeout=30)
    wait_for(lambda: smi.levels == BEFORE)


def test_ended_while_it_is_put_back(smi: Smi) -> None:
    smi.set(levels={"0": 0, "1": 2}, seconds=1.0)
    with start(4, 0) as program:
        wait_for(lambda: "-i 0 --vboost 0" in smi.calls)
        program.send_signal(signal.SIGTERM)
        out, _ = program.communicate(timeout=30)
    assert (program.returncode, out) == (-signal.SIGTERM, "boosted\n")
    wait_for(lambda: smi.levels == BEFORE)


def test_a_ctrl_c_does_not_end_nvidia_smi_half_way(smi: Smi) -> None:
    smi.set(levels=BEFORE, seconds=1.0)
    with start(4, 0) as program:
        wait_for(lambda: "-i 0 --vboost 0" in smi.calls)
        os.killpg(program.pid, signal.SIGINT)
        program.communicate(timeout=30)
    wait_for(lambda: smi.levels == BEFORE and smi.lines[-1]["what"] == "ends")
    assert [line["what"] for line in smi.lines] == ["begins", "ends"] * 7


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=str)
def test_ended_while_it_is_set(smi: Smi, number: int) -> None:
    smi.set(levels=BEFORE, seconds=1.0)
    with start(4, 60) as program:
        wait_for(lambda: "-i 0,1 --vboost 4" in smi.calls)
        program.send_signal(number)
        program.communicate(timeout=30)
    assert program.returncode == -number
    wait_for(lambda: "-i 1 --vboost 2" in smi.calls and smi.levels == BEFORE)


def keeper() -> psutil.Process:
    """The process that keeps the slider for this one."""
    (found,) = [
        child
        for child in psutil.Process().children()
        if "perfgate.machine.vboost.keeper" in child.cmdline()
    ]
    return found


def test_put_back_here_when_the_keeper_was_killed(smi: Smi) -> None:
    with boosted(4):
        keeper().kill()
    assert smi.levels == BEFORE


def test_signals_do_what_they_did_before(smi: Smi) -> None:
    ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(one) for one in ending]
    with boosted(4):
        assert [signal.getsignal(one) for one in ending] == before


def test_who_ends_the_session_still_does_where_it_cannot_be_put_back(smi: Smi) -> None:
    def interrupt() -> None:
        with boosted(4):
            smi.set(levels={"0": 4, "1": 4}, refuse="permission")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        interrupt()
    assert "not permitted" in "".join(caught.value.__notes__)


def test_a_slider_that_cannot_be_put_back_is_an_error(smi: Smi) -> None:
    with pytest.raises(NotPermitted), boosted(4):
        smi.set(levels={"0": 4, "1": 4}, refuse="permission")


def test_the_leases_of_a_killed_process_last_until_it_is_put_back(
    smi: Smi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "locks").mkdir()
    monkeypatch.setenv("PERFGATE_LEASES", str(tmp_path / "locks"))
    monkeypatch.setenv("PERFGATE_FAKE_GPUS", "2")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with start(4, 60, "leased") as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "boosted\n"
        smi.set(levels={"0": 4, "1": 4}, seconds=1.0)
        program.kill()
        program.wait(30)  # not for the end of its streams, which the keeper has, too
    mine = GpuPool.of_machine().lease(2, whole=True, run="other", wait_s=60, tell=lambda _: None)
    with mine:
        assert smi.levels == BEFORE


def wait_for(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)
