"""A/B builds: the two builds of one scenario that a session compares side by side.

Nothing that is measured here becomes a baseline.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from perfgate.campaign.other_build import OtherBuild, other_build, same_build
from perfgate.campaign.session import Session
from perfgate.core.measurement import Measurement
from perfgate.core.redaction import mask_arguments
from perfgate.judging.assembly.measured import measured_build
from perfgate.judging.assembly.outcome import Outcome
from perfgate.scenarios.scenario import Scenario


@dataclass(frozen=True)
class AbBuilds:
    """Both builds of an A/B, found.

    Attributes:
        a: the build that is compared with.
        b: the build under test.
    """

    a: OtherBuild
    b: OtherBuild

    def told(self, outcome: Outcome, measurements: Mapping[str, Sequence[Measurement]]) -> Outcome:
        """The outcome of a probe, with what both builds are.

        Args:
            outcome: of B against A.
            measurements: A, B → what it gave.
        """
        same = same_build(self.a, self.b)
        notes = outcome.notes
        if same and outcome.error is None:
            notes = (*notes, f"A and B are one build ({same}): an A/A run")
        return replace(
            outcome,
            compared_with=self._in_words(measurements),
            injected=tuple(str(one) for one in self.b.injections),
            notes=notes,
        )

    def _in_words(self, measurements: Mapping[str, Sequence[Measurement]]) -> str:
        """Both with what they tell of themselves; `measurements` of each tell of its image."""
        told = []
        for side, one in (("A", self.a), ("B", self.b)):
            (named,) = mask_arguments([one.source.in_words])
            build = measured_build(one.tools.build, measurements.get(side, ()))
            told.append(f"{side} = {named} ({build.in_words})")
        return "; ".join(told)


def ab_builds(scenario: Scenario, session: Session) -> AbBuilds:
    """The builds that the session compares; errors as of `other_build`.

    Raises:
        ValueError: the session compares none.
    """
    if session.ab is None:
        raise ValueError("the session compares no two builds")
    return AbBuilds(
        other_build(scenario, session, session.ab.a), other_build(scenario, session, session.ab.b)
    )
