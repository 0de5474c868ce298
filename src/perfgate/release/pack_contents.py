"""Pack contents: all that an evidence pack holds: files of runs, and what is rendered of them.

Nothing here depends on the clock, the machine or the folders that the runs lie in: equal input
makes equal packs. Nothing in a run's folder is trusted: programs wrote there. No link is followed;
one is an error, since what it names may be gone when the pack is read.

Reports, certificates and scripts are made of the check and its runs alone. Of equal input they are
equal everywhere: whoever verifies a pack makes them again and compares. So no secret of the process
is masked in them; what holds one is refused. A script's words come from a run's records, which
anybody may have written: every word is quoted, and what is not of the form that perfgate writes is
no script.
"""

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path, PurePath

from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.core.files.json_text import LARGEST_OWN
from perfgate.core.files.untrusted_files import read_input
from perfgate.core.programs.environment_variables import export_line
from perfgate.core.redaction import MASK, known_values_ignored
from perfgate.core.verdict import RULE_VERSION
from perfgate.plan.shell_text import call, comment
from perfgate.release.certificate import certificate_markdown, certificate_page
from perfgate.release.check_result import CheckedTest, ReleaseCheck
from perfgate.release.pack_archive import (
    CERTIFICATE,
    CERTIFICATE_PAGE,
    CHECK_JSON,
    POLICY,
    REPORT,
    REPRODUCE,
    RUNS,
    SCENARIOS,
    WAIVERS,
    Ingredient,
    Manifest,
    PackedFile,
    Role,
    colliding_names,
    packed_json,
)
from perfgate.release.pack_secrets import suspects
from perfgate.release.recomputation import require_same_scenarios
from perfgate.release.release_status import ReleaseStatus
from perfgate.release.run_evidence import time_of
from perfgate.reports.formats.base import report_format
from perfgate.reports.merge import merge
from perfgate.reports.run_report import TestResult
from perfgate.runs.ended_run import EndedRun
from perfgate.runs.run_folder import REFERENCES
from perfgate.scenarios.documented import FOLDER, documented_file
from perfgate.scenarios.scenario import Scenario
from perfgate.scenarios.yaml_document import LARGEST_FILE

LEFT_OUT_FOLDERS = (
    *("__pycache__", ".cache", ".pytest_cache", ".triton", "torch_compile_cache"),
    *(".ipynb_checkpoints", "huggingface_cache"),
)
LEFT_OUT_FILES = (
    *("core", "core.[0-9]*", "*.core", "*.dmp", "*.nsys-rep"),  # what is left of memory, traces
    *("*.evidence.txt", "*.pyc"),  # what hung processes were doing; compiled code
    *("*.lock", ".*.lock"),
    "summary.md",  # the report has it, made from the records
)
_ROLES: dict[str, Role] = {"run.json": "run", "records.jsonl": "records", "progress.jsonl": "log"}
_SUFFIXES: dict[str, Role] = {".sh": "script", ".err": "log", ".log": "log"}
_RAW_OUTPUT = ("server", "ranks")  # what these print is a log, not a result
_MOST_TOLD = 20
_BLOCK = 1 << 20  # bytes that are searched for secrets together

ROLES: tuple[Role, ...] = ("report", "reproduce", "certificate")
_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)=(?P<value>.*)", re.DOTALL)
_ASKED = "its value was a secret, set it yourself"


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
        return sum(file.size for file in self.manifest.files)


def newest_end(runs: Iterable[EndedRun]) -> datetime:
    """When the last of the runs ended, UTC.

    Raises:
        ReleaseRefused: status INCOMPLETE: one did not end.
        InputError: what it wrote at its end has no time, or none with a time zone.
    """
    ends = []
    for run in runs:
        if run.end is None:
            raise ReleaseStatus.INCOMPLETE.refusal("run_goes_on", file=run.folder)
        ends.append(time_of(run, "records.jsonl", "ended.at", run.end.at).astimezone(UTC))
    return max(ends).replace(microsecond=0)


