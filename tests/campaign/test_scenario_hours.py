"""Scenario hours: by the baselines of the gate repository, else by limits, nothing of a machine."""

from dataclasses import replace

import building
import pytest

from perfgate.baselines import Baseline, Entry, Retired
from perfgate.campaign.durations import seconds_of, stored_seconds
from perfgate.core.paths import BASELINES

GPU = replace(building.SCENARIO, hardware=replace(building.SCENARIO.hardware, gpu="B200", gpus=8))


def measured(commit: str, accepted: str, seconds: dict[str, float | None]) -> Baseline:
    entries = {
        label: Entry(
            {}, tuple(replace(run, seconds=one) for run in building.entry(100.0, 101.0).runs)
        )
        for label, one in seconds.items()
    }
    return building.of_commit(commit, accepted_at=accepted, entries=entries)


OLD = measured("a1", "2026-11-01T12:00:00+00:00", {"c1": 500.0, "c4": 600.0, "sums": 700.0})
NEW = measured("b2", "2026-11-09T12:00:00+00:00", {"c1": 100.0, "c4": 200.0, "sums": None})


def test_without_a_baseline_the_limits_of_one_start_count() -> None:
    found = seconds_of(GPU, [])
    assert not found.known
    assert found.usual == 60.0 + 3 * 600.0
    assert found.longest == 3 * found.usual + 60.0 + 3 * 600.0


def test_the_newest_baseline_counts_and_an_older_one_for_what_it_lacks() -> None:
    found = seconds_of(GPU, [NEW, OLD])
    assert found.known
    assert found.usual == 2 * (100.0 + 200.0 + 700.0)
    assert found.longest == 11 * 1000.0 + 60.0 + 3 * 600.0


def test_the_order_of_the_files_does_not_matter() -> None:
    assert seconds_of(GPU, [OLD, NEW]) == seconds_of(GPU, [NEW, OLD])


def test_a_retired_baseline_says_nothing() -> None:
    gone = replace(OLD, retired=Retired("Ada", "2026-11-10T12:00:00+00:00", "wrong driver"))
    found = seconds_of(GPU, [gone, NEW])
    assert not found.known
    assert found.usual == 2 * (100.0 + 200.0 + 600.0)


def test_a_machine_that_is_its_own_reference_makes_all_starts() -> None:
    own = replace(GPU, gate=replace(GPU.gate, reference="self", reference_starts=6, max_starts=4))
    assert seconds_of(own, [OLD]).usual == 10 * 1800.0


def test_what_a_machine_keeps_of_itself_does_not_count(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path_factory.mktemp("baselines")
    monkeypatch.setenv(BASELINES, str(empty))
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("PERFGATE_HOME", str(home))
    from perfgate.baselines import own_store

    own_store().save(replace(OLD, accepted_by="self"))
    assert stored_seconds([building.SCENARIO])[building.SCENARIO.id].known is False
