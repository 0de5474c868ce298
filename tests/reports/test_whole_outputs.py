"""Whole outputs of nights, word for word: every text that a person or a program gets.

A change of one shows as a difference of its file. `night_runs.py` writes the files.
"""

import pytest
from night_runs import FACTS, FOLDER, NIGHTS, killed_night, outcome_texts, outputs, page_text

from perfgate.reports.candidates import ready


@pytest.mark.parametrize("night", NIGHTS)
def test_every_output_of_a_night_is_as_reviewed(night: str) -> None:
    folder = FOLDER / night
    reviewed = {one.name: one.read_text(encoding="utf-8") for one in folder.iterdir()}
    assert outputs(NIGHTS[night](), **FACTS.get(night, {})) == reviewed


def test_every_end_of_a_test_is_as_reviewed() -> None:
    assert outcome_texts() == (FOLDER / "outcomes.txt").read_text(encoding="utf-8")


def test_a_whole_page_is_as_reviewed() -> None:
    assert page_text() == (FOLDER / "page.txt").read_text(encoding="utf-8")


def test_ready_is_what_the_last_line_of_a_measured_candidate_says() -> None:
    assert ready(killed_night()) == ("b",)
