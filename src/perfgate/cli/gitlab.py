"""`perfgate gitlab child`: the child pipeline of a matrix, for ci/gitlab/perfgate.gitlab-ci.yml.

exit status: 0 done; 2 wrong usage or unusable input. docs/how-to/gitlab.md
"""

import argparse
import json
import shlex
from pathlib import Path

from perfgate.cli.output import described
from perfgate.core.errors import InputError
from perfgate.core.input_files import read_input
from perfgate.plan.gitlab_pipeline import (
    MODES,
    ChildSettings,
    as_yaml,
    child_pipeline,
    read_rows,
)
from perfgate.runs.exit_status import LARGEST, Action, Event, decision

_LARGEST = 4 * 2**20

_CHILD = {
    "--matrix": "what perfgate matrix printed",
    "--event": "what the pipeline is for: it says which statuses stop it; with --rehearse among "
    "--options always rehearsal",
    "--mode": "judge (gate), measure what baselines are made of (record), or record what has none "
    "and judge the rest (auto)",
    "--programs": "folder of pytest and perfgate on the runners (default: /opt/perfgate/bin)",
    "--requirements": "a file of hashed requirements, which each job installs first instead",
    "--tags": "tags of the runners with GPUs; {gpu} becomes the kind of GPU (default: {gpu})",
    "--report-tags": "tags of the runner that merges and reports (default: none)",
    "--image": "container image of the jobs with GPUs (default: the runner's)",
    "--report-image": "container image of the job that reports (default: that of --image)",
    "--options": "further words for pytest, quoted as in a shell, e.g. '--launcher slurm'",
    "--expire-in": "how long artifacts are kept (default: 30 days)",
}


def add_options(command: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    verbs = command.add_subparsers(required=True, metavar="VERB")
    child = verbs.add_parser("child", help="print the child pipeline that measures a matrix")
    add = described(child, _CHILD)
    add("--matrix", type=Path, required=True, metavar="FILE")
    add("--event", choices=[str(one) for one in Event], required=True)
    add("--mode", choices=list(MODES), default="gate")
    add("--programs", default="/opt/perfgate/bin", metavar="FOLDER")
    add("--requirements", default="", metavar="FILE")
    add("--tags", default="{gpu}", metavar="TAGS")
    add("--report-tags", default="", metavar="TAGS")
    add("--image", default="", metavar="NAME")
    add("--report-image", default="", metavar="NAME")
    add("--options", default="", metavar="WORDS")
    add("--expire-in", default="30 days", metavar="TIME")
    child.set_defaults(execute=_child)


def tolerated(event: Event) -> tuple[int, ...]:
    """The statuses that only warn: the job ends in one of them, and GitLab shows it in orange."""
    statuses = range(LARGEST + 1)
    return tuple(one for one in statuses if decision(event, one).action is Action.WARN)


def _child(arguments: argparse.Namespace) -> int:
    try:
        options = tuple(shlex.split(arguments.options))
    except ValueError as error:
        raise InputError("--options: not quoted as in a shell", found=str(error)) from error
    rehearses = any(word.startswith("--rehearse") for word in options)
    event = Event.REHEARSAL if rehearses else Event(arguments.event)
    if event is Event.RELEASE and arguments.mode != "gate":
        raise InputError(
            "a release is gated", field="--mode", found=arguments.mode, expected="gate"
        )
    settings = ChildSettings(
        event=str(event),
        mode=arguments.mode,
        tolerated=tolerated(event),
        programs=arguments.programs,
        requirements=arguments.requirements,
        tags=arguments.tags,
        report_tags=_words(arguments.report_tags),
        image=arguments.image,
        report_image=arguments.report_image,
        options=options,
        expire_in=arguments.expire_in,
    )
    rows = read_rows(read_input(arguments.matrix, _LARGEST, "matrix"))
    print(as_yaml(child_pipeline(rows, settings)), end="")
    return 0


def _words(tags: str) -> str:
    """Tags as words; an input that is a list comes as JSON, or with commas between."""
    if not tags.startswith("["):
        return tags.replace(",", " ")
    try:
        return " ".join(str(tag) for tag in json.loads(tags))
    except ValueError as error:
        raise InputError("--report-tags: neither words nor a list in JSON", found=tags) from error
