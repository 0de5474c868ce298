"""vboost slider: nvidia-smi asked for the GPUs' vboost levels, and told to set them."""

import re
from collections.abc import Mapping, Sequence

from perfgate.core.errors import MissingProgram, RunError
from perfgate.core.program_query import NoStatus, ask_here
from perfgate.core.programs import Program
from perfgate.machine.preflight.inspection import FAILURE

NVIDIA_SMI = Program("nvidia-smi", "nvidia-smi", "NVIDIA's driver")
CALL_S = 30.0
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


def set_all(level: int, gpus: Sequence[str]) -> None:
    """Set one level on all of `gpus`, and see that it is set.

    Raises:
        NotPermitted: this user may not.
        MissingProgram: there is no nvidia-smi.
        RunError: class ``unfit_machine``: it cannot be set.
    """
    _set(level, gpus)
    _verify(dict.fromkeys(gpus, level))


def put_back(before: Mapping[str, int]) -> None:
    """Set what was there where it is not there; a level that never changed is not set again.

    Args:
        before: GPU's number → the level to be there.

    Raises:
        NotPermitted, MissingProgram, RunError: as `set_all`.
    """
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
            hint="requires root; or run without vboost",
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
        levels_now = ", ".join(f"GPU {gpu}: {present[gpu]}, not {wanted[gpu]}" for gpu in other)
        raise RunError(
            FAILURE,
            f"nvidia-smi reported vboost as set, but it is not: {levels_now}",
            hint="nvidia-smi boost-slider -l shows what is set",
        )


def _call(*arguments: str) -> tuple[int, str]:
    argv = (*NVIDIA_SMI.find(), "boost-slider", *arguments)
    answer = ask_here(argv, CALL_S, own_session=True)
    if answer.cause is NoStatus.TOO_LONG:
        return 1, f"nvidia-smi did not answer in {CALL_S:.0f} s"
    if answer.status is None:
        raise MissingProgram(f"nvidia-smi cannot be started: {answer.why}")
    return answer.status, answer.text


__all__ = ["CALL_S", "NVIDIA_SMI", "NotPermitted", "levels", "put_back", "set_all"]
