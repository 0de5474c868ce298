"""What a launch writes into its folder before the start: files, script, empty logs."""

import contextlib
import os
from pathlib import Path

from perfgate.core import raw_log
from perfgate.core.command import Command
from perfgate.core.redaction import holds_secret
from perfgate.core.untrusted_files import created_regular, make_new_folders


def stdout_of(command: Command, folder: Path, name: str) -> Path:
    """Where standard output goes: the job's log, or the file that the command names for it."""
    if command.stdout is None:
        return folder / f"{name}.out"
    return (command.cwd or folder) / command.stdout


def write_files(command: Command, folder: Path, name: str, undo: contextlib.ExitStack) -> None:
    """Write the command's files, its script and empty logs; `undo` takes them away again.

    Logs, and files with a secret in them, are for their owner alone.

    Args:
        command: with its working folder filled in, where its files go.
        folder: where script and logs go.
        name: the job's name.
        undo: filled with what removes the files.
    """
    cwd = command.cwd or folder
    script = folder / f"{name}.sh"
    contents = {cwd / file: text for file, text in command.files.items()}
    contents[script] = command.as_shell()
    for file, text in contents.items():
        mode = 0o755 if file == script else raw_log.PRIVATE if holds_secret("", text) else 0o644
        _create(file, undo, mode, text)
    for log in (stdout_of(command, folder, name), folder / f"{name}.err"):
        _create(log, undo, raw_log.PRIVATE)
    # Of an earlier job of this name; it would be taken for this one's.
    (folder / f"{name}.evidence.txt").unlink(missing_ok=True)


def _create(file: Path, undo: contextlib.ExitStack, mode: int, text: str = "") -> None:
    if not file.parent.exists():
        make_new_folders(file.parent)
    with os.fdopen(created_regular(file, mode), "w", encoding="utf-8") as new:
        undo.callback(file.unlink, missing_ok=True)
        new.write(text)
