"""`perfgate ci`: what pipelines call.

exit status: 0 done; 2 wrong usage or unusable input; `decision` ends in the status that blocks
"""

import argparse
import json
import re
import shlex
from pathlib import Path

from perfgate.campaign.shards import LARGEST as LARGEST_MATRIX
from perfgate.campaign.shards import matrix_of, read_matrix
from perfgate.cli.output import (
    add_format,
    answer,
    described,
    json_text,
    print_template,
    verb_maker,
)
from perfgate.cli.scenario_choice import add_folder, load, warn
from perfgate.core.errors import InputError
from perfgate.core.files.untrusted_files import read_input
from perfgate.core.plain import to_plain
from perfgate.runs.exit_status import LARGEST, Action, Event, decision, final_status
from perfgate.scenarios.scenario import GPUS

# What a night does → options of pytest.
_MODES = {"gate": ["--gate"], "record": ["--record"], "auto": ["--gate", "--record"]}
_MATRIX = {
    "--marker": "select by markers, as pytest -m; repeated: both",
    "--gpu": "select by GPU, e.g. B200; none: CPU",
    "--shards": "most rows for each kind of GPU",
}
_DECISION = {
    "--event": "what the run was made for",
    "status": "exit status of pytest or of perfgate report",
}
_GITLAB = {
    "--matrix": "output of perfgate ci matrix",
    "--event": "what the pipeline is for; with --rehearse: rehearsal",
    "--mode": "judge, record candidates, or record what has no baseline and judge the rest",
    "--programs": "folder of pytest and perfgate (default: /opt/perfgate/bin)",
    "--requirements": "hashed requirements that each job installs instead",
    "--tags": "tags of GPU runners; {gpu}: the kind of GPU (default: {gpu})",
    "--report-tags": "tags of the reporting runner (default: none)",
    "--image": "image of GPU jobs (default: the runner's)",
    "--report-image": "image of the report job (default: --image)",
    "--options": "further words for pytest, e.g. '--launcher slurm'",
    "--expire-in": "lifetime of artifacts (default: 30 days)",
}
_MATRIX_ABOUT = """\
the jobs that measure a selection, one line of JSON for GitHub and GitLab

For each kind of GPU up to N rows, divided as `pytest --shard` divides; a row is run by
`pytest -m EXPRESSION --shard SHARD`. docs/how-to/shards.md

exit status: 0 done; 2 nothing is selected, or unusable input"""
_DECISION_ABOUT = """\
what a pipeline does with the exit status of a run: pass, warn or block

Prints the word and one sentence. docs/reference/verdicts.md

exit status: 0 for pass and warn; for block the status that it was given (11 where that is 0, of a
rehearsal that was none); 2 wrong usage"""
_GITLAB_ABOUT = """\
the child pipeline of a matrix, for ci/gitlab/perfgate.gitlab-ci.yml. docs/how-to/gitlab.md

exit status: 0 done; 2 wrong usage or unusable input"""


def add_options(command: argparse.ArgumentParser) -> None:
    """Add this command's verbs."""
    make = verb_maker(command)

    summary = "print the jobs of a selection, as JSON for CI systems"
    verb = make("matrix", summary, _matrix, _MATRIX_ABOUT)
    add = described(verb, _MATRIX)
    add("-m", "--marker", action="append", default=[], metavar="EXPRESSION")
    add("--gpu", choices=GPUS)
    add("--shards", type=int, default=1, metavar="N")
    add_folder(verb)

    summary = "decide on a run's exit status: pass, warn or block"
    verb = make("decision", summary, _decision, _DECISION_ABOUT)
    add = described(verb, _DECISION)
    add("--event", choices=[str(event) for event in Event], required=True)
    add("status", type=_status, metavar="STATUS")
    add_format(verb)

    verb = make("gitlab", "print GitLab's child pipeline of a matrix", _gitlab, _GITLAB_ABOUT)
    add = described(verb, _GITLAB)
    add("--matrix", type=Path, required=True, metavar="FILE")
    add("--event", choices=[str(event) for event in Event], required=True)
    add("--mode", choices=list(_MODES), default="gate")
    add("--programs", default="/opt/perfgate/bin", metavar="FOLDER")
    add("--requirements", default="", metavar="FILE")
    add("--tags", default="{gpu}", metavar="TAGS")
    add("--report-tags", default="", metavar="TAGS")
    add("--image", default="", metavar="NAME")
    add("--report-image", default="", metavar="NAME")
    add("--options", default="", metavar="WORDS")
    add("--expire-in", default="30 days", metavar="TIME")


