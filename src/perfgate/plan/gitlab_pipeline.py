"""GitLab pipeline: the child pipeline that measures the rows of a matrix and reports them. Pure.

A row becomes a job that may fail: one job after them, `perfgate-report`, reads what all of them
left, misses what one did not, and alone decides. In a night that records, `perfgate-propose` then
proposes the baselines that enough nights recorded. docs/how-to/gitlab.md
"""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import yaml

from perfgate.core.errors import InputError
from perfgate.core.json_text import JsonError, parse_object

# What a job needs beside its script: a checkout, the clean-up, the artifacts.
AROUND_MINUTES = 25
AFTER_MINUTES = 5
REPORT_MINUTES = 30
PROPOSE_MINUTES = 30
# All nights share it: while it is there, its merge request is open.
BRANCH = "perfgate/baselines-nightly"
RUNS = "perfgate-runs"
REPORT = "perfgate-report"
PROPOSAL = "perfgate-proposal"

# What a night does → options of pytest.
MODES: Mapping[str, tuple[str, ...]] = {
    "gate": ("--gate",),
    "record": ("--record",),
    "auto": ("--gate", "--record"),
}
# Where a job begins, by its name: the checkout may belong to another user than the job.
_ROOT = 'export PERFGATE_ROOT="$PWD"\n'
# Where a GPU job begins: keys of other jobs, if the project gives them to all.
_WITHOUT_KEYS = "unset PERFGATE_PUSH_TOKEN PERFGATE_RELEASE_KEY\n"
_PROTECTED_BRANCH = '$CI_COMMIT_BRANCH && $CI_COMMIT_REF_PROTECTED == "true"'
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")
_SHARD = re.compile(r"([1-9]\d{0,3})/([1-9]\d{0,3})")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}")
_PRINTABLE = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]{1,2000}")
_LARGEST_MATRIX = 4 * 2**20
_MOST_MINUTES = 30 * 24 * 60

# Ends what a shard that was killed left: processes that perfgate started (they carry its mark) for
# this very job, and no others.
CLEAN_UP = """\
for signal in TERM KILL; do
  found=
  for environment in /proc/[0-9]*/environ; do
    if tr '\\0' '\\n' 2>/dev/null <"$environment" | awk -v job="CI_JOB_ID=$CI_JOB_ID" \\
        '/^PERFGATE_LAUNCH=/ {ours = 1} $0 == job {here = 1} END {exit !(ours && here)}'; then
      process=${environment#/proc/}
      kill -s "$signal" "${process%/environ}" 2>/dev/null && found=1
    fi
  done
  [ -n "$found" ] || break
  sleep 5
done
"""


@dataclass(frozen=True)
class MatrixRow:
    """One row of `perfgate matrix`: what one job measures.

    Attributes:
        name: of the job.
        gpu: kind of GPU, in small letters.
        expression: for pytest's `-m`.
        shard: `K/N`.
        timeout_minutes: above the limits of perfgate's own.
        plain: the row as it was printed.
    """

    name: str
    gpu: str
    expression: str
    shard: str
    timeout_minutes: int
    plain: Mapping[str, Any]

    @property
    def number(self) -> int:
        """Which of the shards it is, from 1."""
        return int(self.shard.partition("/")[0])


@dataclass(frozen=True)
class ChildSettings:
    """What a site says of the jobs.

    Attributes:
        event: `pull-request`, `nightly`, `release` or `rehearsal`.
        mode: one of `MODES`; a rehearsal that records nothing is not gated, as it has no baselines
            of what is real.
        tolerated: statuses of the whole that are shown, but stop nothing, in this event.
        programs: the folder of `pytest` and `perfgate`.
        requirements: a file of hashed requirements that is installed first; empty: nothing is.
        tags: runner tags with blanks between; `{gpu}` becomes the kind of GPU.
        report_tags: likewise of the job without GPUs.
        image: of the jobs with GPUs; empty: the runner's.
        report_image: of the job without.
        options: further words for pytest.
        expire_in: how long artifacts are kept, as GitLab writes it.
    """

    event: str
    mode: str = "gate"
    tolerated: tuple[int, ...] = ()
    programs: str = "/opt/perfgate/bin"
    requirements: str = ""
    tags: str = "{gpu}"
    report_tags: str = ""
    image: str = ""
    report_image: str = ""
    options: tuple[str, ...] = ()
    expire_in: str = "30 days"


