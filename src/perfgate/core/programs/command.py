"""Command: one program call as a plain value, and the step of a scenario that makes it.

Nothing is started here; launchers do that.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from perfgate.core.programs.environment_variables import export_line
from perfgate.core.redaction import holds_secret, mask_arguments, remember

_NOT_IN_QUOTES = re.compile(r"[^\w*=:/.,@ -]")  # within double quotes and braces of a shell


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
        asked_by: option, or key of a file with dots → the scenario's field that gives it as it is;
            what perfgate itself spells is not among them.
        on_every_rank: where ranks are launched, each runs the program itself; else one of them
            does, and the others work for it.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    stdout: str | None = None
    asked_by: Mapping[str, str] = field(default_factory=dict)
    on_every_rank: bool = False

    def __post_init__(self) -> None:
        remember(self.env, self.argv)  # the program may write its secrets into its log

    def as_shell(self) -> str:
        """The same call as a POSIX shell script that a person can paste and run.

        What is secret, and values of variables that are not known to be harmless, are asked for.
        """
        lines = ["#!/bin/sh", "set -e"]
        if self.cwd is not None:
            lines.append(f"cd {shlex.quote(str(self.cwd))}")
        for name, content in self.files.items():
            if holds_secret("", content):
                lines.append(f"test -s {shlex.quote(name)}  # holds a secret: write it yourself")
            else:
                lines.append(f"printf %s {shlex.quote(content)} > {shlex.quote(name)}")
        lines += [export_line(name, value) for name, value in self.env.items()]
        call = "exec " + " \\\n  ".join(self._words())
        lines.append(call if self.stdout is None else f"{call} > {shlex.quote(self.stdout)}")
        return "\n".join(lines) + "\n"

    def _words(self) -> Iterator[str]:
        """The arguments for a shell; one with a secret in it as a variable that must be set."""
        for number, (word, masked) in enumerate(
            zip(self.argv, mask_arguments(self.argv), strict=True)
        ):
            if word == masked:
                yield shlex.quote(word)
            else:
                hint = _NOT_IN_QUOTES.sub("_", masked)
                yield f'"${{SECRET_{number}:?{hint}}}"'


Role = Literal["prepare_dataset", "server", "smoke", "client", "benchmark", "evaluator"]
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True)
class Step:
    """One program call.

    Attributes:
        role: what it is for. ``benchmark`` is a measuring program with the engine inside itself,
            ``client`` one that puts load on the ``server``.
        command: the call. File names in it are relative to the folder it runs in.
        probe: label of the probe it belongs to; None: it serves all of them.
        produces: name of a file it makes that depends on nothing but the call itself, and so may
            be kept and used again (a synthetic dataset); None: nothing.
    """

    role: Role
    command: Command
    probe: str | None = None
    produces: str | None = None
