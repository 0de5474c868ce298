"""Control starts: what the other builds gave in this session. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from perfgate.core.measurement import Measurement
from perfgate.core.rule import ControlPolicy
from perfgate.core.verdict import Against


@dataclass(frozen=True)
class ControlStarts:
    """The controls of one probe.

    Attributes:
        policy: whether controls are made, and needed (`gate.control`).
        measured: which build, that of the baseline or of the anchor → its measurements in this
            session, in order; a build that is missing here cannot be started.
        why_not: which build → why it cannot be started, in words.
    """

    policy: ControlPolicy = "auto"
    measured: Mapping[Against, Sequence[Measurement]] = field(default_factory=dict)
    why_not: Mapping[Against, str] = field(default_factory=dict)

    def values(self, against: Against, metric: str) -> list[float] | None:
        """The metric's values, one per control that has it; None: that build cannot be started."""
        if self.policy == "none" or against not in self.measured:
            return None
        return [one.metrics[metric] for one in self.measured[against] if metric in one.metrics]
