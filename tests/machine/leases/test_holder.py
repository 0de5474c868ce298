"""What others are told of a holder, and what of a text is not believed."""

import os
from dataclasses import replace

import psutil
import pytest

from perfgate.machine.leases.holder import Holder, LeaseOwner, holder_in

ME = Holder.now(LeaseOwner("20261121-090000-1", "b200-serve"))


def test_a_holder_reads_as_it_was_written() -> None:
    assert holder_in(ME.text()) == ME
    assert ME.pid == os.getpid()


def test_what_is_told(monkeypatch) -> None:
    holder = replace(ME, user="ada", since="2026-11-20T18:03:00+00:00")
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert str(holder) == (
        f"run 20261121-090000-1 (pid {ME.pid}, ada) since 2026-11-20 18:03 for b200-serve"
    )
    today = ME.since[11:16]
    assert f"since {today} for" in str(ME)


@pytest.mark.parametrize(
    "other",
    [replace(ME, began=ME.began - 1), replace(ME, pid=4_000_000), replace(ME, pid=10**30)],
    ids=["its number is another's now", "no such process", "no number of a process"],
)
def test_a_process_that_has_ended_is_said_to_have(other: Holder) -> None:
    assert other.has_ended
    assert "left behind when it ended" in str(other)


def test_nothing_is_said_of_a_process_that_cannot_be_seen(monkeypatch) -> None:
    assert not ME.has_ended
    assert not replace(ME, pid=4_000_000, namespace="pid:[1]").has_ended

    def refuse(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)  # it lives, and /proc hides it
    assert not replace(ME, pid=4_000_000).has_ended


def test_a_zombie_has_ended() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    try:
        while psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
            pass
        assert replace(ME, pid=child, began=12345).has_ended
    finally:
        os.waitpid(child, 0)


def test_what_another_user_wrote_reaches_no_terminal_as_it_is() -> None:
    holder = holder_in(replace(ME, user="\x1b[2Jada\n" + "x" * 1000).text())
    assert holder is not None
    assert holder.user.startswith("?[2Jada?xxx")
    assert len(holder.user) == 120


@pytest.mark.parametrize(
    "text",
    ["", "{", "null", "[1]", "{}", '{"pid": "x"}', "[" * 65_000, '{"pid": ' + "9" * 6000 + "}"],
)
def test_a_text_that_is_none_names_nobody(text: str) -> None:
    assert holder_in(text) is None


@pytest.mark.parametrize("name", ["pid", "began", "namespace", "user", "run", "scenario", "since"])
def test_a_text_that_lacks_or_spoils_a_field_names_nobody(name: str) -> None:
    assert Holder.read({**ME.plain(), name: []}) is None
    assert Holder.read({key: value for key, value in ME.plain().items() if key != name}) is None
