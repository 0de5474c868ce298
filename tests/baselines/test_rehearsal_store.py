"""Baselines of rehearsals: a store of their own, which takes and gives nothing measured."""

from dataclasses import replace
from pathlib import Path

import pytest
from life import HARDWARE, SCENARIO, Life, life

from perfgate.baselines import (
    candidate_store,
    read,
    rehearsal_candidate_store,
    rehearsal_store,
    suite_store,
)
from perfgate.baselines.decisions import retire
from perfgate.baselines.recording import record_candidates
from perfgate.core.errors import InputError
from perfgate.judging.acceptance import promote

__all__ = ["life"]  # the fixture


@pytest.fixture
def measured(life: Life) -> Path:
    """A candidate of a run that measured."""
    (candidate,), _ = record_candidates([life.measure(life.build("1.0.0"), 100.0).folder])
    return candidate


@pytest.fixture
def synthetic(measured: Path) -> Path:
    """The same, as if stand-ins had made its numbers."""
    return rehearsal_candidate_store().save(replace(read(measured), synthetic=True), merge=False)


def test_a_candidate_is_promoted_among_its_own_kind_alone(synthetic: Path, measured: Path) -> None:
    for candidate, rehearsal, problem in (
        (synthetic, False, "can never be a baseline of measured ones"),
        (measured, True, "belong into no store of rehearsals"),
    ):
        with pytest.raises(InputError, match=problem):
            promote(candidate, by="Ada", reason="why", rehearsal=rehearsal)
    assert suite_store().list() == rehearsal_store().list() == []
    done = promote(synthetic, by="Ada", reason="why", rehearsal=True)
    assert rehearsal_store().list() == [done.file]
    # A copy among measured ones is refused, also one that no longer says what it is.
    copy = suite_store().path(HARDWARE, SCENARIO, read(done.file).engine.commit)
    copy.parent.mkdir(parents=True)
    copy.write_bytes(done.file.read_bytes())
    with pytest.raises(InputError, match="in a store of measured ones"):
        suite_store().of_scenario(HARDWARE, SCENARIO)
    copy.write_text(copy.read_text().replace('"synthetic": true,', ""))
    with pytest.raises(InputError, match="hash"):
        suite_store().of_scenario(HARDWARE, SCENARIO)
    assert read(retire(done.file, by="Ada", reason="old")).synthetic


@pytest.mark.parametrize("store", [suite_store, candidate_store])
def test_no_store_of_measured_ones_writes_a_synthetic_one(synthetic: Path, store) -> None:
    before = store().list()
    with pytest.raises(InputError, match="in a store of measured ones"):
        store().save(read(synthetic))
    assert store().list() == before


def test_what_was_measured_is_not_recorded_as_a_rehearsal(life: Life) -> None:
    folder = life.measure(life.build("1.0.0"), 100.0).folder
    with pytest.raises(InputError, match="no stand-in made its numbers"):
        record_candidates([folder], rehearsal=True)
    assert rehearsal_candidate_store().list() == []
