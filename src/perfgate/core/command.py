"""Command: one program call as a plain value. Nothing is started here; launchers do that."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perfgate.core.secrets import is_secret


@dataclass(frozen=True)
class Command:
    """A program call: argv, what it adds to the environment, the files it reads.

    Attributes:
        argv: the program and its arguments, never a shell string.
        env: environment variables added to (or replacing) those of the caller.
        files: file name → content, written into the working folder before the start.
        cwd: the working folder; the launcher's folder when None.
        stdout: name of the file in the working folder that standard output goes to, for programs
            that print their result; the launcher's own log when None.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    stdout: str | None = None

    def as_shell(self) -> str:
        """The same call as a POSIX shell script that a person can paste and run.

        Secret variables are asked for, not written down.
        """
        lines = ["#!/bin/sh", "set -e"]
        if self.cwd is not None:
            lines.append(f"cd {shlex.quote(str(self.cwd))}")
        for name, content in self.files.items():
            lines.append(f"printf %s {shlex.quote(content)} > {shlex.quote(name)}")
        for name, value in self.env.items():
            if is_secret(name):
                lines.append(f': "${{{name}:?a secret, set it yourself}}"')
            else:
                lines.append(f"export {name}={shlex.quote(value)}")
        call = "exec " + " \\\n  ".join(shlex.quote(word) for word in self.argv)
        lines.append(call if self.stdout is None else f"{call} > {shlex.quote(self.stdout)}")
        return "\n".join(lines) + "\n"
