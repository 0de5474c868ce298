"""The anchor's file: which commit's baseline a person has pinned as a scenario's anchor."""

from dataclasses import dataclass
from pathlib import Path

from perfgate.baselines.stored_json import check_hash, check_place, read_stored, with_hash
from perfgate.core.durable_files import write_json
from perfgate.core.errors import InputError
from perfgate.core.plain import from_plain, to_plain

NAME = "anchor"  # of the file, beside the baselines; no commit is called so
SCHEMA_VERSION = 1
_HINT = "pin it again with `perfgate baseline anchor`"


@dataclass(frozen=True)
class Anchor:
    """A pinned anchor.

    Attributes:
        scenario: the scenario's id.
        hardware: the hardware's label.
        commit: the engine commit whose baseline it is.
        by: the person.
        at: ISO 8601 date and time, UTC.
        reason: why this one.
    """

    scenario: str
    hardware: str
    commit: str
    by: str
    at: str
    reason: str


def read_anchor(folder: Path) -> Anchor | None:
    """The anchor pinned for the baselines in `folder`; None if there is none.

    Raises:
        InputError: not JSON, not as the schema says, of another folder, or edited by hand.
    """
    path = folder / f"{NAME}.json"
    if not path.exists():
        return None
    plain = read_stored(
        path, what="anchor", schema="anchor.schema.json", version=SCHEMA_VERSION, hint=_HINT
    )
    anchor = from_plain(Anchor, plain)
    check_place(path, {"hardware": anchor.hardware, "scenario": anchor.scenario, NAME: NAME})
    check_hash(path, plain, "anchor")
    return anchor


def write_anchor(folder: Path, anchor: Anchor) -> Path:
    """Pin `anchor` for the baselines in `folder`."""
    path = folder / f"{NAME}.json"
    write_json(path, with_hash({"schema_version": SCHEMA_VERSION, **to_plain(anchor)}))
    return path


def missing(anchor: Anchor, folder: Path) -> InputError:
    """That the pinned commit has no baseline."""
    return InputError(
        "the anchor names a commit that has no baseline",
        file=folder / f"{NAME}.json",
        field="commit",
        found=anchor.commit,
        expected="a baseline in the same folder",
        hint=f"{_HINT}, or restore that baseline from git",
    )
