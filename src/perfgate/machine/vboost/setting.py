"""vboost setting: the GPUs' slider, set for a while and put back. Only a person asks for it.

As in the best-practice document on DeepSeek-R1, section "Optional: Tune GPU clocks". What was there
before is put back, not 0; so a slider whose levels cannot be read is not touched. A process of its
own sets it (`keeper`) and puts it back when this one lets go of it, or has ended in any way.
"""

import json
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, cast

from perfgate.core.errors import InputError, PerfgateError, RunError
from perfgate.machine.leases import kept_open
from perfgate.machine.preflight.inspection import FAILURE
from perfgate.machine.vboost.slider import CALL_S, NVIDIA_SMI, NotPermitted, levels, put_back

# The keeper calls nvidia-smi at most four times between two answers.
_ANSWER_S = 5 * CALL_S


@contextmanager
def boosted(level: int, gpus: Sequence[str] | None = None) -> Iterator[Mapping[str, int]]:
    """Set the slider, see that it is set, and put back what was there, however the block ends.

    It is put back when this process is killed, too: then a little later, and the leases that it
    holds last until that is done. Signals do here what they do without it.

    Args:
        level: the level, from 0 to what the GPUs have.
        gpus: the GPUs by number, as nvidia-smi counts them; None: all.

    Yields:
        GPU's number → the level that was there before.

    Raises:
        NotPermitted: this user may not set it.
        InputError: the level is higher than a GPU has.
        MissingProgram: there is no nvidia-smi.
        RunError: class ``unfit_machine``: it cannot be read, set or put back.
    """
    found = levels(gpus)
    highest = min(most for _, most in found.values())
    if not 0 <= level <= highest:
        raise InputError(
            "no such vboost level", field="vboost", found=level, expected=f"0 to {highest}"
        )
    before = {gpu: present for gpu, (present, _) in found.items()}
    keeper = _Keeper(level, before)
    try:
        keeper.require_set()
        yield before
    except BaseException as error:
        try:
            keeper.let_go()
        except PerfgateError as left:
            if isinstance(error, Exception):
                raise
            error.add_note(str(left))  # who ends the session still does
        raise
    else:
        keeper.let_go()


class _Keeper:
    """The process that sets the slider; see `keeper`. It has this process's leases, too."""

    def __init__(self, level: int, before: Mapping[str, int]) -> None:
        self._before = before
        request = json.dumps({"level": level, "before": before})
        with kept_open() as locks:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "perfgate.machine.vboost.keeper", request],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                pass_fds=locks,
                start_new_session=True,
            )
        self._input = cast("IO[str]", self._process.stdin)
        self._output = cast("IO[str]", self._process.stdout)

    def require_set(self) -> None:
        """Wait until the slider is set.

        Raises:
            NotPermitted, RunError: it is not.
        """
        if not self._hear():
            raise RunError(FAILURE, "the process that sets vboost ended before it was set")

    def let_go(self) -> None:
        """Have it put back what was there, and wait until that is done.

        Raises:
            NotPermitted, RunError: it is not.
        """
        try:
            with suppress(BrokenPipeError):
                self._input.close()
            if not self._hear():  # it was killed, so it can do nothing any more
                put_back(self._before)
        finally:
            self._output.close()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(CALL_S)

    def _hear(self) -> bool:
        """The next answer; False: there will be none."""
        answers = select.poll()
        answers.register(self._output, select.POLLIN)
        if not answers.poll(_ANSWER_S * 1000):
            raise RunError(
                FAILURE,
                f"nvidia-smi did not set vboost in {_ANSWER_S:.0f} s; process "
                f"{self._process.pid} still tries",
                hint="nvidia-smi boost-slider -l shows what is set",
            )
        line = self._output.readline()
        if not line:
            return False
        error = json.loads(line)["error"]
        if error is not None:
            kind = RunError if error["permitted"] else NotPermitted
            raise kind(
                error["class"],
                error["message"],
                evidence=tuple(error["evidence"]),
                hint=error["hint"],
            )
        return True


__all__ = ["NVIDIA_SMI", "NotPermitted", "boosted", "levels"]
