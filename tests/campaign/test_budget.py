"""Budget: spans of time as people write them, and what no longer fits is told."""

import time

import pytest
from tables import each

from perfgate.campaign.budget import Budget, Estimate, seconds_of, span
from perfgate.core.errors import InputError


@each(
    ("text", "seconds"),
    [("4h", 14400), ("90m", 5400), ("3600s", 3600), ("2h30m", 9000), ("3600", 3600), ("1.5h", 5400)]
    + [("1h1m1s", 3661)],
)
def test_a_span_of_time_is_read(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@each(
    "text", ["", "h", "0", "0h", "-1h", "4 h", "4d", "30m2h", "1h1h", "1h30", "four hours", "nan"]
)
def test_what_is_no_span_of_time_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--budget: not a duration") as caught:
        seconds_of(text)
    assert "4h, 90m" in str(caught.value)


@each(
    ("seconds", "told"),
    [(0, "0 s"), (12.4, "12 s"), (59.7, "1 min"), (60, "1 min"), (1500, "25 min")]
    + [(3599, "1 h"), (3600, "1 h"), (4200, "1 h 10 min")],
)
def test_a_span_of_time_is_told(seconds: float, told: str) -> None:
    assert span(seconds) == told


def left(seconds: float, text: str = "4h") -> Budget:
    return Budget(text, time.monotonic() + seconds + 0.5)


def test_what_fits_is_not_refused() -> None:
    assert left(1500).refuses(Estimate(1400)) is None
    assert left(1500).no_more(1400) is None
    assert left(1500).no_more(None) is None


def test_what_does_not_fit_is_refused_with_both_times() -> None:
    assert left(1500).refuses(Estimate(4200)) == (
        "not run: needs about 1 h 10 min, 25 min of --budget 4h are left"
    )
    assert left(1500).refuses(Estimate(3000) + Estimate(600, known=False)) == (
        "not run: how long it takes is not known, limits say at most 1 h for the engine to start, "
        "25 min of --budget 4h are left"
    )


def test_no_further_start_is_made_beyond_it() -> None:
    assert left(600).no_more(1200) == (
        "no more starts: --budget 4h is nearly used up "
        "(10 min are left, and one takes about 20 min)"
    )


def test_a_used_up_budget_refuses_all() -> None:
    spent = Budget("90m", time.monotonic() - 5)
    assert spent.left_s() == 0
    assert "0 s of --budget 90m are left" in (spent.refuses(Estimate(0)) or "")
    assert spent.no_more(None) == "no more starts: --budget 90m is nearly used up (0 s are left)"


def test_it_counts_from_the_beginning_of_the_session() -> None:
    assert 3599 < Budget.from_now("1h").left_s() <= 3600