def contents(
    check: ReleaseCheck,
    runs: Iterable[EndedRun],
    scenarios: Iterable[Scenario],
    *,
    policy: bytes,
    waivers: bytes | None,
    places: Sequence[Path],
) -> Contents:
    """Collect, render, search and hash all that goes into a pack.

    Args:
        check: the policy held against the runs, at the time at which the newest of them ended.
        runs: those runs, ended, in any order.
        scenarios: all of the suite.
        policy: bytes of the policy's file.
        waivers: bytes of the file of waivers; None: there is none.
        places: files and folders that the scenarios were read from.

    Raises:
        ReleaseRefused: status INCOMPLETE: a scenario changed since it was measured, or a run did
            not end.
        InputError, SeveralInputErrors: a file is a link or no regular one, has a name that no pack
            has, or a secret in it.
        OSError: a file cannot be read.
    """
    runs = sorted(runs, key=lambda run: (str(run.facts["started"]), run.id))
    by_id = {scenario.id: scenario for scenario in scenarios}
    require_same_scenarios(runs, by_id.values(), ReleaseStatus.INCOMPLETE)
    of_runs = [run_files(run) for run in runs]
    required = {test.scenario for test in check.tests} & by_id.keys()
    sources = [
        Ingredient(POLICY, "policy", policy),
        *_scenario_files(places, [by_id[name] for name in sorted(required)]),
        *(file for packed, _ in of_runs for file in packed),
    ]
    if waivers is not None:
        sources.append(Ingredient(WAIVERS, "waivers", waivers))
    named = _require_no_secrets(sources)
    listed = [source.listed() for source in sources]
    rendered = rendered_files(check, runs, listed)
    if pair := colliding_names(file.path for file in (*sources, *rendered)):
        raise InputError(
            "two files would be one on some systems",
            found=" and ".join(map(repr, pair)),
            expected="names that differ in more than case and the form of Unicode",
            hint="rename one of them, or keep one elsewhere",
        )
    _require_no_secrets(rendered)
    listed += [file.listed() for file in rendered]
    manifest = Manifest(
        release=check.policy.release,
        perfgate=version("perfgate"),
        rule=RULE_VERSION,
        ended=check.at.isoformat(timespec="seconds"),
        runs=tuple(run.id for run in runs),
        files=tuple(sorted(listed, key=lambda file: file.path)),
    )
    left_out = tuple(file for _, files in of_runs for file in files)
    return Contents(manifest, (*sources, *rendered), left_out, named)


def _require_no_secrets(found: Sequence[Ingredient]) -> tuple[str, ...]:
    """Refuse files with secrets; all of them are named, and no secret is.

    Returns:
        ``path:line`` of those with a value behind the name of a secret, for a person to look at.
    """
    errors, named = [], []
    for one in sorted(found, key=lambda one: one.path):
        with one.opened() as file:
            seen = suspects(iter(lambda: file.read(_BLOCK), b""))
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


def run_files(run: EndedRun) -> tuple[list[Ingredient], list[tuple[str, int]]]:
    """All that a run's folder holds: what is packed, and path and bytes of what is left out.

    Raises:
        InputError: there is a name in it that no pack has.
        OSError: it cannot be read.
    """
    packed, left_out = [], []
    for path in _files(run.folder):
        inside = path.relative_to(run.folder)
        name = f"{RUNS}/{run.id}/{inside.as_posix()}"
        if not {*inside.parts[:-1]}.isdisjoint(LEFT_OUT_FOLDERS) or any(
            fnmatchcase(path.name, pattern) for pattern in LEFT_OUT_FILES
        ):
            left_out.append((name, path.lstat().st_size))
        else:
            packed.append(Ingredient(name, _role_of(inside), path))
    return packed, left_out


def _role_of(inside: PurePath) -> Role:
    """What a file of a run's folder is there for, by its path in that folder."""
    if role := _ROLES.get(str(inside)):
        return role
    if inside.parts[0] == REFERENCES:
        return "noise" if "noise" in inside.name else "baseline"
    if inside.suffix == ".out":
        return "log" if inside.stem.startswith(_RAW_OUTPUT) else "raw"
    return _SUFFIXES.get(inside.suffix, "raw")


def _files(folder: Path) -> Iterator[Path]:
    """What is below a folder and no folder itself, sorted; links are not followed.

    What a folder that is left out holds is given all the same: it is told.
    """
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda one: one.name)
    for entry in entries:
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            yield from _files(path)
        else:
            yield path


def _scenario_files(places: Sequence[Path], scenarios: Iterable[Scenario]) -> Iterator[Ingredient]:
    """The files that scenarios and claims were read from, whole, and the documented values.

    Those of the first place lie in ``scenarios/1``, and so on, as the suite names its folders.
    """
    found: dict[Path, tuple[str, Path, int]] = {}  # each file once
    for number, place in enumerate(places, 1):
        files, folder = [place], place.parent
        if place.is_dir():
            files = sorted(one for one in place.rglob("*") if one.suffix in (".yaml", ".yml"))
            folder = place
        for file in files:
            path = f"{number}/{file.relative_to(folder).as_posix()}"
            found.setdefault(file.resolve(), (path, file, LARGEST_FILE))
    for scenario in scenarios:
        if (documented := documented_file(scenario)).is_file():
            found[documented] = (f"{FOLDER}/{scenario.id}.json", documented, LARGEST_OWN)
    for path, file, limit in found.values():
        content = read_input(file, limit, "scenario file")
        yield Ingredient(f"{SCENARIOS}/{path}", "scenarios", content)


