"""Where the suite's folders are: scenarios, baselines, fixtures, and the machine's own store."""

import os
from pathlib import Path

from perfgate.core.errors import InputError


def repository() -> Path:
    """The folder that holds `scenarios/`, `baselines/` and `fixtures/`.

    `PERFGATE_ROOT` if set, else the nearest such folder above the working directory, else the
    checkout that perfgate was installed from.

    Raises:
        InputError: there is none.
    """
    setting = os.environ.get("PERFGATE_ROOT")
    if setting:
        root = Path(setting).resolve()
        if not _is_repository(root):
            raise InputError(
                "not a perfgate checkout",
                field="PERFGATE_ROOT",
                found=root,
                expected="a folder with scenarios/scenario.schema.json",
            )
        return root
    here = Path.cwd()
    checkout = Path(__file__).resolve().parents[3]
    for folder in (here, *here.parents, checkout):
        if _is_repository(folder):
            return folder
    raise InputError(
        "no perfgate checkout here",
        found=here,
        expected="a working directory inside a folder with scenarios/scenario.schema.json",
        hint="change into the checkout, or set PERFGATE_ROOT to it",
    )


def _is_repository(folder: Path) -> bool:
    return (folder / "scenarios" / "scenario.schema.json").is_file()


def machine_store() -> Path:
    """The git-ignored folder of what belongs to this machine alone: baselines, caches, locks."""
    setting = os.environ.get("PERFGATE_HOME")
    return Path(setting).resolve() if setting else repository() / ".perfgate"
