"""What ends between a release and its verification."""

import os
import signal
import tempfile
import time
from dataclasses import dataclass
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
from perfgate.release.verification import Asked, _require_in_force, verify
from perfgate.runs.ended_run import EndedRun

PACK: Any = SimpleNamespace(path=Path("evidence.tar"))
LENIENT = policy(effects={"WAIVED": "warn"}, max_age_days=400)


@dataclass
class Judged:
    """What `replay` gives, of a made run."""

    run: EndedRun
    policy: Policy

    @property
    def check(self) -> ReleaseCheck:
        return self.checked_at(AT)

    def checked_at(self, at: datetime) -> ReleaseCheck:
        return checked(self.run, given=self.policy, at=at)


def in_force(judged: Any, now: datetime, **asked: Any) -> None:
    _require_in_force(PACK, Asked(now, **asked), judged)


def test_a_waiver_that_ended_since() -> None:
    judged = Judged(changed(run(), C1, **waived("2026-12-01")), LENIENT)
    assert judged.check.result == "WARNED"
    in_force(judged, AT + timedelta(days=7))
    later = AT + timedelta(days=9)
    with pytest.raises(ReleaseRefused, match="a waiver has ended") as told:
        in_force(judged, later)
    assert told.value.status == ReleaseStatus.EXPIRED
    assert "the waiver of Ada ended on 2026-12-01" in str(told.value)
    in_force(judged, later, at=AT)


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
