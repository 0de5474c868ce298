"""Labelled series: reading, scoring, and the gate walking along them without looking ahead."""

from pathlib import Path

import numpy as np
import pytest
from tables import each

from benchmarks.detection.labelled import Label, Labelled, read, score
from benchmarks.detection.online import Settings, noise_of, refusal, replay, walk
from benchmarks.detection.real_rules import first_of_each, standing
from benchmarks.detection.real_series import by_size, edges, primary
from perfgate.core.errors import InputError


def labelled(*labels: Label, points: int = 100, name: str = "one") -> Labelled:
    return Labelled(name, "primary", (1.0,) * points, labels)


def step(at: int, confidence: str = "high") -> Label:
    return Label(at, at, "step", confidence)


def series_with_step(size: float, at: int = 60, points: int = 120) -> list[float]:
    random = np.random.default_rng(8)
    level = np.where(np.arange(points) < at, 0.0, np.log1p(size))
    return list(100 * np.exp(level + 0.01 * random.standard_normal(points)))


@each(
    "alarm, found, false",
    [(46, 0, 1), (47, 1, 0), (50, 1, 0), (60, 1, 0), (61, 0, 1)],
)
def test_an_alarm_belongs_to_a_label_from_three_before_to_ten_after(alarm, found, false) -> None:
    told = score([labelled(step(50))], {"one": [alarm]})
    assert (told.labels, told.found, told.false) == (1, found, false)


def test_doubtful_steps_ramps_and_outliers_need_not_be_found_nor_are_they_false() -> None:
    one = labelled(step(20, "low"), Label(40, 55, "ramp", "high"), Label(80, 80, "outlier", "high"))
    told = score([one], {"one": [25, 60, 65, 70, 80]})
    assert (told.labels, told.found, told.false) == (0, 0, 1)


def test_a_label_of_two_sources_counts_once_and_delays_are_from_the_first_alarm() -> None:
    one, two = labelled(step(50), step(50, "pinned")), labelled(step(30), name="two")
    told = score([one, two], {"one": [52, 53], "two": [29, 95]})
    assert (told.labels, told.found, told.false, told.alarms) == (2, 2, 1, 4)
    assert told.delays == (2, -1)
    assert told.delay == 0.5
    assert told.false_per_1000 == 5.0


def test_series_are_read_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "series.csv").write_text("series_id,file,use\na,a.csv,primary\nb,b.csv,edge (x)\n")
    (tmp_path / "labels.csv").write_text(
        "series_id,index,end_index,kind,confidence\na,1,,step,high\na,0,2,ramp,low\n"
    )
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("index,value\n0,1.5\n1,2.5\n2,3.5\n")
    first, second = read(tmp_path)
    assert first.values == (1.5, 2.5, 3.5)
    assert first.labels == (Label(1, 1, "step", "high"), Label(0, 2, "ramp", "low"))
    assert first.sought == (1,)
    assert second.labels == ()
    assert primary([first, second]) == [first]


def test_noise_is_taken_from_successive_differences() -> None:
    quiet = series_with_step(0.0, points=400)
    assert noise_of(quiet) == pytest.approx(0.01, rel=0.2)
    assert noise_of(series_with_step(0.5, points=400)) == pytest.approx(noise_of(quiet), rel=0.05)


@each("size", [0.08, -0.08])
def test_the_gate_finds_a_step_either_way_and_starts_anew(size: float) -> None:
    found = walk(series_with_step(size), Settings())
    assert len(found.alarms) == 1
    assert 57 <= found.alarms[0] <= 61
    assert found.undecided == 0


def test_an_unchanged_series_costs_little_more_than_a_start_a_point() -> None:
    found = walk(series_with_step(0.0), Settings())
    assert found.alarms == ()
    assert found.decisions == 110
    assert found.starts < 1.2 * found.decisions


def test_a_decision_uses_four_later_points_at_most() -> None:
    values, settings = series_with_step(0.03), Settings(band=2)
    alarms = walk(values, settings).alarms
    for cut in range(20, 120, 24):
        wild = [value * 1.1 ** (position % 3) for position, value in enumerate(values[cut:])]
        decided = cut - 5
        changed = walk([*values[:cut], *wild], settings).alarms
        assert [at for at in changed if at <= decided] == [at for at in alarms if at <= decided]
    assert walk(values, settings).starts > 2 * walk(values, settings).decisions


def test_a_single_outlier_is_no_change() -> None:
    values = series_with_step(0.0)
    values[70] *= 1.4
    assert walk(values, Settings()).alarms == ()


def test_the_anchor_sees_a_loss_that_creeps() -> None:
    values = [100 * 1.0008**point for point in range(120)]  # 0.04 bands a point
    settings = Settings(window=5, sigma=0.005, recalibrate=False)
    assert walk(values, settings).alarms
    assert not walk(values, Settings(window=5, sigma=0.005, recalibrate=False, anchor=0)).alarms


@each("values", [[5.0] * 30, [-1.0, 2.0] * 15])
def test_series_that_cannot_be_judged_are_refused(values: list[float]) -> None:
    assert refusal(values, Settings())
    with pytest.raises(InputError):
        walk(values, Settings())
    assert refusal(series_with_step(0.0), Settings()) == ""


def test_edge_series_are_told_apart() -> None:
    still = Labelled("still", "edge (zero variance)", (5.0,) * 40, ())
    refused, judged = edges([still, labelled()])
    assert refused["refused"]
    assert (judged["refused"], judged["false"], judged["starts"]) == ("", 0, 1.0)


def test_replay_gives_a_rule_what_it_asks_for_and_starts_anew() -> None:
    given: list[tuple[int, int]] = []

    def differs(base, new) -> bool:
        given.append((len(base), len(new)))
        return new[0] > 1.5 * base[-1]

    alarms = replay([1.0] * 6 + [2.0] * 6, differs, least=2, most=3, new=2)
    assert alarms == (6,)
    assert given[0] == (2, 2)
    assert max(base for base, _ in given) == 3
    assert given[5] == (2, 2)  # the two values of the alarm, right after it


def test_a_rule_without_a_new_start_counts_points_in_a_row_once() -> None:
    lower = [10.0] * 12 + [5.0] * 3 + [10.0] * 5 + [5.0]
    standing_at = standing(lower, lambda base, new: new[0] < 0.7 * max(base))
    assert standing_at == [12, 13, 14, 20]
    assert first_of_each(standing_at) == (12, 20)
    assert standing([10.0, 5.0, 10.0], lambda base, new: True) == []  # fewer than ten before


def test_steps_are_sized_in_bands() -> None:
    values = series_with_step(0.08)
    one = Labelled("one", "primary", tuple(values), (step(60),))
    (told,) = by_size([one], {"mine": {"one": (61,)}, "other": {"one": (90,)}})
    assert told["change"] == pytest.approx(0.08, abs=0.015)
    assert told["bands"] == pytest.approx(told["change"] / 0.04, rel=0.35)  # sigma is near 1 %
    assert (told["mine"], told["other"]) == (True, False)