def read_rows(text: bytes) -> tuple[MatrixRow, ...]:
    """The rows of a matrix.

    Args:
        text: what `perfgate matrix` printed.

    Raises:
        InputError: it is no matrix, is empty, or holds what cannot be a job.
    """
    try:
        rows = parse_object(text, limit=_LARGEST_MATRIX).get("include")
    except JsonError as error:
        raise InputError(f"the matrix {error.problem}", found=error.found) from error
    if not isinstance(rows, list) or not rows:
        raise InputError(
            "the matrix has no rows", expected="the line that perfgate matrix printed: "
            '{"include": [{"name": …}, …]}, with at least one scenario'
        )  # fmt: skip
    found = tuple(_row(number, row) for number, row in enumerate(rows, 1))
    names = [row.name for row in found]
    if len(set(names)) < len(names):
        raise InputError("the matrix has two rows of one name", found=", ".join(names))
    return found


def _row(number: int, row: Any) -> MatrixRow:
    if not isinstance(row, dict):
        raise InputError(f"row {number} of the matrix is not an object", found=row)

    def field(name: str, shape: re.Pattern[str], expected: str) -> str:
        value = row.get(name)
        if not isinstance(value, str) or not shape.fullmatch(value):
            raise InputError(
                f"row {number} of the matrix", field=name, found=value, expected=expected
            )
        return value

    minutes = row.get("timeout_minutes")
    if type(minutes) is not int or not 0 < minutes <= _MOST_MINUTES:
        raise InputError(
            f"row {number} of the matrix",
            field="timeout_minutes",
            found=minutes,
            expected="a whole number of minutes, of at most 30 days",
        )
    return MatrixRow(
        name=field("name", _NAME, "small letters, digits and -"),
        gpu=field("gpu", _NAME, "small letters, digits and -"),
        expression=field("expression", _PRINTABLE, "an expression on one line"),
        shard=field("shard", _SHARD, "K/N"),
        timeout_minutes=minutes,
        plain=row,
    )


def child_pipeline(rows: Sequence[MatrixRow], settings: ChildSettings) -> dict[str, Any]:
    """The pipeline as GitLab's keywords.

    Args:
        rows: one job each; at least one.
        settings: of the site.

    Raises:
        InputError: a setting cannot be used.
    """
    for name, value in (("image", settings.image), ("report image", settings.report_image)):
        if value and not re.fullmatch(r"[\w./:@-]+", value):
            raise InputError(f"the {name} is no name of an image", found=value)
    is_proposing = settings.event == "nightly" and settings.mode != "gate"
    return {
        # A child's pipeline source is parent_pipeline, which most workflow rules leave out.
        "workflow": {"rules": [{"when": "always"}]},
        "stages": ["measure", "report", *(["propose"] if is_proposing else [])],
        **{row.name: _measure(row, settings) for row in rows},
        "perfgate-report": _report(rows, settings),
        **({"perfgate-propose": _propose(settings)} if is_proposing else {}),
    }


def as_yaml(pipeline: dict[str, Any]) -> str:
    """The pipeline as the text that GitLab reads."""
    text = yaml.dump(pipeline, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)
    return f"# Made by perfgate gitlab child; change the matrix or the inputs, not this.\n{text}"


