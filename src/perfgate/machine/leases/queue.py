"""Queue: who waits, in the order of asking. A ticket is a locked file; a dead owner's is void.

All functions here are called while the folder is guarded. The number in a ticket's name is one more
than the highest of those who wait, so the order depends on no clock and needs no file to be
written. What other users put there and no session wrote is passed over.
"""

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from perfgate.core import json_text
from perfgate.core.errors import RunError
from perfgate.machine.leases.holder import UNNAMED, Holder
from perfgate.machine.leases.lock_folder import LockFile, LockFolder
from perfgate.machine.leases.request import LeaseRequest

_PREFIX = "waiting-"
_NUMBER = re.compile(r"([0-9]{9,15})\.lock")  # of a ticket's name, after the prefix
_LAST = 10**15 - 1


@dataclass(frozen=True)
class Ticket:
    """A place in the queue, held until `give_back`."""

    number: int
    file: LockFile

    def give_back(self) -> None:
        """Leave the queue. Need not be guarded."""
        if self.file.is_in_the_folder():
            self.file.delete()
        self.file.unlock()
        self.file.close()


def draw(folder: LockFolder, request: LeaseRequest, holder: Holder) -> Ticket | None:
    """Take the last place in the queue; None where the disk is full, or the numbers are used up.

    Without a ticket one waits behind all who have one.
    """
    for draft in folder.names(f".{request.world}{_PREFIX}"):  # of one who was killed just here
        folder.delete(draft)
    taken = _tickets(folder, request)
    waiting = (one for one, name in taken.items() if _text_if_waiting(folder, name) is not None)
    number = max(waiting, default=0) + 1
    while number in taken:  # a void one that this user may not remove
        number += 1
    if number > _LAST:
        return None
    name = f"{request.world}{_PREFIX}{number:09d}.lock"
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
    return Ticket(number, file)


def ahead(folder: LockFolder, request: LeaseRequest, ticket: Ticket | None) -> list[str]:
    """Who asked earlier for what `request` is about, and still waits, in words. Removes void
    tickets.

    Those with disjoint GPUs pass each other.
    """
    mine = None if ticket is None else ticket.number
    tickets = sorted(_tickets(folder, request).items())
    earlier = (name for number, name in tickets if mine is None or number < mine)
    texts = (_text_if_waiting(folder, name) for name in earlier)
    found = (_hindrance(text, request) for text in texts if text is not None)
    return [words for words in found if words]


def _tickets(folder: LockFolder, request: LeaseRequest) -> dict[int, str]:
    """Number → name of what is named as a ticket."""
    prefix = request.world + _PREFIX
    named = ((_NUMBER.fullmatch(one.removeprefix(prefix)), one) for one in folder.names(prefix))
    return {int(match[1]): name for match, name in named if match}


def _text_if_waiting(folder: LockFolder, name: str) -> str | None:
    """A ticket's text; None: nobody holds it, and it is removed, or no session wrote it."""
    with folder.existing(name) as file:
        if file is None:
            return None
        if not file.try_lock():
            text = file.read()
            return text if not text or _asked(text) else None
        with suppress(OSError):  # another user's, in a sticky folder: void all the same
            file.delete()
        file.unlock()
    return None


def _asked(text: str) -> tuple[dict[str, Any], Holder] | None:
    """What a ticket's text asks for, and for whom; None: no session wrote it."""
    try:
        plain = json_text.parse(text)
        wanted = {
            "keys": [str(key) for key in plain["request"]["keys"]],
            "alone": bool(plain["request"]["alone"]),
            "words": str(plain["request"]["words"])[:60],
        }
        holder = Holder.read(plain["holder"])
    except (ValueError, KeyError, TypeError):
        return None
    return None if holder is None else (wanted, holder)


def _hindrance(text: str, request: LeaseRequest) -> str:
    """Who waits for what, if it hinders; a ticket without a text, as of a full disk, does."""
    asked = _asked(text)
    if asked is None:
        return UNNAMED
    wanted, holder = asked
    if not request.is_hindered_by(wanted["keys"], alone=wanted["alone"]):
        return ""
    words = "".join(one for one in wanted["words"] if one.isprintable())
    return f"{holder}, waiting for {words}"
