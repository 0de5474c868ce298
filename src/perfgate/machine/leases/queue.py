"""Queue: who waits, in the order of asking. A ticket is a locked file; a dead owner's is void.

All functions here are called while the folder is guarded. The number in a ticket's name is one more
than the highest there, so the order depends on no clock and needs no file to be written.
"""

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from perfgate.core import json_text
from perfgate.core.errors import RunError
from perfgate.machine.leases.holder import UNNAMED, Holder
from perfgate.machine.leases.lock_folder import LockFile, LockFolder
from perfgate.machine.leases.request import LeaseRequest

_PREFIX = "waiting-"


@dataclass(frozen=True)
class Ticket:
    """A place in the queue, held until `give_back`."""

    name: str
    file: LockFile

    def give_back(self) -> None:
        """Leave the queue. Need not be guarded."""
        if self.file.is_in_the_folder():
            self.file.path.unlink(missing_ok=True)
        self.file.unlock()
        self.file.close()


def draw(folder: LockFolder, request: LeaseRequest, holder: Holder) -> Ticket | None:
    """Take the last place in the queue; None where the disk is full.

    Without a ticket one waits behind all who have one.
    """
    for draft in folder.names(f".{request.world}{_PREFIX}"):  # of one who was killed just here
        with suppress(OSError):
            (folder.path / draft).unlink()
    last = max((_number(name) for name in folder.names(request.world + _PREFIX)), default=0)
    name = f"{request.world}{_PREFIX}{last + 1:09d}.lock"
    try:
        file = folder.open(name)
    except RunError:
        return None
    try:
        if not file.try_lock():
            raise RuntimeError(f"{file.path} is locked although it was just made")
        file.write(json.dumps({"request": request.plain(), "holder": holder.plain()}))
    except BaseException:
        file.close()
        raise
    return Ticket(name, file)


def ahead(folder: LockFolder, request: LeaseRequest, ticket: Ticket | None) -> list[str]:
    """Who asked earlier for what `request` is about, and still waits, in words. Removes void
    tickets.

    Those with disjoint GPUs pass each other.
    """
    names = folder.names(request.world + _PREFIX)
    earlier = [one for one in names if ticket is None or _number(one) < _number(ticket.name)]
    texts = (_text_if_waiting(folder, name) for name in earlier)
    found = (_hindrance(text, request) for text in texts if text is not None)
    return [words for words in found if words]


def _text_if_waiting(folder: LockFolder, name: str) -> str | None:
    """A ticket's text; None, and the ticket is removed, when nobody holds it."""
    with folder.file(name) as file:
        if not file.try_lock():
            return file.read()
        with suppress(OSError):  # another user's, in a sticky folder: void all the same
            file.path.unlink()
        file.unlock()
    return None


def _hindrance(text: str, request: LeaseRequest) -> str:
    """Who waits for what, if it hinders; a text that cannot be read hinders everything."""
    try:
        plain: dict[str, Any] = json_text.parse(text)
        wanted = plain["request"]
        keys = [str(key) for key in wanted["keys"]]
        if not request.is_hindered_by(keys, alone=bool(wanted["alone"])):
            return ""
        holder = Holder.read(plain["holder"])
        words = "".join(one for one in str(wanted["words"])[:60] if one.isprintable())
    except (ValueError, KeyError, TypeError):
        return UNNAMED
    return f"{holder or UNNAMED}, waiting for {words}"


def _number(name: str) -> int:
    digits = name.rpartition("-")[2].removesuffix(".lock")
    return int(digits) if digits.isdigit() else 0
