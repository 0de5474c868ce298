"""Reach: what programs answer, and what that amounts to. Programs here are small scripts."""

import time

import pytest
from tables import each

from perfgate.core.program_query import Answer
from perfgate.machine.preflight import reachability as reach

WELL = Answer(0, "")
UNASKED = "a, b: checked only with --reach, which contacts other machines"


def test_programs_speak_english(programs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    programs("scontrol", "echo $LC_ALL")
    assert reach.ask(("scontrol", "ping")) == Answer(0, "C\n")


def test_why_there_is_no_answer(programs) -> None:
    programs("scontrol", "exec sleep 30")
    assert reach.ask(("scontrol", "ping"), 0.2).text == "no answer in 0.2 s"
    missing = reach.ask(("no-such-program",))
    assert missing == Answer(None, why="no no-such-program on PATH")
    assert reach.judge_pyxis(missing).outcome == "failed"


def test_hosts_are_asked_at_the_same_time_and_for_nothing(programs) -> None:
    log = programs("ssh", 'sleep 0.5; case "$*" in *node2*) echo refused >&2; exit 255;; esac')
    began = time.monotonic()
    replies = reach.ask_hosts([f"node{number}" for number in range(1, 7)], 2233)
    assert time.monotonic() - began < 2.5
    assert replies["node1"] == Answer(0, "")
    assert replies["node2"] == Answer(255, "", "refused\n")
    assert "-o BatchMode=yes -o ConnectTimeout=5 -p 2233 -- node1 true" in log.read_text()


def test_a_host_is_never_taken_for_an_option() -> None:
    assert reach.ssh_call("-oProxyCommand=x", None)[-3:] == ("--", "-oProxyCommand=x", "true")


@each(
    ("ping", "outcome"),
    [
        (Answer(0, "Slurmctld(primary) at ctl is UP"), "ok"),
        (Answer(0, "Slurmctld(primary) at a is DOWN\nSlurmctld(backup) at b is UP"), "ok"),
        (Answer(1, "Slurmctld(primary) at ctl is UP"), "failed"),
        (Answer(None, why="no answer in 5 s"), "failed"),
        (Answer(0, ""), "failed"),
    ],
)
def test_slurm(ping: Answer, outcome: str) -> None:
    check = reach.judge_slurm(ping)
    assert check.outcome == outcome
    assert check.found == (" ".join(ping.text.split()) or "no output")


@each(
    ("hosts", "replies", "outcome", "found"),
    [
        (("a", "b"), {"a": WELL, "b": WELL}, "ok", "a, b"),
        (("a", "b"), {"a": WELL, "b": Answer(255, "No\nway")}, "failed", "b: No way"),
        (("a", "b"), {"a": WELL, "b": Answer(255, "")}, "failed", "b: status 255"),
        (("a",), None, "failed", "a in PERFGATE_HOSTS"),
        ((), {}, "failed", "none in PERFGATE_HOSTS"),
        (("a", "b"), None, "unknown", UNASKED),
    ],
)
def test_hosts(hosts, replies, outcome: str, found: str) -> None:
    check = reach.judge_hosts(hosts, 2, replies)
    assert (check.outcome, check.found) == (outcome, found)
