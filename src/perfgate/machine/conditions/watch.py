"""Watch: a thread that looks at CPU and GPUs again and again while a block runs. It judges nothing.

with watched(gpus=8) as watch:
    ...
watch.conditions
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from perfgate.machine.conditions.conditions import Conditions, not_watched
from perfgate.machine.conditions.cpu import HAND_OVER, CpuAccount, read_cpu
from perfgate.machine.conditions.gpu import Gpus, open_gpus
from perfgate.machine.conditions.processes import Marked, Process, process_table, tree_of

COST = 0.01  # share of one core that looking may take; where a look costs more, looks are rarer
PATIENCE_S = 10.0  # for one look; a driver that hangs must not hang the measurement
MOST_NOTES = 40  # an error whose text changes would bring a new one at every look


@dataclass(eq=False)
class Watch:
    """What is seen while a block runs; made by `watched`, whose thread alone looks.

    Attributes:
        before: GPU's UUID → pids on it before any program of ours ran; empty where that is unknown.
    """

    before: Mapping[str, frozenset[int]] = field(default_factory=dict)
    _wanted: int = 0
    _since: "Watch | None" = None
    _visible: str | None = None
    _marked: Marked | None = None
    _conditions: Conditions | None = None
    _notes: list[str] = field(default_factory=list)
    _cpu: CpuAccount = field(default_factory=CpuAccount)
    _gpus: Gpus = field(default_factory=lambda: Gpus([]))
    _began_s: float = 0.0
    _at_s: float = 0.0
    _last_s: float = 0.0
    _samples: int = 0

    @property
    def conditions(self) -> Conditions:
        """What was seen, from the first look to the last.

        Raises:
            ValueError: the block still runs.
        """
        if self._conditions is None:
            raise ValueError("the conditions are known when the watched block is over")
        return self._conditions

    def conclude(self, conditions: Conditions) -> None:
        """Set what was seen, unless that was done before."""
        self._conditions = self._conditions or conditions

    def run(self, interval_s: float, looked: threading.Event, over: threading.Event) -> None:
        """Look, wait, look …, and once more when it is over."""
        try:
            self._try(self._open)
            is_last = False
            while True:
                began_s = time.thread_time()
                self._try(self._gpus.sample)
                self._try(self._look)
                looked.set()
                if is_last:
                    break
                cost_s = time.thread_time() - began_s
                is_last = over.wait(max(interval_s, cost_s / COST))
            self._try(self._conclude)
            self._try(self._gpus.close)
        finally:
            looked.set()
            self.conclude(not_watched("; ".join(self._notes) or "looking ended early"))

    def _try(self, act: Callable[[], None]) -> None:
        """Do it; what goes wrong is noted once, as no measurement may fail for its watch."""
        try:
            act()
        except Exception as error:
            note = f"not all was watched: {type(error).__name__}: {error}"
            if note not in self._notes:
                self._notes.append(note)

    def _open(self) -> None:
        self._gpus = open_gpus(self._wanted, self._notes, self._visible)

    def _look(self) -> None:
        """What needs the process table; it must be younger than the GPUs' answers."""
        ours, table = self._ours()
        self._at_s = time.monotonic()
        if not self._samples:
            self._began_s = self._at_s
        self._samples += 1
        self._gpus.tell_apart(table, frozenset(process.pid for process in ours))
        is_first = self._marked is None and self._since is None and self._samples == 1
        if is_first and len(ours) == 1:
            self.before = self._gpus.present()  # nothing of ours runs yet
        if self._since is not None:
            self.before = self._since.before
        # Where ours are marked, what is handed over carries the mark.
        self._cpu.add(read_cpu(self._at_s, ours, HAND_OVER if self._marked is None else ()))

    def _ours(self) -> tuple[list[Process], dict[int, Process]]:
        """Our processes, and the whole table.

        A child that ends between the reading of its parent and its own is missing for once; the
        CPU time of ours seems to drop then, and is read again.
        """
        for _ in range(2):
            table = process_table()
            marked = self._marked
            ours = tree_of(os.getpid(), table) if marked is None else marked.among(table)
            ours_s = sum(process.cpu_s for process in ours)
            if ours_s >= self._last_s:
                break
        self._last_s = ours_s
        return ours, table

    def _conclude(self) -> None:
        cpu = self._cpu.conditions()
        gpus = self._gpus.conditions(self.before)
        notes = [*self._notes, *self._cpu.notes()]
        if cpu is None:
            notes.append("CPU not watched: fewer than two samples")
        self.conclude(
            Conditions(
                seconds=self._at_s - self._began_s,
                samples=self._samples,
                cpu=cpu,
                gpus=gpus,
                notes=tuple(notes[:MOST_NOTES]),
            )
        )


@dataclass
class NodesWatch:
    """What is seen on other nodes while a block runs.

    Attributes:
        conditions: node → what was seen there; filled when the block is over.
    """

    conditions: dict[str, Conditions] = field(default_factory=dict)


@contextmanager
def watched(
    gpus: int,
    *,
    interval_s: float = 1.0,
    since: Watch | None = None,
    visible: str | None = None,
    marked: Marked | None = None,
) -> Iterator[Watch]:
    """Watch this machine while the block runs.

    The first look is over before the block begins, and the last is made when it has ended, however
    it ended. Nothing that goes wrong in looking is raised: it is in the conditions' notes.

    Args:
        gpus: how many GPUs of this machine the watched program uses; 0: NVML is not asked.
        interval_s: from one look to the next, at least.
        since: the watch that began before the engine was started, when this one begins later. It
            knows who was on the GPUs already.
        visible: CUDA_VISIBLE_DEVICES of the watched program; None: as this process has it.
        marked: tells our processes; None: they are this one and what is below it.
    """
    watch = Watch({}, gpus, since, visible, marked)
    over, looked = threading.Event(), threading.Event()
    thread = threading.Thread(
        target=watch.run, args=(interval_s, looked, over), name="perfgate-watch", daemon=True
    )
    thread.start()
    looked.wait(PATIENCE_S)
    try:
        yield watch
    finally:
        over.set()
        thread.join(PATIENCE_S)
        if thread.is_alive():
            watch.conclude(
                not_watched(
                    f"a look at the machine did not end in {PATIENCE_S:.0f} s "
                    "(does the GPU's driver hang?)"
                )
            )
