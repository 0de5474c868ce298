"""Pack replay: a pack judged again from its own files: every verdict, then the release check."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.core.rule import VERSION
from perfgate.core.verdict import Verdict
from perfgate.judging.assembly.claims import claims_of_suite
from perfgate.plan.registered import registered
from perfgate.release.check_result import Finding, ReleaseCheck
from perfgate.release.pack_layout import POLICY, RUNS, SCENARIOS
from perfgate.release.pack_reader import Pack
from perfgate.release.policy import Policy
from perfgate.release.policy_file import load_policy
from perfgate.release.recomputation import Recomputed, recompute_run
from perfgate.release.release_check import check
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus
from perfgate.runs.ended_run import EndedRun, read_run
from perfgate.scenarios.claims import claims_of
from perfgate.scenarios.files import LoadedSuite, load_suite

_TOLD = 10  # differences in one message


@dataclass(frozen=True)
class Replayed:
    """What a pack's own files give.

    Attributes:
        policy: the packed one.
        check: it, held against the packed runs, at the time of the manifest.
        verdicts: every verdict of the runs, computed anew from their raw files.
    """

    policy: Policy
    check: ReleaseCheck
    verdicts: tuple[Recomputed, ...]
    _suite: LoadedSuite
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
        return _checked(self.policy, self._suite, self._runs, at)


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
        suite = load_suite(_scenario_folders(folder), registered())
        policy = load_policy(folder / POLICY)
        claims = claims_of(suite.scenarios, suite.claims)
        folders = [folder / RUNS / name for name in pack.manifest.runs]
        with _as_not_reproduced(pack):
            runs = tuple(map(read_run, folders))
            verdicts = tuple(
                one for run in folders for one in recompute_run(run, suite.scenarios, claims)
            )
            found = _checked(policy, suite, runs, datetime.fromisoformat(pack.manifest.ended))
    _require_ids(pack, runs)
    _require_reproduced(pack, verdicts)
    _require_recomputed(pack, found, verdicts)
    return Replayed(policy, found, verdicts, suite, runs)


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
    with TemporaryDirectory(prefix="perfgate-release-") as made:
        yield pack.extracted(Path(made) / "pack")


def _scenario_folders(folder: Path) -> list[Path]:
    """The numbered places of scenario files, in the order that the suite names them."""
    there = [one for one in (folder / SCENARIOS).glob("*") if one.name.isdecimal()]
    return sorted(there, key=lambda one: int(one.name))


def _checked(
    policy: Policy, suite: LoadedSuite, runs: Sequence[EndedRun], at: datetime
) -> ReleaseCheck:
    claims = claims_of_suite(suite)
    return check(policy, runs, suite.scenarios, claims, at, markers=suite.markers)


@contextmanager
def _as_not_reproduced(pack: Pack) -> Iterator[None]:
    """What is wrong with a packed run is a fault of the pack, not of who verifies it."""
    try:
        yield
    except ReleaseRefused:
        raise
    except (InputError, SeveralInputErrors) as error:
        raise ReleaseRefused(
            ReleaseStatus.NOT_REPRODUCED,
            "a run of the pack cannot be judged again",
            file=pack.path,
            found=str(error),
            expected="runs as perfgate wrote them",
        ) from error


def _require_ids(pack: Pack, runs: Sequence[EndedRun]) -> None:
    ids = tuple(one.id for one in runs)
    if ids != pack.manifest.runs:
        raise ReleaseRefused(
            ReleaseStatus.NOT_REPRODUCED,
            "the folders of runs are not named by their ids",
            file=pack.path,
            found=", ".join(ids),
            expected=", ".join(pack.manifest.runs),
        )


def _require_reproduced(pack: Pack, verdicts: Sequence[Recomputed]) -> None:
    different = [f"run {one.run}: {line}" for one in verdicts for line in one.differences]
    if different:
        more = len(different) - _TOLD
        raise ReleaseRefused(
            ReleaseStatus.NOT_REPRODUCED,
            "the raw files do not give what the records say",
            file=pack.path,
            found="; ".join([*different[:_TOLD], *([f"{more} more"] if more > 0 else [])]),
            expected="the recorded verdicts and numbers",
            hint="trust none of this pack; ask who made it for the run's folder",
        )


def _require_recomputed(pack: Pack, found: ReleaseCheck, verdicts: Sequence[Recomputed]) -> None:
    """Check that no test passes on the word of a record alone."""
    anew = {(one.run, one.test): one.verdict for one in verdicts}
    for one in found.tests:
        verdict = anew.get((one.run, one.test))
        if one.finding == Finding.PASSED and verdict not in (Verdict.PASS, Verdict.IMPROVEMENT):
            raise ReleaseRefused(
                ReleaseStatus.NOT_REPRODUCED,
                "a test passes that the raw files do not let pass",
                file=pack.path,
                field=one.test,
                found="no verdict" if verdict is None else verdict.value,
                expected="PASS or IMPROVEMENT, computed from the raw files",
            )
