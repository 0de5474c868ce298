"""Whole outputs of three nights, word for word: every text that a person or a program gets.

A change of one shows as a difference of its file. `night_runs.py` writes the files.
"""

import pytest
from night_runs import FOLDER, NIGHTS, outputs


@pytest.mark.parametrize("night", NIGHTS)
def test_every_output_of_a_night_is_as_reviewed(night: str) -> None:
    folder = FOLDER / night
    reviewed = {one.name: one.read_text(encoding="utf-8") for one in folder.iterdir()}
    assert outputs(NIGHTS[night]()) == reviewed