def rendered_files(
    check: ReleaseCheck, runs: Sequence[EndedRun], sources: Iterable[PackedFile]
) -> list[Ingredient]:
    """All files of `ROLES`.

    Args:
        check: the policy held against the runs, at the time at which the newest of them ended.
        runs: those runs, in the order of their start.
        sources: all other files of the pack, whose hashes the certificates name.

    Raises:
        InputError: a run's record has no command line that a script can be made of.
    """
    sources = sorted(sources, key=lambda source: source.path)
    environments = {
        run.id: {str(name): str(value) for name, value in found.items()}
        for run in runs
        if isinstance(found := run.facts.get("environment"), dict)
    }
    with known_values_ignored():
        texts: dict[Role, Mapping[str, str]] = {
            "report": dict(_reports(runs)),
            "reproduce": reproduce_scripts(check.tests, environments),
            "certificate": {
                CHECK_JSON: packed_json(check),
                CERTIFICATE: certificate_markdown(check, sources),
                CERTIFICATE_PAGE: certificate_page(check, sources),
            },
        }
    return [
        Ingredient(path, role, text.encode(errors="backslashreplace"))
        for role in ROLES
        for path, text in texts[role].items()
    ]


def _reports(runs: Sequence[EndedRun]) -> Iterator[tuple[str, str]]:
    """The report of all runs as one; where that cannot be, that of each."""
    try:
        reports = {"report": merge(runs)}
    except (InputError, SeveralInputErrors):
        # A test was measured twice: which of its results counts, the policy decides.
        reports = {run.id: merge([run], part=True) for run in runs}
    for name, report in reports.items():
        for kind in ("html", "json"):
            yield f"{REPORT}/{name}.{kind}", report_format[kind]().render(report)


def reproduce_scripts(
    tests: Sequence[CheckedTest], environments: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    """Path in the pack → script, of each test that a run has a command line for.

    Args:
        tests: the required tests.
        environments: run → the variables that it recorded, secrets masked.
    """
    found: dict[str, str] = {}
    for test in tests:
        if test.result is not None and test.result.rerun:
            path = f"{REPRODUCE}/{test.test}.sh"
            found.setdefault(path, _script(test, test.result, environments.get(test.run, {})))
    return found


def _script(one: CheckedTest, result: TestResult, environment: Mapping[str, str]) -> str:
    try:
        words = shlex.split(result.rerun)
    except ValueError:
        words = []
    variables: dict[str, str] = {}
    while words and (found := _ASSIGNMENT.fullmatch(words[0])):
        variables[found["name"]] = found["value"]
        words = words[1:]
    if words[:1] != ["pytest"]:
        raise InputError(
            "the run's record has no command line that a script can be made of",
            field=f"rerun of {one.test} in run {one.run}",
            found=result.rerun[:200],
            expected="NAME=value … pytest TEST OPTION…, as perfgate writes it",
            hint="measure again in a new run folder",
        )
    beside = {name: value for name, value in environment.items() if name not in variables}
    facts = [
        f"Measures {one.test} again, as run {one.run} did.",
        *([f"build: {result.build.description}"] if result.build else []),
        f"hardware: {one.hardware}",
        f"verdict then: {result.verdict}",
        "Run it in the folder of the suite that the pack's scenarios are of.",
    ]
    lines = [
        "#!/usr/bin/env bash",
        *map(comment, facts),
        "# shellcheck disable=SC2016,SC2088  # what is quoted is meant as it stands",
        "set -euo pipefail",
        "",
        *_exports(beside),
        *_exports(variables, written=True),
        f"exec {_call(words)}",
    ]
    return "\n".join(lines) + "\n"


def _exports(variables: Mapping[str, str], *, written: bool = False) -> Iterator[str]:
    """The lines that set variables.

    Those of the command line are set as it says; of others, those that shape an engine. What tells
    of the job or the machine alone is not asked for.
    """
    for name, value in sorted(variables.items()):
        if MASK in value:
            yield f'export {name}="${{{name}:?{_ASKED}}}"'
        elif written:
            yield f"export {name}={shlex.quote(value)}"
        elif not (line := export_line(name, value)).endswith('}"'):
            yield line


def _call(words: Sequence[str]) -> str:
    """The command; a word with a masked secret in it asks for that word."""
    masked = {word: f"MASKED_{number}" for number, word in enumerate(words) if MASK in word}

    def written(word: str) -> str:
        if word not in masked:
            return shlex.quote(word)
        name = word.partition("=")[0] if word.startswith("--") else "a word"
        plain = re.sub(r"[^A-Za-z0-9_ -]", "", name)
        return f'"${{{masked[word]}:?{plain} of the command line was a secret}}"'

    return call(words, written=written)
