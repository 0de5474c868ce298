"""Replay: a pack judged again from its own files: verdicts, check, and what is rendered of them."""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.core.rule import VERSION
from perfgate.core.untrusted_files import opened_folder
from perfgate.core.verdict import Verdict
from perfgate.plan.registered import registered
from perfgate.release.check_result import Finding, ReleaseCheck
from perfgate.release.pack_archive import Pack
from perfgate.release.pack_manifest import POLICY, RUNS, SCENARIOS, WAIVERS
from perfgate.release.policy import load_policy
from perfgate.release.recomputation import Recomputed, recompute_run
from perfgate.release.release_check import check
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus
from perfgate.release.rendered_files import ROLES, rendered_files
from perfgate.release.required_tests import SuiteTests
from perfgate.runs.ended_run import EndedRun, read_run
from perfgate.scenarios.files import load_suite

_TOLD = 10  # differences in one message
_FOLDER = "perfgate-release-"
_ABANDONED_S = 60.0  # a folder is locked at once after it was made; younger ones are left alone


@dataclass(frozen=True)
class Replayed:
    """What a pack's own files give.

    Attributes:
        check: the packed policy held against the packed runs, at the time of the manifest.
        verdicts: every verdict of the runs, computed anew from their raw files.
        not_compared: paths of reports, certificates and scripts that another perfgate rendered;
            empty: this one did, and each was rendered again and is the same.
    """

    check: ReleaseCheck
    verdicts: tuple[Recomputed, ...]
    not_compared: tuple[str, ...]
    _suite: SuiteTests
    _runs: tuple[EndedRun, ...]

    @property
    def tests(self) -> tuple[str, ...]:
        """Ids of the required tests, each once, in the policy's order."""
        return tuple(dict.fromkeys(one.test for one in self.check.tests))

    def checked_at(self, at: datetime) -> ReleaseCheck:
        """The check as of another time.

        Raises:
            ReleaseRefused: status CLOCK: a run is of a later time.
        """
        return check(self.check.policy, self._runs, self._suite, at)


def replay(pack: Pack) -> Replayed:
    """Judge a pack again. Nothing of it is believed but raw files, policy and scenarios.

    Raises:
        ReleaseRefused: OTHER_VERSION: it was judged by another rule. NOT_REPRODUCED: a verdict is
            not what the raw files give, or it cannot be told. POLICY, MIXED, CLOCK: as of `check`.
        InputError, SeveralInputErrors: the packed scenarios name an engine, client or evaluator
            that is not registered here.
        RunError: there is no room to unpack it.
    """
    _require_rule(pack)
    with _unpacked(pack) as folder:
        places = [one for one in (folder / SCENARIOS).glob("*") if one.name.isdecimal()]
        # in the order that the suite names them
        loaded = load_suite(sorted(places, key=lambda one: int(one.name)), registered())
        policy = load_policy(folder / POLICY)
        with _as_not_reproduced(pack):
            suite = SuiteTests.of(loaded)
            runs = tuple(read_run(folder / RUNS / name) for name in pack.manifest.runs)
            verdicts = tuple(verdict for run in runs for verdict in recompute_run(run, suite))
            found = check(policy, runs, suite, pack.manifest.ended_at)
    _require_reproduced(pack, runs, verdicts)
    _require_recomputed(pack, found, verdicts)
    with _as_not_reproduced(pack):
        not_compared = _require_rendered(pack, found, runs)
    return Replayed(found, verdicts, not_compared, suite, runs)


def _require_rule(pack: Pack) -> None:
    if pack.manifest.rule != VERSION:
        raise ReleaseRefused(
            ReleaseStatus.OTHER_VERSION,
            "the pack was judged by another version of the gate's rule",
            file=pack.path,
            field="manifest.json: rule",
            found=f"rule {pack.manifest.rule}, by perfgate {pack.manifest.perfgate}",
            expected=f"rule {VERSION}",
            hint=f"use perfgate {pack.manifest.perfgate}, which packed it",
        )


@contextmanager
def _unpacked(pack: Pack) -> Iterator[Path]:
    """The files of a pack in a folder that goes at the end; of a killed process, at the next call.

    Raises:
        ReleaseRefused, RunError: as of `Pack.extract`.
    """
    _remove_abandoned(Path(gettempdir()))
    with TemporaryDirectory(prefix=_FOLDER) as made:
        lock = opened_folder(Path(made))
        try:
            with suppress(OSError):  # no locks there: nobody removes it but this process
                fcntl.flock(lock, fcntl.LOCK_EX)
            pack.extract(Path(made))
            yield Path(made)
        finally:
            os.close(lock)


