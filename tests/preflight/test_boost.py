"""Boost: the slider is where it was before, whatever happens in between.

nvidia-smi is a stand-in, whose table is made as the project knows it: no GPU was at hand.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from perfgate.errors import InputError, MissingProgram, RunError
from perfgate.preflight import boost
from perfgate.preflight.boost import NotPermitted, boosted, levels

PROGRAMS = Path(__file__).with_name("programs")
SMI = [sys.executable, str(PROGRAMS / "nvidia_smi.py")]


class Smi:
    """The stand-in's memory, and what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.set(levels={"0": 0, "1": 2})

    def set(self, **state) -> None:
        (self.folder / "state.json").write_text(json.dumps({"most": 4, **state}))

    @property
    def levels(self) -> dict[str, int]:
        return json.loads((self.folder / "state.json").read_text())["levels"]

    @property
    def calls(self) -> list[str]:
        return [" ".join(line["argv"][1:]) for line in self.lines if line["what"] == "begins"]

    @property
    def lines(self) -> list[dict]:
        file = self.folder / "calls.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Smi:
    monkeypatch.setenv("PERFGATE_PROGRAM_NVIDIA_SMI", shlex.join(SMI))
    monkeypatch.setenv("MADE_SMI", str(tmp_path))
    return Smi(tmp_path)


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
    assert caught.value.hint == "run as root or without vboost"
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


@pytest.mark.parametrize(
    "state",
    [
        {"levels": {}},
        {"levels": {"0": "N/A"}},
        {"levels": {"0": 0}, "name": "other"},
        {"levels": {"0": 0}, "list_fails_from": 1},
    ],
)
def test_what_cannot_be_read_is_not_touched(smi: Smi, state: dict) -> None:
    smi.set(**state)
    with pytest.raises(RunError, match="cannot be read, so it could not be put back"), boosted(1):
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


def test_an_nvidia_smi_that_hangs_is_given_up(smi: Smi, monkeypatch: pytest.MonkeyPatch) -> None:
    smi.set(levels={"0": 0}, seconds=30)
    monkeypatch.setattr(boost, "CALL_S", 1.0)
    began = time.monotonic()
    with pytest.raises(RunError, match="could not be set"), boosted(4):
        pytest.fail("the block must not run")
    assert time.monotonic() - began < 10


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


def test_handlers_are_what_they_were(smi: Smi) -> None:
    before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    with boosted(4):
        pass
    after = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    assert after == before


def start(level: int, seconds: float) -> "subprocess.Popen[str]":
    """In a group of its own, as a shell starts what Ctrl-C then goes to."""
    return subprocess.Popen(
        [sys.executable, str(PROGRAMS / "boosting.py"), str(level), str(seconds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
)
def test_put_back_when_it_is_ended(smi: Smi, number: int, status: int) -> None:
    with start(4, 60) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "boosted\n"
        assert smi.levels == {"0": 4, "1": 4}
        program.send_signal(number)
        program.communicate(timeout=30)
    assert program.returncode == status
    assert smi.levels == {"0": 0, "1": 2}


def test_put_back_when_it_is_ended_again_and_again(smi: Smi) -> None:
    smi.set(levels={"0": 0, "1": 2}, seconds=0.4)
    with start(4, 60) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "boosted\n"
        while program.poll() is None:
            program.send_signal(signal.SIGTERM)
            program.send_signal(signal.SIGINT)
            time.sleep(0.05)
            if smi.levels == {"0": 0, "1": 2}:
                break  # from here on nothing holds signals back
        program.communicate(timeout=30)
    assert smi.levels == {"0": 0, "1": 2}


def test_ended_while_it_is_put_back_is_ended_afterwards(smi: Smi) -> None:
    smi.set(levels={"0": 0, "1": 2}, seconds=1.0)
    with start(4, 0) as program:
        wait_for(lambda: "-i 0 --vboost 0" in smi.calls)
        program.send_signal(signal.SIGTERM)
        out, _ = program.communicate(timeout=30)
    assert (program.returncode, out) == (-signal.SIGTERM, "boosted\n")
    assert smi.levels == {"0": 0, "1": 2}


def test_a_ctrl_c_does_not_end_nvidia_smi_half_way(smi: Smi) -> None:
    smi.set(levels={"0": 0, "1": 2}, seconds=1.0)
    with start(4, 0) as program:
        wait_for(lambda: "-i 0 --vboost 0" in smi.calls)
        os.killpg(program.pid, signal.SIGINT)
        program.communicate(timeout=30)
    assert smi.levels == {"0": 0, "1": 2}
    assert [line["what"] for line in smi.lines] == ["begins", "ends"] * 7


def test_ended_while_it_is_set(smi: Smi) -> None:
    smi.set(levels={"0": 0, "1": 2}, seconds=1.0)
    with start(4, 60) as program:
        wait_for(lambda: "-i 0,1 --vboost 4" in smi.calls)
        program.send_signal(signal.SIGTERM)
        program.communicate(timeout=30)
    assert program.returncode == 143
    assert smi.levels == {"0": 0, "1": 2}


def wait_for(happened) -> None:
    deadline = time.monotonic() + 20
    calls = Path(os.environ["MADE_SMI"]) / "calls.jsonl"
    while not calls.exists() or not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_levels(smi: Smi) -> None:
    assert levels() == {"0": (0, 4), "1": (2, 4)}
    assert levels(["1"]) == {"1": (2, 4)}
