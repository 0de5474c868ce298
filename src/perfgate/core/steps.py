"""Steps: the program calls of a scenario, each with its role, in the order they are made.

The same steps are printed by `perfgate scenarios command` and started by a run of the suite.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from perfgate.core.command import Command

Role = Literal["prepare_dataset", "server", "smoke", "client", "benchmark", "evaluator"]
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True)
class Step:
    """One program call.

    Attributes:
        role: what it is for. ``benchmark`` is a measuring program with the engine inside itself,
            ``client`` one that puts load on the ``server``.
        command: the call. File names in it are relative to the folder it runs in.
        probe: label of the probe it belongs to; None: it serves all of them.
        produces: name of a file it makes that depends on nothing but the call itself, and so may
            be kept and used again (a synthetic dataset); None: nothing.
    """

    role: Role
    command: Command
    probe: str | None = None
    produces: str | None = None
