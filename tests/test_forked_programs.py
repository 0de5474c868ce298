"""Forked programs: one that is too late takes nothing from the next."""

import os
import sys
from pathlib import Path

import forked
import pytest

CALL = (sys.executable, "-m", "perfgate", "--version")


@pytest.mark.slow
def test_after_a_program_that_was_too_late_the_next_has_its_own_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def require_an_answer() -> None:
        done = forked.run(CALL, cwd=tmp_path, env=os.environ)
        assert (done.returncode, done.stdout[:9]) == (0, "perfgate "), done.stderr

    require_an_answer()
    for begun_within in (0.0, 300.0):
        monkeypatch.setattr(forked, "_BEGUN_WITHIN_S", begun_within)
        with pytest.raises(TimeoutError):
            forked.run(CALL, cwd=tmp_path, env=os.environ, timeout=0.0)
        monkeypatch.undo()
        require_an_answer()
