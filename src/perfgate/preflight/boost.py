"""Boost: the GPUs' vboost slider, set for a while and put back. Only a person's request sets it.

As in the best-practice document on DeepSeek-R1, section "Optional: Tune GPU clocks". What was there
before is put back, not 0; so a slider whose levels cannot be read is not touched.
"""

import re
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

from perfgate.errors import InputError, MissingProgram, RunError
from perfgate.preflight.looking import FAILURE
from perfgate.programs import Program

NVIDIA_SMI = Program("nvidia-smi", "nvidia-smi", "NVIDIA's driver")
CALL_S = 30.0
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# A line of `nvidia-smi boost-slider -l`: the GPU's number, the slider, highest and present level.
_LEVEL = re.compile(r"^\D*(\d+)\D+?\bvboost\b\D+(\d+)\D+(\d+)\D*$", re.IGNORECASE)
_FORBIDDEN = re.compile(r"insufficient permission|not permitted|permission denied", re.IGNORECASE)


class NotPermitted(RunError):
    """This user may not set the slider."""


def levels(gpus: Sequence[str] | None = None) -> dict[str, tuple[int, int]]:
    """GPU's number → present and highest level.

    Args:
        gpus: the GPUs by number; None: all.

    Raises:
        MissingProgram: there is no nvidia-smi.
        RunError: class ``unfit_machine``: the levels cannot be read.
    """
    status, text = _call("-l")
    found = {
        match[1]: (int(match[3]), int(match[2]))
        for match in map(_LEVEL.match, text.splitlines())
        if match
    }
    missing = sorted(set(gpus or ()) - set(found))
    if status != 0 or not found or missing:
        of = f" of GPU {', '.join(missing)}" if missing and found else ""
        raise RunError(
            FAILURE,
            f"the vboost level{of} cannot be read, so it could not be put back: nothing was set",
            evidence=tuple(text.splitlines()[:5]),
            hint="not every GPU has this slider (nvidia-smi boost-slider -l); run without vboost",
        )
    return {gpu: found[gpu] for gpu in (gpus or found)}


@contextmanager
def boosted(level: int, gpus: Sequence[str] | None = None) -> Iterator[Mapping[str, int]]:
    """Set the slider, see that it is set, and put back what was there, however the block ends.

    SIGINT, SIGTERM and SIGHUP end the block first where the main thread runs it; only a SIGKILL
    leaves the slider as it is.

    Args:
        level: the level, from 0 to what the GPUs have.
        gpus: the GPUs by number; None: all.

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
    with _Ending() as ending:
        try:
            _set(level, list(before))
            _verify(dict.fromkeys(before, level))
            yield before
        finally:
            try:
                ending.wait()
            finally:
                _put_back(before)


def _put_back(before: Mapping[str, int]) -> None:
    """Set what was there where it is not there; a level that never changed is not set again."""
    try:
        changed = [gpu for gpu, (now, _) in levels(list(before)).items() if now != before[gpu]]
    except RunError:  # it was readable before; better set once too often than left
        changed = list(before)
    for level in sorted({before[gpu] for gpu in changed}):
        _set(level, [gpu for gpu in changed if before[gpu] == level])
    if changed:
        _verify(before)


def _set(level: int, gpus: Sequence[str]) -> None:
    status, text = _call("-i", ",".join(gpus), "--vboost", str(level))
    if status == 0:
        return
    evidence = tuple(text.splitlines()[:5])
    if _FORBIDDEN.search(text):
        raise NotPermitted(
            FAILURE,
            "setting vboost is not permitted",
            evidence=evidence,
            hint="run as root or without vboost",
        )
    raise RunError(
        FAILURE,
        f"vboost could not be set to {level} on GPU {', '.join(gpus)}",
        evidence=evidence,
        hint=f"nvidia-smi boost-slider -i {','.join(gpus)} --vboost {level}, by hand and as root",
    )


def _verify(wanted: Mapping[str, int]) -> None:
    present = {gpu: now for gpu, (now, _) in levels(list(wanted)).items()}
    other = [gpu for gpu, level in wanted.items() if present[gpu] != level]
    if other:
        told = ", ".join(f"GPU {gpu}: {present[gpu]}, not {wanted[gpu]}" for gpu in other)
        raise RunError(
            FAILURE,
            f"nvidia-smi said that vboost is set, but it is not: {told}",
            hint="nvidia-smi boost-slider -l shows what is set",
        )


def _call(*arguments: str) -> tuple[int, str]:
    try:
        done = subprocess.run(
            [*NVIDIA_SMI.find(), "boost-slider", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=CALL_S,
            check=False,
            # Ctrl-C in a terminal goes to the whole group: it must not end nvidia-smi half-way.
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return 1, f"nvidia-smi did not answer in {CALL_S:.0f} s"
    except OSError as error:
        raise MissingProgram(f"nvidia-smi cannot be started: {error}") from error
    return done.returncode, done.stdout


class _Ending:
    """Lets the first signal that asks to end raise, and the others wait, until the block is over.

    SIGTERM and SIGHUP would end Python without a word. In another thread than the main one, where
    Python delivers no signal, nothing is changed; nor for a signal that is ignored.
    """

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._waits = False
        self._raised = False
        self._late: int | None = None

    def wait(self) -> None:
        """From now on no signal raises any more."""
        self._waits = True

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for one in _ENDING:
                handler = signal.getsignal(one)
                if handler not in (signal.SIG_IGN, None):
                    self._before[one] = handler
                    signal.signal(one, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for one, handler in self._before.items():
            signal.signal(one, handler)
        if self._late is not None and not self._raised:
            signal.raise_signal(self._late)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._waits:
            self._late = number
            return
        self._waits = self._raised = True
        handler = self._before[number]
        if callable(handler):
            handler(number, frame)  # Python's own raises KeyboardInterrupt
        raise SystemExit(128 + number)


__all__ = ["NVIDIA_SMI", "NotPermitted", "boosted", "levels"]
