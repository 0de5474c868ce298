"""Start allowance: how many starts a campaign has made of each role, and whether it may make more.

A disturbed start does not count, unless there were too many of them; one that the machine lost is
made again once. Time is limited by the scenario (`gate.budget_s`) and the session (``--budget``).
"""

from collections import Counter
from collections.abc import Iterator

from perfgate.campaign.budget import Budget
from perfgate.campaign.schedule import MOST_CONTROLS, StartRole, controlled_by
from perfgate.campaign.start_counts import Account

# Fresh starts of one role made again because something disturbed them, at most.
_MOST_REPEATS = 2
# Fresh starts made again, elsewhere if possible, because the machine failed and not the build.
_MOST_LOST = 1


class StartAllowance:
    """The starts of one campaign.

    Args:
        budget_s: seconds after which no further start is made; None: they do not count.
        budget: the session's time; None: as long as it needs.
        account: what the starts of the campaign took so far.
    """

    def __init__(self, budget_s: float | None, budget: Budget | None, account: Account) -> None:
        self._budget_s = budget_s
        self._budget = budget
        self._account = account
        self._made: Counter[StartRole] = Counter()
        self._disturbed: Counter[StartRole] = Counter()
        self._lost = 0
        self._spent_s = 0.0

    def begin(self, role: StartRole) -> int:
        """Count another start; its number, from 1."""
        self._made[role] += 1
        return self._made.total()

    def ended(self, role: StartRole, seconds: float, *, disturbed: bool) -> None:
        """Count what a start took. The machine's own reference is not part of the budget."""
        self._disturbed[role] += disturbed
        if role != "reference":
            self._spent_s += seconds

    def lose(self) -> bool:
        """Whether a start that the machine lost may be made again; each is asked about once."""
        self._lost += 1
        return self._lost <= _MOST_LOST

    def repeats(self, role: StartRole) -> bool:
        """Whether the last start of a role, which was disturbed, is to be made again."""
        return self._disturbed[role] <= _MOST_REPEATS

    def allows(self, role: StartRole, most: int) -> bool:
        """Whether another start is allowed.

        Args:
            role: what it is of.
            most: starts of the build under test; a control has a limit of its own.
        """
        if self.out_of_time or self.beyond_budget():
            return False
        if controlled_by(role) is not None:
            most = MOST_CONTROLS
        made_up_for = min(self._disturbed[role], _MOST_REPEATS)
        return self._made[role] - made_up_for < most

    @property
    def out_of_time(self) -> bool:
        """Whether the scenario's own time is used up."""
        return self._budget_s is not None and self._spent_s >= self._budget_s

    def beyond_budget(self) -> str | None:
        """Why the session's time allows no further start; None: it does."""
        return None if self._budget is None else self._budget.no_more(self._account.mean_s())

    def why_no_more(self, *, undecided: bool, is_open: bool) -> Iterator[str]:
        """What kept the campaign from deciding a probe, beside the numbers.

        Args:
            undecided: whether its numbers ask for another start.
            is_open: whether another start would serve it.
        """
        if undecided and self.out_of_time:
            yield (
                f"no more starts: {self._spent_s:.0f} s used of gate.budget_s {self._budget_s:g}"
            )
        if is_open and (told := self.beyond_budget()):
            yield told
