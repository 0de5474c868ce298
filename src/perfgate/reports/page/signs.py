"""Signs: a shape, a word and a tone for every verdict and every exit status, never colour alone."""

from collections.abc import Mapping
from dataclasses import dataclass

from perfgate.core.measured import Change
from perfgate.core.verdict import Judgement, Verdict
from perfgate.reports.run_report import TestResult
from perfgate.runs.exit_status import ExitStatus


@dataclass(frozen=True)
class Sign:
    """How something is shown.

    Attributes:
        shape: one character.
        word: what it is called.
        tone: class of the style sheet: `good`, `bad`, `open`, `broken` or `none`.
        rank: the worst has 0.
    """

    shape: str
    word: str
    tone: str
    rank: int


SIGNS: Mapping[str, Sign] = {
    Verdict.REGRESSION: Sign("▼", "REGRESSION", "bad", 0),
    Verdict.ERROR: Sign("■", "ERROR", "broken", 1),
    Verdict.NOT_COMPARABLE: Sign("◇", "NOT_COMPARABLE", "open", 2),
    Verdict.NO_BASELINE: Sign("○", "NO_BASELINE", "open", 3),
    Verdict.INCONCLUSIVE: Sign("◆", "INCONCLUSIVE", "open", 4),
    "unfinished": Sign("□", "not finished", "none", 5),
    "budget": Sign("□", "not run: time", "none", 6),
    "lack": Sign("□", "not run", "none", 7),
    "waived": Sign("▽", "waived", "open", 8),
    Verdict.IMPROVEMENT: Sign("▲", "IMPROVEMENT", "better", 9),
    Verdict.PASS: Sign("●", "PASS", "good", 10),
}
REPORTED = Sign("·", "reported", "none", 11)

_STATUS: Mapping[int, Sign] = {
    ExitStatus.PASSED: Sign("●", "Passed", "good", 0),
    ExitStatus.REGRESSION: Sign("▼", "Regression", "bad", 0),
    ExitStatus.INCONCLUSIVE: Sign("◆", "Undecided", "open", 0),
    ExitStatus.ERROR: Sign("■", "Error", "broken", 0),
    ExitStatus.NOT_JUDGED: Sign("○", "Not judged", "open", 0),
    ExitStatus.REHEARSED: Sign("◌", "Rehearsed", "none", 0),
    ExitStatus.WAIVERS: Sign("▽", "Waivers do not hold", "broken", 0),
    ExitStatus.INTERNAL_ERROR: Sign("■", "perfgate failed", "broken", 0),
    ExitStatus.UNWRITABLE: Sign("■", "Not written", "broken", 0),
}
_NOT_ENDED = Sign("□", "Not ended", "open", 0)


def status_sign(status: int | None) -> Sign:
    """That of a run's exit status; None: it has not ended. An unknown one is shown as broken."""
    if status is None:
        return _NOT_ENDED
    return _STATUS.get(status, Sign("■", "Ended abnormally", "broken", 0))


def sign(one: TestResult | Judgement | Change) -> Sign:
    """That of a test, of a metric, or of a change that is only reported."""
    if isinstance(one, Change):
        return REPORTED
    if isinstance(one, Judgement):
        return SIGNS["waived" if one.waiver else one.verdict]
    return SIGNS[one.verdict if one.verdict is not None else one.why_not or "lack"]
