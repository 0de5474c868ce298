"""LockWait: wait for nodes whose locks other starts of this machine hold, and say who has them."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from perfgate.core.errors import RunError
from perfgate.machine.leases.lock_folder import LockFolder

TELL_EVERY_S = 30.0
_GUARD_S = 3.0
_PAUSES_S = (0.05, 1.0)  # between two tries: the first, and the longest


@dataclass(frozen=True)
class LockWait:
    """One wait.

    Attributes:
        folder: of the locks.
        nodes: what is waited for: ``2 of 3 hosts``.
        limit_s: how long.
        failure: class of the failure when that is over.
        tell: says now and then who has them.
        hint: what to do when it is over; None: as the class says.
    """

    folder: LockFolder
    nodes: str
    limit_s: float
    failure: str
    tell: Callable[[str], None]
    hint: str | None = None

    def until(self, take: Callable[[], str]) -> None:
        """Call `take` again and again, alone in the folder, until it says that nobody has them.

        Args:
            take: takes the locks; who has what is missing, empty when nothing is.

        Raises:
            RunError: others had them all the time.
        """
        began, told, pause_s = time.monotonic(), float("-inf"), _PAUSES_S[0]
        while True:
            try:
                with self.folder.guarded(time.monotonic() + _GUARD_S):
                    busy = take()
            except TimeoutError as error:  # somebody is stuck in there; with who
                busy = str(error)
            if not busy:
                return
            waited = time.monotonic() - began
            if waited >= self.limit_s:
                late = f"waited {waited:.0f} s for {self.nodes}: {busy}"
                raise RunError(self.failure, late, hint=self.hint)
            if waited - told >= TELL_EVERY_S:
                told = waited
                self.tell(f"waits for {self.nodes}: {busy}")
            time.sleep(pause_s)
            pause_s = min(1.5 * pause_s, _PAUSES_S[1])
