"""CPU times: seconds that each core of this machine has worked since boot, for any program.

Interrupts are nobody's, and counted for nobody.
"""

import os
from pathlib import Path
from typing import NamedTuple

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Core(NamedTuple):
    """One core since boot, in seconds: user and system time of programs, and time that the
    hypervisor gave to other machines.
    """

    work_s: float
    steal_s: float


def core_times() -> dict[int, Core]:
    """The online cores of /proc/stat by number, in its order (proc_stat(5)).

    Raises:
        OSError: it cannot be read.
    """
    found = {}
    for line in Path("/proc/stat").read_text().splitlines():
        label, *fields = line.split()
        number = label.removeprefix("cpu")
        if label.startswith("cpu") and number.isdigit():
            user, nice, system, _idle, _iowait, _irq, _softirq, steal = map(int, fields[:8])
            work = user + nice + system  # a guest's time is in that of the user, or of the nice
            found[int(number)] = Core(work / TICKS_PER_S, steal / TICKS_PER_S)
    return found
