"""Groups: which tests need the measurements of which scenario, and when the last of them has ended.

A group is one scenario's campaign in one session. Pure bookkeeping.
"""

from collections.abc import Collection, Mapping

from perfgate.campaign.resume import KeptResults


class Groups:
    """The groups of one process.

    Args:
        needs: test → ids of the scenarios that must be measured for it.
        kept: what a resumed run keeps: those tests have ended before, those groups are finished.
    """

    def __init__(
        self, needs: Mapping[str, Collection[str]], kept: KeptResults | None = None
    ) -> None:
        kept = kept or KeptResults()
        self._waiting: dict[str, set[str]] = {}
        self._counted: dict[str, set[str]] = {}
        for test, scenarios in needs.items():
            for scenario in set(scenarios) - kept.groups.keys():
                waiting = self._waiting.setdefault(scenario, set())
                counted = self._counted.setdefault(scenario, set())
                (counted if test in kept.verdicts else waiting).add(test)

    def ended(self, test: str, *, measured: bool) -> list[str]:
        """Take note that a test has its outcome; the scenarios whose last test it was.

        Args:
            test: its id.
            measured: whether it has a verdict; a skipped one ends, but is not counted.
        """
        finished = []
        for scenario, waiting in self._waiting.items():
            if test not in waiting:
                continue
            waiting.remove(test)
            if measured:
                self._counted[scenario].add(test)
            if not waiting and self._counted[scenario]:
                finished.append(scenario)
        return finished

    @property
    def open(self) -> frozenset[str]:
        """The scenarios that a test still waits for."""
        return frozenset(scenario for scenario, waiting in self._waiting.items() if waiting)

    def counted(self, scenario: str) -> list[str]:
        """The tests with a verdict that rests on the group, sorted."""
        return sorted(self._counted[scenario])
