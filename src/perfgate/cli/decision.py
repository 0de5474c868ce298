"""`perfgate decision`: what a pipeline does with the exit status of a run: pass, warn or block.

Prints the word and one sentence. Exit status: 0 for pass and warn; for block the status that it was
given (11 where that is 0, of a rehearsal that was none); 2 wrong usage. docs/reference/verdicts.md
"""

import argparse

from perfgate.cli.output import add_format, described, print_json
from perfgate.runs.exit_status import LARGEST, Event, decision, final_status

_HELP = {
    "--event": "what the run was made for; rehearsal: to try the pipeline without an engine",
    "status": "exit status of pytest or of perfgate report",
}


def add_options(command: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    add = described(command, _HELP)
    add("--event", choices=[str(one) for one in Event], required=True)
    add("status", type=_status, metavar="STATUS")
    add_format(command)
    command.set_defaults(execute=_run)


def _status(text: str) -> int:
    # int() alone takes "1_0", " 1" and other scripts' digits, which no shell prints.
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST))):
        raise argparse.ArgumentTypeError(f"not an exit status: {text!r}, expected 0 to {LARGEST}")
    if int(text) > LARGEST:
        raise argparse.ArgumentTypeError(f"not an exit status: {text}, expected 0 to {LARGEST}")
    return int(text)


def _run(arguments: argparse.Namespace) -> int:
    event, status = Event(arguments.event), arguments.status
    found = decision(event, status)
    ends_in = final_status(found, status)
    if arguments.format == "json":
        print_json(
            {
                "event": str(event),
                "status": status,
                "decision": str(found.action),
                "sentence": found.sentence,
                "exit_status": ends_in,
            }
        )
    else:
        print(f"{found.action}: {event}, status {status}: {found.sentence}")
    return ends_in
