"""What a launch writes into its folder before the start: files, script, empty logs."""

import contextlib
from pathlib import Path

from perfgate.core.command import Command
from perfgate.core.durable_files import make_executable


def stdout_of(command: Command, folder: Path, name: str) -> Path:
    """Where standard output goes: the job's log, or the file that the command names for it."""
    if command.stdout is None:
        return folder / f"{name}.out"
    return (command.cwd or folder) / command.stdout


def write_files(command: Command, folder: Path, name: str, undo: contextlib.ExitStack) -> None:
    """Write the command's files, its script and empty logs; `undo` takes them away again.

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
    contents |= {stdout_of(command, folder, name): "", folder / f"{name}.err": ""}
    for file, text in contents.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        undo.callback(file.unlink, missing_ok=True)
        file.write_text(text, encoding="utf-8")
    make_executable(script)
    # Of an earlier job of this name; it would be taken for this one's.
    (folder / f"{name}.evidence.txt").unlink(missing_ok=True)
