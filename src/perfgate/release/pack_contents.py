"""Pack contents: all that an evidence pack holds, collected of a check, its runs and their files.

Nothing here depends on the clock, the machine or the folders that the runs lie in: equal input
makes equal packs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.core.rule import VERSION as RULE
from perfgate.release.check_result import ReleaseCheck
from perfgate.release.pack_archive import Ingredient
from perfgate.release.pack_manifest import (
    POLICY,
    WAIVERS,
    Manifest,
    colliding_names,
    problem_of_name,
)
from perfgate.release.pack_secrets import first_secret
from perfgate.release.pack_sources import require_same_scenarios, run_files, scenario_files
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus
from perfgate.release.rendered_files import rendered_files
from perfgate.runs.ended_run import EndedRun
from perfgate.scenarios.scenario import Scenario

_MOST_TOLD = 20
_BLOCK = 1 << 20  # bytes that are searched for secrets together


@dataclass(frozen=True)
class Evidence:
    """What a pack is made of.

    Attributes:
        check: the policy held against the runs, at the time at which the newest of them ended.
        runs: those runs, ended, in any order.
        policy: bytes of the policy's file.
        waivers: bytes of the file of waivers; None: there is none.
        places: files and folders that the scenarios were read from.
        scenarios: id → scenario, all of the suite.
    """

    check: ReleaseCheck
    runs: Sequence[EndedRun]
    policy: bytes
    waivers: bytes | None
    places: Sequence[Path]
    scenarios: Mapping[str, Scenario]


@dataclass(frozen=True)
class Contents:
    """What goes into a pack.

    Attributes:
        manifest: of all ingredients.
        ingredients: in any order.
        left_out: paths of files of the runs that do not, each with its size in bytes.
    """

    manifest: Manifest
    ingredients: tuple[Ingredient, ...]
    left_out: tuple[tuple[str, int], ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(one.size for one in self.manifest.files)


def newest_end(runs: Iterable[EndedRun]) -> datetime:
    """When the last of the runs ended, UTC.

    Raises:
        ReleaseRefused: status INCOMPLETE: one did not end.
        InputError: what it wrote at its end has no time.
    """
    return max(_end(run) for run in runs).replace(microsecond=0)


def contents(evidence: Evidence) -> Contents:
    """Collect, render, search and hash all that goes into a pack.

    Raises:
        ReleaseRefused: status INCOMPLETE: a required scenario changed since it was measured, or a
            run did not end.
        InputError, SeveralInputErrors: a file is a link or no regular one, has a name that no pack
            has, or a secret in it.
        OSError: a file cannot be read.
    """
    runs = sorted(evidence.runs, key=lambda run: (str(run.facts["started"]), run.id))
    check = evidence.check
    require_same_scenarios(check, runs, evidence.scenarios)
    of_runs = [run_files(run) for run in runs]
    required = {one.scenario for one in check.tests} & evidence.scenarios.keys()
    sources = [
        Ingredient(POLICY, "policy", evidence.policy),
        *scenario_files(evidence.places, [evidence.scenarios[one] for one in sorted(required)]),
        *(one for files in of_runs for one in files.packed),
    ]
    if evidence.waivers is not None:
        sources.append(Ingredient(WAIVERS, "waivers", evidence.waivers))
    _require_names(sources)
    _require_no_secrets(sources)
    listed = [one.listed() for one in sources]
    rendered = rendered_files(check, runs, listed)
    _require_names([*sources, *rendered])
    _require_no_secrets(rendered)
    listed += [one.listed() for one in rendered]
    manifest = Manifest(
        release=check.policy.release,
        perfgate=version("perfgate"),
        rule=RULE,
        ended=newest_end(runs).isoformat(timespec="seconds"),
        runs=tuple(run.id for run in runs),
        files=tuple(sorted(listed, key=lambda one: one.path)),
    )
    left_out = tuple(one for files in of_runs for one in files.left_out)
    return Contents(manifest, (*sources, *rendered), left_out)


def _end(run: EndedRun) -> datetime:
    line = next((one for one in reversed(run.records) if one["record"] == "ended"), None)
    if run.end is None or line is None:
        raise ReleaseRefused(
            ReleaseStatus.INCOMPLETE,
            "the run did not end, so what it holds may still change",
            file=run.folder,
            expected="a run that ended, whatever its result",
            hint="let it end, or go on with it: pytest --resume",
        )
    try:
        return datetime.fromisoformat(str(line["at"])).astimezone(UTC)
    except (KeyError, ValueError) as error:
        raise InputError(
            "the record of the run's end has no time", file=run.folder, found=line.get("at")
        ) from error


def _require_names(found: Sequence[Ingredient]) -> None:
    """Refuse what no pack may be made of: ids of runs and tests are in paths, too."""
    for one in found:
        if problem := problem_of_name(one.path):
            raise InputError(
                f"a file would have {problem}",
                found=repr(one.path),
                expected="ids of runs and tests as perfgate gives them",
                hint="measure anew in a new run folder",
            )
    if pair := colliding_names(one.path for one in found):
        raise InputError(
            "two files would be one on some systems",
            found=" and ".join(map(repr, pair)),
            expected="names that differ in more than case and the form of Unicode",
            hint="rename one of them, or keep one elsewhere",
        )


def _require_no_secrets(found: Sequence[Ingredient]) -> None:
    """Refuse files with secrets; all of them are named, and no secret is."""
    errors = []
    for one in sorted(found, key=lambda one: one.path):
        with one.opened() as file:
            line = first_secret(iter(lambda: file.read(_BLOCK), b""))
        if line is not None:
            errors.append(
                InputError(
                    f"a secret stands here, and would be in the pack as {one.path}",
                    file=one.source if isinstance(one.source, Path) else Path(one.path),
                    line=line,
                    expected="no token, password or key in anything that is handed on",
                    hint="withdraw the secret, since it was written down; then take it out of the "
                    "file, or measure again without it",
                )
            )
    if errors:
        raise SeveralInputErrors(errors[:_MOST_TOLD])
