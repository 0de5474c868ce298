"""Rendered files: what in an evidence pack is made of its check and runs alone. Pure.

Reports, certificates, the check, and a bash script for each required test, which measures it again.
Of equal input they are equal everywhere: whoever verifies a pack makes them again and compares. So
no secret of the process is masked in them; `pack_contents` refuses what holds one.

What a script says comes from a run's records, which anybody may have written: every word is quoted,
and what is not of the form that perfgate writes is no script.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from perfgate.core.environment_variables import export_line
from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.core.redaction import MASK, known_values_ignored
from perfgate.plan.shell_text import call, comment
from perfgate.release.certificate import certificate_markdown, certificate_page
from perfgate.release.check_result import CheckedTest, ReleaseCheck
from perfgate.release.pack_archive import (
    CERTIFICATE,
    CERTIFICATE_PAGE,
    CHECK_JSON,
    REPORT_JSON,
    REPORT_PAGE,
    REPRODUCE,
    Ingredient,
    PackedFile,
    Role,
    packed_json,
)
from perfgate.reports.formats.base import ReportContext, report_format
from perfgate.reports.merge import merge
from perfgate.runs.ended_run import EndedRun

ROLES: tuple[Role, ...] = ("report", "reproduce", "certificate")
_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)=(?P<value>.*)", re.DOTALL)
_ASKED = "its value was a secret, set it yourself"


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
    sources = sorted(sources, key=lambda one: one.path)
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
        reports = {(REPORT_PAGE, REPORT_JSON): merge(runs)}
    except (InputError, SeveralInputErrors):
        # A test was measured twice: which of its results counts, the policy decides.
        reports = {
            (f"report/{run.id}.html", f"report/{run.id}.json"): merge([run], part=True)
            for run in runs
        }
    for names, report in reports.items():
        for path, kind in zip(names, ("html", "json"), strict=True):
            yield path, report_format[kind]().render(report, ReportContext())


def reproduce_scripts(
    tests: Sequence[CheckedTest], environments: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    """Path in the pack → script, of each test that a run has a command line for.

    Args:
        tests: the required tests.
        environments: run → the variables that it recorded, secrets masked.
    """
    found: dict[str, str] = {}
    for one in tests:
        if one.result is not None and one.result.rerun:
            path = f"{REPRODUCE}/{one.test}.sh"
            found.setdefault(path, _script(one, one.result.rerun, environments.get(one.run, {})))
    return found


def _script(one: CheckedTest, rerun: str, environment: Mapping[str, str]) -> str:
    try:
        words = shlex.split(rerun)
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
            found=rerun[:200],
            expected="NAME=value … pytest TEST OPTION…, as perfgate writes it",
            hint="measure again in a new run folder",
        )
    beside = {name: value for name, value in environment.items() if name not in variables}
    build = one.result.build if one.result else None
    facts = [
        f"Measures {one.test} again, as run {one.run} did.",
        *([f"build: {build.in_words}"] if build else []),
        f"hardware: {one.hardware}",
        f"verdict then: {one.result.verdict if one.result else None}",
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
