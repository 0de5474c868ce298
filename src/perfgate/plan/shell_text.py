"""Shell text: calls and variables as lines of a shell script that people read."""

import re
import shlex
from collections.abc import Mapping, Sequence

from perfgate.core.programs import TRTLLM_LAUNCH
from perfgate.core.secrets import is_secret

_OPTION = re.compile(r"-{1,2}[A-Za-z]\S*")  # a negative number is a value


def call(argv: Sequence[str], indent: str = "  ") -> str:
    """The argv for a shell: an option with its values a line, and what is launched one, too."""
    lines: list[list[str]] = [[]]
    for word in argv:
        if lines[-1] and (_OPTION.fullmatch(word) or word == TRTLLM_LAUNCH.executable):
            lines.append([])
        lines[-1].append(quoted(word))
    return f" \\\n{indent}  ".join(" ".join(line) for line in lines)


def quoted(word: str) -> str:
    """The word quoted for a shell, but for a tilde at its beginning: that one is meant."""
    return "~/" + shlex.quote(word[2:]) if word.startswith("~/") else shlex.quote(word)


def exports(variables: Mapping[str, str]) -> list[str]:
    """A line per variable; secrets are asked for, not written down."""
    return [
        f'export {name}="${{{name}:?a secret, set it yourself}}"'
        if is_secret(name)
        else f"export {name}={shlex.quote(value)}"
        for name, value in variables.items()
    ]
