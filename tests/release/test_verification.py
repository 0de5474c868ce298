"""What ends between a release and its verification."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from releases import AT, C1, changed, checked, policy, run
from test_release_check import waived

from perfgate.core.errors import InputError
from perfgate.release.check_result import ReleaseCheck
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
