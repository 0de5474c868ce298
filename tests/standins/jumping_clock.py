"""A plugin for pytest whose clock of the day jumps by an hour at every look. For tests alone.

The clock that only runs on (``time.monotonic``) is left as it is: no step of an administrator or of
a time server moves that one.
"""

import datetime
import random
import time

STEPS_S = (0.0, -3600.0, 3600.0)

_chance = random.Random(4)
_time = time.time
_datetime = datetime.datetime


class JumpingDatetime(_datetime):
    """The day and time by the jumping clock."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> "JumpingDatetime":
        return cls.fromtimestamp(time.time(), tz)


time.time = lambda: _time() + _chance.choice(STEPS_S)
datetime.datetime = JumpingDatetime  # type: ignore[misc]
