"""Dataset cache: what a step makes that depends on its call alone is made once and used again.

Tokenizing 100,000 synthetic prompts takes minutes, and every fresh start asks for the same ones.
"""

import hashlib
import json
import uuid
from collections.abc import Callable
from pathlib import Path

from perfgate.core.durable_files import disk_errors_named
from perfgate.core.steps import Step


def made_once(step: Step, folder: Path, store: Path, make: Callable[[], None]) -> bool:
    """Put the file that `step` produces into `folder`, from `store` if it was made before.

    Args:
        step: a step that `produces` a file.
        folder: where the file is wanted, and where `make` makes it.
        store: where such files are kept, by their call.
        make: runs the step in `folder`.

    Returns:
        Whether it had to be made.
    """
    name = step.produces
    if name is None:
        raise ValueError(f"a {step.role} step that produces nothing")
    kept = store / _digest(step) / name
    made = not kept.is_file()
    with disk_errors_named(store):
        if made:
            make()
            kept.parent.mkdir(parents=True, exist_ok=True)
            # Renamed into place, so that a reader never sees half of it.
            part = kept.with_name(f"{name}.{uuid.uuid4().hex}")
            (folder / name).replace(part)
            part.replace(kept)
        else:
            (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(kept)
    return made


def _digest(step: Step) -> str:
    command = step.command
    call = [command.argv, sorted(command.env.items()), sorted(command.files.items()), step.produces]
    return hashlib.sha256(json.dumps(call).encode()).hexdigest()[:24]
