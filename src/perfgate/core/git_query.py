"""Git, asked or told something in a folder: no program that its repository names is run.

A repository chooses programs by its settings and attributes: hooks, a monitor of files, filters of
what is checked out or compared, commands that fetch what is missing. It may be another user's.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from perfgate.core.errors import InputError
from perfgate.core.program_query import Answer, NoStatus, ask_here

WITHIN_S = 60.0
QUIET = (
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.attributesFile=/dev/null"),
    *("-c", "core.autocrlf=false"),
    *("-c", "log.showSignature=false"),
)
_NEVER_ASK = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # of the same use before git 2.44
    "LC_ALL": "C",
}
# Set while a hook runs, these would name another repository than the one that was given.
_OF_ANOTHER = {
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
}
_FILTERING = frozenset({"status", "checkout-index"})  # commands that run filters
_FILTER = re.compile(r"(filter\..*)\.[^.]+", re.DOTALL)


def git_answer(
    folder: Path, *words: str, seconds: float = WITHIN_S, more: Mapping[str, str] | None = None
) -> Answer:
    """Run git in `folder`: no programs of the repository, no prompts, no network.

    Args:
        folder: where, as of ``git -C``.
        words: the command and its arguments; no shell sees them.
        seconds: the longest that it may take.
        more: variables that it is given besides.
    """
    call = ("git", *QUIET, "-C", str(folder))
    kept = {name: text for name, text in os.environ.items() if name not in _OF_ANOTHER}
    env = {**kept, **_NEVER_ASK, **(more or {})}
    if words[0] in _FILTERING:
        # Filters have no switch: each that is set is set to nothing.
        names = ("config", "-z", "--name-only", "--get-regexp", r"^filter\.")
        env |= dict(_without(ask_here((*call, *names), seconds, env).stdout, env))
    return ask_here((*call, *words), seconds, env)


def _without(filters: str, env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Variables that empty the filters of these settings, after those that `env` gives so."""
    found = (_FILTER.fullmatch(name) for name in filters.split("\0"))
    names = dict.fromkeys(name[1] for name in found if name)
    given = env.get("GIT_CONFIG_COUNT", "")
    number = int(given) if given.isdecimal() else 0
    for name in names:
        for part, text in (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")):
            yield f"GIT_CONFIG_KEY_{number}", f"{name}.{part}"
            yield f"GIT_CONFIG_VALUE_{number}", text
            number += 1
    yield "GIT_CONFIG_COUNT", str(number)


def ask_git(
    folder: Path, *words: str, field: str | None = None, more: Mapping[str, str] | None = None
) -> Answer:
    """`git_answer` where git must be there and answer.

    Args:
        folder: where, as of ``git -C``.
        words: the command and its arguments.
        field: the option that named the folder, for messages.
        more: variables that it is given besides.

    Raises:
        InputError: git is not installed, or gives no answer in time.
    """
    answer = git_answer(folder, *words, seconds=WITHIN_S, more=more)
    if answer.cause is NoStatus.TOO_LONG:
        raise InputError(
            f"git gave no answer within {WITHIN_S:.0f} s",
            field=field,
            found=f"git {' '.join(words)} in {folder}",
            expected="a clone on a disk that answers",
        )
    if answer.status is None:
        raise InputError(
            "git cannot be started", field=field, found=answer.refusal, expected="git on PATH"
        )
    return answer