def _remove_abandoned(folder: Path) -> None:
    """Delete what killed processes of this user left unpacked."""
    for path in folder.glob(f"{_FOLDER}*"):
        with suppress(OSError, InputError):
            handle = opened_folder(path)
            try:
                status = os.fstat(handle)
                if status.st_uid == os.geteuid() and time.time() - status.st_mtime > _ABANDONED_S:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path)
            finally:
                os.close(handle)


@contextmanager
def _as_not_reproduced(pack: Pack) -> Iterator[None]:
    """What is wrong with a packed run is a fault of the pack, not of who verifies it."""
    try:
        yield
    except ReleaseRefused:
        raise
    except (InputError, SeveralInputErrors) as error:
        raise _not_reproduced(
            pack,
            "a run of the pack cannot be judged again",
            [str(error)],
            expected="runs as perfgate wrote them",
        ) from error


def _require_reproduced(
    pack: Pack, runs: Sequence[EndedRun], verdicts: Sequence[Recomputed]
) -> None:
    """Check that runs are named as they are packed, and their verdicts as recorded."""
    ids, listed = [one.id for one in runs], pack.manifest.runs
    if tuple(ids) != listed:
        problem = "the folders of runs are not named by their ids"
        raise _not_reproduced(pack, problem, ids, expected=", ".join(listed))
    different = [f"run {one.run}: {line}" for one in verdicts for line in one.differences]
    if different:
        raise _not_reproduced(
            pack,
            "the raw files do not give what the records say",
            different,
            expected="the recorded verdicts and numbers",
            hint="trust none of this pack; ask who made it for the run's folder",
        )


def _require_recomputed(pack: Pack, found: ReleaseCheck, verdicts: Sequence[Recomputed]) -> None:
    """Check that no test passes on the word of a record alone."""
    anew = {(one.run, one.test): one.verdict for one in verdicts}
    for one in found.tests:
        verdict = anew.get((one.run, one.test))
        if one.finding == Finding.PASSED and verdict not in (Verdict.PASS, Verdict.IMPROVEMENT):
            raise _not_reproduced(
                pack,
                "a test passes that the raw files do not let pass",
                ["no verdict" if verdict is None else verdict.value],
                field=one.test,
                expected="PASS or IMPROVEMENT, computed from the raw files",
            )


def _require_rendered(pack: Pack, found: ReleaseCheck, runs: Sequence[EndedRun]) -> tuple[str, ...]:
    """Check that reports, certificates and scripts are what check and runs give, and all is known.

    Returns:
        What cannot be compared, as another perfgate rendered it.
    """
    listed = pack.manifest.files
    rendered = {one.path: one for one in listed if one.role in ROLES}
    sources = [one for one in listed if one.role not in ROLES]
    hint = "trust none of this pack; pack the runs again"
    folders = (f"{SCENARIOS}/", *(f"{RUNS}/{run}/" for run in pack.manifest.runs))
    paths = [one.path for one in sources if one.path not in (POLICY, WAIVERS)]
    if strange := [one for one in paths if not one.startswith(folders)]:
        raise _not_reproduced(
            pack, "the pack holds what perfgate does not put there", strange, hint=hint
        )
    if pack.manifest.perfgate != version("perfgate"):
        return tuple(rendered)
    expected = {one.path: one.listed() for one in rendered_files(found, runs, sources)}
    either = sorted(expected.keys() | rendered.keys())
    if other := [one for one in either if expected.get(one) != rendered.get(one)]:
        raise _not_reproduced(
            pack,
            "a report, certificate or script is not what the pack's own runs give",
            other,
            expected="the files that perfgate release pack writes of these runs",
            hint=hint,
        )
    return ()


def _not_reproduced(pack: Pack, problem: str, found: Sequence[str], **told: Any) -> ReleaseRefused:
    more = len(found) - _TOLD
    shown = "; ".join([*found[:_TOLD], *([f"{more} more"] if more > 0 else [])])
    return ReleaseRefused(
        ReleaseStatus.NOT_REPRODUCED, problem, file=pack.path, found=shown, **told
    )