class _Dumper(yaml.SafeDumper):
    """Scripts as blocks, and no aliases, which make a pipeline hard to read."""

    def ignore_aliases(self, _: Any) -> bool:
        """Write equal parts again."""
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def _measure(row: MatrixRow, settings: ChildSettings) -> dict[str, Any]:
    # A job that GitLab starts again, perhaps in the same folder, neither finds nor adds to what the
    # one before it measured; the report gets the artifacts of the last one alone.
    folder = f"{RUNS}/{row.name}-$CI_JOB_ID"
    mode = () if _is_ungated(settings) else MODES[settings.mode]
    words = (*("-m", row.expression, "--shard", row.shard), *mode, *settings.options)
    script = (
        f"{_WITHOUT_KEYS}{_ROOT}rm -rf {RUNS} && mkdir {RUNS}\n"
        f'{_program(settings, "pytest")} {shlex.join(words)} --run-dir "{folder}"\n'
    )
    return {
        "stage": "measure",
        **_where(settings.image, settings.tags.replace("{gpu}", row.gpu)),
        # Shard K has place K of the pool: as many run at once as there are places, of whichever
        # pipeline, and none waits for another shard of its own.
        "resource_group": f"perfgate-{row.gpu}-{row.number}",
        "timeout": f"{row.timeout_minutes + AROUND_MINUTES} minutes",
        "interruptible": False,
        "retry": {"max": 1, "when": ["runner_system_failure", "stuck_or_timeout_failure"]},
        "allow_failure": True,
        "variables": {
            "RUNNER_SCRIPT_TIMEOUT": f"{row.timeout_minutes}m",
            "RUNNER_AFTER_SCRIPT_TIMEOUT": f"{AFTER_MINUTES}m",
        },
        **_prepared(settings, _WITHOUT_KEYS),
        "script": [script],
        "after_script": [CLEAN_UP],
        "artifacts": {
            "when": "always",
            "name": f"{row.name}-$CI_JOB_ID",
            "paths": [f"{RUNS}/"],
            "expire_in": settings.expire_in,
        },
    }


def _address(perfgate: str) -> str:
    """Where runs recorded enough: print the address of the pipeline that proposes baselines."""
    return f"""\
enough=$({perfgate} baseline ready {RUNS}/*) || enough=
if [ -n "$enough" ]; then
  jobs=
  for run in {RUNS}/*; do jobs=$jobs${{jobs:+%20}}${{run##*-}}; done
  new=$CI_PROJECT_URL/-/pipelines/new
  echo "enough for a baseline; to propose it: $new?ref=$CI_COMMIT_REF_NAME&var[GATE_PROPOSE]=$jobs"
fi
"""


# POSIX shell; {perfgate} is the program. The scenarios' names are words of a command and no more.
_PROPOSAL = """\
token=${{PERFGATE_PUSH_TOKEN:-}}
unset PERFGATE_PUSH_TOKEN
not_proposed() {{ echo "no proposal: $1"; exit 0; }}
enough=$({perfgate} baseline ready {runs}/*) || enough=
[ -n "$enough" ] || not_proposed "no scenario completed the sessions of a first baseline"
[ -n "$token" ] || not_proposed "PERFGATE_PUSH_TOKEN is not set for the environment \
perfgate-baseline; the log of perfgate-report has the address that starts it by hand"
command -v git >/dev/null || not_proposed "this image has no git; name another one in control_image"
remote=${{GATE_PUSH_URL:-$CI_PROJECT_URL.git}}
# The token is in no address and no argument: git asks for it.
askpass=$(mktemp)
trap 'rm -f "$askpass"' EXIT
printf '#!/bin/sh\\ncase $1 in User*) echo perfgate ;; *) printenv GATE_TOKEN ;; esac\\n' \\
  >"$askpass"
chmod 700 "$askpass"
pushing() {{ GIT_TERMINAL_PROMPT=0 GIT_ASKPASS="$askpass" GATE_TOKEN="$token" git "$@"; }}
open=$(pushing ls-remote "$remote" "refs/heads/{branch}")
[ -z "$open" ] || not_proposed "the branch {branch} is there already: \
merge its request, or close it and delete the branch"
set --
for scenario in $enough; do set -- "$@" "--scenario=$scenario"; done
export GIT_AUTHOR_NAME=perfgate GIT_AUTHOR_EMAIL="$GITLAB_USER_EMAIL"
export GIT_COMMITTER_NAME=perfgate GIT_COMMITTER_EMAIL="$GITLAB_USER_EMAIL"
mkdir -p {proposal}
# The user of a scheduled pipeline is the owner of the schedule, and has seen none of these numbers.
{perfgate} baseline promote {runs}/* "$@" --branch "perfgate/baselines-$CI_JOB_ID" \
  --by "the merge of the proposal of pipeline $CI_PIPELINE_ID" --body {proposal}/body.md
pushing push --quiet -o merge_request.create -o "merge_request.target=$CI_COMMIT_REF_NAME" \
  -o merge_request.remove_source_branch -o ci.skip \
  "$remote" "perfgate/baselines-$CI_JOB_ID:refs/heads/{branch}"
echo "proposed: branch {branch}, with a merge request"
"""