def _matrix(arguments: argparse.Namespace) -> int:
    markers = [expression for expression in arguments.marker if expression]
    several = len(arguments.marker) > 1
    expression = " and ".join(f"({one})" if several else one for one in markers)
    gpus = GPUS if arguments.gpu is None else (arguments.gpu,)
    matrix, warnings = matrix_of(load(arguments.scenarios), expression, gpus, arguments.shards)
    warn(warnings)
    print(json_text(to_plain(matrix)))
    return 0


def _status(text: str) -> int:
    # int() alone takes "1_0", " 1" and other scripts' digits, which no shell prints.
    if not re.fullmatch(r"[0-9]{1,3}", text) or int(text) > LARGEST:
        raise argparse.ArgumentTypeError(f"not an exit status: {text!r}, expected 0 to {LARGEST}")
    return int(text)


def _decision(arguments: argparse.Namespace) -> int:
    event, status = Event(arguments.event), arguments.status
    decided = decision(event, status)
    ends_in = final_status(decided, status)
    plain = {"event": str(event), "status": status, "decision": str(decided.action)}
    return answer(
        arguments,
        {**plain, "sentence": decided.sentence, "exit_status": ends_in},
        f"{decided.action}: {event}, status {status}: {decided.sentence}",
        status=ends_in,
    )


def _gitlab(arguments: argparse.Namespace) -> int:
    try:
        words = shlex.split(arguments.options)
    except ValueError as error:
        raise InputError("--options: not quoted as in a shell", found=str(error)) from error
    is_rehearsal = any(word.startswith("--rehearse") for word in words)
    event = Event.REHEARSAL if is_rehearsal else Event(arguments.event)
    mode = arguments.mode
    if event is Event.RELEASE and mode != "gate":
        raise InputError("a release is gated", field="--mode", found=mode, expected="gate")
    # A rehearsal that records nothing has no baselines of what is real.
    options = [] if event is Event.REHEARSAL and mode == "gate" else _MODES[mode]
    matrix = read_matrix(read_input(arguments.matrix, LARGEST_MATRIX, "matrix"), arguments.matrix)
    values = {
        **vars(arguments),
        "event": event.value,
        "matrix": to_plain(matrix),
        "rows": matrix.include,
        "report_tags": _tags(arguments.report_tags),
        "is_gated": "--gate" in options,
        "options": [*options, *words],
        # The job ends in one of these statuses, and GitLab shows it in orange.
        "tolerated": [
            status for status in range(LARGEST + 1) if decision(event, status).action is Action.WARN
        ],
    }
    # The filters refuse what cannot stand in a pipeline.
    print_template(
        "gitlab_child.yml", values, sh=_shell_word, json=json.dumps, tag=_tag, image=_image
    )
    return 0


def _tags(text: str) -> str:
    """Tags as words; an input that is a list comes as JSON, or with commas between."""
    if not text.startswith("["):
        return text.replace(",", " ")
    try:
        return " ".join(str(tag) for tag in json.loads(text))
    except ValueError as error:
        raise InputError("--report-tags: neither words nor a list in JSON", found=text) from error


def _shell_word(word: str) -> str:
    if not word.isprintable():
        raise InputError("a character that cannot be printed", found=repr(word), expected="a line")
    return shlex.quote(word)


def _tag(word: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}", word):
        raise InputError("no runner tag", found=word, expected="letters, digits and _ . : -")
    return word


def _image(name: str) -> str:
    if not re.fullmatch(r"[\w./:@-]+", name):
        raise InputError("no name of an image", found=name)
    return name
