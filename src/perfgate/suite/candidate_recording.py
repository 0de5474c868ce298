"""Candidate recording: what a session with --record leaves for a baseline, told by its records."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from perfgate.baselines import ENOUGH_SESSIONS, Baseline, Store, read
from perfgate.baselines.noise_history import keep_noise
from perfgate.baselines.recording import record_session
from perfgate.core.redaction import mask_arguments
from perfgate.runs.folder_contents import CANDIDATES
from perfgate.runs.records import RunFolder
from perfgate.suite.options import joined, short_name

_OF_ONE_RUN = ("--run-dir=", "--resume=")


def record_candidates_of(
    run: RunFolder, arguments: Sequence[object], *, only_unjudged: bool, rehearsal: bool
) -> None:
    """Record the candidates of a finished session, and write down how far each is.

    What its starts showed of the noise is kept, whatever became of them. A copy of each candidate
    stays in the run folder, so that it can be proposed where the store of this machine is not.

    Args:
        run: its run folder.
        arguments: those of pytest, for the line that makes another such session.
        only_unjudged: leave out the scenarios that baselines judged.
        rehearsal: mocks made the numbers, which stay among rehearsals and tell no noise.

    Raises:
        InputError: an earlier candidate is unusable, or another process holds the store.
        RunError: a candidate, or what the session shows of the noise, cannot be written.
    """
    # Undecided starts are as noisy as any.
    noise = [] if rehearsal else keep_noise([run.path])
    if noise:
        run.record("noise_kept", {"files": [str(path) for path in noise]})
    paths, left_out = record_session(run.path, only_unjudged=only_unjudged, rehearsal=rehearsal)
    again = another_session([*map(str, arguments)])
    copies = Store(run.path / CANDIDATES, synthetic=rehearsal)
    for path in paths:
        candidate = read(path)
        copies.folder.mkdir(exist_ok=True)
        copies.save(candidate, merge=False)
        line = {**_how_far(candidate, path), "again": again, "synthetic": rehearsal}
        run.record("candidate", line)
    if left_out:
        run.record("not_recorded", {"reasons": left_out})


def another_session(arguments: Sequence[str]) -> str:
    """The command line that makes another session like this one, in a run folder of its own."""
    words = [one for one in joined(arguments) if not short_name(one).startswith(_OF_ONE_RUN)]
    return shlex.join(["pytest", *mask_arguments(words)])


def _how_far(candidate: Baseline, path: Path) -> dict[str, object]:
    return {
        "scenario": candidate.scenario,
        "hardware": candidate.hardware,
        "commit": candidate.engine.commit,
        "file": str(path),
        "sessions": candidate.sessions,
        "wanted": ENOUGH_SESSIONS,
    }
