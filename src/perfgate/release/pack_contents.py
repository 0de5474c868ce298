"""Pack contents: all that an evidence pack holds, collected of a check, its runs and their files.

Nothing here depends on the clock, the machine or the folders that the runs lie in: equal input
makes equal packs.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.core.plain import to_plain
from perfgate.core.rule import VERSION as RULE
from perfgate.release.pack_layout import (
    CERTIFICATE,
    CERTIFICATE_PAGE,
    CHECK_JSON,
    POLICY,
    REPORT_JSON,
    REPORT_PAGE,
    WAIVERS,
    Manifest,
    PackedFile,
)
from perfgate.release.pack_names import colliding_names, problem_of_name
from perfgate.release.pack_secrets import suspects
from perfgate.release.pack_writer import Ingredient, packed
from perfgate.release.release_check import ReleaseCheck
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus
from perfgate.release.reproduce_scripts import reproduce_scripts
from perfgate.release.run_files import run_files
from perfgate.release.scenario_files import require_same_scenarios, scenario_files
from perfgate.reports.formats.base import ReportContext, report_format
from perfgate.reports.merge import merge
from perfgate.runs.ended_run import EndedRun
from perfgate.scenarios.scenario import Scenario

_MOST_TOLD = 20

Certificates = Callable[[ReleaseCheck, Sequence[PackedFile]], Mapping[str, str]]
"""Path → text of the certificate's files, of a check and all other files of the pack."""


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
        named: ``path:line`` of what stands behind the name of a secret and is not known for one.
    """

    manifest: Manifest
    ingredients: tuple[Ingredient, ...]
    left_out: tuple[tuple[str, int], ...]
    named: tuple[str, ...] = ()

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
    return max(_end(run) for run in runs)


def contents(evidence: Evidence, certificates: Certificates) -> Contents:
    """Collect, read and hash all that goes into a pack.

    Args:
        evidence: what it is made of.
        certificates: makes the certificate's files.

    Raises:
        ReleaseRefused: status INCOMPLETE: a required scenario changed since it was measured, or a
            run did not end.
        InputError, SeveralInputErrors: a file is a link or no regular one, has a name that no pack
            has, or a secret in it.
        OSError: a file cannot be read.
    """
    runs = sorted(evidence.runs, key=lambda run: (str(run.facts["started"]), run.id))
    check = evidence.check
    required = {one.scenario for one in check.tests}
    require_same_scenarios(check, runs, evidence.scenarios)
    of_runs = [run_files(run) for run in runs]
    scenarios = [evidence.scenarios[one] for one in sorted(required & evidence.scenarios.keys())]
    found = [
        Ingredient(POLICY, "policy", evidence.policy),
        *scenario_files(evidence.places, scenarios),
        *(one for files in of_runs for one in files.packed),
        *_reports(runs),
        *_scripts(check, runs),
        _text(CHECK_JSON, _json(to_plain(check))),
    ]
    if evidence.waivers is not None:
        found.append(Ingredient(WAIVERS, "waivers", evidence.waivers))
    _require_names(found)
    named = _require_no_secrets(found)
    listed = [packed(one) for one in found]
    others = [one for one in listed if one.role != "certificate"]
    texts = certificates(check, sorted(others, key=lambda one: one.path))
    more = [_text(path, text) for path, text in texts.items()]
    _require_no_secrets(more)
    listed += map(packed, more)
    manifest = Manifest(
        release=check.policy.release,
        perfgate=version("perfgate"),
        rule=RULE,
        ended=newest_end(runs).isoformat(timespec="seconds"),
        runs=tuple(run.id for run in runs),
        files=tuple(sorted(listed, key=lambda one: one.path)),
    )
    left_out = tuple(one for files in of_runs for one in files.left_out)
    return Contents(manifest, (*found, *more), left_out, named)


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


def _reports(runs: Sequence[EndedRun]) -> Iterator[Ingredient]:
    """The report of all runs as one; where that cannot be, that of each."""
    try:
        reports = {(REPORT_PAGE, REPORT_JSON): merge(runs).report}
    except (InputError, SeveralInputErrors):
        # A test was measured twice: which of its results counts, the policy decides.
        reports = {
            (f"report/{run.id}.html", f"report/{run.id}.json"): merge([run], part=True).report
            for run in runs
        }
    for names, report in reports.items():
        for path, kind in zip(names, ("html", "json"), strict=True):
            text = report_format[kind]().render(report, ReportContext())
            yield Ingredient(path, "report", text.encode(errors="backslashreplace"))


def _scripts(check: ReleaseCheck, runs: Sequence[EndedRun]) -> Iterator[Ingredient]:
    environments = {
        run.id: {str(name): str(value) for name, value in found.items()}
        for run in runs
        if isinstance(found := run.facts.get("environment"), dict)
    }
    for path, text in reproduce_scripts(check.tests, environments).items():
        yield Ingredient(path, "reproduce", text.encode(errors="backslashreplace"))


def _text(path: str, text: str) -> Ingredient:
    if path not in (CERTIFICATE, CERTIFICATE_PAGE, CHECK_JSON):
        raise ValueError(f"no file of a certificate: {path}")
    return Ingredient(path, "certificate", text.encode(errors="backslashreplace"))


def _json(plain: object) -> str:
    return json.dumps(plain, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


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


def _require_no_secrets(found: Sequence[Ingredient]) -> tuple[str, ...]:
    """Refuse files with secrets; all of them are named, and no secret is.

    Returns:
        ``path:line`` of those with a value behind the name of a secret, for a person to look at.
    """
    errors, named = [], []
    for one in sorted(found, key=lambda one: one.path):
        seen = suspects(one.blocks())
        if seen.named is not None:
            named.append(f"{one.path}:{seen.named}")
        if seen.secret is not None:
            errors.append(
                InputError(
                    f"a secret stands here, and would be in the pack as {one.path}",
                    file=one.source if isinstance(one.source, Path) else Path(one.path),
                    line=seen.secret,
                    expected="no token, password or key in anything that is handed on",
                    hint="withdraw the secret, since it was written down; then take it out of the "
                    "file, or measure again without it",
                )
            )
    if errors:
        raise SeveralInputErrors(errors[:_MOST_TOLD])
    return tuple(named)
