"""The suspicion that a host moved and not the build."""

import pytest
from tables import each

from perfgate.judging.rules.diagnostics import Moved, moved_together

SPEED = "output_throughput"


def moves(lost: int, stayed: int) -> list[Moved]:
    down = [Moved(f"s{number}", SPEED, -0.04 - number / 1000, True) for number in range(lost)]
    return down + [Moved(f"t{number}", SPEED, -0.001, False) for number in range(stayed)]


@each(
    ("lost", "stayed", "suspected"),
    [
        pytest.param(4, 0, True, id="all of four"),
        pytest.param(3, 0, False, id="too few to say"),
        pytest.param(3, 1, False, id="three of four"),
        pytest.param(4, 1, True, id="four of five are four fifths"),
        pytest.param(7, 2, False, id="less than four fifths"),
        pytest.param(16, 4, True, id="many"),
        pytest.param(0, 9, False, id="nothing moved"),
        pytest.param(0, 0, False, id="nothing judged"),
    ],
)
def test_nearly_all_of_at_least_four(lost: int, stayed: int, suspected: bool) -> None:
    assert bool(moved_together(moves(lost, stayed))) == suspected


def test_the_sentence_has_counts_range_median_and_the_next_step() -> None:
    assert moved_together(moves(5, 1)) == (
        "5 of 6 scenarios got worse at once, by 4.0 % to 4.4 % (median 4.2 %, the worst metric of "
        "each): this may be the host and not the build; look at its clocks and its neighbours, "
        "and measure the baseline's commit on it; the verdicts stand"
    )


def test_a_scenario_counts_once_with_its_worst_metric() -> None:
    both = [
        one
        for number in range(4)
        for one in (
            Moved(f"s{number}", SPEED, -0.05, True),
            Moved(f"s{number}", "tpot_median_ms", 0.08, True),
            Moved(f"s{number}", "ttft_median_ms", 0.5, False),
        )
    ]
    assert "4 of 4 scenarios got worse at once, by 8.0 % to 8.0 %" in moved_together(both)
    one_scenario = [Moved("s", f"metric {number}", -0.1, True) for number in range(9)]
    assert moved_together(one_scenario) == ""
