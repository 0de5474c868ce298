"""Claim decision: what one look at the evidence of a claim decides, and how that is told. Pure.

The conditions are listed at the top of `perfgate.judging.rules.claims`.
"""

from dataclasses import dataclass
from typing import Literal

from perfgate.core.verdict import Verdict, percent, with_interval
from perfgate.judging.rules.claim_evidence import Loss
from perfgate.judging.rules.claim_size import DocumentedSize

Expect = Literal["better", "worse", "not_worse", "not_better"]

# What a margin is of: the loss, or the gain, that does not count yet.
WITH_MARGIN = ("not_worse", "not_better")

# Verdict, reason and notes.
Decision = tuple[Verdict, str, tuple[str, ...]]


@dataclass(frozen=True)
class Statement:
    """What is claimed, on the scale of losses.

    Attributes:
        expect: the kind of claim.
        edge: the largest loss with which it is true: the margin of ``not_worse``, the negative
            minimum effect of ``better``, else 0; of ``not_better`` the largest gain, negative.
        size: what the document gives; None: no number.
    """

    expect: Expect
    edge: float = 0.0
    size: DocumentedSize | None = None

    @property
    def takes_all(self) -> bool:
        """Whether it holds whatever is measured."""
        return self.expect == "worse" and self.size is None


def decide(statement: Statement, loss: Loss) -> Decision:
    """Verdict, reason and notes of one look."""
    expect, edge, size = statement.expect, statement.edge, statement.size
    change = seen(loss)
    if size is not None and expect == "better":
        return _decide_gain(size, loss)
    if size is not None and expect == "worse":
        return _decide_cost(size, loss)
    if statement.takes_all:
        return Verdict.PASS, change, (_cost(loss),)
    if expect in WITH_MARGIN:
        word, allowed = expect.removeprefix("not_"), loss.told(edge)
        wanted, opposite = f"not {word} by {allowed}", f"{word} by more than {allowed}"
    elif edge:
        wanted, opposite = f"better by {loss.told(edge)}", f"not better by {loss.told(edge)}"
    else:
        wanted, opposite = "better", "worse"
    if expect == "not_better":
        holds, fails = loss.low > edge, loss.high < edge
    else:
        # A gain that is real and at least half of the minimum holds it: no more could ever be
        # proved of one that is just as large (statistics §10).
        holds = loss.high < edge if edge >= 0 else loss.high < 0 and loss.estimate <= edge / 2
        fails = loss.low > edge
    notes = () if size is None else (f"documented: {percent(size.documented)}",)
    if holds:
        return Verdict.PASS, f"the claim holds: {change}, {wanted}", notes
    if fails:
        return Verdict.REGRESSION, f"the claim does not hold: {change}, {opposite}", notes
    return Verdict.INCONCLUSIVE, f"{change}: neither {wanted} nor {opposite} is proved", notes


def _decide_gain(size: DocumentedSize, loss: Loss) -> Decision:
    """A gain of a documented size: its direction and its size must both be proved."""
    change, told = seen(loss), size.in_words
    if loss.high < min(0.0, size.edge):
        notes: tuple[str, ...] = ()
        if loss.high < size.beyond:
            notes = ("better than documented by more than our tolerance: no failure",)
        return Verdict.PASS, f"the claim holds: {change}, direction and size ({told})", notes
    if loss.low > 0:
        why = f"the direction is the opposite ({told})"
        return Verdict.REGRESSION, f"the claim does not hold: {change}, {why}", ()
    direction = "holds" if loss.high < 0 else "is not proved"
    if loss.low > size.edge:
        why = f"its size does not hold ({told}), its direction {direction}"
        return Verdict.REGRESSION, f"the claim does not hold: {change}, {why}", ()
    why = f"its direction {direction}"
    if size.edge < 0:
        why += ", its size is neither proved nor excluded"
    return Verdict.INCONCLUSIVE, f"{change}: {why} ({told})", ()


def _decide_cost(size: DocumentedSize, loss: Loss) -> Decision:
    """A cost of a documented size: it must not be larger, and may be missing."""
    change, told = seen(loss), size.in_words
    if loss.high < size.edge:
        why = f"the claim holds: {change}, no more than the documented cost ({told})"
        return Verdict.PASS, why, (_cost(loss),)
    if loss.low > size.edge:
        why = f"the claim does not hold: {change}, more than the documented cost ({told})"
        return Verdict.REGRESSION, why, (_cost(loss),)
    why = f"{change}: that it is no more than the documented cost is neither proved nor excluded"
    return Verdict.INCONCLUSIVE, f"{why} ({told})", (_cost(loss),)


def seen(loss: Loss) -> str:
    """The change and where the true one lies."""
    bounds = sorted(map(loss.told, (loss.low, loss.high)), key=_number)
    return with_interval(loss.told(loss.estimate), *bounds)


def _number(told: str) -> float:
    return float(told.split()[0])


def _cost(loss: Loss) -> str:
    if loss.low > 0:
        return "the cost that the document warns of shows"
    if loss.high < 0:
        return "there is no cost here, but a gain"
    return "no cost shows here: neither a loss nor a gain is proved"
