"""Many groups in a row while something of the session is killed again and again: nothing is left,
and after enough resumed sessions every group has been measured, recorded and judged once.

PERFGATE_SOAK says how many groups (4 on each push, 50 in `make nightly`), PERFGATE_SOAK_SEED which
kills.
"""

import os
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from checkouts import NOTHING, Watched
from road_words import PLUGINS
from sizes import sized
from soaking import ENDED, EVERYTHING, Killer, begun_or_resumed, finished, judged_once, scenarios

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

GROUPS = int(os.environ.get("PERFGATE_SOAK") or sized(4, 50))
SEED = int(os.environ.get("PERFGATE_SOAK_SEED", "1"))
KILLS = GROUPS * 2 // 3
SESSIONS = KILLS + 4  # each kill can cost a session; then one that is left in peace, and some luck
PATIENCE_S = 120 + 10 * GROUPS


def test_soak(watched: Watched, tmp_path: Path) -> None:
    (watched.folder / "scenarios" / "standin.yaml").write_text(scenarios(GROUPS))
    asked = watched.folder / "temporary" / "asked"
    asked.touch()  # what else the checks see: tests/suite/test_faults.py
    assert watched.has() == {**NOTHING, "temporary files": ["asked"]}
    asked.unlink()
    killer = Killer(SEED, KILLS)
    run = watched.run_folder
    began = time.monotonic()
    statuses: list[int] = []
    found: Counter[str] = Counter()
    while len(finished(run)) < GROUPS or statuses[-1] not in ENDED:
        log = tmp_path / f"session-{len(statuses) + 1}.log"
        argv = [sys.executable, "-m", "pytest", *PLUGINS]
        with begun_or_resumed(argv, run, watched.environment, log) as session:
            killer.accompany(session, watched.processes, PATIENCE_S)
        statuses.append(session.returncode)
        left = watched.left()
        # Where everything was killed nobody lives who could remove it; and a server that is killed
        # in its first half second may not have been looked at.
        if killer.killed & {EVERYTHING, "server"}:
            found["shared memory that nobody could have known of"] += len(left.pop("shared memory"))
            for memory in watched.memories():
                memory.unlink()
        told = f"session {len(statuses)} ended in {session.returncode}\n{log.read_text()[-4000:]}"
        assert not any(left.values()), f"{left}\n{killer.told()}\n{told}"
        assert session.returncode not in (1, pytest.ExitCode.USAGE_ERROR), told
        assert len(statuses) <= SESSIONS, told
    print(
        f"soak: seed {SEED}, {judged_once(run, GROUPS)}, {killer.told()}, "
        f"{len(statuses)} sessions that ended in {statuses}, {time.monotonic() - began:.0f} s; "
        f"left behind: {dict(found)}"
    )
    assert sum(killer.done.values()) >= KILLS // 2
