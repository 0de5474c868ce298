"""Holder: who holds a lock or waits for one, as text in the lock's file, for messages alone.

The text is never believed over the lock: it is read only of a lock that is held.
"""

import getpass
import json
import os
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Self

import msgspec

from perfgate.core import json_text
from perfgate.core.process_identity import began, lives, pid_namespace

UNNAMED = "an unknown holder"
_LAST_PID = 2**31 - 1
_LONGEST = 120  # characters of one field; another user may have written anything


@dataclass(frozen=True)
class LeaseOwner:
    """For what a lease is asked."""

    run: str
    scenario: str


@dataclass(frozen=True)
class Holder:
    """One process that holds a lock or waits for one.

    Attributes:
        pid: its number, in its own pid namespace.
        began: its start in clock ticks, which tells it from a reuse of its number.
        namespace: that pid namespace.
        user: who runs it.
        run: the run that it belongs to.
        scenario: what is measured.
        since: local time of taking the lock, ISO 8601; for people, compared with nothing.
    """

    pid: int
    began: int
    namespace: str
    user: str
    run: str
    scenario: str
    since: str

    @classmethod
    def now(cls, owner: LeaseOwner) -> Self:
        """This process, as `owner`."""
        since = datetime.now().astimezone().isoformat(timespec="seconds")
        pid = os.getpid()
        who = (_user(), owner.run, owner.scenario)
        return cls(pid, began(pid) or 0, pid_namespace(), *who, since)

    @classmethod
    def read(cls, plain: object) -> Self | None:
        """The holder that a lock's text names; None: it names none."""
        try:
            holder = msgspec.convert(plain, cls)
            datetime.fromisoformat(holder.since)
        except ValueError:  # msgspec's are such, too
            return None
        if not 0 < holder.pid <= _LAST_PID:
            return None
        fields: dict[str, Any] = {
            name: _printable(value) if isinstance(value, str) else value
            for name, value in asdict(holder).items()
        }
        return cls(**fields)

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    def text(self) -> str:
        """As the text of a lock's file."""
        return json.dumps(self.plain())

    @property
    def has_ended(self) -> bool:
        """Whether the process is known to be gone, so that what it started keeps the lock."""
        return self.namespace == pid_namespace() and not lives(self.pid, self.began)

    def __str__(self) -> str:
        since = datetime.fromisoformat(self.since)
        today = since.date() == datetime.now().astimezone().date()
        when = since.strftime("%H:%M" if today else "%Y-%m-%d %H:%M")
        who = f"run {self.run} (pid {self.pid}, {self.user})"
        what = f"what {who} left behind when it ended" if self.has_ended else who
        return f"{what} since {when} for {self.scenario}"


def holder_in(text: str) -> Holder | None:
    """The holder that a lock file's text names; None where it is empty or cut."""
    try:
        return Holder.read(json_text.parse(text))
    except ValueError:
        return None


def _printable(text: str) -> str:
    return "".join(one if one.isprintable() else "?" for one in text[:_LONGEST])


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user has no name (OSError from Python 3.13 on)
        return f"user {os.getuid()}"
