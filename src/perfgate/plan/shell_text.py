"""Shell text: calls, variables and comments as lines of a shell script that people read."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence

from perfgate.core.programs.environment_variables import export_line
from perfgate.core.programs.programs import TRTLLM_LAUNCH
from perfgate.core.redaction import escaped

HOME_CACHE = "~/.cache"  # of whoever runs the script
_OPTION = re.compile(r"-{1,2}[A-Za-z]\S*")  # a negative number is a value


def quoted(word: str) -> str:
    """The word quoted for a shell, but for the tilde of `HOME_CACHE`: that one is meant."""
    return "~/" + shlex.quote(word[2:]) if word.startswith(HOME_CACHE) else shlex.quote(word)


def call(argv: Sequence[str], indent: str = "  ", written: Callable[[str], str] = quoted) -> str:
    """The argv for a shell: an option with its values a line, and what is launched one, too.

    Args:
        argv: program and arguments.
        indent: before all lines but the first.
        written: how a word is written.
    """
    lines: list[list[str]] = [[]]
    for word in argv:
        if lines[-1] and (_OPTION.fullmatch(word) or word == TRTLLM_LAUNCH.executable):
            lines.append([])
        lines[-1].append(written(word))
    return f" \\\n{indent}  ".join(" ".join(line) for line in lines)


def exports(variables: Mapping[str, str]) -> list[str]:
    """One for each variable, with its value or asking for it: see `environment_variables`."""
    return [export_line(name, value) for name, value in variables.items()]


def comment(text: str) -> str:
    """The text as one line that no shell reads, and no terminal obeys."""
    return f"# {escaped(text)}".rstrip()


def commented(script: str, indent: str = "  ") -> list[str]:
    """The lines of a script, each of them as a comment."""
    return [comment(indent + line) for line in script.split("\n")]
