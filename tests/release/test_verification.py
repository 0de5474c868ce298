"""What ends between a release and its verification."""

import os
import signal
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import made_packs
import pytest
from releases import AT, C1, changed, checked, policy, run
from test_release_check import waived

from perfgate.core.errors import InputError
from perfgate.release import verification
from perfgate.release.check_result import ReleaseCheck
from perfgate.release.pack_archive import open_pack
from perfgate.release.policy import Policy
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus
from perfgate.release.verification import Asked, Replayed, _require_in_force, verify
from perfgate.runs.ended_run import EndedRun

PACK: Any = SimpleNamespace(path=Path("evidence.tar"))


def judged(run: EndedRun, given: Policy) -> Replayed:
    def checked_at(at: datetime) -> ReleaseCheck:
        return checked(run, given=given, at=at)

    return Replayed(checked_at(AT), (), (), checked_at)


def test_a_waiver_that_ended_since() -> None:
    lenient = policy(effects={"WAIVED": "warn"}, max_age_days=400)
    found = judged(changed(run(), C1, **waived("2026-12-01")), lenient)
    assert found.check.result == "WARNED"
    _require_in_force(PACK, Asked(AT + timedelta(days=7)), found)
    later = AT + timedelta(days=9)
    with pytest.raises(ReleaseRefused, match="a waiver has ended") as told:
        _require_in_force(PACK, Asked(later), found)
    assert told.value.status == ReleaseStatus.EXPIRED
    assert "the waiver of Ada ended on 2026-12-01" in str(told.value)
    _require_in_force(PACK, Asked(later, at=AT), found)


def test_somebody_must_be_trusted() -> None:
    with pytest.raises(InputError, match="whose signature would count"):
        verify(PACK, Asked(AT))
    with pytest.raises(InputError, match="whose signature would count"):
        verify(PACK, Asked(AT, policy=policy()))


def test_what_a_killed_process_unpacked_goes_at_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    pack = open_pack(made_packs.write(tmp_path / "evidence.tar"))
    links, others = tmp_path / "perfgate-release-link", tmp_path / "other"
    others.mkdir()
    links.symlink_to(others)
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        with verification._unpacked(pack) as folder:
            os.write(writing, os.fsencode(folder))
            time.sleep(600)
    left = Path(os.fsdecode(os.read(reading, 4096)))
    os.utime(left, (0, 0))
    with verification._unpacked(pack) as folder:
        assert left.exists()  # its process lives
        assert (folder / "policy/release.yaml").is_file()
    assert not folder.exists()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with verification._unpacked(pack):
        assert not left.exists()
    assert others.exists()
