"""Controls: fresh starts of the build that is compared with, made in the same session."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import get_args

from perfgate.core.errors import InputError
from perfgate.core.rule import ControlPolicy, ControlRule
from perfgate.core.verdict import Verdict
from perfgate.judging.rules.controlled_test import Decision


@dataclass(frozen=True)
class Controls:
    """What is known of the other build in this session.

    Attributes:
        values: one per control, in the order measured; None: none can be started.
        policy: whether controls are made, and needed.
        why_not: why none can be started, in words; empty: nobody asked.
        rule: constants.
    """

    values: Sequence[float] | None = None
    policy: ControlPolicy = "auto"
    why_not: str = ""
    rule: ControlRule = field(default_factory=ControlRule)

    def __post_init__(self) -> None:
        if self.policy not in get_args(ControlPolicy):
            raise InputError(
                "not a policy for controls",
                found=self.policy,
                expected=" or ".join(get_args(ControlPolicy)),
            )

    @property
    def can_be_started(self) -> bool:
        """Whether a control can be asked for."""
        return self.values is not None and self.policy != "none"

    @property
    def are_required(self) -> bool:
        """Whether a loss without control is no REGRESSION."""
        return self.policy == "required"

    def notes_of(self, decided: Decision) -> tuple[str, ...]:
        """What a person should know of how a verdict was, or was not, controlled."""
        if decided.mark == "HOST_SHIFT":
            return ("HOST_SHIFT: machine, not build",)
        if decided.mark == "NO_CONTROL" and decided.verdict == Verdict.REGRESSION:
            why = f" ({self.why_not})" if self.why_not else ""
            return (f"no control: the machine is not excluded{why}",)
        return ()
