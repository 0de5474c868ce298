"""Dataset cache: what a step makes that depends on its call alone is made once and used again.

Tokenizing 100,000 synthetic prompts takes minutes, and every fresh start asks for the same ones.
"""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

from perfgate.core.durable_files import write_errors_named
from perfgate.core.kept_files import ANOTHER_STORE, kept_folder
from perfgate.core.steps import Step


def made_once(step: Step, folder: Path, store: Path, make: Callable[[], None]) -> bool:
    """Put the file that `step` produces into `folder`, from `store` if it is there whole.

    Args:
        step: a step that `produces` a file.
        folder: where the file is wanted, and where `make` makes it.
        store: where such files are kept, by their call, with size and hash.
        make: runs the step in `folder`.

    Returns:
        Whether it had to be made.
    """
    name = step.produces
    if name is None:
        raise ValueError(f"a {step.role} step that produces nothing")

    def fill(draft: Path) -> None:
        make()
        # Not renamed: the store may be on another disk than the run folder.
        with write_errors_named(store, ANOTHER_STORE):
            shutil.move(folder / name, draft / name)

    kept = store / _digest(step)
    made = kept_folder(kept, fill)
    with write_errors_named(folder):
        (folder / name).unlink(missing_ok=True)
        # A copy: the run folder is evidence by itself, and `perfgate release pack` refuses links.
        shutil.copyfile(kept / name, folder / name)
    return made


def _digest(step: Step) -> str:
    command = step.command
    call = [command.argv, sorted(command.env.items()), sorted(command.files.items()), step.produces]
    return hashlib.sha256(json.dumps(call).encode()).hexdigest()[:24]
