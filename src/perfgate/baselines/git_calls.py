"""Git calls: git asked or told something in a folder, with no program of that folder's run."""

import os
from collections.abc import Mapping
from pathlib import Path

from perfgate.core.errors import InputError
from perfgate.core.program_query import Answer, NoStatus, ask_here

WITHIN_S = 60.0
# A hook, a monitor or a fetch of the clone's would be a program of someone else's choosing.
_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
_NEVER_ASK = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"}

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


def ask_git(
    folder: Path, *words: str, field: str | None = None, more: Mapping[str, str] | None = None
) -> Answer:
    """Run git in `folder`: no hooks, no prompts, no network.

    Args:
        folder: where, as of ``git -C``.
        words: the command and its arguments; no shell sees them.
        field: the option that named the folder, for messages.
        more: variables that it is given besides.

    Raises:
        InputError: git is not installed, or gives no answer in time.
    """
    kept = {name: text for name, text in os.environ.items() if name not in _OF_ANOTHER}
    answer = ask_here(
        ("git", *_QUIET, "-C", str(folder), *words),
        WITHIN_S,
        {**kept, **_NEVER_ASK, "LC_ALL": "C", **(more or {})},
    )
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