def _propose(settings: ChildSettings) -> dict[str, Any]:
    """The job that proposes what enough nights recorded; alone in its environment with the token.

    It has what the rows left, as the stages before it. It may fail: then the night keeps its
    result, and the log gives the reason.
    """
    script = _PROPOSAL.format(
        perfgate=_program(settings, "perfgate"), runs=RUNS, branch=BRANCH, proposal=PROPOSAL
    )
    return {
        "stage": "propose",
        **_where(settings.report_image or settings.image, settings.report_tags),
        # Of a branch that is protected, never of a merge request; also where another test is red.
        "rules": [{"if": _PROTECTED_BRANCH, "when": "always"}],
        "environment": {"name": "perfgate-baseline", "action": "access"},
        "resource_group": "perfgate-propose",
        "timeout": f"{PROPOSE_MINUTES} minutes",
        "interruptible": False,
        "allow_failure": True,
        **_prepared(settings),
        "script": [f"{_ROOT}{script}"],
        "artifacts": {"paths": [f"{PROPOSAL}/body.md"], "expire_in": settings.expire_in},
    }


def _report(rows: Sequence[MatrixRow], settings: ChildSettings) -> dict[str, Any]:
    matrix = json.dumps({"include": [dict(row.plain) for row in rows]})
    perfgate = _program(settings, "perfgate")
    event = shlex.quote(settings.event)
    gate = "" if _is_ungated(settings) or settings.mode == "record" else "--gate "
    script = (
        f"{_ROOT}printf '%s\\n' {shlex.quote(matrix)} >perfgate-matrix.json\n"
        "status=0\n"
        f"{perfgate} report {RUNS}/* {gate}--matrix perfgate-matrix.json --to {REPORT}"
        " || status=$?\n" + ("" if settings.mode == "gate" else _address(perfgate)) + "blocks=0\n"
        f'decision=$({perfgate} decision --event {event} "$status") || blocks=$?\n'
        'echo "$decision"\n'
        '[ "$blocks" -eq 0 ] || exit "$blocks"\n'
        # A warning ends in the run's status, which allow_failure turns into GitLab's orange.
        'case $decision in pass:*) exit 0 ;; warn:*) exit "$status" ;; esac\n'
        "exit 15\n"
    )
    return {
        "stage": "report",
        **_where(settings.report_image or settings.image, settings.report_tags),
        "when": "always",
        "timeout": f"{REPORT_MINUTES} minutes",
        "interruptible": False,
        "allow_failure": {"exit_codes": list(settings.tolerated)} if settings.tolerated else False,
        **_prepared(settings),
        "script": [script],
        "artifacts": {
            "when": "always",
            "name": "perfgate-report-$CI_PIPELINE_ID",
            "expose_as": "perfgate report",
            "paths": [f"{REPORT}/"],
            "reports": {"junit": f"{REPORT}/junit.xml"},
            "expire_in": settings.expire_in,
        },
    }


def _is_ungated(settings: ChildSettings) -> bool:
    return settings.event == "rehearsal" and settings.mode == "gate"


def _where(image: str, tags: str) -> dict[str, Any]:
    words = tags.split()
    for word in words:
        if not _WORD.fullmatch(word):
            raise InputError("no runner tag", found=word, expected="letters, digits and _ . : -")
    return {**({"image": image} if image else {}), **({"tags": words} if words else {})}


def _program(settings: ChildSettings, name: str) -> str:
    folder = ".perfgate-venv/bin" if settings.requirements else settings.programs
    return shlex.quote(f"{folder.rstrip('/')}/{name}")


def _prepared(settings: ChildSettings, first: str = "") -> dict[str, Any]:
    if not settings.requirements:
        return {}
    requirements = PurePosixPath(settings.requirements)
    build = shlex.quote(str(requirements.with_name("build.txt")))
    install = (
        f"{first}python3 -m venv .perfgate-venv\n"
        f"set -- {shlex.quote(str(requirements))}\n"
        f'[ ! -f {build} ] || set -- {build} "$@"\n'
        "for file; do\n"
        "  .perfgate-venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps"
        ' --no-build-isolation --require-hashes -r "$file"\n'
        "done\n"
    )
    return {"before_script": [install]}
