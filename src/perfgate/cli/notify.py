"""`perfgate notify RUN… --state FILE`: tells a chat what a run changed, and nothing else.

One message goes to the webhook whose address is in PERFGATE_WEBHOOK (Slack's JSON), if a test is
newly red, newly green, newly undecided, or newly without a verdict. FILE keeps what was told.

Exit status: 0 whatever becomes of the message (a warning says what), and where there is nothing to
tell; 2 wrong usage, or an unusable run, FILE or address. docs/how-to/notify.md
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from perfgate.cli.input_warnings import warn
from perfgate.cli.output import add_format, described, print_json
from perfgate.cli.told_file import Sending, Told, ToldFile, held
from perfgate.cli.webhook import VARIABLE, Fate, address_of, post
from perfgate.core.control_characters import found_in
from perfgate.core.errors import InputError
from perfgate.core.plain import to_plain
from perfgate.core.redaction import mask
from perfgate.reports.merge import merge
from perfgate.reports.notification import LONGEST_LINK, message, summary
from perfgate.reports.run_report import RunReport
from perfgate.reports.series import Change, after, changes, standings
from perfgate.runs.ended_run import read_run

_HELP = {
    "runs": "run folders; several are one run in parts",
    "--state": "what was told so far; made where it is missing. One for each series of runs "
    "(a nightly, a release gate)",
    "--title": "what the runs are called in the message, e.g. the branch",
    "--link": "where to read on: http:// or https://",
    "--synthetic": "tell of a rehearsal, stamped so; by itself that is never told",
}


def add_options(command: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    add = described(command, _HELP)
    add("runs", type=Path, metavar="RUN", nargs="+")
    add("--state", type=Path, metavar="FILE", required=True)
    add("--title", default="", metavar="TEXT")
    add("--link", default="", metavar="URL")
    add("--synthetic", action="store_true")
    add_format(command)
    command.set_defaults(execute=_run)


@dataclass(frozen=True)
class Answer:
    """What became of a call.

    Attributes:
        fate: of the message; `nothing to tell`: there was none.
        why: in words.
        text: the message; empty: there was none.
        changes: what it tells, the worst first.
    """

    fate: Fate | Literal["nothing to tell"]
    why: str
    text: str = ""
    changes: tuple[Mapping[str, str | None], ...] = ()


_REHEARSAL = "a rehearsal: stand-ins made its numbers, so nothing is told (--synthetic tells it)"
_NO_REHEARSAL = "no result of a stand-in, so nothing is told: leave out --synthetic"


def _run(arguments: argparse.Namespace) -> int:
    link = _link(arguments.link)
    address = address_of(os.environ)
    if address is None:
        answer = Answer("nothing to tell", f"{VARIABLE} is not set, so nothing is told")
    else:
        answer = _notify(arguments, address, link)
    if answer.fate in ("not told", "unknown"):
        warn([answer.why])
    if arguments.format == "json":
        print_json(to_plain(answer))
    elif answer.fate in ("told", "nothing to tell"):
        print(answer.why)
    return 0


def _notify(arguments: argparse.Namespace, address: str, link: str) -> Answer:
    report = _report(arguments.runs)
    synthetic = arguments.synthetic
    found = standings(report, synthetic=synthetic)
    if not found:
        return Answer("nothing to tell", _NO_REHEARSAL if synthetic else _REHEARSAL)
    with held(arguments.state) as file:
        told = _without_interrupted(file)
        changed = changes(found, told.series)
        now = replace(told, series=after(found, told.series))
        if not changed:
            file.write(now)
            return Answer("nothing to tell", "nothing changed, so nothing is told")
        text = message(
            report, found, changed, title=arguments.title, link=link, synthetic=synthetic
        )
        return _tell(file, address, told, now, changed, text)


def _tell(
    file: ToldFile,
    address: str,
    before: Told,
    now: Told,
    changed: Sequence[Change],
    text: str,
) -> Answer:
    """Write down that it is told, post it, and take that back if it certainly was not."""
    names = [one.standing.name for one in changed]
    what = summary(changed)
    sending = Sending(what, {name: before.series.get(name) for name in names})
    file.write(replace(now, sending=sending))
    posted = post(address, {"text": text})
    if posted.fate == "not told":
        kept = {name: one for name, one in now.series.items() if name not in names}
        kept |= {name: before.series[name] for name in names if name in before.series}
        now = replace(now, series=kept)
    file.write(now)
    why = {
        "told": f"told: {what}",
        "not told": f"not told: {what}: {posted.why}; the next call tries again what then still "
        "holds",
        "unknown": f"perhaps not told: {what}: {posted.why}; it counts as told, and is not tried "
        "again",
    }[posted.fate]
    return Answer(
        posted.fate,
        why,
        text,
        tuple(
            {
                "name": one.standing.name,
                "scenario": one.standing.scenario,
                "before": one.before,
                "now": one.state,
            }
            for one in changed
        ),
    )


def _without_interrupted(file: ToldFile) -> Told:
    """What was told; a message that a killed call was about to post counts as told."""
    told = file.read()
    if told.sending is None:
        return told
    warn(
        [
            f"perhaps not told: {told.sending.what}: the call that was about to tell it was ended; "
            "it counts as told, and is not tried again"
        ]
    )
    return replace(told, sending=None)


def _link(text: str) -> str:
    """The address of a page, as a message may have it."""
    if not text:
        return ""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        usable = False
    odd = found_in(text) or next((one for one in " <>|`\"'*" if one in text), None)
    if not usable or odd or len(text.replace("&", "&amp;")) > LONGEST_LINK:
        raise InputError(
            "not an address of a page",
            field="--link",
            found=text[:LONGEST_LINK],
            expected=f"http:// or https://, at most {LONGEST_LINK} characters, none of them blank, "
            "a quote or one of <>|*`",
        )
    return mask(text)


def _report(runs: Sequence[Path]) -> RunReport:
    """The run, or all of them as one.

    Raises:
        InputError: one is no run, or is damaged; they are not one, or not all of it.
    """
    return merge([read_run(path) for path in runs]).report
