"""What a launch writes into its folder before the start: files, script, empty logs."""

import contextlib
from pathlib import Path

from perfgate.core import raw_log
from perfgate.core.command import Command
from perfgate.core.redaction import holds_secret


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
        _create(file, undo)
        file.write_text(text, encoding="utf-8")
        if file == script or not holds_secret("", text):
            file.chmod(0o755 if file == script else 0o644)
    for log in (stdout_of(command, folder, name), folder / f"{name}.err"):
        _create(log, undo)
    # Of an earlier job of this name; it would be taken for this one's.
    (folder / f"{name}.evidence.txt").unlink(missing_ok=True)


def _create(file: Path, undo: contextlib.ExitStack) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    undo.callback(file.unlink, missing_ok=True)
    raw_log.create(file)
